package decision

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

// RulesVersion is the version of SPEC's rules that the decisions follow: 2 since fair reclaim in MD plans goes by usage
// quotas (MD-17).
const RulesVersion = "2"

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

// Table is a view of the summary as the one-row table cycles.
func (s *Summary) Table() Table {
	one := func(name string, v int64) Column { return ints(name, []int64{v}) }
	word := func(name, v string) Column { return text(name, Coded{[]int32{0}, Words{v}}) }
	t := Table{"cycles", 1, []Column{
		instants("now", []int64{s.NowUS}), instants("started", []int64{s.StartedUS}),
		instants("finished", []int64{s.FinishedUS}), one("revision", s.Revision),
		word("rules_version", RulesVersion), word("time_window", s.Window), one("hosts", s.Hosts),
		one("consumers", s.Consumers), one("sub_allocations", s.SubAllocations),
		one("units_wanted", s.UnitsWanted), one("units_held", s.UnitsHeld),
		one("units_granted", s.UnitsGranted), one("units_reclaimed", s.UnitsReclaimed),
		one("units_released", s.UnitsReleased), one("units_short", s.UnitsShort),
		lost([]float64{Seconds(s.UnitMSLost)}),
	}}
	for i, stage := range Stages {
		t.Columns = append(t.Columns, one(stage+"_us", s.StageUS[i]))
	}
	t.Columns = append(t.Columns, Column{Name: "inputs", Type: List, Lists: [][]string{s.Inputs}},
		word("decisions_digest", s.Digest), one("consumers_cycle", s.ConsumersCycle),
		one("shares_cycle", s.SharesCycle), one("shortfalls_cycle", s.ShortfallsCycle),
		one("standing_cycle", s.StandingCycle))
	return t
}
