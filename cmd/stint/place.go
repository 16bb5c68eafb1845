package main

import (
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

// place is where a command reads what was decided: a log, or a running service.
type place struct{ log, server, tokenFile string }

func (p *place) flags(f *pflag.FlagSet) {
	f.StringVar(&p.log, "log", "", "folder of the log")
	f.StringVar(&p.server, "server", "", "address of a running service, in place of --log")
	f.StringVar(&p.tokenFile, "token-file", "",
		"with --server, file with the bearer token (default: the variable "+tokenVariable+")")
}

// check tells whether there is one place.
func (p *place) check() error {
	switch {
	case p.log == "" && p.server == "":
		return errors.New("give --log LOG, or --server URL")
	case p.log != "" && p.server != "":
		return errors.New("give --log or --server, not both")
	case p.tokenFile != "" && p.server == "":
		return errors.New("--token-file is for --server")
	}
	return nil
}

// clientOf is a client of a service, with the token of a file, or else of the environment.
func clientOf(server, tokenFile string) (*client.Client, error) {
	c := &client.Client{Base: server, Token: os.Getenv(tokenVariable)}
	if tokenFile != "" {
		b, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, err
		}
		c.Token = strings.TrimSpace(string(b))
	}
	return c, nil
}

// get asks the service.
func (p *place) get(ctx context.Context, path string, q url.Values, accept string) ([]byte, error) {
	c, err := clientOf(p.server, p.tokenFile)
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

// whatif asks the service what its next cycle would be under another policy.
func (p *place) whatif(ctx context.Context, plan []byte, settle int, force bool) (*explain.Comparison, error) {
	c, err := clientOf(p.server, p.tokenFile)
	if err != nil {
		return nil, err
	}
	text, err := c.Whatif(ctx, client.Bytes(plan, "application/yaml"), settle, client.Options{Force: force})
	if err != nil {
		return nil, err
	}
	compared := &explain.Comparison{}
	return compared, json.Unmarshal(text, compared)
}
