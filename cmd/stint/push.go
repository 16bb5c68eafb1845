package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/stintd/stint/ingest/client"
)

// pushOptions are the flags of push.
type pushOptions struct {
	server, source                                  string
	as                                              callerFlags
	plan, hosts, hostChanges, demand, demandChanges string
	running, releases                               string
	force, allowShrink, cycle                       bool
	revision                                        int64
	message                                         string
}

// Variables are where the address of a service, a token and the names of files are looked for when no flag has them.
const (
	serverVariable = "STINT_SERVER"
	tokenVariable  = "STINT_TOKEN"
	caVariable     = "STINT_CA"
	certVariable   = "STINT_CERT"
	keyVariable    = "STINT_KEY"
)

// serverDefault is the address at which a service listens when its configuration has no other.
const serverDefault = "http://127.0.0.1:7468"

func newPush() *cobra.Command {
	var o pushOptions
	c := &cobra.Command{
		Use:   "push --server URL …",
		Short: "Pushes files to a service",
		Long: `Pushes a policy, tables of hosts, demand, running units and releases to a service, in this order.
Tables are CSV, NDJSON, JSON, Arrow IPC or Parquet, plain or packed with gzip or zstd, and go as they
are. A service that is busy, or not there yet, is tried again after the time it asks for; nothing
counts twice.

The service is that of --server, else of the variable STINT_SERVER, else the one on this machine. The
token is read from --token-file, else from the variable STINT_TOKEN. A service that speaks TLS is
asked with https://; --ca names the authority of its certificate where the machine does not know it,
--cert and --key the client certificate by which the service knows who asks.`,
		Example: `  stint push --plan plan.yaml --hosts hosts.parquet --demand demand.csv.zst --cycle
  stint push --server http://grid:7468 --token-file token --source risk --demand demand.arrow
  stint push --server https://grid:7468 --ca ca.crt --cert feed.crt --key feed.key --demand demand.csv
  stint push --releases done.csv`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return o.run(ctx, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.server, "server", "",
		"address of the service (default: the variable "+serverVariable+", or "+serverDefault+")")
	o.as.flags(f, "")
	f.StringVar(&o.source, "source", sourceDefault, "source of demand and running units")
	f.StringVar(&o.plan, "plan", "", "policy file")
	f.StringVar(&o.hosts, "hosts", "", "table of all hosts")
	f.StringVar(&o.hostChanges, "host-changes", "", "table of changed hosts")
	f.StringVar(&o.demand, "demand", "", "table of all that the source wants")
	f.StringVar(&o.demandChanges, "demand-changes", "", "table of changes to it; units 0 takes a row away")
	f.StringVar(&o.running, "running", "", "table of all that runs of the source")
	f.StringVar(&o.releases, "releases", "", "table of units given back")
	f.BoolVar(&o.force, "force", false, "a plan may leave out consumers that hold something")
	f.BoolVar(&o.allowShrink, "allow-shrink", false,
		"take tables though they release more than the shrink guard allows")
	f.Int64Var(&o.revision, "revision", 0, "the plan's revision that the policy file was made from")
	f.StringVar(&o.message, "message", "", "what the policy file changes")
	f.BoolVar(&o.cycle, "cycle", false, "runs a cycle at the end and waits for it")
	return c
}

// run pushes the files that are given.
func (o *pushOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	c, err := clientOf(cmp.Or(o.server, os.Getenv(serverVariable), serverDefault), &o.as)
	if err != nil {
		return err
	}
	with := client.Options{AllowShrink: o.allowShrink, Force: o.force, IfRevision: o.revision, Message: o.message}
	bars := newBars(stderr)
	defer bars.wait()
	pushed := false
	type (
		body    = client.Body
		receipt = client.Receipt
	)
	for _, p := range []struct {
		name, file string
		send       func(body) (receipt, error)
	}{
		{"plan", o.plan, func(b body) (receipt, error) { return c.PutPlan(ctx, b, with) }},
		{"hosts", o.hosts, func(b body) (receipt, error) { return c.PutHosts(ctx, b, with) }},
		{"changes of hosts", o.hostChanges, func(b body) (receipt, error) { return c.ChangeHosts(ctx, b, with) }},
		{"demand", o.demand, func(b body) (receipt, error) { return c.PutDemand(ctx, o.source, b, with) }},
		{"changes of demand", o.demandChanges, func(b body) (receipt, error) {
			return c.ChangeDemand(ctx, o.source, b, with)
		}},
		{"running", o.running, func(b body) (receipt, error) { return c.PutRunning(ctx, o.source, b, with) }},
		{"releases", o.releases, func(b body) (receipt, error) { return c.Release(ctx, b) }},
	} {
		if p.file == "" {
			continue
		}
		pushed = true
		body, err := fileBody(p.file, bars)
		if err != nil {
			return err
		}
		r, err := p.send(body)
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		line := fmt.Sprintf("%s: %s, snapshot %s, cycle %d goes by it", p.name, count(r.Rows, "row"), r.Snapshot,
			r.Cycle)
		switch p.name {
		case "plan":
			line = fmt.Sprintf("plan: revision %d, cycle %d goes by it", r.Revision, r.Cycle)
		case "releases", "running":
			line += fmt.Sprintf(", %d units released, %d added, %d beyond what was held", r.Released, r.Added, r.Beyond)
		}
		bars.line(stdout, line)
	}
	if o.cycle {
		n, err := c.Cycle(ctx)
		if err != nil {
			return err
		}
		bars.line(stdout, fmt.Sprintf("cycle %d", n))
		pushed = true
	}
	if !pushed {
		return errors.New("nothing to push: give --plan, --hosts, --demand or another table")
	}
	return nil
}

// mediaTypes are the content types of endings.
var mediaTypes = map[string]string{
	".csv":     "text/csv",
	".json":    "application/json",
	".ndjson":  "application/x-ndjson",
	".jsonl":   "application/x-ndjson",
	".arrow":   "application/vnd.apache.arrow.stream",
	".arrows":  "application/vnd.apache.arrow.stream",
	".parquet": "application/vnd.apache.parquet",
	".yaml":    "application/yaml",
	".yml":     "application/yaml",
}

// fileBody is a file as the content of a call; the ending of its name tells the content's type.
func fileBody(name string, bars *bars) (client.Body, error) {
	info, err := os.Stat(name)
	if err != nil {
		return client.Body{}, err
	}
	if info.IsDir() {
		return client.Body{}, fmt.Errorf("%s: is a folder; name a file", name)
	}
	b := client.Body{Bytes: info.Size()}
	ending := strings.ToLower(path.Ext(name))
	switch ending {
	case ".gz":
		b.ContentEncoding = "gzip"
	case ".zst":
		b.ContentEncoding = "zstd"
	}
	if b.ContentEncoding != "" {
		ending = strings.ToLower(path.Ext(strings.TrimSuffix(strings.ToLower(name), ending)))
	}
	b.ContentType = mediaTypes[ending]
	if !info.Mode().IsRegular() {
		return b, spooled(&b, name)
	}
	b.Open = func() (io.ReadCloser, error) {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		return bars.reader(name, info.Size(), f), nil
	}
	return b, nil
}

// pipeBytesMax bounds what push reads from a pipe; a larger input is pushed from a file.
const pipeBytesMax = 256 << 20

// spooled reads a pipe or device into memory, because a call that fails is sent again.
func spooled(b *client.Body, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := readAtMost(f, name, pipeBytesMax)
	if err != nil {
		return err
	}
	b.Bytes = int64(len(content))
	b.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return nil
}

// bars shows the progress of files on a terminal; in a pipe it shows nothing.
type bars struct {
	p    *mpb.Progress
	last *mpb.Bar
}

func newBars(w io.Writer) *bars {
	if f, ok := w.(*os.File); !ok || !isTerminal(f) {
		return &bars{}
	}
	return &bars{p: mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))}
}

// reader shows how far a file was read.
func (b *bars) reader(name string, bytes int64, f *os.File) io.ReadCloser {
	if b.p == nil {
		return f
	}
	if b.last != nil {
		b.last.Abort(true) // of a try that failed
	}
	b.last = b.p.AddBar(bytes, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name+" "), decor.CountersKibiByte("% .1f of % .1f")),
		mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1024(0), "% .1f"), decor.Name(" "),
			decor.AverageETA(decor.ET_STYLE_GO)))
	return b.last.ProxyReader(f)
}

// line prints a line that stays.
func (b *bars) line(w io.Writer, s string) {
	b.last = nil
	if f, ok := w.(*os.File); ok && b.p != nil && isTerminal(f) {
		_, _ = fmt.Fprintln(b.p, s)
		return
	}
	fmt.Fprintln(w, s)
}

func (b *bars) wait() {
	if b.p == nil {
		return
	}
	if b.last != nil {
		b.last.Abort(true)
	}
	b.p.Wait()
}
