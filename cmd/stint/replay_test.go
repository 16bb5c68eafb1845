package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/scenario"
	"github.com/stintd/stint/export"
)

// recordAlways plays a scenario into a log that has the state after every cycle; false when it cannot be played.
func recordAlways(t *testing.T, s *scenario.Scenario, to func(recorder) scenario.Recorder) (dir string, ok bool) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	w, err := export.Open(dir, export.Options{Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, err = s.Record(to(recorder{log: w, always: true, status: func(string) {}}))
	return dir, err == nil
}

func plainly(r recorder) scenario.Recorder { return &r }

// replayed replays a log from a cycle on, as the command does.
func replayed(r *export.Reader, dir string, from int64) (compared int, err error) {
	b, cycles := newReplay(), r.Cycles()
	if err := b.restore(r, dir, from); err != nil {
		return 0, err
	}
	err = b.run(r, dir, cycles[len(cycles)-1], io.Discard, func(o *otherwise, n int64) error {
		if o != nil {
			return fmt.Errorf("from %d: %w", from, o)
		}
		if n >= from {
			compared++
		}
		return nil
	})
	return compared, err
}

// TestReplayFromStates replays every scenario of the project from its cycles on, each time from the state saved before:
// all that follows must decide what was logged. Of long ones it takes a few. Outside of a soak it takes every fifth
// scenario.
func TestReplayFromStates(t *testing.T) {
	if logs := replayStates(t, everyFifth(cases(t))); logs < 100 {
		t.Errorf("%d logs only", logs)
	}
}

// everyFifth are every fifth scenario, in a soak all.
func everyFifth(all []*scenario.Scenario) (some []*scenario.Scenario) {
	for i, s := range all {
		if i%5 == 0 || os.Getenv("STINT_SCENARIOS") != "" {
			some = append(some, s)
		}
	}
	return some
}

// TestSoakReplay does the same for the scenario files in STINT_SCENARIOS.
func TestSoakReplay(t *testing.T) {
	dir := os.Getenv("STINT_SCENARIOS")
	if dir == "" {
		t.Skip("STINT_SCENARIOS names no folder of scenario files: make soak writes one")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in %s: %v", dir, err)
	}
	for _, file := range files {
		scenarios, err := scenario.Load(file)
		if err != nil {
			t.Errorf("%v", err)
		}
		replayStates(t, scenarios)
	}
}

func replayStates(t *testing.T, all []*scenario.Scenario) (logs int) {
	t.Helper()
	ranges := 0
	for _, s := range all {
		dir, ok := recordAlways(t, s, plainly)
		if !ok {
			continue
		}
		name := fmt.Sprintf("%s:%d: %s", s.File, s.Line, s.Name)
		r, err := export.OpenLog(dir)
		if err != nil {
			t.Fatal(err)
		}
		cycles := r.Cycles()
		if states := r.States(); len(states) != len(cycles) {
			t.Fatalf("%s: %d states of %d cycles", name, len(states), len(cycles))
		}
		step := max(1, len(cycles)/3)
		for i := 0; i < len(cycles); i += step {
			n, err := replayed(r, dir, cycles[i])
			if err != nil || n != len(cycles)-i {
				t.Errorf("%s: from cycle %d: %d compared of %d: %v", name, cycles[i], n, len(cycles)-i, err)
			}
			ranges++
		}
		logs++
		os.RemoveAll(dir)
	}
	t.Logf("%d logs, %d ranges", logs, ranges)
	return logs
}

// lastOf is the scenario of a file with the most steps, in a log with all states, and its cycles.
func lastOf(t *testing.T, to func(recorder, int64) scenario.Recorder) (dir string, last int64) {
	t.Helper()
	scenarios, err := scenario.Load("../../testdata/cases/reclaim.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		dir, ok := recordAlways(t, s, plainly)
		r, err := export.OpenLog(dir)
		if err != nil || !ok {
			t.Fatal(err)
		}
		if cycles := r.Cycles(); len(cycles) > 3 {
			last := cycles[len(cycles)-1]
			dir, _ := recordAlways(t, s, func(r recorder) scenario.Recorder { return to(r, last) })
			return dir, last
		}
	}
	t.Fatal("no scenario has enough cycles")
	return "", 0
}

// TestReplayLate finds a cycle that decided otherwise though replay begins just
// before it, and none when it begins after it.
func TestReplayLate(t *testing.T) {
	dir, last := lastOf(t, func(r recorder, last int64) scenario.Recorder { return &liar{r, last - 1} })
	var stdout, stderr bytes.Buffer
	for _, c := range []struct {
		from, code int
		says       string
	}{
		{int(last) - 1, exitFound, fmt.Sprintf("FAIL cycle %d: it decides otherwise", last-1)},
		{int(last) - 2, exitFound, "3 compared, 1 otherwise"},
		{int(last), 0, fmt.Sprintf("(from the state after cycle %d, ", last-1)},
	} {
		stdout.Reset()
		code := execute([]string{"replay", "--log", dir, "--from", fmt.Sprint(c.from)}, &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String(), c.says) {
			t.Errorf("from %d: exit code %d\n%s%s", c.from, code, stdout.String(), stderr.String())
		}
	}
}

// TestReplayDamagedState flips a bit in a saved state, cuts it short and takes it away: verify
// finds each, and replay does not begin with it.
func TestReplayDamagedState(t *testing.T) {
	dir, last := lastOf(t, func(r recorder, _ int64) scenario.Recorder { return &r })
	paths, err := filepath.Glob(filepath.Join(dir, "blobs", "states", "*", fmt.Sprintf("cycle-%012d.zst", last-1)))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%q: %v", paths, err)
	}
	whole, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	replay := func() (int, string) {
		var stdout, stderr bytes.Buffer
		code := execute([]string{"replay", "--log", dir, "--from", fmt.Sprint(last)}, &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	verify := func() (int, string) {
		var stdout, stderr bytes.Buffer
		code := execute([]string{"verify", "--log", dir, "--output", "json"}, &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for _, content := range [][]byte{flipped, whole[:len(whole)-1], {}} {
		if err := os.WriteFile(paths[0], content, 0o644); err != nil {
			t.Fatal(err)
		}
		if code, text := replay(); code != exitUsage || !strings.Contains(text, paths[0]+": damaged: its digest is ") ||
			!strings.Contains(text, "is of no use") {
			t.Errorf("exit code %d: %s", code, text)
		}
		if code, text := verify(); code != exitFound || !strings.Contains(text, paths[0]+": damaged: its digest is ") {
			t.Errorf("exit code %d: %s", code, text)
		}
	}
	if err := os.Remove(paths[0]); err != nil {
		t.Fatal(err)
	}
	if code, text := replay(); code != 0 || !strings.Contains(text,
		fmt.Sprintf("1 compared, 0 otherwise (from the state after cycle %d, ", last-2)) {
		t.Errorf("exit code %d: %s", code, text)
	}
	if code, text := verify(); code != exitFound ||
		!strings.Contains(text, fmt.Sprintf("the saved state of cycle %d is missing", last-1)) {
		t.Errorf("exit code %d: %s", code, text)
	}
}

// TestLoadFrame loads no state from bytes that are none, however they are cut.
func TestLoadFrame(t *testing.T) {
	dir, last := lastOf(t, func(r recorder, _ int64) scenario.Recorder { return &r })
	r, err := export.OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := r.State(last)
	if err != nil {
		t.Fatal(err)
	}
	policy := func(digest string) (*plan.Policy, error) {
		content, err := r.InputContent(kindPlan, digest)
		if err != nil {
			return nil, err
		}
		return plan.Parse("plan", content)
	}
	if _, err := cluster.LoadFrame(whole, policy); err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if _, err := cluster.LoadFrame(whole[:n], policy); err == nil {
			t.Errorf("%d of %d bytes are a state", n, len(whole))
		}
	}
	if _, err := cluster.LoadFrame(append(bytes.Clone(whole), 0), policy); err == nil {
		t.Error("a byte too many is no error")
	}
}
