package explain

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Pair is a figure under the policy that is in force and under another one; null where a policy has no such figure.
type Pair struct {
	Before *int64 `json:"before"`
	After  *int64 `json:"after"`
}

// grows is how much more it is after than before, what is not there counting as nothing.
func (p Pair) grows() int64 { return value(p.After) - value(p.Before) }

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// Share is a Pair of parts of a pool.
type Share struct {
	Before *float64 `json:"before"`
	After  *float64 `json:"after"`
}

// Change is what another policy does to a consumer of a plan. Demand, Held, Quota, Short and Settled are in slots in
// slot plans, else in units; MD plans have Usage in place of Quota. Consumers have the paths of the other policy where
// that renames them.
type Change struct {
	Plan      string `json:"plan"`
	Consumer  string `json:"consumer"`
	Leaf      bool   `json:"leaf"`
	Demand    Pair   `json:"demand"`
	Held      Pair   `json:"held"`
	Quota     *Pair  `json:"quota,omitempty"`
	Usage     *Share `json:"usage_quota,omitempty"` // of the public pool
	Short     Pair   `json:"short"`
	Reclaimed Pair   `json:"reclaimed"`         // units that the cycle puts under reclaim
	Settled   *Pair  `json:"settled,omitempty"` // what it holds once nothing changes any more
}

// Taking is what the cycle puts under reclaim under the other policy: of a consumer, for another, or for a rule.
type Taking struct {
	Plan     string   `json:"plan"`
	Consumer string   `json:"consumer"`
	For      *string  `json:"for"` // null: a rule
	Reason   string   `json:"reason"`
	Units    int64    `json:"units"`
	Earliest string   `json:"earliest"` // deadlines
	Latest   string   `json:"latest"`
	Rules    []string `json:"rules"`
}

// Totals are sums over the cluster, in units.
type Totals struct {
	Wanted    int64 `json:"units_wanted"`
	Held      int64 `json:"units_held"`
	Short     int64 `json:"units_short"`
	Granted   int64 `json:"units_granted"`
	Reclaimed int64 `json:"units_reclaimed"`
}

// Settling tells how long it takes until nothing changes any more, with no new input.
type Settling struct {
	Cycles int64  `json:"cycles"` // after the one compared
	Now    string `json:"now"`    // of the last of them
	Stable bool   `json:"stable"` // false: it was not seen to the end
	Held   int64  `json:"units_held"`
}

// Comparison is a cycle under the policy in force, and the same cycle under another one. Nothing of it is committed.
type Comparison struct {
	Cycle    int64        `json:"cycle"`
	Now      string       `json:"now"`
	Revision int64        `json:"revision"` // in force
	Before   Totals       `json:"before"`
	After    Totals       `json:"after"`
	Settled  *[2]Settling `json:"settled,omitempty"` // before, after
	Changes  []Change     `json:"changes"`           // of those to whom it makes a difference
	Same     int          `json:"same"`              // how many others there are
	Reclaims []Taking     `json:"reclaims"`

	ChangesMore  int `json:"changes_more,omitempty"` // rows of either that an answer left out
	ReclaimsMore int `json:"reclaims_more,omitempty"`
}

// Outcome has the figures of a cycle that a comparison needs, copied so that the cycle's tables can be freed.
type Outcome struct {
	summary decision.Summary
	policy  *plan.Policy
	order   []key
	of      map[key]*standing
	taken   []Taking
}

// standing is a consumer's figures.
type standing struct {
	demand, held, short, quota, reclaimed int64
	slots, shared                         bool
	usage                                 float64
}

// Take keeps what a comparison needs of a cycle that was decided under a policy. O(consumers + reclaims).
func Take(c *decision.Cycle, p *plan.Policy) *Outcome {
	o := &Outcome{summary: c.Summary, policy: p, of: map[key]*standing{}}
	consumers := c.Consumers.Schema().Table()
	v := view(&consumers)
	for row := range v.Rows {
		k := key{v.text("plan", row), v.text("consumer", row)}
		o.order = append(o.order, k)
		o.of[k] = &standing{
			demand: v.num("demand", row), held: v.num("held", row), short: v.num("short", row),
			quota: v.num("quota", row),
			slots: v.text("policy", row) != "md",
		}
	}
	shares := c.Shares.Schema().Table()
	v = view(&shares)
	for row := range v.Rows {
		if s := o.of[key{v.text("plan", row), v.text("consumer", row)}]; s != nil && v.text("pool", row) == "/" {
			s.shared, s.usage = true, v.real("usage_quota", row)
		}
	}
	reclaims := c.Reclaims.Schema().Table()
	o.take(view(&reclaims))
	return o
}

// take sums what the cycle put under reclaim.
func (o *Outcome) take(v tableView) {
	type group struct{ plan, consumer, taker, reason string }
	at := map[group]int{}
	first, last := []int64{}, []int64{}
	for row := range v.Rows {
		if v.text("action", row) != "issued" {
			continue
		}
		g := group{v.text("plan", row), v.text("consumer", row), v.text("for_consumer", row), v.text("reason", row)}
		i, ok := at[g]
		if !ok {
			i = len(o.taken)
			at[g] = i
			t := Taking{Plan: g.plan, Consumer: g.consumer, Reason: g.reason,
				Rules: o.rules(g.plan, g.consumer, g.reason)}
			if g.taker != "" {
				t.For = &g.taker
			}
			o.taken, first, last = append(o.taken, t), append(first, math.MaxInt64), append(last, 0)
		}
		units, due := v.num("units", row), v.num("deadline", row)
		o.taken[i].Units += units
		first[i], last[i] = min(first[i], due), max(last[i], due)
		for path := g.consumer; path != ""; path = path[:strings.LastIndexByte(path, '/')] {
			if s := o.of[key{g.plan, path}]; s != nil {
				s.reclaimed += units
			}
		}
	}
	for i := range o.taken {
		o.taken[i].Earliest, o.taken[i].Latest = instant(first[i]), instant(last[i])
	}
}

// rules are those by which a consumer gives something back.
func (o *Outcome) rules(name, consumer, reason string) []string {
	w := reclaimed[reason]
	for i := range o.policy.MDPlans {
		if o.policy.MDPlans[i].Name == name {
			return w.md
		}
	}
	for i := range o.policy.SlotPlans {
		s := &o.policy.SlotPlans[i]
		n, ok := o.policy.Find(consumer)
		window := s.WindowAt(o.summary.NowUS, o.policy.Location)
		if o.policy.Groups[s.Group].Name == name && ok && w.hybrid != nil &&
			s.Windows[window].Policy[n] == plan.Hybrid {
			return w.hybrid
		}
	}
	return w.slots
}

// Digest is that of the cycle's decisions (D-16), where its summary has it.
func (o *Outcome) Digest() string { return o.summary.Digest }

// Ahead is an Outcome and what it leads to, with no new input.
type Ahead struct {
	*Outcome
	End *Outcome // nil: it was not looked at
}

// See keeps the outcome of the first cycle, and the outcome of the last (end).
func (a *Ahead) See(c *decision.Cycle, p *plan.Policy, end bool) {
	if a.Outcome == nil {
		a.Outcome = Take(c, p)
	}
	if end {
		a.End = Take(c, p)
	}
}

// Compare sets a cycle under the policy in force beside the same one under another.
func Compare(before, after Ahead) *Comparison {
	s := &before.summary
	c := &Comparison{
		Cycle: s.Cycle, Now: instant(s.NowUS), Revision: s.Revision, Before: totals(s), After: totals(&after.summary),
		Changes: []Change{}, Reclaims: after.taken,
	}
	if c.Reclaims == nil {
		c.Reclaims = []Taking{}
	}
	slices.SortStableFunc(c.Reclaims, func(a, b Taking) int { return cmp.Compare(b.Units, a.Units) })
	if before.End != nil && after.End != nil {
		c.Settled = &[2]Settling{settling(before), settling(after)}
	}
	heir := map[string]string{} // by the path in force: the other policy's
	for n, was := range after.policy.RenamedFrom {
		if _, ok := before.policy.Find(was); was != "" && ok {
			heir[was] = after.policy.Path[n]
		}
	}
	was := map[key]key{} // by what it is called after: before
	order := slices.Clone(after.order)
	for _, k := range before.order {
		now := k
		if path := heir[k.consumer]; path != "" {
			now.consumer = path
		}
		if was[now] = k; after.of[now] == nil {
			order = append(order, now)
		}
	}
	for _, k := range order {
		change := Change{Plan: k.plan, Consumer: k.consumer, Leaf: leaf(after.policy, before.policy, k.consumer)}
		old, ok := was[k]
		if !ok {
			old = k
		}
		if change.fill(before, after, old, k) {
			c.Changes = append(c.Changes, change)
		} else {
			c.Same++
		}
	}
	return c
}

// leaf tells whether a consumer has no others below it, by the first of the policies that knows it.
func leaf(first, second *plan.Policy, path string) bool {
	for _, p := range []*plan.Policy{first, second} {
		if n, ok := p.Find(path); ok {
			return p.Leaf(n)
		}
	}
	return false
}

func totals(s *decision.Summary) Totals {
	return Totals{s.UnitsWanted, s.UnitsHeld, s.UnitsShort, s.UnitsGranted, s.UnitsReclaimed}
}

func settling(a Ahead) Settling {
	s := &a.End.summary
	return Settling{s.Cycle - a.summary.Cycle, instant(s.NowUS), s.Stable(), s.UnitsHeld}
}

// fill sets the figures of a consumer and tells whether any of them differ.
func (c *Change) fill(before, after Ahead, old, k key) (differs bool) {
	a, b := before.of[old], after.of[k]
	pair := func(a, b *standing, of func(*standing) int64) (p Pair) {
		if a != nil {
			p.Before = new(of(a))
		}
		if b != nil {
			p.After = new(of(b))
		}
		differs = differs || (a == nil) != (b == nil) || value(p.Before) != value(p.After)
		return p
	}
	c.Demand = pair(a, b, func(s *standing) int64 { return s.demand })
	c.Held = pair(a, b, func(s *standing) int64 { return s.held })
	c.Short = pair(a, b, func(s *standing) int64 { return s.short })
	c.Reclaimed = pair(a, b, func(s *standing) int64 { return s.reclaimed })
	if a != nil && a.slots || b != nil && b.slots {
		c.Quota = new(pair(a, b, func(s *standing) int64 { return s.quota }))
	} else {
		c.Usage = &Share{}
		for _, side := range []struct {
			s  *standing
			to **float64
		}{{a, &c.Usage.Before}, {b, &c.Usage.After}} {
			if side.s != nil && side.s.shared {
				*side.to = new(side.s.usage)
			}
		}
		u := c.Usage
		differs = differs || (u.Before == nil) != (u.After == nil) || u.Before != nil && *u.Before != *u.After
	}
	if before.End != nil && after.End != nil {
		c.Settled = new(pair(before.End.of[old], after.End.of[k], func(s *standing) int64 { return s.held }))
	}
	return differs
}
