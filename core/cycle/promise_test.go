package cycle_test

import (
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// The promises of SPEC chapter 11, from the engine's own tables and what the generator meant, without the oracle.

// ledger holds INV-9 and INV-1: what was granted and released adds up to what is held, that to what is wanted less
// what is short, and fits the hosts; what was put under reclaim and is not back is still held.
func (p *player) ledger(t *rapid.T) {
	for i, n := range p.out.Releases.Units {
		k := keyAt(p.out.Releases.Key, i)
		p.held[holding{k, p.out.Releases.Host.At(i)}] -= n
		if p.out.Releases.Reclaim[i] > 0 {
			p.leaving[holding{k, p.out.Releases.Host.At(i)}] -= n
		}
		if p.out.Releases.Cause.At(i) == "done" && !p.orphans[k] && !p.renewed[k.Allocation[:len(sources[0])]] {
			p.wanted[k] = max(0, p.wanted[k]-n)
		}
	}
	for i, n := range p.out.Grants.Units {
		host := p.out.Grants.Host.At(i)
		p.held[holding{keyAt(p.out.Grants.Key, i), host}] += n
		if p.hosts[host].State != "ok" {
			t.Fatalf("INV-1: a grant on %s, which is %q", host, p.hosts[host].State)
		}
	}
	for i, n := range p.out.Reclaims.Units {
		if p.out.Reclaims.Action.At(i) == "cancelled" {
			n = -n
		}
		p.leaving[holding{keyAt(p.out.Reclaims.Key, i), p.out.Reclaims.Host.At(i)}] += n
	}
	sum := int64(0)
	for h, n := range p.leaving {
		if sum += n; n < 0 || n > p.held[h] {
			t.Fatalf("cycle %d: %d of %d units of %v are under reclaim", p.cycles, n, p.held[h], h)
		}
	}
	if sum != p.out.Summary.UnitsLeaving {
		t.Fatalf("cycle %d: %d units should be under reclaim, %d are", p.cycles, sum, p.out.Summary.UnitsLeaving)
	}
	held, stated := map[oracle.Key]int64{}, map[holding]int64{}
	for h, n := range p.held {
		held[h.Key] += n
	}
	for i, n := range p.out.Holdings.Units {
		stated[holding{keyAt(p.out.Holdings.Key, i), p.out.Holdings.Host.At(i)}] += n
	}
	maps.DeleteFunc(p.held, func(_ holding, n int64) bool { return n == 0 })
	if !maps.Equal(p.held, stated) {
		t.Fatalf("INV-9: held should be %v and is %v", p.held, stated)
	}
	short := map[oracle.Key]int64{}
	for i, n := range p.out.Shortfalls.UnitsShort {
		short[keyAt(p.out.Shortfalls.Key, i)] += n
	}
	for k, n := range p.wanted {
		if held[k]+short[k] != n || held[k] > n {
			t.Fatalf("INV-9: %v wants %d, holds %d, is short of %d", k, n, held[k], short[k])
		}
	}
	for name, h := range p.hosts {
		for d, n := range p.free(name) {
			// one that left its plan keeps its work for a while
			if n < 0 && (p.planOf(name) != "" || h.State == "unavail") {

				t.Fatalf("INV-1: %s holds %d of %s too many", name, -n, d)
			}
		}
	}
}

// free is what the ledger says is left of a host.
// It may be less than nothing of a host that left its plan.
func (p *player) free(name string) map[string]int64 {
	h, free := p.hosts[name], map[string]int64{}
	if in := p.planOf(name); in != "" && h.State != "unavail" {
		free = p.capacity(in, h)
	}
	for k, n := range p.held {
		if k.host == name {
			for d, u := range p.unit(p.rules[k.Key]) {
				free[d] -= n * u
			}
		}
	}
	return free
}

// conserving holds INV-6 in MD plans: no unmet unit that its rules allow fits the public part of an ok host, save what
// is held for takers, or a parcel of its leaf's own (INV-2). In a cycle that makes sets, units may have been granted
// and taken back again (CYC-1).
func (p *player) conserving(t *rapid.T) {
	// what the cycle granted may have gone with the rest of a gang, after the others' turns
	if p.own || p.gangs && p.last.Revoked > 0 {
		return // which part of a host is for whom, lone.atRest knows
	}
	for i := range p.out.Shortfalls.UnitsShort {
		k := keyAt(p.out.Shortfalls.Key, i)
		r := p.rules[k]
		if p.mdPlan(k.Plan) == nil || p.waits(k) {
			continue
		}
		pool := !p.barred(k) && !p.slow(k) && !p.takesNow(k.Plan) && !p.limitsAgain(k.Plan) &&
			p.out.Shortfalls.Reason.At(i) != "waiting_for_reclaim"
		for name, h := range p.hosts {
			if h.State != "ok" || p.planOf(name) != k.Plan || !meets(r.Requirement, h) || p.apart(k, h) ||
				r.MaxPerHost != plan.Unlimited && p.held[holding{k, name}] >= r.MaxPerHost {
				continue
			}
			fits, free := pool && p.seatsOn(t, k.Plan, name, r.Size), p.room(k.Plan, name, "/")
			for d, n := range r.Size {
				fits = fits && (n == 0 || n <= free[d]-p.keptOn(name, d))
			}
			if fits {
				t.Fatalf("INV-6: %v is short, and a unit of it fits %s", k, name)
			}
			fits, free = !p.takesNow(k.Plan), p.room(k.Plan, name, k.Consumer)
			for d, n := range r.Size {
				fits = fits && (n == 0 || n <= free[d])
			}
			if fits {
				t.Fatalf("INV-2: %v is short, and a unit of it fits its own part of %s", k, name)
			}
		}
	}
}

// takesNow tells whether a set with a taker was made in a plan in this cycle.
func (p *player) takesNow(plan string) bool {
	t := &p.engine.Set
	for id, number := range t.Number {
		if number > 0 && t.Taker[id] != cluster.NoID && t.Issued[id] == p.nowUS &&
			p.engine.Plans[t.Plan[id]].Name == plan {
			return true
		}
	}
	return false
}

// limitsAgain tells whether units stay with their holders that were to give them back, where there are share limits:
// what a leaf was handed in the cycle for which others gave may be over one beside them, and is taken back at once
// (CYC-1).
func (p *player) limitsAgain(plan string) bool {
	limited := slices.ContainsFunc(p.mdPlan(plan).members, func(e member) bool { return len(e.limit) > 0 })
	t := &p.out.Reclaims
	for i := range t.Units {
		if limited && t.Action.At(i) == "cancelled" && t.Key.Plan.At(i) == plan {
			return true
		}
	}
	return false
}

// keptOn is what sets keep of a dimension on a host.
func (p *player) keptOn(host, dim string) (n int64) {
	t := &p.engine.Set
	d, _ := p.policy.Dimension(dim)
	for id, number := range t.Number {
		if number > 0 && t.Taker[id] != cluster.NoID && p.engine.Host.Names.String(int32(t.Target[id])) == host {
			n += p.engine.Kept(cluster.SetID(id), d)
		}
	}
	return n
}

// fair holds INV-5 after the first cycle of a plain case (one unit size, all hosts empty before, nothing but the pool
// holds anyone back), from its definition: no sibling of equal priority could give up a unit for one of another that
// still wants and can use it, and be ahead of it even then; and no lower priority holds what a higher one could use.
func (p *player) fair(t *rapid.T) {
	for _, m := range p.plans {
		held, hungry := map[int]int64{}, map[int]bool{} // by member, with all below it
		for i, e := range m.members {
			path := p.consumers[e.consumer].path
			for h, n := range p.held {
				if h.Plan == m.name && (h.Consumer == path || strings.HasPrefix(h.Consumer, path+"/")) {
					held[i] += n
				}
			}
			for k := range p.rules {
				if k.Plan == m.name && (k.Consumer == path || strings.HasPrefix(k.Consumer, path+"/")) &&
					!p.barred(k) && !p.slow(k) &&
					p.placeable(k) && p.wanted[k] > p.heldBy(k) {
					hungry[i] = true
				}
			}
		}
		for a, x := range m.members {
			for b, y := range m.members {
				if a == b || held[a] == 0 || !hungry[b] ||
					p.consumers[x.consumer].parent != p.consumers[y.consumer].parent {
					continue
				}
				if x.priority < y.priority {
					t.Fatalf("INV-5: in %s %s holds units while %s, of higher priority, could use them", m.name,
						p.consumers[x.consumer].path, p.consumers[y.consumer].path)
				}
				if x.priority == y.priority && (held[a]-1)*int64(y.ratio) > (held[b]+1)*int64(x.ratio) {
					t.Fatalf("INV-5: in %s %s has %d units, ratio %d, and %s %d, ratio %d", m.name,
						p.consumers[x.consumer].path, held[a], x.ratio, p.consumers[y.consumer].path, held[b], y.ratio)
				}
			}
		}
	}
}

// placeable tells whether a unit fits an empty ok host of its plan.
func (p *player) placeable(k oracle.Key) bool {
	for name, h := range p.hosts {
		if h.State != "ok" || p.planOf(name) != k.Plan {
			continue
		}
		fits, room := true, p.capacity(k.Plan, h)
		for d, n := range p.rules[k].Size {
			fits = fits && n <= room[d]
		}
		if fits {
			return true
		}
	}
	return false
}

func (p *player) heldBy(k oracle.Key) (n int64) {
	for h, units := range p.held {
		if h.Key == k {
			n += units
		}
	}
	return n
}

// promisedTo is how much of a dimension sets promise to takers at or below a consumer.
func (p *player) promisedTo(plan, path, dim string) (n int64) {
	t, b := &p.engine.Set, &p.engine.Sub
	d, _ := p.policy.Dimension(dim)
	for id, number := range t.Number {
		if number == 0 || t.Taker[id] == cluster.NoID || p.engine.Plans[t.Plan[id]].Name != plan {
			continue
		}
		if c := p.engine.Consumer.String(int32(b.Consumer[t.Taker[id]])); c == path || strings.HasPrefix(c, path+"/") {
			n += t.Units[id] * p.engine.Shape.Size(b.Shape[t.Taker[id]])[d]
		}
	}
	return n
}

// barred tells whether the share ratio 0, a budget that is used up, or a share limit stands above a sub-allocation.
// What is promised counts (CYC-7).
func (p *player) barred(k oracle.Key) bool {
	if p.spent(k.Plan, k.Consumer) {
		return true
	}
	for _, e := range p.mdPlan(k.Plan).members {
		path := p.consumers[e.consumer].path
		if path != k.Consumer && !strings.HasPrefix(k.Consumer, path+"/") {
			continue
		}
		now := p.mdPlan(k.Plan).shareIn(&p.site, &e, int((p.nowUS-startUS)/60e6))
		if now.ratio == 0 {
			return true
		}
		for d, most := range now.limit {
			sum := p.rules[k].Size[d] + p.promisedTo(k.Plan, path, d)
			for h, n := range p.held {
				if h.Plan == k.Plan && (h.Consumer == path || strings.HasPrefix(h.Consumer, path+"/")) {
					sum += n * p.rules[h.Key].Size[d]
				}
			}
			if p.rules[k].Size[d] > 0 && sum > int64(most) {
				return true
			}
		}
	}
	return false
}
