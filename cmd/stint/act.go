package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/stintd/stint/ingest/act"
	"github.com/stintd/stint/ingest/act/conform"
)

// actExample is the annotated configuration; its values are the defaults.
//
//go:embed act.yaml
var actExample []byte

func newAct() *cobra.Command {
	var config string
	var example, check, conformance bool
	c := &cobra.Command{
		Use:   "act --config act.yaml",
		Short: "Puts a service's decisions in force in a cluster",
		Long: `Follows the changes of one source and calls programs that start what is granted, stop what is reclaimed
before its deadline, and list what is wanted and what runs. What ended is given back, what is wanted is
pushed. What was begun is in a ledger on disk, so that a crash of the actor, of the service or of the
cluster starts nothing twice and loses nothing.

The programs get a JSON object on standard input and print one on standard output. --conformance tests
them with faults that happen: repeated and cut off calls, an old ledger, short deadlines. It plays the
service itself, submits work of its own, and needs a cluster without granted work.

SIGTERM ends the actor; what runs goes on, and the next start takes it over.`,
		Example: `  stint act --example >act.yaml
  stint act --config act.yaml --check
  stint act --config act.yaml
  stint act --config act.yaml --conformance`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if example {
				_, err := c.OutOrStdout().Write(actExample)
				return err
			}
			if config == "" {
				return errors.New("--config: is missing: name a configuration file (stint act --example prints one)")
			}
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			conf, err := loadActConfig(config)
			switch {
			case err != nil:
				return err
			case conformance:
				return conf.conformance(ctx, c.OutOrStdout(), c.ErrOrStderr())
			case check:
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s: no errors\n", config)
				return err
			}
			return conf.act(ctx, c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&config, "config", "", "configuration file")
	f.BoolVar(&example, "example", false, "prints a configuration file and ends")
	f.BoolVar(&check, "check", false, "checks the configuration file and ends")
	f.BoolVar(&conformance, "conformance", false, "tests the programs of the configuration with faults and ends")
	return c
}

// act runs the actor until ctx is done.
func (c *actConfig) act(ctx context.Context, stderr io.Writer) error {
	service, err := clientOf(c.Server, &callerFlags{tokenFile: c.TokenFile, ca: c.CA, cert: c.Cert, key: c.Key})
	if err != nil {
		return err
	}
	log := newLogger(stderr, c.Log.Level, c.Log.Format)
	figures := prometheus.NewRegistry()
	figures.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if c.Listen != "" {
		ln, err := net.Listen("tcp", c.Listen)
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", promhttp.HandlerFor(figures, promhttp.HandlerOpts{}))
		mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
		web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute}
		go func() { _ = web.Serve(ln) }() // ends with Close
		defer web.Close()
	}
	hooks := c.commands()
	defer hooks.Close()
	hooks.Warm(c.Parallel + 1)
	log.Info("acting", "server", c.Server, "source", c.Source, "ledger", c.Ledger, "listen", c.Listen)
	return act.Run(ctx, service, hooks, act.Options{
		Source: c.Source, Ledger: c.Ledger, Every: time.Duration(c.Every), Notice: time.Duration(c.Notice),
		Force: time.Duration(c.Force), Parallel: c.Parallel, Hosts: c.Hosts, AllowShrink: c.AllowShrink,
		KeepOrphans: c.Orphans == "report", Log: log, Metrics: figures,
	})
}

// commands are the hooks. Those of one command that is kept share its programs.
func (c *actConfig) commands() *act.Commands {
	shared := map[string]*act.Kept{}
	hook := func(h actHook) act.Command {
		one, key := h.command(), strings.Join(h.Command, "\x00")
		if h.Keep {
			one.Kept = cmp.Or(shared[key], new(act.Kept))
			shared[key] = one.Kept
		}
		return one
	}
	return &act.Commands{ListCommand: hook(c.Hooks.List), StartCommand: hook(c.Hooks.Start),
		StopCommand: hook(c.Hooks.Stop), Dir: c.folder}
}

// conformance runs the suite and prints its checks.
func (c *actConfig) conformance(ctx context.Context, stdout, stderr io.Writer) error {
	t := &c.Conformance
	if len(t.Submit.Command) == 0 || len(t.Cancel.Command) == 0 {
		return fmt.Errorf("%s: conformance.submit and conformance.cancel are missing: the suite needs programs that "+
			"make work and cancel it", c.file)
	}
	folder, err := os.MkdirTemp("", "stint-conformance")
	if err != nil {
		return err
	}
	hooks := &conform.Commands{Commands: *c.commands(), SubmitCommand: t.Submit.command(),
		CancelCommand: t.Cancel.command()}
	defer hooks.Close()
	checks, err := conform.Run(ctx, hooks, conform.Options{
		Consumer: t.Consumer, Folder: filepath.Join(folder, "ledgers"),
		Within: time.Duration(t.Within), Grace: time.Duration(t.Grace),
		Log: newLogger(stderr, cmp.Or(c.Log.Level, "info"), c.Log.Format),
	})
	failed := 0
	for _, check := range checks {
		word := "ok  "
		if check.Err != nil {
			word, failed = "FAIL", failed+1
		}
		fmt.Fprintf(stdout, "%s %s\n", word, check.Name)
		if check.Err != nil {
			fmt.Fprintf(stdout, "     %s\n", check.Err)
		}
	}
	err = errors.Join(err, os.RemoveAll(folder))
	if err == nil && failed > 0 {
		return errFound
	}
	return err
}
