package main

import (
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/stintd/stint/ingest/server"
)

// givenFlags are the settings that the command line gave in place of the configuration's.
type givenFlags struct{ data, listen string }

// over puts the flags in the place of a configuration's settings.
func (g givenFlags) over(c *serveConfig) {
	if g.data != "" {
		c.Data = g.data
	}
	if g.listen != "" {
		c.Listen = g.listen
	}
	c.given = g
}

// reloaded are the keys that SIGHUP has take effect; all others take a restart.
var reloaded = []string{"tokens", "tls", "hosts_allowed", "log.level"}

// reloading has the configuration read again on SIGHUP. Until there is a server the signal does nothing: the
// server begins with the configuration of that time.
type reloading struct {
	conf    *serveConfig // with which the process began
	level   slog.LevelVar
	signals chan os.Signal
	done    chan struct{}
}

func reloads(conf *serveConfig) *reloading {
	r := &reloading{conf: conf, signals: make(chan os.Signal, 1), done: make(chan struct{})}
	r.level.Set(levelOf(conf.Log.Level))
	signal.Notify(r.signals, syscall.SIGHUP)
	return r
}

// follow reads the configuration on each signal, and gives a server what can change while it runs.
func (r *reloading) follow(s *server.Server, log *slog.Logger) {
	go func() {
		for {
			select {
			case <-r.done:
				return
			case <-r.signals:
				r.again(s, log)
			}
		}
	}()
}

// again reads the configuration once. One that has a fault changes nothing.
func (r *reloading) again(s *server.Server, log *slog.Logger) {
	if r.conf.file == "" {
		log.Warn("SIGHUP: there is no configuration file to be read again")
		return
	}
	c, err := loadServeConfig(r.conf.file)
	if err == nil {
		r.conf.given.over(c)
		err = s.Reload(c.tokens(), c.TLS.files(), c.Hosts)
	}
	if err != nil {
		log.Error("SIGHUP: all stays as it was", "error", err)
		return
	}
	r.level.Set(levelOf(c.Log.Level))
	log.Info("SIGHUP: the configuration was read again", "taken", strings.Join(reloaded, " "), "tokens", len(c.Tokens))
	if keys := r.conf.differs(c); len(keys) > 0 {
		log.Warn("SIGHUP: these settings were changed, and take a restart", "keys", strings.Join(keys, " "))
	}
}

func (r *reloading) stop() {
	signal.Stop(r.signals)
	close(r.done)
}

// differs are the keys whose values in another configuration are others, and which take a restart.
func (c *serveConfig) differs(other *serveConfig) (keys []string) {
	var walk func(a, b reflect.Value, path string)
	walk = func(a, b reflect.Value, path string) {
		for i := range a.NumField() {
			name := a.Type().Field(i).Tag.Get("yaml")
			if name == "" {
				continue // of the command line
			}
			key := strings.TrimPrefix(path+"."+name, ".")
			switch x, y := a.Field(i), b.Field(i); {
			case slices.Contains(reloaded, key):
			case x.Kind() == reflect.Struct:
				walk(x, y, key)
			case !reflect.DeepEqual(x.Interface(), y.Interface()):
				keys = append(keys, key)
			}
		}
	}
	walk(reflect.ValueOf(c).Elem(), reflect.ValueOf(other).Elem(), "")
	if c.TLS.on() != other.TLS.on() {
		keys = append(keys, "tls (on or off)")
	}
	return keys
}
