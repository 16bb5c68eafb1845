package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/journal"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

const policyText = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /B}, {path: /Sys, system: true}]
md_plans:
  - {name: grid, resource_groups: [{name: All}], consumers: [{path: /A}, {path: /B}, {path: /Sys}]}
`

// decode is what the service does with an input before it submits it, and again after a crash.
func decode(in *Input, dimensions []string) (err error) {
	if in.bare() {
		return nil
	}
	if in.Kind == InputPlan {
		in.Policy, err = plan.Parse("plan", in.Body)
		return err
	}
	format, err := table.ParseFormat(in.Format)
	if err != nil {
		return err
	}
	o := table.Options{Name: in.Kind, Format: format, Dimensions: dimensions}
	switch r := bytes.NewReader(in.Body); in.Kind {
	case InputHosts, InputHostChanges:
		var t *cluster.HostTable
		if t, err = table.ReadHosts(r, o); err == nil {
			in.Table, in.Rows = t, int64(t.Rows)
		}
	case InputDemand, InputDemandChanges:
		var t *cluster.DemandTable
		if t, err = table.ReadDemand(r, o); err == nil {
			in.Table, in.Rows = t, int64(t.Rows)
		}
	default:
		var t *cluster.HoldingTable
		if t, err = table.ReadHoldings(r, o, in.Kind == InputReleases); err == nil {
			in.Table, in.Rows = t, int64(t.Rows)
		}
	}
	return err
}

// rig is an engine with a journal on disk and a log in memory, that can be crashed and started again.
type rig struct {
	*Engine
	t       testing.TB
	dir     string
	o       Options
	jo      journal.Options
	journal journal.Store
	open    func() (journal.Store, error) // nil: the folder
	log     *memoryLog
	now     atomic.Int64
	checks  bool // inputs are looked at alone

	restored uint64 // the checkpoint of the last start
	passed   []error
	cancel   func()
	ended    chan error
}

// memoryLog is a decision log in memory.
type memoryLog struct {
	mu      sync.Mutex
	fail    error
	digests []string
	inputs  int
}

func (l *memoryLog) Last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.digests))
}

func (l *memoryLog) Cycle(c *decision.Cycle, inputs []*Input) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	if c.Summary.Cycle != int64(len(l.digests))+1 {
		return fmt.Errorf("cycle %d after %d", c.Summary.Cycle, len(l.digests))
	}
	l.digests = append(l.digests, decision.Digest(c.Tables()))
	l.inputs += len(inputs)
	return nil
}

func newRig(t testing.TB, edit func(*rig)) *rig {
	r := &rig{t: t, dir: t.TempDir(), log: &memoryLog{}}
	r.now.Store(1_000_000_000_000)
	r.o = Options{ManualOnly: true, Decode: decode, Clock: r.now.Load, Elapsed: func() int64 { return 0 },
		IsFull: func(err error) bool { return errors.Is(err, journal.ErrFull) }, Exporter: r.log}
	if edit != nil {
		edit(r)
	}
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *rig) start() {
	r.t.Helper()
	if err := r.tryStart(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) tryStart() (err error) {
	if r.open != nil {
		r.journal, err = r.open()
	} else {
		r.journal, err = journal.Open(r.dir, r.jo)
	}
	if err != nil {
		return err
	}
	r.o.Journal = r.journal
	e := New(r.o)
	if r.restored, r.passed, err = r.journal.Restore(e.Restore); err != nil {
		e.Abandon()
		return errors.Join(err, r.journal.Close())
	}
	err = r.journal.Replay(func(rec journal.Record) error {
		err := e.Replay(rec.Seq, rec.Kind, rec.Payload)
		if errors.Is(err, ErrRefused) {
			return fmt.Errorf("%w: %w", journal.ErrRefused, err)
		}
		return err
	})
	if err == nil {
		err = e.Recovered()
	}
	if err != nil {
		return errors.Join(err, r.journal.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	if shared, ok := r.journal.(journal.Shared); ok {
		if err := follow(ctx, e, shared); err != nil {
			cancel()
			return errors.Join(err, r.journal.Close())
		}
	}
	r.Engine, r.cancel, r.ended = e, cancel, make(chan error, 1)
	go func() { r.ended <- e.Run(ctx) }()
	return nil
}

// stop ends the engine as SIGTERM does.
func (r *rig) stop() {
	r.t.Helper()
	if r.Engine == nil {
		return
	}
	r.cancel()
	if err := <-r.ended; err != nil {
		r.t.Error("ended with:", err)
	}
	r.Engine = nil
	if err := r.journal.Close(); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) restart() {
	r.t.Helper()
	r.stop()
	r.start()
}

// give submits rows of CSV, or a plan.
func (r *rig) give(kind, source, text string, edit ...func(*Input)) (Receipt, error) {
	sum := sha256.Sum256([]byte(text))
	in := &Input{Kind: kind, Source: source, Format: "csv", Body: []byte(text), Digest: hex.EncodeToString(sum[:])}
	var dimensions []string
	if p := r.View().Policy; p != nil {
		dimensions, in.Policy = p.Policy.Dimensions, p.Policy
	}
	if err := decode(in, dimensions); err != nil {
		r.t.Helper()
		r.t.Fatal(err)
	}
	for _, f := range edit {
		f(in)
	}
	if r.checks {
		return Receipt{}, r.Check(in)
	}
	return r.Submit(in)
}

func (r *rig) must(kind, source, text string, edit ...func(*Input)) Receipt {
	r.t.Helper()
	receipt, err := r.give(kind, source, text, edit...)
	if err != nil {
		r.t.Fatal(err)
	}
	return receipt
}

func (r *rig) refused(want Kind, kind, source, text string, edit ...func(*Input)) {
	r.t.Helper()
	_, err := r.give(kind, source, text, edit...)
	var e *Error
	if !errors.As(err, &e) || e.Kind != want {
		r.t.Errorf("%s of %q: got %v, expected a refusal of kind %s", kind, source, err, want)
	}
}

func (r *rig) cycle() *decision.Cycle {
	r.t.Helper()
	r.now.Add(1_000_000)
	if err := r.Cycle(); err != nil {
		r.t.Fatal(err)
	}
	return r.View().Last
}

// held is the units held by source, from the view's holdings.
func (r *rig) held(source string) (units int64) {
	h := r.View().Holdings
	if h.Cycle != r.View().Cycle() {
		r.t.Errorf("holdings of cycle %d after cycle %d", h.Cycle, r.View().Cycle())
	}
	return unitsOf(h, source)
}

func unitsOf(h *Holdings, source string) (units int64) {
	by := h.Table.Column("source")
	for row, n := range h.Table.Column("units").Int {
		if string(by.Dict.Bytes(by.Code[row])) == source {
			units += n
		}
	}
	return units
}

// ready has a plan, two hosts of 8, and 6 units wanted by each of two sources.
func ready(t testing.TB, edit func(*rig)) *rig {
	r := newRig(t, edit)
	r.must(InputPlan, "", policyText)
	r.must(InputHosts, "", "host,ncpus\nh1,8\nh2,8\n")
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n")
	r.must(InputDemand, "two", "consumer,allocation,units,ncpus\n/B,b,6,1\n")
	return r
}

func TestCycles(t *testing.T) {
	r := ready(t, nil)
	if v := r.View(); v.Cycle() != 0 || v.Holdings != nil || v.Policy.Revision != 1 {
		t.Error("before the first cycle:", v)
	}
	c := r.cycle()
	if c.Summary.UnitsGranted != 12 || r.held("one") != 6 || r.held("two") != 6 {
		t.Error("first cycle:", c.Summary, r.held("one"))
	}
	first := r.View()
	r.must(InputDemandChanges, "one", "consumer,allocation,units,ncpus\n/A,a,2,1\n/A,more,1,3\n",
		func(in *Input) { in.AllowShrink = true })
	receipt := r.must(InputReleases, "", "consumer,allocation,host,units,done\n/B,b,h1,1,true\n/B,b,h2,9,false\n")
	if receipt.Beyond+receipt.Released != 10 {
		t.Error(receipt)
	}
	r.cycle()
	if unitsOf(first.Holdings, "one") != 6 {
		t.Error("an old view changed")
	}
	if got := r.held("one"); got != 3 {
		t.Errorf("one holds %d", got)
	}
	for range 3 {
		r.cycle()
	}
	want := r.View().Last.Summary
	r.restart()
	got := r.View().Last.Summary
	if got.Cycle != want.Cycle || got.Digest != want.Digest || got.NowUS != want.NowUS || r.held("one") != 3 {
		t.Errorf("after a restart %v, before %v", got, want)
	}
	r.cycle()
	r.stop()
	if n := len(r.log.digests); n != 6 || r.log.inputs != 6 {
		t.Error(n, "cycles in the log,", r.log.inputs, "inputs")
	}
}

func TestChanges(t *testing.T) {
	r := ready(t, func(r *rig) { r.o.RecentCyclesMax = 3 })
	r.cycle()
	read := func(source string, since int64) string {
		t.Helper()
		got, upTo, err := r.View().Changes(source, since, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if upTo != r.View().Cycle() {
			t.Errorf("up to cycle %d of %d", upTo, r.View().Cycle())
		}
		var lines []string
		for row := range got.Rows {
			text := func(c string) string { return string(got.Column(c).Dict.Bytes(got.Column(c).Code[row])) }
			lines = append(lines, fmt.Sprintf("%d %s %s %s %s %d", got.Column("cycle").Int[row], text("change"),
				text("plan"), text("consumer"), text("host"), got.Column("units").Int[row]))
		}
		return strings.Join(lines, "\n")
	}
	if got := read("one", 0); got != "1 grant grid /A h1 6" {
		t.Error(got)
	}
	if got := read("", 0); got != "1 grant grid /A h1 6\n1 grant grid /B h1 2\n1 grant grid /B h2 4" {
		t.Error(got)
	}
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,3,1\n/A,x,1,2\n")
	r.cycle()
	if got := read("one", 1); got != "2 release grid /A h1 3\n2 grant grid /A h1 1" {
		t.Error(got)
	}
	if got := read("two", 1); got != "" {
		t.Error(got)
	}
	if got, upTo, err := r.View().Changes("", 0, 1); err != nil || upTo != 1 || got.Rows != 3 {
		t.Error("a cycle is split, or more than one comes:", upTo, err)
	}
	r.cycle()
	r.cycle()
	var e *Error
	if _, _, err := r.View().Changes("one", 0, 10); !errors.As(err, &e) || e.Kind != Compacted {
		t.Error(err)
	}
	if _, _, err := r.View().Changes("one", 99, 10); !errors.As(err, &e) || e.Kind != Future {
		t.Error(err)
	}
	if got := read("one", 4); got != "" {
		t.Error(got)
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.SourcesMax = 2 })
	r.refused(NoPlan, InputHosts, "", "host,ncpus\nh1,8\n")
	if err := r.Cycle(); err == nil {
		t.Error("a cycle without a policy")
	}
	r.must(InputPlan, "", policyText)
	r.must(InputHosts, "", "host,ncpus\nh1,8\nh2,8\n")
	r.refused(BadRows, InputDemand, "one", "consumer,allocation,units,ncpus\n/Nobody,a,6,1\n")
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n")
	r.refused(BadRows, InputDemand, "two", "consumer,allocation,units,ncpus\n/A,a,6,1\n")
	r.must(InputDemand, "two", "consumer,allocation,units,ncpus\n/B,b,6,1\n")
	r.refused(TooMany, InputDemand, "three", "consumer,allocation,units,ncpus\n/B,c,6,1\n")
	r.cycle()
	r.refused(Shrink, InputDemand, "one", "consumer,allocation,units,ncpus\n")
	r.refused(Shrink, InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,2,1\n")
	r.refused(BadRows, InputDemand, "one", "consumer,allocation,units,ncpus\n/Nobody,a,2,1\n")
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,3,1\n")
	r.refused(Shrink, InputHosts, "", "host,ncpus\nh9,8\n")
	r.must(InputDemand, "two", "consumer,allocation,units,ncpus\n", func(in *Input) { in.AllowShrink = true })
	r.refused(Revision, InputPlan, "", policyText, func(in *Input) { in.IfRevision = 7 })
	r.refused(BadPlan, InputPlan, "",
		strings.ReplaceAll(strings.ReplaceAll(policyText, ", {path: /Sys, system: true}", ""), ", {path: /Sys}", ""))
	if got := r.must(InputPlan, "", strings.Replace(policyText, "interval", "interval", 1),
		func(in *Input) { in.IfRevision = 1 }); got.Revision != 2 {
		t.Error(got)
	}
	last := r.cycle().Summary
	r.restart()
	if got := r.View().Last.Summary; got.Digest != last.Digest || got.Cycle != last.Cycle {
		t.Error("refused inputs left something behind:", got, last)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	r := ready(t, func(r *rig) { r.o.KeysPerSourceMax = 3 })
	r.cycle()
	key := func(k string) func(*Input) { return func(in *Input) { in.Key = k } }
	rows := "consumer,allocation,host,units,done\n/A,a,h1,2,true\n"
	first := r.must(InputReleases, "", rows, key("k1"))
	r.restart()
	again := r.must(InputReleases, "", rows, key("k1"))
	if !again.Repeated || again.Seq != first.Seq || again.Released != 2 || first.Repeated {
		t.Error(first, again)
	}
	r.refused(KeyReused, InputReleases, "", rows+"\n", key("k1"))
	r.cycle()
	if got := r.held("one"); got != 4 {
		t.Errorf("%d held: a repeated release counted twice", got)
	}
	r.now.Add(keyTTLUS)
	if got := r.must(InputReleases, "", rows, key("k1")); got.Repeated {
		t.Error("a key is remembered for more than a day")
	}
	for i := range 3 {
		r.must(InputReleases, "", rows, key(fmt.Sprint("n", i)))
	}
	if got := r.must(InputReleases, "", rows, key("k1")); got.Repeated {
		t.Error("more keys are remembered than allowed")
	}
}

func TestSilentSource(t *testing.T) {
	r := ready(t, func(r *rig) { r.o.SourceTTLUS = 10_000_000 })
	r.cycle()
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n/A,big,1,100\n")
	r.now.Add(9_000_000)
	r.must(InputDemandChanges, "two", "consumer,allocation,units,ncpus\n/B,b,6,1\n")
	r.cycle()
	r.now.Add(1_000_000)
	r.must(InputHosts, "", "host,ncpus\nh1,8\nh2,8\nh3,100\n")
	c := r.cycle()
	if c.Summary.UnitsGranted != 0 || r.held("one") != 6 {
		t.Error("a silent source:", c.Summary.UnitsGranted, r.held("one"))
	}
	r.refused(Silent, InputDemandChanges, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n")
	r.restart()
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n/A,big,1,100\n")
	if c := r.cycle(); c.Summary.UnitsGranted != 1 {
		t.Error("heard again:", c.Summary.UnitsGranted)
	}
}

// branch may speak for one consumer.
type branch string

func (b branch) MayDemand(_ *plan.Policy, consumer string) bool { return consumer == string(b) }

func (b branch) MayPlan(*plan.Policy, []byte, []byte) error { return errors.New("not the plan") }

func TestPrincipals(t *testing.T) {
	r := ready(t, nil)
	as := func(b branch) func(*Input) { return func(in *Input) { in.Principal = b } }
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n", as("/A"))
	r.refused(Forbidden, InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n/B,b2,1,1\n", as("/A"))
	r.refused(Forbidden, InputDemand, "one", "consumer,allocation,units,ncpus\n/B,b2,1,1\n", as("/B"))
	r.refused(Forbidden, InputHosts, "", "host,ncpus\nh1,8\n", as("/A"))
	r.refused(Forbidden, InputPlan, "", policyText, as("/A"))
	r.cycle()
	r.refused(Forbidden, InputReleases, "", "consumer,allocation,host,units\n/A,a,h1,1\n", as("/B"))
	r.must(InputReleases, "", "consumer,allocation,host,units\n/A,a,h1,1\n", as("/A"))
}

// anybody is a principal who may change any policy file, and is still no cluster administrator.
type anybody struct{}

func (anybody) MayDemand(*plan.Policy, string) bool        { return true }
func (anybody) MayPlan(*plan.Policy, []byte, []byte) error { return nil }

// TestSystemServices loses a system service in all ways that a policy file has for
// it (PLAN-6): none is taken, forced or not.
func TestSystemServices(t *testing.T) {
	r := ready(t, nil)
	force := func(in *Input) { in.Force = true }
	text := policyText + `slot_plans:
  - resource_group: Mg
    consumers: [{path: /Sys, policy: ownership, owns: 2}, {path: /Sys/a, owns: 1}, {path: /Sys/b, owns: 1}]
    windows: [{name: day, hours: "08:00-20:00"}, {name: night, hours: "20:00-08:00", consumers: [{path: /Sys/a, owns: 1}]}]
`
	text = strings.NewReplacer("resource_groups: [{name: All,",
		"resource_groups: [{name: Mg, hosts: [m1], slots: 4}, {name: All,",
		"system: true}]", "system: true}, {path: /Sys/a}, {path: /Sys/b}]").Replace(text)
	r.must(InputPlan, "", text)
	edit := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	last := r.View().Policy.Revision
	for _, less := range []string{
		edit(", {path: /Sys/b}]", "]", ", {path: /Sys/b, owns: 1}", ""),                       // a leaf
		edit(", {path: /Sys}]}", "]}"),                                                        // its place in a plan
		edit(", system: true", "", ", {path: /Sys/b}]", "]", ", {path: /Sys/b, owns: 1}", ""), // what it is as well
	} {
		r.refused(BadPlan, InputPlan, "", less, force)
	}
	for _, less := range []string{ // such files are refused whatever comes before them
		edit("/Sys/b, owns: 1", "/Sys/b, owns: 0"),                       // its slot
		edit(", {path: /Sys/b, owns: 1}", ""),                            // its place in its only plan
		edit("{path: /Sys/a, owns: 1}]}]", "{path: /Sys/a, owns: 0}]}]"), // its slot in a window
		edit("/Sys/b, owns: 1", "/Sys/b, owns: 1, lend: {limit: 1}"),     // the last one is lent
	} {
		if _, err := plan.Parse("plan", []byte(less)); err == nil ||
			!strings.Contains(err.Error(), "system service /Sys/") {
			t.Errorf("%v for %s", err, less)
		}
	}
	off := edit(", system: true", "")
	r.refused(BadPlan, InputPlan, "", off)
	r.refused(Forbidden, InputPlan, "", off, force, func(in *Input) { in.Principal = anybody{} })
	if got := r.View().Policy.Revision; got != last {
		t.Errorf("revision %d, %d before", got, last)
	}
	r.must(InputPlan, "", off, force)
	r.must(InputPlan, "", strings.NewReplacer(", {path: /Sys/b}]", "]", ", {path: /Sys/b, owns: 1}", "").Replace(off))
	r.restart()
}

func TestClockJumps(t *testing.T) {
	r := ready(t, nil)
	last := r.cycle().Summary.NowUS
	for _, jump := range []int64{-3600_000_000, 7200_000_000, -86400_000_000, 1, -1, 5_000_000} {
		r.now.Add(jump)
		r.must(InputReleases, "", "consumer,allocation,host,units\n/A,a,h1,1\n")
		now := r.cycle().Summary.NowUS
		if now < last {
			t.Fatalf("now went back from %d to %d", last, now)
		}
		last = now
	}
	r.restart()
	if got := r.View().Last.Summary.NowUS; got != last {
		t.Error(got, last)
	}
}

// TestFullDisk has the journal's disk full, then the log's too.
func TestFullDisk(t *testing.T) {
	var full atomic.Bool
	r := ready(t, func(r *rig) {
		r.jo.Step = func(op, _ string) error {
			if full.Load() && op == "reserve" {
				return syscall.ENOSPC
			}
			return nil
		}
		r.o.BacklogCyclesMax = 4
		r.o.BacklogRetryDelay = 1
	})
	r.cycle()
	full.Store(true)
	big := "consumer,allocation,units,ncpus\n/A,a,6,1\n" + strings.Repeat("\n", 4<<20)
	r.refused(Full, InputDemand, "one", big)
	r.log.mu.Lock()
	r.log.fail = syscall.ENOSPC
	r.log.mu.Unlock()
	for range 10 {
		r.cycle()
	}
	if s := r.Stats(); s.LogBehind != 10 && !s.LogLost {
		t.Error(s)
	}
	full.Store(false)
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,5,1\n")
	r.cycle()
	r.log.mu.Lock()
	r.log.fail = nil
	r.log.mu.Unlock()
	r.restart()
	r.stop()
	if n := len(r.log.digests); n != 12 {
		t.Error(n, "cycles in the log after all")
	}
}

// TestBusy fills the queue while the writer is held up.
func TestBusy(t *testing.T) {
	hold := make(chan struct{})
	var armed atomic.Bool
	reached := make(chan struct{}, 100)
	r := ready(t, func(r *rig) {
		r.o.QueueMax = 4
		r.o.Step = func(point string) {
			if point == "decided" && armed.Load() {
				reached <- struct{}{}
				<-hold
			}
		}
	})
	armed.Store(true)
	cycled := make(chan error, 1)
	go func() { cycled <- r.Cycle() }()
	<-reached
	var wait sync.WaitGroup
	var taken, busy atomic.Int64
	for range 20 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			_, err := r.give(InputReleases, "", "consumer,allocation,host,units\n")
			var e *Error
			switch {
			case err == nil:
				taken.Add(1)
			case errors.As(err, &e) && e.Kind == Busy:
				if busy.Add(1) == 16 {
					close(hold)
				}
			default:
				t.Error(err)
			}
		}()
	}
	wait.Wait()
	if err := <-cycled; err != nil || taken.Load() != 4 || busy.Load() != 16 {
		t.Error(err, taken.Load(), busy.Load())
	}
}

func TestStopping(t *testing.T) {
	r := ready(t, nil)
	e := r.Engine
	r.stop()
	var refusal *Error
	if _, err := e.Submit(&Input{Kind: InputReleases}); !errors.As(err, &refusal) || refusal.Kind != Stopping {
		t.Error(err)
	}
	if err := e.Cycle(); !errors.As(err, &refusal) || refusal.Kind != Stopping {
		t.Error(err)
	}
}

func TestDamagedCycle(t *testing.T) {
	r := ready(t, nil)
	r.cycle()
	r.stop()
	j, err := journal.Open(r.dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Replay(func(journal.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	record := encodeCycle(&cycleRecord{Cycle: 2, NowUS: r.now.Load() + 9, Input: 4, Revision: 1,
		Digest: strings.Repeat("0", 64)})
	if _, err := j.Append(recordCycle, true, record, nil, ""); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.tryStart(); err == nil || !strings.Contains(err.Error(), "cycle 2 decides otherwise than before") {
		t.Error(err)
	}
}
