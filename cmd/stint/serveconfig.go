package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/heap"
	"github.com/stintd/stint/core/journal"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/ingest/server"
	"github.com/stintd/stint/ingest/table"
)

// serveExample is the annotated configuration; its values are the defaults.
//
//go:embed serve.yaml
var serveExample []byte

const configBytesMax = 16 << 20

// serveConfig is the configuration of serve, as serve.yaml explains it.
type serveConfig struct {
	Data        string    `yaml:"data"`
	Listen      string    `yaml:"listen"`
	TLS         tlsConfig `yaml:"tls"`
	Insecure    bool      `yaml:"insecure"`
	Hosts       []string  `yaml:"hosts_allowed"`
	MemoryMax   size      `yaml:"memory_max"`
	Plan        string    `yaml:"plan"`
	Interval    duration  `yaml:"interval"`
	Manual      bool      `yaml:"manual"`
	Unknown     string    `yaml:"unknown"`
	ShrinkGuard partOf    `yaml:"shrink_guard"`
	SourceTTL   duration  `yaml:"source_ttl"`
	DecisionLog bool      `yaml:"decision_log"`
	Checkpoint  struct {
		Interval duration `yaml:"interval"`
		Bytes    size     `yaml:"bytes"`
		Replay   duration `yaml:"replay"`
	} `yaml:"checkpoint"`
	Watchdog struct {
		Slow  duration `yaml:"slow"`
		Stuck duration `yaml:"stuck"`
	} `yaml:"watchdog"`
	Cluster   clusterConfig `yaml:"cluster"`
	Divisions struct {
		Names []string `yaml:"names"`
		Here  []string `yaml:"here"`
	} `yaml:"divisions"`
	StopTimeMax duration     `yaml:"stop_time_max"`
	Tokens      []serveToken `yaml:"tokens"`
	Log         struct {
		Level  string `yaml:"level"`
		Format string `yaml:"format"`

		Compact duration `yaml:"compact"`
		Keep    days     `yaml:"keep"`
		Audit   bool     `yaml:"audit"`
	} `yaml:"log"`
	Metrics struct {
		Level int `yaml:"level"`
	} `yaml:"metrics"`
	Traces struct {
		Endpoint string `yaml:"endpoint"`
	} `yaml:"traces"`
	Limits struct {
		Body          size     `yaml:"body"`
		BodyUnpacked  size     `yaml:"body_unpacked"`
		Rows          int      `yaml:"rows"`
		Bodies        size     `yaml:"bodies_in_memory"`
		BodyTime      duration `yaml:"body_time"`
		DecodeTime    duration `yaml:"decode_time"`
		HeaderTime    duration `yaml:"header_time"`
		IdleTime      duration `yaml:"idle_time"`
		Connections   int      `yaml:"connections"`
		PerAddress    int      `yaml:"connections_per_address"`
		Waiters       int      `yaml:"waiters"`
		InputsWaiting int      `yaml:"inputs_waiting"`
		Sources       int      `yaml:"sources"`
		PerToken      int      `yaml:"sources_per_token"`
		Keys          int      `yaml:"idempotency_keys"`
		RecentCycles  int      `yaml:"recent_cycles"`
		RecentRows    int      `yaml:"recent_rows"`
		Journal       size     `yaml:"journal"`
	} `yaml:"limits"`

	// Of the command line.
	file         string         // the configuration was read from; "": from none
	line         map[string]int // of each key that the file gives
	given        givenFlags
	acceptReplay bool
	acceptLoss   *uint64 // the record with which a journal may end though later ones were acknowledged; nil: none
}

type serveToken struct {
	Name    string   `yaml:"name"`
	Role    string   `yaml:"role"`
	SHA256  string   `yaml:"sha256"`
	Subject string   `yaml:"subject"`
	Groups  []string `yaml:"groups"`
	Branch  string   `yaml:"branch"`
}

// duration is a positive time, such as 90s.
type duration time.Duration

// UnmarshalYAML reads it.
func (d *duration) UnmarshalYAML(text []byte) error {
	v, err := time.ParseDuration(plainYAML(text))
	if err != nil || v <= 0 {
		return fmt.Errorf("%s: must be a time such as 90s", plainYAML(text))
	}
	*d = duration(v)
	return nil
}

// size is a number of bytes, such as 256MiB.
type size int64

// UnmarshalYAML reads it.
func (s *size) UnmarshalYAML(text []byte) error {
	word, shift := plainYAML(text), 0
	for unit, n := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40} {
		if w, ok := strings.CutSuffix(word, unit); ok {
			word, shift = w, n
			break
		}
	}
	v, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
	if err != nil || v <= 0 || v > 1<<62>>shift {
		return fmt.Errorf("%s: must be a number of bytes such as 256MiB", plainYAML(text))
	}
	*s = size(v << shift)
	return nil
}

// days is a number of days, such as 400d.
type days int64

// UnmarshalYAML reads it.
func (d *days) UnmarshalYAML(text []byte) error {
	n, err := strconv.Atoi(strings.TrimSuffix(plainYAML(text), "d"))
	if err != nil || !strings.HasSuffix(plainYAML(text), "d") || n < 1 || n > 100_000 {
		return fmt.Errorf("%s: must be a number of days from 1d to 100000d, such as 400d", plainYAML(text))
	}
	*d = days(n)
	return nil
}

// partOf is thousandths of a whole, written as 50% or 12.5%.
type partOf int64

// UnmarshalYAML reads it.
func (p *partOf) UnmarshalYAML(text []byte) error {
	word, ok := strings.CutSuffix(plainYAML(text), "%")
	v, err := strconv.ParseFloat(word, 64)
	if !ok || err != nil || v <= 0 || v > 100 {
		return fmt.Errorf("%s: must be a part such as 50%%, above 0 %% and up to 100 %%", plainYAML(text))
	}
	*p = partOf(v*10 + 0.5)
	return nil
}

// plainYAML is a scalar without quotes.
func plainYAML(text []byte) string { return strings.Trim(strings.TrimSpace(string(text)), `"'`) }

// loadServeConfig reads a configuration file on top of the defaults; an empty name gives these. Relative names in
// the file are relative to its folder.
func loadServeConfig(name string) (*serveConfig, error) {
	defaults := new(serveConfig)
	if err := yaml.UnmarshalWithOptions(serveExample, defaults, yaml.Strict()); err != nil {
		panic("BUG: serve.yaml: " + err.Error())
	}
	if name == "" {
		return defaults, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, configBytesMax+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(text) > configBytesMax {
		return nil, fmt.Errorf("%s: more than %d bytes", name, configBytesMax)
	}
	c, s := defaults, &settings{name: name}
	s.read(text, reflect.ValueOf(c).Elem())
	c.file, c.line = name, s.line
	for key, path := range map[string]*string{
		"data": &c.Data, "plan": &c.Plan, "cluster.authorities": &c.Cluster.Authorities,
		"tls.certificate": &c.TLS.Certificate, "tls.key": &c.TLS.Key, "tls.clients": &c.TLS.Clients,
	} {
		if s.line[key] > 0 && *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(name), *path)
		}
	}
	c.validate(s)
	return c, s.err()
}

// validate tells all that is wrong with the values.
func (c *serveConfig) validate(s *settings) {
	add := s.fault
	for key, v := range map[string]string{"data": c.Data, "listen": c.Listen} {
		if v == "" {
			add(key, v, "must not be empty")
		}
	}
	if c.Unknown != "refuse" && c.Unknown != "report" {
		add("unknown", c.Unknown, "must be refuse or report")
	}
	var level slog.Level
	if level.UnmarshalText([]byte(c.Log.Level)) != nil {
		add("log.level", c.Log.Level, "must be debug, info, warn or error")
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		add("log.format", c.Log.Format, "must be text or json")
	}
	between(s, "checkpoint.interval", c.Checkpoint.Interval, time.Second, 24*time.Hour)
	between(s, "checkpoint.replay", c.Checkpoint.Replay, 100*time.Millisecond, 24*time.Hour)
	between(s, "log.compact", c.Log.Compact, time.Second, 24*time.Hour)
	if n := c.Checkpoint.Bytes; n < 1<<10 || n > 1<<40 {
		add("checkpoint.bytes", strconv.FormatInt(int64(n), 10), "must be from 1KiB to 1TiB")
	}
	if n := c.Metrics.Level; n < 1 || n > 100 {
		add("metrics.level", strconv.Itoa(n), "must be from 1 to 100")
	}
	if c.Traces.Endpoint != "" {
		if _, err := traceURL(c.Traces.Endpoint); err != nil {
			add("traces.endpoint", c.Traces.Endpoint, err.Error())
		}
	}
	c.validateLimits(s)
	if m := c.MemoryMax; m != 0 && (m < memoryLeast || m > memoryMost) {
		add("memory_max", strconv.FormatInt(int64(m), 10), "must be from 256MiB to 1024TiB")
	}
	for _, host := range c.Hosts {
		if host == "" || strings.ContainsAny(host, "/ @*") {
			add("hosts_allowed", host, "must be a name or an address, with a port or without one")
		}
	}
	w := &c.Watchdog
	between(s, "watchdog.slow", w.Slow, time.Second, 24*time.Hour)
	between(s, "watchdog.stuck", w.Stuck, max(time.Second, time.Duration(w.Slow)), 24*time.Hour)
	c.Cluster.validate(s)
	c.validateDivisions(s)
	c.TLS.validate(s)
	between(s, "stop_time_max", c.StopTimeMax, time.Second, time.Hour)
	if err := server.CheckTokens(c.tokens()); err != nil {
		for line := range strings.Lines(err.Error()) {
			s.faults = append(s.faults, settingFault{s.line["tokens"], "tokens: " + strings.TrimSpace(line)})
		}
	}
	for i, t := range c.Tokens {
		if t.Subject != "" && c.TLS.Clients == "" {
			s.fault(fmt.Sprintf("tokens[%d].subject", i), t.Subject,
				"certificates of clients are taken only with tls.clients")
		}
	}
}

// validateLimits notes limits that are out of bounds.
func (c *serveConfig) validateLimits(s *settings) {
	l := &c.Limits
	for key, v := range map[string]int{
		"rows": l.Rows, "connections": l.Connections, "waiters": l.Waiters, "inputs_waiting": l.InputsWaiting,
		"sources": l.Sources, "idempotency_keys": l.Keys, "recent_cycles": l.RecentCycles, "recent_rows": l.RecentRows,
	} {
		if v < 1 {
			s.fault("limits."+key, strconv.Itoa(v), "must be at least 1")
		}
	}
	// Accepted input must be read again: by the next start, and from the log.
	d := table.DefaultLimits
	for key, v := range map[string][2]int64{
		"body":          {int64(l.Body), d.BytesMax},
		"body_unpacked": {int64(l.BodyUnpacked), d.DecodedBytesMax},
		"rows":          {int64(l.Rows), int64(d.RowsMax)},
	} {
		if v[0] > v[1] {
			s.fault("limits."+key, strconv.FormatInt(v[0], 10), fmt.Sprintf("must be at most %d", v[1]))
		}
	}
	if l.PerToken < 0 {
		s.fault("limits.sources_per_token", strconv.Itoa(l.PerToken), "must be at least 0")
	}
	if l.PerAddress < 0 {
		s.fault("limits.connections_per_address", strconv.Itoa(l.PerAddress), "must be at least 0")
	}
}

// between notes a time that is out of bounds.
func between(s *settings, key string, v duration, least, most time.Duration) {
	if d := time.Duration(v); d < least || d > most {
		s.fault(key, d.String(), fmt.Sprintf("must be from %s to %s", least, most))
	}
}

// tokens are the tokens as the server takes them.
func (c *serveConfig) tokens() (list []server.Token) {
	for _, t := range c.Tokens {
		list = append(list, server.Token{
			Name: t.Name, SHA256: t.SHA256, Subject: t.Subject, Role: t.Role, Groups: t.Groups, Branch: t.Branch,
		})
	}
	return list
}

// Bounds of a service's memory.
const (
	memoryLeast   = 256 << 20
	memoryMost    = 1 << 50
	memoryDefault = 8 << 30 // where nothing is known of the machine
)

// memory is how much memory the service makes do with.
func (c *serveConfig) memory() int64 {
	if c.MemoryMax == 0 {
		return max(memoryLeast, cmp.Or(heap.Share(), memoryDefault))
	}
	return int64(c.MemoryMax)
}

// recentRowBytes is about the memory of a row of changes that is kept.
const recentRowBytes = 128

// options make a service's options of a configuration.
func (c *serveConfig) options(log *slog.Logger) (o server.ServiceOptions, err error) {
	l, memory := &c.Limits, c.memory()
	o = server.ServiceOptions{
		Dir: c.Data, NoLog: !c.DecisionLog, PlanName: c.Plan, MetricsLevel: c.Metrics.Level,
		Tend: export.TendOptions{
			Every: time.Duration(c.Log.Compact), KeepDays: int(c.Log.Keep), Grace: 30 * time.Second,
		},
		Engine: engine.Options{
			IntervalUS: time.Duration(c.Interval).Microseconds(), ManualOnly: c.Manual,
			ShrinkGuardMilli: int64(c.ShrinkGuard), SourceTTLUS: time.Duration(c.SourceTTL).Microseconds(),
			QueueMax: l.InputsWaiting, SourcesMax: l.Sources, AcceptReplay: c.acceptReplay,
			SlowAfter: time.Duration(c.Watchdog.Slow), StuckAfter: time.Duration(c.Watchdog.Stuck),
			SourcesPerCallerMax: l.PerToken, KeysMax: l.Keys,
			RecentCyclesMax: l.RecentCycles, RecentRowsMax: min(l.RecentRows, int(memory/16/recentRowBytes)),
			BacklogBytesMax: min(512<<20, memory/8),
			CheckpointUS:    time.Duration(c.Checkpoint.Interval).Microseconds(),
			CheckpointBytes: min(int64(c.Checkpoint.Bytes), int64(l.Journal)/8),
			CheckpointWork:  time.Duration(c.Checkpoint.Replay),
		},
		// Two checkpoints are kept, and whole segments go: small journals have small
		// ones, so that there is room again in time.
		Journal: journal.Options{
			BytesMax: int64(l.Journal), SegmentBytesMax: min(256<<20, max(64<<10, int64(l.Journal)/8)),
		},
		Server: server.Options{
			ReportUnknown: c.Unknown == "report", Log: log, HostsAllowed: c.Hosts,
			Limits: server.Limits{
				BodyBytesMax: int64(l.Body), DecodedBytesMax: int64(l.BodyUnpacked), RowsMax: l.Rows,
				InflightBytesMax: int64(l.Bodies), MemoryMax: memory, DecodeTimeMax: time.Duration(l.DecodeTime),
				BodyTimeMax: time.Duration(l.BodyTime), HeaderTimeMax: time.Duration(l.HeaderTime),
				IdleTimeMax: time.Duration(l.IdleTime),
				ConnsMax:    l.Connections, ConnsPerIPMax: l.PerAddress, WaitersMax: l.Waiters,
			},
		},
	}
	o.Server.Tokens, o.Server.Insecure, o.Server.Audit = c.tokens(), c.Insecure, c.Log.Audit
	if c.TLS.on() {
		if o.Server.TLS, err = server.NewTLS(c.TLS.files()); err != nil {
			return o, fmt.Errorf("tls: %w", err)
		}
	}
	if c.Cluster.Authorities != "" {
		if o.Server.Others, err = server.Authorities(c.Cluster.Authorities); err != nil {
			return o, fmt.Errorf("cluster.authorities: %w", err)
		}
	}
	if c.Plan != "" {
		g, err := readInput(kindPlan, c.Plan)
		if err != nil {
			return o, err
		}
		o.Plan = g.content
	}
	return o, nil
}
