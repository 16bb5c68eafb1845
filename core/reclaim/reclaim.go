// Package reclaim takes back in MD plans (docs/spec/md.md; steps are those of docs/shares.md): it cancels reclaims that
// no rule asks for any more (1), reviews the sets under way (2), takes back for rules (6), for owners (7, MD-10) and
// for fair shares (8, MD-17).
// It is given an environment and gives back columns of decisions; it changes nothing of the state, knows no clock, and
// runs on one thread.
//
// A Stage lays what it has decided over the state: rows of what is held on the parcels that it looks at, the room of
// all parcels, sets, promises, and what consumers have net. Each step goes by that, so that nothing need be booked
// between two of them. Grants come between the review and the rules: what was decided is booked before, and the stage
// begins anew behind them.
package reclaim

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
)

// Env is what a stage goes by.
type Env struct {
	pool.Env
	Cycle    *Cycle
	NowUS    int64
	Selected func(need cluster.NeedID) []uint64 // the bitset of parcels that a requirement selects, nil: all
}

// Cycle is what the steps of one cycle of a plan have in common.
type Cycle struct {
	Budget   int64                  // units that it may still put under reclaim (CYC-4)
	Spent    bool                   // it has put any there
	Promises int64                  // units that it may still promise to takers (docs/decisions.md, D-52)
	Undone   map[cluster.SubID]bool // grants of them were taken back: they get nothing more in it (CYC-1)
	Denied   map[cluster.SubID]bool // the budget, or Promises, did not bear a set for them
	Joined   []pool.Join

	before int64 // sets that were opened before the cycle have numbers up to this
}

// NewCycle is a plan's cycle before its first step. O(sets).
func NewCycle(s *cluster.State, p *cluster.Plan) *Cycle {
	c := &Cycle{Budget: p.Terms.ReclaimBudget, Promises: p.PromisesMost()}
	c.Undone, c.Denied = map[cluster.SubID]bool{}, map[cluster.SubID]bool{}
	for _, number := range s.Set.Number {
		c.before = max(c.before, number)
	}
	return c
}

// affords tells whether the budget bears a set of so many units: the first of a cycle always.
func (c *Cycle) affords(units int64) bool {
	return c.Budget == plan.Unlimited || units == 0 || !c.Spent || units <= c.Budget
}

// spend takes units off the budget.
func (c *Cycle) spend(units int64) {
	if c.Spent = c.Spent || units > 0; c.Budget != plan.Unlimited {
		c.Budget = max(0, c.Budget-units)
	}
}

// Stage is the memory of a plan's steps. The zero value is ready; Begin comes first.
type Stage struct {
	// parcels that are looked at one by one, where victims are sought, at most; 0: as is quick. It decides nothing
	Few int

	*Env
	s    *cluster.State
	p    *cluster.Plan
	tree *plan.Tree
	dims int
	out  *Decisions

	ledger
	sets    sets
	limits  *pool.Limits // nil: the plan sets none
	net     netLog
	joined  map[cluster.ParcelID][]cluster.SubID // a unit each, on parcels of which anything is reserved
	undone  map[subPool]int64                    // units that were granted in this cycle and taken back by this stage
	turns   map[cluster.SubID]int8
	gangs   map[cluster.SubID]*gangUnits
	lacking bool // the gang that was gathered for last found too little
	firm    bool // what is promised is held by sets: all of a gang's min_units

	waits   []*waitList // by Node: made when asked for, and kept from one beginning to the next
	lenders []*lender   // by Node: made when asked for
	queue   pool.Queue
	fair    fair
	choice  choice
}

// subPool is a sub-allocation and the pool that it holds from; with NoID it is all that it holds.
type subPool struct {
	sub  cluster.SubID
	pool cluster.ConsumerID
}

// Begin lays a stage over the state as it is now, whose views are up to date. Out is emptied; steps add to it. O(sets,
// sub-allocations, what leaves hold by size where share limits are set, and parcels on which anything changed since it
// began last), or O(parcels × dimensions) where the log does not tell which those are.
func (g *Stage) Begin(e *Env, out *Decisions) {
	g.Env, g.s, g.p, g.tree, g.out = e, e.State, e.Plan, &e.State.Policy.Tree, out
	g.dims = len(g.p.Parcels.Cap)
	g.joined = map[cluster.ParcelID][]cluster.SubID{}
	g.gangs, g.firm = map[cluster.SubID]*gangUnits{}, false
	g.undone, g.turns = map[subPool]int64{}, map[cluster.SubID]int8{}
	g.lenders = column.Zeros(g.lenders, g.tree.Len())
	out.begin(g.s)
	g.net.reset(g.tree.Len())
	g.limits, g.choice.list = nil, nil // until they are laid
	g.fair.taker = taker{}
	kept := g.layLedger()
	g.listSets()
	for _, j := range e.Cycle.Joined {
		g.expect(j)
	}
	if kept {
		for _, w := range g.waits {
			if w != nil {
				w.hints.Reset()
			}
		}
		eachBit(g.laid, g.update)
		eachBit(g.touched, g.changed)
	} else {
		g.waits = column.Zeros(g.waits, g.tree.Len())
	}
	g.layLimits()
}

// mayUse tells whether a parcel may take one unit more of a sub-allocation whose leaf draws on it through the pool of a
// consumer: beside those that it holds on the host, and those that sets promise it there.
func (g *Stage) mayUse(sub cluster.SubID, k cluster.ParcelID, top plan.Node) bool {
	leaf := g.s.Node(sub)
	return g.Meet(leaf, k) == top && g.suits(sub, k) && g.perHost(sub, g.p.Parcels.Host[k], 1) &&
		g.s.Policy.ReclaimUS[leaf] <= g.Grace(g.Owner(k), top)
}

// suits tells whether a parcel may ever take a unit of a sub-allocation: its host is open, meets the requirement, and
// the parcel is large enough.
func (g *Stage) suits(sub cluster.SubID, k cluster.ParcelID) bool {
	if !g.p.Parcels.IsOpen(k) {
		return false
	}
	if set := g.Selected(g.Views.Needs.Need(g.s, sub)); set != nil && !has(set, int(k)) {
		return false
	}
	for d, u := range g.s.Size(sub) {
		if g.p.Parcels.Cap[d][k] < u {
			return false
		}
	}
	return true
}

// perHost tells whether so many units more are within a sub-allocation's max_per_host on a host, beside those that it
// holds there and those that sets promise it.
func (g *Stage) perHost(sub cluster.SubID, host cluster.HostID, more int64) bool {
	most := g.s.Sub.MaxPerHost[sub]
	if most == plan.Unlimited {
		return true
	}
	first := g.s.Host.Parcel[host]
	for k, end := first, g.p.Parcels.End(first); k < end; k++ {
		for i := g.open(k); i > 0; i = g.row[i].next {
			if g.row[i].sub == sub {
				more += g.row[i].units
			}
		}
		for i := g.sets.firstOn[k] - 1; i >= 0; i = g.sets.list[i].next - 1 {
			if one := &g.sets.list[i]; one.taker == sub && one.counts {
				more += one.units
			}
		}
	}
	return more <= most
}

// via is from whose pool a leaf holds units on a parcel, NoID: it is its own.
func (g *Stage) via(leaf plan.Node, owner cluster.ConsumerID) cluster.ConsumerID {
	_, from, _ := g.s.CountsAs(leaf, owner)
	return from
}

// isYoung tells whether units of a leaf have run for less than its min_runtime (REQ-4).
func (g *Stage) isYoung(leaf plan.Node, granted int64) bool {
	return leaf != plan.None && g.s.Young(granted, g.NowUS, g.s.Policy.RuntimeUS[leaf])
}

// within tells whether a leaf is a consumer or below it; orphans are outsiders of everybody.
func (g *Stage) within(leaf, n plan.Node) bool { return leaf != plan.None && g.tree.Within(leaf, n) }

// has tells whether a bit of a bitset is set.
func has(set []uint64, i int) bool { return set[i>>6]>>(uint(i)&63)&1 == 1 }

// add adds units of a size to a sum.
func add(sum, size []int64, units int64) {
	for d, u := range size {
		sum[d] += u * units
	}
}

// covers tells whether a unit fits what there is with what is taken back besides.
func covers(room, besides, size []int64) bool {
	for d, u := range size {
		if u > 0 && room[d]+besides[d] < u {
			return false
		}
	}
	return true
}
