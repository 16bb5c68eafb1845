package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// Variables by which the test starts itself as a service that kills itself.
const (
	crashData = "STINT_TEST_CRASH_DATA" // folder of the service
	crashAt   = "STINT_TEST_CRASH_AT"   // point:count, "" for never
)

// crashChild is a service that ends with SIGKILL when it has come to a point so many times.
func crashChild(data string) {
	conf, err := loadServeConfig("")
	if err != nil {
		panic(err)
	}
	conf.Data, conf.Listen, conf.Manual = data, "127.0.0.1:0", true
	conf.Checkpoint.Bytes = 1 // one after the other
	point, count, _ := strings.Cut(os.Getenv(crashAt), ":")
	left, _ := strconv.ParseInt(count, 10, 64)
	var hits atomic.Int64
	at := func(p string) {
		if p == point && hits.Add(1) == left {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	hooks := serveHooks{engine: at, journal: func(op, _ string) error { at(op); return nil }}
	hooks.segmentBytes = 20_000
	if file := os.Getenv(historyClock); file != "" {
		hooks.clock = historyNow(file)
		historyConfigure(conf, os.Getenv(historyConfig))
	}
	os.Exit(map[bool]int{true: 0, false: 3}[serveUntilTerm(conf, hooks) == nil])
}

// crashPoints are where services kill themselves: steps of the journal's disk, then of the engine.
var crashPoints = []string{"write", "sync", "create", "rename", "syncdir", "reserve", "truncate", "mark_create",
	"mark", "checkpoint_write",
	"checkpoint_sync", "checkpoint_rename",
	"checkpoint_renamed", "compact", "accepted", "durable", "decided", "recorded", "published", "exported",
	"checkpoint"}

// child is a service in a process of its own.
type child struct {
	cmd  *exec.Cmd
	base string
	log  *syncBuffer
	dead chan struct{}
	byUs bool // killed by the test
}

func startChild(t *testing.T, data, at string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(self), log: &syncBuffer{}, dead: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), crashData+"="+data, crashAt+"="+at)
	c.cmd.Stderr = c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.cmd.Wait(); close(c.dead) }()
	for !strings.Contains(c.log.String(), "msg=ready") {
		select {
		case <-c.dead:
			return nil // it killed itself while it recovered
		case <-time.After(2 * time.Millisecond):
		}
	}
	_, rest, _ := strings.Cut(c.log.String(), "address=")
	c.base, _, _ = strings.Cut(rest, " ")
	return c
}

// model is what the world outside knows for certain of the service.
type model struct {
	mu      sync.Mutex
	cycle   int64 // the last that was acknowledged or read
	site    *crashSite
	digests map[int64]string          // of cycles acknowledged
	changes map[string]map[int64]hash // by source and cycle: what was read of it
	sources map[string]*feed
	admin   *feed // changes hosts and policy
	counts  map[string]int
}

// speakers are all who say something.
func (m *model) speakers() []*feed { return append(slices.Collect(maps.Values(m.sources)), m.admin) }

type hash [sha256.Size]byte

// feed is a source: its demand by allocation, and what it holds by allocation and
// host. Without a name it is the administrator.
type feed struct {
	name, consumer string
	site           *crashSite
	wanted         map[string]int64
	held           map[[2]string]int64
	since          int64
	pending        *operation // not known to be taken or not
}

// operation is an input that is tried under one key until it is acknowledged.
type operation struct {
	method, path, body, key string
	taken                   func(f *feed, r client.Receipt)
}

// send makes a call; ok is false when nothing came back.
func send(base, method, path, body, key string) (status int, text []byte, header http.Header, ok bool) {
	r, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, nil, false
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil, nil, false
	}
	return resp.StatusCode, text, resp.Header, true
}

// next thinks of something that the source says.
func (f *feed) next(rng *rand.Rand) *operation {
	op := &operation{key: fmt.Sprintf("%016x", rng.Uint64())}
	columns := "consumer,allocation,units," + f.site.dimension + "\n"
	switch k := rng.IntN(10); {
	case f.name == "" && k < 7:
		state := []string{"ok", "ok", "ok", "closed", "draining"}[rng.IntN(5)]
		op.method, op.path = "PATCH", "/v1/hosts?allow_shrink=true"
		op.body = fmt.Sprintf("host,state\nh%d,%s\n", rng.IntN(10), state)
		op.taken = func(*feed, client.Receipt) {}
	case f.name == "":
		op.method, op.path, op.body = "PUT", "/v1/plan", fmt.Sprintf(f.site.policy, 2+rng.IntN(2))
		op.taken = func(*feed, client.Receipt) {}
	case k < 4 || len(f.held) == 0:
		wanted := map[string]int64{}
		var b strings.Builder
		b.WriteString(columns)
		for range 1 + rng.IntN(30) {
			a := fmt.Sprintf("a%d", rng.IntN(40))
			if _, twice := wanted[a]; !twice {
				wanted[a] = rng.Int64N(6)
				fmt.Fprintf(&b, "%s,%s,%d,1\n", f.consumer, a, wanted[a])
			}
		}
		op.method, op.path, op.body = "PUT", "/v1/demand/"+f.name+"?allow_shrink=true", b.String()
		op.taken = func(f *feed, _ client.Receipt) { f.wanted = wanted }
	case k < 7:
		a, units := fmt.Sprintf("a%d", rng.IntN(40)), rng.Int64N(6)
		op.method, op.path = "PATCH", "/v1/demand/"+f.name+"?allow_shrink=true"
		op.body = columns + fmt.Sprintf("%s,%s,%d,1\n", f.consumer, a, units)
		op.taken = func(f *feed, _ client.Receipt) { f.wanted[a] = units }
	default:
		var at [2]string
		for k := range f.held {
			at = k
			break
		}
		op.method, op.path = "POST", "/v1/releases"
		op.body = fmt.Sprintf("consumer,allocation,host,units,done\n%s,%s,%s,%d,true\n", f.consumer, at[0], at[1],
			1+rng.IntN(3))
		op.taken = func(f *feed, r client.Receipt) { f.wanted[at[0]] = max(0, f.wanted[at[0]]-r.Released) }
	}
	return op
}

// speak pushes until the service is gone. What was under way then stays pending.
func (m *model) speak(t *testing.T, base string, f *feed, rng *rand.Rand, pause time.Duration) {
	for {
		m.mu.Lock()
		if f.pending == nil {
			f.pending = f.next(rng)
		}
		op := f.pending
		m.mu.Unlock()
		status, text, _, ok := send(base, op.method, op.path, op.body, op.key)
		if !ok {
			return
		}
		m.mu.Lock()
		m.counts[fmt.Sprint(op.method, " ", status)]++
		switch {
		case status == 200:
			var r client.Receipt
			if err := json.Unmarshal(text, &r); err != nil {
				t.Error(err)
			}
			if r.Repeated {
				m.counts["repeated"]++
			}
			op.taken(f, r)
			f.pending = nil
		case status == 422 && op.method == "POST": // the allocation is gone by now
			f.pending = nil
		case status == 429 || status == 503:
		default:
			t.Errorf("%s %s: %d %s", op.method, op.path, status, text)
		}
		m.mu.Unlock()
		time.Sleep(pause)
	}
}

// beat has cycles run until the service is gone. When patient it waits for the log, so that there are checkpoints.
func (m *model) beat(t *testing.T, base string, pause time.Duration, patient bool) {
	for m.beatOnce(t, base) {
		time.Sleep(pause)
		for ok := patient; ok; {
			var text []byte
			_, text, _, ok = send(base, "GET", "/readyz", "", "")
			ok = ok && !strings.Contains(string(text), `"log_behind_cycles":0`)
		}
	}
}

func (m *model) beatOnce(t *testing.T, base string) bool {
	status, text, _, ok := send(base, "POST", "/v1/cycles", "", "")
	if !ok || status == 503 {
		return ok
	}
	var c struct {
		Cycle  int64
		Digest string `json:"decisions_digest"`
	}
	if err := json.Unmarshal(text, &c); err != nil || status != 200 {
		t.Errorf("cycle: %d %s", status, text)
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saw(t, c.Cycle, c.Digest)
	return true
}

// saw notes a cycle's digest, which must be the same each time.
func (m *model) saw(t *testing.T, cycle int64, digest string) {
	if was, ok := m.digests[cycle]; ok && was != digest {
		t.Errorf("cycle %d has the digest %s, and had %s", cycle, digest, was)
	}
	m.digests[cycle] = digest
	m.cycle = max(m.cycle, cycle)
}

// follow reads changes until the service is gone.
func (m *model) follow(t *testing.T, base string, f *feed) {
	for m.followOnce(t, base, f, "1s") {
	}
}

func (m *model) followOnce(t *testing.T, base string, f *feed, wait string) bool {
	status, text, header, ok := send(base, "GET", fmt.Sprintf("/v1/changes?source=%s&since=%d&wait=%s&format=ndjson",
		f.name, f.since, wait), "", "")
	if !ok {
		return false
	}
	if status != 200 {
		if status != 503 {
			t.Errorf("changes: %d %s", status, text)
		}
		return false
	}
	next, err := strconv.ParseInt(header.Get("Stint-Cycle"), 10, 64)
	if err != nil {
		t.Error(err)
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	read := byCycle(t, text)
	for _, cycle := range slices.Sorted(maps.Keys(read)) {
		lines := read[cycle]
		m.read(t, f, cycle, lines)
		for _, c := range lines {
			at := [2]string{c.Allocation, c.Host}
			switch c.Change {
			case "grant":
				f.held[at] += c.Units
			case "release":
				if f.held[at] -= c.Units; f.held[at] < 0 {
					t.Errorf("source %s, cycle %d: %d units of %v came back that were never granted", f.name, cycle,
						-f.held[at], at)
				}
				if f.held[at] == 0 {
					delete(f.held, at)
				}
			}
		}
	}
	f.since = next
	m.cycle = max(m.cycle, next)
	return true
}

// read notes what was read of a cycle, which must be the same each time.
func (m *model) read(t *testing.T, f *feed, cycle int64, lines []client.Change) {
	b, _ := json.Marshal(lines)
	s := sha256.Sum256(b)
	if was, ok := m.changes[f.name][cycle]; ok && was != s {
		t.Errorf("source %s: the changes of cycle %d are others than before", f.name, cycle)
	}
	m.changes[f.name][cycle] = s
}

func byCycle(t *testing.T, text []byte) map[int64][]client.Change {
	all := map[int64][]client.Change{}
	for line := range bytes.Lines(text) {
		var c client.Change
		if err := json.Unmarshal(line, &c); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		all[c.Cycle] = append(all[c.Cycle], c)
	}
	return all
}

// verify compares a service that was started again with the model.
func (m *model) verify(t *testing.T, base string) {
	t.Helper()
	for _, f := range m.speakers() { // find out of what was under way
		for f.pending != nil {
			op := f.pending
			status, text, _, ok := send(base, op.method, op.path, op.body, op.key)
			var r client.Receipt
			if !ok || status != 200 && status != 422 || status == 200 && json.Unmarshal(text, &r) != nil {
				t.Fatalf("%s %s again: %d %s", op.method, op.path, status, text)
			}
			if status == 200 {
				if r.Repeated {
					m.counts["taken, not acknowledged"]++
				}
				op.taken(f, r)
			}
			f.pending = nil
		}
	}
	_, text, _, _ := send(base, "GET", "/v1/cycles?limit=100000", "", "")
	var cycles []struct {
		Cycle  int64
		Digest string `json:"decisions_digest"`
	}
	if err := json.Unmarshal(text, &cycles); err != nil {
		t.Fatal(err, string(text))
	}
	if len(cycles) > 0 && cycles[len(cycles)-1].Cycle < m.cycle || len(cycles) == 0 && m.cycle > 0 {
		t.Fatalf("cycle %d was read, and is gone", m.cycle)
	}
	for _, c := range cycles {
		m.saw(t, c.Cycle, c.Digest)
	}
	m.beatOnce(t, base)
	for name, f := range m.sources {
		_, text, _, _ := send(base, "GET", "/v1/changes?format=ndjson&since="+strconv.FormatInt(max(0, m.cycle-1000),
			10)+"&source="+name, "", "")
		again := byCycle(t, text)
		for cycle, lines := range again {
			if cycle <= f.since {
				m.read(t, f, cycle, lines)
			}
		}
		m.followOnce(t, base, f, "0s")
		held := map[[2]string]int64{}
		_, text, _, _ = send(base, "GET", "/v1/holdings?format=ndjson&source="+name, "", "")
		for line := range bytes.Lines(text) {
			var h client.Holding
			if err := json.Unmarshal(line, &h); err != nil {
				t.Fatal(err)
			}
			held[[2]string{h.Allocation, h.Host}] += h.Units
		}
		if fmt.Sprint(held) != fmt.Sprint(f.held) {
			t.Fatalf("source %s holds %v, by its changes %v", name, held, f.held)
		}
		var wanted int64
		for _, units := range f.wanted {
			wanted += units
		}
		_, text, _, _ = send(base, "GET", "/v1/consumers"+f.consumer, "", "")
		var rows []struct{ Demand int64 }
		if err := json.Unmarshal(text, &rows); err != nil || len(rows) != 1 || rows[0].Demand != wanted {
			t.Fatalf("source %s wants %d by the service, %d by what was acknowledged: %s", name, rows[0].Demand, wanted,
				text)
		}
	}
}

// TestCrash kills a service again and again, at random moments and at points where that is awkward, and compares what
// is there afterwards with what was acknowledged and read. STINT_TEST_KILLS says how often.
func TestCrash(t *testing.T) {
	kills := 4
	if v := os.Getenv("STINT_TEST_KILLS"); v != "" {
		kills, _ = strconv.Atoi(v)
	} else if testing.Short() {
		t.Skip("kills processes")
	}
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("STINT_TEST_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Log("STINT_TEST_SEED =", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range crashSites {
		n := (kills + i) / len(crashSites)
		t.Run(crashSites[i].name, func(t *testing.T) { killAndCompare(t, &crashSites[i], n, rng) })
	}
}

// killAndCompare is TestCrash of one site.
func killAndCompare(t *testing.T, site *crashSite, kills int, rng *rand.Rand) {
	data := filepath.Join(crashDir(t), "service")
	m := &model{site: site, digests: map[int64]string{}, changes: map[string]map[int64]hash{},
		sources: map[string]*feed{}, counts: map[string]int{}}
	for i, name := range []string{"one", "two", "three"} {
		m.sources[name] = &feed{name: name, site: site, consumer: []string{"/A", "/B", "/C"}[i],
			wanted: map[string]int64{}, held: map[[2]string]int64{}}
		m.changes[name] = map[int64]hash{}
	}
	m.admin = &feed{site: site}
	c := startChild(t, data, "")
	m.begin(t, c)
	m.verify(t, c.base)
	kill(c)
	for n := range kills {
		at, wait, patient := "", time.Duration(20+rng.IntN(400))*time.Millisecond, rng.IntN(2) > 0
		if rng.IntN(4) > 0 {
			at = crashPoints[rng.IntN(len(crashPoints))]
			wait += 500 * time.Millisecond // it ends earlier mostly
			if strings.HasPrefix(at, "checkpoint") || at == "compact" {
				at += fmt.Sprintf(":%d", 1+rng.IntN(4))
				patient, wait = true, 3*time.Second
			} else {
				at += fmt.Sprintf(":%d", 1+rng.IntN(30))
			}
		}
		if c = startChild(t, data, at); c != nil {
			m.load(t, c, rng, wait, patient)
			m.started(c)
		}
		if c == nil || !c.byUs {
			m.counts["killed itself at "+strings.Split(at, ":")[0]]++
		} else {
			m.counts["killed"]++
		}
		if c = startChild(t, data, ""); c == nil {
			t.Fatal("the service does not start")
		}
		m.verify(t, c.base)
		m.started(c)
		if t.Failed() {
			t.Fatalf("after kill %d, at %q\n%s", n+1, at, c.log)
		}
		if n < kills-1 {
			kill(c)
		}
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	<-c.dead
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("SIGTERM ends the service with %d: %s", code, c.log)
	}
	checkLog(t, "the log of a service that was killed", filepath.Join(data, "log"))
	got := command(t, 0, "run", "--append", "--out", filepath.Join(data, "log"), "--at", "2100-01-01T00:00:00Z",
		"--output", "csv")
	if want := fmt.Sprintf("\n%d,", m.cycle+1); !strings.Contains(got, want) {
		t.Errorf("the log ends otherwise than with cycle %d:\n%s", m.cycle, got)
	}
	// a few kills may all come before one
	if kills >= 10 && (m.counts["checkpoints"] == 0 || m.counts["starts from a checkpoint"] == 0) {
		t.Error("no checkpoint was taken, or none was started from")
	}
	segments, err := filepath.Glob(filepath.Join(data, "journal", "records-*"))
	if err != nil || len(segments) == 0 {
		t.Error(segments, err)
	}
	t.Log(m.cycle, "cycles,", len(segments), "segments are left,", m.counts)
}

// started counts how a service started and what checkpoints it made.
func (m *model) started(c *child) {
	log := c.log.String()
	m.counts["checkpoints"] += strings.Count(log, "msg=checkpoint ")
	if _, rest, ok := strings.Cut(log, "checkpoint="); ok && !strings.HasPrefix(rest, "0 ") {
		m.counts["starts from a checkpoint"]++
	}
	m.counts["checkpoints passed over"] += strings.Count(log, "a checkpoint is of no use")
}

// load has sources speak, cycles run and readers read until the service ends, at the latest after a time.
func (m *model) load(t *testing.T, c *child, rng *rand.Rand, wait time.Duration, patient bool) {
	var all sync.WaitGroup
	pause := time.Millisecond
	if patient {
		pause = 40 * time.Millisecond // the log flushes each input
	}
	for _, f := range m.sources {
		own := rand.New(rand.NewPCG(rng.Uint64(), 2))
		all.Go(func() { m.speak(t, c.base, f, own, pause) })
		all.Go(func() { m.follow(t, c.base, f) })
	}
	own := rand.New(rand.NewPCG(rng.Uint64(), 3))
	all.Go(func() { m.speak(t, c.base, m.admin, own, 40*time.Millisecond) })
	all.Go(func() { m.beat(t, c.base, 3*time.Millisecond, patient) })
	select {
	case <-c.dead:
	case <-time.After(wait):
		kill(c)
	}
	all.Wait()
}

func kill(c *child) {
	select {
	case <-c.dead:
	default:
		c.byUs = true
		_ = c.cmd.Process.Kill()
	}
	<-c.dead
	http.DefaultClient.CloseIdleConnections()
}

// serveUntilTerm is serve until SIGTERM.
func serveUntilTerm(conf *serveConfig, hooks serveHooks) error {
	err := serveSignals(context.Background(), conf, os.Stderr, hooks)
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
	}
	return err
}
