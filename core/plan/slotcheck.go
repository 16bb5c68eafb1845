package plan

import (
	"fmt"
	"strings"
)

// policySet is a set of policies, a bit each.
type policySet uint8

const anyPolicy policySet = 1<<Ownership | 1<<ShareRatio | 1<<Hybrid

func (s policySet) has(k PolicyKind) bool { return s>>k&1 != 0 }

// slotCheck checks the merged settings of one window of a slot plan.
type slotCheck struct {
	check
	s            *SlotPlan
	w            *SlotWindow
	configuredAt value
}

// policies gives each consumer its branch's policy. The sets are of one policy
// each, or of all where the file does not say it, which is then reported.
func (c *slotCheck) policies() []policySet {
	var seen policySet
	var first [3]Node // by policy, the first branch under it
	under := make([]policySet, c.p.Len())
	for n := Node(1); int(n) < c.p.Len(); n++ {
		own, up := c.w.Policy[n], c.p.Parent[n]
		switch {
		case up != Root:
			branch := c.w.Policy[up]
			if own != noPolicy && own != branch && c.s.Member[n] {
				c.say(n, "policy", "%s is under policy %s, its branch is under %s", c.p.Path[n], own, branch)
			}
			c.w.Policy[n], under[n] = branch, under[up]
		case own == noPolicy:
			c.w.Policy[n], under[n] = Ownership, anyPolicy
			if _, given := c.m.find(n, "policy"); c.s.Member[n] && !given {
				c.say(n, "policy", "%s needs a policy: ownership, share_ratio or hybrid", c.p.Path[n])
			}
		default:
			if !seen.has(own) {
				seen |= 1 << own
				first[own] = n
			}
			under[n] = 1 << own
		}
	}
	c.w.Policy[Root] = Ownership
	if seen.has(ShareRatio) && seen.has(Hybrid) {
		c.say(first[Hybrid], "policy",
			"%s is under policy hybrid and %s under share_ratio; these two cannot be mixed in one plan",
			c.p.Path[first[Hybrid]], c.p.Path[first[ShareRatio]])
	}
	return under
}

// figures checks that the numbers add up (SLOT-1, SLOT-20, SLOT-21, SLOT-30).
func (c *slotCheck) figures() {
	size := c.p.Len()
	owned := make([]int64, size) // Σ of the children
	need := make([]int64, size)  // reserve that must fit under a limit
	below := make([]int64, size) // Σ of the children's need
	for n := Node(size - 1); n > Root; n-- {
		if !c.s.Member[n] {
			continue
		}
		c.consumer(n, owned[n], below[n])
		need[n] = max(c.w.Reserves[n], below[n])
		up := c.p.Parent[n]
		owned[up] = saturated(owned[up], c.w.Owns[n])
		below[up] = saturated(below[up], need[n])
	}
	c.whole(owned[Root])
}

// consumer checks one consumer's figures against its children's.
func (c *slotCheck) consumer(n Node, owned, below int64) {
	w, path := c.w, c.p.Path[n]
	if c.p.First[n] != None && owned > w.Owns[n] && (w.Policy[n] == Ownership || w.Policy[n] == Hybrid) {
		c.say(n, "owns", "the children of %s own %d, it owns %d", path, owned, w.Owns[n])
	}
	if w.Policy[n] != Hybrid {
		return
	}
	if w.Reserves[n] > w.Owns[n] {
		c.say(n, "reserves", "%s reserves %d, it owns %d", path, w.Reserves[n], w.Owns[n])
	}
	switch limit := w.Limit[n]; {
	case limit == Unlimited:
	case limit < below:
		c.say(n, "limit", "the limit of %s is %d, the reserves under it are %d", path, limit, below)
	case limit < w.Reserves[n]:
		c.say(n, "limit", "the limit of %s is %d, it reserves %d", path, limit, w.Reserves[n])
	}
}

// whole checks the first level against configured_slots.
func (c *slotCheck) whole(owned int64) {
	configured := c.s.ConfiguredSlots
	if configured == Unlimited {
		return
	}
	var seen policySet
	for n := c.p.First[Root]; n != None; n = c.p.Next[n] {
		if c.s.Member[n] {
			seen |= 1 << c.w.Policy[n]
		}
	}
	switch mixed := seen.has(Ownership) && seen.has(Hybrid); {
	case mixed && owned != configured:
		c.sayAt(c.configuredAt, "the first-level consumers own %d of %d configured slots%s; with ownership and "+
			"hybrid mixed they must own all",
			owned, configured, c.owners())
	case owned > configured && !c.s.AllowOvercommit:
		c.sayAt(c.configuredAt,
			"the first-level consumers own %d of %d configured slots%s (allow_overcommit: true allows it)",
			owned, configured, c.owners())
	}
}

// ownersNamed is how many owners a message names.
const ownersNamed = 5

// owners names the first-level consumers that own slots, and how many each owns.
func (c *slotCheck) owners() string {
	var names []string
	more := 0
	for n := c.p.First[Root]; n != None; n = c.p.Next[n] {
		switch {
		case !c.s.Member[n] || c.w.Owns[n] == 0:
		case len(names) == ownersNamed:
			more++
		default:
			names = append(names, fmt.Sprintf("%s %d", c.p.Path[n], c.w.Owns[n]))
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf(": %s and %d more", strings.Join(names, ", "), more)
	}
	return ": " + strings.Join(names, ", ")
}

// foreignKeys are keys of a consumer's entry that only some policies know.
var foreignKeys = []struct {
	key   string
	under policySet
}{
	{"owns", 1<<Ownership | 1<<Hybrid},
	{"reserves", 1 << Hybrid},
	{"limit", 1 << Hybrid},
	{"lend", 1 << Ownership},
	{"borrow", 1 << Ownership},
	{"share", 1<<Ownership | 1<<ShareRatio},
	{"budget", 1<<Ownership | 1<<ShareRatio},
}

// foreign reports settings that no policy that the consumer is under knows. A
// plan whose windows switch policies may hold the settings of both.
func (r *reader) foreign(p *Policy, list []*entry, uses []policySet) {
	for n, e := range list {
		if e == nil {
			continue
		}
		for _, k := range foreignKeys {
			if v, ok := e.fields.get(k.key); ok && uses[n] != 0 && uses[n]&k.under == 0 {
				r.fault(v, "%s means nothing under policy %s, which %s is under", k.key, uses[n], p.Path[n])
			}
		}
	}
}

// String lists the policies of a set.
func (s policySet) String() string {
	text := ""
	for k := Ownership; k <= Hybrid; k++ {
		if s.has(k) && text != "" {
			text += " or "
		}
		if s.has(k) {
			text += k.String()
		}
	}
	return text
}

// forget clears settings that the window's policy does not know, so that what
// another window uses has no effect here, and all of consumers that take no part.
func (w *SlotWindow) forget(p *Policy, member []bool) {
	for n := range p.Len() {
		k := w.Policy[n]
		if k == ShareRatio {
			w.Owns[n] = 0
		}
		if k != Hybrid {
			w.Reserves[n], w.Limit[n] = 0, Unlimited
		}
		if k != Ownership {
			w.LendLimit[n], w.LendTo[n], w.BorrowLimit[n], w.BorrowFrom[n] = 0, nil, 0, nil
		}
		if k == Hybrid {
			w.Ratio[n], w.Max[n] = 1, Unlimited
		}
		if !member[n] {
			w.Rank[n], w.Policy[n], w.Limit[n], w.Ratio[n], w.Max[n] = 0, 0, 0, 0, 0
		}
	}
}
