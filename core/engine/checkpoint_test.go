package engine

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/decision"
)

// often has a checkpoint come after every cycle.
func often(r *rig) { r.o.CheckpointBytes = 1 }

// TestCheckpointWork has a checkpoint come when a start would have much to do again, and not before.
func TestCheckpointWork(t *testing.T) {
	for _, c := range []struct {
		decoding time.Duration // of the input before each cycle
		want     bool
	}{{time.Second, false}, {3 * time.Hour, true}} {
		r := ready(t, func(r *rig) { r.o.CheckpointWork = 5 * time.Hour })
		for range 2 {
			in := &Input{Kind: InputDemand, Source: "one", Format: "csv", Decoding: c.decoding,
				Body: []byte("consumer,allocation,units,ncpus\n/A,a,1,1\n")}
			if err := r.o.Decode(in, []string{"ncpus"}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Submit(in); err != nil {
				t.Fatal(err)
			}
			r.cycle()
		}
		if c.want {
			r.saved()
		} else if got := r.Stats().Checkpoint.Cycle; got != 0 {
			t.Errorf("decoding took %s: a checkpoint of cycle %d", c.decoding, got)
		}
		r.stop()
	}
}

// saved waits until a checkpoint of the last cycle is on the disk. One must be due after every cycle: one that is being
// written while a cycle ends is not of that.
func (r *rig) saved() Checkpoint {
	r.t.Helper()
	return r.savedFrom(r.View().Cycle())
}

// savedFrom waits until a checkpoint of a cycle or a later one is on the disk.
func (r *rig) savedFrom(cycle int64) Checkpoint {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if c := r.Stats().Checkpoint; c.Cycle >= cycle {
			return c
		}
	}
	r.t.Fatalf("no checkpoint from cycle %d on: %+v", cycle, r.Stats().Checkpoint)
	return Checkpoint{}
}

// told is all that readers see, as text.
func (r *rig) told() string {
	r.t.Helper()
	var b strings.Builder
	table := func(name string, t *decision.Table) {
		fmt.Fprintf(&b, "%s %d\n", name, t.Rows)
		for row := range t.Rows {
			for i := range t.Columns {
				switch c := &t.Columns[i]; {
				case c.Null != nil && c.Null[row] || c.Code != nil && c.Code[row] == decision.Null:
					b.WriteString(" -")
				case c.Code != nil:
					fmt.Fprintf(&b, " %s", c.Dict.Bytes(c.Code[row]))
				case c.Int != nil:
					fmt.Fprintf(&b, " %d", c.Int[row])
				case c.Float != nil:
					fmt.Fprintf(&b, " %v", c.Float[row])
				}
			}
			b.WriteString("\n")
		}
	}
	v := r.View()
	for _, source := range []string{"", "one", "two"} {
		t, upTo, err := v.Changes(source, 0, 1000)
		fmt.Fprintln(&b, upTo, err)
		if err == nil {
			table("changes of "+source, t)
		}
	}
	table("holdings", &v.Holdings.Table)
	table("consumers", v.Consumers())
	for _, t := range v.Last.Tables() {
		table(t.Name, &t)
	}
	for _, c := range v.Recent {
		s := c.Summary
		s.Restated = false // the tables are made anew after a start, and say the same
		s.StageUS, s.StartedUS, s.FinishedUS = [7]int64{}, 0, 0
		fmt.Fprintf(&b, "%+v\n", s)
	}
	fmt.Fprintln(&b, v.Policy.Revision, v.Policy.Author, v.Policy.Message, v.Policy.AtUS, string(v.Policy.Text))
	return b.String()
}

// TestCheckpoint has an engine go on from a checkpoint, and another from all its records: they tell the same, and
// decide the same.
func TestCheckpoint(t *testing.T) {
	var told, digest []string
	for _, from := range []string{"checkpoint", "records", "an older checkpoint"} {
		r := ready(t, often)
		key := func(k string) func(*Input) { return func(in *Input) { in.Key = k } }
		r.cycle()
		r.saved()
		r.must(InputReleases, "", "consumer,allocation,host,units,done\n/A,a,h1,2,true\n", key("k1"))
		r.cycle()
		r.saved()
		r.must(InputPlan, "", strings.Replace(policyText, "{path: /B}", "{path: /B}, {path: /C}", 1), func(in *Input) {
			in.Author, in.Message = "me", "more"
		})
		r.must(InputDemand, "two", "consumer,allocation,units,ncpus\n/B,b,20,1\n/B,c,3,2\n")
		r.cycle()
		if c := r.saved(); c.Why != "" || c.Bytes < 1000 {
			t.Fatalf("%+v", c)
		}
		r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,9,1\n") // behind the checkpoint
		before := r.told()
		r.stop()
		files, err := filepath.Glob(filepath.Join(r.dir, "checkpoint-*"))
		if err != nil || len(files) != 2 {
			t.Fatal(files, err)
		}
		for i, name := range files {
			if from == "records" || from == "an older checkpoint" && i == 1 {
				if err := os.Truncate(name, 100); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.start()
		if got := len(r.passed); got != map[string]int{"checkpoint": 0, "records": 2, "an older checkpoint": 1}[from] ||
			(r.restored > 0) != (from != "records") {
			t.Errorf("%s: taken was %d, passed over were %v", from, r.restored, r.passed)
		}
		if after := r.told(); after != before {
			t.Errorf("%s: after a start\n%s\nbefore\n%s", from, after, before)
		}
		again := r.must(InputReleases, "", "consumer,allocation,host,units,done\n/A,a,h1,2,true\n", key("k1"))
		if !again.Repeated || again.Released != 2 {
			t.Errorf("%s: the key is forgotten: %+v", from, again)
		}
		for range 3 {
			r.cycle()
		}
		told = append(told, r.told())
		digest = append(digest, fmt.Sprint(r.View().Last.Summary.Digest))
		r.stop()
		if n := len(r.log.digests); n != 6 || r.log.digests[5] != digest[0] || r.log.inputs != 8 {
			t.Errorf("%s: %d cycles and %d inputs in the log", from, n, r.log.inputs)
		}
	}
	if told[0] != told[1] || told[0] != told[2] {
		t.Errorf("going on from a checkpoint\n%s\nfrom records\n%s", told[0], told[1])
	}
}

// TestCheckpointWaitsForTheLog has a log that cannot be written: no checkpoint passes the cycles that it lacks.
func TestCheckpointWaitsForTheLog(t *testing.T) {
	r := ready(t, func(r *rig) {
		often(r)
		r.o.BacklogCyclesMax, r.o.BacklogRetryDelay = 4, 1
		r.jo.SegmentBytesMax = 300
	})
	r.cycle()
	r.saved()
	r.log.mu.Lock()
	r.log.fail = io.ErrShortWrite
	r.log.mu.Unlock()
	for range 10 {
		r.cycle()
	}
	if c := r.Stats().Checkpoint; c.Cycle > 1 {
		t.Errorf("a checkpoint of cycle %d, the log ends with cycle 1", c.Cycle)
	}
	r.log.mu.Lock()
	r.log.fail = nil
	r.log.mu.Unlock()
	r.restart()
	if r.restored == 0 {
		t.Error("the checkpoint of cycle 1 was not taken:", r.passed)
	}
	r.cycle()
	r.saved()
	r.stop()
	if n := len(r.log.digests); n != 12 {
		t.Error(n, "cycles in the log after all")
	}
	whole := r.log.digests
	r.log.digests = whole[:5:5]
	r.start() // from the checkpoint of cycle 1
	if len(r.passed) != 1 || r.restored == 0 {
		t.Error(r.restored, r.passed)
	}
	for range 2 {
		r.cycle()
		r.saved()
	}
	r.stop()
	if n := len(r.log.digests); n != 14 || r.log.digests[8] != whole[8] {
		t.Error(n, "cycles in the log after all")
	}
	r.log.digests = nil
	if err := r.tryStart(); err == nil || !strings.Contains(err.Error(),
		"it is of cycle 14 and the decision log ends with cycle 0") ||
		!strings.Contains(err.Error(), "a segment is missing before it") {
		t.Error("a log that lacks cycles:", err)
	}
}

// TestCheckpointAtEnd has an engine end with input that no cycle has seen: the next one decides no cycle again, and the
// log gets the input with its cycle.
func TestCheckpointAtEnd(t *testing.T) {
	r := ready(t, nil)
	r.cycle()
	r.cycle()
	r.o.CheckpointAtEnd = true
	r.restart() // decides them again, and ends without another
	r.restart()
	if r.restored == 0 {
		t.Error("no checkpoint:", r.passed)
	}
	r.cycle()
	last := r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,9,1\n", func(in *Input) { in.Key = "k" })
	before := r.told()
	r.restart()
	if r.restored != last.Seq || r.told() != before {
		t.Errorf("restored by record %d of %d, %v\n%s\nbefore\n%s", r.restored, last.Seq, r.passed, r.told(), before)
	}
	if again := r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,9,1\n",
		func(in *Input) { in.Key = "k" }); !again.Repeated {
		t.Error(again)
	}
	r.cycle()
	if got := r.held("one"); got != 9 {
		t.Errorf("%d held", got)
	}
	r.stop()
	if len(r.log.digests) != 4 || r.log.inputs != 5 {
		t.Error(len(r.log.digests), "cycles and", r.log.inputs, "inputs in the log")
	}
}

// TestEndWithoutLog ends an engine while a checkpoint waits for a log that cannot be written.
func TestEndWithoutLog(t *testing.T) {
	r := ready(t, func(r *rig) {
		often(r)
		r.o.CheckpointAtEnd = true
	})
	r.log.mu.Lock()
	r.log.fail = io.ErrShortWrite
	r.log.mu.Unlock()
	r.cycle()
	r.stop()
	r.log.fail = nil
	r.start()
	if r.restored != 0 || r.View().Cycle() != 1 {
		t.Error(r.restored, r.View().Cycle())
	}
	r.stop()
	if len(r.log.digests) != 1 {
		t.Error(len(r.log.digests), "cycles in the log")
	}
}

// TestCheckpointFails has no room for a checkpoint: the service goes on, and the next one comes.
func TestCheckpointFails(t *testing.T) {
	full := true
	r := ready(t, func(r *rig) {
		often(r)
		r.jo.Step = func(op, _ string) error {
			if full && op == "checkpoint_write" {
				return io.ErrShortWrite
			}
			return nil
		}
	})
	r.cycle()
	if c := r.saved(); !strings.Contains(c.Why, io.ErrShortWrite.Error()) {
		t.Errorf("%+v", c)
	}
	full = false
	r.cycle()
	if c := r.saved(); c.Why != "" {
		t.Errorf("%+v", c)
	}
}

// TestSavesEachField has each field of an engine be saved, or stand here with why it is not.
func TestSavesEachField(t *testing.T) {
	saved := "state keys sources guarded policy inForce pending frozen recent lastSeq"
	other := "rows: of recent; o queue requests gate closed stopping view lane waiting accepted acceptedRows " +
		"acceptedBytes journalBytes saved healthy behindUS watch following differs compared heardUS: of the process; " +
		"runner out digested recorded batch soughtUS recentNames time: what they know is found out again; saving " +
		"prepared spare savedCycle sinceBytes sinceWork sinceUS cycleSeq differed resync told whole: begin with the " +
		"process;"
	for i := range reflect.TypeFor[Engine]().NumField() {
		name := reflect.TypeFor[Engine]().Field(i).Name
		if words := strings.FieldsFunc(saved+" "+other,
			func(r rune) bool { return strings.ContainsRune(" :;", r) }); !strings.Contains(" "+strings.Join(words,
			" ")+" ", " "+name+" ") {
			t.Errorf("the field %s is neither saved nor known to be needless", name)
		}
	}
}
