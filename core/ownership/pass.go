package ownership

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Pass makes a pass over the whole ground; what was had may be anything, also of another policy's making, with
// None for the rules of lists that are not what they were. It is not changed. The result is the caller's, to be read
// only: Update goes on from it. O(hosts and pieces of all domains, with a logarithm).
func (a *Assigner) Pass(g *Ground, had *Deeds) *Deeds {
	if a.survey(g, had); !a.sweepAll(had) {
		a.survey(g, had)
		a.sweepSome(had, 0, len(a.domains))
	}
	a.deeds, a.moved = a.written(), a.moved[:0]
	a.bury()
	return a.deeds
}

// sweepSome makes full sweeps over some domains, of which the parents' were swept before.
func (a *Assigner) sweepSome(had *Deeds, from, to int) {
	for i := from; i < to; i++ {
		s := a.ready(&a.domains[i], true)
		s.all = a.cellsOf[s.d.node]
		a.load(s, had)
		s.run()
	}
}

// Update makes a pass that gives what Pass would, from what the last pass of this Assigner gave, when nothing is
// otherwise than then but the hosts named: their capacity, their groups, whether they are closed, or what is held on
// them, amounts or owners.
// g.Use needs their rows only, those of other hosts are passed over; tree, plan, window, ranks, the number of hosts and
// who is listed must be those of the last pass. Hosts may be named twice, or without need. The cost follows what
// changes by it, but for the rows of the result, which are copied in bulk. When a large part of the hosts has changed,
// Pass is faster.
func (a *Assigner) Update(g *Ground, changed []int32) *Deeds {
	if a.deeds == nil || len(g.Cap) != a.dims || len(g.Cap[0]) != a.hosts || len(g.Group) != len(a.group) {
		panic(fmt.Sprintf("BUG: ownership: update of other ground: %d dimensions, %d groups", len(g.Cap), len(g.Group)))
	}
	a.g, a.touched, a.skipped = g, 0, 0
	a.moved, a.dead = a.moved[:0], a.dead[:0]
	for _, h := range changed {
		a.stainHost(partID(h))
	}
	for _, one := range a.valid(a.unsettled) {
		a.stain(one.cell)
	}
	a.unsettled = a.unsettled[:0]
	a.resurvey(changed)
	for len(a.waiting) > 0 {
		var e uint64
		e, a.waiting = pop(a.waiting, lessEvent)
		a.ready(&a.domains[e>>32], false).run()
	}
	a.deeds = a.amended()
	a.bury()
	return a.deeds
}

// survey takes down the ground for a full pass.
func (a *Assigner) survey(g *Ground, had *Deeds) {
	dims, nodes := len(g.Cap), g.Tree.Len()
	a.g, a.hosts, a.next, a.touched, a.skipped = g, len(g.Cap[0]), had.Next, 0, 0
	a.reset(dims)
	a.moved, a.dead, a.waiting, a.unsettled = a.moved[:0], a.dead[:0], a.waiting[:0], a.unsettled[:0]
	a.suit(dims, len(g.Group), a.hosts)
	a.group = a.group[:0]
	a.members, a.sums = zeroed(a.members, len(g.Group)), zeroed(a.sums, len(g.Group)*dims)
	a.shared = zeroed(a.shared, len(g.Group)*len(g.Group))
	for _, set := range g.Group {
		a.group = append(a.group, slices.Clone(set))
	}
	a.closed = append(a.closed[:0], g.Closed...)
	a.both(a.countHosts, func() {
		a.use.reset(a.hosts)
		for _, u := range g.Use {
			a.use.add(u, dims)
		}
		a.plot()
		a.cellsOf = slices.Grow(a.cellsOf[:0], nodes)[:nodes]
		for n := range a.cellsOf {
			a.cellsOf[n] = a.cellsOf[n][:0]
		}
		a.hadFrom = a.hadFrom[:0]
		for n := range plan.Node(nodes + 1) {
			from, _ := slices.BinarySearch(had.Node, n)
			a.hadFrom = append(a.hadFrom, int32(from))
		}
		pieces := a.expected()
		pieces += pieces/8 + expectMin
		a.reserve(a.hosts+pieces, pieces)
		a.rootParts()
	})
	a.touched += int64(a.hosts + len(g.Use) + len(had.Node))
}

// rootParts makes the hosts the root's parts, the first rows of an empty store that has room for them.
func (a *Assigner) rootParts() {
	n := a.hosts
	a.part, a.amount, a.left = a.part[:n], a.amount[:n*a.dims], a.left[:n*a.dims]
	clear(a.left)
	cells := slices.Grow(a.cellsOf[plan.Root], n)[:n]
	for h := range a.part {
		a.part[h] = part{node: plan.Root, host: int32(h), up: nothing, first: nothing, cursor: nothing}
		cells[h] = partID(h)
	}
	for d, column := range a.g.Cap {
		for h, v := range column {
			a.amount[h*a.dims+d] = v
		}
	}
	a.cellsOf[plan.Root] = cells
}

// countHosts counts all hosts in their groups. It needs nothing of what else is taken down, and nothing of that needs
// it.
func (a *Assigner) countHosts() {
	v := make([]int64, a.dims)
	for h := range int32(a.hosts) {
		for d := range v {
			v[d] = a.g.Cap[d][h]
		}
		a.countHost(h, v)
	}
}

// surveyHost takes down the capacity of a host and counts it in its groups.
func (a *Assigner) surveyHost(h int32) {
	v := a.amountOf(partID(h))
	for d := range v {
		v[d] = a.g.Cap[d][h]
	}
	a.countHost(h, v)
}

// countHost counts a host that has so much in its groups.
func (a *Assigner) countHost(h int32, v []int64) {
	for g := range a.group {
		if a.belongs(h, g) {
			if !zero(v) {
				a.members[g]++
			}
			for d, x := range v {
				a.sums[g*a.dims+d].add(x)
			}
		}
	}
	a.overlaps(h, 1)
}

// overlaps counts a host for the pairs of groups that share it, or no longer.
func (a *Assigner) overlaps(h int32, sign int64) {
	for g := range a.group {
		for other := range a.group {
			if a.belongs(h, g) && a.belongs(h, other) {
				a.shared[g*len(a.group)+other] += sign
			}
		}
	}
}

// stray counts a host for a group that it has left: what was had by that group's rules lies there still, and may be of
// use to rules of the groups that have the host now.
func (a *Assigner) stray(h int32, g int) {
	for other := range a.group {
		if a.belongs(h, other) {
			a.shared[g*len(a.group)+other]++
		}
	}
}

// overlap tells whether rules of a group may have had hosts of another; -1 shares with all.
func (a *Assigner) overlap(g, other int) bool {
	return g < 0 || other < 0 || a.shared[g*len(a.group)+other] > 0
}

// resurvey takes down what has changed on hosts, all cells of which have been stained.
func (a *Assigner) resurvey(changed []int32) {
	for _, h := range changed {
		v := a.amountOf(partID(h))
		var was []int
		for g := range a.group {
			if !a.belongs(h, g) {
				continue
			}
			was = append(was, g)
			if !zero(v) {
				a.members[g]--
			}
			for d, x := range v {
				a.sums[g*a.dims+d].sub(x)
			}
		}
		a.overlaps(h, -1)
		for g, set := range a.g.Group {
			a.group[g][h>>6] = a.group[g][h>>6]&^(1<<(h&63)) | set[h>>6]&(1<<(h&63))
		}
		a.closed[h>>6] = a.closed[h>>6]&^(1<<(h&63)) | a.g.Closed[h>>6]&(1<<(h&63))
		a.surveyHost(h)
		for _, g := range was {
			if !a.belongs(h, g) {
				a.stray(h, g)
			}
		}
		a.use.drop(h)
		a.spot[h] = partID(h)
	}
	for _, u := range a.g.Use {
		if a.spot[u.Host] != nothing {
			a.use.add(u, a.dims)
			a.touched++
		}
	}
	for _, h := range changed {
		a.spot[h] = nothing
		a.busyBelow(partID(h))
	}
	a.touched += int64(len(changed))
}

// stainHost stains all cells of a host.
func (a *Assigner) stainHost(c partID) {
	if a.domainOf[a.part[c].node] == nothing || a.part[c].soiled {
		return
	}
	a.stain(c)
	for p := a.part[c].first; p != nothing; p = a.piece[p].next {
		a.stainHost(a.piece[p].part)
	}
}

// busyBelow finds anew which parts of a cell and of those below it are busy.
func (a *Assigner) busyBelow(c partID) {
	for p := a.part[c].first; p != nothing; p = a.piece[p].next {
		a.settleBusy(a.piece[p].part)
		a.busyBelow(a.piece[p].part)
		a.touched++
	}
}

// ready gives the sweep over a domain.
func (a *Assigner) ready(d *domain, full bool) *sweep {
	s := &a.sweep
	if s.lost == nil {
		s.lost = map[lostPart]partID{}
	}
	*s = sweep{Assigner: a, d: d, full: full, turn: s.turn[:0], own: s.own[:0], had: s.had[:0], lost: s.lost}
	return s
}

// load chains what the children of a domain had to its cells, as of claims to come.
func (a *Assigner) load(s *sweep, had *Deeds) {
	if n := s.d.node; a.hadFrom[n+1] == a.hadFrom[a.g.Tree.End[n]] {
		return // nobody below it had anything
	}
	for _, c := range s.all {
		a.spot[a.part[c].host] = c
	}
	for n := a.g.Tree.First[s.d.node]; n != plan.None; n = a.g.Tree.Next[n] {
		if a.base[n] == a.base[n+1] {
			continue
		}
		of := partID(nothing)
		for i := a.hadFrom[n]; i < a.hadFrom[n+1]; i++ {
			c := a.spot[had.Host[i]]
			if a.cramped = a.cramped || a.spent(); c == nothing || a.spent() {
				continue
			}
			if of == nothing || a.part[of].host != had.Host[i] {
				of = a.newPart(n, had.Host[i], c, had.Number[i])
				a.settleBusy(of)
			}
			for d := range a.sum {
				a.sum[d] = had.Amount[d][i]
			}
			a.loadPiece(c, of, had.Rule[i])
		}
	}
	for _, c := range s.all {
		a.spot[a.part[c].host] = nothing
	}
}

// loadPiece puts a piece that was had, the vector of which is in sum, into its place in a cell's chain.
func (a *Assigner) loadPiece(c, of partID, rule int32) {
	n := a.part[of].node
	id := a.base[n] + claimID(rule)
	if rule < 0 || id >= a.base[n+1] {
		id = nothing
	}
	if id != nothing {
		if g := a.ruleOf(&a.claims[id]).Group; !a.belongs(a.part[of].host, g) {
			a.stray(a.part[of].host, g)
		}
	}
	p := a.newPiece(of, id, a.sum)
	place, before := a.place(p), pieceID(nothing)
	for q := a.part[c].first; q != nothing; q = a.piece[q].next {
		if at := a.place(q); at > place || at == place && id != nothing {
			break
		}
		before = q
	}
	a.part[c].cursor = before
	a.chain(c, p)
	if id == nothing {
		a.link(&a.unclaimed[n], p)
	} else {
		a.link(&a.claims[id].first, p)
	}
}

// bury frees the parts that are nothing any more.
func (a *Assigner) bury() {
	for _, p := range a.dead {
		a.part[p].version++
		a.freePart = append(a.freePart, p)
	}
	a.dead = a.dead[:0]
}
