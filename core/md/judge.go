package md

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// ask is what the reasons of a unit by itself go by.
type ask struct {
	shape cluster.ShapeID
	need  cluster.NeedID
}

// judged is a sub-allocation that is short of more than it is promised, and what stands against a unit of it by itself.
type judged struct {
	sub   cluster.SubID
	leaf  plan.Node
	ask   ask
	stop  stop
	bound reason
}

// reasons is what reasons are made of in a cycle.
type reasons struct {
	short []cluster.SubID // all that are short, in the order of eachSub
	order []subOrder      // scratch
	subs  []judged        // of these, those that are short of more than they are promised
	first []cluster.SubID // who may be short: hungry.short, and who is taken in
	asked []askedAt       // what those ask for, in the order of asks
	place []int32         // of those, in subs; NoID: nowhere
	rows  int             // of the table shortfalls
	asks  asks
	last  *reason                  // until all that leaves is gone
	bears map[ask]cluster.ParcelID // kept from cycle to cycle: a parcel that is large enough, when last looked at
}

// sortShort lists who may be short in the end, and sorts what they ask for: whose demand was outstanding when the grant stage began to hand out (hungry).
// It changes nothing that reclaim goes by. O(short × log short).
func (m *Planner) sortShort() {
	r := &m.reason
	r.first = append(r.first[:0], m.grant.hungry.short...)
	m.sortAsks()
}

// sortAsks lists what they ask for.
func (m *Planner) sortAsks() {
	r, u := &m.reason, &m.s.Sub
	r.asked = r.asked[:0]
	for i, sub := range r.first {
		r.asked = append(r.asked, askedAt{ask{u.Shape[sub], u.Need[sub]}, int32(i)})
	}
	slices.SortFunc(r.asked, func(a, b askedAt) int {
		return cmp.Or(cmp.Compare(a.need, b.need), cmp.Compare(a.shape, b.shape), cmp.Compare(a.at, b.at))
	})
}

// takeInUndone takes in those who are short again, as what a set had given them before is taken back.
func (m *Planner) takeInUndone() {
	r, were := &m.reason, len(m.reason.first)
	for sub := range m.fairness.undone { // in any order, as they are sorted
		if !m.grant.hungry.has(m.s.Node(sub), sub) && mutant != 75 {
			r.first = append(r.first, sub)
		}
	}
	if len(r.first) > were {
		r.order = m.sortSubs(r.first, r.order)
		m.sortAsks()
	}
}

// listShort lists who is short in the order of eachSub, what they ask for, and has judging begun, after sortShort.
func (m *Planner) listShort() {
	m.takeInUndone()
	r := &m.reason
	r.short, r.subs, r.rows, r.place = r.short[:0], r.subs[:0], 0, resized(r.place, len(r.first))
	for i, sub := range r.first {
		if r.place[i] = cluster.NoID; !m.outstanding(sub) {
			continue
		}
		r.short = append(r.short, sub)
		short := m.s.Short(sub)
		waits := min(short, m.promise.units[sub])
		if waits > 0 {
			r.rows++
		}
		if short > waits {
			leaf := m.s.Node(sub)
			r.place[i] = int32(len(r.subs))
			r.subs = append(r.subs, judged{sub: sub, leaf: leaf, ask: ask{m.s.Sub.Shape[sub], m.s.Sub.Need[sub]}, stop: m.stops(leaf, sub)})
			r.rows++
		}
	}
	r.asks.list(r.subs, r.asked, r.place)
	close(r.asks.listed)
}

// outstanding tells whether a row is a sub-allocation of the plan that holds less than it wants.
func (m *Planner) outstanding(sub cluster.SubID) bool {
	u := &m.s.Sub
	return u.Wanted[sub] > u.Held[sub] && u.Plan[sub] == m.p.Index && u.Alloc[sub] != cluster.NoID && !u.Orphan[sub]
}

// judgeShort finds what stands against units of those who are short by themselves, of those that ask for the same together: it looks at the parcels,
// which must be as they are after granting, beside listShort, and judges beside helpJudge. It changes nothing that Settle computes, and needs nothing of it.
// O(asks × parcels × dimensions + leaves × parcels ÷ 64).
func (m *Planner) judgeShort() {
	l, dealt, looked := &m.reason.asks, 0, len(m.grant.hungry.leaf) > 0
	if looked {
		m.laySight()
	}
	<-l.listed
	subs := m.reason.subs
	if len(subs) > 0 {
		if !looked { // whose source is silent is short, but not hungry
			m.laySight()
		}
		dealt = m.layAsks(subs)
	}
	close(l.laid)
	m.judgeDealt(subs, 0)
	for i := dealt; len(subs) > 0 && i < l.count(); i++ {
		m.judgeAsk(&l.by[0], subs, i)
	}
}

// eye is what the parcels that a leaf may use go by, beside its place in the tree.
type eye struct {
	of    plan.Node // the leaf, or its parent when it stands for all leaves there that own nothing
	us    int64     // reclaim_grace
	depth int32     // of the deepest pool that is stopped, -1: none
}

// judgeAsk is judge for those who ask one.
func (m *Planner) judgeAsk(a *asked, subs []judged, ask int) {
	list := m.reason.asks.of(ask)
	key := subs[list[0]].ask
	m.lay(a, key, m.reason.asks.rungs(ask))
	all := m.ofAll(a, key)
	var last eye
	var found sights
	for i, at := range list {
		one := &subs[at]
		if one.bound = all; all.code != fits || a.count == 0 {
			continue
		}
		this := eye{one.leaf, m.policy.ReclaimUS[one.leaf], one.stop.depth}
		if len(m.owned(one.leaf)) == 0 {
			this.of = m.policy.Parent[one.leaf]
		}
		if i == 0 || this != last {
			last, found = this, m.look(a, one, nil)
		}
		one.bound = m.ofUnit(a, one, &found)
	}
}

// ofAll tells what stands against a unit wherever it may be used: requirement and size.
func (m *Planner) ofAll(a *asked, key ask) reason {
	r := reason{code: fits, dimension: decision.Null, blocker: plan.None}
	if a.count == 0 {
		if key.need != cluster.NoID {
			r.code, r.detail = decision.ReasonNoHostMatches, m.s.Need.String(int32(key.need))
		}
		return r
	}
	p := &m.p.Parcels
	set, _ := m.desk.Selected(key.need)
	if k, known := m.reason.bears[key]; known && int(k) < p.Len() && m.isBorne(a, k, set) {
		return r
	}
	mask := slices.Clone(p.Open)
	for w := range set {
		mask[w] &= set[w]
	}
	if k := vecpack.FirstAtLeast(mask, nil, 0, p.Cap, a.size, a.need); k >= 0 {
		a.borne = append(a.borne, bearing{key, cluster.ParcelID(k)})
		return r
	}
	t := tally{rows: a.count}
	for i, d := range a.need {
		t.below[i] = vecpack.CountBelow(mask, p.Cap[d], a.size[d])
	}
	return m.scarce(decision.ReasonTooBig, a, &t, "are smaller")
}

// lastBearing is of how many asks is kept, at most, where a unit would fit an empty parcel.
const lastBearing = 1 << 16

// isBorne tells whether a parcel is open and selected, and has all that a unit takes: so one that was found once tells it of most asks in every cycle.
func (m *Planner) isBorne(a *asked, k cluster.ParcelID, selected []uint64) bool {
	p := &m.p.Parcels
	if !p.IsOpen(k) || !has(selected, k) {
		return false
	}
	for _, d := range a.need {
		if p.Cap[d][k] < a.size[d] {
			return false
		}
	}
	return true
}

// sights is what a leaf sees of the parcels for a unit.
type sights struct {
	may     tally     // what it may be given
	reached int       // parcels within grace, in pools that are stopped too
	fit     bool      // there is room somewhere, whatever keeps the unit from it
	graced  bool      // there is room that its grace alone keeps it from
	stopped plan.Node // whose stopped pool, the deepest, alone keeps it from room; None: no pool does
}

// look adds up what the parcels are to a leaf for a unit, those of blocked rows, when given, left aside.
func (m *Planner) look(a *asked, one *judged, blocked []uint64) sights {
	s, us := sights{stopped: plan.None}, m.policy.ReclaimUS[one.leaf]
	m.eachSpan(one.leaf, func(o span) {
		var t tally
		switch {
		case o.top == one.leaf:
			t = a.tally(nil, o, anyGrace, blocked)
		case o.top == plan.Root && blocked == nil:
			t = m.around(a, o, us)
		default:
			t = a.tally(&m.sight.tier[o.depth], o, m.withinGrace(o.depth, us), blocked)
		}
		s.reached, s.fit = s.reached+t.rows, s.fit || t.fit+t.beyond > 0
		switch {
		case o.top == one.leaf || o.depth > one.stop.depth:
			s.may.add(&t, 1)
			s.graced = s.graced || t.beyond > 0
		case t.fit > 0 && s.stopped == plan.None: // they come from the deepest up
			s.stopped = o.top
		}
	})
	return s
}

// around is the tally of what the public pool is to a leaf: all rows, which are added up once, less those of the hole.
func (m *Planner) around(a *asked, o span, us int64) tally {
	g := m.withinGrace(0, us)
	all, ok := a.total[g.place]
	if !ok {
		all = m.all(a, g)
		a.total[g.place] = all
	}
	hole := a.tally(&m.sight.tier[0], span{from: o.holeFrom, to: o.holeTo, holeFrom: o.holeTo, holeTo: o.holeTo}, g, nil)
	all.add(&hole, -1)
	return all
}

// ofUnit tells what stands against a unit of a sub-allocation by itself: max_per_host, grace, pools that are stopped, scattered room.
func (m *Planner) ofUnit(a *asked, one *judged, seen *sights) reason {
	none := reason{code: fits, dimension: decision.Null, blocker: plan.None}
	kept, may := seen.reached == 0, seen
	var blocked []uint64
	if m.s.Sub.MaxPerHost[one.sub] != plan.Unlimited {
		blocked = m.blocked(one.sub)
		less := m.look(a, one, blocked)
		switch {
		case seen.fit && !less.fit:
			return reason{code: decision.ReasonMaxPerHost, dimension: decision.Null, blocker: plan.None, detail: "it would fit, but only where max_per_host is reached"}
		case a.without(blocked) == 0:
			return reason{code: decision.ReasonMaxPerHost, dimension: decision.Null, blocker: plan.None, detail: "max_per_host is reached on every host that it may use"}
		}
		may = &less
	}
	switch {
	case kept || may.graced:
		return graceFilter
	case may.stopped != plan.None:
		none.code, none.top = decision.ReasonShareLimit, may.stopped
		return none
	}
	none.dimension = m.scarce(fits, a, &may.may, "have less free").dimension
	if may.may.fit > 0 { // on room that was not granted after all (CYC-1)
		return none
	}
	for _, d := range a.need {
		if !m.adds(a, one, blocked, d) {
			return none
		}
	}
	return m.scarce(decision.ReasonFragmented, a, &may.may, "have less free")
}

// adds tells whether the room of a dimension on all parcels that a leaf may be given adds up to a unit.
func (m *Planner) adds(a *asked, one *judged, blocked []uint64, d int) bool {
	v, left, us := &m.sight, a.size[d], m.policy.ReclaimUS[one.leaf]
	m.eachSpan(one.leaf, func(o span) {
		switch {
		case left <= 0:
		case o.top == one.leaf:
			left -= v.sum(a, o, anyGrace, blocked, nil, d, left)
		case o.depth <= one.stop.depth:
		case o.top == plan.Root && blocked == nil && a.size[d] <= v.most():
			g := m.withinGrace(0, us)
			if some := v.sumSome(a, o, g, &v.tier[0], d, left); some >= left {
				left = 0
			} else {
				left -= v.sumAround(a, o, g, d)
			}
		default:
			left -= v.sum(a, o, m.withinGrace(o.depth, us), blocked, &v.tier[o.depth], d, left)
		}
	})
	return left <= 0
}

// graceFilter is the reason of units that only a shorter grace would let in.
var graceFilter = reason{code: decision.ReasonGraceFilter, dimension: decision.Null, blocker: plan.None,
	detail: "only work that can be given back sooner may use what is free"}

// scarce names the dimension in which most of the parcels tallied have less than a unit takes.
func (m *Planner) scarce(code int32, a *asked, t *tally, what string) reason {
	r, most := reason{code: code, dimension: decision.Null, blocker: plan.None}, 0
	for i, d := range a.need {
		if n := t.below[i]; n > most {
			most, r.dimension = n, int32(d)
		}
	}
	if r.dimension != decision.Null && code != fits {
		r.detail = fmt.Sprintf("a unit takes %d %s, %d of %d hosts %s",
			a.size[r.dimension], m.policy.Dimensions[r.dimension], most, t.rows, what)
	}
	return r
}

// blocked is the rows of hosts on which a sub-allocation holds its max_per_host.
func (m *Planner) blocked(sub cluster.SubID) []uint64 {
	set := make([]uint64, m.p.Parcels.Words())
	on := map[cluster.ParcelID]int64{}
	for q := m.s.Sub.First[sub]; q != cluster.NoID; q = m.s.Holding.NextOfSub[q] {
		k := m.p.Parcels.Begin(m.s.Holding.Parcel[q])
		if on[k] += m.s.Holding.Units[q]; on[k] >= m.s.Sub.MaxPerHost[sub] {
			for end := m.p.Parcels.End(k); k < end; k++ {
				row := m.sight.row[k]
				set[row>>6] |= 1 << (uint(row) & 63)
			}
		}
	}
	return set
}
