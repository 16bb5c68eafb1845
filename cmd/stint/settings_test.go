package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func loadText(t *testing.T, text string) (*serveConfig, string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := loadServeConfig(name)
	return c, name, err
}

// TestConfigZero gives each number of a configuration as 0, each text as an empty one: they are faults where they mean
// nothing, and not the default. It goes over all fields.
func TestConfigZero(t *testing.T) {
	fine := map[string]bool{"plan": true, "traces.endpoint": true, "limits.connections_per_address": true,
		"limits.sources_per_token": true}
	var walk func(v reflect.Type, path []string)
	tried := 0
	walk = func(v reflect.Type, path []string) {
		for f := range v.Fields() {
			key := append(path[:len(path):len(path)], f.Tag.Get("yaml"))
			zero := map[reflect.Kind]string{reflect.Int: "0", reflect.Int64: "0", reflect.String: `""`}[f.Type.Kind()]
			switch {
			case key[len(path)] == "":
			case f.Type.Kind() == reflect.Struct:
				walk(f.Type, key)
			case zero != "":
				tried++
				text := strings.Repeat("}", len(path))
				for i := len(key) - 1; i >= 0; i-- {
					if text = key[i] + ": " + map[bool]string{true: zero, false: ""}[i == len(key)-1] + text; i > 0 {
						text = "{" + text
					}
				}
				_, name, err := loadText(t, text)
				full := strings.Join(key, ".")
				if want := name + ":1: " + full + ": "; fine[full] != (err == nil) ||
					err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
	walk(reflect.TypeFor[serveConfig](), nil)
	if tried < 20 {
		t.Error("only", tried, "keys were tried")
	}
}

// TestConfigFaults has all faults told at once, in the order of the file, with line and key.
func TestConfigFaults(t *testing.T) {
	_, name, err := loadText(t, `
listen: 127.0.0.1:0
dta: x
unknown: ignore
interval: soon
checkpoint:
  interval: 5ms
  byte: 1
limits:
  rows: many
  connections: 0
  body: 12XiB
tokens:
  - {name: a, role: king, sha256: zz}
  - {role: admin, sha2: x}
  - 7
manual: perhaps
watchdog: {slow: 1m, stuck: 30s}
stop_time_max: 2h
log: 5
cluster:
  bucket: s3://key:secret@alloc
  endpoint: s3.example.com
  style: dns
  address: http://me:secret@here
  lease: 1ms
`)
	want := []string{
		`3: dta: "dta": no such key; did you mean data? there are data, listen, tls, insecure, hosts_allowed, memory_max, plan, `,
		`4: unknown: "ignore": must be refuse or report`,
		`5: interval: "soon": must be a time such as 90s`,
		`7: checkpoint.interval: "5ms": must be from 1s to 24h0m0s`,
		`8: checkpoint.byte: "byte": no such key; did you mean bytes? there are interval, bytes, replay`,
		`10: limits.rows: "many": must be a whole number`,
		`11: limits.connections: "0": must be at least 1`,
		`12: limits.body: "12XiB": must be a number of bytes such as 256MiB`,
		`14: tokens: token "a": role "king": must be one of `,
		`14: tokens: token "a": sha256 "zz": must be 64 hexadecimal digits`,
		`14: tokens: token 2: has neither sha256, of its secret, nor subject, of its certificates`,
		`14: tokens: token 2: has no name`,
		`14: tokens: token 3: has neither sha256, of its secret, nor subject, of its certificates`,
		`14: tokens: token 3: has no name`,
		`14: tokens: token 3: role "": must be one of `,
		`15: tokens[1].sha2: "sha2": no such key; there are name, role, sha256, subject, groups, branch`,
		`16: tokens[2]: "7": must be keys with values`,
		`17: manual: "perhaps": must be true or false`,
		`18: watchdog.stuck: "30s": must be from 1m0s to 24h0m0s`,
		`19: stop_time_max: "2h0m0s": must be from 1s to 1h0m0s`,
		`20: log: "5": must be keys with values`,
		`22: cluster.bucket: "…": must be s3://bucket or s3://bucket/prefix`,
		`22: cluster.name: must be given`,
		`23: cluster.endpoint: "s3.example.com": must be http://host:port or https://host:port`,
		`24: cluster.style: "dns": must be path or host`,
		`25: cluster.address: "…": must be http://host:port or https://host:port`,
		`26: cluster.lease: "1ms": must be from 100ms to 1m0s`,
	}
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	got := strings.Split(err.Error(), "\n")
	for i, line := range got {
		if i >= len(want) || !strings.HasPrefix(line, name+":"+want[i]) {
			t.Errorf("fault %d: %s", i+1, line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d faults, expected %d", len(got), len(want))
	}
}

// TestConfigGiven keeps defaults of what is not given, within a section too, and takes comments and empty sections for
// nothing.
func TestConfigGiven(t *testing.T) {
	c, name, err := loadText(t,
		"# all by default\nlimits:\n  # none\nlog: {level: debug}\ncheckpoint: {interval: 2h}\n"+
			"decision_log: false\nmanual: true\ndata:\n")
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits.Connections != 20_000 || c.Log.Level != "debug" || c.Log.Format != "text" ||
		time.Duration(c.Checkpoint.Interval) != 2*time.Hour ||
		c.Checkpoint.Bytes != 1<<30 || c.DecisionLog || !c.Manual || c.Data != "stint-data" || c.file != name {
		t.Errorf("%+v", c)
	}
	for text, want := range map[string]string{
		"a: 1\n---\nb: 1\n":                      "several documents",
		"- 1\n":                                  "must be keys with values",
		"data: [x\n":                             "1:7",
		"data: a\ndata: b\n":                     "already defined",
		"plan: *x\n":                             "must be a text",
		"limits: {rows: 1.5}\n":                  "must be a whole number",
		"tokens: {name: a}\n":                    "must be a list",
		"decision_log: maybe\n":                  "must be true or false",
		"listen: [127.0.0.1:80]\n":               "must be a text",
		"limits: {rows: 99999999999999999999}\n": "must be a whole number",
	} {
		if _, _, err := loadText(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestClusterKeepsAll refuses what a cluster cannot do with its log.
func TestClusterKeepsAll(t *testing.T) {
	_, _, err := loadText(t, "cluster: {bucket: s3://alloc/prod, name: prod}\nlog:\n  keep: 30d\n  level: debug\n")
	want := "3: log.keep: must be left out in a cluster, whose decision log lies in the bucket, whole"
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, expected %q", err, want)
	}
}
