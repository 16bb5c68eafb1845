package engine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// The kinds of input, as the decision log names them too.
const (
	InputPlan          = "plan"
	InputHosts         = "hosts"         // all hosts
	InputHostChanges   = "hosts_change"  // changes by host
	InputDemand        = "demand"        // all a source wants
	InputDemandChanges = "demand_change" // changes to it
	InputRunning       = "running_all"   // all that runs of a source, whatever was held before
	InputReleases      = "releases"
	InputDemandDelete  = "demand_delete" // a source is to be forgotten, with all that it wants; no content
	InputSilence       = "silence"       // a source was silent for too long; no content
)

// Input is something to be taken into the state. The first block is kept in the journal, and applied again after a
// crash.
type Input struct {
	Kind          string `json:"kind"`
	Source        string `json:"source,omitempty"`
	Format        string `json:"format,omitempty"`  // of the unpacked body
	Packing       string `json:"packing,omitempty"` // plain, gzip, zstd
	ReportUnknown bool   `json:"report_unknown,omitempty"`
	Force         bool   `json:"force,omitempty"` // of a plan (PLAN-4)
	Author        string `json:"author,omitempty"`
	Message       string `json:"message,omitempty"`
	Owner         string `json:"owner,omitempty"`  // the author of who may not do all: a source is its first owner's
	Key           string `json:"key,omitempty"`    // idempotency key
	Digest        string `json:"digest,omitempty"` // of the body as it came, in hex
	Rows          int64  `json:"rows"`
	Guard         bool   `json:"guard,omitempty"` // of hosts: the engine's own, behind a table of theirs
	AtUS          int64  `json:"at"`              // when it was accepted: max(clock, the last cycle's now)

	Body []byte `json:"-"` // as it came

	// The decoded body, from Options.Decode or from the caller of Submit.
	Table  any          `json:"-"` // *cluster.HostTable, *cluster.DemandTable, *cluster.HoldingTable
	Policy *plan.Policy `json:"-"` // of a plan

	kept string // what the journal calls the body

	Decoding time.Duration `json:"-"` // how long it took to decode it, where who submits it has done so

	// Conditions of its acceptance.
	IfRevision  int64     `json:"-"` // the newest revision it may follow; 0: any
	AllowShrink bool      `json:"-"`
	Principal   Principal `json:"-"` // nil may do all

	compared compared     // of a plan
	after    guardedHosts // of hosts
}

// bare tells whether an input has no content.
func (in *Input) bare() bool { return in.Kind == InputSilence || in.Kind == InputDemandDelete }

// Principal is who gives an input, where that is not allowed everything (PLAN-5).
type Principal interface {
	MayDemand(p *plan.Policy, consumer string) bool        // demand, releases and running units of a consumer
	MayPlan(was *plan.Policy, old, new []byte) (err error) // put another policy file in force
}

// Receipt is the answer to an input that is durable.
type Receipt struct {
	Snapshot string // names the input
	Seq      uint64 // its number in the journal
	Rows     int64
	Cycle    int64 // the first cycle that may go by it
	Revision int64 // of a plan
	Released int64 // units: of releases and running units; of a source that is deleted those it held
	Added    int64 // units: of running units
	Beyond   int64 // units released beyond what was held
	Repeated bool  // the same was taken before, under the same idempotency key
}

// Kinds of records in the journal.
const (
	recordInput byte = 1 // length of the header (4 bytes, little-endian), header in JSON, body
	recordCycle byte = 2 // cycleRecord in JSON
)

// cycleRecord is what is on disk of a cycle before anything of it is readable (API-5).
type cycleRecord struct {
	Cycle    int64  `json:"cycle"`
	NowUS    int64  `json:"now"`
	Input    uint64 `json:"input"` // the last record of an input before it
	Revision int64  `json:"revision"`
	Digest   string `json:"digest"`

	Rules string `json:"rules,omitempty"` // by which it was decided; "": by an older stint, which did not tell
	Whole bool   `json:"whole,omitempty"` // the log is told all that stands: it is the first cycle of who leads
}

// encodeInput is the header of an input's record.
func encodeInput(in *Input) []byte {
	header, err := json.Marshal(in)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(header))), header...)
}

// decodeInput reads an input's record. The body is a copy.
func decodeInput(payload []byte) (*Input, error) {
	if len(payload) < 4 {
		return nil, errors.New("no header")
	}
	n := int64(binary.LittleEndian.Uint32(payload))
	if n > int64(len(payload)-4) {
		return nil, fmt.Errorf("a header of %d bytes that is not there", n)
	}
	in := new(Input)
	if err := json.Unmarshal(payload[4:4+n], in); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	in.Body = append([]byte(nil), payload[4+n:]...)
	return in, nil
}

// apply brings a decoded input into the state, or refuses it whole.
func (e *Engine) apply(in *Input) (r Receipt, err error) {
	r.Rows, r.Cycle = in.Rows, 1
	if in.Kind == InputPlan {
		err = e.applyPlan(in)
	} else {
		e.state.ReportUnknown = in.ReportUnknown
		switch in.Kind {
		case InputHosts:
			err = e.state.SetHosts(in.Table.(*cluster.HostTable), true)
		case InputHostChanges:
			err = e.state.SetHosts(in.Table.(*cluster.HostTable), false)
		case InputDemand:
			err = e.state.SetDemand(in.Source, in.Table.(*cluster.DemandTable))
		case InputDemandChanges:
			err = e.state.ChangeDemand(in.Source, in.Table.(*cluster.DemandTable))
		case InputRunning:
			r.Released, r.Added, err = e.state.SetRunning(in.Source, in.Table.(*cluster.HoldingTable))
		case InputReleases:
			r.Released, r.Beyond, err = e.state.Release(in.Table.(*cluster.HoldingTable))
		case InputDemandDelete:
			r.Released = e.state.HeldBy(in.Source)
			e.state.RemoveSource(in.Source)
		case InputSilence:
			e.state.Silence(in.Source)
		default:
			err = fmt.Errorf("an input of kind %q is not known", in.Kind)
		}
	}
	if err != nil {
		return Receipt{}, badInput(in, err)
	}
	r.Cycle, r.Revision = e.state.Cycle+1, e.state.Revision
	return r, nil
}

// badInput is the refusal of an input by the state.
func badInput(in *Input, err error) error {
	kind := BadRows
	if in.Kind == InputPlan {
		kind = BadPlan
	}
	return &Error{Kind: kind, Detail: err.Error(), Cause: err}
}

// applyPlan puts a policy in force from the next cycle on (PLAN-3).
func (e *Engine) applyPlan(in *Input) (err error) {
	if e.state == nil {
		e.state, err = cluster.New(in.Policy)
	} else {
		err = e.state.SetPolicy(in.Policy, in.Force)
	}
	if err == nil {
		e.policy = &PolicyView{Policy: in.Policy, Text: in.Body, Revision: e.state.Revision, Author: in.Author,
			Message: in.Message, AtUS: in.AtUS}
	}
	return err
}

// note remembers what later inputs are judged by. It follows apply, also after a crash.
func (e *Engine) note(in *Input, r Receipt) {
	if in.Source != "" && in.Kind != InputSilence {
		e.noteSource(in)
	}
	e.noteHosts(in)
	if in.Key != "" {
		e.keys.add(in.Author, scope(in), in.Key, in.Digest, r, in.AtUS)
	}
}
