package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
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
	"time"
)

// pushers measures many feeds at once: each pushes whole snapshots one after the other to a service that runs a cycle a
// second, in a cluster with less room than is wanted, so that units are reclaimed all the time. At the end the service
// is killed, and started again on the same folder.
type pushers struct {
	b       *bench
	feeds   int
	rows    int           // of a snapshot
	load    time.Duration // how long the feeds push
	pause   time.Duration // of a feed between two snapshots
	base    string
	dir     string
	process *exec.Cmd
	ended   chan error

	stop     atomic.Bool
	all      sync.WaitGroup
	mu       sync.Mutex
	pushed   []time.Duration // of snapshots that were taken
	busy     int             // answers 429
	rude     int             // answers 429 without Retry-After
	read     []time.Duration
	health   []time.Duration
	resident []int64 // MiB, a sample a second
	gaps     []time.Duration
	log      []logSize // a sample a minute
	failed   []string
}

// logSize is the size of the decision log on disk.
type logSize struct{ files, bytes int64 }

// run measures and prints. A service that fails ends the program.
func (p *pushers) run() {
	dir, err := os.MkdirTemp("", "stint-bench-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p.dir = dir
	p.start()
	p.prepare()
	fmt.Printf("%d feeds push %d rows each, again and again with %s between, for %s; %d hosts, a cycle a second; "+
		"load %s\n", p.feeds, p.rows, p.pause, p.load, p.b.hosts, load1())
	for i := range p.feeds {
		p.all.Go(func() { p.push(i) })
	}
	time.Sleep(5 * time.Second)
	for _, path := range []string{"/v1/consumers/c07", "/v1/holdings?source=small&format=csv",
		"/v1/cycles?limit=10&format=csv"} {
		p.all.Go(func() { p.ask(path, &p.read, 10*time.Millisecond) })
	}
	p.all.Go(func() { p.ask("/healthz", &p.health, 100*time.Millisecond) })
	p.all.Go(p.watch)
	time.Sleep(p.load)
	reclaimed := p.metric("stint_reclaimed_units_total")
	p.stop.Store(true)
	p.all.Wait()
	p.print(reclaimed)
	_ = p.process.Process.Signal(syscall.SIGKILL)
	<-p.ended
	begin := time.Now()
	p.start()
	fmt.Printf("%-46s %9.1f s\n", "killed, and ready again after", time.Since(begin).Seconds())
	_ = p.process.Process.Signal(syscall.SIGTERM)
	if err := <-p.ended; err != nil {
		log.Fatal(err)
	}
	if len(p.failed) > 0 {
		log.Fatalf("%d requests failed, the first: %s", len(p.failed), p.failed[0])
	}
}

// start starts the service in a process of its own and waits until it is ready.
func (p *pushers) start() {
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	c := exec.Command(self, "-child", p.dir, "-interval", "1s")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		log.Fatal(err)
	}
	if _, err := fmt.Fscanln(out, &p.base); err != nil {
		log.Fatal(err)
	}
	p.process, p.ended = c, make(chan error, 1)
	go func() { p.ended <- c.Wait() }()
}

func (p *pushers) prepare() {
	s := &service{base: p.base}
	p.b.prepare(s)
	s.do("PUT", "/v1/demand/small", []byte("consumer,allocation,units,ncpus,maxmem\n/c00,small,20,1,1\n"))
}

// snapshot is a feed's demand: jobs of one to three units. One job in two thousand is new since the snapshot before.
// A quiet feed leaves three quarters of its jobs without units: other feeds take the room, and give it back later.
func (p *pushers) snapshot(feed, nth int, quiet bool, random *rand.Rand) []byte {
	var body bytes.Buffer
	body.Grow(p.rows * 40)
	body.WriteString("consumer,allocation,units,ncpus,maxmem\n")
	turned := p.rows / 2000
	for i := range p.rows {
		age := (nth*turned + p.rows - 1 - i) / p.rows // how often this row's job was replaced
		leaf := (feed*leaves/p.feeds + i%13) % leaves
		units := 1 + random.IntN(3)*(i%3/2)
		if quiet && i%4 != 0 {
			units = 0
		}
		fmt.Fprintf(&body, "/c%02d,job-%d-%d,%d,1,%d\n", leaf, i, age, units, 1+i%8)
	}
	return body.Bytes()
}

// quietTime is how long a feed is quiet, a quarter of the time.
const quietTime = 5 * time.Second

// push pushes a feed's snapshots, and comes again when the service is busy.
func (p *pushers) push(feed int) {
	random := rand.New(rand.NewPCG(1, uint64(feed)))
	path := fmt.Sprintf("%s/v1/demand/feed-%d?format=csv&allow_shrink=true", p.base, feed)
	began := time.Now()
	for nth := 0; !p.stop.Load(); nth++ {
		quiet := (int(time.Since(began)/quietTime)+feed)%4 == 0
		body := p.snapshot(feed, nth, quiet, random)
		for !p.stop.Load() {
			begin := time.Now()
			status, after, err := p.call("PUT", path, body)
			took := time.Since(begin)
			p.mu.Lock()
			switch {
			case err != nil:
				p.failed = append(p.failed, err.Error())
			case status == http.StatusOK:
				p.pushed = append(p.pushed, took)
			case status == http.StatusTooManyRequests:
				p.busy++
				if after == 0 {
					p.rude++
				}
			default:
				p.failed = append(p.failed, fmt.Sprintf("PUT %s: %d", path, status))
			}
			p.mu.Unlock()
			if status == http.StatusOK {
				p.sleep(p.pause)
				break
			}
			time.Sleep(max(after, 100*time.Millisecond))
		}
	}
}

// sleep waits, or less where the measurement ends.
func (p *pushers) sleep(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !p.stop.Load(); {
		time.Sleep(min(time.Until(end), 100*time.Millisecond))
	}
}

// call makes a request and tells its status and what Retry-After asks for.
func (p *pushers) call(method, url string, body []byte) (status int, after time.Duration, err error) {
	r, err := http.NewRequest(method, url, newReader(body))
	if err != nil {
		return 0, 0, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, 0, err
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return resp.StatusCode, time.Duration(seconds) * time.Second, nil
}

// ask reads a path again and again and notes how long each answer took.
func (p *pushers) ask(path string, into *[]time.Duration, pause time.Duration) {
	for !p.stop.Load() {
		begin := time.Now()
		status, _, err := p.call("GET", p.base+path, nil)
		took := time.Since(begin)
		if err == nil && status != http.StatusOK {
			err = errors.New("GET " + path + ": " + strconv.Itoa(status))
		}
		p.mu.Lock()
		if *into = append(*into, took); err != nil {
			p.failed = append(p.failed, err.Error())
		}
		p.mu.Unlock()
		time.Sleep(pause)
	}
}

// watch notes the process's memory, the size of its log, and the time from cycle to cycle.
func (p *pushers) watch() {
	s := &service{base: p.base}
	last, since := s.cycle(), time.Now()
	for n := 0; !p.stop.Load(); n++ {
		if now := s.cycle(); now != last {
			p.gaps = append(p.gaps, time.Since(since))
			last, since = now, time.Now()
		}
		if n%10 == 0 {
			p.resident = append(p.resident, p.memory())
		}
		if n%600 == 0 {
			p.log = append(p.log, sizeOf(filepath.Join(p.dir, "log")))
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.gaps = append(p.gaps, time.Since(since))
}

// memory is the resident memory of the service in MiB, 0 when it is not known.
func (p *pushers) memory() (mib int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	_, _ = fmt.Sscan(rest, &mib)
	return mib / 1024
}

// sizeOf adds up the files below a folder; files that are removed meanwhile do not count.
func sizeOf(dir string) (l logSize) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				l.files, l.bytes = l.files+1, l.bytes+info.Size()
			}
		}
		return nil
	})
	return l
}

// metric reads a figure of /metrics, of all labels together.
func (p *pushers) metric(name string) (v float64) {
	resp, err := http.Get(p.base + "/metrics")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	for line := range strings.Lines(string(text)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if of, _, _ := strings.Cut(series, "{"); of == name {
			var one float64
			_, _ = fmt.Sscan(value, &one)
			v += one
		}
	}
	return v
}

func (p *pushers) print(reclaimed float64) {
	fmt.Printf("\n%d snapshots taken, %d answers 429 (%d without Retry-After), %d cycles, %.0f units reclaimed\n\n",
		len(p.pushed), p.busy, p.rude, len(p.gaps), reclaimed)
	fmt.Printf("%-46s %9s %9s %9s %9s\n", "", "n", "p50 ms", "p99", "max")
	for _, row := range []struct {
		name string
		d    []time.Duration
	}{{"a snapshot, pushed until acknowledged", p.pushed}, {"from cycle to cycle", p.gaps}, {"reads", p.read},
		{"GET /healthz", p.health}} {
		if d := row.d; len(d) > 0 {
			slices.Sort(d)
			fmt.Printf("%-46s %9d %9.1f %9.1f %9.1f\n", row.name, len(d), ms(d[len(d)/2]), ms(d[len(d)*99/100]),
				ms(d[len(d)-1]))
		}
	}
	fmt.Printf("%-46s", "resident memory, MiB, quarter by quarter, most")
	for q := range 4 {
		part := p.resident[len(p.resident)*q/4 : len(p.resident)*(q+1)/4]
		if len(part) > 0 {
			fmt.Printf(" %9d", slices.Max(part))
		}
	}
	fmt.Println()
	fmt.Printf("%-46s", "decision log, every so often: files, MB")
	for i := 0; i < len(p.log); i += max(1, len(p.log)/12) {
		fmt.Printf("  %d, %.1f", p.log[i].files, float64(p.log[i].bytes)/1e6)
	}
	fmt.Println()
}
