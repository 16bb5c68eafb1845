//go:build !rounds

package grant

import (
	"cmp"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
)

// parcels draws parcels of some dimensions, few of them alike, with what is free on them and how much of that may be
// had.
func parcels(t *rapid.T) (p *cluster.Plan, free, rest [][]int64) {
	dims, n := rapid.IntRange(1, 9).Draw(t, "dimensions"), rapid.IntRange(1, 150).Draw(t, "parcels")
	largest := rapid.SampledFrom([]int64{8, 100, 1 << 20, 1 << 50}).Draw(t, "largest")
	p = &cluster.Plan{}
	p.Terms.Placement = rapid.SampledFrom([]plan.Placement{plan.BestFit, plan.Stacked, plan.Balanced}).Draw(t,
		"placement")
	p.Parcels = cluster.Parcels{Host: make([]cluster.HostID, n), Open: make([]uint64, (n+63)/64),
		Cap: make([][]int64, dims)}
	for k := range n {
		p.Parcels.Open[k>>6] |= 1 << (k & 63)
		p.Parcels.Host[k] = cluster.HostID(k)
		var f, r []int64
		for d := range dims {
			whole := rapid.Int64Range(0, largest).Draw(t, "capacity")
			v := whole - rapid.Int64Range(0, whole).Draw(t, "held")*rapid.Int64Range(0, 1).Draw(t, "in use")
			p.Parcels.Cap[d] = append(p.Parcels.Cap[d], whole)
			f = append(f, v)
			r = append(r, v-rapid.Int64Range(0, 3).Draw(t, "reserved")*rapid.Int64Range(0, 1).Draw(t, "any"))
		}
		free, rest = append(free, f), append(rest, r)
	}
	return p, free, rest
}

// TestPlacement holds where units go against the definitions of D-2 and D-3, while the lot fills.
func TestPlacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, free, rest := parcels(t)
		rules, dims := NewRules(p), len(p.Parcels.Cap)
		var l lot
		l.begin(rules, dims)
		for k := range free {
			l.add(cluster.ParcelID(k), plan.None, 0)
		}
		l.lay(p, func(k cluster.ParcelID, f, r []int64) bool {
			copy(f, free[k])
			copy(r, rest[k])
			return !slices.Equal(free[k], rest[k])
		})
		words := (len(free) + 63) / 64
		var asks []finder
		for i := range rapid.IntRange(1, 4).Draw(t, "sizes") {
			size := make([]int64, dims)
			for d := range size {
				size[d] = rapid.Int64Range(0, rules.most[d]/3+1).Draw(t, "size") * rapid.Int64Range(0, 1).Draw(t,
					"needed")
			}
			size[i%dims] = max(1, size[i%dims])
			var mask []uint64
			if rapid.Bool().Draw(t, "masked") {
				mask = rapid.SliceOfN(rapid.Uint64(), words, words).Draw(t, "mask")
			}
			var f finder
			f.begin(&l, cluster.ShapeID(i), size, mask, nil, false)
			asks = append(asks, f)
		}
		for range 80 {
			f := &asks[rapid.IntRange(0, len(asks)-1).Draw(t, "ask")]
			want := placed(rules, p, free, rest, f.need.Size(), f.mask)
			got := f.find(&l)
			if got != want {
				t.Fatalf("placement %d: %v goes to %d, want %d\nfree %v\nrest %v", rules.placement, f.need.Size(), got,
					want, free, rest)
			}
			if got == room.NoRow {
				continue
			}
			l.take(got, &f.need)
			for d, v := range f.need.Size() {
				free[got][d] -= v
				rest[got][d] -= v
			}
		}
	})
}

// placed is where a unit goes by the definitions.
func placed(r *Rules, p *cluster.Plan, free, rest [][]int64, size []int64, mask []uint64) room.Row {
	best := room.NoRow
	for k := range free {
		fits := mask == nil || mask[k>>6]>>(k&63)&1 == 1
		for d, v := range size {
			fits = fits && (v == 0 || rest[k][d] >= v)
		}
		if fits && (best == room.NoRow || rather(r, p, free, size, k, int(best))) {
			best = room.Row(k)
		}
	}
	return best
}

// rather tells whether a unit goes to parcel a rather than to b, which comes before it.
func rather(r *Rules, p *cluster.Plan, free [][]int64, size []int64, a, b int) bool {
	switch r.placement {
	case plan.Stacked:
		return begun(p, free, a) && !begun(p, free, b)
	case plan.Balanced:
		return r.weigh(free[a]) > r.weigh(free[b])
	}
	x, y := likenessOf(r, free[a], size), likenessOf(r, free[b], size)
	if c := new(big.Int).Mul(x.dot2, y.norm).Cmp(new(big.Int).Mul(y.dot2, x.norm)); c != 0 {
		return c > 0
	}
	return cmp.Or(cmp.Compare(x.shape, y.shape), cmp.Compare(x.full, y.full)) < 0
}

func begun(p *cluster.Plan, free [][]int64, k int) bool {
	for d, v := range free[k] {
		if v != p.Parcels.Cap[d][k] {
			return true
		}
	}
	return false
}

// likenessDef is D-2's measure of a parcel for a unit.
type likenessDef struct {
	dot2, norm  *big.Int
	shape, full int
}

func likenessOf(r *Rules, free, size []int64) likenessDef {
	dims := min(len(free), 8)
	step, most := make([]int64, dims), int64(0)
	for d := range dims {
		step[d] = max(0, free[d]) * r.weight[d] >> 46
		most = max(most, step[d])
	}
	dot, norm, shape, digit := big.NewInt(0), int64(0), 0, 1
	for d, x := range step {
		level, code := int64(0), 0
		switch {
		case len(free) > 4:
			if 4*x > most {
				level, code = 1, 1
			}
		case 2*x > most:
			level, code = 12, 3
		case 4*x > most:
			level, code = 6, 2
		case 16*x > most:
			level, code = 2, 1
		}
		if w := r.weight[d]; w > 0 {
			y := (min(size[d], 1<<58/w)*w + 1<<46 - 1) >> 46
			dot.Add(dot, new(big.Int).Mul(big.NewInt(level), big.NewInt(y)))
		}
		norm += level * level
		shape += digit * code
		if digit *= 4; len(free) > 4 {
			digit /= 2
		}
	}
	full := 0
	for _, x := range []int64{256, 1024, 2048} {
		if most > x {
			full++
		}
	}
	return likenessDef{dot.Mul(dot, dot), big.NewInt(max(1, norm)), shape, full}
}
