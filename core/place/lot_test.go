package place

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// TestLots lets several askers place units in turn in a lot, small or large, and holds each answer against the
// definition: of the lowest tier that has a parcel for the asker with room for the unit, the first by the placement.
func TestLots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		p.Parcels.First = make([]cluster.HoldingID, p.Parcels.Len())
		for k := range p.Parcels.Host {
			p.Parcels.Host[k] = cluster.HostID(k / 2)
		}
		s := &cluster.State{Shape: cluster.NewShapes(len(p.Parcels.Cap))}
		d := Desk{s: s, p: p}
		d.Field.Sync(p)
		drawNeeds(t, &d)
		items := drawItems(t, p)
		type asker struct {
			who    Who
			number int32
			on     map[cluster.HostID]int64
		}
		askers := make([]asker, rapid.IntRange(1, 6).Draw(t, "askers"))
		for i := range askers {
			askers[i] = asker{Who{rapid.Int32Range(-1, 2).Draw(t, "side"), rapid.Int64Range(0, 3).Draw(t, "grace")}, 0, map[cluster.HostID]int64{}}
			s.Sub.Shape = append(s.Sub.Shape, s.Shape.Intern(drawSize(t, p)))
			s.Sub.Need = append(s.Sub.Need, cluster.NeedID(rapid.Int32Range(-1, 1).Draw(t, "need")))
			s.Sub.First = append(s.Sub.First, cluster.NoID)
			s.Sub.MaxPerHost = append(s.Sub.MaxPerHost, rapid.SampledFrom([]int64{plan.Unlimited, plan.Unlimited, 1, 2}).Draw(t, "max"))
		}
		var l Lot
		l.Begin(&d)
		narrow := rapid.Bool().Draw(t, "narrow")
		if narrow { // told of more than will ask, too
			shapes := slices.Clone(s.Sub.Shape)
			for range rapid.SampledFrom([]int{0, 0, 3, leastMost + 8}).Draw(t, "more") {
				shapes = append(shapes, s.Shape.Intern(drawSize(t, p)))
			}
			l.Narrow(shapes)
		}
		rest := map[cluster.ParcelID][]int64{}
		for _, it := range items {
			if rapid.IntRange(0, 3).Draw(t, "reserved") == 0 {
				for c := range p.Parcels.Cap {
					rest[it.Parcel] = append(rest[it.Parcel], rapid.Int64Range(-1, 1+p.Parcels.Cap[c][it.Parcel]).Draw(t, "rest"))
				}
			}
			if l.MayUse(it.Parcel) {
				l.Add(it, rest[it.Parcel])
			}
		}
		l.Close()
		for i := range askers {
			askers[i].number = l.Lookup(cluster.SubID(i), askers[i].who)
		}
		for range 40 {
			if !narrow && len(items) > 0 && rapid.IntRange(0, 5).Draw(t, "regain") == 0 {
				k := items[rapid.IntRange(0, len(items)-1).Draw(t, "regained")].Parcel
				for c := range p.Parcels.Cap {
					p.Parcels.Free[c][k] += rapid.Int64Range(0, max(0, p.Parcels.Cap[c][k]-p.Parcels.Free[c][k])).Draw(t, "gain")
				}
				d.Field.Regain(k)
			}
			i := rapid.IntRange(0, len(askers)-1).Draw(t, "next")
			a, size, most := &askers[i], s.Size(cluster.SubID(i)), s.Sub.MaxPerHost[i]
			want := cluster.ParcelID(cluster.NoID)
			for tier := int32(0); tier < 3 && want == cluster.NoID; tier++ {
				allowed := make([]uint64, p.Parcels.Words())
				for _, it := range items {
					k := it.Parcel
					ok := it.Tier == tier && (it.Side == cluster.NoID || it.Side != a.who.Side) && it.Grace >= a.who.Grace
					selected, _ := d.Selected(s.Sub.Need[i])
					ok = ok && (selected == nil || selected[k>>6]>>(uint(k)&63)&1 == 1)
					ok = ok && (most == plan.Unlimited || a.on[p.Parcels.Host[k]] < most)
					for c, v := range rest[k] {
						ok = ok && (size[c] == 0 || v >= size[c])
					}
					if ok {
						allowed[k/64] |= 1 << (k % 64)
					}
				}
				if _, order := d.Selected(s.Sub.Need[i]); order == nil {
					want = plain(&d.Field, p, size, allowed)
				} else {
					want = firstIn(order, p, size, allowed)
				}
			}
			got := l.Find(a.number)
			if got != want {
				t.Fatalf("asker %d, %v: found parcel %d, should be %d", i, size, got, want)
			}
			if got == cluster.NoID {
				continue
			}
			l.Give(a.number, got)
			a.on[p.Parcels.Host[got]]++
			for c, u := range size {
				p.Parcels.Free[c][got] -= u
				if rest[got] != nil {
					rest[got][c] -= u
				}
			}
		}
	})
}

// drawItems draws which parcels are in a lot, for whom.
func drawItems(t *rapid.T, p *cluster.Plan) (items []Item) {
	side, grace := rapid.SliceOfN(rapid.Int32Range(-1, 2), 8, 8).Draw(t, "sides"), rapid.SliceOfN(rapid.Int64Range(0, 3), 8, 8).Draw(t, "graces")
	for k := range p.Parcels.Len() {
		if i := rapid.IntRange(0, 8).Draw(t, "item"); i < 8 {
			items = append(items, Item{Parcel: cluster.ParcelID(k), Tier: int32(i % 3), Side: side[i], Grace: grace[i]})
		}
	}
	slices.Reverse(items)
	return items
}

// drawNeeds gives a desk two requirements: one that selects parcels, and one that orders them, too.
func drawNeeds(t *rapid.T, d *Desk) {
	n := d.p.Parcels.Len()
	for range 2 {
		set := rapid.SliceOfN(rapid.Uint64(), d.p.Parcels.Words(), d.p.Parcels.Words()).Draw(t, "selected")
		d.bits, d.order, d.turn = append(d.bits, set), append(d.order, nil), append(d.turn, nil)
	}
	d.order[1] = []cluster.ParcelID{}
	for _, k := range rapid.Permutation(upTo(n)).Draw(t, "order") {
		if d.bits[1][k>>6]>>(uint(k)&63)&1 == 1 {
			d.order[1] = append(d.order[1], cluster.ParcelID(k))
		}
	}
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// firstIn is the first of some parcels, in an order, that a unit fits.
func firstIn(order []cluster.ParcelID, p *cluster.Plan, size []int64, allowed []uint64) cluster.ParcelID {
	for _, k := range order {
		fits := p.Parcels.IsOpen(k) && allowed[k>>6]>>(uint(k)&63)&1 == 1
		for d, u := range size {
			fits = fits && (u == 0 || p.Parcels.Free[d][k] >= u)
		}
		if fits {
			return k
		}
	}
	return cluster.NoID
}

// drawSize draws a unit's size.
func drawSize(t *rapid.T, p *cluster.Plan) (size []int64) {
	for d := range p.Parcels.Cap {
		largest := int64(4)
		for _, c := range p.Parcels.Cap[d] {
			largest = max(largest, c/3)
		}
		size = append(size, rapid.Int64Range(0, largest).Draw(t, "size"))
	}
	size[0]++ // never nothing
	return size
}
