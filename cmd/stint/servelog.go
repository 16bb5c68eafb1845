package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/stintd/stint/export"
	"github.com/stintd/stint/ingest/server"
)

// serveLog shows a decision log alone until SIGTERM or SIGINT. It writes nothing. Errors: no folder, an address that
// cannot be had.
func serveLog(ctx context.Context, conf *serveConfig, dir string, stderr io.Writer) error {
	name, files, err := shownLog(ctx, dir)
	if err != nil {
		return err
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
	o.Server.LogDir, o.Server.LogFiles = name, files
	if info, ok := debug.ReadBuildInfo(); ok {
		o.Server.Version = info.Main.Version
	}
	if o.Listener, err = conf.listen(&o.Server); err != nil {
		return err
	}
	log.Info("showing a log", "console", address(o)+"/", "log", dir)
	return server.RunLog(ctx, o.Server, o.Listener, func(s *server.Server) { reload.follow(s, log) })
}

// shownLog finds out whether a log can be shown, which may be empty still. Its files are nil where it is a folder.
func shownLog(ctx context.Context, log string) (name string, files export.Files, err error) {
	if strings.HasPrefix(log, inBucket) {
		l, err := bucketLog(ctx, log)
		if err != nil {
			return "", nil, err
		}
		return l.Name(), l, nil
	}
	if info, err := os.Stat(log); err != nil {
		return "", nil, fmt.Errorf("log %s: %w", log, err)
	} else if !info.IsDir() {
		return "", nil, fmt.Errorf("log %s: is no folder", log)
	}
	if entries, err := os.ReadDir(log); err != nil {
		return "", nil, fmt.Errorf("log %s: %w", log, err)
	} else if _, err := os.Stat(filepath.Join(log, "cycles")); len(entries) > 0 && err != nil {
		return "", nil, fmt.Errorf("log %s: no decision log: it has no folder cycles", log)
	}
	return log, nil, nil
}
