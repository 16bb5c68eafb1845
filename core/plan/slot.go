package plan

import "slices"

var policyNames = []string{"ownership", "share_ratio", "hybrid"} // by PolicyKind

// String is the policy's name in the file.
func (k PolicyKind) String() string { return policyNames[k] }

// slotPlan reads a slot plan (SPEC chapter 3).
func (r *reader) slotPlan(p *Policy, v value, t *planned) {
	f, ok := r.withoutHistory(v)
	if !ok {
		return
	}
	s := SlotPlan{Group: -1, Line: v.line(), ConfiguredSlots: Unlimited, Placement: Stacked, ExclusiveBy: "allocation",
		ShareReclaim: true, ReclaimBudget: Unlimited, OverdueAfterUS: Unlimited}
	if at, ok := r.need(v, f, "resource_group"); ok {
		if g, ok := r.planGroup(p, at); ok {
			s.Group = g
			r.takeName(t, at, p.Groups[g].Name)
			r.takeGroup(p, t, at, g, p.Groups[g].Name)
			if _, ok := p.Dimension("slots"); !ok && p.Groups[g].Slots == nil {
				r.fault(at, "the group gives no slots, and there is no dimension slots")
			}
		}
	}
	r.slotSettings(&s, f)
	var list []entry
	if at, ok := f.get("consumers"); ok {
		list = r.entries(at, slotConsumerObject.names...)
	}
	windows := r.windows(p, f, slotConsumerObject.names)
	if !r.takeCells(t, v, p.Len(), len(windows)) {
		return
	}
	m := members{plan: r.place(p, list)}
	over := make([][]*entry, len(windows))
	for i := range windows {
		over[i] = r.place(p, windows[i].consumers)
	}
	s.Member = r.join(p, v, m.plan, over)
	s.Budget = r.slotBudgets(p, &s, m.plan, over)
	base := newSlotWindow(p)
	r.slotEntries(p, &base, m.plan)
	uses := make([]policySet, p.Len()) // policies that a first-level branch has in some window
	for i := range windows {
		w := base.clone()
		w.Window = windows[i].Window
		r.slotEntries(p, &w, over[i])
		m.window = over[i]
		c := slotCheck{check: check{reader: r, p: p, m: &m, window: w.Name}, s: &s, w: &w}
		if at, ok := f.get("configured_slots"); ok {
			c.configuredAt = at
		}
		under := c.policies()
		for n, set := range under {
			uses[n] |= set
		}
		r.foreign(p, over[i], under)
		w.forget(p, s.Member)
		c.figures()
		c.services(t)
		s.Windows = append(s.Windows, w)
	}
	r.foreign(p, m.plan, uses)
	p.SlotPlans = append(p.SlotPlans, s)
}

// slotSettings reads the settings of the plan itself.
func (r *reader) slotSettings(s *SlotPlan, f fields) {
	if v, ok := f.get("configured_slots"); ok {
		if n, ok := r.whole(v); ok {
			s.ConfiguredSlots = n
		}
	}
	if v, ok := f.get("placement"); ok {
		i, _ := r.word(v, "stacked", "balanced", "exclusive")
		s.Placement = [...]Placement{Stacked, Balanced, Exclusive}[i]
	}
	if v, ok := f.get("exclusive"); ok {
		i, good := r.word(v, "allocation", "consumer")
		s.ExclusiveBy = [...]string{"allocation", "consumer"}[i]
		if good && s.Placement != Exclusive {
			r.fault(v, "goes with placement: exclusive only")
		}
	}
	if v, ok := f.get("recall"); ok {
		i, _ := r.word(v, "last", "before_borrow")
		s.RecallFirst = i == 1
	}
	if v, ok := f.get("share_quota"); ok {
		i, _ := r.word(v, "dynamic", "static")
		s.StaticQuota = i == 1
	}
	for _, b := range [...]struct {
		key string
		to  *bool
	}{
		{"allow_overcommit", &s.AllowOvercommit}, {"share_reclaim", &s.ShareReclaim},
		{"distribute_evenly", &s.DistributeEvenly}, {"disable_reclaim_on_shrink", &s.NoShrinkReclaim},
	} {
		if v, ok := f.get(b.key); ok {
			*b.to, _ = r.boolean(v)
		}
	}
	r.pace(f, &s.ReclaimBudget, &s.ReleaseConfirmed, &s.OverdueAfterUS, &s.LeadUS, &s.GangWaitUS)
}

const noPolicy PolicyKind = 255 // until the branch's policy is known

func newSlotWindow(p *Policy) SlotWindow {
	n := p.Len()
	return SlotWindow{
		Rank: slices.Clone(p.Rank), Policy: filled(n, noPolicy), Owns: make([]int64, n), Reserves: make([]int64, n),
		Limit: filled(n, Unlimited), LendLimit: make([]int64, n), LendTo: make([][]Peer, n),
		BorrowLimit: make([]int64, n), BorrowFrom: make([][]Peer, n), Ratio: filled[int64](n, 1),
		Max: filled(n, Unlimited),
	}
}

// clone copies the settings; lists of peers are never changed and stay shared.
func (w *SlotWindow) clone() SlotWindow {
	return SlotWindow{
		Rank: slices.Clone(w.Rank), Policy: slices.Clone(w.Policy), Owns: slices.Clone(w.Owns),
		Reserves: slices.Clone(w.Reserves), Limit: slices.Clone(w.Limit), LendLimit: slices.Clone(w.LendLimit),
		LendTo: slices.Clone(w.LendTo), BorrowLimit: slices.Clone(w.BorrowLimit),
		BorrowFrom: slices.Clone(w.BorrowFrom), Ratio: slices.Clone(w.Ratio), Max: slices.Clone(w.Max),
	}
}

// slotEntries puts the keys that the entries have into the settings; a key
// replaces what was there as a whole (PLAN-1: key by key).
func (r *reader) slotEntries(p *Policy, w *SlotWindow, list []*entry) {
	for i, e := range list {
		if e != nil {
			r.slotEntry(p, w, Node(i), e.fields)
		}
	}
}

func (r *reader) slotEntry(p *Policy, w *SlotWindow, n Node, f fields) {
	if v, ok := f.get("rank"); ok {
		w.Rank[n] = r.rank(v)
	}
	if v, ok := f.get("policy"); ok {
		if i, ok := r.word(v, policyNames...); ok {
			w.Policy[n] = PolicyKind(i)
		}
	}
	if v, ok := f.get("owns"); ok {
		w.Owns[n], _ = r.whole(v)
	}
	if v, ok := f.get("reserves"); ok {
		w.Reserves[n], _ = r.whole(v)
	}
	if v, ok := f.get("limit"); ok {
		w.Limit[n] = r.limit(v)
	}
	if v, ok := f.get("lend"); ok {
		w.LendLimit[n], w.LendTo[n] = r.lending(p, n, v, lendObject, 0)
	}
	if v, ok := f.get("borrow"); ok {
		w.BorrowLimit[n], w.BorrowFrom[n] = r.lending(p, n, v, borrowObject, Unlimited)
	}
	if v, ok := f.get("share"); ok {
		w.Ratio[n], w.Max[n] = 1, Unlimited
		if share, ok := r.fields(v, slotShareObject.names...); ok {
			if v, ok := share.get("ratio"); ok {
				w.Ratio[n], _ = r.whole(v)
			}
			if v, ok := share.get("max"); ok {
				w.Max[n] = r.limit(v)
			}
		}
	}
}

// limit reads a limit; one that is wrong counts as none, so that it gives no further fault.
func (r *reader) limit(v value) int64 {
	if n, ok := r.whole(v); ok {
		return n
	}
	return Unlimited
}

// lending reads lend or borrow: a limit and a list of peers.
func (r *reader) lending(p *Policy, n Node, v value, of *object, limit int64) (int64, []Peer) {
	if p.First[n] != None {
		r.fault(v, "%s is no leaf; only leaves lend and borrow", p.Path[n])
	}
	f, ok := r.fields(v, of.names...)
	if !ok {
		return limit, nil
	}
	if at, ok := f.get("limit"); ok {
		limit, _ = r.whole(at)
	}
	at, ok := f.get(of.names[1])
	if !ok {
		return limit, nil
	}
	list := []value{at}
	if _, isText := scalar(at.node); !isText {
		list, _ = r.list(at, peersMax)
		if list != nil && len(list) == 0 {
			r.fault(at, "the list is empty; leave the key out for any")
		}
	}
	var peers []Peer
	for _, one := range list {
		if peer, ok := r.peer(p, n, one); !ok {
			continue
		} else if slices.Contains(peers, peer) {
			r.fault(one, "is listed twice")
		} else {
			peers = append(peers, peer)
		}
	}
	return limit, peers
}

// peer reads one of any, siblings and a consumer's full path.
func (r *reader) peer(p *Policy, self Node, v value) (peer Peer, ok bool) {
	s, ok := r.name(v)
	switch {
	case !ok:
		return Peer{}, false
	case s == "any":
		return Peer{Any: true}, true
	case s == "siblings":
		return Peer{Siblings: true}, true
	}
	n, ok := p.Find(s)
	switch {
	case !ok || n == Root:
		r.fault(v, "is no consumer; it must be a consumer's full path, siblings or any")
		return Peer{}, false
	case n == self:
		r.fault(v, "%s names itself", s)
		return Peer{}, false
	}
	return Peer{Node: n}, true
}
