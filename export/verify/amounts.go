package verify

// figuresOf is what the table amounts should say of a plan, by column, consumer and dimension, but for what a keyframe
// tells.
type figuresOf struct {
	owned  map[string]map[string][]int64 // configured, owned, reserved, lent
	static map[string][]int64            // nil: not told
	said   map[string][]int64            // static quotas as the table has them
}

// amounts holds the table amounts against what is held and owned, and static share quotas against the pools (MD-15).
func (v *verifier) amounts() {
	t := v.table["amounts"]
	plan, consumer, dim := t.words["plan"], t.words["consumer"], t.words["dimension"]
	of, seen := map[string]*figuresOf{}, map[[3]string]bool{}
	for row := range t.n {
		name, path, d := plan.text(row), consumer.text(row), dim.text(row)
		p := v.m.policy.byName[name]
		at, ok := v.m.policy.dimension(d)
		f := Fault{Rule: "log", Table: "amounts", Plan: name, Consumer: path,
			What: "there is no such plan, consumer in it, or dimension " + d}
		if !v.is(f, p != nil && p.md && p.member[path] && ok) {
			continue
		}
		id := [3]string{name, path, d}
		f.What = "a row of " + d + " stands twice"
		v.is(f, !seen[id])
		seen[id] = true
		if of[name] == nil {
			of[name] = v.amountsOf(p)
		}
		v.amount(p, of[name], t, row, path, at)
	}
	for name, f := range of {
		v.staticsAgree(v.m.policy.byName[name], f)
	}
	for _, p := range v.m.policy.plans {
		for _, path := range v.m.policy.paths {
			for _, d := range v.m.policy.dimensions {
				if p.md && p.member[path] {
					v.is(Fault{Rule: "log", Table: "amounts", Plan: p.name, Consumer: path, What: "no row of " + d},
						seen[[3]string{p.name, path, d}])
				}
			}
		}
	}
}

// amountsOf computes what the table should say of a plan.
func (v *verifier) amountsOf(p *plan) *figuresOf {
	f := &figuresOf{said: map[string][]int64{}}
	if !v.strange[p.name] {
		e := v.estateOf(p.name)
		f.owned = map[string]map[string][]int64{"configured": e.configured, "owned": e.owned, "reserved": e.reserved,
			"lent": v.lent(p)}
		if e.guessed {
			delete(f.owned, "configured")
		}
		if v.unlabelledIn(p) {
			delete(f.owned, "lent")
		}
	}
	if !v.hazy[p.name] && (v.fresh("amounts") || v.busy(p.name)) {
		f.static = map[string][]int64{}
		for _, pool := range v.poolsOf(p) {
			v.staticQuotas(p, pool, f.static)
		}
	}
	return f
}

// amount holds a row against that; d is its dimension.
func (v *verifier) amount(p *plan, f *figuresOf, t *rows, row int, path string, d int) {
	name := v.m.policy.dimensions[d]
	say := func(rule, what string) Fault { return of(rule, "amounts", p.name, path, what+" "+name) }
	n := func(column string) int64 { return t.number[column].at(row) }
	v.equal(say("INV-9", "held"), v.m.account(p.name, path).size[d], n("held"))
	limit, set := p.at(v.now, v.m.policy.zone).entry[path].limit[name]
	if v.is(say("MD-18", "limit of"), t.number["share_limit"].missing(row) == !set) && set {
		v.equal(say("MD-18", "limit of"), limit, n("share_limit"))
	}
	for column, m := range f.owned {
		v.equal(say("MD-1", column), figureOf(m, path, d), n(column))
	}
	if f.static != nil {
		v.staticRow(p, f, say("MD-15", "static_quota"), path, d, n("static_quota"))
	}
}

// figureOf is a consumer's figure in a dimension, 0 where it has none.
func figureOf(m map[string][]int64, path string, d int) int64 {
	if m[path] == nil {
		return 0
	}
	return m[path][d]
}
