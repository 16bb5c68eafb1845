package plan

import "slices"

const (
	preferenceDefault = 5
	overcommitMax     = 1000 * milli
	fairBandDefault   = milli / 100
)

// mdPlan reads a multidimensional plan (SPEC chapter 4).
func (r *reader) mdPlan(p *Policy, v value, t *planned) {
	f, ok := r.fields(v, mdObject.names...)
	if !ok {
		return
	}
	d := MDPlan{Line: v.line(), Device: -1, PublicGraceUS: Unlimited, OwnershipRebalance: 10, ShareReclaim: true,
		FairBandMilli: fairBandDefault,
		HistoryMilli:  milli, ReclaimBudget: Unlimited, OverdueAfterUS: Unlimited,
		OvercommitMilli: filled[int64](len(p.Dimensions), milli)}
	if at, ok := r.need(v, f, "name"); ok {
		if d.Name, ok = r.name(at); ok {
			r.takeName(t, at, d.Name)
		}
	}
	if at, ok := r.need(v, f, "resource_groups"); ok {
		r.mdGroups(p, &d, at, t)
	}
	r.mdSettings(p, &d, f)
	var list []entry
	if at, ok := f.get("consumers"); ok {
		list = r.entries(at, mdConsumerObject.names...)
	}
	windows := r.windows(p, f, mdConsumerObject.names)
	if !r.takeCells(t, v, p.Len(), len(windows)) {
		return
	}
	m := members{plan: r.place(p, list)}
	over := make([][]*entry, len(windows))
	for i := range windows {
		over[i] = r.place(p, windows[i].consumers)
	}
	d.Member = r.join(p, v, m.plan, over)
	r.deviceScope(&d, f, m.plan, over)
	d.Budget = r.budgets(p, m.plan, over, p.Dimensions)
	base := newMDWindow(p, &d)
	r.mdEntries(p, &d, &base, m.plan)
	for i := range windows {
		w := base.clone()
		w.Window = windows[i].Window
		r.mdEntries(p, &d, &w, over[i])
		w.inherit(p, &d)
		m.window = over[i]
		c := ownCheck{check{r, p, &m, w.Name}, &d, &w}
		c.all()
		d.Windows = append(d.Windows, w)
	}
	p.MDPlans = append(p.MDPlans, d)
}

// mdGroups reads the plan's resource groups, each with the preference that the plan gives it.
func (r *reader) mdGroups(p *Policy, d *MDPlan, v value, t *planned) {
	list, ok := r.list(v, planGroupsMax)
	if ok && len(list) == 0 {
		r.fault(v, "there must be at least one resource group")
	}
	for _, one := range list {
		f, ok := r.fields(one, mdGroupObject.names...)
		if !ok {
			continue
		}
		g := PlanGroup{Preference: preferenceDefault}
		if at, ok := f.get("preference"); ok {
			g.Preference = r.preference(at)
		}
		at, ok := r.need(one, f, "name")
		if !ok {
			continue
		}
		if g.Group, ok = r.planGroup(p, at); !ok {
			continue
		}
		if d.group(g.Group) >= 0 {
			r.fault(at, "the plan lists the group twice")
			continue
		}
		r.takeGroup(p, t, at, g.Group, d.Name)
		d.Groups = append(d.Groups, g)
	}
}

// group gives the index of a group of the policy in the plan's groups, -1 when it is not among them.
func (m *MDPlan) group(g int) int {
	return slices.IndexFunc(m.Groups, func(o PlanGroup) bool { return o.Group == g })
}

// preference reads a preference from 1 (best) to 10 (MD-6).
func (r *reader) preference(v value) int8 {
	if n, ok := r.integer(v, 1, 10); ok {
		return int8(n)
	}
	return preferenceDefault
}

// mdSettings reads the settings of the plan itself.
func (r *reader) mdSettings(p *Policy, d *MDPlan, f fields) {
	if v, ok := f.get("overcommit"); ok {
		d.OvercommitConfigured = r.perDimension(p, v, func(i int, at value) {
			if n, ok := r.thousandths(at, 1, overcommitMax); ok {
				d.OvercommitMilli[i] = n
			}
		})
	}
	if v, ok := f.get("devices"); ok {
		r.devices(p, d, v)
	}
	if v, ok := f.get("placement"); ok {
		i, _ := r.word(v, "best_fit", "stacked", "balanced")
		d.Placement = [...]Placement{BestFit, Stacked, Balanced}[i]
	}
	if v, ok := f.get("public_pool"); ok {
		if pool, ok := r.fields(v, publicPoolObject.names...); ok {
			if at, ok := pool.get("grace"); ok {
				d.PublicGraceUS = r.grace(at)
			}
		}
	}
	if v, ok := f.get("reclaim_for_preference"); ok {
		d.ReclaimForPref, _ = r.boolean(v)
	}
	if v, ok := f.get("ownership_rebalance"); ok {
		if n, ok := r.integer(v, 1, 1<<31-1); ok {
			d.OwnershipRebalance = int32(n)
		}
	}
	if v, ok := f.get("share_reclaim"); ok {
		d.ShareReclaim, _ = r.boolean(v)
	}
	if v, ok := f.get("fair_band"); ok {
		if n, ok := r.thousandths(v, 0, milli); ok {
			d.FairBandMilli = n
		}
	}
	if v, ok := f.get("share"); ok {
		r.history(d, v)
	}
	r.pace(f, &d.ReclaimBudget, &d.ReleaseConfirmed, &d.OverdueAfterUS, &d.LeadUS, &d.GangWaitUS)
}

// grace reads a grace; one that is wrong counts as none.
func (r *reader) grace(v value) int64 {
	if us, ok := r.duration(v); ok {
		return us
	}
	return Unlimited
}

// perDimension reads a mapping from dimensions to values; ok is false when it names none.
func (r *reader) perDimension(p *Policy, v value, take func(d int, at value)) (ok bool) {
	f, isMap := r.fields(v)
	for _, one := range f {
		d, known := p.Dimension(one.key)
		if !known {
			r.add(Fault{Line: one.keyAt.Line, Column: one.keyAt.Column, Path: one.at.String(),
				Reason: "there is no such dimension" + listed(p.Dimensions)})
			continue
		}
		take(d, one.value)
	}
	if isMap && len(f) == 0 {
		r.fault(v, "names no dimension")
	}
	return len(f) > 0
}

// amounts reads a mapping from dimensions to amounts; Unlimited where a dimension is not named.
func (r *reader) amounts(p *Policy, v value) []int64 {
	out := filled(len(p.Dimensions), Unlimited)
	r.perDimension(p, v, func(d int, at value) { out[d] = r.limit(at) })
	return out
}

func newMDWindow(p *Policy, d *MDPlan) MDWindow {
	n := p.Len()
	w := MDWindow{
		Rank: slices.Clone(p.Rank), Priority: make([]int32, n), Ratio: filled[int64](n, 1),
		Limit: make([][]int64, len(p.Dimensions)), LendGraceUS: filled(n, Unlimited), PrivateUS: filled(n, Unlimited),
		ShareReclaim: filled(n, true), Preference: make([][]int8, len(d.Groups)), Own: make([][]OwnRule, n),
		Reserve: filled(n, noReserve),
	}
	for i := range w.Limit {
		w.Limit[i] = filled(n, Unlimited)
	}
	for i := range w.Preference {
		w.Preference[i] = make([]int8, n) // 0 until inherited
	}
	return w
}

// clone copies the settings; rules and amounts are never changed and stay shared.
func (w *MDWindow) clone() MDWindow {
	c := MDWindow{
		Rank: slices.Clone(w.Rank), Priority: slices.Clone(w.Priority), Ratio: slices.Clone(w.Ratio),
		Limit: make([][]int64, len(w.Limit)), LendGraceUS: slices.Clone(w.LendGraceUS),
		PrivateUS: slices.Clone(w.PrivateUS), ShareReclaim: slices.Clone(w.ShareReclaim),
		Preference: make([][]int8, len(w.Preference)), Own: slices.Clone(w.Own),
		Reserve: slices.Clone(w.Reserve),
	}
	for i := range c.Limit {
		c.Limit[i] = slices.Clone(w.Limit[i])
	}
	for i := range c.Preference {
		c.Preference[i] = slices.Clone(w.Preference[i])
	}
	return c
}

// inherit fills in what a consumer has from its parent or the plan, and clears consumers that take no part.
func (w *MDWindow) inherit(p *Policy, d *MDPlan) {
	w.ShareReclaim[Root] = d.ShareReclaim
	for n := range p.Len() {
		up := p.Parent[n]
		if up != None {
			w.ShareReclaim[n] = w.ShareReclaim[n] && w.ShareReclaim[up]
		}
		for g := range d.Groups {
			switch {
			case w.Preference[g][n] != 0:
			case up == None:
				w.Preference[g][n] = d.Groups[g].Preference
			default:
				w.Preference[g][n] = w.Preference[g][up]
			}
		}
	}
	for n, in := range d.Member {
		if in {
			continue
		}
		w.Rank[n], w.Ratio[n], w.LendGraceUS[n], w.PrivateUS[n], w.ShareReclaim[n] = 0, 0, 0, 0, false
		w.Reserve[n] = Reserve{}
		for i := range w.Limit {
			w.Limit[i][n] = 0
		}
		for i := range w.Preference {
			w.Preference[i][n] = 0
		}
	}
}

// mdEntries puts the keys that the entries have into the settings; a key
// replaces what was there as a whole (PLAN-1: key by key).
func (r *reader) mdEntries(p *Policy, d *MDPlan, w *MDWindow, list []*entry) {
	for i, e := range list {
		if e != nil {
			r.mdEntry(p, d, w, Node(i), e.fields)
		}
	}
}

func (r *reader) mdEntry(p *Policy, d *MDPlan, w *MDWindow, n Node, f fields) {
	if v, ok := f.get("rank"); ok {
		w.Rank[n] = r.rank(v)
	}
	if v, ok := f.get("own"); ok {
		w.Own[n] = r.own(p, d, v)
	}
	if v, ok := f.get("reserve"); ok {
		w.Reserve[n] = r.reserve(p, v)
	}
	if v, ok := f.get("preference"); ok {
		r.preferences(p, d, w, n, v)
	}
	if v, ok := f.get("lend_grace"); ok {
		w.LendGraceUS[n] = r.grace(v)
	}
	if v, ok := f.get("private_pool_grace"); ok {
		w.PrivateUS[n] = r.grace(v)
	}
	if v, ok := f.get("share_reclaim"); ok {
		w.ShareReclaim[n], _ = r.boolean(v)
	}
	if v, ok := f.get("share"); ok {
		r.share(p, d, w, n, v)
	}
}

// preferences reads {group: n}, groups of the plan.
func (r *reader) preferences(p *Policy, d *MDPlan, w *MDWindow, n Node, v value) {
	for g := range d.Groups {
		w.Preference[g][n] = 0
	}
	f, _ := r.fields(v)
	for _, one := range f {
		g := d.group(p.group(one.key))
		if g < 0 {
			r.add(Fault{Line: one.keyAt.Line, Column: one.keyAt.Column, Path: one.at.String(),
				Reason: "the plan has no such resource group"})
			continue
		}
		w.Preference[g][n] = r.preference(one.value)
	}
}

// share reads share: {priority, ratio, limit} (MD-14, MD-18).
func (r *reader) share(p *Policy, d *MDPlan, w *MDWindow, n Node, v value) {
	w.Priority[n], w.Ratio[n] = 0, 1
	for d := range w.Limit {
		w.Limit[d][n] = Unlimited
	}
	f, ok := r.fields(v, mdShareObject.names...)
	if !ok {
		return
	}
	if at, ok := f.get("priority"); ok {
		i, _ := r.integer(at, -1<<31, 1<<31-1)
		w.Priority[n] = int32(i)
	}
	if at, ok := f.get("ratio"); ok {
		w.Ratio[n] = r.ratio(d, at)
	}
	if at, ok := f.get("limit"); ok {
		r.perDimension(p, at, func(d int, one value) { w.Limit[d][n] = r.limit(one) })
	}
}
