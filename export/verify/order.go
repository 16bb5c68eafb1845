package verify

import "slices"

// ordered checks in what order an MD plan used and took back parcels (INV-12): by pool and preference (MD-6, MD-7), by
// recall only where nothing idle serves (MD-10), for preference where the plan says so (MD-6), and after min_runtime
// (REQ-4).
func (v *verifier) ordered(t *plan) {
	if v.hazy[t.name] || v.nears(t) || v.dim() {
		return
	}
	v.ranLong(t)
	if !t.owners || v.isUntold(t) {
		return
	}
	d := &ordering{v: v, t: t, w: t.at(v.now, v.m.policy.zone), group: map[string]string{}}
	groups := v.m.grouped(t)
	for _, g := range slices.Backward(t.groups) { // a host in several is of the first
		for _, host := range groups[g] {
			d.group[host] = g
		}
	}
	for at, labels := range v.given {
		s := v.m.subs[at.key]
		if at.plan != t.name || s == nil || s.orphan || s.gang() {
			continue
		}
		for l := range labels {
			d.placed(s, at, l)
		}
	}
	for _, c := range v.newClaims {
		if s := v.m.subs[c.taker()]; c.plan == t.name && c.reason == "recall" && s != nil && !s.gang() {
			d.needed(s, c)
		}
	}
}

// ordering is an MD plan with owners after a cycle.
type ordering struct {
	v     *verifier
	t     *plan
	w     *window
	group map[string]string // by host
}

// rank is in what order a leaf comes to a parcel, the least first: nearer pools first, in a pool its consumer's own
// parcels by preference, then lent ones, those that their owner prefers least first.
func (d *ordering) rank(leaf, owner, host string) []int64 {
	pool := meet(leaf, owner)
	prefers := int64(0)
	if e := d.w.entry[owner]; e != nil {
		prefers = e.preference[d.group[host]]
	}
	if owner != pool {
		return []int64{-int64(depthOf(pool)), 1, -prefers}
	}
	return []int64{-int64(depthOf(pool)), 0, prefers}
}

// placed checks a grant: no parcel that comes before its own has room for the unit after the cycle. What sets keep is
// in no table, so it is asked only where nothing of the plan is under reclaim or promised.
func (d *ordering) placed(s *sub, at spot, l label) {
	mine := d.rank(s.consumer, l.owner(s.consumer), at.host)
	calm := d.v.still(d.t)
	for _, one := range d.v.reachOf(d.t, d.w, s).all {
		if one.slow || s.perHost != none && d.v.on(s, one.host) >= s.perHost ||
			slices.Compare(d.rank(s.consumer, one.owner, one.host.name), mine) >= 0 {
			continue
		}
		if one.pool == s.consumer && d.t.preferring {
			d.v.is(at.about("MD-6", "grants",
				"granted there, and outsiders hold what would serve of %s, which it owns and prefers", one.host.name),
				!d.recallable(s, one))
		}
		if _, stopped := d.v.stopped(d.t, d.w, s, one.pool); stopped && one.pool != s.consumer || !calm {
			continue
		}
		d.v.is(at.about("MD-7", "grants", "granted there, and %s, which comes before by pool or preference, has room",
			one.host.name), !covers(one.room, s.size) || !d.v.sits(d.t, s.size, one.host))
	}
}

// recallable tells whether a unit would fit a parcel of its own if outsiders gave back what they hold there, beside
// what the leaf is promised.
func (d *ordering) recallable(s *sub, one seat) bool {
	if d.t.budget != none || s.perHost != none || d.v.stirredOnce[d.t.name] {
		return false
	}
	room := plus(slices.Clone(one.size), one.on.sum(len(s.size), func(h holder) bool {
		return h.owner == one.owner && h.leaf == s.consumer
	}), -1)
	for _, f := range d.v.shortfallRows() {
		o := d.v.m.subs[f.key]
		if f.plan == d.t.name && f.consumer == s.consumer && f.reason == "waiting_for_reclaim" && o != nil {
			plus(room, o.size, -min(f.units, 1<<20))
		}
	}
	return covers(room, s.size)
}

// needed checks a recall: no parcel that its taker may use has room for the unit, beside all that is promised, unless
// the plan recalls for preference.
func (d *ordering) needed(s *sub, c *claim) {
	if d.t.preferring || s.perHost != none {
		return
	}
	promised := make([]int64, len(s.size))
	for _, f := range d.v.shortfallRows() {
		if o := d.v.m.subs[f.key]; f.plan == d.t.name && f.reason == "waiting_for_reclaim" && o != nil {
			plus(promised, o.size, min(f.units, 1<<20))
		}
	}
	for _, one := range d.v.reachOf(d.t, d.w, s).all {
		if _, stopped := d.v.stopped(d.t, d.w, s, one.pool); one.slow || stopped && one.pool != s.consumer {
			continue
		}
		d.v.is(c.about("MD-10", "reclaims", "it is recalled for %s, for which %s has room", c.forConsumer,
			one.host.name), !covers(plus(slices.Clone(one.room), promised, -1), s.size))
	}
}

// ranLong checks REQ-4: what fair reclaim takes has run for its consumer's min_runtime.
func (v *verifier) ranLong(t *plan) {
	taken := map[spot]int64{}
	for _, c := range v.newClaims {
		if c.plan == t.name && c.reason == "fair_share" && v.m.policy.runtime[c.consumer] > 0 {
			taken[c.spot] += c.units
		}
	}
	for at, n := range taken {
		p, long, known := v.m.piles[at], int64(0), true
		if p == nil {
			continue
		}
		for cycle, units := range p.lots {
			since, ok := v.times[max(cycle, 1)]
			known = known && ok
			if ok && v.now-since >= v.m.policy.runtime[at.consumer] {
				long += units
			}
		}
		if known {
			v.is(at.about("REQ-4", "reclaims",
				"%d units are taken for a share, and at most %d have run for min_runtime", n, long), n <= long)
		}
	}
}
