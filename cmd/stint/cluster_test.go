package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

const clusterLease = time.Second

const clusterPolicy = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /B}, {path: /C}]
md_plans:
  - {name: grid, resource_groups: [{name: All}], consumers: [{path: /A}, {path: /B}, {path: /C}]}
`

// memberText is the configuration of a process.
const memberText = `
data: %s
listen: %s
manual: true
cluster: {bucket: "s3://alloc/prod", name: prod, endpoint: %q, region: us-east-1, process: p%d, lease: %s}
`

// site is three processes of a cluster, each with a proxy before the store.
type site struct {
	t     *testing.T
	store string
	proxy [3]*proxy
	file  [3]string // configuration
	data  [3]string
	at    [3]string // address
	child [3]*child

	program [3]string // "": this one
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := layOut(t, [3]string{})
	for i := range s.child {
		s.start(i)
	}
	s.settle()
	s.write("PUT", "/v1/plan", clusterPolicy, "Content-Type", "application/yaml")
	s.write("PUT", "/v1/hosts", "host,ncpus\nh1,10000\nh2,10000\n", "Content-Type", "text/csv")
	return s
}

// layOut makes a site whose processes are not started, with more in the configuration of each.
func layOut(t *testing.T, more [3]string) *site {
	t.Helper()
	s := &site{t: t, store: startStore(t)}
	t.Setenv("AWS_ACCESS_KEY_ID", "stint")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "stintsecret")
	for i := range s.proxy {
		s.proxy[i] = startProxy(t, s.store)
		dir := t.TempDir()
		s.data[i], s.file[i] = filepath.Join(dir, "data"), filepath.Join(dir, "stint.yaml")
		s.at[i] = "http://" + freeAddress(t)
		text := fmt.Sprintf("checkpoint: {interval: 1s, bytes: 1KiB, replay: 100ms}\n"+memberText, s.data[i],
			strings.TrimPrefix(s.at[i], "http://"), s.proxy[i].URL, i, clusterLease) + more[i]
		if err := os.WriteFile(s.file[i], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts a process; one whose store is out of reach ends at once, and is started again.
func (s *site) start(i int) {
	for range 20 {
		s.spawn(i)
		if s.child[i].untilFor(s.t, "msg=ready", 5*time.Minute) { // while others keep the machine busy
			return
		}
		time.Sleep(clusterLease / 2)
	}
	s.t.Fatal("it does not start: ", s.child[i].log)
}

// spawn starts a process, and does not wait for it.
func (s *site) spawn(i int) {
	s.t.Setenv(clockOff, []string{"0s", "0s", "10m"}[i])
	program := s.program[i]
	if program == "" {
		program = self(s.t)
	}
	s.child[i] = startProgram(s.t, program, "", "serve", "--config", s.file[i])
}

// state is what a process says of itself.
type memberState struct {
	Cycle int64
	Leads bool
	Term  uint64
}

func (s *site) state(i int) (m memberState, ok bool) {
	text, _, status, err := ask("GET", s.at[i]+"/readyz", "")
	return m, err == nil && status == 200 && json.Unmarshal([]byte(text), &m) == nil
}

// leader waits for the process that leads.
func (s *site) leader() int {
	s.t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for i := range s.child {
			if m, ok := s.state(i); ok && m.Leads {
				return i
			}
		}
	}
	s.t.Fatal("nobody leads: ", s.logs())
	return 0
}

func (s *site) logs() string {
	var text []string
	for i, c := range s.child {
		lines := strings.Split(c.log.String(), "\n")
		text = append(text, fmt.Sprintf("p%d: %s", i, strings.Join(lines[max(0, len(lines)-25):], "\n")))
	}
	return strings.Join(text, "\n")
}

// settle waits until one process leads and all are at the same cycle.
func (s *site) settle() {
	s.t.Helper()
	s.leader()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		leads, cycles := 0, map[int64]bool{}
		for i := range s.child {
			m, ok := s.state(i)
			if !ok {
				leads = -3
			}
			if m.Leads {
				leads++
			}
			cycles[m.Cycle] = true
		}
		if leads == 1 && len(cycles) == 1 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatal("the processes do not come together: ", s.logs())
		}
	}
}

// write gives any process something until it is acknowledged.
func (s *site) write(method, path, body string, headers ...string) (answer string) {
	for {
		text, _, status, err := ask(method, s.at[rand.IntN(3)]+path, body, headers...)
		if err == nil && status == 200 {
			return text
		}
		if err == nil && status < 500 && status != 429 {
			s.t.Errorf("%s %s: %d %s", method, path, status, text)
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// history is what clients were told.
type clusterHistory struct {
	mu      sync.Mutex
	ops     []porcupine.Operation
	digests map[int64]string
	wanted  [3]int
	faults  []string
}

func (h *clusterHistory) fault(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
}

func (h *clusterHistory) add(client int, begun, ended time.Time, out position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Call: begun.UnixNano(), Return: ended.UnixNano(),
		Output: out})
}

// position is where the journal was by an answer: an input has a number and the cycle that goes by it, a cycle its own
// number.
type position struct{ record, cycle int64 }

// positions is the model of a journal: answers tell places in one order, which time keeps to. What nobody was told of
// may lie between.
var positions = porcupine.Model{
	Init: func() any { return position{} },
	Step: func(state, _, output any) (bool, any) {
		at, told := state.(position), output.(position)
		if told.record > 0 { // an input
			return told.record > at.record && told.cycle > at.cycle, position{told.record, max(at.cycle, told.cycle-1)}
		}
		return told.cycle >= at.cycle, position{at.record, told.cycle}
	},
}

// push has a source push one snapshot after the other, until stop.
func (s *site) push(h *clusterHistory, source int, stop <-chan struct{}) {
	for n := 1; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		body := fmt.Sprintf("consumer,allocation,units,ncpus\n/%c,a,%d,1\n", 'A'+source, n)
		begun := time.Now()
		text := s.write("PUT", fmt.Sprintf("/v1/demand/s%d", source), body, "Content-Type", "text/csv",
			"Idempotency-Key", fmt.Sprint("k", n))
		var a struct {
			Snapshot string
			Cycle    int64
		}
		record := int64(0)
		if err := json.Unmarshal([]byte(text), &a); err == nil {
			record, _ = strconv.ParseInt(a.Snapshot, 10, 64)
		}
		if record == 0 {
			h.fault("source %d, snapshot %d: %s", source, n, text)
			return
		}
		h.add(source, begun, time.Now(), position{record, a.Cycle})
		h.mu.Lock()
		h.wanted[source] = n
		h.mu.Unlock()
		time.Sleep(30 * time.Millisecond)
	}
}

// cycles has cycles run until stop.
func (s *site) cycles(h *clusterHistory, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
		begun := time.Now()
		text, _, status, err := ask("POST", s.at[rand.IntN(3)]+"/v1/cycles", "")
		if err != nil || status != 200 {
			continue // whether it was run is not known
		}
		var c struct {
			Cycle  int64
			Digest string `json:"decisions_digest"`
		}
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			h.fault("a cycle: %s", text)
			continue
		}
		h.add(3, begun, time.Now(), position{0, c.Cycle})
		h.digest("a client", c.Cycle, c.Digest)
	}
}

// digest notes what somebody says that a cycle has decided.
func (h *clusterHistory) digest(who string, cycle int64, digest string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was := h.digests[cycle]; was != "" && was != digest {
		h.faults = append(h.faults, fmt.Sprintf("cycle %d has the digest %s by %s, %s before", cycle, digest, who, was))
	}
	h.digests[cycle] = digest
}

// clusterReader follows the changes of a source at any process.
type clusterReader struct {
	since int64
	held  int64
}

func (s *site) read(h *clusterHistory, r *clusterReader, source int) bool {
	text, header, status, err := ask("GET", fmt.Sprintf("%s/v1/changes?source=s%d&since=%d&format=ndjson",
		s.at[rand.IntN(3)], source, r.since), "")
	if err != nil || status >= 500 || status == 429 {
		return false
	}
	upTo, _ := strconv.ParseInt(header.Get("Stint-Cycle"), 10, 64)
	if status != 200 || upTo < r.since {
		h.fault("changes of source %d after cycle %d: %d, up to cycle %d: %s", source, r.since, status, upTo, text)
		return false
	}
	for line := range strings.Lines(text) {
		var c struct {
			Cycle, Units int64
			Change       string
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil || c.Cycle <= r.since || c.Cycle > upTo {
			h.fault("changes of source %d after cycle %d, up to %d: %s", source, r.since, upTo, line)
			continue
		}
		switch c.Change {
		case "grant":
			r.held += c.Units
		case "release":
			r.held -= c.Units
		}
	}
	r.since = upTo
	return true
}

// disturb does something to the cluster, and undoes it.
func (s *site) disturb(random *rand.Rand) string {
	i := random.IntN(3)
	modes := []string{refuses, cuts, stale, full, slow}
	switch n := random.IntN(4 + len(modes)); {
	case n < 2: // the leader, above all
		if n == 0 {
			i = s.leader()
		}
		kill(s.child[i])
		s.start(i)
		return fmt.Sprintf("kill p%d", i)
	case n < 4:
		if n == 2 {
			i = s.leader()
		}
		p := s.child[i].cmd.Process
		_ = p.Signal(syscall.SIGSTOP)
		time.Sleep(clusterLease * time.Duration(1+random.IntN(4)))
		_ = p.Signal(syscall.SIGCONT)
		return fmt.Sprintf("stop p%d", i)
	default:
		mode := modes[n-4]
		for j := range s.proxy {
			if mode != refuses || j != i { // two of three are cut off, or one
				if mode != refuses || random.IntN(2) == 0 {
					s.proxy[j].is(mode)
				}
			}
		}
		s.proxy[i].is(mode)
		time.Sleep(clusterLease * time.Duration(1+random.IntN(4)))
		for j := range s.proxy {
			s.proxy[j].is(passes)
		}
		return mode
	}
}

// TestCluster has three processes, one of whose clocks is ten minutes ahead, with a real store be killed, stopped and
// cut off, and compares what clients were told with what is there. STINT_TEST_CLUSTER says how often.
func TestCluster(t *testing.T) {
	s := newSite(t)
	rounds := 6
	if n, err := strconv.Atoi(os.Getenv("STINT_TEST_CLUSTER")); err == nil {
		rounds = n
	}
	h := &clusterHistory{digests: map[int64]string{}}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	var readers [3]clusterReader
	for i := range 3 {
		writers.Go(func() { s.push(h, i, stop) })
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(40 * time.Millisecond):
					s.read(h, &readers[i], i)
				}
			}
		})
	}
	writers.Go(func() { s.cycles(h, stop) })
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		what := s.disturb(random)
		time.Sleep(clusterLease * time.Duration(random.IntN(3)))
		t.Logf("round %d: %s; cycle %d", round, what, s.cycleOf(s.leader()))
	}
	close(stop)
	writers.Wait()
	s.write("POST", "/v1/cycles", "")
	s.settle()
	s.compare(h, &readers)
	h.mu.Lock()
	if !porcupine.CheckOperations(positions, h.ops) {
		h.faults = append(h.faults, "what clients were told is no one order of the journal")
	}
	t.Logf("seed %d: %d answers, %d cycles, wanted %v", seed, len(h.ops), len(h.digests), h.wanted)
	for _, f := range h.faults[:min(len(h.faults), 10)] {
		t.Error(f)
	}
	h.mu.Unlock()
	if t.Failed() {
		t.Log(s.logs())
	}
	last := s.cycleOf(0)
	for i, c := range s.child {
		if strings.Contains(c.log.String(), "the decision log in the bucket ends") {
			t.Errorf("p%d writes no decision log", i)
		}
		if strings.Contains(c.log.String(), "decides otherwise") {
			t.Errorf("p%d decides otherwise than the leader", i)
		}
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if code := c.ends(t, 30*time.Second); code != 0 {
			t.Errorf("p%d ends with %d", i, code)
		}
	}
	s.logged(h, last)
}

func (s *site) cycleOf(i int) int64 {
	m, _ := s.state(i)
	return m.Cycle
}

// compare holds what each process has against what clients were told.
func (s *site) compare(h *clusterHistory, readers *[3]clusterReader) {
	for source := range 3 {
		for !s.read(h, &readers[source], source) || readers[source].since < s.cycleOf(0) {
			time.Sleep(10 * time.Millisecond)
		}
	}
	for i := range s.child {
		text, _, _, err := ask("GET", s.at[i]+"/v1/cycles?format=ndjson", "")
		for line := range strings.Lines(text) {
			var c struct {
				Cycle  int64
				Digest string `json:"decisions_digest"`
			}
			err = errors.Join(err, json.Unmarshal([]byte(line), &c))
			h.digest(fmt.Sprint("p", i), c.Cycle, c.Digest)
		}
		if err != nil {
			h.fault("cycles of p%d: %v", i, err)
		}
		for source := range 3 {
			text, _, _, _ := ask("GET", fmt.Sprintf("%s/v1/demand/s%d?format=ndjson", s.at[i], source), "")
			var d struct{ Wanted, Held int64 }
			if err := json.Unmarshal([]byte(text), &d); err != nil {
				h.fault("p%d has of source %d: %s", i, source, text)
				continue
			}
			// The last snapshot may have come while the writers were told to end.
			if d.Wanted != int64(h.wanted[source]) || d.Held != readers[source].held {
				h.fault("p%d: source %d wants %d and holds %d; acknowledged were %d, by its changes it holds %d", i,
					source, d.Wanted, d.Held, h.wanted[source], readers[source].held)
			}
		}
	}
}

// TestFailover kills the process that leads, and measures until the next write is acknowledged: three leases at most.
// STINT_TEST_FAILOVERS says how often.
func TestFailover(t *testing.T) {
	s := newSite(t)
	n := 5
	if v, err := strconv.Atoi(os.Getenv("STINT_TEST_FAILOVERS")); err == nil {
		n = v
	}
	var took []time.Duration
	for range n {
		s.settle()
		i := s.leader()
		kill(s.child[i])
		begun := time.Now()
		for status := 0; status != 200; time.Sleep(5 * time.Millisecond) {
			_, _, status, _ = ask("POST", s.at[(i+1)%3]+"/v1/cycles", "")
		}
		took = append(took, time.Since(begun))
		s.start(i)
	}
	slices.Sort(took)
	t.Logf("%d failovers with a lease of %s: p50 %s, p99 %s, longest %s", n, clusterLease, took[n/2],
		took[(n*99-1)/100], took[n-1])
	if took[n-1] > 3*clusterLease {
		t.Errorf("a failover took %s, longer than three leases", took[n-1])
	}
}

// TestFarPush measures the push of many rows until it is acknowledged, and until what was decided of it can be read:
// with a journal in a folder, and in a bucket whose requests take longer. STINT_TEST_PUSH says how many rows.
func TestFarPush(t *testing.T) {
	rows, err := strconv.Atoi(os.Getenv("STINT_TEST_PUSH"))
	if err != nil {
		t.Skip("measures: STINT_TEST_PUSH=1000000")
	}
	var demand strings.Builder
	demand.WriteString("consumer,allocation,units,ncpus\n")
	for i := range rows {
		fmt.Fprintf(&demand, "/%c,a%d,1,1\n", 'A'+i%3, i)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "stint")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "stintsecret")
	measure := func(what, config string, p *proxy, late time.Duration) {
		dir := t.TempDir()
		at := freeAddress(t)
		file := filepath.Join(dir, "stint.yaml")
		text := fmt.Sprintf(config, filepath.Join(dir, "data"), at)
		if p != nil {
			p.late.Store(int64(late))
			text = fmt.Sprintf(config, filepath.Join(dir, "data"), at, p.URL, 0, 2*time.Second)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c := startStint(t, "", "serve", "--config", file)
		c.until(t, "msg=ready")
		defer kill(c)
		must := func(method, path, body, media string) {
			for {
				text, _, status, err := askFor(5*time.Minute, method, "http://"+at+path, body, "Content-Type", media)
				if err == nil && status == 200 {
					return
				}
				if status != 503 {
					t.Fatal(method, path, status, text, err)
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		must("PUT", "/v1/plan", clusterPolicy, "application/yaml")
		must("PUT", "/v1/hosts", "host,ncpus\nh1,1000000\nh2,1000000\n", "text/csv")
		begun := time.Now()
		must("PUT", "/v1/demand/s", demand.String(), "text/csv")
		acknowledged := time.Since(begun)
		must("POST", "/v1/cycles", "", "")
		t.Logf("%-28s %d rows, %d MiB: acknowledged after %s, readable after %s", what, rows, demand.Len()>>20,
			acknowledged.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	}
	measure("folder", "data: %s\nlisten: %s\nmanual: true\n", nil, 0)
	for _, late := range []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond} {
		measure(fmt.Sprint("bucket, requests ", late, " longer"), memberText, startProxy(t, startStore(t)), late)
	}
}

// TestBesideFollowers measures cycles of a cluster of one process and of three on this machine, with a hundredth of the
// demand changed before each: what two followers cost, how far they are behind, and the memory of each process.
// STINT_TEST_PUSH says how many rows there are.
func TestBesideFollowers(t *testing.T) {
	rows, err := strconv.Atoi(os.Getenv("STINT_TEST_PUSH"))
	if err != nil {
		t.Skip("measures: STINT_TEST_PUSH=1000000")
	}
	const feeds, cycles = 100, 30
	s := layOut(t, [3]string{})
	for _, file := range s.file {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, usual, _ := strings.Cut(string(text), "\n") // without the checkpoints of tests
		if err := os.WriteFile(file, []byte(usual), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	must := func(method, path, body, media string) {
		text, _, status, err := askFor(time.Minute, method, s.at[0]+path, body, "Content-Type", media)
		if err != nil || status != 200 {
			t.Fatal(method, path, status, text, err)
		}
	}
	push := func(feed, units int) {
		var demand strings.Builder
		demand.WriteString("consumer,allocation,units,ncpus\n")
		for i := range rows / feeds {
			fmt.Fprintf(&demand, "/%c,f%da%d,%d,1\n", 'A'+i%3, feed, i, units)
		}
		must("PUT", fmt.Sprint("/v1/demand/f", feed), demand.String(), "text/csv")
	}
	s.start(0)
	for m, ok := s.state(0); !ok || !m.Leads; m, ok = s.state(0) {
		time.Sleep(20 * time.Millisecond)
	}
	must("PUT", "/v1/plan", clusterPolicy, "application/yaml")
	must("PUT", "/v1/hosts", fmt.Sprintf("host,ncpus\nh1,%d\nh2,%d\n", rows, rows), "text/csv")
	for feed := range feeds {
		push(feed, 1)
	}
	must("POST", "/v1/cycles", "", "")
	for _, processes := range []int{1, 3} {
		for i := 1; i < processes; i++ {
			s.start(i)
		}
		var took, behind []time.Duration
		for n := range cycles {
			push(n, processes+1) // other units than before
			begun := time.Now()
			must("POST", "/v1/cycles", "", "")
			took = append(took, time.Since(begun))
			cycle := s.cycleOf(0)
			for i := 1; i < processes; i++ {
				for s.cycleOf(i) < cycle {
					time.Sleep(time.Millisecond)
				}
			}
			behind = append(behind, time.Since(begun)-took[n])
		}
		slices.Sort(took)
		slices.Sort(behind)
		t.Logf("%d rows, processes %d: a cycle p50 %s, p99 %s", rows, processes, took[cycles/2], took[cycles-1])
		if processes > 1 {
			t.Logf("the followers have it %s later, p99 %s", behind[cycles/2], behind[cycles-1])
		}
		for i := range processes {
			t.Logf("process %d: %s", i, peakMemory(t, s.child[i]))
		}
	}
}

// peakMemory is the most memory that a process had.
func peakMemory(t *testing.T, c *child) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "VmHWM:") {
			return strings.Join(strings.Fields(line)[1:], " ")
		}
	}
	return "unknown"
}

// TestClusterRefused has a start with what is wrong be refused, with exit code 2 and the reason, and no secret in it.
func TestClusterRefused(t *testing.T) {
	s := newSite(t)
	text, err := os.ReadFile(s.file[0])
	if err != nil {
		t.Fatal(err)
	}
	const secret = "stintsecret"
	for _, c := range []struct{ from, to, secret, want string }{
		{"name: prod", "name: test", secret, `it belongs to the cluster "prod"`},
		{"s3://alloc/prod", "s3://none/prod", secret, "there is no such bucket"},
		{s.proxy[0].URL, "http://127.0.0.1:9", secret, "connection refused"},
		{"name: prod", "name: prod", "wrongsecret", "the store refuses these credentials"},
	} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		edited := strings.Replace(string(text), c.from, c.to, 1)
		edited = strings.Replace(edited, s.data[0], filepath.Join(t.TempDir(), "data"), 1)
		edited = strings.Replace(edited, strings.TrimPrefix(s.at[0], "http://"), "127.0.0.1:0", 1)
		if err := os.WriteFile(file, []byte(edited), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Setenv("AWS_SECRET_ACCESS_KEY", c.secret)
		child := startStint(t, "", "serve", "--config", file)
		code, log := child.ends(t, 30*time.Second), child.log.String()
		if code != 2 || !strings.Contains(log, c.want) || strings.Contains(log, c.secret) {
			t.Errorf("%s: exit %d, expected 2 and %q:\n%s", c.to, code, c.want, log)
		}
	}
}
