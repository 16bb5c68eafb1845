package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/stintd/stint/ingest/act"
)

// actConfig is the configuration of act, as act.yaml explains it.
type actConfig struct {
	Server      string   `yaml:"server"`
	TokenFile   string   `yaml:"token_file"`
	CA          string   `yaml:"ca"`
	Cert        string   `yaml:"cert"`
	Key         string   `yaml:"key"`
	Source      string   `yaml:"source"`
	Ledger      string   `yaml:"ledger"`
	Listen      string   `yaml:"listen"`
	Every       duration `yaml:"every"`
	Notice      duration `yaml:"notice"`
	Force       duration `yaml:"force"`
	Parallel    int      `yaml:"parallel"`
	Hosts       bool     `yaml:"hosts"`
	AllowShrink bool     `yaml:"allow_shrink"`
	Orphans     string   `yaml:"orphans"`
	Hooks       struct {
		List  actHook `yaml:"list"`
		Start actHook `yaml:"start"`
		Stop  actHook `yaml:"stop"`
	} `yaml:"hooks"`
	Conformance struct {
		Consumer string   `yaml:"consumer"`
		Within   duration `yaml:"within"`
		Grace    duration `yaml:"grace"`
		Submit   actHook  `yaml:"submit"`
		Cancel   actHook  `yaml:"cancel"`
	} `yaml:"conformance"`
	Log struct {
		Level  string `yaml:"level"`
		Format string `yaml:"format"`
	} `yaml:"log"`

	// Of the command line.
	file, folder string
}

type actHook struct {
	Command []string `yaml:"command"`
	Timeout duration `yaml:"timeout"`
	Keep    bool     `yaml:"keep"`
}

const hookTimeout = time.Minute // of hooks that have none

func (h actHook) command() act.Command {
	return act.Command{Args: h.Command, Timeout: cmp.Or(time.Duration(h.Timeout), hookTimeout)}
}

// loadActConfig reads a configuration file on top of the defaults. The hooks have no defaults.
func loadActConfig(name string) (*actConfig, error) {
	c := new(actConfig)
	if err := yaml.UnmarshalWithOptions(actExample, c, yaml.Strict()); err != nil {
		panic("BUG: act.yaml: " + err.Error())
	}
	for _, h := range []*actHook{&c.Hooks.List, &c.Hooks.Start, &c.Hooks.Stop} {
		h.Command = nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, configBytesMax+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(text) > configBytesMax {
		return nil, fmt.Errorf("%s: more than %d bytes", name, configBytesMax)
	}
	s := &settings{name: name}
	s.read(text, reflect.ValueOf(c).Elem())
	c.file = name
	if c.folder, err = filepath.Abs(filepath.Dir(name)); err != nil {
		return nil, err
	}
	for _, path := range []*string{&c.TokenFile, &c.CA, &c.Cert, &c.Key, &c.Ledger} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(c.folder, *path)
		}
	}
	c.validate(s)
	return c, s.err()
}

// validate notes all that is wrong with the values.
func (c *actConfig) validate(s *settings) {
	if c.Server != "" && !strings.Contains(c.Server, "://") {
		c.Server = "http://" + c.Server
	}
	if u, err := url.Parse(c.Server); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		s.fault("server", c.Server, "must be an address such as http://127.0.0.1:7468")
	}
	for key, v := range map[string]string{"source": c.Source, "ledger": c.Ledger} {
		if v == "" {
			s.fault(key, v, "must not be empty")
		}
	}
	if c.Orphans != "stop" && c.Orphans != "report" {
		s.fault("orphans", c.Orphans, "must be stop or report")
	}
	if c.Parallel < 1 || c.Parallel > 1000 {
		s.fault("parallel", strconv.Itoa(c.Parallel), "must be from 1 to 1000")
	}
	between(s, "every", c.Every, 100*time.Millisecond, time.Hour)
	between(s, "force", c.Force, 100*time.Millisecond, time.Hour)
	if c.Notice != 0 {
		between(s, "notice", c.Notice, time.Second, 24*time.Hour)
	}
	for key, h := range map[string]*actHook{"hooks.list": &c.Hooks.List, "hooks.start": &c.Hooks.Start,
		"hooks.stop": &c.Hooks.Stop, "conformance.submit": &c.Conformance.Submit,
		"conformance.cancel": &c.Conformance.Cancel} {
		if len(h.Command) == 0 && !strings.HasPrefix(key, "conformance") {
			s.fault(key+".command", "", "is missing: name a program and its arguments")
		}
		if len(h.Command) > 0 && strings.Contains(h.Command[0], "/") && !filepath.IsAbs(h.Command[0]) {
			h.Command[0] = filepath.Join(c.folder, h.Command[0])
		}
	}
	var level slog.Level
	if level.UnmarshalText([]byte(c.Log.Level)) != nil {
		s.fault("log.level", c.Log.Level, "must be debug, info, warn or error")
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		s.fault("log.format", c.Log.Format, "must be text or json")
	}
}
