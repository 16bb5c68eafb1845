package place

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// drawPlan draws the parcels of a slot plan, some closed, some partly used, some overfull.
func drawPlan(t *rapid.T) *cluster.Plan {
	n := rapid.SampledFrom([]int{0, 1, 63, 64, 65, 150, 4096 + 70}).Draw(t, "parcels")
	largest := rapid.SampledFrom([]int64{2, 8, 100, 1 << 50}).Draw(t, "largest")
	seed := rapid.Uint64().Draw(t, "seed")
	next := func(below int64) int64 { // rapid would draw for as long as it tests
		seed = seed*6364136223846793005 + 1442695040888963407
		return int64(seed>>33) % below
	}
	p := &cluster.Plan{Rebuilt: true, Terms: cluster.Terms{
		Placement: rapid.SampledFrom([]plan.Placement{plan.Stacked, plan.Balanced}).Draw(t, "placement"),
	}}
	p.Parcels = cluster.Parcels{Host: make([]cluster.HostID, n), Open: make([]uint64, (n+63)/64)}
	c, f := make([]int64, n), make([]int64, n)
	for k := range n {
		c[k] = next(largest + 1)
		if f[k] = c[k] - next(2)*next(c[k]/4+1); next(10) == 0 {
			f[k] = -next(3)
		}
		if next(10) > 0 {
			p.Parcels.Open[k/64] |= 1 << (k % 64)
		}
	}
	p.Parcels.Cap, p.Parcels.Free = [][]int64{c}, [][]int64{f}
	return p
}

// plain is Find by its definition: of all open parcels with room for the unit, the
// first in the placement's order. It goes by the plan's columns alone.
func plain(p *cluster.Plan, slots int64, allowed []uint64, order []cluster.ParcelID) cluster.ParcelID {
	best, key := cluster.ParcelID(cluster.NoID), int64(0)
	at := func(k cluster.ParcelID, mine int64) {
		fits := p.Parcels.IsOpen(k) && (allowed == nil || allowed[k/64]>>(k%64)&1 == 1)
		if fits && p.Parcels.Free[0][k] >= slots && (best == cluster.NoID || mine < key) {
			best, key = k, mine
		}
	}
	for i, k := range order {
		at(k, int64(i))
	}
	for k := cluster.ParcelID(0); order == nil && int(k) < p.Parcels.Len(); k++ {
		switch {
		case p.Terms.Placement == plan.Balanced:
			at(k, -p.Parcels.Free[0][k])
		case p.Parcels.Free[0][k] < p.Parcels.Cap[0][k]:
			at(k, 0)
		default:
			at(k, 1)
		}
	}
	return best
}

// TestFinders lets several finders place units in turn on one field, on which units come free meanwhile and which is
// brought up to the parcels from time to time, and holds each answer against the plain definition over the columns.
func TestFinders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		var f Field
		f.Sync(p)
		p.Rebuilt = false
		finders := make([]Finder, rapid.IntRange(1, 4).Draw(t, "finders"))
		slots, allowed := make([]int64, len(finders)), make([][]uint64, len(finders))
		order := make([][]cluster.ParcelID, len(finders))
		look := func() {
			for i := range finders {
				slots[i] = rapid.SampledFrom([]int64{1, 1, 2, 30, 1 << 49}).Draw(t, "slots")
				allowed[i], order[i] = nil, nil
				if rapid.Bool().Draw(t, "required") {
					allowed[i] = rapid.SliceOfN(rapid.Uint64(), p.Parcels.Words(), p.Parcels.Words()).Draw(t, "allowed")
				}
				if rapid.IntRange(0, 3).Draw(t, "ordered") == 0 {
					for k := p.Parcels.Len() - 1; k >= 0; k -= 2 {
						order[i] = append(order[i], cluster.ParcelID(k))
					}
				}
				finders[i].Reset(&f, slots[i], allowed[i], order[i])
			}
		}
		look()
		for range rapid.IntRange(0, 200).Draw(t, "units") {
			i := rapid.IntRange(0, len(finders)-1).Draw(t, "next")
			got, want := finders[i].Find(), plain(p, slots[i], allowed[i], order[i])
			if got != want {
				t.Fatalf("%d slots: found parcel %d, should be %d", slots[i], got, want)
			}
			what := rapid.IntRange(0, 19).Draw(t, "what")
			if at := rapid.IntRange(0, max(0, p.Parcels.Len()-1)).Draw(t, "freed"); what < 2 && p.Parcels.Len() > 0 {
				p.Parcels.Free[0][at] = p.Parcels.Cap[0][at]
				if p.Changed = append(p.Changed, cluster.ParcelID(at)); what == 0 {
					f.Regain(cluster.ParcelID(at))
				} else { // another cycle
					f.Sync(p)
					p.Changed = nil
					look()
				}
				continue
			}
			if got == cluster.NoID {
				continue
			}
			f.Take(got, slots[i])
			p.Parcels.Free[0][got] -= slots[i]
			p.Changed = append(p.Changed, got)
			if allowed[i] != nil && rapid.IntRange(0, 3).Draw(t, "forbid") == 0 {
				finders[i].Forbid(got)
			}
		}
	})
}
