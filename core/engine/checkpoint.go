package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/pack"
	"github.com/stintd/stint/core/standing"
)

// saveForm is the form of a saved engine. The state has its own.
const saveForm = 9

// Checkpoint tells of one.
type Checkpoint struct {
	Cycle int64 // after which it was taken
	Bytes int64
	Held  time.Duration // how long it kept the engine from its work: while a copy was taken
	Took  time.Duration // until it was on the disk, waiting for the log included
	Why   string        // it failed; "" when it did not
}

// checkpoint makes a checkpoint when it is time for one, in two steps: memory for a copy is made beside the engine's
// work, then the copy is taken, between two cycles. The engine goes on as soon as it has been; the rest is done
// beside it. It is called when either may be due.
func (e *Engine) checkpoint() {
	select {
	case <-e.saving:
	default:
		return // one at a time
	}
	switch {
	case !e.moved() || e.lane != nil && !e.lane.sound():
	case e.o.Shared && len(e.pending) > 0: // what stood after the last cycle could not be told from it
	case e.spare != nil:
		e.save()
	case e.sinceBytes >= e.o.CheckpointBytes || e.sinceWork >= e.o.CheckpointWork ||
		monotonicUS()-e.sinceUS >= e.o.CheckpointUS:
		spare := pack.Save()
		e.fields(spare)
		e.spare, e.saving = spare, make(chan struct{})
		go func(done chan struct{}) {
			spare.Prepare()
			close(done)
			e.poke()
		}(e.saving)
	}
}

// moved tells whether cycles have run since the last checkpoint.
func (e *Engine) moved() bool { return e.frozen != nil && e.state.Cycle != e.savedCycle }

// last takes a last checkpoint, when the engine has ended, so that the next start has no cycle to
// decide again: it may be of another version.
func (e *Engine) last() {
	if e.o.CheckpointAtEnd {
		e.LastCheckpoint()
	}
}

// LastCheckpoint takes a checkpoint of an engine that has ended, unless there is one of its last cycle. It is for who
// called Run.
func (e *Engine) LastCheckpoint() {
	if e.moved() {
		e.save()
		<-e.saving
	}
}

// poke has the engine look whether it can go on with a checkpoint.
func (e *Engine) poke() {
	select {
	case e.prepared <- struct{}{}:
	default:
	}
}

// save takes the copy, and has it written once the log has its cycle: what the log lacks must be decided again.
func (e *Engine) save() {
	e.watch.begin("a copy for a checkpoint", 0)
	defer e.watch.end()
	start := time.Now()
	c, seq := pack.Save(), max(e.cycleSeq, e.lastSeq)
	if e.spare != nil {
		c = pack.SaveInto(e.spare)
	}
	e.fields(c)
	c.Hold()
	done := Checkpoint{Cycle: e.state.Cycle, Held: time.Since(start)}
	e.spare, e.savedCycle, e.saving = nil, done.Cycle, make(chan struct{})
	e.sinceBytes, e.sinceWork = 0, 0
	e.o.Step("checkpoint")
	go func(saving chan struct{}) {
		if e.lane == nil || e.lane.wait(done.Cycle) {
			e.write(c, seq, &done)
			done.Took = time.Since(start)
			e.saved.Store(&done)
		}
		e.sinceUS = monotonicUS()
		close(saving)
		e.poke()
	}(e.saving)
}

// write writes a copy.
func (e *Engine) write(c *pack.Coder, seq uint64, done *Checkpoint) {
	start := time.Now()
	err := e.o.Journal.Checkpoint(seq, func(w io.Writer) (err error) {
		done.Bytes, err = c.WriteTo(w)
		return err
	})
	if err != nil {
		done.Why = err.Error()
		e.o.Log.Error("a checkpoint failed; the journal stays as long as it is until the next one", "cycle", done.Cycle,
			"error", err)
		return
	}
	e.o.Log.Info("checkpoint", "cycle", done.Cycle, "record", seq, "bytes", done.Bytes, "held", done.Held, "wrote",
		time.Since(start))
}

// ErrLogShort is in the chain of errors of Restore when the decision log ends before the checkpoint.
var ErrLogShort = errors.New("the decision log ends too early")

// Restore brings back what a checkpoint has of the records up to seq, before Replay brings back those behind it. When
// it gives an error the engine is as it was.
func (e *Engine) Restore(seq uint64, r io.Reader, bytes int64) error {
	e.watch.begin("reading a checkpoint", 0)
	defer e.watch.end()
	was := e.setAside()
	c := pack.Load(r, bytes)
	e.fields(c)
	err := c.End()
	if err == nil && e.lane != nil && e.o.Shared && e.lane.had() == 0 {
		e.lane.begin(e.state.Cycle)
	} else if err == nil && e.lane != nil && e.lane.had() == e.state.Cycle {
		e.knows()
	}
	if err == nil && e.lane != nil && e.lane.had() < e.state.Cycle {
		err = fmt.Errorf("%w: it is of cycle %d and the decision log ends with cycle %d: what is between cannot be "+
			"decided again from it; give the log back, or start without one (decision_log: false)", ErrLogShort,
			e.state.Cycle, e.lane.had())
	}
	if err == nil && e.lastSeq > seq {
		err = fmt.Errorf("it has seen record %d, and is of record %d", e.lastSeq, seq)
	}
	if err != nil {
		was.back(e)
		return err
	}
	e.savedCycle, e.cycleSeq, e.recorded = e.state.Cycle, seq, e.frozen.Summary.Digest
	return nil
}

// knows notes what stands after the last cycle that a shared log has, which is the last that was decided: it is told
// what changed since.
func (e *Engine) knows() {
	e.told = nil
	if e.o.Shared && len(e.pending) == 0 {
		e.told = standing.Keep(e.state, nil, standing.Frozen())
	}
}

// before is what Restore changes of an engine.
type before struct {
	state   *cluster.State
	keys    keys
	sources map[string]*source
	policy  *PolicyView
	inForce *PolicyView
	pending []*Input
	guarded map[string]bool
	frozen  *decision.Cycle
	recent  []*decision.Cycle
	rows    int
	lastSeq uint64
}

// setAside makes the engine one that knows nothing.
func (e *Engine) setAside() *before {
	b := &before{e.state, e.keys, e.sources, e.policy, e.inForce, e.pending, e.guarded, e.frozen, e.recent,
		e.rows, e.lastSeq}
	e.sources, e.guarded = map[string]*source{}, map[string]bool{}
	e.keys.init(e.o.KeysPerSourceMax, e.o.KeysMax)
	return b
}

func (b *before) back(e *Engine) {
	e.state, e.keys, e.sources = b.state, b.keys, b.sources
	e.policy, e.inForce, e.pending, e.guarded = b.policy, b.inForce, b.pending, b.guarded
	e.frozen, e.recent, e.rows, e.lastSeq = b.frozen, b.recent, b.rows, b.lastSeq
}

// fields names what a checkpoint has: what a service promises must be true after it was started again.
func (e *Engine) fields(c *pack.Coder) {
	c.Mark("stint service")
	form := c.Form("checkpoint", saveForm)
	pack.Int(c, &e.lastSeq)
	e.policyFields(c)
	e.sourceFields(c)
	e.keys.fields(c)
	pack.Pointers(c, &e.pending, func(c *pack.Coder, in *Input) { in.fields(c) })
	e.guardedFields(c)
	if c.Err() != nil {
		return
	}
	if c.Loading() {
		state, err := cluster.Load(c, e.policy.Policy)
		if err != nil {
			c.Fail("%w", err)
			return
		}
		e.state = state
	} else {
		e.state.Save(c)
	}
	e.cycleFields(c, form)
}

// guardedFields are the hosts that the engine closed.
func (e *Engine) guardedFields(c *pack.Coder) {
	if !c.Since(7) {
		return
	}
	names := e.guardedNames()
	pack.Texts(c, &names)
	for _, name := range names {
		e.guarded[name] = true
	}
}

// fields are what the log is told of an accepted input: the same as its record in the journal.
func (in *Input) fields(c *pack.Coder) {
	var record []byte
	if !c.Loading() {
		record = append(encodeInput(in), in.Body...)
	}
	if pack.Raw(c, &record); !c.Loading() || c.Err() != nil {
		return
	}
	read, err := decodeInput(record)
	if err != nil {
		c.Fail("an input: %w", err)
		return
	}
	*in = *read
}

// policyFields are the newest policy file, and that of the last cycle where it is another. They are parsed again.
func (e *Engine) policyFields(c *pack.Coder) {
	same := e.inForce == e.policy
	pack.Bool(c, &same)
	e.policyField(c, &e.policy)
	if same {
		e.inForce = e.policy
		return
	}
	none := e.inForce == nil
	if pack.Bool(c, &none); !none && c.Err() == nil {
		e.policyField(c, &e.inForce)
	}
}

// policyField is a policy file and who gave it.
func (e *Engine) policyField(c *pack.Coder, to **PolicyView) {
	p := &PolicyView{}
	if !c.Loading() {
		p = *to
	}
	pack.Raw(c, &p.Text)
	pack.Int(c, &p.Revision)
	pack.Text(c, &p.Author)
	pack.Text(c, &p.Message)
	pack.Int(c, &p.AtUS)
	if !c.Loading() || c.Err() != nil {
		return
	}
	in := &Input{Kind: InputPlan, Body: p.Text}
	if err := e.o.Decode(in, nil); err != nil {
		c.Fail("the policy: %w", err)
		return
	}
	p.Policy = in.Policy
	*to = p
}

// sourceFields are what is known of feeds, by name.
func (e *Engine) sourceFields(c *pack.Coder) {
	type named struct {
		name string
		*source
	}
	var all []named
	for name, s := range e.sources {
		all = append(all, named{name, s})
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	pack.Rows(c, &all, func(n *named) {
		if n.source == nil {
			n.source = new(source)
		}
		pack.Text(c, &n.name)
		pack.Int(c, &n.heardUS)
		pack.Int(c, &n.rows)
		if c.Since(2) {
			pack.Text(c, &n.owner)
		}
	})
	for _, n := range all {
		e.sources[n.name] = n.source
	}
}

// unknownCaller is who gave the keys of a checkpoint of form 1, which does not tell.
const unknownCaller = ""

// fields are the keys by caller and scope, the oldest first.
func (k *keys) fields(c *pack.Coder) {
	type named struct {
		who   string
		scope keyScope
		order []*kept
	}
	var all []named
	for who, one := range k.callers {
		for scope, s := range one.scopes {
			all = append(all, named{who, scope, s.order[s.first:]})
		}
	}
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.who, b.who), cmp.Compare(a.scope.kind, b.scope.kind),
			cmp.Compare(a.scope.source, b.scope.source))
	})
	pack.Rows(c, &all, func(n *named) {
		if c.Since(2) {
			pack.Text(c, &n.who)
			pack.Text(c, &n.scope.kind)
			pack.Text(c, &n.scope.source)
		} else {
			var name string
			pack.Text(c, &name)
			n.scope = oldScope(name)
		}
		pack.Pointers(c, &n.order, func(c *pack.Coder, v *kept) { v.fields(c) })
	})
	if !c.Loading() || c.Err() != nil {
		return
	}
	for _, n := range all {
		one := k.callers[n.who]
		if one == nil {
			one = &caller{scopes: map[keyScope]*scopeKeys{}}
			k.callers[n.who] = one
		}
		s := &scopeKeys{of: make(map[string]*kept, len(n.order))}
		one.scopes[n.scope] = s
		for _, v := range n.order {
			k.put(one, s, v)
		}
		if len(s.of) != len(s.order) {
			c.Fail("an idempotency key twice")
		}
	}
}

func (v *kept) fields(c *pack.Coder) {
	pack.Text(c, &v.key)
	pack.Text(c, &v.digest)
	pack.Int(c, &v.atUS)
	r := &v.receipt
	pack.Text(c, &r.Snapshot)
	pack.Int(c, &r.Seq)
	for _, n := range []*int64{&r.Rows, &r.Cycle, &r.Revision, &r.Released, &r.Added, &r.Beyond} {
		pack.Int(c, n)
	}
	pack.Bool(c, &r.Repeated)
}

// cycleFields are the last cycles, for readers of changes, and the state tables of the last cycle. The tables are
// frozen, so that the cycles that follow may go on while the tables are written; names come from the state.
func (e *Engine) cycleFields(c *pack.Coder, form int64) {
	s, last := e.state, e.frozen
	d := &decision.Saved{Source: s.Source.Frozen(), Consumer: s.Consumer.Frozen(), Label: s.Label.Frozen(),
		Host: s.Host.Names.Frozen(), Version: int(form) + 2} // both came to 8 with devices, and go on side by side
	recent := slices.Clone(e.recent)
	pack.Pointers(c, &recent, func(c *pack.Coder, one *decision.Cycle) { one.SaveEvents(c, d) })
	if c.Loading() {
		if c.Err() != nil || len(recent) == 0 || recent[len(recent)-1].Summary.Cycle != s.Cycle {
			c.Fail("the cycles do not end with cycle %d", s.Cycle)
			return
		}
		e.recent, e.rows = recent, 0
		for _, one := range recent {
			e.rows += one.EventRows()
		}
		e.frozen = new(decision.Cycle)
		*e.frozen = *recent[len(recent)-1]
		last = e.frozen
	}
	c.Later(func(c *pack.Coder) { last.SaveStates(c, d) })
}
