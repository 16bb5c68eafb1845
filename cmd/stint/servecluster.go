package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stintd/stint/core/journal"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/bucket"
	"github.com/stintd/stint/ingest/server"
)

// clusterConfig is the part of a configuration that makes a process one of several.
type clusterConfig struct {
	Bucket   string   `yaml:"bucket"`
	Name     string   `yaml:"name"`
	Endpoint string   `yaml:"endpoint"`
	Region   string   `yaml:"region"`
	Style    string   `yaml:"style"`
	Process  string   `yaml:"process"`
	Address  string   `yaml:"address"`
	Lease    duration `yaml:"lease"`

	Authorities string `yaml:"authorities"`
}

// groupWait is how long the first of several inputs waits for others, so that they share one object of the bucket.
const groupWait = 50 * time.Millisecond

func (c *clusterConfig) on() bool { return *c != (clusterConfig{}) }

// validate tells all that is wrong with the values.
func (c *clusterConfig) validate(s *settings) {
	if !c.on() && s.line["cluster"] == 0 {
		return
	}
	given := map[string]string{
		"bucket": c.Bucket, "name": c.Name, "endpoint": c.Endpoint, "region": c.Region, "style": c.Style,
		"process": c.Process, "address": c.Address, "authorities": c.Authorities,
	}
	for key, v := range given {
		full := "cluster." + key
		switch required := key == "bucket" || key == "name"; {
		case v == "" && s.line[full] > 0:
			s.fault(full, v, "must not be empty")
		case v == "" && required:
			s.faults = append(s.faults, settingFault{s.line["cluster"], full + ": must be given"})
		}
	}
	if _, _, err := bucket.ParseURL(c.Bucket); c.Bucket != "" && err != nil {
		s.fault("cluster.bucket", unsaid(c.Bucket), "must be s3://bucket or s3://bucket/prefix")
	}
	if c.Style != "" && c.Style != "path" && c.Style != "host" {
		s.fault("cluster.style", c.Style, "must be path or host")
	}
	for key, v := range map[string]string{"cluster.endpoint": c.Endpoint, "cluster.address": c.Address} {
		if v != "" && !isBase(v) {
			s.fault(key, unsaid(v), "must be http://host:port or https://host:port, without a user")
		}
	}
	if c.Authorities != "" {
		if _, err := server.Authorities(c.Authorities); err != nil {
			s.fault("cluster.authorities", c.Authorities, strings.TrimPrefix(err.Error(), c.Authorities+": "))
		}
	}
	for _, key := range []string{"log.compact", "log.keep"} {
		if s.line[key] > 0 {
			s.faults = append(s.faults, settingFault{s.line[key], key +
				": must be left out in a cluster, whose decision log lies in the bucket, whole"})
		}
	}
	if c.Lease != 0 {
		between(s, "cluster.lease", c.Lease, 100*time.Millisecond, time.Minute)
	}
}

// sharedLog is a log in a bucket as a server takes it.
type sharedLog struct{ *bucket.Log }

// View is the log as of the last look.
func (l sharedLog) View() server.LogView { return l.Log.View() }

// isBase tells whether a text is the address of a server, with nothing behind it.
func isBase(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
		strings.Trim(u.Path, "/") == ""
}

// unsaid is a value for a message: the text before @ may be a password.
func unsaid(v string) string {
	if strings.Contains(v, "@") {
		return "…"
	}
	return v
}

// validateDivisions tells what is wrong with the divisions.
func (c *serveConfig) validateDivisions(s *settings) {
	d := &c.Divisions
	for key, list := range map[string][]string{"divisions.names": d.Names, "divisions.here": d.Here} {
		if s.line[key] > 0 && len(list) == 0 {
			s.fault(key, "[]", "must name a division")
		}
		for i, name := range list {
			switch {
			case slices.Contains(list[:i], name):
				s.fault(key, name, "stands there twice")
			case !plan.DivisionNamed(name):
				s.fault(key, name, "must be a small letter and at most 30 small letters, digits and - after it")
			case !slices.Contains(d.Names, name):
				s.fault(key, name, "must be one of divisions.names")
			}
		}
	}
	if len(d.Here) > 0 && !c.Cluster.on() {
		s.fault("divisions.here", strings.Join(d.Here, ", "),
			"must be left out where one process decides all; other processes take a cluster")
	}
}

// divisions are the divisions as a process has them: with a cluster each has its journal below the bucket's prefix.
func (c *serveConfig) divisions(listens string, log *slog.Logger) (list []server.ServiceDivision, err error) {
	for _, name := range c.Divisions.Names {
		d := server.ServiceDivision{Name: name}
		if c.Cluster.on() {
			d.Far = len(c.Divisions.Here) > 0 && !slices.Contains(c.Divisions.Here, name)
			if d.Cluster, err = c.cluster(listens, name, log.With("division", name)); err != nil {
				return nil, err
			}
		}
		list = append(list, d)
	}
	return list, nil
}

// cluster makes what a process of a cluster needs. listens is where it can be reached, unless the configuration says
// otherwise; division is one of several, "" that there are none.
func (c *serveConfig) cluster(listens, division string, log *slog.Logger) (*server.Cluster, error) {
	k := &c.Cluster
	name := k.Process
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("cluster.process: it is not given, and the host has no name: %w", err)
		}
		u, err := url.Parse(listens)
		if err != nil {
			return nil, err
		}
		name = net.JoinHostPort(host, u.Port())
	}
	at := bucket.S3Options{URL: k.Bucket, Endpoint: k.Endpoint, Region: k.Region, Style: k.Style}
	objects, err := bucket.NewS3(at)
	if err != nil {
		return nil, fmt.Errorf("cluster.%w", err)
	}
	var whole bucket.Objects
	of := k.Name
	if division != "" {
		whole, of = objects, k.Name+"/"+division
		at.URL = strings.TrimSuffix(k.Bucket, "/") + "/" + bucket.DivisionPrefix(division)
		if objects, err = bucket.NewS3(at); err != nil {
			return nil, fmt.Errorf("cluster.%w", err)
		}
	}
	o := bucket.Options{
		Whole: whole, Cluster: of, Name: name, Address: cmp.Or(k.Address, listens), Lease: time.Duration(k.Lease),
		BytesMax: int64(c.Limits.Journal), Log: log,
	}
	return &server.Cluster{
		Open: func(ctx context.Context) (journal.Shared, error) { return bucket.Open(ctx, objects, o) },
		OpenLog: func(ctx context.Context) (server.SharedLog, error) {
			l, err := bucket.OpenLog(ctx, objects)
			return sharedLog{l}, err
		},
		GroupWait: groupWait,
	}, nil
}
