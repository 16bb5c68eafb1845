// Package md carries out multidimensional plans (SPEC chapter 4): capacities and
// shares of pools, fair granting, quotas and the reasons of shortfalls. A Planner
// is one plan's stages; core/cycle calls them in order.
package md

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/place"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// Planner carries out one MD plan. Between cycles it keeps what depends on the
// plan alone: classes of equal hosts, capacities by shape, usages, the parcels'
// order, and scratch memory. A new Planner decides the same as an old one; it
// only has more to compute.
type Planner struct {
	Reviewed bool // who calls it has reviewed the sets under way, by core/reclaim; for tests

	Eager bool // what saves time where much is to be done is done wherever it may be. It decides nothing

	s      *cluster.State
	p      *cluster.Plan
	policy *plan.Policy
	set    *plan.MDWindow

	desk    place.Desk
	owners  owners
	reserve reserves
	pools   pools
	public  public

	// By Node.
	pooled [][]int64 // by dimension: amount held from pools above it and not under reclaim (MD-18); empty when nothing is limited
	// Like pooled, once the cycle has taken back and promised all that it may.
	claimed [][]int64
	wanted  []int64 // units
	held    []int64
	above   []*pool             // scratch
	kept    []int64             // scratch
	given   []uint64            // scratch: bitset by SubID
	subs    []cluster.SubID     // scratch
	order   []subOrder          // scratch
	rows    []cluster.HoldingID // scratch
	keys    []uint64            // scratch
	twins   []twin              // holdings that EmitGrants found to be one with others
	made    []uint64            // scratch
	began   int64               // State.Shifts.Touches when the cycle began to grant
	synced  bool                // the parcels' order is that of the hosts
	ordered chan struct{}       // closed when the desk has it, too; nil: nobody need wait

	nowUS    int64
	budget   int64 // units that this cycle may still put under reclaim
	turns    int64 // units that it may still promise to takers
	promise  promises
	fairness fairs
	recalls  recalls
	grant    granter
	outlook  outlook
	quota    quotas
	reason   reasons
	sight    sight
	amounts  amounts
	census   census
	figures  figures
}

// Attach points the planner at a state and the plan it is to carry out. Cheap.
func (m *Planner) Attach(s *cluster.State, p *cluster.Plan, nowUS int64) {
	if m.nowUS = nowUS; m.s != s {
		m.owners.laid, m.census.known, m.sight.known = false, false, false // what is kept goes by another state's counts
	}
	m.s, m.p, m.policy, m.set = s, p, s.Policy, &p.MD.Windows[p.Window]
	m.began = s.Shifts.Touches()
}

// Own assigns what consumers own, where anything that it depends on has changed (stage own).
func (m *Planner) Own() {
	m.assign()
	m.p.Owe()
	if m.synced = !m.owners.laid; m.synced {
		m.layAll()
	}
	m.fairness.onHand.doubtAll(m.p.Changed)
	m.census.known = m.census.known && m.p.Parcels.Owned && !m.p.Rebuilt
	m.sight.tell(m.p)
}

// Entitle computes the capacity of the public parcels in units of every shape in use (MD-11), cancels what rules no
// longer ask for, and adds up what is held or promised (MD-12, CYC-7). Beside that, and where no reclaim is under way beside the beginning of the grant
// stage, the parcels' order is brought up to the hosts, where all was not laid anew. O(classes of hosts × shapes).
func (m *Planner) Entitle() {
	if m.Reviewed { // what was cancelled is not in what Own laid
		m.layAll()
	}
	synced := make(chan struct{})
	m.ordered = synced
	go func() {
		if !m.synced {
			m.desk.Field.Among(m.public.parcels)
			m.desk.Sync(m.s, m.p)
		}
		close(synced)
	}()
	m.public.capacity.sync(m.s, m.p, m.public.parcels)
	m.stirChanged()
	if m.underWay() || m.nears() || len(m.s.Plans) > 1 {
		m.awaitOrder() // what is cancelled may change what is kept on parcels; other plans' grants what is held; a lead is tried on a copy of all
	}
	m.returned()
	m.tally()
	if m.pooled = m.pooled[:0]; m.limited() {
		m.poolUp()
	}
	m.restore()
}

// awaitOrder waits until the desk's order of the parcels is brought up.
func (m *Planner) awaitOrder() {
	if m.ordered != nil {
		<-m.ordered
		m.ordered = nil
	}
}

// underWay tells whether any reclaim of the plan is.
func (m *Planner) underWay() bool {
	for id, number := range m.s.Set.Number {
		if number > 0 && m.s.Set.Plan[id] == m.p.Index {
			return true
		}
	}
	return false
}

// poolUp adds up what consumers hold from pools above them, promises counted in (MD-18).
func (m *Planner) poolUp() {
	n := m.policy.Len()
	for d := range m.policy.Dimensions {
		held := make([]int64, n)
		for q, leaf := range m.p.Pairs.Leaf {
			amount := share.Mul(m.promise.net[q], m.s.Shape.Size(m.p.Pairs.Shape[q])[d])
			switch from := m.p.Pairs.Pool[q]; from {
			case cluster.NoID: // its own
			case m.s.ConsumerOf[plan.Root]:
				held[leaf] = share.Add(held[leaf], amount)
			default: // nothing for the pool's consumer and those above it
				held[leaf] = share.Add(held[leaf], amount)
				if mutant != 25 {
					held[m.s.NodeOf[from]] -= amount
				}
			}
		}
		m.sumUp(held)
		m.pooled = append(m.pooled, held)
	}
}

// limited tells whether the plan sets any share limit, or a ratio of 0, which
// counts as a limit of 0 (MD-18).
func (m *Planner) limited() bool {
	for id, number := range m.s.Set.Number {
		if number > 0 && m.s.Set.Plan[id] == m.p.Index && m.s.Set.Reason[id] == decision.ReclaimOverLimit {
			return true // under way for a limit that may be gone
		}
	}
	for n, in := range m.p.Terms.Member {
		if in && m.set.Ratio[n] == 0 && n != int(plan.Root) {
			return true
		}
	}
	for _, column := range m.set.Limit {
		for n, v := range column {
			if v != plan.Unlimited && m.p.Terms.Member[n] {
				return true
			}
		}
	}
	return false
}

// sumUp adds every consumer's figure to its parent's, from the leaves up. O(consumers).
func (m *Planner) sumUp(figure []int64) {
	for n := len(figure) - 1; n > 0; n-- {
		p := m.policy.Parent[n]
		figure[p] = share.Add(figure[p], figure[n])
	}
}

// Settle computes the figures that the tables of states show, as far as that was not done beside reclaim, and judges who is short, when the plan
// changed. One needs nothing of the other, so that both are done at once; meanwhile, which reads what is held and changes none of it, is done by
// whoever comes to it first, and who has computed all helps to judge.
func (m *Planner) Settle(meanwhile func()) {
	if !m.p.Dirty {
		return
	}
	others, judged := make(chan func(), 2), make(chan struct{})
	m.reason.asks.begin()
	go func() {
		m.judgeShort()
		for do := range others {
			do()
		}
		close(judged)
	}()
	m.listShort()
	known := m.endFigures()
	if !known {
		others <- func() { m.Amounts(&m.p.Pairs) } // the longer one first
	}
	others <- meanwhile
	close(others)
	if !known {
		m.canvass()
		m.findPublic()
		m.useAll(&m.p.Pairs)
		m.countAll(m.s.Sub.Held)
		m.keepAll(&m.p.Pairs)
		m.sumPools()
		m.Quota()
	}
	for do := range others {
		do()
	}
	m.helpJudge()
	<-judged
	if !known { // whoever was done first has computed them
		m.sumAmounts()
	}
	m.keepBears()
	m.unite()
}

// inHalves calls f for the two halves of n things, on two goroutines where they are many: f must write to nothing that the other half reads.
func inHalves(n int, f func(from, to int)) {
	if n < 1<<8 {
		f(0, n)
		return
	}
	cluster.Both(true, func() { f(n/2, n) }, func() { f(0, n/2) })
}

// popcount is the number of bits of a bitset.
func popcount(set []uint64) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}

// zeroed is s with n zeros, in its own memory when that is large enough.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
