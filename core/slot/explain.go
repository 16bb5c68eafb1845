package slot

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// reason is why units of a sub-allocation are not granted.
type reason struct {
	code    int32 // decision.Reasons
	blocker plan.Node
	until   int64 // µs, 0: not known
	detail  string
}

// reasons is what depends on unit, requirement and hosts alone, found once a cycle for each.
type reasons struct {
	host    map[fit]reason
	leaving map[cluster.HostID][]cluster.SetID // by target, those with victims
	all     []cluster.SetID
}

// Unite has nothing to do: grants are booked once.
func (m *Planner) Unite() {}

// Explain has nothing to do: all figures are there, and reasons are found one by one as they are asked for.
func (m *Planner) Explain() {}

// fits is the code of "a host has room": nothing about the unit itself stands against it.
const fits = -1

// EmitShortfalls explains every sub-allocation of the plan that is short. details takes the texts of
// the column detail. It returns the units that are short.
func (m *Planner) EmitShortfalls(t *decision.Shortfalls, details *cluster.Names) (units int64) {
	m.reason = reasons{host: map[fit]reason{}}
	m.lendFrom = 0
	m.bindShort()
	for leaf := range plan.Node(m.policy.Len()) {
		m.eachOf(leaf, func(sub cluster.SubID) {
			short := m.s.Short(sub)
			if short == 0 {
				return
			}
			units = share.Add(units, short)
			waits := min(short, m.promised[sub])
			if waits > 0 {
				m.emitShortfall(t, details, sub, waits, m.waiting(sub))
			}
			if short > waits {
				m.emitShortfall(t, details, sub, short-waits, m.why(sub))
			}
		})
	}
	return units
}

func (m *Planner) emitShortfall(
	t *decision.Shortfalls, details *cluster.Names, sub cluster.SubID, units int64, r reason,
) {
	m.key(&t.Key, sub)
	t.UnitsShort = append(t.UnitsShort, units)
	t.Reason.Add(r.code)
	t.Dimension.Add(decision.Null)
	blocker, detail := decision.Null, decision.Null
	if r.blocker != plan.None {
		blocker = int32(m.s.ConsumerOf[r.blocker])
	}
	if r.detail != "" {
		detail = details.InternString(r.detail)
	}
	t.Blocker.Add(blocker)
	t.Detail.Add(detail)
	t.Until = append(t.Until, r.until)
	t.UntilNull = append(t.UntilNull, r.until == 0)
	t.Since, t.SinceNull = append(t.Since, m.s.Sub.ShortSince[sub]), append(t.SinceNull, false)
}

// waiting says until when and for whom a sub-allocation waits: the last deadline of the victims of
// its sets, and of what leaves the hosts that units of it joined; where nothing does, of all that leaves.
func (m *Planner) waiting(sub cluster.SubID) reason {
	ids := slices.Clone(m.setsOf[sub])
	for _, k := range m.reclaim.joinedAt[sub] {
		ids = append(ids, m.leaving(m.p.Parcels.Host[k])...)
	}
	r := m.lastDue(ids)
	if r.until == 0 && len(m.reclaim.joinedAt[sub]) > 0 {
		m.leaving(cluster.NoID)
		r = m.lastDue(m.reason.all)
	}
	return r
}

// lastDue is the last deadline of the victims of some sets; of equal ones that of the set made first, the first in
// the tree, is named.
func (m *Planner) lastDue(ids []cluster.SetID) reason {
	r := reason{code: decision.ReasonWaitingForReclaim, blocker: plan.None}
	h, number := &m.s.Holding, int64(0)
	for _, id := range ids {
		for q, n := m.s.Set.First[id], m.s.Set.Number[id]; q != cluster.NoID; q = h.NextOfSet[q] {
			leaf, due := m.s.Node(h.Sub[q]), h.Due[q]
			if due > r.until || due == r.until && (n < number || n == number && leaf < r.blocker) {
				r.until, r.blocker, number = due, leaf, n
			}
		}
	}
	return r
}

// leaving lists the sets with victims on a host.
func (m *Planner) leaving(host cluster.HostID) []cluster.SetID {
	r := &m.reason
	if r.leaving == nil {
		r.leaving = map[cluster.HostID][]cluster.SetID{}
		for id := range m.s.Set.Of(m.p) {
			if m.s.Set.First[id] != cluster.NoID {
				target := m.s.Set.Target[id]
				r.leaving[target], r.all = append(r.leaving[target], id), append(r.all, id)
			}
		}
	}
	return r.leaving[host]
}

// why gives the reason of a sub-allocation's units that nothing is promised for (docs/slots.md, shortfalls).
func (m *Planner) why(sub cluster.SubID) reason {
	m.s.Yield()
	if m.p.TooSmall(m.s, sub) {
		return reason{code: decision.ReasonTooSmall, blocker: plan.None}
	}
	leaf := m.s.Node(sub)
	host := m.ofHosts(sub)
	if host.code == decision.ReasonNoHostMatches || host.code == decision.ReasonTooBig {
		return host
	}
	if m.waits(sub) && m.promised[sub] == 0 {
		if r, stopped := m.whyGang(leaf, sub); stopped {
			return r
		}
	}
	return m.whyUnit(leaf, sub, host)
}

// whyGang tells whether fewer units of a gang that waits would fit now than it needs: then how many, and what the next
// one lacks. The units are given as far as they can be, and taken back.
func (m *Planner) whyGang(leaf plan.Node, sub cluster.SubID) (r reason, stopped bool) {
	t, least, kind, fit := &m.line.Sub[sub], m.s.Sub.MinUnits[sub], kindBorrow, int64(0)
	if m.isHybrid(leaf) {
		kind = kindHybrid
	}
	if m.s.Sub.MaxPerHost[sub] != plan.Unlimited || m.asksPlace(sub) {
		t.Find = 0 // the finding counts units of this cycle that reclaim took back again, or is of another value
	}
	for most := min(least, t.Wanted-t.Held); fit < most; fit++ {
		if _, ok := m.giveAny(leaf, sub, kind, unbound); !ok {
			break
		}
	}
	if stopped = fit < least; stopped {
		r = m.whyUnit(leaf, sub, m.ofHosts(sub))
		r.code, r.detail = decision.ReasonGang,
			decision.GangDetail(fit, least, m.desk.Bonds.Where(sub), r.code, r.detail)
	}
	m.takeBackGifts(leaf, sub)
	return r, stopped
}

// whyUnit is why for a unit that the hosts would take were they empty.
func (m *Planner) whyUnit(leaf plan.Node, sub cluster.SubID, host reason) reason {
	k := m.slots(sub)
	unit := k // what an account must have for it
	if m.whole {
		k, unit = m.nextCost(sub), 1
	}
	if at, ok := m.roomy(leaf, k, false); !ok {
		detail := fmt.Sprintf("%s holds %d of at most %d slots", m.policy.Path[at],
			m.figure.total[at]+m.pending(at, false), m.tree.most[at])
		if m.isHybrid(at) && m.hybrid.below[at] > 0 {
			detail += fmt.Sprintf(", and %d more are reserved below it", m.hybrid.below[at])
		}
		return reason{code: decision.ReasonConsumerLimit, blocker: at, detail: detail}
	}
	if m.isHybrid(leaf) {
		return m.whyHybrid(leaf, sub, unit, host)
	}
	m.lendFrom = 0
	own := m.ownIdle(leaf) >= k
	if m.whole {
		own = m.bearsOwn(leaf, k)
	}
	account := own || !m.tree.barred[leaf] && m.poolFor(leaf) >= unit && m.spare() >= k ||
		host.code != fits && m.figure.claims >= k && m.lender(leaf, k) != plan.None
	switch limit := m.set.BorrowLimit[leaf]; {
	case host.code == decision.ReasonMaxPerHost:
		return host
	case m.reclaim.denied[sub]:
		return m.overBudget()
	case m.spent(leaf):
		detail, untilUS := m.s.Spending(m.p, leaf)
		return reason{code: decision.ReasonBudget, blocker: leaf, until: untilUS, detail: detail}
	case limit > 0 && limit != plan.Unlimited && m.figure.held[kindBorrow][leaf]+k > limit:
		return reason{code: decision.ReasonBorrowLimit, blocker: plan.None,
			detail: fmt.Sprintf("borrows %d of at most %d slots", m.figure.held[kindBorrow][leaf], limit)}
	case account && host.code != fits:
		return host
	case m.bar0(leaf) != plan.None:
		return reason{code: decision.ReasonShareLimit, blocker: m.bar0(leaf), detail: "share ratio 0"}
	case m.figure.held[kindShare][leaf] > 0 && m.figure.usage[leaf]+unit > m.quota.deserve[leaf] &&
		m.quota.deserve[leaf] < m.owned.pools:
		return reason{code: decision.ReasonOverQuota, blocker: plan.None,
			detail: fmt.Sprintf("holds %d slots from pools, its quota is %d", m.figure.held[kindShare][leaf],
				m.quota.deserve[leaf])}
	}
	return reason{code: decision.ReasonPoolExhausted, blocker: plan.None}
}

// whyHybrid is why for a leaf under the hybrid policy, when neither unit nor limit stands against it.
func (m *Planner) whyHybrid(leaf plan.Node, sub cluster.SubID, k int64, host reason) reason {
	held, quota := m.figure.held[kindHybrid][leaf]+m.figure.roomHybrid[leaf], m.hybrid.quota[leaf]
	switch {
	case host.code == decision.ReasonMaxPerHost:
		return host
	case m.reclaim.denied[sub]:
		return m.overBudget()
	case m.hybridIdle() >= k && held+k <= quota && host.code != fits:
		return host
	case held+k > quota:
		return reason{code: decision.ReasonOverQuota, blocker: plan.None,
			detail: fmt.Sprintf("holds %d slots, its quota is %d", held, quota)}
	}
	return reason{code: decision.ReasonPoolExhausted, blocker: plan.None}
}

func (m *Planner) overBudget() reason {
	return reason{code: decision.ReasonReclaimBudget, blocker: plan.None,
		detail: m.p.BudgetDetail()}
}

// bar0 is the consumer nearest to a leaf whose share ratio of 0 keeps it from a pool, None when none does.
func (m *Planner) bar0(leaf plan.Node) plan.Node {
	for n := leaf; n > plan.Root; n = m.policy.Parent[n] {
		if m.set.Ratio[n] == 0 && m.owned.below[n] < m.owned.pools {
			return n
		}
	}
	return plan.None
}

// ofHosts tells what of the hosts stands against a unit: requirement, size, max_per_host, scattered room.
// O(parcels) on first sight, for those with max_per_host each time.
func (m *Planner) ofHosts(sub cluster.SubID) reason {
	key := fit{m.s.Sub.Shape[sub], m.need(sub), m.s.Sub.MaxPerHost[sub]}
	r, ok := m.reason.host[key]
	if len(m.gift) > 0 {
		return m.searchHosts(sub) // beside units of a gang that are tried
	}
	if !ok || key.most != plan.Unlimited || m.whole {
		r = m.searchHosts(sub)
		m.reason.host[key] = r
	}
	return r
}

func (m *Planner) searchHosts(sub cluster.SubID) reason {
	m.s.Yield()
	p, k := &m.p.Parcels, m.slots(sub)
	need := m.need(sub)
	selected, _ := m.desk.Selected(need)
	tried := map[cluster.ParcelID]int64{}
	for _, g := range m.gift {
		tried[g.parcel] += int64(g.units)
	}
	var open, large, free, allowed int
	for at := range cluster.ParcelID(p.Len()) {
		if !p.IsOpen(at) || selected != nil && selected[at>>6]>>(uint(at)&63)&1 == 0 {
			continue
		}
		open++
		if p.Cap[0][at] < k {
			continue
		}
		large++
		fit := p.Available(0, at)-tried[at]*k >= k
		if m.whole {
			fit = m.takesMore(sub, at) || p.First[at] == cluster.NoID && m.mayGet(sub, at)
		}
		if fit {
			free++
		}
		if m.perHost(sub, at, 1+tried[at]) {
			if fit {
				return reason{code: fits, blocker: plan.None}
			}
			allowed++
		}
	}
	none := plan.None
	switch {
	case open == 0 && selected != nil:
		return reason{code: decision.ReasonNoHostMatches, blocker: none,
			detail: m.desk.Bonds.Requirement(m.s, need).Text}
	case open == 0:
		return reason{code: fits, blocker: none}
	case large == 0 && open == 1:
		return reason{code: decision.ReasonTooBig, blocker: none,
			detail: fmt.Sprintf("a unit takes %d slots, the only host has less", k)}
	case large == 0:
		return reason{code: decision.ReasonTooBig, blocker: none,
			detail: fmt.Sprintf("a unit takes %d slots, all %d hosts have less", k, open)}
	case free > 0 || allowed == 0:
		return reason{code: decision.ReasonMaxPerHost, blocker: none,
			detail: "max_per_host is reached where it would fit"}
	}
	if large == 1 {
		return reason{code: decision.ReasonFragmented, blocker: none,
			detail: fmt.Sprintf("a unit takes %d slots, the only host with as many has fewer free", k)}
	}
	return reason{code: decision.ReasonFragmented, blocker: none,
		detail: fmt.Sprintf("a unit takes %d slots, none of %d hosts has as many free", k, large)}
}
