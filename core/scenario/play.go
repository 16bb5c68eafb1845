package scenario

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/standing"
)

// missesMax bounds the misses that a result lists; past it they are only counted.
const missesMax = 20

// player is a scenario being played.
type player struct {
	*Scenario
	state  *cluster.State
	runner cycle.Runner
	out    decision.Cycle
	result *Result
	ends   ends
	to     Recorder          // nil: nobody is told
	stands standing.Recorder // of what stands
}

// Play plays a scenario from an empty cluster and compares its decisions with what each step expects. Misses
// stand in the result. An error is input that the engine refuses; it says file and line.
func (s *Scenario) Play() (*Result, error) { return s.play(nil) }

func (s *Scenario) play(to Recorder) (*Result, error) {
	p := &player{Scenario: s, result: &Result{File: s.File, Line: s.Line, Name: s.Name, Rule: s.Rule}, to: to}
	p.ends.runtimes = map[string]map[subKey]int64{}
	var err error
	if p.state, err = cluster.New(s.policy); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", s.File, s.Line, err)
	}
	p.state.ReportUnknown = s.reportUnknown
	if err := p.state.SetHosts(s.hosts.table, true); err != nil {
		return nil, s.hosts.located(s.File, err)
	}
	if err := p.took(Input{Kind: InputPlan, Format: "yaml", Content: s.text}); err != nil {
		return nil, err
	}
	if err := p.took(s.hosts.input(InputHosts)); err != nil {
		return nil, err
	}
	for i := range s.steps {
		if err := p.step(i); err != nil {
			return nil, fmt.Errorf("%w\n%s:%d: %s: step %d was refused", err, s.File, s.steps[i].line, s.Name, i+1)
		}
	}
	p.result.Warnings = slices.Clone(p.state.Warnings())
	return p.result, nil
}

// finish ends what is due by now.
func (p *player) finish(now int64) error {
	t := p.ends.due(now)
	if t.Rows == 0 {
		return nil
	}
	if _, _, err := p.state.Release(&t.HoldingTable); err != nil || p.to == nil {
		return err
	}
	in, err := t.input()
	if err != nil {
		return err
	}
	return p.took(in)
}

// step applies a step's input before its first cycle and runs its cycles.
func (p *player) step(i int) error {
	st := &p.steps[i]
	check := checker{player: p, step: st, number: i + 1, totals: make([]total, len(st.expect.sums))}
	for n := 1; ; n++ {
		now := p.state.NowUS + p.state.Policy.IntervalUS
		switch {
		case n == 1 && st.atUS >= 0:
			now = max(st.atUS, p.state.NowUS) // CYC-9
		case p.state.Cycle == 0:
			now = firstUS
		}
		if err := p.finish(now); err != nil {
			return err
		}
		if n == 1 {
			if err := p.apply(i, now); err != nil {
				return err
			}
		}
		before := p.state.NowUS
		p.decide(now)
		p.result.Cycles++
		p.ends.observe(&p.out, now)
		last := n == st.cycles || st.cycles == 0 && p.stable()
		if !last && n == cyclesMax {
			p.result.miss(Miss{Step: i + 1, Line: st.line, Cycle: p.out.Summary.Cycle, Kind: "until_stable",
				Note: fmt.Sprintf("not stable after %d cycles: the last one granted %d, reclaimed %d and "+
					"released %d units",
					n, p.out.Summary.UnitsGranted, p.out.Summary.UnitsReclaimed, p.out.Summary.UnitsReleased)})
			last = true
		}
		if p.to != nil {
			p.out.Standing = p.stands.Record(p.state, p.out.Summary.StateDue(before))
		}
		if st.expect.keyframe {
			p.runner.Keyframe(&p.out)
		}
		check.cycle(last)
		if err := p.tell(last && i == len(p.steps)-1); err != nil {
			return err
		}
		if last {
			p.result.Steps++
			return nil
		}
	}
}

// stable tells whether the last cycle was a fixed point (CYC-2), with no unit that a runtime will still end.
func (p *player) stable() bool {
	s := &p.out.Summary
	return s.Stable() && len(p.ends.pending) == 0
}

// apply brings a step's input into the state: policy, hosts, releases, demand. What runs at the start comes
// with the first step, because only its demand says how large a running unit is.
func (p *player) apply(i int, now int64) error {
	st := &p.steps[i]
	if st.policy != nil {
		if err := st.policy.Follows(p.state.Policy, st.force); err != nil {
			return err
		}
		if err := p.state.SetPolicy(st.policy, st.force); err != nil {
			return err
		}
		if err := p.took(Input{Kind: InputPlan, Format: "yaml", Content: st.text}); err != nil {
			return err
		}
	}
	if st.hosts != nil {
		if err := p.state.SetHosts(st.hosts.table, false); err != nil {
			return st.hosts.located(p.File, err)
		}
		if err := p.took(st.hosts.input(InputHostChanges)); err != nil {
			return err
		}
	}
	if st.releases != nil {
		if _, _, err := p.state.Release(st.releases.table); err != nil {
			return st.releases.located(p.File, err)
		}
		p.ends.released(st.releases.table)
		if err := p.took(st.releases.input(InputReleases)); err != nil {
			return err
		}
	}
	for _, d := range st.demand {
		if err := p.state.SetDemand(d.source, d.table); err != nil {
			return d.located(p.File, err)
		}
		p.ends.runtimes[d.source] = d.ends
		if err := p.took(d.input(InputDemand)); err != nil {
			return err
		}
	}
	if i > 0 {
		return nil
	}
	for _, r := range p.running {
		if err := p.state.AddRunning(r.source, r.table); err != nil {
			return r.located(p.File, err)
		}
		p.ends.running(r.source, r.table, now)
		if err := p.took(r.input(InputRunning)); err != nil {
			return err
		}
	}
	return nil
}
