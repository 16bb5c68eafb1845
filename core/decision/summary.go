package decision

import "github.com/stintd/stint/core/column"

// Summary is the row of a cycle in the table cycles, and what stands around it.
type Summary struct {
	Cycle, NowUS          int64
	StartedUS, FinishedUS int64 // wall clock, measured outside of the pure function
	Revision              int64
	Window                string
	Hosts, Consumers      int64
	SubAllocations        int64
	UnitsWanted           int64
	UnitsHeld             int64
	UnitsGranted          int64
	UnitsReclaimed        int64
	// under reclaim after the cycle; not in the table, like the next four, for those who wait for a fixed point
	UnitsLeaving   int64
	UnitsCancelled int64 // no longer under reclaim, though still held
	UnitsPromised  int64 // that takers wait for, or waited for as the cycle began, whichever are more
	UnitsOverdue   int64 // under reclaim past their deadline (CYC-8)
	Relabelled     bool  // whether what units count as changed (CYC-3)
	Restated       bool  // whether the state tables were made anew; else they are those of the last cycle
	UnitsReleased  int64
	UnitsShort     int64
	// unit-milliseconds of work that reclaims stopped before their end; in the table in seconds
	UnitMSLost      int64
	StageUS         [7]int64 // by Stages
	Inputs          []string // "kind/digest", in the order applied
	Digest          string   // of all decision tables, measured times left out
	ConsumersCycle  int64
	SharesCycle     int64
	ShortfallsCycle int64
	StandingCycle   int64 // from which on the rows of Standing count; 0: they are not there
}

// Stages are the names of the seven stages (SPEC chapter 2).
var Stages = [...]string{"settle", "own", "entitle", "grant", "reclaim", "explain", "emit"}

// RulesVersion is the version of the rules that the decisions follow. Version 2 steered fair reclaim in MD plans by
// usage quotas (MD-17); version 3 is docs/spec/md.md. In version 4 owners give
// up idle closed hosts, and idle parts where a whole host is free (MD-3).
const RulesVersion = "4"

// Stable tells whether the cycle changed nothing and nothing is pending: a fixed point (CYC-2). A reclaim that was
// cancelled is a change: quotas go by what is not under reclaim, and follow in the next cycle. So is a promise that
// lapsed: the room that was held for its taker is there for others in the next cycle.
func (s *Summary) Stable() bool {
	return s.UnitsGranted == 0 && s.UnitsReclaimed == 0 && s.UnitsReleased == 0 && s.UnitsCancelled == 0 &&
		!s.Relabelled && s.UnitsLeaving == 0 && s.UnitsPromised == 0
}

// keyframeEvery is how many cycles have one keyframe (SPEC chapter 8).
const keyframeEvery = 60

const dayUS = 24 * 60 * 60 * 1_000_000

// KeyframeDue tells whether the cycle has a keyframe in the log (SPEC chapter 8): the first of a UTC day, every 60th,
// and those in which units came to count as something else, which no other table tells (D-28). lastUS is the now of the
// cycle before.
func (s *Summary) KeyframeDue(lastUS int64) bool { return s.StateDue(lastUS) || s.Relabelled }

// StateDue tells whether the log gets the state after the cycle (D-40): in the first of a UTC day, and every 60th.
func (s *Summary) StateDue(lastUS int64) bool {
	return (s.Cycle-1)%keyframeEvery == 0 || s.NowUS/dayUS != lastUS/dayUS
}

// Schema declares the columns of the table cycles, which has one row.
func (s *Summary) Schema() column.Schema {
	const (
		clock   = "by the clock of the machine; measured, as are all `_us`"
		many    = "how many"
		after   = "after the cycle"
		within  = "in the cycle"
		holder  = "the cycle whose rows hold"
		stageUS = "time of each of the seven stages: settle, own, entitle, grant, reclaim, explain, emit"
	)
	rules := RulesVersion
	lines := make([]column.Line, 0, 22+len(Stages))
	lines = append(lines, []column.Line{
		{Name: "now", Of: column.One(&s.NowUS), Type: Time, Doc: "the cycle's time"},
		{Name: "started", Of: column.One(&s.StartedUS), Type: Time, Doc: clock},
		{Name: "finished", Of: column.One(&s.FinishedUS), Type: Time, Doc: clock},
		{Name: "revision", Of: column.One(&s.Revision), Doc: "of the policy, from 1"},
		{Name: "rules_version", Of: column.Word(&rules), Doc: "version of the rules"},
		{Name: "time_window", Of: column.Word(&s.Window), Was: "window", Until: 1,
			Doc: "the time window, empty without any"},
		{Name: "hosts", Of: column.One(&s.Hosts), Doc: many},
		{Name: "consumers", Of: column.One(&s.Consumers), Doc: many},
		{Name: "sub_allocations", Of: column.One(&s.SubAllocations), Doc: many},
		{Name: "units_wanted", Of: column.One(&s.UnitsWanted), Doc: after},
		{Name: "units_held", Of: column.One(&s.UnitsHeld), Doc: after},
		{Name: "units_granted", Of: column.One(&s.UnitsGranted), Doc: within},
		{Name: "units_reclaimed", Of: column.One(&s.UnitsReclaimed), Doc: within},
		{Name: "units_released", Of: column.One(&s.UnitsReleased), Doc: within},
		{Name: "units_short", Of: column.One(&s.UnitsShort), Doc: after},
		lostLine(column.Seconds(&s.UnitMSLost), within),
	}...)
	for i, stage := range Stages {
		lines = append(lines, column.Line{Name: stage + "_us", Of: column.One(&s.StageUS[i]), Doc: stageUS})
	}
	lines = append(lines, []column.Line{
		{Name: "inputs", Of: column.Texts(&s.Inputs),
			Doc: "`<kind>/<digest>` of the inputs that came with the cycle, in the order applied"},
		{Name: "decisions_digest", Of: column.Word(&s.Digest), Doc: "see above"},
		{Name: "consumers_cycle", Of: column.One(&s.ConsumersCycle), Doc: holder},
		{Name: "shares_cycle", Of: column.One(&s.SharesCycle), Doc: holder},
		{Name: "shortfalls_cycle", Of: column.One(&s.ShortfallsCycle), Doc: holder},
		{Name: "standing_cycle", Of: column.One(&s.StandingCycle), Since: 4,
			Doc: "the cycle in which what stands was written whole, 0 where that is not known"},
	}...)
	return column.Schema{Name: "cycles", Lines: lines}
}
