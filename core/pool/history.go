package pool

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// historyMark is how far a decayed usage must have moved for the tables to tell it: a hundredth of the pool.
const historyMark = share.One / 100

// Remember lets what was used of pools decay until a time, adds what was held since the last cycle (D-164), and finds
// by how much it lowers ratios (D-165). A plan in which a ratio counts otherwise than in the last cycle, or a usage
// passed another hundredth of the pool, has changed. Plans without a half-life cost nothing, others O(consumers ×
// depth), and where they changed their sub-allocations.
func Remember(s *cluster.State, nowUS int64) {
	for i := range s.Plans {
		p := &s.Plans[i]
		if p.MD == nil || p.MD.HalfLifeUS == 0 {
			continue
		}
		h := &p.History
		if s.Cycle > 0 && nowUS > s.NowUS {
			left := share.Left(nowUS-s.NowUS, p.MD.HalfLifeUS)
			for row, held := range h.Held {
				h.Decayed[row] = share.Decay(h.Decayed[row], held, left)
			}
		}
		if p.Dirty {
			h.Wants = wanting(s, p, h.Wants)
		}
		other := Lower(s, p)
		if other {
			s.Relower(p)
		}
		near := func(a, b int64) bool { return a/historyMark == b/historyMark }
		if other || !slices.EqualFunc(h.Decayed, h.Told, near) {
			copy(h.Told, h.Decayed)
			p.Dirty = true
		}
	}
}

// wanting is who wants something, or has somebody below it that does, by node.
func wanting(s *cluster.State, p *cluster.Plan, out []bool) []bool {
	e := Env{State: s, Plan: p}
	clear(out)
	for n := len(out) - 1; n >= 0; n-- {
		e.EachSub(plan.Node(n), func(sub cluster.SubID) { out[n] = out[n] || s.Sub.Wanted[sub] > 0 })
		if up := s.Policy.Parent[n]; out[n] && up != plan.None {
			out[up] = true
		}
	}
	return out
}

// Lower finds by what consumers' ratios count in each pool, in the plan's window, and tells whether any counts
// otherwise than before (D-165).
func Lower(s *cluster.State, p *cluster.Plan) (other bool) { return lower(s, p, &p.History) }

func lower(s *cluster.State, p *cluster.Plan, h *cluster.History) (other bool) {
	l := lowering{t: &s.Policy.Tree, p: p, h: h, w: &p.MD.Windows[p.Window], part: make([]int64, s.Policy.Len())}
	for pool := range plan.Node(l.t.Len()) {
		if l.t.Leaf(pool) {
			continue
		}
		l.part[pool] = share.One
		for n := pool; n < l.t.End[pool]; n++ { // parents come before their children
			l.children(pool, n)
		}
	}
	return l.other
}

// lowering finds factors, pool by pool.
type lowering struct {
	t     *plan.Tree
	p     *cluster.Plan
	h     *cluster.History
	w     *plan.MDWindow
	part  []int64 // by node: its part of the pool by ratios, as if its priority had all that its parent has
	peers []plan.Node
	other bool
}

// children finds the factors of the children of a consumer in a pool: among those of one priority that want something
// and have a ratio. Of all others all of it counts.
func (l *lowering) children(pool, up plan.Node) {
	l.peers = l.peers[:0]
	for n := l.t.First[up]; n != plan.None; n = l.t.Next[n] {
		if l.p.Terms.Member[n] && l.w.Ratio[n] > 0 && l.h.Wants[n] {
			l.peers = append(l.peers, n)
			continue
		}
		l.part[n] = 0
		l.set(pool, n, cluster.FactorWhole)
	}
	slices.SortStableFunc(l.peers, func(a, b plan.Node) int { return cmp.Compare(l.w.Priority[a], l.w.Priority[b]) })
	for from, to := 0, 0; from < len(l.peers); from = to {
		var ratios, used int64
		for to = from; to < len(l.peers) && l.w.Priority[l.peers[to]] == l.w.Priority[l.peers[from]]; to++ {
			ratios, used = ratios+l.w.Ratio[l.peers[to]], share.Add(used, l.used(pool, l.peers[to]))
		}
		for _, n := range l.peers[from:to] {
			l.part[n] = share.Part(l.part[up], l.w.Ratio[n], ratios)
			fair := share.Part(used, l.w.Ratio[n], ratios)
			l.set(pool, n, share.Lowered(l.used(pool, n), fair, max(l.part[n], fair), l.p.MD.HistoryMilli))
		}
	}
}

// used is a consumer's decayed usage in a pool.
func (l *lowering) used(pool, n plan.Node) int64 { return l.h.Decayed[l.h.At(l.t, n, pool)] }

func (l *lowering) set(pool, n plan.Node, factor int64) {
	if at := &l.h.Factor[l.h.At(l.t, n, pool)]; *at != factor {
		*at, l.other = factor, true
	}
}

// How closely NextLowered looks: so often in a half-life, for so many of them, and while a usage is farther from what
// is held than so much of the pool.
const (
	looksInHalfLife = 16
	halfLivesMost   = 8
	settledNear     = share.One / 1000
)

// NextLowered is about when a ratio counts otherwise, after the last cycle, by what was held as it ended, or before
// where that is earlier: it is for simulations, which leave out cycles in which nothing would happen (D-167). O(times
// looked at × consumers × depth) for plans whose usages are not settled.
func NextLowered(s *cluster.State, before int64) int64 {
	for i := range s.Plans {
		p := &s.Plans[i]
		settled := func(a, b int64) bool { return max(a, b)-min(a, b) < settledNear }
		if p.MD == nil || p.MD.HalfLifeUS == 0 || slices.EqualFunc(p.History.Decayed, p.History.Held, settled) {
			continue
		}
		h, now := p.History, p.History.Decayed
		h.Decayed, h.Factor = make([]int64, len(now)), slices.Clone(h.Factor)
		for n := int64(1); n <= looksInHalfLife*halfLivesMost; n++ {
			at := s.NowUS + n*p.MD.HalfLifeUS/looksInHalfLife
			if at >= before {
				break
			}
			left := share.Left(at-s.NowUS, p.MD.HalfLifeUS)
			for row, held := range h.Held {
				h.Decayed[row] = share.Decay(now[row], held, left)
			}
			if lower(s, p, &h) {
				before = at
			}
		}
	}
	return before
}

// Hold notes what consumers hold of the pools as a cycle ends (MD-12). The figures are of then.
func (b *Book) Hold(s *cluster.State, p *cluster.Plan) {
	h, t := &p.History, &s.Policy.Tree
	if len(h.Consumer) == 0 {
		return
	}
	clear(h.Held)
	for _, pool := range b.List {
		usage := b.Of(pool).Usage
		for n := pool + 1; n < t.End[pool]; n++ {
			h.Held[h.At(t, n, pool)] = usage[n-pool]
		}
	}
}

// Ratio is by what a consumer takes part in a pool above it: its share ratio, in a plan with a half-life in hundredths,
// lowered by what it used lately (D-165).
func (e *Env) Ratio(pool, n plan.Node) int64 {
	ratio, h := e.Window.Ratio[n], &e.Plan.History
	if len(h.Factor) > 0 {
		ratio *= h.Factor[h.At(&e.State.Policy.Tree, n, pool)]
	}
	return ratio
}
