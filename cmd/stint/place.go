package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/ingest/client"
)

// place is where a command reads decisions: a log, or a running service.
type place struct {
	log, server string
	as          callerFlags
}

func (p *place) flags(f *pflag.FlagSet) {
	f.StringVar(&p.log, "log", "", logHelp)
	f.StringVar(&p.server, "server", "", "address of a running service, in place of --log (default, where neither "+
		"is given: the variable "+serverVariable+")")
	p.as.flags(f, "with --server, ")
}

// callerFlags are the identity of a command before a service, and the certificates that the command trusts.
type callerFlags struct{ tokenFile, ca, cert, key string }

func (o *callerFlags) flags(f *pflag.FlagSet, when string) {
	f.StringVar(&o.tokenFile, "token-file", "",
		when+"file with the bearer token (default: the variable "+tokenVariable+")")
	f.StringVar(&o.ca, "ca", "", when+"file of the authorities that the service's certificate may be of "+
		"(default: the variable "+caVariable+", or the machine's)")
	f.StringVar(&o.cert, "cert", "", when+"file with the client certificate (default: the variable "+certVariable+")")
	f.StringVar(&o.key, "key", "", when+"file with its key (default: the variable "+keyVariable+")")
}

// given is the first flag that is given, "" when none is.
func (o *callerFlags) given() string {
	for _, f := range []struct{ name, value string }{
		{"--token-file", o.tokenFile}, {"--ca", o.ca}, {"--cert", o.cert}, {"--key", o.key},
	} {
		if f.value != "" {
			return f.name
		}
	}
	return ""
}

// check tells whether there is one place. Where no flag names one it is the service that the environment names.
func (p *place) check() error {
	if p.log == "" && p.server == "" {
		p.server = os.Getenv(serverVariable)
	}
	switch {
	case p.log == "" && p.server == "":
		return errors.New("give --log LOG, or --server URL")
	case p.log != "" && p.server != "":
		return errors.New("give --log or --server, not both")
	case p.as.given() != "" && p.server == "":
		return errors.New(p.as.given() + " is for --server")
	}
	return nil
}

// clientOf is a client of a service, with the token and the certificates of files, or else of the environment.
func clientOf(server string, as *callerFlags) (*client.Client, error) {
	if !strings.Contains(server, "://") {
		server = "http://" + server // localhost:7468
	}
	c := &client.Client{Base: server, Token: os.Getenv(tokenVariable)}
	if as.tokenFile != "" {
		b, err := os.ReadFile(as.tokenFile)
		if err != nil {
			return nil, err
		}
		c.Token = strings.TrimSpace(string(b))
	}
	files := client.TLS{
		CA: cmp.Or(as.ca, os.Getenv(caVariable)), Certificate: cmp.Or(as.cert, os.Getenv(certVariable)),
		Key: cmp.Or(as.key, os.Getenv(keyVariable)),
	}
	if files == (client.TLS{}) {
		return c, nil
	}
	var err error
	c.HTTP, err = files.HTTP()
	return c, err
}

// get asks the service.
func (p *place) get(ctx context.Context, path string, q url.Values, accept string) ([]byte, error) {
	c, err := clientOf(p.server, &p.as)
	if err != nil {
		return nil, err
	}
	return c.Get(ctx, path, q, accept)
}

// escaped is a path whose parts may have any characters.
func escaped(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// numbered checks --cycle of a call that asks a service: the number of one cycle, or last.
func numbered(cycle string) error {
	n, err := strconv.ParseInt(cycle, 10, 64)
	switch {
	case cycle == "all":
		return errors.New("--cycle all: a service tells one cycle at a time; the log has all (--log)")
	case cycle != "last" && (err != nil || n < 1):
		return fmt.Errorf("--cycle %q: must be a number from 1, or last", cycle)
	}
	return nil
}

// table reads a table of a cycle.
func (p *place) table(ctx context.Context, name, cycle string) (*decision.Table, error) {
	if p.server == "" {
		return queryTable(p.log, name, cycle)
	}
	if name == auditName {
		return nil, errors.New("the table " + auditName + " is in the log alone: --log")
	}
	if err := numbered(cycle); err != nil {
		return nil, err
	}
	if cycle == "last" {
		cycle = "latest"
	}
	data, err := p.get(ctx, "/v1/cycles/"+cycle+"/"+url.PathEscape(name), nil, "application/vnd.apache.parquet")
	if err != nil {
		return nil, err
	}
	return export.ReadAnswer(name, data)
}

// explanation explains a consumer or an allocation after a cycle.
func (p *place) explanation(ctx context.Context, name, cycle string) (*explain.Explanation, error) {
	if p.server == "" {
		return explained(p.log, name, cycle)
	}
	if err := numbered(cycle); err != nil {
		return nil, err
	}
	q := url.Values{}
	if cycle != "last" {
		q.Set("cycle", cycle)
	}
	text, err := p.get(ctx, "/v1/explain/"+escaped(strings.TrimPrefix(name, "/")), q, "application/json")
	if err != nil {
		return nil, err
	}
	e := &explain.Explanation{}
	return e, json.Unmarshal(text, e)
}

// whatif asks the service for its next cycle under another policy.
func (p *place) whatif(ctx context.Context, plan []byte, settle int, force bool) (*explain.Comparison, error) {
	c, err := clientOf(p.server, &p.as)
	if err != nil {
		return nil, err
	}
	return c.Whatif(ctx, client.Bytes(plan, "application/yaml"), settle, client.Options{Force: force})
}
