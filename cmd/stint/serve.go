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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/heap"
	"github.com/stintd/stint/ingest/server"
)

func newServe() *cobra.Command {
	var config, data, listen, log string
	var example, accept bool
	c := &cobra.Command{
		Use:   "serve [--config C | --log LOG]",
		Short: "Runs the HTTP service, or shows a log in the console",
		Long: `Runs the HTTP service: takes a policy, hosts and demand, runs cycles at their interval or on
request, and tells what was decided. What it acknowledged survives a crash. On SIGTERM it finishes
the cycle under way, flushes and ends with 0; what takes longer than stop_time_max is dropped whole.
On SIGHUP it reads the tokens of its configuration again.

A start decides the cycles again that came after the last checkpoint, and is refused when one comes
out otherwise than it was recorded. With --accept-replay it goes on with what it decides now; both
results are kept in replay.ndjson, and clients must read their holdings anew.

A browser shows the console at the address that it listens on. With --log it shows a decision log
alone: nothing is written, no cycle runs, and whoever reaches the address may read.

Exit codes: 0 ended by a signal, 1 failed while it ran, 2 the start was refused.

--example prints a configuration file with every key, its default and what it means. Without
--config the defaults hold.`,
		Example: `  stint serve
  stint serve --example >stint.yaml
  stint serve --config stint.yaml
  stint serve --log out/demo/log
  curl -T plan.yaml http://127.0.0.1:7468/v1/plan`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if example {
				_, err := c.OutOrStdout().Write(serveExample)
				return err
			}
			conf, err := loadServeConfig(config)
			if err != nil {
				return err
			}
			if data != "" {
				conf.Data = data
			}
			if listen != "" {
				conf.Listen = listen
			}
			conf.acceptReplay = accept
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
// it is at: all that was acknowledged is on disk, and what has no record yet was promised to nobody (API-5).
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
	log := newLogger(stderr, conf.Log.Level, conf.Log.Format)
	tokens := reloads(conf, log)
	defer tokens.stop()
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
	if o.Listener, err = conf.listen(); err != nil {
		return err
	}
	if conf.Cluster.on() {
		if o.Cluster, err = conf.cluster("http://"+o.Listener.Addr().String(), log); err != nil {
			return errors.Join(err, o.Listener.Close())
		}
	}
	heap.Limit(o.Server.Limits.MemoryMax)
	log.Info("listening", "address", "http://"+o.Listener.Addr().String(),
		"data", conf.Data, "memory_max", o.Server.Limits.MemoryMax)
	if len(o.Server.Tokens) == 0 {
		log.Warn("no tokens are configured: whoever reaches this loopback address may do everything")
	}
	o.Started = tokens.follow
	ready := false
	o.Ready = func(e *engine.Engine) {
		ready = true
		if e.View().Policy == nil {
			log.Info("there is no policy yet: PUT /v1/plan comes first")
		}
	}
	switch err := server.Run(ctx, o); {
	case err != nil && ready:
		log.Error("failed", "error", err)
		return errFound
	case err != nil:
		return err
	}
	log.Info("ended")
	return nil
}

// listen opens the socket. An address that others than this machine reach is refused before that when there are no
// tokens.
func (c *serveConfig) listen() (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %q: %w", c.Listen, err)
	}
	if len(c.Tokens) == 0 && !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("listen: %q: %w", c.Listen, server.ErrOpen)
	}
	return net.ListenTCP("tcp", addr)
}

// reloading has the tokens read again on SIGHUP. Until there is a server the signal does nothing: that begins with what
// is there then.
type reloading struct {
	conf    *serveConfig
	log     *slog.Logger
	signals chan os.Signal
	done    chan struct{}
}

func reloads(conf *serveConfig, log *slog.Logger) *reloading {
	r := &reloading{conf, log, make(chan os.Signal, 1), make(chan struct{})}
	signal.Notify(r.signals, syscall.SIGHUP)
	return r
}

// follow reads the tokens on each signal, and gives them to a server.
func (r *reloading) follow(s *server.Server) {
	go func() {
		for {
			select {
			case <-r.done:
				return
			case <-r.signals:
			}
			if r.conf.file == "" {
				r.log.Warn("SIGHUP: there is no configuration file to read tokens from")
				continue
			}
			c, err := loadServeConfig(r.conf.file)
			if err == nil {
				err = s.SetTokens(c.tokens())
			}
			if err != nil {
				r.log.Error("SIGHUP: the tokens stay as they were", "error", err)
				continue
			}
			r.log.Info("SIGHUP: the tokens were read again; other settings take a restart", "tokens", len(c.Tokens))
		}
	}()
}

func (r *reloading) stop() {
	signal.Stop(r.signals)
	close(r.done)
}

// newLogger makes a structured log.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if l.UnmarshalText([]byte(level)) != nil {
		l = slog.LevelInfo // validated before
	}
	o := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
