package cycle_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
)

// This file makes random cases of lending, pools and recall in MD plans: consumers own hosts as in randomown_test.go,
// and most of them want something only after others have crowded in.

var lendKind = kind{name: "lend", draw: drawLend, situations: lendSituations}

var lendSituations = []string{
	"grant owned", "grant private_pool", "grant public_pool", "grant lent in a private pool",
	"grant lent in the public pool", "reclaim issued recall", "reclaim cancelled recall", "reclaim issued reserve",
	"reclaim cancelled reserve", "reclaim issued fair_share", "reclaim cancelled fair_share",
	"reclaim issued over_limit", "reclaim cancelled over_limit", "reclaim issued drain",
	"reclaim issued ownership_change", "reclaim cancelled ownership_change", "joined for a recall", "dissolved set",
	"took over a victim", "recall for a branch", "recalled for preference", "dissolved several sets",
	"recall stopped by a share limit", "promised unit given on own parcels", "reserve of a branch taken back",
	"kept out by a lender's grace", "kept out by a pool's grace", "deadline by the grace of a lender or a pool",
	"over a limit in a private pool", "joined in a private pool", "young ones recalled last",
	"taken from a lower priority", "taken from a greater share", "window switch", "equal priority and ratio",
	"equal priority, other ratio", "other priority", "md ratio of 0", "fair reclaim in a private pool",
	"several victims for one unit", "promised room", "joined a reclaim under way", "short grace_filter",
	"short ownership_unmet", "short share_limit", "short lower_priority", "short over_quota", "short pool_exhausted",
	"short fragmented", "short too_big", "short max_per_host", "short no_host_matches", "short reclaim_budget",
	"short waiting_for_reclaim", "release client", "release demand_gone", "release done", "release grace_expired",
	"release host_lost", "relabel owned to private_pool", "relabel owned to public_pool",
	"relabel private_pool to public_pool", "relabel public_pool to owned", "own host_list", "own hosts", "own percent",
	"own amount", "own per_host", "own remaining", "own nested", "own reserve hosts", "own reserve percent",
	"own reserve amount", "lend_grace", "private_pool_grace", "md public_pool: {grace: 60s}",
	"md reclaim_for_preference: true", "md share_reclaim: false", "md reclaim_budget: 1", "md release: confirmed",
	"md consumer takes nothing back", "several plans", "revised policy", "host closed", "host draining", "host unavail",
}

// drawLend draws a policy whose consumers own hosts and lend them.
func drawLend(t *rapid.T) site {
	s := drawOwning(t, true)
	for i := range s.plans {
		m := &s.plans[i]
		if once(t, "public grace", 6) {
			m.settings = append(m.settings,
				fmt.Sprintf("public_pool: {grace: %ds}", choose(t, "grace of the public pool", 0, 60, 60, 90)))
		}
		if once(t, "for preference", 4) {
			m.settings = append(m.settings, "reclaim_for_preference: true")
		}
		s.drawGraces(t, m)
	}
	s.drawRuntimes(t)
	if s.waves {
		s.drawWaves(t)
	}
	return s
}

// wavesParent are the parents of the first consumers where there are waves: an owner with a child that has nothing of
// its own, and one that has, with two children; an outsider.
var wavesParent = [...]int{-1, -1, 0, 0, 3, 3}

// drawWaves makes cases in which what the first consumer's branch lends is taken back step by step, first for those far
// from its owners, then for those nearer, so that the reclaims for the former are still under way: sets end for others,
// and are taken over.
func (s *site) drawWaves(t *rapid.T) {
	for k := range s.consumers {
		s.consumers[k].grace = choose(t, "grace in waves", 60, 180, 300, 300, 300)
	}
	for i := range s.plans {
		m := &s.plans[i]
		m.cut = 0
		for k := range m.members {
			e := &m.members[k]
			if e.lendGrace = ""; once(t, "some grace", 8) {
				e.lendGrace = fmt.Sprintf(", %s: %ds", choose(t, "of", "lend_grace", "private_pool_grace"),
					choose(t, "at most", 60, 180))
			}
			d := m.deeds[0][e.consumer]
			up := s.consumers[e.consumer].parent
			if d.rules, d.reserve = nil, ""; e.consumer != 0 && up < 0 {
				continue // it owns nothing
			}
			for _, z := range m.zones {
				switch r := (ownRule{form: "percent", zone: z, n: 100}); {
				case e.consumer == 0:
					d.rules = append(d.rules, r)
				case within(&r, m.deeds[0][up].rules) &&
					(e.consumer == 3 || e.consumer != 2 && once(t, "owns of it", 2)):
					if once(t, "a part", 3) {
						r.form, r.parts = "per_host", map[string]string{choose(t, "of dimension", s.dims...): "50%"}
					}
					d.rules = append(d.rules, r)
				}
			}
			if once(t, "reserve in waves", 8) {
				d.reserve = "percent: 30"
			}
		}
		s.settleDeeds(t, m)
	}
}

// twin adds a row like the last one to the same allocation: their units take turns, so that each gets a set of its own.
func (w *world) twin(t *rapid.T, rows []oracle.Demand) []oracle.Demand {
	row := rows[len(rows)-1]
	if row.Sub += "t"; w.wave > 1 || once(t, "no twin", 3) ||
		slices.ContainsFunc(rows, func(r oracle.Demand) bool { return key(r) == key(row) }) {
		return rows
	}
	row.Units = choose[int64](t, "units of a twin", 8, 14, 20)
	rows[len(rows)-1].Units = row.Units
	return append(rows, row)
}

// nearness is how many of a leaf and those above it own something.
func (w *world) nearness(leaf string) (n int) {
	for k, c := range w.consumers {
		for _, m := range w.plans {
			if d := m.deeds[0][k]; d != nil && len(d.rules) > 0 && beneath(leaf, c.path) {
				n++
				break
			}
		}
	}
	return n
}

// ofWave are the leaves whose turn it is: the farthest from owners in the first step, then those nearer.
func (w *world) ofWave(t *rapid.T, leaves []string) []string {
	if once(t, "out of turn", 5) {
		return leaves
	}
	var far []int
	for _, leaf := range leaves {
		if n := w.nearness(leaf); !slices.Contains(far, n) {
			far = append(far, n)
		}
	}
	slices.Sort(far)
	turn := far[min(w.wave, len(far)-1)]
	return slices.DeleteFunc(slices.Clone(leaves), func(leaf string) bool { return w.nearness(leaf) != turn })
}

// drawGraces draws what grace lenders and pools allow.
func (s *site) drawGraces(t *rapid.T, m *mdPlan) {
	for k := range m.members {
		e := &m.members[k]
		e.lendGrace = ""
		for _, key := range []string{"lend_grace", "private_pool_grace"} {
			if once(t, key, 4) {
				e.lendGrace += fmt.Sprintf(", %s: %ds", key, choose(t, "at most", 0, 60, 60, 90, 120, 180))
			}
		}
	}
}

// now are the leaves that may want something now: in cases of lending not those that come late, and later on these
// above all.
func (w *world) now(t *rapid.T, leaves []string) []string {
	switch {
	case !w.lend:
		return leaves
	case w.waves:
		return w.ofWave(t, leaves)
	}
	if w.late == nil {
		w.late = map[string]bool{}
		for k, c := range w.consumers {
			owns := false
			for _, m := range w.plans {
				owns = owns || m.deeds[0][k] != nil && len(m.deeds[0][k].rules) > 0
			}
			w.late[c.path] = once(t, "late", 4) != owns // most of those who own something, few of the others
		}
	}
	var list []string
	if len(w.robbed) > 0 && !once(t, "anybody else", 3) {
		list = slices.DeleteFunc(slices.Clone(leaves), func(leaf string) bool {
			return !slices.ContainsFunc(w.robbed, func(up string) bool { return beneath(leaf, up) })
		})
	} else if !w.began || !once(t, "anybody", 2) {
		list = slices.DeleteFunc(slices.Clone(leaves), func(leaf string) bool { return w.late[leaf] != w.began })
	}
	if len(list) == 0 {
		return leaves
	}
	return list
}

// rob notes whose parcels are being taken back from others, be it for others: there owners have most to say.
func (w *world) rob(held []oracle.Units) {
	w.robbed = nil
	for _, u := range held {
		if u.Leaving > 0 && u.Lender != "" {
			w.robbed = append(w.robbed, u.Lender)
		}
	}
}

// drains tells whether any host drains.
func (w *world) drains() bool {
	for _, h := range w.hosts {
		if h.State == "draining" {
			return true
		}
	}
	return false
}

// undrain makes all hosts ok that drain.
func (w *world) undrain() (rows []oracle.Host) {
	for _, name := range slices.Sorted(maps.Keys(w.hosts)) {
		if h := w.hosts[name]; h.State == "draining" {
			h.State = "ok"
			w.hosts[name] = h
			rows = append(rows, oracle.Host{Name: name, State: h.State})
		}
	}
	return rows
}

// drawModestShare draws a share that seldom keeps its consumer from pools.
func (s *site) drawModestShare(t *rapid.T) share {
	e := share{priority: choose(t, "priority", 0, 0, 0, 1, 1, 2), ratio: choose(t, "ratio", 1, 1, 1, 1, 2, 2, 3, 7),
		modest: once(t, "modest", 8)}
	if once(t, "no share", 16) {
		e.ratio = 0
	}
	if once(t, "limit", 8) {
		e.limit = map[string]int{choose(t, "limited", s.dims...): between(t, "most", 1, 12)}
	}
	return e
}

// small draws a unit size of which most hosts hold several.
func (w *world) small(t *rapid.T) map[string]int64 {
	size := map[string]int64{}
	for _, d := range w.dims {
		size[d] = choose[int64](t, "small", 0, 1, 1, 1, 2, 2, 3)
	}
	size[choose(t, "not zero", w.dims...)] += choose[int64](t, "more of it", 1, 1, 1, 2)
	return size
}

// countOwn counts what comes up in cases in which consumers own hosts.
func (p *player) countOwn(n map[string]int) {
	for _, r := range p.seen {
		for _, o := range r.Owned {
			n["owned "+o.Action]++
		}
		for _, g := range r.Grants {
			n["grant "+g.Origin]++
			switch {
			case g.Lender != "" && g.Pool == "/":
				n["grant lent in the public pool"]++
			case g.Lender != "":
				n["grant lent in a private pool"]++
			}
		}
	}
	for _, m := range p.plans {
		for _, e := range m.members {
			for _, key := range []string{"lend_grace", "private_pool_grace"} {
				if strings.Contains(e.lendGrace, key) {
					n[key]++
				}
			}
			d := m.deeds[0][e.consumer]
			for _, r := range d.rules {
				n["own "+r.form]++
				if p.consumers[e.consumer].parent >= 0 {
					n["own nested"]++
				}
			}
			if form, _, ok := strings.Cut(d.reserve, ":"); ok {
				n["own reserve "+form]++
			}
		}
	}
}
