package reclaim

import (
	"cmp"
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// move is victims that make room for the taker's unit on a parcel (MD-17.5).
type move struct {
	parcel  cluster.ParcelID
	victims []victim
	gives   int64 // what the victims count
	units   int64
}

// before reports whether a move is better than one that was tried before it (MD-17.6).
func (m *move) before(o *move) bool {
	if far := m.gives - o.gives; max(far, -far) > share.Slack {
		return far < 0
	}
	return m.units < o.units
}

// piece is units of a row that may be victims, or all that stays of a gang that may not do without any of it.
type piece struct {
	row   int32 // of a gang: one there
	place int32 // the row by which it stands in order
	leaf  plan.Node
	pair  int32 // of stakes
	units int64 // on the parcel
	gang  bool
}

// piecesOn lists what leaves hold on a parcel from the pool in turn and may give to the taker, in any order. The slice
// is borrowed until the next call.
func (g *Stage) piecesOn(k cluster.ParcelID) (list []piece) {
	list = g.choice.pieces[:0]
	for i := g.open(k); i > 0; i = g.row[i].next {
		if one := &g.row[i]; g.isInPool(one) && one.leaf != g.fair.taker.leaf && g.fair.givers.has(one.leaf) {
			list = g.addPiece(list, i)
		}
	}
	g.choice.pieces = list
	return list
}

// addPiece adds the units of a row that may be victims to some pieces; what of a gang goes as one is one piece.
func (g *Stage) addPiece(list []piece, i int32) []piece {
	one := &g.row[i]
	p := piece{row: i, place: i, leaf: one.leaf, pair: g.fair.v.find(g, one.leaf, one.shape), units: one.units}
	young := g.isYoung(one.leaf, one.granted)
	if one.core {
		young, p.gang, p.place = g.isYoungGang(one.sub), true, g.newestOf(i)
		same := slices.IndexFunc(list, func(o piece) bool { return o.gang && g.row[o.row].sub == one.sub })
		if same >= 0 && !young {
			if list[same].units += one.units; g.newer(one, &g.row[list[same].row]) < 0 {
				list[same].row = i
			}
			return list
		}
	}
	if g.noteYoung(young); young || !g.mayGive(one.leaf, p.pair, one.core) {
		return list
	}
	return append(list, p)
}

// newestOf is the newest row that a gang may not do without, of those that stay; at is one of them.
func (g *Stage) newestOf(at int32) int32 {
	sub := g.row[at].sub
	for i := g.open(g.s.Holding.Parcel[g.gangOf(sub).newest]); i > 0; i = g.row[i].next {
		if one := &g.row[i]; one.sub == sub && one.core && one.set == noSet && g.newer(one, &g.row[at]) < 0 {
			at = i
		}
	}
	return at
}

// inOrderOf orders pieces as victims: leaves by the mirrored walk, of each the newest first; of units that are alike
// first those that a gang may do without.
func (g *Stage) inOrderOf(a, b piece) int {
	if c := cmp.Or(g.fair.givers.mirrored(g, a.leaf, b.leaf), g.newer(&g.row[a.place], &g.row[b.place])); c != 0 {
		return c
	}
	return g.coreLast(a.row, b.row)
}

// passed is by how much a unit would pass the share limit of a consumer in a dimension (MD-18).
type passed struct {
	node   plan.Node
	dim    int
	amount int64
}

// counts reports whether units of a row count in the limit.
func (p *passed) counts(g *Stage, one *held) bool {
	return g.within(one.leaf, p.node) && one.pool != cluster.NoID && g.s.NodeOf[one.pool] < p.node
}

// passed lists the share limits that one unit more from a pool would pass, and by how much.
func (g *Stage) passed(leaf, top plan.Node, size []int64) (list []passed) {
	for n := leaf; g.limits != nil && n != top; n = g.tree.Parent[n] {
		for d, u := range size {
			if over := g.limits.Beyond(&g.Env.Env, n, d, u); u > 0 && over > 0 {
				list = append(list, passed{node: n, dim: d, amount: over})
			}
		}
	}
	return list
}

// need is what a unit on a parcel still lacks: room, and amounts by which it would pass share limits.
type need struct {
	g                *Stage
	parcel           cluster.ParcelID
	size, bound, sum []int64 // of the unit; the room; what victims add to it
	over             []passed
}

// needOf is the need of a unit of a size on a parcel with room bound, before there are victims. It is good until the
// next call.
func (g *Stage) needOf(size, bound []int64, k cluster.ParcelID, over []passed) *need {
	n := &g.choice.need
	n.g, n.parcel, n.size = g, k, size
	n.bound = append(n.bound[:0], bound...)
	n.over = append(n.over[:0], over...)
	n.begin(over)
	return n
}

// begin makes it a need without victims again.
func (n *need) begin(over []passed) {
	n.sum = column.Zeros(n.sum, len(n.bound))
	copy(n.over, over)
}

// met reports whether the unit fits.
func (n *need) met() bool {
	return covers(n.bound, n.sum, n.size) && !slices.ContainsFunc(n.over, func(p passed) bool { return p.amount > 0 })
}

// each calls f for every amount that lacks, with what a unit of a victim adds toward it.
func (n *need) each(one *held, f func(lacks, adds int64)) {
	of := n.g.s.Shape.Size(one.shape)
	for d, u := range n.size {
		if lacks := u - n.bound[d] - n.sum[d]; u > 0 && lacks > 0 {
			if one.parcel == n.parcel {
				f(lacks, of[d])
			} else {
				f(lacks, 0)
			}
		}
	}
	for i := range n.over {
		p := &n.over[i]
		switch {
		case p.amount <= 0:
		case p.counts(n.g, one):
			f(p.amount, of[p.dim])
		default:
			f(p.amount, 0)
		}
	}
}

// helping is of how many units of a victim each helps.
func (n *need) helping(one *held) (units int64) {
	n.each(one, func(lacks, adds int64) {
		if adds > 0 {
			units = max(units, (lacks+adds-1)/adds)
		}
	})
	return units
}

// enough is how many units of a victim meet the need by themselves, math.MaxInt64 where none do.
func (n *need) enough(one *held) (units int64) {
	n.each(one, func(lacks, adds int64) {
		switch {
		case adds == 0:
			units = math.MaxInt64
		case units < math.MaxInt64:
			units = max(units, (lacks+adds-1)/adds)
		}
	})
	return units
}

// take takes in that units of a victim go, or below 0 that they stay after all.
func (n *need) take(one *held, units int64) {
	of := n.g.s.Shape.Size(one.shape)
	if one.parcel == n.parcel {
		add(n.sum, of, units)
	}
	for i := range n.over {
		if p := &n.over[i]; p.counts(n.g, one) {
			p.amount -= of[p.dim] * units
		}
	}
}

// giving is what a leaf gives in a move.
type giving struct {
	leaf    plan.Node
	surplus int64 // before the move
	total   int64 // what it gives counts
	done    int64 // of total, what its stake is without already
	last    int64 // what its last victim counts
	gang    bool  // it gives units that a gang may not do without
}

// tally adds up what leaves give.
type tally struct {
	list []giving
	rows []rowUnits
	gang cluster.SubID // whose units came last, all as one
}

// rowUnits is how many units of a row of stakes are given.
type rowUnits struct {
	row   int32
	units int64
}

// begin makes it the tally of a move's victims, with what leaves gave for the units of a gang before.
func (t *tally) begin(g *Stage, victims []victim) *tally {
	t.list, t.rows, t.gang = append(t.list[:0], g.fair.taker.gave...), t.rows[:0], cluster.NoID
	for i := range victims {
		t.add(g, &victims[i])
	}
	return t
}

// units is how many units of a row of stakes are given.
func (t *tally) units(row int32) *int64 {
	for i := range t.rows {
		if t.rows[i].row == row {
			return &t.rows[i].units
		}
	}
	t.rows = append(t.rows, rowUnits{row: row})
	return &t.rows[len(t.rows)-1].units
}

// of is what a leaf gives.
func (t *tally) of(g *Stage, leaf plan.Node) *giving {
	for i := range t.list {
		if t.list[i].leaf == leaf {
			return &t.list[i]
		}
	}
	t.list = append(t.list, giving{leaf: leaf, surplus: g.fair.v.surplus(leaf)})
	return &t.list[len(t.list)-1]
}

// add adds a victim.
func (t *tally) add(g *Stage, one *victim) {
	row, v := &g.row[one.row], g.fair.v
	if !g.isInPool(row) {
		return
	}
	pair := v.find(g, row.leaf, row.shape)
	before, at := t.units(pair), t.of(g, row.leaf)
	gives := v.gives(pair, *before, one.units)
	switch {
	case !one.gang:
		at.last, t.gang = v.gives(pair, *before+one.units-1, 1), cluster.NoID
	case t.gang == row.sub:
		at.last += gives
	default:
		at.last, t.gang, at.gang = gives, row.sub, true
	}
	at.total += gives
	*before += one.units
}

// left is what of a leaf's surplus is left.
func (t *tally) left(g *Stage, leaf plan.Node) int64 {
	at := t.of(g, leaf)
	return at.surplus - at.total
}

// allows reports whether a move is allowed (MD-17.4). Review is of a set under way: then the slack is in its favour,
// and neither bands nor surpluses are asked for.
func (g *Stage) allows(t *taker, givings []giving, review bool) bool {
	v, slack := g.fair.v, int64(-share.Slack)
	if review {
		slack = share.Slack
	}
	var sum share.Squares
	sum.Add(t.deficit+slack, t.gets)
	for i := range givings {
		sum.Add(givings[i].surplus+slack, givings[i].total)
	}
	banded := review || t.deficit+share.Slack >= g.band(v, t.leaf, t.gets)
	for i := range givings {
		one := &givings[i]
		surplus := one.surplus - one.total + one.last
		if !review && surplus <= share.Slack {
			return false
		}
		a, b := g.parting(t.leaf, one.leaf)
		byPlace := cmp.Compare(g.Window.Priority[a], g.Window.Priority[b])
		switch {
		case byPlace > 0:
		case byPlace < 0 || !review && g.fair.pass == byPriority:
			return false
		case !one.gang && sum.Lower() && (banded || surplus+share.Slack >= g.band(v, one.leaf, one.last)):
		case t.gets > t.deficit+share.Slack || !g.staysAhead(t, givings, a, b):
			return false
		}
	}
	return true
}

// staysAhead reports whether b is at least as far up as a after a move (MD-17.4, (iii)).
func (g *Stage) staysAhead(t *taker, givings []giving, a, b plan.Node) bool {
	v := g.fair.v
	taker, giver := v.stake[a-v.top]+t.gets-t.got, v.stake[b-v.top]
	for i := range givings {
		one := &givings[i]
		switch {
		case g.tree.Within(one.leaf, b):
			giver -= one.total - one.done
		case g.tree.Within(one.leaf, a):
			taker -= one.total - one.done
		}
	}
	ratio := g.Ratio(v.top, b)
	return ratio == 0 || !share.Less(giver+share.Slack, ratio, taker, g.Ratio(v.top, a))
}

// parting returns the siblings under which the ways to two leaves part.
func (g *Stage) parting(x, y plan.Node) (a, b plan.Node) {
	t := g.tree
	for t.Depth[x] > t.Depth[y] {
		x = t.Parent[x]
	}
	for t.Depth[y] > t.Depth[x] {
		y = t.Parent[y]
	}
	for t.Parent[x] != t.Parent[y] {
		x, y = t.Parent[x], t.Parent[y]
	}
	return x, y
}

// moveOn is the best move on a parcel, nil: none is allowed.
func (g *Stage) moveOn(k cluster.ParcelID, over []passed) (best *move) {
	pieces := g.piecesOn(k)
	if len(pieces) == 0 {
		return nil
	}
	c := &g.choice
	n := g.needOf(g.s.Size(g.fair.taker.sub), g.lesser(k, g.fair.v.top), k, over)
	if n.met() {
		return nil
	}
	slices.SortFunc(pieces, g.inOrderOf)
	try := func(victims []victim) {
		if m := g.moveOf(k, victims, best); m != nil {
			best = m
		}
		n.begin(over)
	}
	c.pairs = c.pairs[:0]
	for i := range pieces {
		if pair := pieces[i].pair; !slices.Contains(c.pairs, pair) {
			c.pairs = append(c.pairs, pair)
			c.victims = g.alike(n, c.victims[:0], pieces[i:], pair)
			try(c.victims)
		}
	}
	gangs := slices.ContainsFunc(pieces, func(p piece) bool { return p.gang })
	if len(c.pairs) > 1 || gangs { // else it is the move that was tried
		c.victims = g.inTurn(n, c.victims[:0], pieces)
		try(c.victims)
	}
	return best
}

// moveOf is the move of some victims, nil where there are none, it is not allowed, or it is not better than the best so
// far.
func (g *Stage) moveOf(k cluster.ParcelID, victims []victim, best *move) *move {
	if len(victims) == 0 {
		return nil
	}
	t := g.choice.tallies[0].begin(g, victims)
	m := move{parcel: k}
	for i := range t.list {
		m.gives += t.list[i].total - t.list[i].done
	}
	for _, v := range victims {
		m.units += v.units
	}
	if best != nil && !m.before(best) || !g.allows(&g.fair.taker, t.list, false) {
		return nil
	}
	m.victims = slices.Clone(victims)
	return &m
}

// choosePiece adds so many units of a piece to victims; of a gang all that stay.
func (g *Stage) choosePiece(n *need, list []victim, p *piece, units int64) []victim {
	if !p.gang {
		n.take(&g.row[p.row], units)
		return append(list, victim{row: p.row, units: units})
	}
	stay, _, _ := g.rowsOf(g.row[p.row].sub)
	slices.SortFunc(stay, func(a, b int32) int { return g.newer(&g.row[a], &g.row[b]) })
	for _, i := range stay {
		units := g.row[i].units
		for _, v := range list {
			if v.row == i {
				units -= v.units
			}
		}
		if units > 0 {
			n.take(&g.row[i], units)
			list = append(list, victim{row: i, units: units, gang: true})
		}
	}
	return list
}

// alike adds to a list as few units of one row of stakes as meet a need, in order; it is empty where they do not.
func (g *Stage) alike(n *need, list []victim, pieces []piece, pair int32) []victim {
	for i := range pieces {
		p := &pieces[i]
		if p.pair != pair {
			continue
		}
		units := n.enough(&g.row[p.row])
		if units == math.MaxInt64 {
			return list[:0]
		}
		if list = g.choosePiece(n, list, p, min(units, p.units)); n.met() {
			return list
		}
	}
	return list[:0]
}

// inTurn adds to a list units in order until a need is met, each that helps and of which the leaf has a surplus yet,
// less those that are not needed after all; it is empty where they do not meet the need.
func (g *Stage) inTurn(n *need, list []victim, pieces []piece) []victim {
	t := g.choice.tallies[1].begin(g, list)
	for i := range pieces {
		if list = g.chooseIf(n, t, list, &pieces[i]); n.met() {
			return g.needed(list, n)
		}
	}
	return list[:0]
}

// chooseIf chooses units of a piece that help, while its leaf has a surplus, unless it comes before the taker.
func (g *Stage) chooseIf(n *need, t *tally, list []victim, p *piece) []victim {
	v, row := g.fair.v, &g.row[p.row]
	a, b := g.parting(g.fair.taker.leaf, p.leaf)
	left, before := t.left(g, p.leaf), *t.units(p.pair)
	units := min(n.helping(row), p.units)
	if units == 0 || left <= share.Slack || g.Window.Priority[b] > g.Window.Priority[a] {
		return list
	}
	for units > 1 && !p.gang && left-v.gives(p.pair, before, units-1) <= share.Slack {
		units--
	}
	from := len(list)
	list = g.choosePiece(n, list, p, units)
	for i := from; i < len(list); i++ {
		t.add(g, &list[i])
	}
	return list
}

// moveFor is the move by which a unit that has room on a parcel comes within share limits: its victims may lie on any
// parcel of the pool (MD-18.2). Nil: there is none, or it is not allowed.
func (g *Stage) moveFor(k cluster.ParcelID, over []passed) (m *move) {
	f := &g.fair
	n := g.needOf(g.s.Size(f.taker.sub), g.lesser(k, f.v.top), k, over)
	t, list := g.choice.tallies[1].begin(g, nil), []victim(nil)
	g.eachGiver(func(leaf plan.Node, _ bool) bool {
		units := g.unitsOf(leaf)
		for i := range units {
			for _, p := range g.piecesOf(leaf, &units[i]) {
				if list = g.chooseIf(n, t, list, &p); n.met() {
					m = g.moveOf(k, g.needed(list, n), nil)
					return true
				}
			}
		}
		return false
	})
	return m
}

// piecesOf is some units of a leaf that may be victims as pieces, in order.
func (g *Stage) piecesOf(leaf plan.Node, u *unit) (list []piece) {
	for i := g.open(u.parcel); i > 0 && u.units > 0; i = g.row[i].next {
		if one := &g.row[i]; u.isRow(one) && g.isInPool(one) {
			pair := g.fair.v.find(g, leaf, one.shape)
			if g.mayGive(leaf, pair, one.core) {
				list = append(list, piece{
					row: i, place: i, leaf: leaf, pair: pair, units: one.units, gang: one.core,
				})
			}
		}
	}
	slices.SortFunc(list, g.inOrderOf)
	if len(list) > 1 && list[0].gang {
		list = list[:1]
	}
	return list
}

// needed leaves of victims that meet a need those that are needed. Once for each, in the order of choice, it drops the
// victim of the same sub-allocation that was chosen last, where the others do without it; so units that were granted in
// this cycle stay chosen (CYC-1). What a gang may not do without is one victim.
func (g *Stage) needed(list []victim, n *need) []victim {
	for at, v := range slices.Clone(list) {
		sub, tries := g.row[v.row].sub, v.units
		if v.gang {
			tries = 1
			if at > 0 && list[at-1].gang && g.row[list[at-1].row].sub == sub {
				continue
			}
		}
		for ; tries > 0 && g.dropLast(list, sub, n); tries-- {
		}
	}
	return slices.DeleteFunc(list, func(v victim) bool { return v.units == 0 })
}

// dropLast drops the victim of a sub-allocation that was chosen last, and tells whether the others do without it.
func (g *Stage) dropLast(list []victim, sub cluster.SubID, n *need) bool {
	to := len(list)
	for to > 0 && (list[to-1].units == 0 || g.row[list[to-1].row].sub != sub) {
		to--
	}
	if to == 0 {
		return false
	}
	from := to - 1
	if !list[from].gang {
		if n.take(&g.row[list[from].row], -1); !n.met() {
			n.take(&g.row[list[from].row], 1)
			return false
		}
		list[from].units--
		return true
	}
	for from > 0 && list[from-1].gang && g.row[list[from-1].row].sub == sub {
		from--
	}
	return g.dropGang(list[from:to], n)
}

// dropGang drops all that a gang gives as one, and tells whether the others do without it.
func (g *Stage) dropGang(list []victim, n *need) bool {
	for _, v := range list {
		n.take(&g.row[v.row], -v.units)
	}
	met := n.met()
	for i := range list {
		if met {
			list[i].units = 0
		} else {
			n.take(&g.row[list[i].row], list[i].units)
		}
	}
	return met
}
