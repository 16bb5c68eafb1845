package verify

import (
	"math"
	"slices"

	"github.com/stintd/stint/core/decision"
)

// reasonsOf are the reasons of shortfalls, and whether slot plans and MD plans have them.
var reasonsOf = map[string]struct{ slot, md bool }{
	"share_limit": {true, true}, "consumer_limit": {true, false}, "borrow_limit": {true, false},
	"max_per_host": {true, true}, "no_host_matches": {true, true}, "too_big": {true, true}, "fragmented": {true, true},
	"pool_exhausted": {true, true}, "lower_priority": {false, true}, "over_quota": {true, true},
	"grace_filter": {false, true}, "waiting_for_reclaim": {true, true}, "ownership_unmet": {false, true},
	"reclaim_budget": {true, true}, "too_small": {true, true}, "gang": {true, true},
	"budget":      {true, true},
	"not_in_plan": {},
}

// room is a plan's ok hosts with what is free on them.
type room struct {
	host []*host
	free [][]int64
	plan *plan
	by   map[roomKey]found // what stands against units of a size and requirement on these hosts
}

type roomKey struct {
	size  sizeKey
	cond  *expr
	needs bool
}

// found is what hosts say of a unit: a reason, "" when one has room, and the dimension in which most are too small.
type found struct{ reason, dimension string }

// roomOf makes the room of a plan as it is after the cycle.
func (v *verifier) roomOf(p *plan) *room {
	if r := v.rooms[p.name]; r != nil {
		return r
	}
	r := &room{plan: p, by: map[roomKey]found{}}
	for _, h := range v.m.hosts {
		if h.plan != p.name || h.state != "ok" {
			continue
		}
		free := slices.Clone(h.cap)
		for d, n := range v.m.used(h.name, p.name, len(free)) {
			free[d] -= n
		}
		r.host, r.free = append(r.host, h), append(r.free, free)
	}
	v.rooms[p.name] = r
	return r
}

// calm finds the plans of which anything is under reclaim or promised, or was in the cycle before: of some room it is
// not told then whether it is kept for a taker, or came free too late for some.
func (v *verifier) calm() {
	v.stirredOnce, v.stirred = v.stirred, map[string]bool{}
	for _, list := range v.m.claims {
		for _, c := range list {
			v.stirred[c.plan] = true
		}
	}
	for _, f := range v.shortfallRows() {
		if f.reason == "waiting_for_reclaim" {
			v.stirred[f.plan] = true
		}
	}
}

// still tells whether nothing of a plan is kept for takers.
func (v *verifier) still(p *plan) bool {
	if !p.subtle() {
		return !v.stirred[p.name]
	}
	return !v.stirred[p.name] && !v.stirredOnce[p.name] && !slices.ContainsFunc(v.cancelled, func(c *claim) bool {
		return c.plan == p.name
	})
}

// subtle tells whether parcels or graces matter in an MD plan.
func (p *plan) subtle() bool { return p.md && (p.owners || p.pubGrace != none) }

// shortfalls checks why units are said to be short. Where nothing of the plan is under reclaim or promised, the reason
// follows from the tables (D-7, docs/slots.md, docs/shares.md); else only what it needs is checked, and in an MD plan
// the rest as soon as nothing is any more.
func (v *verifier) shortfalls() {
	v.rooms = map[string]*room{}
	fresh := v.fresh("shortfalls")
	if v.awaited == nil || fresh {
		v.awaited = map[string]bool{}
	}
	list := v.shortfallRows()
	v.scattered = map[string]*scattered{}
	if fresh {
		v.onceEach(list)
		v.areFree(list)
	}
	for _, f := range list {
		s, p := v.m.subs[f.key], v.m.policy.byName[f.plan]
		if p != nil && s != nil && !s.orphan && p.md && !fresh && v.awaited[f.plan] && v.still(p) && !v.dim() &&
			v.shareOf[f.plan] != nil {
			v.exactly(p, s, f)
		}
		if fresh {
			v.reason(p, s, f)
		}
	}
	for _, p := range v.m.policy.plans {
		v.awaited[p.name] = p.md && !v.still(p) && (fresh || v.awaited[p.name])
	}
}

// onceEach checks that a sub-allocation has at most one row for units that wait, one for others, and in an MD plan one
// for those that scattered room would carry.
func (v *verifier) onceEach(list []shortfallRow) {
	type kind struct {
		key
		reason string // "": all but two
	}
	seen := map[kind]bool{}
	for _, f := range list {
		k := kind{key: f.key}
		p := v.m.policy.byName[f.plan]
		if f.reason == "waiting_for_reclaim" || f.reason == "fragmented" && p != nil && p.md {
			k.reason = f.reason
		}
		v.is(f.about("log", "shortfalls", "it has several rows for units that wait, for those that scattered room "+
			"would carry, or for others"), !seen[k])
		seen[k] = true
	}
}

// reason checks the reason of a row.
func (v *verifier) reason(p *plan, s *sub, f shortfallRow) {
	known, ok := reasonsOf[f.reason]
	switch {
	case !v.is(f.about("log", "shortfalls", "reason %q is none", f.reason), ok) || s == nil || s.orphan:
	case p == nil:
		v.is(f.about("log", "shortfalls", "reason %s of demand that is in no plan", f.reason),
			f.reason == "not_in_plan")
	case f.reason == "too_small":
		v.is(f.about("D-52", "shortfalls", "the hosts of %s would not hold too many units of its size", p.name),
			v.tooSmall(p, s))
	case v.is(f.about("log", "shortfalls", "reason %s is not for this kind of plan", f.reason),
		known.md && p.md || known.slot && !p.md):
		if f.reason == "gang" {
			v.ganged(s, f)
		} else {
			v.needed(p, s, f)
		}
		switch {
		case v.dim():
		case v.still(p):
			v.exactly(p, s, f)
		case p.md && f.reason != "waiting_for_reclaim" && f.reason != "gang":
			v.likely(p, s, f)
		}
	}
}

// tooSmall tells whether the hosts of a plan, were they empty, would hold more units of a size than they may (D-52).
func (v *verifier) tooSmall(p *plan, s *sub) bool {
	units, hosts := 0., 0
	for _, h := range v.m.hosts {
		if h.plan != p.name || h.gone {
			continue
		}
		hosts++
		room := math.Inf(1)
		for d, u := range s.size {
			if u > 0 && d < len(h.cap) {
				room = min(room, float64(h.cap[d]/u))
			}
		}
		if p.device != "" && len(h.cap) > 0 {
			room = float64(v.m.fitOn(p, s.size, h.cap))
		}
		units += room // of the few that are near the limit, the sum is exact
	}
	return units > float64(1<<22+1<<12*hosts)
}

// shortOf is how many units of a plan are short.
func (v *verifier) shortOf(p *plan) (units int64) {
	for _, f := range v.shortfallRows() {
		if f.plan == p.name {
			units = min(units+f.units, 1<<53)
		}
	}
	return units
}

// needed checks what a reason cannot be without.
func (v *verifier) needed(p *plan, s *sub, f shortfallRow) {
	w := p.at(v.now, v.m.policy.zone)
	say := func(ok bool, why string) { v.is(f.about("D-7", "shortfalls", "reason %s, and %s", f.reason, why), ok) }
	on := func(ok func(e *entry) bool) bool {
		return f.blocker != "" && under(f.consumer, f.blocker) && w.entry[f.blocker] != nil && ok(w.entry[f.blocker])
	}
	together := s.mustBeTogether() != "" // which of the hosts that match it may use is not told
	if match, large := v.fitsEmpty(p, s); !p.subtle() && together {
		say(match || f.reason == "no_host_matches" || f.reason == "waiting_for_reclaim", "no host matches")
		say(!match || large || f.reason == "too_big" || f.reason == "no_host_matches",
			"no host that it may use is large enough")
	} else if !p.subtle() {
		say(!match == (f.reason == "no_host_matches") || s.need == "" || f.reason == "waiting_for_reclaim",
			"the hosts that match are otherwise")
		say(f.reason != "too_big" || match && !large, "there is a host that is large enough")
		say(!match || large || f.reason == "too_big" || p.md && (f.reason == "share_limit" || f.reason == "budget"),
			"no host that it may use is large enough")
	}
	switch f.reason {
	case "budget":
		v.brokeReason(p, f, say)
	case "no_host_matches":
		say(s.need != "" || together, "it has no requirement")
	case "share_limit":
		say(on(func(e *entry) bool { return e.ratio == 0 || len(e.limit) > 0 }),
			"its blocker has neither a share limit nor a ratio of 0")
	case "consumer_limit":
		say(on(func(e *entry) bool { return e.most != none }), "its blocker has no limit")
	case "borrow_limit":
		say(w.entry[f.consumer].borrow > 0, "it has none")
	case "max_per_host":
		say(s.perHost != none, "it has none")
	case "reclaim_budget":
		say(p.budget != none || v.shortOf(p) > 1<<18, "the plan has none, and few units are short") // D-52
		say(v.issued[p.name], "nothing was put under reclaim in the cycle")
	case "grace_filter":
		say(p.owners || p.pubGrace != none, "no grace is asked for in the plan")
	case "ownership_unmet":
		say(p.owners, "nobody owns anything in the plan")
	case "lower_priority":
		e := w.entry[f.blocker]
		way := f.consumer
		for way != "/" && parentOf(way) != parentOf(f.blocker) {
			way = parentOf(way)
		}
		say(e != nil && way != "/" && w.entry[way].priority < e.priority, "its blocker has no higher priority")
	case "over_quota":
		say(f.blocker == "", "somebody is to blame for it")
		say(p.md || p.exclusive != "" || w.entry[f.consumer].kind == "hybrid" ||
			v.m.account(p.name, f.consumer).shared > 0, "it holds nothing from a pool")
	}
	switch {
	case f.reason == "budget":
	case f.reason != "waiting_for_reclaim":
		say(!f.waits, "it has an until")
	case f.dimension != "" || f.detail != "":
		say(false, "it has a dimension or a detail")
	case f.waits:
		v.waits(p, f)
	default:
		say(f.blocker == "", "it has a blocker, and no until")
	}
}

// leaves tells whether anything of a plan is under reclaim.
func (v *verifier) leaves(plan string) bool {
	for _, list := range v.m.claims {
		for _, c := range list {
			if c.plan == plan {
				return true
			}
		}
	}
	return false
}

// waits checks until when and for whom units wait: there must be such a reclaim.
func (v *verifier) waits(p *plan, f shortfallRow) {
	ok := false
	for _, list := range v.m.claims {
		for _, c := range list {
			who := c.consumer
			if s := v.m.subs[c.key]; s != nil && s.orphan {
				who = "" // it is gone from the policy
			}
			ok = ok || c.plan == p.name && c.deadline == f.until && who == f.blocker
		}
	}
	if v.dim() {
		return
	}
	v.is(Fault{Rule: "D-7", Table: "shortfalls", Plan: f.plan, Consumer: f.consumer, Allocation: f.allocation,
		Sub:  f.sub,
		What: "it waits, and nothing of " + f.blocker + " is due then", Got: instant(f.until)}, ok)
}

// fitsEmpty tells whether any ok host matches a requirement, and whether any of those is large enough.
func (v *verifier) fitsEmpty(p *plan, s *sub) (match, large bool) {
	for _, h := range v.roomOf(p).host {
		if !v.m.may(s, h) {
			continue
		}
		match = true
		fits := true
		for d, u := range s.size {
			fits = fits && u <= h.cap[d]
		}
		if fits {
			return true, true
		}
	}
	return match, false
}

// exactly holds a row against the one that follows from the tables; of a gang of which no unit fits it is about the
// next one. Of those that must be together nothing is held.
func (v *verifier) exactly(p *plan, s *sub, f shortfallRow) {
	want, blocker, sure := v.why(p, s)
	switch {
	case !sure:
		v.unsure(p, f)
		return
	case f.reason == "gang":
		g, ok := decision.ReadGangDetail(f.detail)
		if !ok || g.Fit > 0 || g.Reason == "reclaim_budget" { // no reclaim shows what it did not bear of a gang
			return
		}
		f.reason = g.Reason
	case p.md && want.reason == "fragmented":
		if n, known := v.carried(p, s, f); f.reason != want.reason || known && n == 0 {
			want, blocker = v.outrun(p, s, want.dimension)
		}
	}
	v.exact(f, want, blocker)
}

// why is the reason that follows from the tables for the next unit of a sub-allocation, where they tell it.
func (v *verifier) why(p *plan, s *sub) (want found, blocker string, sure bool) {
	switch {
	case s.mustBeTogether() != "" || v.isUntold(p):
		return want, "", false
	case p.subtle():
		return v.whyOwn(p, s)
	case p.md:
		return v.whyMD(p, s)
	}
	return v.whySlot(p, s)
}

// exact holds a reason against another.
func (v *verifier) exact(f shortfallRow, want found, blocker string) {
	g := Fault{Rule: "D-7", Table: "shortfalls", Plan: f.plan, Consumer: f.consumer, Allocation: f.allocation,
		Sub: f.sub}
	g.What, g.Expected, g.Got = "reason", want.reason, f.reason
	if !v.is(g, want.reason == f.reason) {
		return
	}
	g.What, g.Expected, g.Got = "blocker", blocker, f.blocker
	v.is(g, blocker == f.blocker)
	g.What, g.Expected, g.Got = "dimension", want.dimension, f.dimension
	v.is(g, want.dimension == f.dimension)
}

// whyMD is D-7 for a plan in which nobody owns anything.
func (v *verifier) whyMD(p *plan, s *sub) (r found, blocker string, sure bool) {
	if v.shareOf[p.name] == nil {
		return r, "", false
	}
	w := p.at(v.now, v.m.policy.zone)
	unit := v.ofHosts(p, s)
	if unit.reason == "no_host_matches" {
		return unit, "", true
	}
	for path := s.consumer; path != "/"; path = parentOf(path) {
		if w.entry[path].ratio == 0 {
			return found{reason: "share_limit"}, path, true
		}
	}
	if path := v.brokeBelow(p.name, s.consumer, "/"); path != "" {
		return found{reason: "budget"}, path, true
	}
	for path := s.consumer; path != "/"; path = parentOf(path) {
		for d, name := range v.m.policy.dimensions {
			if limit, ok := w.entry[path].limit[name]; ok && s.size[d] > 0 &&
				v.m.account(p.name, path).size[d]+s.size[d] > limit {
				return found{"share_limit", name}, path, true
			}
		}
	}
	// what is free may be for those who will have it then
	if unit.reason != "" && !(unit.reason == roomy && v.nears(p)) {
		return unit, "", true
	}
	unit.reason, blocker = v.outdone(p, w, s, []string{"/"})
	return unit, blocker, true
}

// ofHosts tells what of the hosts stands against a unit by itself; the reason is "" when nothing does, or the pool is
// just too full.
func (v *verifier) ofHosts(p *plan, s *sub) found {
	r := v.roomOf(p)
	id := roomKey{keyOf(s.size), s.cond, s.need != ""}
	f, ok := r.by[id]
	if !ok {
		f = v.search(r, s, func(h *host) bool { return true })
		r.by[id] = f
	}
	if s.perHost == none || f.reason == "no_host_matches" || f.reason == "too_big" {
		return found{f.plain(), f.dimension}
	}
	matched, left, within := 0, 0, false
	for i, h := range r.host {
		if v.m.may(s, h) {
			matched++
			within = within || covers(r.free[i], s.size) && v.sits(p, s.size, h)
			if v.on(s, h) < s.perHost {
				left++
			}
		}
	}
	if matched == 0 {
		return found{f.plain(), f.dimension}
	}
	g := v.search(r, s, func(h *host) bool { return v.on(s, h) < s.perHost })
	if within && !g.fits() || left == 0 {
		return found{reason: "max_per_host"}
	}
	return found{g.plain(), g.dimension}
}

// roomy marks a search that found a host with room.
const roomy = "\x00"

func (f found) fits() bool { return f.reason == roomy }

func (f found) plain() string {
	if f.fits() {
		return ""
	}
	return f.reason
}

// on is what a sub-allocation holds on a host.
func (v *verifier) on(s *sub, h *host) int64 {
	if p := v.m.piles[spot{s.key, h.name}]; p != nil {
		return p.units
	}
	return 0
}

func covers(free, size []int64) bool {
	for d, u := range size {
		if u > 0 && u > free[d] {
			return false
		}
	}
	return true
}

// search looks at the hosts of a set that match.
func (v *verifier) search(r *room, s *sub, in func(h *host) bool) found {
	var caps, free [][]int64
	var hosts []*host
	matches := 0
	for i, h := range r.host {
		if !v.m.may(s, h) {
			continue
		}
		matches++
		if in(h) {
			caps, free, hosts = append(caps, h.cap), append(free, r.free[i]), append(hosts, h)
		}
	}
	large, covered, fits := false, false, false
	sum := make([]int64, len(s.size))
	for i := range caps {
		large = large || covers(caps[i], s.size)
		if covers(free[i], s.size) {
			covered, fits = true, fits || v.sits(r.plan, s.size, hosts[i])
		}
		for d := range sum {
			sum[d] += free[i][d]
		}
	}
	switch {
	case matches == 0 && s.need != "":
		return found{reason: "no_host_matches"}
	case len(caps) == 0:
		return found{}
	case !large && len(caps) == matches:
		return found{"too_big", v.scarce(s, caps)}
	case fits:
		return found{roomy, v.scarce(s, free)}
	case covered:
		return found{"fragmented", r.plan.device}
	case !covers(sum, s.size):
		return found{"", v.scarce(s, free)}
	}
	return found{"fragmented", v.scarce(s, free)}
}

// scarce is the dimension in which most hosts have less than a unit takes, "" when none has.
func (v *verifier) scarce(s *sub, amounts [][]int64) string {
	most, name := 0, ""
	for d, u := range s.size {
		n := 0
		for _, a := range amounts {
			if u > 0 && a[d] < u {
				n++
			}
		}
		if n > most {
			most, name = n, v.m.policy.dimensions[d]
		}
	}
	return name
}
