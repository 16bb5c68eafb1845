package cycle_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// fairView is an MD plan at its fixed point. Shares are floats here: what is nearly equal is let go.
type fairView struct {
	*player
	*mdPlan
	capacity map[oracle.Key]float64 // of the pool in units of a sub-allocation
}

// settledShares holds MD-17 and INV-5 in MD plans at rest: nobody who may take goes short of a unit for which, on some
// host, those of lower priority could make room, or units of one leaf and size whose branch would be ahead even then.
func (p *player) settledShares(t *rapid.T) {
	if p.own {
		return // hosts are not all the public pool's; the oracle knows
	}
	for i := range p.plans {
		v := &fairView{p, &p.plans[i], map[oracle.Key]float64{}}
		if slices.Contains(v.settings, "share_reclaim: false") {
			continue
		}
		for i := range p.out.Shortfalls.UnitsShort {
			if k := keyAt(p.out.Shortfalls.Key, i); k.Plan == v.name && !p.barred(k) && !v.modest(k) {
				v.taker(t, k)
			}
		}
	}
}

// modest tells whether a consumer, or one above it, takes nothing back.
func (v *fairView) modest(k oracle.Key) bool {
	return slices.ContainsFunc(v.members, func(e member) bool { return e.modest && below(k.Consumer, v.consumers[e.consumer].path) })
}

func (v *fairView) member(path string) member {
	i := slices.IndexFunc(v.members, func(e member) bool { return v.consumers[e.consumer].path == path })
	return v.members[i]
}

// taker looks at every host that might make room for one unit more.
func (v *fairView) taker(t *rapid.T, k oracle.Key) {
	r := v.rules[k]
	for name, h := range v.hosts {
		if h.State != "ok" || v.planOf(name) != v.name || !meets(r.Requirement, h) ||
			r.MaxPerHost != plan.Unlimited && v.held[holding{k, name}] >= r.MaxPerHost {
			continue
		}
		lower := v.free(name)
		for by, n := range v.held {
			if by.host != name || by.Consumer == k.Consumer {
				continue
			}
			a, b := part(by.Consumer, k.Consumer)
			x, y := v.member(a), v.member(b)
			switch {
			case x.priority < y.priority || x.priority == y.priority && x.ratio == 0:
				add(lower, v.rules[by.Key].Size, n)
				if fits(r.Size, lower) {
					t.Fatalf("MD-17: %v goes short, and on %s there is room of lower priority for it", k, name)
				}
			case x.priority == y.priority:
				v.equal(t, k, by, n)
			}
		}
	}
}

// equal checks that units of one sub-allocation on a host are rightly not taken for a taker of equal priority.
func (v *fairView) equal(t *rapid.T, k oracle.Key, by holding, units int64) {
	a, b := part(by.Consumer, k.Consumer)
	room := v.free(by.host)
	for n := int64(1); n <= units; n++ {
		if add(room, v.rules[by.Key].Size, 1); !fits(v.rules[k].Size, room) {
			continue
		}
		left, after := v.share(a, by.Key, -n)/float64(v.member(a).ratio), v.share(b, k, 1)/float64(v.member(b).ratio)
		if left > after+1e-9 {
			t.Fatalf("INV-5: %v goes short; for %d units of %v on %s it would be at %.6f, and that still at %.6f", k, n, by.Key, by.host, after, left)
		}
		return
	}
}

// share is a consumer's share usage (MD-12) with some units of a sub-allocation more or less.
func (v *fairView) share(path string, more oracle.Key, units int64) (sum float64) {
	type kind struct{ leaf, size string }
	count, rep := map[kind]int64{}, map[kind]oracle.Key{}
	for k := range v.rules {
		if k.Plan != v.name || !below(k.Consumer, path) {
			continue
		}
		of := kind{k.Consumer, fmt.Sprint(v.rules[k].Size)}
		rep[of] = k
		count[of] += v.heldBy(k)
		if k == more {
			count[of] += units
		}
	}
	for of, n := range count {
		if n > 0 {
			sum += float64(n) / max(v.pool(rep[of]), float64(n))
		}
	}
	return sum
}

// pool is the pool's capacity in units of a sub-allocation (MD-11); closed hosts count with what is held on them.
func (v *fairView) pool(k oracle.Key) float64 {
	if n, known := v.capacity[k]; known {
		return n
	}
	sum := int64(0)
	for name, h := range v.hosts {
		if v.planOf(name) != v.name || h.State == "unavail" {
			continue
		}
		room := v.player.capacity(v.name, h)
		if h.State != "ok" {
			add(room, v.free(name), -1)
		}
		least := int64(1 << 60)
		for d, n := range v.rules[k].Size {
			if n > 0 {
				least = min(least, room[d]/n)
			}
		}
		sum += least
	}
	v.capacity[k] = float64(sum)
	return v.capacity[k]
}

// part gives the paths at which the ways to two leaves part.
func part(a, b string) (string, string) {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	i := 1
	for x[i] == y[i] {
		i++
	}
	return strings.Join(x[:i+1], "/"), strings.Join(y[:i+1], "/")
}

func add(room, size map[string]int64, units int64) {
	for d, n := range size {
		room[d] += n * units
	}
}

func fits(size, room map[string]int64) bool {
	for d, n := range size {
		if n > 0 && n > room[d] {
			return false
		}
	}
	return true
}
