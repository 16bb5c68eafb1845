package cycle_test

import (
	"math"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// scattered holds what fragmented names in MD plans against what is held (docs/spec/md.md, Reasons): a row names no
// more units than what is free on the hosts that it may use would carry, and all rows of a plan together no more than
// what is free in the plan. Where nobody owns or waits for anything the first row names as many.
func (p *player) scattered(t *rapid.T) {
	short, waits := map[oracle.Key]int64{}, map[string]bool{}
	for i, n := range p.out.Shortfalls.UnitsShort {
		k := keyAt(p.out.Shortfalls.Key, i)
		short[k] += n
		waits[k.Plan] = waits[k.Plan] || p.out.Shortfalls.Reason.At(i) == "waiting_for_reclaim"
	}
	left := map[string]map[string]int64{}
	for i, n := range p.out.Shortfalls.UnitsShort {
		k := keyAt(p.out.Shortfalls.Key, i)
		if p.mdPlan(k.Plan) == nil || p.out.Shortfalls.Reason.At(i) != "fragmented" {
			continue
		}
		r := p.rules[k]
		of := p.freeFor(k.Plan, func(name string) bool {
			return meets(r.Requirement, p.hosts[name]) &&
				(r.MaxPerHost == plan.Unlimited || p.held[holding{k, name}] < r.MaxPerHost)
		})
		first := left[k.Plan] == nil
		if first {
			left[k.Plan] = p.freeFor(k.Plan, func(string) bool { return true })
		}
		most := carried(of, r.Size)
		if n > most || n > carried(left[k.Plan], r.Size) {
			t.Fatalf("%d units of %v are short as fragmented: %v is free for them, %v not named yet in the plan", n, k,
				of, left[k.Plan])
		}
		alone := !p.own && !p.gangs && !waits[k.Plan] && len(p.leaving) == 0
		if alone && first && n < min(most, short[k]) {
			t.Fatalf("%d of %d units of %v are short as fragmented: what is free carries %d", n, short[k], k, most)
		}
		for d, u := range r.Size {
			left[k.Plan][d] -= n * u
		}
	}
}

// freeFor is what is free on the ok hosts of a plan that are in a set.
func (p *player) freeFor(in string, ok func(name string) bool) map[string]int64 {
	sum := map[string]int64{}
	for name, h := range p.hosts {
		if h.State == "ok" && p.planOf(name) == in && ok(name) {
			for d, n := range p.free(name) {
				sum[d] += max(0, n)
			}
		}
	}
	return sum
}

// carried is how many units of a size an amount would carry.
func carried(sum, size map[string]int64) int64 {
	n := int64(math.MaxInt64)
	for d, u := range size {
		if u > 0 {
			n = min(n, sum[d]/u)
		}
	}
	return n
}
