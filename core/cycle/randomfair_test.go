package cycle_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// drawFair draws a policy with one MD plan whose consumers crowd a few hosts: there fair reclaim decides most.
func drawFair(t *rapid.T) site {
	s := site{dims: dimensions[:choose(t, "dimensions", 1, 1, 2, 2, 3)], tight: true}
	s.drawGroups(t, 1)
	s.drawConsumers(t, between(t, "consumers", 2, 9))
	for i := range s.consumers {
		s.consumers[i].grace = choose(t, "grace", 0, 0, 60, 90, 180, 300)
	}
	s.drawRuntimes(t)
	m := mdPlan{name: "p0", placement: choose(t, "placement", "best_fit", "stacked", "balanced"), zones: []int{0}}
	if once(t, "plan takes nothing back", 12) {
		m.settings = append(m.settings, "share_reclaim: false")
	}
	m.drawBand(t)
	if once(t, "budget", 4) {
		m.settings = append(m.settings, fmt.Sprint("reclaim_budget: ", choose(t, "reclaim_budget", 1, 1, 2, 3, 5)))
	}
	if m.confirms = once(t, "confirms", 6); m.confirms {
		m.settings = append(m.settings, "release: confirmed")
		if once(t, "overdue", 2) {
			m.settings = append(m.settings, "overdue_after: 90s")
		}
	}
	for k := range s.consumers {
		m.members = append(m.members, member{consumer: k, rank: -1, share: s.drawShare(t)})
	}
	s.drawBudgets(t, &m)
	m.drawHistory(t)
	s.plans = []mdPlan{m}
	return s
}

// drawRuntimes has some consumers protect what has run for a short time, in one case of three.
func (s *site) drawRuntimes(t *rapid.T) {
	if !once(t, "runtimes", 3) {
		return
	}
	for i := range s.consumers {
		if once(t, "young", 3) {
			s.consumers[i].young = fmt.Sprintf(", min_runtime: %ds", choose(t, "min_runtime", 0, 60, 90, 120, 240))
		}
	}
}

// runtimeMost is the longest of them, in minutes.
const runtimeMost = 4

// protects tells whether any consumer protects what has run for a short time.
func (s *site) protects() bool {
	return slices.ContainsFunc(s.consumers, func(c consumer) bool { return c.young != "" })
}

// drawBand draws by how much one must be above or below its quota in a plan.
func (m *mdPlan) drawBand(t *rapid.T) {
	if band := choose(t, "fair_band", "", "", "0", "0.005", "0.1", "0.25", "1"); band != "" {
		m.settings = append(m.settings, "fair_band: "+band)
	}
}

// drawFairShare draws what decides between consumers that crowd each other: mostly ratios.
func (s *site) drawFairShare(t *rapid.T) share {
	e := share{priority: choose(t, "priority", 0, 0, 0, 0, 1), ratio: choose(t, "ratio", 1, 1, 1, 2, 2, 3)}
	if once(t, "ratio 0", 14) {
		e.ratio = 0
	}
	if once(t, "limit", 10) {
		e.limit = map[string]int{choose(t, "limited", s.dims...): between(t, "most", 0, 8)}
	}
	e.modest = once(t, "modest", 12)
	return e
}

// drawFairShapes gives unit sizes of which a host holds several.
func (w *world) drawFairShapes(t *rapid.T, most int) {
	// units that hold much and give little, others the other way round, and one that takes several
	if len(w.dims) > 1 && most > 1 && once(t, "unlike", 3) {
		for _, two := range [][2]int64{{1, 3}, {2, 0}, {4, 1}} {
			size := map[string]int64{}
			for _, d := range w.dims {
				size[d] = 0
			}
			size[w.dims[0]], size[w.dims[1]] = two[0], two[1]
			w.shapes = append(w.shapes, size)
		}
		return
	}
	for range between(t, "shapes", 1, most) {
		size := map[string]int64{}
		for _, d := range w.dims {
			size[d] = int64(choose(t, "unit", 0, 1, 1, 1, 2, 2, 3, 4))
		}
		if d := choose(t, "never zero", w.dims...); size[d] == 0 {
			size[d] = 1
		}
		w.shapes = append(w.shapes, size)
	}
}
