package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/ingest/server"
)

func newServe() *cobra.Command {
	var config, data, listen string
	var example bool
	c := &cobra.Command{
		Use:   "serve --config C",
		Short: "Runs the HTTP service",
		Long: `Runs the HTTP service: takes a policy, hosts and demand, runs cycles at their interval or on
request, and tells what was decided. What it acknowledged survives a crash. On SIGTERM it finishes
the cycle under way, flushes and ends with 0.

--example prints a configuration file with every key, its default and what it means. Without
--config the defaults hold.`,
		Example: `  stint serve
  stint serve --example >stint.yaml
  stint serve --config stint.yaml
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
			server.SpareProcessors()
			return serveSignals(c.Context(), conf, c.ErrOrStderr(), serveHooks{})
		},
	}
	f := c.Flags()
	f.StringVar(&config, "config", "", "configuration file")
	f.StringVar(&data, "data", "", "folder of the service, instead of the configuration's")
	f.StringVar(&listen, "listen", "", "address to listen on, instead of the configuration's")
	f.BoolVar(&example, "example", false, "prints a configuration file and ends")
	return c
}

// serveHooks are where tests reach into a service.
type serveHooks struct {
	journal func(op, path string) error
	engine  func(point string)

	segmentBytes int64 // of the journal, so that there are many
}

// serveSignals runs a service until SIGTERM or SIGINT.
func serveSignals(ctx context.Context, conf *serveConfig, stderr io.Writer, hooks serveHooks) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return serve(ctx, conf, stderr, hooks)
}

// serve runs a service until ctx is done.
func serve(ctx context.Context, conf *serveConfig, stderr io.Writer, hooks serveHooks) error {
	log := newLogger(stderr, conf.Log.Level, conf.Log.Format)
	o, err := conf.options(log)
	if err != nil {
		return err
	}
	o.Journal.Step, o.Engine.Step, o.Journal.SegmentBytesMax = hooks.journal, hooks.engine, hooks.segmentBytes
	if info, ok := debug.ReadBuildInfo(); ok {
		o.Server.Version = info.Main.Version
	}
	if o.Listener, err = net.Listen("tcp", conf.Listen); err != nil {
		return err
	}
	log.Info("listening", "address", "http://"+o.Listener.Addr().String(), "data", conf.Data)
	if len(o.Server.Tokens) == 0 {
		log.Warn("no tokens are configured: whoever reaches this loopback address may do everything")
	}
	o.Ready = func(e *engine.Engine) {
		if e.View().Policy == nil {
			log.Info("there is no policy yet: PUT /v1/plan comes first")
		}
	}
	if err := server.Run(ctx, o); err != nil {
		return err
	}
	log.Info("ended")
	return nil
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
