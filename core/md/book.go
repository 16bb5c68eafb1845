package md

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/line"
)

// gather lists the sub-allocations of the leaves in the loop that were given something, in the order of D-14.
func (g *granter) gather() {
	g.eachInLine(func(sub cluster.SubID, t *line.Turn) {
		if t.Passed = false; t.Given > 0 {
			g.served = append(g.served, sub)
		}
	})
}

// bookPools makes holdings of what loops over pools of consumers that are equally deep gave, and counts it as net.
func (g *granter) bookPools(pools []pool) {
	g.eachBatch(func(h *granter, one batch) {
		for _, sub := range h.served[one.served:one.servedEnd] {
			q := g.s.PairOf(sub, pools[one.at].id)
			g.known()
			g.promise.net[q] += int64(h.line.Sub[sub].Given)
		}
	})
	if depth := int(g.policy.Depth[pools[0].node]); g.p.Parcels.Owned {
		g.book(func(k cluster.ParcelID) { g.stir(k, depth) })
	} else {
		g.book(nil)
	}
}

// deal readies what a loop gave for book: runs of holdings, one for each sub-allocation and parcel, in the order of D-14. The gifts are dealt out to their
// sub-allocations, then each one's parcels are sorted. It goes by what only the loop's pool, or leaf, has to do with. O(units log (units of a sub-allocation)).
func (g *granter) deal(one batch) {
	given, served := g.given[one.given:one.givenEnd], g.served[one.served:one.servedEnd]
	g.parcel = resized(g.parcel, len(g.given))
	at := one.given
	for _, sub := range served {
		t := &g.line.Sub[sub]
		at += t.Given
		t.Find = at // from here on the end of its parcels, counted down below
	}
	for i := len(given) - 1; i >= 0; i-- {
		t := &g.line.Sub[given[i].sub]
		t.Find--
		g.parcel[t.Find] = given[i].parcel
	}
	for _, sub := range served {
		t := &g.line.Sub[sub]
		to, begin := g.parcel[t.Find:t.Find+t.Given], t.Find
		slices.Sort(to)
		for from := 0; from < len(to); { // a run of each owner's: the label goes by him
			end := from + 1
			for end < len(to) && (to[end] == to[end-1] || !g.p.Parcels.Owned || g.p.Parcels.Owner[to[end]] == g.p.Parcels.Owner[to[from]]) {
				end++
			}
			g.runs = append(g.runs, cluster.Run{Holding: g.row(sub, to[from]), From: begin + int32(from), To: begin + int32(end)})
			from = end
		}
	}
}

// book makes holdings of what loops gave since it was done last, in their order, and lists them; each, unless nil, is called with their parcels.
func (g *granter) book(each func(k cluster.ParcelID)) {
	runs, parcels := g.runs, g.parcel
	if g.second != nil && len(g.second.runs) > 0 {
		runs, parcels = g.merge()
	}
	if len(runs) > 0 {
		g.booked, g.steps = g.s.HoldAll(g.booked, runs, parcels, each), g.steps+1
	}
	g.empty()
	if g.second != nil {
		g.second.empty()
	}
}

// merge is the runs of both granters in the order of their loops, and the parcels that they name.
func (g *granter) merge() (runs []cluster.Run, parcels []cluster.ParcelID) {
	b := g.second
	runs, parcels = slices.Grow(g.both.runs[:0], len(g.runs)+len(b.runs)), slices.Grow(g.both.parcel[:0], len(g.given)+len(b.given))
	g.eachBatch(func(h *granter, one batch) {
		by, first := int32(len(parcels))-one.given, len(runs)
		parcels = append(parcels, h.parcel[one.given:one.givenEnd]...)
		runs = append(runs, h.runs[one.runs:one.runsEnd]...)
		for i := range runs[first:] {
			r := &runs[first+i]
			r.From, r.To = r.From+by, r.To+by
		}
	})
	g.both.runs, g.both.parcel = runs, parcels
	return runs, parcels
}
