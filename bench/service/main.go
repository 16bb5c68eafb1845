// Command service measures the HTTP service on this machine: a snapshot of a million rows from its first byte until
// /v1/changes has it, stage by stage, and the waiting times of readers beside such snapshots and cycles without a
// pause.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/heap"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/ingest/server"
)

func main() {
	rows := flag.Int("rows", 1_000_000, "rows of a snapshot, each an allocation of one unit")
	runs := flag.Int("runs", 5, "snapshots, each to a service of its own")
	hosts := flag.Int("hosts", 20_000, "hosts, of 64 ncpus each")
	checkpoints := flag.Int("checkpoints", 10, "checkpoints measured")
	load := flag.Duration("load", 20*time.Second, "how long readers are measured")
	profile := flag.String("cpuprofile", "", "file for a profile of all runs")
	feeds := flag.Int("feeds", 0, "feeds that push snapshots of -rows rows side by side for -load, and nothing else")
	pause := flag.Duration("pause", 0, "of a feed between two snapshots, with -feeds")
	child := flag.String("child", "", "folder: serve from there, for the readers' measurement")
	interval := flag.Duration("interval", 0, "between the cycles of that (0: on request alone)")
	flag.Parse()
	heap.Floor() // as the command does
	log.SetFlags(0)
	if *child != "" {
		serveChild(*child, *interval)
		return
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			log.Fatal(err)
		}
		defer pprof.StopCPUProfile()
	}
	b := &bench{rows: *rows, hosts: *hosts}
	if *feeds > 0 {
		(&pushers{b: b, feeds: *feeds, rows: *rows, load: *load, pause: *pause}).run()
		return
	}
	b.body = b.snapshot(0)
	fmt.Printf("%d rows, %d hosts, %.1f MB as Arrow and zstd; %s, %d processors, load %s\n\n", *rows, *hosts,
		float64(len(b.body))/1e6, runtime.Version(), runtime.GOMAXPROCS(0), load1())
	times := map[string][]time.Duration{}
	for range *runs {
		for stage, d := range b.push() {
			times[stage] = append(times[stage], d)
		}
	}
	fmt.Printf("%-46s %9s %9s %9s\n", "one snapshot, first byte to readable", "min ms", "median", "max")
	for _, stage := range stages {
		printTimes(stage, times[stage])
	}
	if *checkpoints > 0 {
		b.checkpoints(*checkpoints)
	}
	if *load > 0 {
		b.read(*load)
	}
	fmt.Printf("\nload %s at the end\n", load1())
}

// load1 is the load average of the last minute, which tells of the work of others.
func load1() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// printTimes prints the least, the median and the largest of some times, if there are any.
func printTimes(name string, d []time.Duration) {
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	fmt.Printf("%-46s %9.1f %9.1f %9.1f\n", name, ms(d[0]), ms(d[len(d)/2]), ms(d[len(d)-1]))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// The stages of a push, in order. In each run all up to stagePublish add up to stageTotal.
const (
	stageReceive = "receive"
	stageDecode  = "decode"
	stageApply   = "check, journal, apply"
	stageSync    = "flush (acknowledged)"
	stageDecide  = "cycle: seven stages and digest"
	stageRecord  = "record of the cycle, flushed"
	stagePublish = "publish (readable)"
	stageTotal   = "first byte to readable"
	stageRead    = "read all of it, as Arrow"
)

var stages = []string{stageReceive, stageDecode, stageApply, stageSync, stageDecide, stageRecord, stagePublish,
	stageTotal, stageRead}

type bench struct {
	rows, hosts int
	body        []byte
}

const plan = `
stint: 1
dimensions: [ncpus, maxmem]
interval: 1s
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [%s]
md_plans:
  - {name: grid, resource_groups: [{name: All}], consumers: [%s]}
`

const leaves = 100

// snapshot is a demand table as Arrow and zstd; nth makes some units other than in the last.
func (b *bench) snapshot(nth int) []byte {
	var paths, names decision.Words
	for i := range leaves {
		paths = append(paths, fmt.Sprintf("/c%02d", i))
	}
	t := decision.Table{Name: "demand", Rows: b.rows, Columns: []decision.Column{
		{Name: "consumer", Type: decision.Text, Dict: paths}, {Name: "allocation", Type: decision.Text},
		{Name: "units", Type: decision.Int}, {Name: "ncpus", Type: decision.Int}, {Name: "maxmem", Type: decision.Int},
	}}
	c := t.Columns
	for i := range b.rows {
		names = append(names, fmt.Sprintf("job-%07d", i))
		c[0].Code, c[1].Code = append(c[0].Code, int32(i%leaves)), append(c[1].Code, int32(i))
		units := int64(1)
		if nth > 0 && i%100 == nth%100 {
			units = 0
		}
		c[2].Int, c[3].Int, c[4].Int = append(c[2].Int, units), append(c[3].Int, 1), append(c[4].Int, int64(1+i%8))
	}
	c[1].Dict = names
	var plain, packed bytes.Buffer
	z, err := zstd.NewWriter(&packed, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err == nil {
		err = export.Stream(&plain, &t, "arrow", 0)
	}
	if err == nil {
		_, err = z.Write(plain.Bytes())
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		log.Fatal(err)
	}
	return packed.Bytes()
}

// service is one under measurement.
type service struct {
	base  string
	dir   string
	end   func()
	ended chan error
	mu    sync.Mutex
	at    map[string]time.Time // when the engine last came to a point

	engine *engine.Engine // nil in another process
}

// startChild is start in a process of its own, so that readers do not share a runtime with the service.
func (b *bench) startChild() *service {
	dir, err := os.MkdirTemp("", "stint-bench-")
	if err != nil {
		log.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	c := exec.Command(self, "-child", dir)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		log.Fatal(err)
	}
	s := &service{dir: dir, ended: make(chan error, 1), end: func() { _ = c.Process.Signal(syscall.SIGTERM) }}
	if _, err := fmt.Fscanln(out, &s.base); err != nil {
		log.Fatal(err)
	}
	go func() { s.ended <- c.Wait() }()
	b.prepare(s)
	return s
}

// serveChild is the process that startChild starts.
func serveChild(dir string, interval time.Duration) {
	server.SpareProcessors()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o := server.ServiceOptions{
		Dir: dir, Listener: ln, Tend: export.TendOptions{Every: time.Hour, Grace: 30 * time.Second},
		Engine: engine.Options{ManualOnly: interval == 0, IntervalUS: interval.Microseconds()},
		Ready:  func(*engine.Engine) { fmt.Println("http://" + ln.Addr().String()) },
	}
	if err := server.Run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

// start starts a service in this process, with some options, and gives it a policy and hosts.
func (b *bench) start(o engine.Options) *service {
	dir, err := os.MkdirTemp("", "stint-bench-")
	if err != nil {
		log.Fatal(err)
	}
	s := startIn(dir, o)
	b.prepare(s)
	return s
}

// startIn starts a service in a folder.
func startIn(dir string, eo engine.Options) *service {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := &service{base: "http://" + ln.Addr().String(), dir: dir, ended: make(chan error, 1),
		at: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	ready := make(chan struct{})
	eo.ManualOnly = true
	eo.Step = func(point string) {
		s.mu.Lock()
		s.at[point] = time.Now()
		s.mu.Unlock()
	}
	o := server.ServiceOptions{Dir: dir, Listener: ln, Ready: func(e *engine.Engine) { s.engine = e; close(ready) },
		Engine: eo}
	go func() { s.ended <- server.Run(ctx, o) }()
	select {
	case <-ready:
	case err := <-s.ended:
		log.Fatal(err)
	}
	return s
}

// prepare gives a service a policy and hosts.
func (b *bench) prepare(s *service) {
	var list []string
	for i := range leaves {
		list = append(list, fmt.Sprintf("{path: /c%02d}", i))
	}
	consumers := strings.Join(list, ", ")
	s.do("PUT", "/v1/plan", []byte(fmt.Sprintf(plan, consumers, consumers)))
	var hosts bytes.Buffer
	hosts.WriteString("host,ncpus,maxmem\n")
	for i := range b.hosts {
		fmt.Fprintf(&hosts, "h%05d,64,512\n", i)
	}
	s.do("PUT", "/v1/hosts", hosts.Bytes())
	s.do("POST", "/v1/cycles", nil)
}

func (s *service) stop() {
	s.end()
	if err := <-s.ended; err != nil {
		log.Fatal(err)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		log.Print(err)
	}
}

func (s *service) do(method, path string, body []byte) (bytes int64) {
	r, err := http.NewRequest(method, s.base+path, newReader(body))
	if err != nil {
		log.Fatal(err)
	}
	r.ContentLength = int64(len(body))
	r.Header.Set("Accept", "application/vnd.apache.arrow.stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		text, _ := io.ReadAll(resp.Body)
		log.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	if bytes, err = io.Copy(io.Discard, resp.Body); err != nil {
		log.Fatal(err)
	}
	return bytes
}

func newReader(b []byte) io.Reader {
	if b == nil {
		return nil
	}
	return bytes.NewReader(b)
}

// push measures one snapshot to a fresh service.
func (b *bench) push() map[string]time.Duration {
	s := b.start(engine.Options{})
	defer s.stop()
	before := s.spent()
	begin := time.Now()
	s.do("PUT", "/v1/demand/feed?format=arrow", b.body)
	s.do("POST", "/v1/cycles", nil)
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	after := s.spent()
	t := map[string]time.Duration{stageReceive: after["receive"] - before["receive"],
		stageDecode: after["decode"] - before["decode"]}
	t[stageApply] = at["accepted"].Sub(begin) - t[stageReceive] - t[stageDecode]
	t[stageSync] = at["durable"].Sub(at["accepted"])
	t[stageDecide] = at["decided"].Sub(at["durable"])
	t[stageRecord] = at["recorded"].Sub(at["decided"])
	t[stagePublish] = at["published"].Sub(at["recorded"])
	t[stageTotal] = at["published"].Sub(begin)
	begin = time.Now()
	if n := s.do("GET", "/v1/changes?source=feed&since=1", nil); n < int64(b.rows) {
		log.Fatalf("%d bytes of changes of %d rows", n, b.rows)
	}
	t[stageRead] = time.Since(begin)
	return t
}

// spent reads from the metrics how long receiving and decoding took so far.
func (s *service) spent() map[string]time.Duration {
	resp, err := http.Get(s.base + "/metrics")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	spent := map[string]time.Duration{}
	for line := range strings.Lines(string(text)) {
		for _, name := range []string{"receive", "decode"} {
			var v float64
			if n, _ := fmt.Sscanf(line, "stint_"+name+"_duration_seconds_sum %g", &v); n == 1 {
				spent[name] = time.Duration(v * float64(time.Second))
			}
		}
	}
	return spent
}

// read measures readers while snapshots come and cycles run all the time.
func (b *bench) read(load time.Duration) {
	s := b.startChild()
	defer s.stop()
	s.do("PUT", "/v1/demand/small", []byte("consumer,allocation,units,ncpus,maxmem\n/c00,small,20,1,1\n"))
	bodies := [][]byte{b.body, b.snapshot(1), b.snapshot(2)}
	var stop atomic.Bool
	var pushes, cycles atomic.Int64
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; !stop.Load(); n++ {
			s.do("PUT", "/v1/demand/feed?format=arrow", bodies[n%len(bodies)])
			pushes.Add(1)
		}
	})
	all.Go(func() {
		for !stop.Load() {
			s.do("POST", "/v1/cycles", nil)
			cycles.Add(1)
		}
	})
	time.Sleep(2 * time.Second)
	paths := []string{"/v1/consumers/c07", "/v1/holdings?source=small&format=csv", "/v1/cycles?limit=10&format=csv",
		"/v1/changes?source=small&since=%d"}
	took := make([][]time.Duration, len(paths))
	for i, path := range paths {
		all.Go(func() {
			for !stop.Load() {
				at := path
				if strings.Contains(path, "%d") {
					at = fmt.Sprintf(path, s.cycle())
				}
				begin := time.Now()
				s.do("GET", at, nil)
				took[i] = append(took[i], time.Since(begin))
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	time.Sleep(load)
	stop.Store(true)
	all.Wait()
	fmt.Printf("\nreaders, while %d snapshots of %d rows were pushed and %d cycles ran\n%-46s %9s %9s %9s %9s\n",
		pushes.Load(), b.rows, cycles.Load(), "", "n", "p50 ms", "p99", "max")
	for i, path := range paths {
		d := took[i]
		slices.Sort(d)
		fmt.Printf("%-46s %9d %9.1f %9.1f %9.1f\n", "GET "+strings.Replace(path, "%d", "LAST", 1), len(d),
			ms(d[len(d)/2]), ms(d[len(d)*99/100]), ms(d[len(d)-1]))
	}
}

// cycle is the number of the last cycle.
func (s *service) cycle() (n int64) {
	resp, err := http.Get(s.base + "/readyz")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `"cycle":`)
	_, _ = fmt.Sscan(rest[:max(0, strings.IndexAny(rest, ",}"))], &n)
	return n
}
