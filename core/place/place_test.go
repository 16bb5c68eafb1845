package place

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// drawPlan draws parcels of up to six dimensions, few of them alike, some closed, some partly used.
func drawPlan(t *rapid.T) *cluster.Plan {
	dims, n := rapid.IntRange(1, 6).Draw(t, "dimensions"), rapid.IntRange(0, 150).Draw(t, "parcels")
	largest := rapid.SampledFrom([]int64{8, 100, 1 << 20, 1 << 50}).Draw(t, "largest")
	p := &cluster.Plan{Terms: cluster.Terms{Placement: rapid.SampledFrom([]plan.Placement{plan.BestFit, plan.Stacked,
		plan.Balanced}).Draw(t, "placement")}, Rebuilt: true}
	p.Parcels = cluster.Parcels{Host: make([]cluster.HostID, n), Open: make([]uint64, (n+63)/64)}
	for range dims {
		c, f := make([]int64, n), make([]int64, n)
		for k := range n {
			c[k] = rapid.Int64Range(0, largest).Draw(t, "capacity")
			if f[k] = c[k] - rapid.Int64Range(0, c[k]/4).Draw(t, "used"); rapid.IntRange(0, 9).Draw(t,
				"overfull") == 0 {
				c[k] = rapid.SampledFrom([]int64{0, c[k]}).Draw(t, "left")
				f[k] = -rapid.Int64Range(0, 2).Draw(t, "over")
			}
		}
		p.Parcels.Cap, p.Parcels.Free = append(p.Parcels.Cap, c), append(p.Parcels.Free, f)
	}
	for k := range n {
		if rapid.IntRange(0, 9).Draw(t, "closed") > 0 {
			p.Parcels.Open[k/64] |= 1 << (k % 64)
		}
	}
	return p
}

// plain is Find by its definition: of all open parcels with room for the unit, the
// first in the placement's order. It goes by the plan's columns alone.
func plain(f *Field, p *cluster.Plan, size []int64, allowed []uint64) cluster.ParcelID {
	var order [shapesMax]uint8
	f.rank(size, &order)
	place := map[uint8]int{}
	for i, s := range order[:f.shapes] {
		place[s] = i
	}
	best, key := cluster.ParcelID(cluster.NoID), [3]int64{}
	for k := range p.Parcels.Len() {
		fits := p.Parcels.IsOpen(cluster.ParcelID(k)) && (allowed == nil || allowed[k/64]>>(k%64)&1 == 1)
		free, begun := int64(0), false
		for d, u := range size {
			fits = fits && (u == 0 || p.Parcels.Free[d][k] >= u)
			free += max(0, p.Parcels.Free[d][k]) * f.weight[d]
			begun = begun || p.Parcels.Free[d][k] < p.Parcels.Cap[d][k]
		}
		if !fits {
			continue
		}
		var mine [3]int64
		switch f.placement {
		case plan.BestFit:
			var g Field // a field of its own, that has seen no Take
			g.Sync(&cluster.Plan{Terms: p.Terms, Parcels: p.Parcels, Rebuilt: true})
			c := g.class[k]
			mine = [3]int64{int64(place[uint8(c/fullnesses)]), int64(c % fullnesses)}
		case plan.Stacked:
			if !begun {
				mine[0] = 1
			}
		case plan.Balanced:
			mine[0] = -free
		}
		mine[2] = int64(k)
		if best == cluster.NoID || mine[0] < key[0] ||
			mine[0] == key[0] && (mine[1] < key[1] || mine[1] == key[1] && mine[2] < key[2]) {
			best, key = cluster.ParcelID(k), mine
		}
	}
	return best
}

// TestFinders lets several finders place units in turn on one field, and holds
// each answer against the plain definition over the columns.
func TestFinders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		var f Field
		f.Sync(p)
		finders := make([]Finder, rapid.IntRange(1, 4).Draw(t, "finders"))
		sizes, allowed := make([][]int64, len(finders)), make([][]uint64, len(finders))
		for i := range finders {
			for d := range p.Parcels.Cap {
				largest := int64(4)
				for _, c := range p.Parcels.Cap[d] {
					largest = max(largest, c/3)
				}
				sizes[i] = append(sizes[i], rapid.Int64Range(0, largest).Draw(t, "size"))
			}
			sizes[i][0]++ // never nothing
			if rapid.Bool().Draw(t, "required") {
				allowed[i] = rapid.SliceOfN(rapid.Uint64(), p.Parcels.Words(), p.Parcels.Words()).Draw(t, "allowed")
			}
			finders[i].Reset(&f, sizes[i], allowed[i], nil)
		}
		for range 40 {
			i := rapid.IntRange(0, len(finders)-1).Draw(t, "next")
			got, want := finders[i].Find(), plain(&f, p, sizes[i], allowed[i])
			if got != want {
				t.Fatalf("%v: found parcel %d, should be %d", sizes[i], got, want)
			}
			if got == cluster.NoID {
				continue
			}
			finders[i].Take(got)
			for d, u := range sizes[i] {
				p.Parcels.Free[d][got] -= u
			}
			if allowed[i] != nil && rapid.IntRange(0, 3).Draw(t, "forbid") == 0 {
				finders[i].Forbid(got)
			}
		}
	})
}
