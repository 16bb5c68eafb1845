package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/scenario"
	"github.com/stintd/stint/core/standing"
	"github.com/stintd/stint/ingest/table"
)

// The kinds of input, as the log names them.
const (
	kindPlan        = scenario.InputPlan
	kindHosts       = scenario.InputHosts
	kindHostChanges = scenario.InputHostChanges
	kindReleases    = scenario.InputReleases
	kindDemand      = scenario.InputDemand
	kindRunning     = scenario.InputRunning
)

// sourceDefault is the source of demand that is given as a file.
const sourceDefault = "default"

// policyBytesMax is the most that plan.Parse takes.
const policyBytesMax = 16 << 20

// given is an input on its way into the state and the log: decompressed, as D-13 keeps it.
type given struct {
	kind, source, format string
	name                 string // for messages
	content              []byte
	rows                 int64
}

// readInput reads a file given on the command line.
func readInput(kind, path string) (*given, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g := &given{kind: kind, name: path, format: "yaml"}
	if kind == kindPlan {
		g.content, err = readAtMost(f, path, policyBytesMax)
		return g, err
	}
	if kind != kindHosts {
		g.source = sourceDefault
	}
	var format table.Format
	g.content, format, err = table.Unpack(f, table.Options{Name: path})
	g.format = format.String()
	return g, err
}

// readAtMost reads an input whole, which need be no regular file; one that is larger is refused without reading on.
func readAtMost(r io.Reader, name string, bytesMax int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, bytesMax+1))
	if err == nil && int64(len(content)) > bytesMax {
		err = fmt.Errorf("%s: more than %d bytes; is that the right file?", name, bytesMax)
	}
	return content, err
}

// batch is a cluster's state and the cycles run on it from files.
type batch struct {
	state  *cluster.State
	runner cycle.Runner
	out    decision.Cycle
	stands standing.Recorder // what the log was told of what stands

	force         bool     // a policy may leave consumers with holdings out (PLAN-4)
	reportUnknown bool     // take demand of unknown consumers as a shortfall
	accepted      bool     // inputs were accepted before, so that limits are not asked about again
	hosts         []string // what is suspect about the table of hosts itself

	// Of the cycles since the replay, without reading and writing:
	tookUS            int64
	granted, released int64
}

// apply brings an input into the state, or refuses it whole.
func (b *batch) apply(g *given) error {
	if g.kind == kindPlan {
		read := plan.Parse
		if b.accepted {
			read = plan.ParseAccepted
		}
		p, err := read(g.name, g.content)
		if err != nil {
			return err
		}
		if b.state != nil {
			return b.state.SetPolicy(p, b.force)
		}
		b.state, err = cluster.New(p)
		return err
	}
	format, err := table.ParseFormat(g.format)
	if err != nil {
		return fmt.Errorf("%s: %w", g.name, err)
	}
	b.state.ReportUnknown, b.state.Accepted = b.reportUnknown, b.accepted
	o := table.Options{Name: g.name, Format: format, Compression: table.Plain, Dimensions: b.state.Policy.Dimensions}
	switch r := bytes.NewReader(g.content); g.kind {
	case kindHosts, kindHostChanges:
		t, err := table.ReadHosts(r, o)
		if err != nil {
			return err
		}
		g.rows = int64(t.Rows)
		b.hosts = b.suspectHosts(g.name, t)
		return named(g.name, b.state.SetHosts(t, g.kind == kindHosts))
	case kindReleases:
		t, err := table.ReadHoldings(r, o, true)
		if err != nil {
			return err
		}
		g.rows = int64(t.Rows)
		_, _, err = b.state.Release(t)
		return named(g.name, err)
	case kindDemand:
		t, err := table.ReadDemand(r, o)
		if err != nil {
			return err
		}
		g.rows = int64(t.Rows)
		return named(g.name, b.state.SetDemand(g.source, t))
	case kindRunning:
		t, err := table.ReadHoldings(r, o, false)
		if err != nil {
			return err
		}
		g.rows = int64(t.Rows)
		return named(g.name, b.state.AddRunning(g.source, t))
	}
	return b.applyServed(g, o)
}

// applyServed brings an input of the service into the state: kinds that no file of the command line is.
func (b *batch) applyServed(g *given, o table.Options) error {
	switch r := bytes.NewReader(g.content); g.kind {
	case engine.InputDemandChanges:
		t, err := table.ReadDemand(r, o)
		if err != nil {
			return err
		}
		return named(g.name, b.state.ChangeDemand(g.source, t))
	case engine.InputRunning:
		t, err := table.ReadHoldings(r, o, false)
		if err != nil {
			return err
		}
		_, _, err = b.state.SetRunning(g.source, t)
		return named(g.name, err)
	case engine.InputDemandDelete:
		b.state.RemoveSource(g.source)
		return nil
	case engine.InputSilence:
		b.state.Silence(g.source)
		return nil
	}
	return fmt.Errorf("%s: an input of kind %q is not known", g.name, g.kind)
}

// suspectHosts tells the legal settings of a table of hosts that are hardly meant: no host at all, and a dimension that
// no column gives, often because the column's name is misspelt and so an attribute.
func (b *batch) suspectHosts(name string, t *cluster.HostTable) (lines []string) {
	if t.Rows == 0 {
		return []string{name + ": no host in it"}
	}
	for d, column := range t.Size {
		if column == nil {
			lines = append(lines, fmt.Sprintf("%s: no column %s: every host has 0 of it", name,
				b.state.Policy.Dimensions[d]))
		}
	}
	return lines
}

// warnings are what is suspect about hosts and groups, and about the hosts that consumers list as their own. The
// error says which of these cannot be meant.
func (b *batch) warnings() ([]string, error) {
	lines := slices.Concat(b.hosts, b.state.Warnings())
	faults, suspect := b.state.Lists()
	for _, w := range suspect {
		lines = append(lines, w.String())
	}
	var errs []error
	for _, w := range faults {
		errs = append(errs, errors.New(w.String()))
	}
	return lines, errors.Join(errs...)
}

// named puts the file's name before the faults that the state finds in its rows.
func named(name string, err error) error {
	var faults *cluster.Faults
	if errors.As(err, &faults) {
		faults.Table = name
	}
	return err
}

// cycle runs one cycle. The times in its summary are the only figures that a second run would not repeat.
func (b *batch) cycle(nowUS int64) {
	b.runner.Clock = monotonicUS
	last := b.state.NowUS
	start := time.Now()
	if b.state.MayForgetNeeds() {
		b.state.ForgetNeeds()
	}
	if b.state.MayForget(0) {
		b.state.Forget(nil)
	}
	b.runner.Run(b.state, nowUS, &b.out)
	end := time.Now()
	b.out.Summary.StartedUS, b.out.Summary.FinishedUS = start.UnixMicro(), end.UnixMicro()
	b.tookUS += end.Sub(start).Microseconds()
	b.granted += b.out.Summary.UnitsGranted
	b.released += b.out.Summary.UnitsReleased
	if b.out.Summary.Digest == "" {
		b.out.Summary.Digest = decision.Digest(b.out.Tables())
	}
	if b.out.Summary.KeyframeDue(last) {
		b.runner.Keyframe(&b.out)
	}
	if b.out.Summary.StateDue(last) {
		b.out.State = b.state.Frame()
	}
}

var processStart = time.Now()

func monotonicUS() int64 { return time.Since(processStart).Microseconds() }

// stable tells whether the last cycle was a fixed point (CYC-2).
func (b *batch) stable() bool {
	s := &b.out.Summary
	return s.Stable()
}
