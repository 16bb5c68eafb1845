package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// What is made durable together.
const (
	batchMax = 64   // inputs
	groupMax = 4096 // inputs where the first waits for others; their records, which have no bodies, are far below 8 MiB
)

// take handles a request and those waiting behind it, up to batchMax, with one flush of the journal for all. An error
// is one of the journal: nothing can be known to be durable any more.
func (e *Engine) take(first *request) error {
	e.watch.begin("an input", 0)
	defer e.watch.end()
	e.gather(first)
	revision := e.revision()
	appended := false
	for i, r := range e.batch {
		if r.ask != nil {
			e.watch.begin("a question about the state", 0)
			r.err = e.answer(r.ask)
			continue
		}
		var fatal error
		e.watch.begin("an input of kind "+r.in.Kind, 0)
		if r.receipt, r.err, fatal = e.accept(r.in); fatal != nil {
			for _, r := range e.batch[:i+1] {
				if r.err == nil {
					r.err = errUnsure(fatal)
				}
			}
			for _, r := range e.batch[i+1:] {
				r.err = errStopping()
			}
			e.release()
			return fatal
		}
		appended = appended || r.err == nil && !r.receipt.Repeated
	}
	e.o.Step("accepted")
	if appended {
		if err := e.o.Journal.Sync(); err != nil {
			for _, r := range e.batch {
				r.err = errUnsure(err)
			}
			e.release()
			return err
		}
		e.o.Step("durable")
		e.journalBytes.Store(e.o.Journal.Bytes())
		if e.revision() != revision {
			e.publish()
		}
	}
	e.release()
	return nil
}

// gather makes the batch: a request and those that wait behind it, or come while the first input may wait for others.
func (e *Engine) gather(first *request) {
	e.batch = append(e.batch[:0], first)
	most := batchMax
	var wait <-chan time.Time
	if e.o.GroupWait > 0 && first.in != nil {
		most, wait = groupMax, time.After(e.o.GroupWait)
	}
	for len(e.batch) < most {
		if len(e.queue) > 0 {
			e.batch = append(e.batch, <-e.queue)
			continue
		}
		if wait == nil {
			return
		}
		select {
		case r := <-e.queue:
			e.batch = append(e.batch, r)
		case <-wait:
			return
		}
	}
}

// release answers all of the batch.
func (e *Engine) release() {
	for _, r := range e.batch {
		r.answer(r.receipt, r.err)
	}
}

func (e *Engine) revision() int64 {
	if e.policy == nil {
		return 0
	}
	return e.policy.Revision
}

func (e *Engine) answer(ask func(*cluster.State) error) error {
	if e.state == nil {
		return errNoPlan()
	}
	return ask(e.state)
}

// accept checks an input against all conditions, appends it to the journal and applies it. What the state refuses is
// taken back from the journal, where nobody has been told of it. fatal is an error of the journal.
func (e *Engine) accept(in *Input) (r Receipt, err, fatal error) {
	in.AtUS = e.clock()
	if in.Owner = ""; in.Principal != nil {
		in.Owner = in.Author
	}
	if r, ok, err := e.repeated(in); ok || err != nil {
		return r, err, nil
	}
	if err := e.admit(in); err != nil {
		return Receipt{}, err, nil
	}
	seq, err := e.o.Journal.Append(recordInput, false, encodeInput(in), in.Body, in.kept)
	if err != nil {
		if e.o.IsFull(err) {
			return Receipt{}, refuse(Full, "%v", err), nil
		}
		return Receipt{}, nil, err
	}
	start := time.Now()
	if r, err = e.apply(in); err != nil {
		e.o.Journal.Undo()
		return Receipt{}, err, nil
	}
	r.Seq, r.Snapshot = seq, fmt.Sprintf("%d", seq)
	e.lastSeq = seq
	e.sinceBytes += int64(len(in.Body))
	e.sinceWork += in.Decoding + time.Since(start)
	e.note(in, r)
	in.Table = nil // its owner will use it again
	e.pending = append(e.pending, in)
	if e.lane != nil {
		e.lane.hold(int64(len(in.Body)))
	}
	e.accepted.Add(1)
	e.acceptedRows.Add(in.Rows)
	e.acceptedBytes.Add(int64(len(in.Body)))
	return r, nil, nil
}

func (e *Engine) now() int64 {
	if e.state == nil {
		return 0
	}
	return e.state.NowUS
}

// repeated answers an input whose idempotency key came before: with the same
// receipt, or, when the body is another, an error.
func (e *Engine) repeated(in *Input) (r Receipt, ok bool, err error) {
	if in.Key == "" {
		return r, false, nil
	}
	was := e.keys.find(in.Author, scope(in), in.Key, in.AtUS)
	if was == nil {
		was = e.keys.find(unknownCaller, scope(in), in.Key, in.AtUS)
	}
	switch {
	case was == nil:
		return r, false, nil
	case was.digest != in.Digest:
		return r, false, refuse(KeyReused, "the idempotency key %q came with another body before", in.Key)
	}
	r = was.receipt
	r.Repeated = true
	return r, true, nil
}

// admit checks the conditions of an input that do not depend on its rows' being good.
func (e *Engine) admit(in *Input) error {
	if in.Kind == InputPlan {
		return e.admitPlan(in)
	}
	if e.state == nil {
		return errNoPlan()
	}
	if err := e.admitSource(in); err != nil {
		return err
	}
	if e.lane != nil && !e.lane.room(int64(len(in.Body))) {
		return errBusy("the decision log lags behind: %d bytes of input wait for it", e.o.BacklogBytesMax)
	}
	if in.Kind == InputDemandChanges && e.state.Silent(in.Source) {
		return refuse(Silent,
			"source %q was silent for longer than source_ttl: its next input must be a full snapshot (PUT)", in.Source)
	}
	if !fitsPolicy(in, e.state.Policy) {
		return refuse(Moved, "the policy's dimensions changed meanwhile")
	}
	if err := e.permit(in); err != nil {
		return err
	}
	if err := e.current(in); err != nil {
		return err
	}
	return e.guard(in)
}

// fitsPolicy tells whether a table was decoded for a policy's dimensions.
func fitsPolicy(in *Input, p *plan.Policy) bool {
	switch t := in.Table.(type) {
	case *cluster.HostTable:
		return len(t.Size) == len(p.Dimensions) && (in.Policy == nil ||
			slices.Equal(in.Policy.Dimensions, p.Dimensions))
	case *cluster.DemandTable:
		return len(t.Size) == len(p.Dimensions) && (in.Policy == nil ||
			slices.Equal(in.Policy.Dimensions, p.Dimensions))
	}
	return true
}

// permit checks that a principal may say something of all consumers of an input, and that no others lose by it.
func (e *Engine) permit(in *Input) error {
	if in.Principal == nil {
		return nil
	}
	names := &cluster.Names{}
	switch t := in.Table.(type) {
	case *cluster.DemandTable:
		names = t.Consumer.Names
	case *cluster.HoldingTable:
		names = t.Consumer.Names
	default:
		if in.Kind != InputDemandDelete {
			return refuse(Forbidden, "this token may not change %s", in.Kind)
		}
	}
	for i := range int32(names.Len()) {
		if path := names.String(i); !in.Principal.MayDemand(e.state.Policy, path) {
			return refuse(Forbidden, "this token may not speak for consumer %q", path)
		}
	}
	other := ""
	if in.Kind == InputDemand || in.Kind == InputRunning || in.Kind == InputDemandDelete { // replaces what was there
		e.state.AllocConsumers(in.Source, func(c cluster.ConsumerID) {
			if path := e.state.Consumer.String(int32(c)); other == "" && !in.Principal.MayDemand(e.state.Policy, path) {
				other = path
			}
		})
	}
	if other != "" {
		return refuse(Forbidden, "source %q has demand of consumer %q, for which this token may not speak", in.Source,
			other)
	}
	return nil
}

// guard refuses an input that would release more units than the shrink guard allows (API-6), whatever the call that
// brings it. Releases say themselves what they release.
func (e *Engine) guard(in *Input) error {
	if in.AllowShrink {
		return nil
	}
	if in.Kind == InputHosts || in.Kind == InputHostChanges {
		return e.judgeHosts(in)
	}
	lost, held, err := e.shrinks(in)
	if err != nil || !e.tooMany(lost, held) {
		return err
	}
	if t, ok := in.Table.(*cluster.DemandTable); ok && lost == held && t.Rows > 0 && in.Kind == InputDemand {
		// A table with bad rows keeps nothing; then its rows are what is wrong. Find out without changing anything.
		if err := e.state.CheckDemand(in.Source, t); err != nil {
			return badInput(in, err)
		}
	}
	return e.shrinkRefusal(lost, held, fmt.Sprintf("units that source %q holds", in.Source))
}

// tooMany reports whether the shrink guard refuses to release so many of the units held.
func (e *Engine) tooMany(lost, held int64) bool {
	return lost > 0 && lost*1000 > held*e.o.ShrinkGuardMilli
}

func (e *Engine) shrinkRefusal(lost, held int64, of string) *Error {
	return refuse(Shrink, "would release %d of the %d %s, more than %d.%d %%; with allow_shrink=true it is taken",
		lost, held, of, e.o.ShrinkGuardMilli/10, e.o.ShrinkGuardMilli%10)
}

// shrinks tells how many of the units that its source holds an input of demand or of running units would release.
func (e *Engine) shrinks(in *Input) (lost, held int64, err error) {
	switch in.Kind {
	case InputDemand, InputDemandChanges, InputRunning, InputDemandDelete:
		held = e.state.HeldBy(in.Source)
	}
	if held == 0 {
		return 0, 0, nil
	}
	e.state.ReportUnknown = in.ReportUnknown
	kept := int64(0)
	switch in.Kind {
	case InputDemand:
		kept = e.state.WouldKeep(in.Source, in.Table.(*cluster.DemandTable))
	case InputDemandChanges:
		kept = held - e.state.WouldDrop(in.Source, in.Table.(*cluster.DemandTable))
	case InputRunning:
		if kept, err = e.state.WouldRun(in.Source, in.Table.(*cluster.HoldingTable)); err != nil {
			return 0, 0, badInput(in, err)
		}
	}
	return held - kept, held, nil
}

// silence has sources that were silent for too long get no new grants (API-6). It is an input like any other.
func (e *Engine) silence(nowUS int64) error {
	if e.o.SourceTTLUS == 0 {
		return nil
	}
	var late []string
	silent := e.state.SilentSources()
	for name, s := range e.sources {
		if nowUS-s.heardUS > e.o.SourceTTLUS && !silent[name] {
			late = append(late, name)
		}
	}
	slices.Sort(late)
	for _, name := range late {
		in := &Input{Kind: InputSilence, Source: name, Format: "auto", AtUS: nowUS}
		seq, err := e.o.Journal.Append(recordInput, true, encodeInput(in), nil, "")
		if err != nil {
			return err
		}
		if _, err := e.apply(in); err != nil {
			panic("BUG: " + err.Error())
		}
		e.lastSeq = seq
		e.pending = append(e.pending, in)
		e.o.Log.Warn("a source is silent and gets no new grants", "source", name, "silent",
			time.Duration(nowUS-e.sources[name].heardUS)*time.Microsecond)
	}
	return nil
}

func encodeCycle(c *cycleRecord) []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}
