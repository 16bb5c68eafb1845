package cycle_test

import (
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// slotView is a slot plan after a cycle, as the engine's tables show it. All figures are slots.
type slotView struct {
	*player
	*slotPlan
	t      *rapid.T
	rows   map[string]oracle.SlotFigures // by path
	size   map[string]int64              // by host of the plan
	idle   map[string]int64              // by ok host
	held   []slotHolding
	short  map[oracle.Key]int64
	leaves []*slotMember
}

// slotHolding is a row of the table holdings.
type slotHolding struct {
	oracle.Key
	host, origin, lender string
	units, each          int64 // each: slots of a unit
}

// views are the views of all slot plans.
func (p *player) views(t *rapid.T) (list []*slotView) {
	for i := range p.slots {
		now := p.slots[i]
		if k := now.at(p.nowUS); k > 0 {
			now.members = now.windows[k-1]
		}
		v := &slotView{player: p, slotPlan: &now, t: t, rows: map[string]oracle.SlotFigures{}, size: map[string]int64{},
			idle: map[string]int64{}, short: map[oracle.Key]int64{}}
		for i := range p.out.Consumers.Held {
			if p.out.Consumers.Plan.At(i) == v.name {
				v.rows[p.out.Consumers.Consumer.At(i)] = *slotFigures(&p.out.Consumers, i)
			}
		}
		for name, h := range p.hosts {
			if p.planOf(name) == v.name {
				v.size[name] = p.capacity(v.name, h)["slots"]
				if h.State == "ok" {
					v.idle[name] = v.size[name]
				}
			}
		}
		for i, n := range p.out.Holdings.Units {
			if o := &p.out.Holdings; o.Plan.At(i) == v.name {
				k := keyAt(o.Key, i)
				h := slotHolding{k, o.Host.At(i), o.Origin.At(i), o.Lender.At(i), n, v.slotsOf(k)}
				if p.orphans[k] {
					h.Consumer = "" // it counts for nobody
				}
				v.held = append(v.held, h)
				if _, ok := v.idle[h.host]; ok {
					v.idle[h.host] -= n * h.each
				}
			}
		}
		for i, n := range p.out.Shortfalls.UnitsShort {
			if p.out.Shortfalls.Plan.At(i) == v.name {
				v.short[keyAt(p.out.Shortfalls.Key, i)] += n
			}
		}
		for i := range v.members {
			if p.consumers[v.members[i].consumer].leaf {
				v.leaves = append(v.leaves, &v.members[i])
			}
		}
		list = append(list, v)
	}
	return list
}

// slotsOf is how many slots a unit takes.
func (v *slotView) slotsOf(k oracle.Key) int64 { return v.unit(v.rules[k])["slots"] }

func (v *slotView) path(e *slotMember) string { return v.consumers[e.consumer].path }

func below(path, of string) bool { return path == of || strings.HasPrefix(path, of+"/") }

// sum adds up the slots of holdings.
func (v *slotView) sum(ok func(h slotHolding) bool) (slots int64) {
	for _, h := range v.held {
		if ok(h) {
			slots += h.units * h.each
		}
	}
	return slots
}

// way are the members from a leaf up.
func (v *slotView) way(leaf string) (list []*slotMember) {
	for i := range v.members {
		if below(leaf, v.path(&v.members[i])) {
			list = append(list, &v.members[i])
		}
	}
	return list
}

// slotPromises holds what binds after every cycle of a slot plan.
func (p *player) slotPromises(t *rapid.T) {
	p.whole(t)
	for _, v := range p.views(t) {
		v.limits()
		v.reserves()
		v.disturbance()
		v.keptIdle()
	}
}

// limits holds INV-4: after a cycle that granted something, no limit above it is exceeded.
func (v *slotView) limits() {
	for i := range v.out.Grants.Units {
		g := &v.out.Grants
		if g.Plan.At(i) != v.name {
			continue
		}
		leaf := g.Consumer.At(i)
		for _, e := range v.way(leaf) {
			if held := v.sum(func(h slotHolding) bool { return below(h.Consumer, v.path(e)) }); e.most >= 0 &&
				held > int64(e.most) {
				v.t.Fatalf("INV-4: cycle %d granted %s units, and %s holds %d of at most %d", v.cycles, leaf, v.path(e),
					held, e.most)
			}
		}
		if lender := g.Lender.At(i); lender != "" {
			v.loan(leaf, lender)
		}
	}
}

// loan holds INV-4 and INV-3 for a loan that was granted.
func (v *slotView) loan(leaf, lender string) {
	borrower, owner := v.entry(leaf), v.entry(lender)
	got := v.sum(func(h slotHolding) bool { return h.Consumer == leaf && h.origin == "borrowed" })
	if borrower.borrow == -2 || borrower.borrow >= 0 && got > int64(borrower.borrow) {
		v.t.Fatalf("INV-4: cycle %d: %s borrowed %d, its limit is %d", v.cycles, leaf, got, borrower.borrow)
	}
	lent := v.sum(func(h slotHolding) bool { return h.lender == lender && !v.isHybrid(h.Consumer) })
	own := v.rows[lender]
	if lent > int64(owner.lend) {
		v.t.Fatalf("INV-4: cycle %d: %s lent %d, its limit is %d", v.cycles, lender, lent, owner.lend)
	}
	if lent+own.HeldOwned > own.Owned || lent > own.Owned-own.Reserved {
		v.t.Fatalf("INV-3: cycle %d: %s lent %d besides its own %d of %d owned, %d reserved", v.cycles, lender, lent,
			own.HeldOwned, own.Owned, own.Reserved)
	}
	if !v.peer(owner.lendTo, lender, leaf) || !v.peer(borrower.borrowFrom, leaf, lender) {
		v.t.Fatalf("cycle %d: %s must not borrow from %s", v.cycles, leaf, lender)
	}
}

// entry is a consumer's entry.
func (v *slotView) entry(path string) *slotMember {
	for i := range v.members {
		if v.path(&v.members[i]) == path {
			return &v.members[i]
		}
	}
	v.t.Fatalf("%s takes no part in %s", path, v.name)
	return nil
}

// peer tells whether a list of peers lets a leaf deal with another.
func (v *slotView) peer(list []string, self, other string) bool {
	if len(list) == 0 {
		return true
	}
	for _, name := range list {
		parent := func(path string) string { return path[:strings.LastIndex(path, "/")] }
		if name == "any" || name == "siblings" && parent(self) == parent(other) || below(other, name) {
			return true
		}
	}
	return false
}

// reserves holds INV-3: after a cycle that granted units from a pool or on loan, every owner's reserve that it does not
// use is idle still, or under reclaim; save what the budget does not let be taken back yet: by SLOT-12 from those who
// hold more than they own, and what a new policy made foreign (PLAN-2).
func (v *slotView) reserves() {
	granted := false
	for i := range v.out.Grants.Units {
		origin := v.out.Grants.Origin.At(i)
		granted = granted || v.out.Grants.Plan.At(i) == v.name && origin != "owned" && origin != "hybrid"
	}
	idle, leaving := int64(0), map[string]int64{}
	for _, n := range v.idle {
		idle += n
	}
	for h, n := range v.leaving {
		if h.Plan == v.name {
			idle += n * v.slotsOf(h.Key)
			leaving[h.Consumer] += n * v.slotsOf(h.Key)
		}
	}
	for _, e := range v.owners() {
		own := v.rows[v.path(e)]
		idle -= max(0, min(own.Reserved, own.Owned-own.Lent)-own.HeldOwned)
		if v.budget >= 0 {
			strange := v.sum(func(h slotHolding) bool { return h.Consumer == v.path(e) && h.origin == "hybrid" })
			idle += max(0, own.HeldOwned+own.Lent-own.Owned+strange-leaving[v.path(e)])
		}
	}
	if granted && idle < 0 && !v.trickles() {
		v.t.Fatalf("INV-3: cycle %d: %d reserved slots were given to others", v.cycles, -idle)
	}
}

// loan is units of a sub-allocation on a host that somebody lends.
type loan struct {
	oracle.Key
	host, lender string
}

// lent are the loans as the cycle granted them: a loan whose lender changed later in the cycle is in the table of
// grants with the lender that it has then.
func (v *slotView) lent() map[loan]bool {
	s, all := v.engine, map[loan]bool{}
	log := &s.Changes
	row, ok := log.Since(v.logged)
	if !ok {
		v.t.Fatalf("cycle %d: the change log has dropped rows of it", v.cycles)
	}
	for i := row; i < log.Kind.Len(); i++ {
		if lender := log.Lender.At(i); log.Kind.At(i) == cluster.ChangeGranted && lender != cluster.NoID &&
			log.Units.At(i) > 0 {
			p, sub := &s.Plans[log.Plan.At(i)], log.Sub.At(i)
			host := s.Host.Names.String(int32(p.Parcels.Host[log.Parcel.At(i)]))
			all[loan{keyOf(s, p, sub), host, s.Consumer.String(int32(lender))}] = true
		}
	}
	return all
}

// disturbance holds INV-7: a reclaim names a taker or a rule, and nobody is given units that count as those taken back
// from it do.
func (v *slotView) disturbance() {
	type event struct {
		oracle.Key
		host, origin, lender string
	}
	granted, lent := map[event]bool{}, v.lent()
	for i := range v.out.Grants.Units {
		g := &v.out.Grants
		k, host, lender := keyAt(g.Key, i), g.Host.At(i), g.Lender.At(i)
		granted[event{k, host, g.Origin.At(i), lender}] = lender == "" || lent[loan{k, host, lender}]
	}
	for i := range v.out.Reclaims.Units {
		r := &v.out.Reclaims
		k, taker, reason := keyAt(r.Key, i), r.ForConsumer.At(i), r.Reason.At(i)
		if k.Plan != v.name || r.Action.At(i) != "issued" {
			continue
		}
		if (taker != "") != (reason == "recall" || reason == "fair_share") {
			v.t.Fatalf("INV-7: cycle %d: a reclaim from %v for %q, reason %s", v.cycles, k, taker, reason)
		}
		at := event{k, r.Host.At(i), "share_pool", ""}
		switch {
		case taker != "" && v.isHybrid(k.Consumer):
			at.origin = "hybrid"
		case reason == "recall":
			at.origin, at.lender = "borrowed", taker
		case reason != "fair_share":
			continue
		}
		if taker == k.Consumer || granted[at] {
			v.t.Fatalf("INV-7: cycle %d: %s from %v on %s, which got units there", v.cycles, reason, k, r.Host.At(i))
		}
	}
}

// atRest holds what binds at a fixed point.
func (p *player) atRest(t *rapid.T) {
	for i := range p.out.Shortfalls.UnitsShort {
		if s := &p.out.Shortfalls; s.Reason.At(i) == "waiting_for_reclaim" {
			t.Fatalf("CYC-2: %v waits for ever", keyAt(s.Key, i))
		}
	}
	p.settledShares(t)
	for _, v := range p.views(t) {
		for k := range v.short {
			if v.least(k) > 1 && v.stays(k) == 0 {
				continue // what fits one unit is of no use to a gang that waits for several
			}
			if v.isHybrid(k.Consumer) {
				v.deserved(k)
			} else {
				v.owner(k)
			}
			v.unused(k)
		}
		if v.even {
			v.fairly()
		}
	}
}

// least is how many units of a sub-allocation are held or none (REQ-3).
func (p *player) least(k oracle.Key) int64 { return max(1, min(p.rules[k].MinUnits, p.wanted[k])) }

// stays is how many of its units are not under reclaim.
func (p *player) stays(k oracle.Key) (units int64) {
	for h, n := range p.held {
		if h.Key == k {
			units += n - p.leaving[h]
		}
	}
	return units
}

// whole holds REQ-3: of a gang nothing is held but what is under reclaim, or at least so many units besides.
func (p *player) whole(t *rapid.T) {
	for k := range p.rules {
		if n := p.stays(k); n > 0 && n < p.least(k) && !p.orphans[k] {
			t.Fatalf("REQ-3: cycle %d: %d units of %v stay, at least %d or none may", p.cycles, n, k, p.least(k))
		}
	}
}

// pools is what no leaf owns: slots of ok hosts, and what is held on the others.
func (v *slotView) pools() int64 {
	if len(v.first(true)) > 0 {
		n := int64(0)
		for _, e := range v.first(false) {
			n += v.rows[v.path(e)].Owned
		}
		for _, e := range v.owners() {
			n -= v.rows[v.path(e)].Owned
		}
		return n
	}
	n := v.sum(func(h slotHolding) bool { _, ok := v.idle[h.host]; return !ok })
	for host := range v.idle {
		n += v.size[host]
	}
	for _, e := range v.leaves {
		n -= v.rows[v.path(e)].Owned
	}
	return n
}

// owners are the leaves that are not hybrid.
func (v *slotView) owners() (list []*slotMember) {
	for _, e := range v.leaves {
		if e.policy != "hybrid" {
			list = append(list, e)
		}
	}
	return list
}

// mayUse tells whether a host may get one more unit of a sub-allocation, were it empty.
func (v *slotView) mayUse(k oracle.Key, host string) bool {
	r := v.rules[k]
	on := v.sum(func(h slotHolding) bool { return h.Key == k && h.host == host }) / v.slotsOf(k)
	_, ok := v.idle[host]
	return ok && meets(r.Requirement, v.hosts[host]) && !v.apart(k, v.hosts[host]) &&
		(r.MaxPerHost == plan.Unlimited || on < r.MaxPerHost)
}

// capped tells whether a unit more would exceed a share.max, or a hybrid limit that reserves count against too
// (SLOT-26).
func (v *slotView) capped(k oracle.Key) bool {
	for _, e := range v.way(k.Consumer) {
		held := v.sum(func(h slotHolding) bool { return below(h.Consumer, v.path(e)) })
		if e.most >= 0 && held+v.slotsOf(k)+v.lacking(v.kids(e), k.Consumer, v.slotsOf(k)) > int64(e.most) {
			return true
		}
	}
	return false
}

// owner holds INV-2: nobody goes short whose unit fits its own idle slots together with what it lent on one host, to
// others than gangs or to one gang (D-177).
func (v *slotView) owner(k oracle.Key) {
	own, each := v.rows[k.Consumer], v.slotsOf(k)
	if v.capped(k) {
		return
	}
	for host, idle := range v.idle {
		lentTo := func(to func(holder oracle.Key) bool) int64 {
			return v.sum(func(h slotHolding) bool { return h.lender == k.Consumer && h.host == host && to(h.Key) })
		}
		lent := lentTo(func(holder oracle.Key) bool { return v.least(holder) == 1 })
		for holder := range v.rules {
			lent = max(lent, lentTo(func(other oracle.Key) bool { return other == holder }))
		}
		if v.mayUse(k, host) && min(idle, max(0, own.Owned-own.HeldOwned-own.Lent))+lent >= each {
			v.t.Fatalf("INV-2: %v is short, and its own %d idle and %d lent slots on %s would do", k, own.Free, lent,
				host)
		}
	}
}

// unused holds INV-6: nobody goes short whose unit would fit free room it may use.
func (v *slotView) unused(k oracle.Key) {
	each, pool, spare, fits := v.slotsOf(k), v.pools(), int64(0), false
	for host, idle := range v.idle {
		spare += idle
		fits = fits || v.mayUse(k, host) && idle >= each
	}
	if !fits || v.capped(k) {
		return
	}
	leaf, barred := v.entry(k.Consumer), false
	if v.spent(v.name, k.Consumer) {
		return
	}
	for _, e := range v.way(k.Consumer) {
		barred = barred || e.ratio == 0
	}
	for _, e := range v.owners() {
		own := v.rows[v.path(e)]
		pool, spare = pool-own.HeldShared, spare-max(0, own.Owned-own.HeldOwned-own.Lent)
	}
	if leaf.policy == "hybrid" {
		v.wasted(k, spare)
		return
	}
	if !barred && pool >= each && spare >= each {
		v.t.Fatalf("INV-6: %v is short, and %d slots of the pools are idle", k, pool)
	}
	if leaf.borrow == -2 || leaf.borrow >= 0 && v.rows[k.Consumer].HeldBorrowed+each > int64(leaf.borrow) || spare < 0 {
		return
	}
	for _, e := range v.owners() {
		own, lender := v.rows[v.path(e)], v.path(e)
		if e != leaf && min(own.Owned-own.HeldOwned-own.Lent, own.Owned-own.Reserved-own.Lent,
			int64(e.lend)-own.Lent) >= each &&
			v.peer(e.lendTo, lender, k.Consumer) && v.peer(leaf.borrowFrom, k.Consumer, lender) {
			v.t.Fatalf("INV-6: %v is short, and %s could lend to it", k, lender)
		}
	}
}

// fairly holds INV-5 where nothing but shares decides: a leaf that goes short holds its dynamic quota from the pools,
// no leaf holds more while somebody who may draw from them goes short, and where there is but the cluster's pool, no
// sibling could give up a slot for one of another that goes short and be ahead even then.
func (v *slotView) fairly() {
	for host := range v.size {
		if _, ok := v.idle[host]; !ok && v.sum(func(h slotHolding) bool { return h.host == host }) > 0 {
			return // nothing there is a victim
		}
	}
	okay, family := int64(0), false
	for host := range v.idle {
		okay += v.size[host]
	}
	for _, e := range v.leaves {
		own, path := v.rows[v.path(e)], v.path(e)
		if slices.ContainsFunc(v.way(path), func(e *slotMember) bool { return e.ratio == 0 }) {
			continue // what it drew before its ratio fell to 0 stays until somebody wants it
		}
		demand := int64(0)
		for k, r := range v.rules {
			if k.Plan == v.name && k.Consumer == path {
				demand += min(okay, r.Units, v.wanted[k])
			}
		}
		most := own.Quota - min(demand, own.Owned)
		least := most - own.HeldBorrowed // all of that is in the quota, but for what its lenders could use (SLOT-11)
		if own.HeldShared < least && v.hungry(path) || own.HeldShared > most && v.hungry("") {
			v.t.Fatalf("INV-5: %s holds %d from the pools, its share quota is %d to %d", path, own.HeldShared, least,
				most)
		}
	}
	for i := range v.members {
		e := &v.members[i]
		family = family || !v.consumers[e.consumer].leaf && e.owns > 0
	}
	if !family {
		v.siblings()
	}
}

// siblings is the second half of fairly.
func (v *slotView) siblings() {
	usage := func(e *slotMember) int64 {
		return v.sum(func(h slotHolding) bool { return h.origin == "share_pool" && below(h.Consumer, v.path(e)) })
	}
	for i := range v.members {
		for j := range v.members {
			a, b := &v.members[i], &v.members[j]
			if i != j && v.consumers[a.consumer].parent == v.consumers[b.consumer].parent && usage(a) > 0 &&
				v.hungry(v.path(b)) &&
				(usage(a)-1)*int64(b.ratio) > (usage(b)+1)*int64(a.ratio) {
				v.t.Fatalf("INV-5: %s has %d slots of the pool, ratio %d, and %s has %d, ratio %d", v.path(a), usage(a),
					a.ratio, v.path(b), usage(b), b.ratio)
			}
		}
	}
}

// hungry tells whether somebody at or below a path goes short who may draw from pools.
func (v *slotView) hungry(path string) bool {
	for k := range v.short {
		barred := false
		for _, up := range v.way(k.Consumer) {
			barred = barred || up.ratio == 0
		}
		if below(k.Consumer, path) && !barred {
			return true
		}
	}
	return false
}
