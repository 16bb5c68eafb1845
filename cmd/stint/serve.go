package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/heap"
	"github.com/stintd/stint/ingest/server"
)

// serveHelp is what --help says before its examples.
const serveHelp = `Runs the HTTP service: takes a policy, hosts and demand, runs cycles at their interval or on
request, and tells what was decided. What it acknowledged survives a crash. On SIGTERM it finishes
the cycle under way, flushes and ends with 0; what takes longer than stop_time_max is dropped whole.
On SIGHUP it reads its configuration again: tokens, TLS files, hosts_allowed and log.level take effect,
of other settings that have changed it says that they take a restart.

--check tells all faults of a configuration at once, and of what it names: files of TLS, the policy,
the address, the folder. It starts and writes nothing; faults end it with 2.

A start decides the cycles again that came after the last checkpoint, and is refused when one comes
out otherwise than it was recorded. With --accept-replay it goes on with what it decides now; both
results are kept in replay.ndjson, and clients must read their holdings anew.

A start is refused, too, when the journal ends before the last record that was acknowledged, whose number
is in the file "acknowledged" of the folder. Restore the missing files or a backup. --accept-loss N starts
with a journal that ends with record N; what came after it is lost.

A browser shows the console at the address that it listens on. With --log it shows a decision log
alone: nothing is written, no cycle runs, and whoever reaches the address may read.

Exit codes: 0 ended by a signal, 1 failed while it ran, 2 the start was refused.

--example prints a configuration file with every key, its default and what it means. Without
--config the defaults hold.`

func newServe() *cobra.Command {
	var config, data, listen, log string
	var example, accept, check bool
	var loss uint64
	c := &cobra.Command{
		Use:   "serve [--config C | --log LOG]",
		Short: "Runs the HTTP service, or shows a log in the console",
		Long:  serveHelp,
		Example: `  stint serve
  stint serve --example >stint.yaml
  stint serve --config stint.yaml --check
  stint serve --config stint.yaml
  stint serve --log out/demo/log
  curl -T plan.yaml http://127.0.0.1:7468/v1/plan`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if example {
				_, err := c.OutOrStdout().Write(serveExample)
				return err
			}
			conf, err := loadServeConfig(config)
			if conf != nil {
				givenFlags{data, listen}.over(conf)
			}
			if check {
				return checkServe(c.OutOrStdout(), conf, err, log != "")
			}
			if err != nil {
				return err
			}
			conf.acceptReplay = accept
			if c.Flags().Changed("accept-loss") {
				conf.acceptLoss = &loss
			}
			if log != "" {
				return serveLog(c.Context(), conf, log, c.ErrOrStderr())
			}
			server.SpareProcessors()
			syscall.Umask(0o077) // what the service writes is for itself alone
			return serveSignals(c.Context(), conf, c.ErrOrStderr(), hookServe())
		},
	}
	f := c.Flags()
	f.StringVar(&config, "config", "", "configuration file")
	f.StringVar(&data, "data", "", "folder of the service, instead of the configuration's")
	f.StringVar(&listen, "listen", "", "address to listen on, instead of the configuration's")
	f.StringVar(&log, "log", "", "shows this decision log alone, for reading")
	f.BoolVar(&accept, "accept-replay", false, "goes on where cycles are decided otherwise than they were recorded")
	f.Uint64Var(&loss, "accept-loss", 0, "starts though records after this one were acknowledged and are lost")
	f.BoolVar(&check, "check", false, "tells all faults of the configuration, and starts nothing")
	f.BoolVar(&example, "example", false, "prints a configuration file and ends")
	return c
}

// serveHooks are where tests reach into a service.
type serveHooks struct {
	journal func(op, path string) error
	engine  func(point string)
	clock   func() int64 // µs since 1970 UTC; nil: the machine's

	segmentBytes int64 // of the journal, so that there are many
}

// hookServe gives the hooks of the command. Tests set it.
var hookServe = func() serveHooks { return serveHooks{} }

// serveSignals runs a service until SIGTERM or SIGINT. From then on the process ends within conf.StopTimeMax, whatever
// it is at: every acknowledged input is on disk, and an input without a record was promised to nobody (API-5).
func serveSignals(ctx context.Context, conf *serveConfig, stderr io.Writer, hooks serveHooks) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	done := make(chan struct{})
	defer close(done)
	context.AfterFunc(ctx, func() {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(conf.StopTimeMax)):
		}
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		log := newLogger(stderr, conf.Log.Level, conf.Log.Format)
		log.Error("ended before all was done; what was under way is dropped whole, what was acknowledged is on disk",
			"stop_time_max", time.Duration(conf.StopTimeMax), "stacks", string(stacks))
		os.Exit(exitFine)
	})
	return serve(ctx, conf, stderr, hooks)
}

// serve runs a service until ctx is done. Errors are why its start is refused; one that fails while it runs says so in
// its log, and errFound comes back.
func serve(ctx context.Context, conf *serveConfig, stderr io.Writer, hooks serveHooks) error {
	reload := reloads(conf)
	defer reload.stop()
	log := newLeveled(stderr, &reload.level, conf.Log.Format)
	o, err := conf.options(log)
	if err != nil {
		return err
	}
	o.Journal.Step, o.Engine.Step, o.Engine.Clock = hooks.journal, hooks.engine, hooks.clock
	o.Journal.SegmentBytesMax = cmp.Or(hooks.segmentBytes, o.Journal.SegmentBytesMax)
	if info, ok := debug.ReadBuildInfo(); ok {
		o.Server.Version = info.Main.Version
	}
	if conf.Cluster.on() && conf.acceptReplay {
		return errors.New("--accept-replay: a process of a cluster never goes on with what it alone decides")
	}
	if conf.Cluster.on() && conf.acceptLoss != nil {
		return errors.New("--accept-loss: a cluster's journal is in its bucket: restore the objects that are missing")
	}
	o.Journal.AcceptLoss = conf.acceptLoss
	if o.Listener, err = conf.listen(&o.Server); err != nil {
		return err
	}
	switch {
	case len(conf.Divisions.Names) > 0:
		o.Divisions, err = conf.divisions(address(o), log)
	case conf.Cluster.on():
		o.Cluster, err = conf.cluster(address(o), "", log)
	}
	if err != nil {
		return errors.Join(err, o.Listener.Close())
	}
	if conf.Traces.Endpoint != "" {
		traces, err := newTracer(conf.Traces.Endpoint, o.Server.Version, o.Listener.Addr().String(), log)
		if err != nil {
			return errors.Join(err, o.Listener.Close())
		}
		defer traces.stop()
		o.Engine.OnTrace = traces.cycle
	}
	heap.Limit(o.Server.Limits.MemoryMax)
	log.Info("listening", "address", address(o),
		"data", conf.Data, "memory_max_bytes", o.Server.Limits.MemoryMax)
	if len(o.Server.Tokens) == 0 {
		log.Warn("no tokens are configured: whoever reaches this loopback address may do everything")
	}
	o.Started = func(s *server.Server) { reload.follow(s, log) }
	var ready atomic.Bool // divisions tell it beside each other
	o.Ready = func(e *engine.Engine) {
		ready.Store(true)
		if e.View().Policy == nil {
			log.Info("there is no policy yet: PUT /v1/plan comes first")
		}
	}
	switch err := server.Run(ctx, o); {
	case err != nil && ready.Load():
		log.Error("failed", "error", err)
		return errFound
	case err != nil:
		return err
	}
	log.Info("ended")
	return nil
}

// listen opens the socket. An address that others than this machine reach is refused before that when there are no
// tokens, or no TLS.
func (c *serveConfig) listen(o *server.Options) (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %q: %w", c.Listen, err)
	}
	if err := o.MayListen(addr.IP); err != nil {
		return nil, fmt.Errorf("listen: %q: %w", c.Listen, err)
	}
	return net.ListenTCP("tcp", addr)
}

// address is where a service can be reached.
func address(o server.ServiceOptions) string {
	scheme := "http://"
	if o.Server.TLS != nil {
		scheme = "https://"
	}
	return scheme + o.Listener.Addr().String()
}

// newLogger makes a structured log.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	return newLeveled(w, levelOf(level), format)
}

// levelOf is the level of a log by its name.
func levelOf(name string) (l slog.Level) {
	if l.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo // validated before
	}
	return l
}

// newLeveled makes a structured log whose level may change. Whoever logs gives times as such; here they become numbers
// of milliseconds, under a key that says so, in text and JSON alike.
func newLeveled(w io.Writer, level slog.Leveler, format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() != slog.KindDuration {
			return a
		}
		return slog.Float64(a.Key+"_ms", milliseconds(a.Value.Duration()))
	}}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
