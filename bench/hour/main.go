// Command hour has `stint serve` run for an hour with a cycle a second, while feeds push, units are given back, hosts
// change, policies are put and readers read. It prints memory, open files, what lies on the disk after compaction and
// how long reads take, part by part of the hour, and fails when one of them goes on growing.
//
//	go run ./bench/hour -stint bin/stint -minutes 60
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stintd/stint/bench/measure"
)

// partsCount is how many parts the hour is told in. Each has a compaction and a checkpoint.
const partsCount = 12

func main() {
	stint := flag.String("stint", "bin/stint", "the binary that serves")
	minutes := flag.Int("minutes", 60, "how long it runs, at least 6")
	address := flag.String("listen", "127.0.0.1:17490", "where it listens")
	keep := flag.String("keep", "", "an empty folder for its data, which stays; without one it is removed at the end")
	flag.Parse()
	log.SetFlags(0)
	if *minutes < partsCount/2 || flag.NArg() > 0 {
		log.Fatal("usage: hour [-stint FILE] [-minutes N, at least 6] [-listen ADDRESS] [-keep FOLDER]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *stint, *address, *keep, time.Duration(*minutes)*time.Minute); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, stint, address, keep string, long time.Duration) error {
	dir := keep
	if dir == "" {
		temporary, err := os.MkdirTemp("", "stint-hour-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		dir = temporary
	}
	part := long / partsCount
	s, err := start(ctx, stint, address, dir, part)
	if err != nil {
		return err
	}
	fmt.Printf("%s of stint serve, a cycle a second: %d hosts, %d feeds of %d rows, %d readers\n", long, hostsCount,
		feedsCount, feedRows, len(reads))
	fmt.Printf("%s, load %s\n\n", measure.Here(), load())
	h := &hour{s: s, part: part}
	if err := h.play(ctx, long); err != nil {
		s.kill()
		return err
	}
	fmt.Printf("load %s at the end\n", load())
	if err := s.stop(); err != nil {
		return fmt.Errorf("the service did not end well: %w", err)
	}
	return h.verdict()
}

// service is the process that is watched.
type service struct {
	base    string
	dir     string
	process *exec.Cmd
	ended   chan error
}

// start has the service listen, with a compaction and a checkpoint every so often. What it says beyond warnings goes to
// service.log in its folder.
func start(ctx context.Context, stint, address, dir string, every time.Duration) (*service, error) {
	config := filepath.Join(dir, "serve.yaml")
	text := fmt.Sprintf("data: %s\nlisten: %s\ninterval: 1s\ncheckpoint: {interval: %s}\nlog: {compact: %s}\n",
		filepath.Join(dir, "data"), address, every, every)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(dir, "service.log"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s := &service{base: "http://" + address, dir: filepath.Join(dir, "data"), ended: make(chan error, 1)}
	s.process = exec.Command(stint, "serve", "--config", config)
	s.process.Stdout, s.process.Stderr = out, out
	// an interrupt is for this program, which ends the service
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	go func() { s.ended <- s.process.Wait() }()
	for range 100 {
		if s.healthy(ctx) {
			return s, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.kill()
	text2, _ := os.ReadFile(out.Name())
	return nil, fmt.Errorf("the service does not answer:\n%s", text2)
}

func (s *service) healthy(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, "GET", s.base+"/healthz", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func (s *service) kill() {
	_ = s.process.Process.Kill()
	<-s.ended
}

// stop ends the service as its unit does.
func (s *service) stop() error {
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-s.ended:
		return err
	case <-time.After(time.Minute):
		s.kill()
		return errors.New("still there a minute after SIGTERM")
	}
}

// load is the load average of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
