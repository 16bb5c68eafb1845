package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/stintd/stint/ingest/server"
)

// serveLog shows a decision log alone until SIGTERM or SIGINT. It writes nothing. Errors: no folder, an address that
// cannot be had.
func serveLog(ctx context.Context, conf *serveConfig, dir string, stderr io.Writer) error {
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("log %s: %w", dir, err)
	} else if !info.IsDir() {
		return fmt.Errorf("log %s: is no folder", dir)
	}
	if entries, err := os.ReadDir(dir); err != nil {
		return fmt.Errorf("log %s: %w", dir, err)
	} else if _, err := os.Stat(filepath.Join(dir, "cycles")); len(entries) > 0 && err != nil {
		return fmt.Errorf("log %s: no decision log: it has no folder cycles", dir)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	reload := reloads(conf)
	defer reload.stop()
	log := newLeveled(stderr, &reload.level, conf.Log.Format)
	o, err := conf.options(log)
	if err != nil {
		return err
	}
	o.Server.LogDir = dir
	if info, ok := debug.ReadBuildInfo(); ok {
		o.Server.Version = info.Main.Version
	}
	if o.Listener, err = conf.listen(&o.Server); err != nil {
		return err
	}
	log.Info("showing a log", "console", address(o)+"/", "log", dir)
	return server.RunLog(ctx, o.Server, o.Listener, func(s *server.Server) { reload.follow(s, log) })
}
