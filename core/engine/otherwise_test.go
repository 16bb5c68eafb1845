package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stintd/stint/core/journal"
)

const ownersText = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /B}]
md_plans:
  - name: grid
    resource_groups: [{name: All}]
    consumers: [{path: /A, own: [{group: All, percent: 50}]}, {path: /B}]
`

// rewrite makes the journal of a rig that is stopped anew, each record as edit gives it.
func (r *rig) rewrite(edit func(kind byte, payload []byte) []byte) {
	r.t.Helper()
	j, err := journal.Open(r.dir, r.jo)
	if err != nil {
		r.t.Fatal(err)
	}
	dir := r.t.TempDir()
	to, err := journal.Open(dir, r.jo)
	if err == nil {
		err = to.Replay(func(journal.Record) error { return nil })
	}
	if err != nil {
		r.t.Fatal(err)
	}
	err = j.Replay(func(rec journal.Record) error {
		_, err := to.Append(rec.Kind, true, edit(rec.Kind, bytes.Clone(rec.Payload)), nil, "")
		return err
	})
	if err := errors.Join(err, j.Close(), to.Close()); err != nil {
		r.t.Fatal(err)
	}
	r.dir = dir
}

// records gives a function that edits the record of a cycle in JSON, for rewrite.
func records(edit func(c *cycleRecord)) func(byte, []byte) []byte {
	return func(kind byte, payload []byte) []byte {
		if kind != recordCycle {
			return payload
		}
		var c cycleRecord
		if err := json.Unmarshal(payload, &c); err != nil {
			panic(err)
		}
		edit(&c)
		return encodeCycle(&c)
	}
}

// TestQuietOwners has ownership alone change in a cycle, takes a checkpoint, and ends without one after the next cycle,
// in which nothing changes: what it recorded is what a start decides.
func TestQuietOwners(t *testing.T) {
	for _, hosts := range []string{"host,ncpus\nh1,16\nh2,16\n", ""} {
		r := newRig(t, func(r *rig) {
			r.o.CheckpointBytes = 1
			r.o.OnDifference = func(d Difference) error { t.Errorf("%+v", d); return nil }
		})
		r.must(InputPlan, "", ownersText)
		r.cycle()
		r.saved()
		r.must(InputHosts, "", "host,ncpus\nh1,16\nh2,16\n")
		assigned := r.cycle()
		if len(assigned.Ownership.Amount) == 0 || assigned.Summary.UnitsGranted > 0 {
			t.Fatal("more or less than ownership changed")
		}
		r.saved()
		if hosts == "" { // a second change of ownership alone, right behind
			r.must(InputHostChanges, "", "host,ncpus\nh3,16\n")
		}
		for range 3 {
			r.cycle()
		}
		r.saved()
		r.stop()
		for i := range 3 { // from each checkpoint that is kept, and from none
			r.start()
			if got := r.View().Last.Summary; got.Cycle != 5 {
				t.Errorf("start %d: cycle %d", i, got.Cycle)
			}
			r.stop()
			r.dropCheckpoint()
		}
	}
}

// dropCheckpoint removes the newest checkpoint, if there is one.
func (r *rig) dropCheckpoint() {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	newest := ""
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "checkpoint-") {
			newest = max(newest, e.Name())
		}
	}
	if newest != "" {
		if err := os.Remove(r.dir + "/" + newest); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestOldQuietDigest starts from journals that an older stint wrote: it recorded a cycle after one in which ownership
// alone changed with the digest of that one. The start tells of each, and goes on without being asked to.
func TestOldQuietDigest(t *testing.T) {
	var told bytes.Buffer
	var kept []Difference
	r := newRig(t, func(r *rig) {
		r.o.Log = slog.New(slog.NewTextHandler(&told, nil))
		r.o.OnDifference = func(d Difference) error { kept = append(kept, d); return nil }
	})
	r.must(InputPlan, "", ownersText)
	r.cycle()
	r.must(InputHosts, "", "host,ncpus\nh1,16\nh2,16\n")
	owned := r.cycle().Summary.Digest
	r.cycle()
	want := r.cycle().Summary.Digest
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n")
	last := r.cycle()
	r.stop()
	told.Reset()
	r.rewrite(records(func(c *cycleRecord) {
		if c.Digest == want { // cycles 3 and 4
			c.Digest = owned
		}
	}))
	r.start()
	if len(kept) != 2 || kept[0].Cycle != 3 || kept[1].Cycle != 4 || !kept[0].Known || kept[0].Decided != want ||
		kept[0].Recorded != owned {
		t.Errorf("%+v", kept)
	}
	if n := strings.Count(told.String(), "a record of the journal has a wrong digest"); n != 2 {
		t.Errorf("told of %d: %s", n, told.String())
	}
	if got := r.View().Last.Summary; got.Digest != last.Summary.Digest || r.View().resync != 0 {
		t.Error("what was decided is the same, and clients need not be told:", got)
	}
	if _, _, err := r.View().Changes("one", 4, 100); err != nil {
		t.Error(err)
	}
	r.stop()
	// A cycle in which something else changed too, with the digest of the one before: that is not the fault.
	r.rewrite(records(func(c *cycleRecord) {
		if c.Cycle == 5 {
			c.Digest = owned
		}
	}))
	if err := r.tryStart(); err == nil || !strings.Contains(err.Error(), "--accept-replay") {
		t.Error(err)
	}
}

// TestAcceptReplay starts with a journal that says otherwise than what is decided: not without being told to. Then both
// results are kept, inputs that do not fit any more are passed over, those who follow changes must read holdings, and
// the next start needs no permission.
func TestAcceptReplay(t *testing.T) {
	var kept []Difference
	keep := errors.New("no room to keep it")
	r := ready(t, func(r *rig) {
		r.o.OnDifference = func(d Difference) error {
			if keep == nil {
				kept = append(kept, d)
			}
			return keep
		}
	})
	r.cycle()
	r.must(InputReleases, "", "consumer,allocation,host,units,done\n/A,a,h1,1,true\n")
	last := r.cycle()
	r.stop()
	wrong := strings.Repeat("0", 64)
	r.rewrite(func(kind byte, payload []byte) []byte {
		if in, err := decodeInput(payload); kind == recordInput && err == nil && in.Kind == InputReleases {
			in.Body = bytes.Replace(in.Body, []byte("/A,a,"), []byte("/Z,a,"), 1) // of a consumer that there is not
			return append(encodeInput(in), in.Body...)
		}
		return records(func(c *cycleRecord) { c.Digest = wrong })(kind, payload)
	})
	err := r.tryStart()
	if err == nil || !strings.Contains(err.Error(), "cycle 1 decides otherwise than before") ||
		!strings.Contains(err.Error(), "--accept-replay") {
		t.Fatal(err)
	}
	r.o.AcceptReplay = true
	if err := r.tryStart(); !errors.Is(err, keep) {
		t.Fatal("a difference that cannot be kept is passed over:", err)
	}
	keep = nil
	r.start()
	if len(kept) != 3 || kept[0].Recorded != wrong || kept[0].Decided == wrong || kept[0].Known ||
		kept[1].Input != InputReleases || kept[1].Why == "" || kept[2].Cycle != 2 {
		t.Errorf("%+v", kept)
	}
	r.cycle()
	r.savedFrom(last.Summary.Cycle) // the start may be writing its own while the cycle ends
	compacted := func() {
		t.Helper()
		var e *Error
		if _, _, err := r.View().Changes("one", last.Summary.Cycle, 100); !errors.As(err, &e) || e.Kind != Compacted {
			t.Error("who followed the old cycles goes on as if nothing had happened:", err)
		}
		if _, _, err := r.View().Changes("one", last.Summary.Cycle+1, 100); err != nil {
			t.Error("who has read holdings cannot go on:", err)
		}
	}
	compacted()
	r.stop()
	r.o.AcceptReplay, kept = false, nil
	r.start()
	if len(kept) > 0 {
		t.Errorf("the next start meets the difference again: %+v", kept)
	}
	compacted()
}
