package verify

import (
	"fmt"
	"math/big"
	"sort"
	"strings"
	"time"
)

// allowance is a consumer's budget in a plan.
type allowance struct {
	hours int64
	what  string // units, a dimension, or slots
	per   string // day, week, month
}

// spending is what was used of a budget.
type spending struct {
	allowance
	used  *big.Int // of what it counts × µs, in the period of the cycle
	rate  int64    // of what it counts, held from pools when the last cycle ended
	known bool     // used and rate are: else what the tables tell counts
	spent bool
	told  float64 // by the table last written, in hours
}

// spendings are what was used of budgets, by plan and consumer.
type spendings map[[2]string]*spending

const hourUS = 3600 * 1_000_000

// allowanceOf reads a consumer's budget, false where it has none.
func allowanceOf(o object) (a allowance, ok bool) {
	b := asObject(o["budget"])
	for name := range b {
		if what, is := strings.CutSuffix(name, "_hours"); is {
			return allowance{b.whole(name, 0), what, b.text("per", "")}, true
		}
	}
	return a, false
}

// words are a budget as shortfalls tell it.
func (a allowance) words() string {
	measure := a.what + " hours"
	if a.what == "units" {
		measure = "unit-hours"
	}
	return fmt.Sprintf("its budget of %d %s per %s is used up", a.hours, measure, a.per)
}

// periodOf names the period that an instant is in.
func periodOf(per string, us int64, zone *time.Location) string {
	t := time.UnixMicro(us).In(zone)
	switch per {
	case "day":
		return t.Format(time.DateOnly)
	case "month":
		return t.Format("2006-01")
	}
	year, week := t.ISOWeek()
	return fmt.Sprint(year, "/", week)
}

// spend counts what was held since the last cycle against the budgets of its consumers (BUD-1), and finds out which are
// used up. Where the log does not tell of all cycles, the table does.
func (v *verifier) spend() {
	was, now := v.spent, spendings{}
	zone := v.m.policy.zone
	for _, p := range v.m.policy.plans {
		for path, a := range p.allowances {
			id := [2]string{p.name, path}
			s := was[id]
			switch {
			case s == nil || s.what != a.what || s.per != a.per:
				s = &spending{used: new(big.Int), known: v.lastCycle == 0 && v.cycle == 1 ||
					v.policyCycle == v.cycle && !v.lost}
			case v.lost:
				s.known = false
			}
			s.allowance, now[id] = a, s
			from := v.last
			if v.lastCycle == 0 {
				from = v.now
			}
			if period := periodOf(a.per, v.now, zone); periodOf(a.per, from, zone) != period {
				s.used.SetInt64(0)
				s.known = s.known || !v.lost && v.lastCycle > 0
				from += int64(sort.Search(int(v.now-from), func(us int) bool {
					return periodOf(a.per, from+int64(us), zone) == period
				}))
			}
			s.used.Add(s.used, new(big.Int).Mul(big.NewInt(s.rate), big.NewInt(v.now-from)))
			s.spent = s.hours() >= float64(a.hours)
			if s.known {
				s.spent = s.used.Cmp(new(big.Int).Mul(big.NewInt(a.hours), big.NewInt(hourUS))) >= 0
			}
		}
	}
	if v.spent = now; len(now) > 0 {
		v.readTold()
	}
}

// readTold reads what the table consumers tells of those whose spending is not known.
func (v *verifier) readTold() {
	t := v.table["consumers"]
	if t == nil || t.number["budget_used"].real == nil {
		return
	}
	for row := range t.n {
		s := v.spent[[2]string{t.words["plan"].text(row), t.words["consumer"].text(row)}]
		if s != nil && !s.known && !t.number["budget_used"].missing(row) {
			s.spent = t.number["budget_used"].float(row) >= float64(s.allowance.hours)
		}
	}
}

// hours is what was used, in hours.
func (s *spending) hours() float64 {
	f, _ := new(big.Rat).SetFrac(s.used, big.NewInt(hourUS)).Float64()
	return f
}

// unknown forgets what was used of budgets: what the log says of it later is believed.
func (l spendings) unknown() {
	for _, s := range l {
		s.known = false
	}
}

// keep goes on under another policy: consumers that it renames take along what they used.
func (l spendings) keep(now *policy) spendings {
	next, taken := spendings{}, map[[2]string]bool{}
	for id, s := range l {
		if name, ok := now.renamedTo(id[1]); ok {
			next[[2]string{id[0], name}], taken[[2]string{id[0], name}] = s, true
		}
	}
	for id, s := range l {
		if _, ok := now.renamedTo(id[1]); !ok && !taken[id] {
			next[id] = s
		}
	}
	return next
}

// renamedTo is the name that a consumer has in a policy which renames it.
func (p *policy) renamedTo(path string) (name string, ok bool) {
	name, ok = p.renamed[path]
	return name, ok && name != ""
}

// brokeBelow is the consumer nearest to a leaf, below the consumer of a pool, whose budget is used up; "" is none.
func (v *verifier) brokeBelow(plan, leaf, pool string) string {
	for path := leaf; len(v.spent) > 0 && path != pool && path != "/" && path != ""; path = parentOf(path) {
		if s := v.spent[[2]string{plan, path}]; s != nil && s.spent {
			return path
		}
	}
	return ""
}

// budgets checks the columns of budgets, then computes what is held from pools as the cycle ends.
func (v *verifier) budgets() {
	t := v.table["consumers"]
	for row := range t.n {
		v.budgetRow(t, row)
	}
	for _, s := range v.spent {
		s.rate = 0
	}
	for at, pile := range v.m.piles {
		p := v.m.policy.byName[at.plan]
		if p == nil || len(p.allowances) == 0 || pile.orphan {
			continue
		}
		for l, n := range pile.label {
			pool := l.pool
			switch {
			case l.origin == "" || p.md && v.hazy[p.name]:
				v.vagueRate(p, at.consumer)
				continue
			case p.md && l.origin == "owned", !p.md && l.origin != "share_pool" && l.origin != "borrowed":
				continue
			case !p.md:
				pool = "/"
			}
			for path := at.consumer; path != pool && path != "/" && path != ""; path = parentOf(path) {
				if s := v.spent[[2]string{p.name, path}]; s != nil {
					s.rate += n * v.counts(p, s.what, pile.size)
				}
			}
		}
	}
}

// counts is what a unit of a size counts in a budget.
func (v *verifier) counts(p *plan, what string, size []int64) int64 {
	switch d, ok := v.m.policy.dimension(what); {
	case what == "units":
		return 1
	case !p.md:
		return size[0]
	case ok:
		return size[d]
	}
	return 0
}

// vagueRate notes that it is not known of which pool some units of a leaf are.
func (v *verifier) vagueRate(p *plan, leaf string) {
	v.report.cannot("what was used of budgets in the plan %s, while it is not known of which pools some units are",
		p.name)
	for path := leaf; path != "/" && path != ""; path = parentOf(path) {
		if s := v.spent[[2]string{p.name, path}]; s != nil {
			s.known = false
		}
	}
}

// budgetRow checks a row of consumers: what it says was used is what was used, or was in a cycle not long ago.
func (v *verifier) budgetRow(t *rows, row int) {
	name, path := t.words["plan"].text(row), t.words["consumer"].text(row)
	used, s := t.number["budget_used"], v.spent[[2]string{name, path}]
	if used.real == nil {
		return // a log of before
	}
	say := func(what string) Fault { return of("BUD-1", "consumers", name, path, what) }
	if !v.is(say("it has a budget, or the table tells of one, and not both"), used.missing(row) == (s == nil)) ||
		s == nil {
		return
	}
	v.equal(say("budget"), s.allowance.hours, t.number["budget"].at(row))
	what := t.words["budget_dimension"].text(row)
	v.is(say("what its budget counts: "+what), what == s.what || what == "" && s.what == "units")
	got := used.float(row)
	if !s.known {
		if s.told = got; v.fresh("consumers") {
			v.report.cannot("what was used of budgets before the log's first cycle of a period")
		}
		return
	}
	want := s.hours()
	f := say("hours used of its budget")
	f.Expected, f.Got = decimal(want), decimal(got)
	late := want - got
	v.is(f, late > -1e-6 && late < float64(s.allowance.hours)/100+1e-6 && (got == s.told || late < 1e-6*max(1, want)))
	s.told = got
}

// brokeGrants checks that nobody is granted anything of a pool for which a budget is used up (BUD-2).
func (v *verifier) brokeGrants() {
	if len(v.spent) == 0 {
		return
	}
	for at, labels := range v.given {
		p := v.m.policy.byName[at.plan]
		if p == nil {
			continue
		}
		for l := range labels {
			pool := l.pool
			switch {
			case p.md && l.origin == "owned", !p.md && l.origin != "share_pool" && l.origin != "borrowed":
				continue
			case !p.md:
				pool = "/"
			}
			path := v.brokeBelow(p.name, at.consumer, pool)
			v.is(at.about("BUD-2", "grants", "granted from a pool or lent, and the budget of %s is used up", path),
				path == "")
		}
	}
}

// brokeReason checks a shortfall whose reason is a budget: which is used up, and when its next period begins.
func (v *verifier) brokeReason(p *plan, f shortfallRow, say func(ok bool, why string)) {
	s := v.spent[[2]string{p.name, f.blocker}]
	say(f.blocker != "" && under(f.consumer, f.blocker) && s != nil && s.spent,
		"its blocker has no budget that is used up")
	if s == nil {
		return
	}
	say(f.detail == s.words(), "its detail does not tell of that")
	zone := v.m.policy.zone
	period := periodOf(s.per, f.until-1, zone)
	say(period != periodOf(s.per, f.until, zone) && period == periodOf(s.per, v.now, zone),
		"no period of it begins at its until")
}
