package decision

import (
	"fmt"
	"testing"
)

// TestFreeze fills a cycle, freezes it, and empties it: the copy still says what the cycle did.
func TestFreeze(t *testing.T) {
	words := &Dicts{
		Plan: Words{"p"}, Source: Words{"s"}, Consumer: Words{"/", "/A"}, Label: Words{"", "a"}, Host: Words{"h"},
		Dimension: Words{"ncpus"}, Detail: Words{}, Device: Words{},
	}
	var c Cycle
	fill := func(units int64) {
		c.ResetEvents(words)
		c.ResetStates(words)
		c.ResetKeyframe(words)
		c.Grants.Key.Add(0, 1, 1, 0)
		for _, col := range []*Coded{&c.Grants.Source, &c.Grants.Host, &c.Grants.Origin, &c.Grants.Pool} {
			col.Add(0)
		}
		c.Grants.Lender.Add(Null)
		c.Grants.Device.Add(Null)
		c.Grants.Units = append(c.Grants.Units, units)
		at, n := c.Consumers.ExtendMD(1), &c.Consumers
		n.Plan.Code[at], n.Consumer.Code[at], n.Policy.Code[at] = 0, 1, PolicyMD
		n.Rank[at], n.Demand[at], n.Held[at], n.Short[at] = 0, units, units, 0
		for _, col := range []*Coded{&c.Ownership.Plan, &c.Ownership.Consumer, &c.Ownership.Host, &c.Ownership.Action,
			&c.Ownership.Dimension} {
			col.Add(0)
		}
		c.Ownership.Amount = append(c.Ownership.Amount, units)
		c.Summary.Restated = true
	}
	same := func(d Dict) Dict { return d }
	fill(7)
	first, want := c.Freeze(nil, same), Digest(c.Tables())
	fill(8)
	if got := Digest(first.Tables()); got != want || first.EventRows() != 2 { // a grant, and a part of a host
		t.Error("a frozen cycle changed with the cycle")
	}
	c.Summary.Restated = false
	second := c.Freeze(first, same)
	if second.Grants.Units[0] != 8 || second.Consumers.Held[0] != 7 {
		t.Error("state tables that were not made anew are not those of the last cycle:", second.Consumers.Held)
	}
	if e := second.Events(); len(e.Consumers.Held) != 0 || fmt.Sprint(e.Grants.Units) != "[8]" {
		t.Error("events:", e)
	}
}
