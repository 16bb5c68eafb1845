package cycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// TestExclusive plays random plans with exclusive placement: the engine against the oracle, one holder a host, and a
// fixed point.
func TestExclusive(t *testing.T) {
	setCases(t, casesMin, 1)
	rapid.Check(t, func(t *rapid.T) { newLodging(t, false).play(t) })
}

// TestExclusiveHybrid plays them with what the oracle does not know there: hybrid branches, hosts that are taken over
// as running with units of several holders, and plans that become exclusive, or serve others by it.
func TestExclusiveHybrid(t *testing.T) {
	setCases(t, casesMin, 1)
	rapid.Check(t, func(t *rapid.T) { newLodging(t, true).play(t) })
}

// lodging is a random case of one plan with exclusive placement.
type lodging struct {
	hybrid       bool
	even         bool   // draws are even, from a seed; else rapid's own, which finds small cases
	drawn        uint64 // the state of even draws
	lodgers      []lodger
	settings     []string
	text         string
	policy       *plan.Policy
	hosts        map[string]oracle.Host
	wanted       []oracle.Demand
	oracle       *oracle.Cluster // nil: none
	engine, twin *cluster.State
	runner       cycle.Runner
	out, twinOut decision.Cycle
	nowUS        int64
	log          strings.Builder
}

// lodger is a consumer.
type lodger struct {
	path, policy string
	leaf         bool
	up           int // -1: the first level
	grace        int
	terms        string // of its entry, but for what it owns
	owns         int    // of a branch: beyond its children's
}

func newLodging(t *rapid.T, hybrid bool) *lodging {
	c := &lodging{hybrid: hybrid, hosts: map[string]oracle.Host{}, nowUS: startUS}
	if c.even = !odds(t, "small", 3); c.even {
		c.drawn = uint64(rapid.Int64().Draw(t, "seed")) * 0xd1342543de82ef95
	}
	leaves := c.upTo(t, "leaves", 1, 6)
	for n := 0; n < leaves; {
		path, below := fmt.Sprintf("/c%d", len(c.lodgers)), 0
		if leaves-n > 1 && c.odds(t, "branch", 3) {
			below = c.upTo(t, "below", 1, leaves-n)
		}
		policy := one(c, t, "policy", "ownership", "share_ratio", "ownership", "ownership")
		if hybrid && c.odds(t, "hybrid", 2) {
			policy = "hybrid"
		}
		up := len(c.lodgers)
		c.lodgers = append(c.lodgers, lodger{path: path, policy: policy, leaf: below == 0, up: -1})
		for i := range below {
			c.lodgers = append(c.lodgers,
				lodger{path: fmt.Sprintf("%s/l%d", path, i), policy: policy, leaf: true, up: up})
		}
		n += max(1, below)
	}
	for i := range c.lodgers {
		if c.hybrid && c.lodgers[i].policy == "share_ratio" {
			c.lodgers[i].policy = "ownership" // the two do not mix
		}
		c.lodgers[i].grace = one(c, t, "grace", 0, 0, 60, 90, 150)
		c.drawTerms(t, i)
	}
	c.drawSettings(t, one(c, t, "kind", "allocation", "allocation", "consumer"))
	c.parse(t)
	var err error
	if c.engine, err = cluster.New(c.policy); err != nil {
		t.Fatal(err)
	}
	if c.twin, err = cluster.New(c.policy); err != nil {
		t.Fatal(err)
	}
	if !hybrid {
		c.oracle = oracle.New(c.policy)
	}
	return c
}

// upTo draws a number.
func (c *lodging) upTo(t *rapid.T, label string, least, most int) int {
	if !c.even {
		return upTo(t, label, least, most)
	}
	c.drawn += 0x9e3779b97f4a7c15
	v := (c.drawn ^ c.drawn>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return least + int((v^v>>31)%uint64(most-least+1))
}

// odds is true once in n times.
func (c *lodging) odds(t *rapid.T, label string, n int) bool { return c.upTo(t, label, 1, n) == n }

// one draws one of some values.
func one[T any](c *lodging, t *rapid.T, label string, of ...T) T {
	return of[c.upTo(t, label, 0, len(of)-1)]
}

// drawSettings draws what the plan says; whom a host serves stays.
func (c *lodging) drawSettings(t *rapid.T, kind string) {
	c.settings = []string{"placement: exclusive", "exclusive: " + kind}
	set := func(n int, line string) {
		if c.odds(t, line, n) {
			c.settings = append(c.settings, line)
		}
	}
	set(3, "recall: before_borrow")
	set(5, "share_reclaim: false")
	set(4, "share_quota: static")
	set(4, fmt.Sprintf("reclaim_budget: %d", c.upTo(t, "budget", 1, 4)))
	if c.odds(t, "confirmed", 5) {
		c.settings = append(c.settings, "release: confirmed",
			fmt.Sprintf("overdue_after: %ds", one(c, t, "overdue", 0, 60)))
	}
}

// drawTerms draws a consumer's figures anew.
func (c *lodging) drawTerms(t *rapid.T, i int) {
	e := &c.lodgers[i]
	e.terms, e.owns = "", 0
	add := func(format string, a ...any) { e.terms += fmt.Sprintf(", "+format, a...) }
	if c.odds(t, "rank", 3) {
		add("rank: %d", c.upTo(t, "rank", 0, 2))
	}
	if e.policy == "hybrid" {
		if e.owns = one(c, t, "owns", 0, 2, 4, 5); e.leaf && e.owns > 0 && c.odds(t, "reserves", 2) {
			add("reserves: %d", c.upTo(t, "reserve", 1, e.owns))
		}
		if c.odds(t, "limit", 6) {
			add("limit: %d", c.upTo(t, "most", 6, 12))
		}
		return
	}
	ratio := one(c, t, "ratio", 1, 1, 1, 2, 2, 3, 3, 0)
	if e.up >= 0 || !e.leaf {
		ratio = max(1, ratio) // the static quota of a branch of which nobody may have anything is no matter of hosts
	}
	share := fmt.Sprintf("ratio: %d", ratio)
	if c.odds(t, "max", 6) {
		share += fmt.Sprintf(", max: %d", c.upTo(t, "most", 1, 12))
	}
	add("share: {%s}", share)
	if e.policy != "ownership" {
		return
	}
	if !e.leaf {
		e.owns = one(c, t, "family", 0, 0, 1, 4)
		return
	}
	e.owns = one(c, t, "owns", 0, 5, 8, 12, 20, 4, 3, 1, 0)
	if !c.odds(t, "lend", 3) {
		add("lend: {limit: %d%s}", one(c, t, "lent", 100, 100, 8, 4), one(c, t, "to", "", "", ", to: [siblings]"))
	}
	if !c.odds(t, "borrow", 3) {
		add("borrow: {%s}", one(c, t, "borrowed", "", "", "limit: 4", "limit: 6, from: [siblings, any]"))
	}
}

// owned is what a consumer owns, as a branch at least what its children do.
func (c *lodging) owned(i int) int {
	n := c.lodgers[i].owns
	for k := range c.lodgers {
		if c.lodgers[k].up == i {
			n += c.owned(k)
		}
	}
	return n
}

// parse writes the policy file and reads it.
func (c *lodging) parse(t *rapid.T) {
	var b strings.Builder
	b.WriteString("stint: 1\ndimensions: [slots]\nresource_groups: [{name: G, select: \"select(in)\"}]\nconsumers:\n")
	for _, e := range c.lodgers {
		fmt.Fprintf(&b, "  - {path: %s, reclaim_grace: %ds}\n", e.path, e.grace)
	}
	b.WriteString("slot_plans:\n  - resource_group: G\n")
	for _, line := range c.settings {
		b.WriteString("    " + line + "\n")
	}
	sum := 0
	for i, e := range c.lodgers {
		if e.up < 0 {
			sum += c.owned(i)
		}
	}
	if c.hybrid {
		fmt.Fprintf(&b, "    configured_slots: %d\n", max(1, sum))
	}
	b.WriteString("    consumers:\n")
	for i, e := range c.lodgers {
		b.WriteString("      - {path: " + e.path)
		if e.up < 0 {
			b.WriteString(", policy: " + e.policy)
		}
		if e.policy != "share_ratio" && c.owned(i) > 0 {
			fmt.Fprintf(&b, ", owns: %d", c.owned(i))
		}
		b.WriteString(e.terms + "}\n")
	}
	c.text = b.String()
	var err error
	if c.policy, err = plan.Parse("case.yaml", []byte(c.text)); err != nil {
		t.Skip(err)
	}
	fmt.Fprintf(&c.log, "policy:\n%s", c.text)
}

func (c *lodging) play(t *rapid.T) {
	whole := false
	defer func() {
		if !whole {
			t.Logf("%s", c.log.String())
		}
	}()
	steps := c.upTo(t, "steps", 1, 8)
	for i := range steps {
		if c.oracle == nil && (i > 0 || steps == 1) {
			c.convert(t, i == steps-1)
		}
		c.step(t, i == 0)
		if c.oracle == nil && i == 0 {
			c.takeOver(t)
		}
		for range c.upTo(t, "cycles", 1, 4) {
			c.run(t)
		}
	}
	for n := 0; !c.out.Summary.Stable(); n++ {
		if n == cyclesMax {
			t.Fatalf("no fixed point after %d cycles with the same input", n)
		}
		c.run(t)
	}
	for range 2 {
		before := stateOf(&c.out)
		if c.run(t); !c.out.Summary.Stable() || stateOf(&c.out) != before {
			t.Fatalf("CYC-2: the fixed point does not stay")
		}
	}
	if c.oneHolder(t); !slices.Contains(c.settings, "placement: exclusive") {
		t.Fatalf("the plan is not exclusive")
	}
	for i := range c.out.Shortfalls.UnitsShort {
		if s := &c.out.Shortfalls; s.Reason.At(i) == "waiting_for_reclaim" {
			t.Fatalf("%v waits for ever", keyAt(s.Key, i))
		}
	}
	whole = true
}

// step changes some of the input.
func (c *lodging) step(t *rapid.T, first bool) {
	if !first && c.odds(t, "policy", 4) {
		for i := range c.lodgers {
			if c.odds(t, "terms", 3) {
				c.drawTerms(t, i)
			}
		}
		c.setPolicy(t)
	}
	c.release(t)
	c.changeHosts(t, first)
	if first || !c.odds(t, "demand", 4) {
		c.demand(t)
	}
}

// convert changes whom hosts serve; the last one makes the plan exclusive.
func (c *lodging) convert(t *rapid.T, last bool) {
	kind := one(c, t, "kind", "allocation", "consumer", "none")
	switch {
	case kind != "none":
		c.settings = append([]string{"placement: exclusive", "exclusive: " + kind}, c.settings[2:]...)
	case last:
		c.settings = append([]string{"placement: exclusive", "exclusive: allocation"}, c.settings[2:]...)
	default:
		c.settings = append([]string{"placement: stacked", "allow_overcommit: false"}, c.settings[2:]...)
	}
	c.setPolicy(t)
}

// takeOver takes units over as running where there is room, whoever is there.
func (c *lodging) takeOver(t *rapid.T) {
	for _, r := range c.wanted {
		h := hostName(c.upTo(t, "host", 0, 7))
		if c.hosts[h].Attr["in"] != true || c.hosts[h].State == "unavail" || !c.odds(t, "running", 2) {
			continue
		}
		row := oracle.Holding{Consumer: r.Consumer, Allocation: r.Allocation, Sub: r.Sub, Host: h, Units: 1}
		fmt.Fprintf(&c.log, "running %+v\n", row)
		for junk, s := range map[int]*cluster.State{0: c.engine, 3: c.twin} {
			if err := s.AddRunning("s", (tables{c.policy, junk}).holdings([]oracle.Holding{row})); err != nil {
				fmt.Fprintf(&c.log, "%v\n", err) // no room: the same in both
			}
		}
	}
}

// setPolicy puts the policy as it stands now in force.
func (c *lodging) setPolicy(t *rapid.T) {
	c.parse(t)
	if c.oracle != nil {
		c.oracle.SetPolicy(c.policy, false)
	}
	for _, s := range []*cluster.State{c.engine, c.twin} {
		if err := s.SetPolicy(c.policy, false); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *lodging) changeHosts(t *rapid.T, first bool) {
	var rows []oracle.Host
	for h := range one(c, t, "hosts", 8, 7, 5, 3, 2, 1) {
		name := hostName(h)
		if !first && !c.odds(t, "changes", 5) {
			continue
		}
		state := "ok"
		if c.odds(t, "state", 6) || !first && c.odds(t, "state", 2) {
			state = one(c, t, "state", "closed", "draining", "unavail", "closed")
		}
		row := oracle.Host{Name: name, State: state, Size: map[string]int64{"slots": int64(c.upTo(t, "slots", 1, 5))},
			Attr: map[string]any{"fast": c.odds(t, "fast", 2), "in": !c.odds(t, "out", 8),
				"speed": float64(c.upTo(t, "speed", 1, 3))}}
		if old, ok := c.hosts[name]; ok {
			row.Attr["fast"], row.Attr["speed"] = old.Attr["fast"], old.Attr["speed"]
			if leaving := []string{"closed", "draining"}; slices.Contains(leaving, old.State) &&
				slices.Contains(leaving, state) {
				row.State = old.State
			}
			if row.Attr["in"] == false {
				row.Size = old.Size // how far a host outside of the group may shrink is no matter of holders
			}
		}
		rows, c.hosts[name] = append(rows, row), row
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(&c.log, "hosts %v\n", rows)
	for junk, s := range map[int]*cluster.State{0: c.engine, 3: c.twin} {
		if err := s.SetHosts((tables{c.policy, junk}).hosts(rows), first); err != nil {
			t.Fatal(err)
		}
	}
	if c.oracle != nil {
		c.oracle.SetHosts(rows, first)
	}
}

func (c *lodging) demand(t *rapid.T) {
	before := c.wanted
	c.wanted = nil
	for _, e := range c.lodgers {
		if !e.leaf {
			continue
		}
		if before != nil && !c.odds(t, "leaf", 3) { // the others go on as they are
			for _, row := range before {
				if row.Consumer == e.path {
					c.wanted = append(c.wanted, row)
				}
			}
			continue
		}
		for a := range one(c, t, "allocations", 0, 0, 1, 1, 2) {
			for s := range one(c, t, "subs", 1, 1, 2) {
				row := oracle.Demand{Plan: "G", Consumer: e.path, Allocation: fmt.Sprintf("a%d", a),
					Sub:        fmt.Sprintf("s%d", s),
					Units:      int64(c.upTo(t, "units", 0, 5)),
					Size:       map[string]int64{"slots": one(c, t, "slots", int64(1), 1, 1, 2, 3)},
					MaxPerHost: plan.Unlimited}
				if c.odds(t, "requirement", 4) {
					row.Requirement = one(c, t, "requirement", "select(fast)", "select(slots > 2)",
						"select(slots > 0) order(-speed)")
				}
				if c.odds(t, "per host", 5) {
					row.MaxPerHost = int64(c.upTo(t, "most", 1, 2))
				}
				c.wanted = append(c.wanted, row)
			}
		}
	}
	fmt.Fprintf(&c.log, "demand %+v\n", c.wanted)
	for junk, s := range map[int]*cluster.State{0: c.engine, 3: c.twin} {
		if err := s.SetDemand("s", (tables{c.policy, junk}).demand(c.wanted)); err != nil {
			t.Fatal(err)
		}
	}
	if c.oracle != nil {
		c.oracle.SetDemand("s", c.wanted)
	}
}

// release gives back some of what is held.
func (c *lodging) release(t *rapid.T) {
	var rows []oracle.Holding
	h := &c.out.Holdings
	for i, n := range h.Units {
		if c.hosts[h.Host.At(i)].Attr["in"] == true && c.odds(t, "release", 5) {
			k := keyAt(h.Key, i)
			rows = append(rows, oracle.Holding{Consumer: k.Consumer, Allocation: k.Allocation, Sub: k.Sub,
				Host:  h.Host.At(i),
				Units: int64(c.upTo(t, "units", 1, int(n))), Done: c.odds(t, "done", 2)})
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(&c.log, "release %+v\n", rows)
	for junk, s := range map[int]*cluster.State{0: c.engine, 3: c.twin} {
		if _, _, err := s.Release((tables{c.policy, junk}).holdings(rows)); err != nil {
			t.Fatal(err)
		}
	}
	if c.oracle != nil {
		c.oracle.Release(rows)
	}
}

// run is one cycle of all, and what must hold after it.
func (c *lodging) run(t *rapid.T) {
	c.nowUS += 60e6
	var fresh cycle.Runner
	c.runner.Run(c.engine, c.nowUS, &c.out)
	fresh.Run(c.twin, c.nowUS, &c.twinOut)
	c.runner.Keyframe(&c.out)
	fresh.Keyframe(&c.twinOut)
	fmt.Fprintf(&c.log, "cycle %d\n", c.out.Summary.Cycle)
	if a, b := everything(&c.out), everything(&c.twinOut); decision.Digest(a) != decision.Digest(b) {
		t.Fatalf("INV-8: the twin decides otherwise:\n%s", difference(dump(a), dump(b)))
	}
	if err := c.engine.Verify(); err != nil {
		t.Fatal(err)
	}
	if c.oracle == nil {
		return
	}
	c.oneHolder(t)
	want, got := expected(c.oracle.Cycle()), tabled(&c.out, 1)
	for _, table := range []string{"releases", "grants", "labels", "reclaims", "held", "consumers", "shortfalls"} {
		if !slices.Equal(got[table], want[table]) {
			t.Fatalf("cycle %d: %s: engine and oracle differ:\n%s", c.out.Summary.Cycle, table,
				difference(strings.Join(got[table], "\n"), strings.Join(want[table], "\n")))
		}
	}
}

// oneHolder holds SLOT-31: a host serves one allocation, or one consumer, and counts as one thing.
func (c *lodging) oneHolder(t *rapid.T) {
	h, holder := &c.out.Holdings, map[string]string{}
	for i := range h.Units {
		k := keyAt(h.Key, i)
		who := k.Consumer
		if slices.Contains(c.settings, "exclusive: allocation") {
			who += " " + k.Allocation
		}
		who += label(h.Origin.At(i), h.Lender.At(i), h.Pool.At(i))
		if other := holder[h.Host.At(i)]; other != "" && other != who {
			t.Fatalf("SLOT-31: %s serves %s and %s", h.Host.At(i), who, other)
		}
		holder[h.Host.At(i)] = who
	}
}
