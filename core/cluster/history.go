package cluster

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// History is what consumers of an MD plan with a half-life used of pools lately, and by how much that lowers their
// ratios (D-164, D-165): a row for each consumer and each one above it, consumers in tree order, of each the pools from
// the root down. It has no rows where the plan has no half-life. core/pool fills the figures in.
type History struct {
	Consumer, Pool []ConsumerID // NoID: of a consumer that is no more
	Decayed        []int64      // decayed usage as of the last cycle, in 2⁻⁴⁸ of the pool
	Held           []int64      // usage as the last cycle ended (MD-12)
	Told           []int64      // Decayed as the tables have it
	Factor         []int64      // in hundredths: so much of its ratio counts

	Wants []bool  // by Node: it, or who is below it, wants something
	first []int32 // by Node: its first row
}

// FactorWhole is the factor of who used no more than its part.
const FactorWhole = 100

// At is the row of a consumer in the pool of one above it.
func (h *History) At(t *plan.Tree, n, pool plan.Node) int { return int(h.first[n] + t.Depth[pool]) }

// historyRows makes the rows of a plan with a half-life. What was used before goes on, by consumer and pool.
func (s *State) historyRows(p, was *Plan) {
	if p.MD == nil || p.MD.HalfLifeUS == 0 {
		return
	}
	h, t := &p.History, &s.Policy.Tree
	h.lay(t)
	for n := range plan.Node(t.Len()) {
		from := len(h.Consumer)
		for up := t.Parent[n]; up != plan.None; up = t.Parent[up] {
			h.Consumer, h.Pool = append(h.Consumer, s.ConsumerOf[n]), append(h.Pool, s.ConsumerOf[up])
		}
		slices.Reverse(h.Pool[from:])
	}
	rows := len(h.Consumer)
	for _, column := range h.columns() {
		*column = make([]int64, rows)
	}
	h.Wants = make([]bool, t.Len())
	before := map[[2]ConsumerID]int{}
	if was != nil {
		for i, c := range was.History.Consumer {
			before[[2]ConsumerID{c, was.History.Pool[i]}] = i
		}
	}
	for i, c := range h.Consumer {
		h.Factor[i] = FactorWhole
		if k, ok := before[[2]ConsumerID{c, h.Pool[i]}]; ok {
			old := was.History.columns()
			for at, column := range h.columns() {
				(*column)[i] = (*old[at])[k]
			}
		}
	}
}

// columns are the columns of figures.
func (h *History) columns() [4]*[]int64 { return [4]*[]int64{&h.Decayed, &h.Held, &h.Told, &h.Factor} }

// lay finds the first row of each consumer.
func (h *History) lay(t *plan.Tree) {
	h.first = make([]int32, t.Len())
	rows := int32(0)
	for n := range h.first {
		h.first[n], rows = rows, rows+t.Depth[n]
	}
}

// inheritHistory gives what was used of pools to the consumers that others are renamed to.
func (p *Plan) inheritHistory(heir map[ConsumerID]ConsumerID) {
	inherit(p.History.Consumer, heir)
	inherit(p.History.Pool, heir)
}

// Relower notes that ratios of a plan count otherwise than in the last cycle: all whom fair share took from may take
// again (D-38).
func (s *State) Relower(p *Plan) {
	p.Dirty = true
	s.forgive(p)
}

// soundHistory looks at what was used lately: rows for the plan's tree where it has a half-life, else none.
func (s *State) soundHistory(k *soundness, what string, p *Plan, md *plan.MDPlan) {
	h, want := &p.History, History{}
	if md != nil && len(s.ConsumerOf) == s.Policy.Len() {
		of := Plan{MD: md}
		s.historyRows(&of, nil)
		want = of.History
	}
	if !slices.Equal(h.Consumer, want.Consumer) || !slices.Equal(h.Pool, want.Pool) {
		k.fail("%s: usage of other consumers or pools than in the policy", what)
		return
	}
	if len(h.Wants) != len(want.Wants) {
		k.fail("%s: who wants something of %d consumers of %d", what, len(h.Wants), len(want.Wants))
	}
	for _, column := range [][]int64{h.Decayed, h.Held, h.Told} {
		if slices.ContainsFunc(column, func(v int64) bool { return v < 0 }) {
			k.fail("%s: a usage below 0", what)
		}
	}
	if slices.ContainsFunc(h.Factor, func(v int64) bool { return v < 1 || v > FactorWhole }) {
		k.fail("%s: a ratio of which less than nothing counts, or more than all", what)
	}
}
