package cycle_test

import (
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// fairView is an MD plan at its fixed point, by the table of shares. Shares are floats there: what is nearly equal is
// let go.
type fairView struct {
	*player
	*mdPlan
	row      map[string]int         // of a consumer in the table
	capacity map[oracle.Key]float64 // of the pool in units of a sub-allocation
	band     float64
}

// nearly is by how much shares may be less than what is asked for.
const nearly = 1e-7

// settledShares holds MD-17 and INV-5 in MD plans at rest: no unit that one who is above its quota could give, nor
// several of one size, makes room for one of who is below it, and would lower the sum of the squares of all distances.
func (p *player) settledShares(t *rapid.T) {
	if p.own || p.gangs || p.devices { // gangs neither take nor give one by one
		return // hosts are not all the public pool's, or some are kept from it; the oracle knows
	}
	for i := range p.plans {
		v := &fairView{p, &p.plans[i], map[string]int{}, map[oracle.Key]float64{}, 0.01}
		if slices.Contains(v.settings, "share_reclaim: false") {
			continue
		}
		for _, line := range v.settings {
			if text, ok := strings.CutPrefix(line, "fair_band: "); ok {
				v.band, _ = strconv.ParseFloat(text, 64)
			}
		}
		shares := &p.out.Shares
		for i := range shares.Usage {
			if shares.Plan.At(i) == v.name {
				v.row[shares.Consumer.At(i)] = i
			}
		}
		for i := range p.out.Shortfalls.UnitsShort {
			if k := keyAt(p.out.Shortfalls.Key, i); k.Plan == v.name && !p.barred(k) && !v.modest(k) &&
				!p.turnedOut(k) {
				v.taker(t, k)
			}
		}
	}
}

// turnedOut tells whether a sub-allocation had as many turns as it may (INV-10).
func (p *player) turnedOut(k oracle.Key) bool {
	s := p.engine
	for sub, turns := range s.Sub.Turns {
		if turns >= 5 && s.Sub.Alloc[sub] != cluster.NoID &&
			s.Consumer.String(int32(s.Sub.Consumer[sub])) == k.Consumer {
			return true
		}
	}
	return false
}

// modest tells whether a consumer, or one above it, takes nothing back.
func (v *fairView) modest(k oracle.Key) bool {
	return slices.ContainsFunc(v.members, func(e member) bool {
		return e.modest && below(k.Consumer, v.consumers[e.consumer].path)
	})
}

// taker looks at every host that might make room for one unit more.
func (v *fairView) taker(t *rapid.T, k oracle.Key) {
	r, deficit, unit := v.rules[k], -v.surplus(k.Consumer), v.counts(k)
	if deficit < nearly {
		return
	}
	banded := deficit-nearly > max(unit, v.band*v.quota(k.Consumer))
	for name, h := range v.hosts {
		if h.State != "ok" || v.planOf(name) != v.name || !meets(r.Requirement, h) || v.apart(k, h) ||
			r.MaxPerHost != plan.Unlimited && v.held[holding{k, name}] >= r.MaxPerHost {
			continue
		}
		for by, units := range v.held {
			if by.host != name || by.Consumer == k.Consumer || v.after(k, by.Consumer) {
				continue
			}
			room, sum, surplus, gives := v.free(name), unit*(2*deficit-unit), v.surplus(by.Consumer), v.counts(by.Key)
			for n := int64(1); n <= units && surplus > nearly && (banded ||
				surplus-nearly > max(gives, v.band*v.quota(by.Consumer))); n++ {
				add(room, v.rules[by.Key].Size, 1)
				if sum += gives * (2*surplus - gives); fits(r.Size, room) {
					if sum > nearly*(unit+gives*float64(n)) {
						t.Fatalf("INV-5: %v is %.6f below its quota and goes short; with %d units of %v on %s, which "+
							"is %.6f above, the sum of squares would be lower by %g",
							k, deficit, n, by.Key, name, v.surplus(by.Consumer), sum)
					}
					break
				}
				surplus -= gives
			}
		}
	}
}

// after reports whether the way of a sub-allocation has a lower share priority than another one's where the two part:
// then that gives nothing to it (MD-17.4).
func (v *fairView) after(k oracle.Key, other string) bool {
	var a, b *member
	for i := range v.members {
		e := &v.members[i]
		path := v.consumers[e.consumer].path
		one, two := below(k.Consumer, path), below(other, path)
		switch depth := strings.Count(path, "/"); {
		case one && !two && (a == nil || depth < strings.Count(v.consumers[a.consumer].path, "/")):
			a = e
		case two && !one && (b == nil || depth < strings.Count(v.consumers[b.consumer].path, "/")):
			b = e
		}
	}
	minute := int((v.nowUS - startUS) / 60e6)
	return v.shareIn(&v.site, a, minute).priority < v.shareIn(&v.site, b, minute).priority
}

// surplus is by how much a consumer is above its quota, below 0 when it is below.
func (v *fairView) surplus(path string) float64 {
	i, ok := v.row[path]
	if !ok {
		return 0
	}
	return v.out.Shares.Usage[i] - v.out.Shares.UsageQuota[i]
}

func (v *fairView) quota(path string) float64 { return v.out.Shares.UsageQuota[v.row[path]] }

// counts is what a unit of a sub-allocation counts (MD-12).
func (v *fairView) counts(k oracle.Key) float64 { return 1 / max(1, v.pool(k)) }

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
