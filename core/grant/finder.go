package grant

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/vecpack"
)

// kind is all outstanding units of one size and requirement that may use the same parcels of the pool (MD-16).
// Sub-allocations with a max_per_host and gangs are kinds of their own.
type kind struct {
	key  kindKey
	lot  int                      // nothing fits the lots before it
	unit []finder                 // by lot
	on   map[cluster.HostID]int64 // how many units are on each host, where max_per_host is set
	most int64                    // max_per_host

	supply // of pools' turns in rounds
}

// kindKey is what the units of a kind have in common.
type kindKey struct {
	shape cluster.ShapeID
	need  cluster.NeedID
	side  plan.Node // the child of the pool's consumer that the leaf is below
	grace int64
	sub   cluster.SubID // of a kind of its own, else NoID
}

// finder finds rows of a lot for units of one kind (MD-20).
type finder struct {
	need  room.Need
	mask  []uint64 // rows that the kind may use; nil: all
	want  []uint64 // the direction of the size, under best fit
	order []room.Row
	cursor
	start  cursor // as of the last step
	ranked bool   // the requirement has an order
	begun  bool
}

// cursor is how far a finder is: before it nothing has room.
type cursor struct {
	from room.Row
	next int // in order
}

// find returns up to n rows of a lot, each for one unit of a kind: under best fit the n best of the frontier, of one
// that is short its best part, else the next. It returns no row where nothing fits. The rows are in the granter's
// memory.
func (g *Granter) find(i int32, at int, n int64) []room.Row {
	k, l, f := &g.kind[i], g.lots.list[at], g.finder(i, at)
	g.rows = g.rows[:0]
	switch {
	case f.need.Never():
	case f.ranked:
		for ; f.next < len(f.order); f.next++ {
			if row := f.order[f.next]; l.index.Fits(row, &f.need) && g.mayUse(k, l, f, row) {
				g.rows = append(g.rows, row)
				break
			}
		}
	case l.rules.placement == plan.BestFit:
		g.gather(k, l, f, &l.rows, max(frontierLeast, min(n, int64(len(l.parcel)))*l.rules.candidates))
		f.from = room.Row(len(l.parcel))
		if len(g.rows) > 0 {
			f.from = g.rows[0]
		}
		g.selectBest(l, f, min(n, max(1, int64(len(g.rows))/l.rules.candidates)))
	case l.rules.placement == plan.Balanced:
		if row := g.roomiest(k, l, f, 1); row != room.NoRow {
			g.rows = append(g.rows, row)
		}
	default:
		if g.gather(k, l, f, &l.rows, 1); len(g.rows) == 0 {
			g.gather(k, l, f, &l.unused, 1)
		}
	}
	return g.rows
}

// gather lists the frontier: the first rows of a set that have room for a kind's unit, up to most.
func (g *Granter) gather(k *kind, l *lot, f *finder, set *room.Set, most int64) {
	from := f.from
	if l.rules.placement != plan.BestFit {
		from = 0 // rows come into the sets
	}
	if k.on == nil {
		g.rows = l.index.Gather(g.rows, set, &f.need, from, f.mask, int(most))
		return
	}
	for int64(len(g.rows)) < most {
		at := len(g.rows)
		g.rows = l.index.Gather(g.rows, set, &f.need, from, f.mask, int(most))
		if at == len(g.rows) {
			return
		}
		from = g.rows[len(g.rows)-1] + 1
		fresh := g.rows[at:]
		g.rows = g.rows[:at]
		for _, row := range fresh {
			if g.mayUse(k, l, f, row) {
				g.rows = append(g.rows, row)
			}
		}
	}
}

// mayUse tells whether a kind may use a row with room: the row's bit is set, and max_per_host leaves its host a unit;
// where max_per_host does not, the bit is cleared.
func (g *Granter) mayUse(k *kind, l *lot, f *finder, row room.Row) bool {
	if f.mask != nil && f.mask[row>>6]>>(uint(row)&63)&1 == 0 {
		return false
	}
	if k.on == nil || k.on[g.env.Plan.Parcels.Host[l.parcel[row]]] < k.most {
		return true
	}
	f.mask[row>>6] &^= 1 << (uint(row) & 63)
	return false
}

// selectBest keeps of the frontier the n best rows, in order of rows: the most alike to the size, of equally alike ones
// those with the smallest sum of coordinates, then the first.
func (g *Granter) selectBest(l *lot, f *finder, n int64) {
	if int64(len(g.rows)) <= n {
		return
	}
	g.keys = slices.Grow(g.keys[:0], len(g.rows))[:len(g.rows)]
	g.score(l, f)
	if n == 1 {
		best := 0
		for i, key := range g.keys {
			if key > g.keys[best] {
				best = i
			}
		}
		g.rows = append(g.rows[:0], g.rows[best])
		return
	}
	least, ties := vecpack.Threshold(g.keys, int(n))
	kept := g.rows[:0]
	for i, row := range g.rows {
		switch key := g.keys[i]; {
		case key > least:
		case key == least && ties > 0:
			ties--
		default:
			continue
		}
		kept = append(kept, row)
	}
	g.rows = kept
}

// scoreChunk is how many rows of a frontier are scored at once; scoreHalves is from how many on two threads do it.
const (
	scoreChunk  = 64
	scoreHalves = 1 << 12
)

// score writes the keys of the frontier.
func (g *Granter) score(l *lot, f *finder) {
	both, half := g.env.State.Both, len(g.rows)/2
	if both == nil || len(g.rows) < scoreHalves {
		g.points[0] = l.score(g.keys, g.rows, f.want, g.points[0])
		return
	}
	both(func() { g.points[0] = l.score(g.keys[:half], g.rows[:half], f.want, g.points[0]) },
		func() { g.points[1] = l.score(g.keys[half:], g.rows[half:], f.want, g.points[1]) })
}

// score writes the keys of some rows. Points is memory for those of rows that are not side by side.
func (l *lot) score(keys []uint32, rows []room.Row, want, points []uint64) []uint64 {
	words := l.rules.words
	for len(rows) > 0 {
		n := min(scoreChunk, len(rows))
		have := l.point[int(rows[0])*words : int(rows[n-1]+1)*words]
		if len(have) > n*words {
			points = points[:0]
			for _, row := range rows[:n] {
				points = append(points, l.point[int(row)*words:][:words]...)
			}
			have = points
		}
		vecpack.Keys(keys[:n], have, want)
		keys, rows = keys[n:], rows[n:]
	}
	return points
}

// roomChunk is how many rows eachRoom looks at together.
const roomChunk = 64

// eachRoom calls f for the parcels that have room for units of a kind, with how many, until f is false. O(rows with
// room).
func (g *Granter) eachRoom(i int32, f func(k cluster.ParcelID, units int64) bool) {
	size := g.env.State.Shape.Size(g.kind[i].key.shape)
	for at, l := range g.lots.list {
		of := g.finder(i, at)
		sets := []*room.Set{&l.rows, &l.unused}
		if l.rules.placement != plan.Stacked {
			sets = sets[:1]
		}
		for _, set := range sets {
			for from := of.from; ; {
				g.rows = l.index.Gather(g.rows[:0], set, &of.need, from, of.mask, roomChunk)
				for _, row := range g.rows {
					if !f(l.parcel[row], pool.Fit(l.index.Free(row), size)) {
						return
					}
				}
				if len(g.rows) < roomChunk {
					break
				}
				from = g.rows[len(g.rows)-1] + 1
			}
		}
	}
}

// fit returns how many units of a kind have room, at most so many: of a gang that must be together, where the most do.
func (g *Granter) fit(i int32, most int64) (units int64) {
	k, p := &g.kind[i], &g.env.Plan.Parcels
	if k.key.sub != cluster.NoID {
		places, prefers := g.env.Views.Needs.Seeks(k.key.sub)
		if places != nil && !prefers && g.env.State.Forming(k.key.sub) {
			return min(most, slices.Max(append(g.roomBy(&pool.Ask{Kind: i}, places), 0)))
		}
	}
	var counted map[cluster.HostID]int64 // of hosts with several parcels
	g.eachRoom(i, func(parcel cluster.ParcelID, n int64) bool {
		if k.on != nil {
			host := p.Host[parcel]
			n = min(n, max(0, k.most-k.on[host]-counted[host]))
			if n > 0 && p.End(parcel)-p.Begin(parcel) > 1 {
				if counted == nil {
					counted = map[cluster.HostID]int64{}
				}
				counted[host] += n
			}
		}
		units = share.Add(units, n)
		return units < most
	})
	return min(units, most)
}

// roomiest returns the row below a node of the lot's tree that has room and the most weighted room, ties by the order
// of rows: the side with more first, the other only where it may have more than what was found.
func (g *Granter) roomiest(k *kind, l *lot, f *finder, node int) room.Row {
	width := len(l.tree) / 2
	if l.tree[node] == 0 {
		return room.NoRow
	}
	if node >= width {
		if row := room.Row(node - width); l.index.Fits(row, &f.need) && g.mayUse(k, l, f, row) {
			return row
		}
		return room.NoRow
	}
	near, far := 2*node, 2*node+1
	if l.tree[far] > l.tree[near] {
		near, far = far, near
	}
	best := g.roomiest(k, l, f, near)
	if best != room.NoRow && (l.tree[width+int(best)] > l.tree[far] ||
		l.tree[width+int(best)] == l.tree[far] && near < far) {
		return best
	}
	other := g.roomiest(k, l, f, far)
	if best == room.NoRow || other != room.NoRow && roomier(l, other, best) {
		return other
	}
	return best
}

// roomier tells whether a row has more weighted room than another, or as much and comes before it.
func roomier(l *lot, a, b room.Row) bool {
	x, y := l.tree[len(l.tree)/2+int(a)], l.tree[len(l.tree)/2+int(b)]
	return x > y || x == y && a < b
}

// finder returns where a kind is in a lot.
func (g *Granter) finder(i int32, at int) *finder {
	k := &g.kind[i]
	for len(k.unit) <= at {
		k.unit = append(k.unit, finder{})
	}
	f := &k.unit[at]
	if f.begun {
		return f
	}
	l, e := g.lots.list[at], g.env
	selected, turn := e.Views.Needs.Of(e.State, e.Plan, k.key.need)
	mask := g.masks.of(l, maskKey{at, k.key.need, k.key.side, k.key.grace}, selected)
	if k.on != nil { // Copy the mask: bits are cleared as hosts fill up for the kind.
		own := make([]uint64, (len(l.parcel)+63)/64)
		for i := range own {
			own[i] = ^uint64(0)
			if mask != nil {
				own[i] = mask[i]
			}
		}
		mask = own
	}
	size := e.State.Shape.Size(k.key.shape)
	*f = finder{need: l.index.Need(l.rules.devices.need(size)), mask: mask, ranked: turn != nil, begun: true}
	f.order = l.inOrder(selected, turn)
	if !f.ranked && l.rules.placement == plan.BestFit {
		f.want = l.rules.direction(size)
	}
	return f
}

// masks are the rows of a lot that units with one requirement, side and grace may use.
type masks struct {
	key  []maskKey
	bits [][]uint64 // nil: all
}

type maskKey struct {
	lot   int
	need  cluster.NeedID
	side  plan.Node
	grace int64
}

// of returns the mask of a key. O(rows) for the first time.
func (m *masks) of(l *lot, key maskKey, selected []uint64) []uint64 {
	if !l.mixed {
		key.side, key.grace = plan.None, 0
	}
	if selected == nil && !l.mixed {
		return nil
	}
	if i := slices.Index(m.key, key); i >= 0 {
		return m.bits[i]
	}
	set := column.Make[uint64]((len(l.parcel) + 63) / 64)
	for row, k := range l.parcel {
		switch {
		case selected != nil && selected[k>>6]>>(uint(k)&63)&1 == 0:
		case l.mixed && (l.side[row] == key.side && key.side != plan.None || key.grace > l.grace[row]):
		default:
			set[row>>6] |= 1 << (row & 63)
		}
	}
	m.key, m.bits = append(m.key, key), append(m.bits, set)
	return set
}
