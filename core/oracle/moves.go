package oracle

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Fair reclaim in MD plans (MD-17, MD-18.2), by docs/spec/md.md. Functions name the rule that they play.

// victim is what goes at once: a unit, or all that stays of a gang that may do without none of it (MD-17.7).
type victim struct {
	units []*unit
	whole bool
}

func (v victim) leaf() plan.Node { return v.units[0].leaf() }
func (v victim) sub() *sub       { return v.units[0].sub }

// gathering is how far a gang that takes in the pool has come (MD-17.7).
type gathering struct {
	all, got int64 // what its units add to the stake: all that were missing, and those that have room by now
	deficit  int64 // as it began
	sum      *big.Int
}

// moves is MD-17 in the pool: three passes (MD-17.1).
func (q pool) moves() {
	for pass := 1; pass <= 3; pass++ {
		q.begin()
		tree := map[plan.Node]bool{}
		for _, s := range q.below(q.at) {
			if leaf := s.alloc.leaf; !q.barred(leaf) && q.w.ShareReclaim[leaf] {
				tree[leaf] = true
			}
		}
		for {
			now := map[plan.Node]bool{}
			for leaf := range tree {
				if (q.deficit(leaf) > slack) == (pass < 3) {
					now[leaf] = true
				}
			}
			if len(now) == 0 {
				break
			}
			leaf := q.choose(q.at, now, func(a, b plan.Node) bool { return q.before(a, b, q.stake) })
			if !q.serve(leaf, q.counted, func(s *sub) bool {
				return !q.forming[s] && q.pledged(s) < s.short() && !q.passed[s] && q.serves(s, pass)
			}) {
				delete(tree, leaf)
			}
		}
	}
}

// serves promises a unit, or passes its sub-allocation over (MD-17.1, 2).
func (q pool) serves(s *sub, pass int) bool {
	q.passed[s] = !(!q.stops(s) && q.waits(s)) && !(pass < 3 && q.moveFor(s, pass == 1, nil))
	clear(q.has)
	return !q.passed[s]
}

// mirrored are the leaves below a consumer in the order of the mirrored walk (MD-17.3).
func (q pool) mirrored(n plan.Node) []plan.Node {
	if q.p.Leaf(n) {
		return []plan.Node{n}
	}
	kids, has := q.children(n), map[plan.Node]uint64{}
	for _, k := range kids {
		has[k] = q.stake(k)
	}
	slices.SortFunc(kids, func(a, b plan.Node) int {
		order := 0
		if x, y := q.counting(a), q.counting(b); x == 0 || y == 0 {
			order = cmp.Compare(min(x, 1), min(y, 1))
		} else {
			order = less(has[b], uint64(x), has[a], uint64(y))
		}
		return cmp.Or(cmp.Compare(q.w.Priority[a], q.w.Priority[b]), order, q.rankOrder(q.in, b, a))
	})
	var list []plan.Node
	for _, k := range kids {
		list = append(list, q.mirrored(k)...)
	}
	return list
}

// candidates are the victims for a taker in order (MD-17.3, 7).
func (q pool) candidatesFor(s *sub, first bool, gang *gathering) (list []victim) {
	return slices.DeleteFunc(q.givable(s), func(v victim) bool { return !q.eligible(s, v, first, gang) })
}

// eligible tells whether a victim may be in an allowed move by itself (MD-17.3).
func (q pool) eligible(s *sub, v victim, first bool, gang *gathering) bool {
	leaf := s.alloc.leaf
	t, deficit := q.step(leaf, s.size, 1), q.deficit(leaf)
	if gang != nil {
		t, deficit = gang.all, gang.deficit
	}
	a, b := q.part(leaf, v.leaf())
	switch x, y := q.w.Priority[a], q.w.Priority[b]; {
	case x > y:
		return true
	case x < y || first:
		return false
	case v.whole || t <= deficit+slack:
		return t <= deficit+slack
	}
	return deficit+slack >= q.band(leaf, t) ||
		-q.deficit(v.leaf())+slack >= q.band(v.leaf(), q.given(nil, v.units[0]))
}

// gives tells whether part of a victim is held from the pool on a parcel.
func (q pool) gives(v victim, t parcel) bool {
	return slices.ContainsFunc(v.units, func(u *unit) bool { return q.drawn(u) && lies(u, t) })
}

// givable are units of leaves with a surplus in order, and gangs that go as one.
func (q pool) givable(s *sub) (list []victim) {
	for _, leaf := range q.mirrored(q.at) {
		if leaf == s.alloc.leaf || -q.deficit(leaf) <= slack {
			continue
		}
		units := q.units(func(u *unit) bool { return u.leaf() == leaf && q.drawn(u) && stays(u) })
		place, gone := map[*unit]*unit{}, map[*sub]bool{}
		for _, u := range units {
			place[u] = q.placeOf(u)
		}
		slices.SortFunc(units, func(a, b *unit) int { return cmp.Or(q.newest(place[a], place[b]), q.coreLast(a, b)) })
		for _, u := range units {
			switch {
			case q.core[u] && gone[u.sub]:
			case q.core[u]:
				gone[u.sub] = true
				if all := q.staying(u.sub); slices.ContainsFunc(all, q.young) {
					q.notes["too young to be taken"]++
				} else {
					slices.SortFunc(all, q.newest)
					list = append(list, victim{all, true})
				}
			case q.young(u):
				q.notes["too young to be taken"]++
			default:
				list = append(list, victim{[]*unit{u}, false})
			}
		}
	}
	return list
}

// placeOf is the unit in whose place one comes: of units that a gang may not do without the newest (MD-17.7).
func (q pool) placeOf(u *unit) *unit {
	if !q.core[u] {
		return u
	}
	return slices.MinFunc(q.units(func(o *unit) bool { return o.sub == u.sub && q.core[o] && stays(o) }), q.newest)
}

// move is victims for a taker's unit, with what each takes off its leaf's stake and the surplus before it.
type move struct {
	victims      []victim
	gives, above []int64
	units        []*unit
}

// add counts a victim into a move. What of a gang is in the move already does not count again.
func (q pool) add(m move, v victim) move {
	var more []*unit
	for _, u := range v.units {
		if !slices.Contains(m.units, u) {
			more = append(more, u)
		}
	}
	before, all := int64(0), int64(0)
	for i, o := range m.victims {
		if o.leaf() == v.leaf() {
			before += m.gives[i]
		}
	}
	for i, u := range more {
		if u.pool == q.at {
			all += q.given(append(slices.Clone(m.units), more[:i]...), u)
		}
	}
	return move{append(slices.Clone(m.victims), v), append(slices.Clone(m.gives), all),
		append(slices.Clone(m.above), -q.deficit(v.leaf())-before), append(slices.Clone(m.units), more...)}
}

// worth is what a move takes off stakes.
func (m move) worth() (sum int64) {
	for _, n := range m.gives {
		sum += n
	}
	return sum
}

// better tells whether a move comes before one that was tried before it (MD-17.6).
func (m move) better(o move) bool {
	if a, b := m.worth(), o.worth(); a+slack < b || b+slack < a {
		return a < b
	}
	return len(m.units) < len(o.units)
}

// allowed tells whether all victims of a move may give (MD-17.4).
func (q pool) allowed(s *sub, m move, first bool, gang *gathering) bool {
	leaf := s.alloc.leaf
	t, deficit, sum := q.step(leaf, s.size, 1), q.deficit(leaf), new(big.Int)
	more := t // what the taker gets beyond its stake now
	if gang != nil {
		t, deficit, more = gang.all, gang.deficit, gang.all-gang.got
		sum.Set(gang.sum)
	}
	sum.Add(sum, nearer(deficit-slack, t))
	for i := range m.victims {
		sum.Add(sum, nearer(m.above[i]-slack, m.gives[i]))
	}
	for i, v := range m.victims {
		a, b := q.part(leaf, v.leaf())
		x, y := q.w.Priority[a], q.w.Priority[b]
		if m.above[i] <= slack || x < y {
			return false
		}
		if x > y {
			continue
		}
		near := !v.whole && sum.Sign() > 0 && (deficit+slack >= q.band(leaf, t) ||
			m.above[i]+slack >= q.band(v.leaf(), m.gives[i]))
		if first || !near && !(deficit-t+slack >= 0 && q.ahead(a, b, more, m)) {
			return false
		}
	}
	return true
}

// ahead tells whether the giver's branch b stays ahead of the taker's branch a after a move (MD-17.4 iii).
func (q pool) ahead(a, b plan.Node, more int64, m move) bool {
	has := func(n plan.Node) int64 {
		sum := int64(q.stake(n))
		for i, v := range m.victims {
			if q.under(n, v.leaf()) {
				sum -= m.gives[i]
			}
		}
		return sum
	}
	return q.stays(has(a)+more, has(b), a, b)
}

// stays compares stakes ÷ ratio, the slack in the favour of b.
func (q pool) stays(hasA, hasB int64, a, b plan.Node) bool {
	if q.ratio[b] == 0 {
		return true
	}
	x := new(big.Int).Mul(big.NewInt(hasB+slack), big.NewInt(q.counting(a)))
	return x.Cmp(new(big.Int).Mul(big.NewInt(hasA), big.NewInt(q.counting(b)))) >= 0
}

// limitsWith tells in which dimensions limits on the way below the pool stand against a unit when some units are gone,
// by consumer (MD-18.1).
func (q pool) limitsWith(s *sub, gone []*unit) map[plan.Node][]bool {
	lack := map[plan.Node][]bool{}
	for _, n := range q.way(s.alloc.leaf) {
		over := q.beyond(n, s.size, func(n plan.Node) []int64 {
			v := q.claimed(n)
			for _, u := range gone {
				if q.limitedBy(u, n) {
					plus(v, u.sub.size, -1)
				}
			}
			return v
		})
		for d := range over {
			over[d] = over[d] && s.size[d] > 0
		}
		if slices.Contains(over, true) {
			lack[n] = over
		}
	}
	return lack
}

// eases tells whether a victim lowers what lacks of a limit.
func (q pool) eases(v victim, lack map[plan.Node][]bool) bool {
	for n, over := range lack {
		if slices.ContainsFunc(v.units, func(u *unit) bool { return q.limitedBy(u, n) && touches(u.sub.size, over) }) {
			return true
		}
	}
	return false
}

// moveFor makes a set for a unit whose leaf is below its quota (MD-17.5, 6); first: all its victims under (i).
func (q pool) moveFor(s *sub, first bool, gang *gathering) bool {
	kind := fmt.Sprint(s.alloc.leaf, s.size, s.req, q.bonds[s])
	if s.perHost != plan.Unlimited {
		kind = fmt.Sprint("sub ", s.arrival)
	}
	deficit := q.deficit(s.alloc.leaf)
	if gang != nil {
		deficit = gang.deficit
	}
	if q.vain[kind] || s.turns >= 5 || deficit <= slack {
		return false
	}
	list := q.candidatesFor(s, first, gang)
	m, to, ok := q.choice(s, list, first, gang)
	if q.vain[kind] = !ok; !ok {
		return false
	}
	if !q.exchange(s, to, m.units) {
		return false
	}
	if gang != nil {
		for i := range m.victims {
			gang.sum.Add(gang.sum, nearer(m.above[i]-slack, m.gives[i]))
		}
	}
	return true
}

// choice finds the move that is made.
func (q pool) choice(s *sub, list []victim, first bool, gang *gathering) (best move, to parcel, ok bool) {
	may := slices.DeleteFunc(q.usable(s), func(t parcel) bool { return !q.takes(s, t, 0) })
	fitsAt := func(t parcel) bool {
		return fits(s.size, least(q.room(s.alloc.leaf, t), q.netRoom(s.alloc.leaf, t)))
	}
	if i := slices.IndexFunc(may, fitsAt); i >= 0 { // only a limit lacks (MD-18.2)
		lacks := func(gone []*unit) map[plan.Node][]bool { return q.limitsWith(s, gone) }
		if len(lacks(nil)) == 0 {
			return best, to, false
		}
		best, ok = q.inOrder(s, list, func(m move) bool { return len(lacks(m.units)) == 0 },
			func(m move, v victim) bool { return q.eases(v, lacks(m.units)) })
		return best, may[i], ok && q.allowed(s, best, first, gang)
	}
	found, looked := 0, map[parcelKey]bool{}
	for _, v := range list {
		for _, u := range v.units {
			key := parcelKey{u.host, u.owner}
			i := slices.IndexFunc(may, func(t parcel) bool { return lies(u, t) })
			if i < 0 || !q.drawn(u) || looked[key] || found == choicesMost {
				continue
			}
			looked[key] = true
			m, works := q.moveOn(s, may[i], list, first, gang)
			if !works {
				continue
			}
			found++
			if !ok || m.better(best) {
				best, to, ok = m, may[i], true
			}
		}
	}
	return best, to, ok
}

// moveOn finds the best allowed move on a parcel (MD-17.5).
func (q pool) moveOn(s *sub, t parcel, list []victim, first bool, gang *gathering) (best move, ok bool) {
	here := slices.DeleteFunc(slices.Clone(list), func(v victim) bool { return !q.gives(v, t) })
	room := least(q.room(s.alloc.leaf, t), q.netRoom(s.alloc.leaf, t))
	with := func(m move) []int64 {
		v := slices.Clone(room)
		for _, u := range m.units {
			if lies(u, t) {
				plus(v, u.sub.size, 1)
			}
		}
		return v
	}
	enough := func(m move) bool { return fits(s.size, with(m)) && len(q.limitsWith(s, m.units)) == 0 }
	helps := func(m move, v victim) bool {
		now := with(m)
		more := slices.ContainsFunc(v.units, func(u *unit) bool { return lies(u, t) && !slices.Contains(m.units, u) })
		for d, n := range s.size { // of a gang that goes as one, what lies here may have gone before it
			if more && n > max(0, now[d]) && v.sub().size[d] > 0 {
				return true
			}
		}
		return q.eases(v, q.limitsWith(s, m.units))
	}
	try := func(m move) {
		if enough(m) && q.allowed(s, m, first, gang) && (!ok || m.better(best)) {
			best, ok = m, true
		}
	}
	seen := map[string]bool{}
	for _, o := range here { // α
		name := fmt.Sprint(o.leaf(), o.sub().size)
		if seen[name] {
			continue
		}
		seen[name] = true
		m := move{}
		for _, v := range here {
			if v.leaf() == o.leaf() && slices.Equal(v.sub().size, o.sub().size) && !enough(m) {
				next := q.add(m, v)
				if next.above[len(next.above)-1] <= slack {
					break
				}
				m = next
			}
		}
		try(m)
	}
	if m, found := q.inOrder(s, here, enough, helps); found { // β
		try(m)
	}
	return best, ok
}

// inOrder chooses victims one after the other, each that helps, and drops those that are not needed (MD-17.5 β).
func (q pool) inOrder(s *sub, list []victim, enough func(m move) bool, helps func(m move, v victim) bool) (move, bool) {
	m := move{}
	for _, v := range list {
		if enough(m) {
			break
		}
		if a, b := q.part(s.alloc.leaf, v.leaf()); q.w.Priority[b] > q.w.Priority[a] || !helps(m, v) {
			continue
		}
		if next := q.add(m, v); next.above[len(next.above)-1] > slack {
			m = next
		}
	}
	if !enough(m) {
		return m, false
	}
	chosen := m.victims
	for _, v := range slices.Clone(chosen) {
		last := len(chosen) - 1
		for last >= 0 && chosen[last].sub() != v.sub() {
			last--
		}
		if last < 0 {
			continue
		}
		rest := slices.Delete(slices.Clone(chosen), last, last+1)
		if again := q.all(rest); enough(again) {
			chosen, m = rest, again
		}
	}
	return m, true
}

// all is a move of some victims.
func (q pool) all(list []victim) (m move) {
	for _, v := range list {
		m = q.add(m, v)
	}
	return m
}

// stillAllowed tells whether what a set moves may still move (MD-17.10).
func (q pool) stillAllowed(s *set, victims []*unit) bool {
	type kind struct {
		leaf plan.Node
		size string
	}
	leaf, sum := s.taker.alloc.leaf, new(big.Int)
	clear(q.has)
	gets := -q.step(leaf, s.taker.size, -s.n)
	sum.Add(sum, nearer(q.deficit(leaf)+gets+slack, gets))
	gives, counted := map[plan.Node]int64{}, map[kind]bool{}
	for _, u := range victims {
		if u.pool != q.at {
			continue
		}
		if k := (kind{u.leaf(), fmt.Sprint(u.sub.size)}); !counted[k] {
			counted[k] = true
			n := len(slices.DeleteFunc(slices.Clone(victims), func(v *unit) bool {
				return v.pool != q.at || v.leaf() != u.leaf() || !slices.Equal(v.sub.size, u.sub.size)
			}))
			gives[u.leaf()] += q.step(u.leaf(), u.sub.size, int64(n))
		}
	}
	for leaf, n := range gives {
		sum.Add(sum, nearer(n-q.deficit(leaf)+slack, n))
	}
	for from := range gives {
		a, b := q.part(leaf, from)
		x, y := q.w.Priority[a], q.w.Priority[b]
		behind := q.deficit(leaf)+slack < 0 || !q.stays(int64(q.stake(a)), int64(q.stake(b)), a, b)
		if x < y || x == y && sum.Sign() <= 0 && behind {
			q.notes["a set that may move no more"]++
			return false
		}
	}
	return true
}

// overWith tells whether a share limit on a unit's way below its pool would be passed, net, if the unit stayed.
func (g *round) overWith(u *unit, f *frame) bool {
	if u.pool == plan.None {
		return false
	}
	g.joined, g.reviewed = f.joined, f.reviewed
	return slices.ContainsFunc(g.pool(u.pool).way(u.leaf()), func(n plan.Node) bool {
		return touches(u.sub.size, g.beyond(n, u.sub.size, g.claimed))
	})
}
