package cycle_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/oracle"
)

// This file makes random cases with gangs (REQ-3): those of MD plans, in which some sub-allocations have min_units.

// gangKinds are the kinds of MD plans with gangs.
var gangKinds = []kind{
	{name: "gang md", draw: ganged(drawMD)}, {name: "gang fair", draw: ganged(drawFair)},
	{name: "gang own", draw: ganged(drawOwn)}, {name: "gang lend", draw: ganged(drawLend)},
}

// ganged draws sites with gangs.
func ganged(draw func(t *rapid.T) site) func(t *rapid.T) site {
	return func(t *rapid.T) site {
		s := draw(t)
		s.gangs = true
		for i := range s.plans {
			if m := &s.plans[i]; odds(t, "gang_wait", 2) {
				m.settings = append(m.settings, fmt.Sprintf("gang_wait: %dm", upTo(t, "minutes", 1, 5)))
			}
		}
		return s
	}
}

// drawGangs draws min_units of rows of MD plans.
func (w *world) drawGangs(t *rapid.T, rows []oracle.Demand) {
	for i := range rows {
		row := &rows[i]
		if w.mdPlan(row.Plan) == nil {
			continue
		}
		if row.MinUnits == 0 || once(t, "other min_units", 5) {
			row.MinUnits = choose[int64](t, "min_units", 1, 1, 2, 2, 3, 4, 6, 9)
		}
		row.MinUnits = max(1, min(row.MinUnits, row.Units))
	}
}

// drawTogether draws by what gangs are together.
func (w *world) drawTogether(t *rapid.T, rows []oracle.Demand) {
	if w.plain {
		return
	}
	for i := range rows {
		switch row := &rows[i]; {
		case row.MinUnits <= 1:
			row.Together = ""
		case once(t, "together", 2):
			row.Together = pick(t, "attribute", "", "rack", "rack", "kind", "type", "zone", "host", "prefer rack",
				"prefer type")
		}
	}
}

// waits tells whether a sub-allocation is a gang that waits for all of its min_units.
func (p *player) waits(k oracle.Key) bool {
	s := p.engine
	for sub, least := range s.Sub.MinUnits {
		if least > 1 && s.Sub.Alloc[sub] != cluster.NoID && s.Plans[s.Sub.Plan[sub]].Name == k.Plan &&
			s.Label.String(s.Sub.Name[sub]) == k.Sub &&
			s.Label.String(s.Alloc.Name[s.Sub.Alloc[sub]]) == k.Allocation &&
			s.Consumer.String(int32(s.Sub.Consumer[sub])) == k.Consumer &&
			s.Forming(cluster.SubID(sub)) {
			return true
		}
	}
	return false
}

// apart tells whether a host has another value than those on which a gang that must be together holds anything. It is
// so of every host while the gang holds units from before it had to be together, on several values: the engine goes by
// one.
func (p *player) apart(k oracle.Key, h oracle.Host) bool {
	r := p.rules[k]
	if r.Together == "" || strings.HasPrefix(r.Together, "prefer ") || min(r.MinUnits, p.wanted[k]) <= 1 {
		return false
	}
	value := func(h oracle.Host) any {
		if r.Together == "host" {
			return h.Name
		}
		return h.Attr[r.Together]
	}
	values := map[any]bool{}
	for at, n := range p.held {
		if at.Key == k && n > 0 {
			values[value(p.hosts[at.host])] = true
		}
	}
	return value(h) == nil || len(values) != 1 || !values[value(h)]
}

// wholeGangs holds REQ-3: after a cycle a gang holds its min_units or none, what is under reclaim left aside.
func (p *player) wholeGangs(t *rapid.T) {
	s := p.engine
	for sub, least := range s.Sub.MinUnits {
		if s.Sub.Alloc[sub] == cluster.NoID || least <= 1 || s.Plans[s.Sub.Plan[sub]].MD == nil {
			continue
		}
		if n := s.Staying(cluster.SubID(sub)); n > 0 && n < least {
			t.Fatalf("REQ-3: %d of a gang of %d stay of %s", n, least, s.Consumer.String(int32(s.Sub.Consumer[sub])))
		}
	}
}

// TestGangs plays random cases with gangs.
func TestGangs(t *testing.T) {
	setCases(t, casesMin/3, 1)
	for _, k := range gangKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { play(t, k) })
		})
	}
}
