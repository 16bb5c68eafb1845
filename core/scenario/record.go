package scenario

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
)

// The kinds of input of a scenario. They are those of the decision log.
const (
	InputPlan        = "plan"
	InputHosts       = "hosts"        // all hosts there are
	InputHostChanges = "hosts_change" // hosts that change; what is not given stays
	InputReleases    = "releases"
	InputDemand      = "demand"
	InputRunning     = "running"
)

// Input is an input that the state has taken: the bytes that a decoder of ingest/table, or of policies, reads
// to the same effect. What ends because of a `runtime` is an input too: releases, as a client would send them.
type Input struct {
	Kind, Source, Format string
	Content              []byte // borrowed
	Rows                 int64  // of a table
}

// Recorder is told what the cycles of a scenario are decided from, in the order applied, and what they
// decide. An error ends the play.
type Recorder interface {
	Input(in Input) error
	// Cycle is told of a cycle before the next one's inputs. out may be read until it returns; keyframe fills
	// the keyframe tables of out, and its State if asked for. last is whether no cycle follows.
	Cycle(out *decision.Cycle, keyframe func(state bool), last bool) error
}

// Record plays a scenario as Play does and tells a recorder of all that happens. What is recorded can be
// played again from the inputs alone. Errors are those of Play and of the recorder.
func (s *Scenario) Record(to Recorder) (*Result, error) { return s.play(to) }

// decide runs one cycle, timed when it is recorded.
func (p *player) decide(now int64) {
	if p.to == nil {
		p.runner.Run(p.state, now, &p.out)
		return
	}
	start := time.Now()
	p.runner.Clock = func() int64 { return time.Since(start).Microseconds() }
	p.runner.Run(p.state, now, &p.out)
	p.out.Summary.StartedUS, p.out.Summary.FinishedUS = start.UnixMicro(), time.Now().UnixMicro()
}

// tell tells the recorder, if any, of a cycle.
func (p *player) tell(last bool) error {
	if p.to == nil {
		return nil
	}
	keyframe := func(state bool) {
		if !p.out.Keyframe {
			p.runner.Keyframe(&p.out)
		}
		if state {
			p.out.State = p.state.Frame()
		}
	}
	return p.to.Cycle(&p.out, keyframe, last)
}

// took tells the recorder, if any, of an input.
func (p *player) took(in Input) error {
	if p.to == nil {
		return nil
	}
	return p.to.Input(in)
}

// input is a feed as an input of a kind.
func (fd *feed[T]) input(kind string) Input {
	in := Input{Kind: kind, Format: fd.format, Content: fd.content}
	switch t := any(fd.table).(type) {
	case *cluster.HostTable:
		in.Rows = int64(t.Rows)
	case *cluster.DemandTable:
		in.Rows, in.Source = int64(t.Rows), fd.source
	case *cluster.HoldingTable:
		in.Rows = int64(t.Rows)
		if kind == InputRunning {
			in.Source = fd.source
		}
	}
	return in
}

// input is units that are done as an input, a line a row.
func (t *holdingTable) input() (Input, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for row := range t.Rows {
		u := rowOf(&t.HoldingTable, row)
		if err := e.Encode(releaseRow{u.consumer, u.allocation, u.sub, u.host, u.units, true}); err != nil {
			return Input{}, err
		}
	}
	return Input{Kind: InputReleases, Format: "ndjson", Content: b.Bytes(), Rows: int64(t.Rows)}, nil
}

// releaseRow is a row of the table releases.
type releaseRow struct {
	Consumer   string `json:"consumer"`
	Allocation string `json:"allocation"`
	Sub        string `json:"sub"`
	Host       string `json:"host"`
	Units      int64  `json:"units"`
	Done       bool   `json:"done"`
}
