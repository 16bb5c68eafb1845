package standing

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Requests is the table of what is asked for: a row for each sub-allocation, in no order that means anything.
// O(sub-allocations).
func (k *Columns) Requests() *decision.Table {
	var t decision.SubAllocations
	k.fill(&t, k.standing(), nil)
	all := t.Table()
	all.Column("wanted").Null, all.Column("wanted").Optional = nil, false
	named := func(names ...string) (some []decision.Column) {
		for _, name := range names {
			some = append(some, *all.Column(name))
		}
		return some
	}
	sizes := all.Columns[len(all.Columns)-len(t.Size.Names):]
	return &decision.Table{Name: "requests", Rows: all.Rows, Columns: slices.Concat(
		named("plan", "source", "consumer", "allocation", "sub"), sizes,
		named("requirement", "together", "max_per_host", "min_units", "wanted", "held"))}
}

// standing are the sub-allocations that there are.
func (k *Columns) standing() []int32 {
	subs := make([]int32, 0, len(k.alloc))
	for sub, a := range k.alloc {
		if a != cluster.NoID {
			subs = append(subs, int32(sub))
		}
	}
	return subs
}

// fill appends rows of sub-allocations. words gets the texts and gives them its codes; nil: the rows have the codes and
// dictionaries of the columns.
func (k *Columns) fill(t *decision.SubAllocations, subs []int32, words *cluster.Names) {
	text := func(c *decision.Coded, d decision.Dict, of func(sub int32) int32) {
		c.Code = slices.Grow(c.Code, len(subs))
		if c.Dict = d; words != nil {
			c.Dict = words
		}
		for _, sub := range subs {
			code := of(sub)
			if words != nil && code >= 0 {
				code = words.Intern(d.Bytes(code))
			}
			c.Code = append(c.Code, max(code, decision.Null))
		}
	}
	text(&t.Plan, k.planNames(), func(sub int32) int32 { return k.plan[sub] })
	text(&t.Source, k.sources, func(sub int32) int32 { return int32(k.source[sub]) })
	text(&t.Consumer, k.consumers, func(sub int32) int32 { return int32(k.consumer[sub]) })
	text(&t.Allocation, k.labels, func(sub int32) int32 { return k.label[k.alloc[sub]] })
	text(&t.Sub, k.labels, func(sub int32) int32 { return k.name[sub] })
	text(&t.Requirement, k.needs, func(sub int32) int32 { return int32(k.need[sub]) })
	text(&t.Together, k.labels, func(sub int32) int32 {
		if k.together[sub] == 0 {
			return decision.Null
		}
		return k.together[sub]
	})
	if t.Size.Names == nil {
		t.Size = k.figures()
	}
	t.MaxPerHost, t.MaxPerHostNull = slices.Grow(t.MaxPerHost, len(subs)), slices.Grow(t.MaxPerHostNull, len(subs))
	t.MinUnits = slices.Grow(t.MinUnits, len(subs))
	t.FirstSeen, t.FirstSeenNull = slices.Grow(t.FirstSeen, len(subs)), slices.Grow(t.FirstSeenNull, len(subs))
	t.Wanted = slices.Grow(t.Wanted, len(subs))
	t.WantedNull, t.Held = slices.Grow(t.WantedNull, len(subs)), slices.Grow(t.Held, len(subs))
	t.Size.Grow(len(subs))
	for _, sub := range subs {
		most, seen := k.maxPerHost[sub], k.firstSeen[sub]
		t.MaxPerHost, t.MaxPerHostNull = append(t.MaxPerHost, most), append(t.MaxPerHostNull, most == plan.Unlimited)
		t.MinUnits = append(t.MinUnits, k.minUnits[sub])
		t.FirstSeen, t.FirstSeenNull = append(t.FirstSeen, seen), append(t.FirstSeenNull, seen == 0)
		wanted := k.wanted[sub]
		if k.orphan[sub] {
			wanted = k.held[sub]
		}
		t.Wanted, t.WantedNull = append(t.Wanted, wanted), append(t.WantedNull, false)
		t.Held = append(t.Held, k.held[sub])
		t.Size.Add(k.inSlots(k.plan[sub]), k.shapes.Size(k.shape[sub]))
	}
}
