package standing

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
)

// Recorder makes the tables of what changed from cycle to cycle, for a decision log. The zero value is ready; its first
// tables are whole.
type Recorder struct{ last *Columns }

// Record gives what changed since it was called last, or all that stands where the log begins anew (whole).
// O(sub-allocations + hosts + holdings).
func (r *Recorder) Record(s *cluster.State, whole bool) *decision.Standing {
	now := Keep(s, r.last, Frozen())
	of := now.Since(r.last)
	if whole {
		of = now.Whole()
	}
	r.last = now
	return of
}

// Whole is all that stands. O(sub-allocations + hosts × attributes).
func (k *Columns) Whole() *decision.Standing {
	t := &decision.Standing{Whole: true, Loans: k.loans}
	k.fill(&t.SubAllocations, k.standing(), nil)
	k.describe(&t.Attributes, k.order, false)
	return t
}

// Since is what changed since other columns were kept: all, where there are none (nil) or where another policy came.
func (k *Columns) Since(old *Columns) *decision.Standing {
	if old == nil || old.policy != k.policy {
		return k.Whole()
	}
	t := &decision.Standing{Loans: k.changedLoans(old)}
	k.changedSubs(old, &t.SubAllocations)
	k.changedHosts(old, &t.Attributes)
	return t
}

// blockRows is how many rows are compared at once before one by one.
const blockRows = 1024

// changedSubs appends the sub-allocations that are other than before, those that are gone without a number of units
// wanted. O(sub-allocations), by whole blocks where nothing changed.
func (k *Columns) changedSubs(old *Columns, t *decision.SubAllocations) {
	words := &cluster.Names{}
	t.Size = k.figures()
	same := comparison{}
	same.add(compared(old.seq, k.seq), compared(old.alloc, k.alloc), compared(old.wanted, k.wanted),
		compared(old.held, k.held),
		compared(old.need, k.need), compared(old.maxPerHost, k.maxPerHost), compared(old.minUnits, k.minUnits),
		compared(old.together, k.together))
	var here, gone []int32
	same.each(len(old.alloc), len(k.alloc), func(sub int) {
		was := sub < len(old.alloc) && old.alloc[sub] != cluster.NoID
		is := sub < len(k.alloc) && k.alloc[sub] != cluster.NoID
		if was && (!is || old.seq[sub] != k.seq[sub]) {
			gone = append(gone, int32(sub))
		}
		if is {
			here = append(here, int32(sub))
		}
	})
	old.fill(t, gone, words)
	for row := range gone {
		t.Wanted[row], t.WantedNull[row], t.Held[row] = 0, true, 0
	}
	k.fill(t, here, words)
}

// changedHosts appends the attributes and groups of hosts of which any is another than before; a host that has none any
// more has a row without an attribute. O(hosts × attributes), by whole blocks where nothing changed.
func (k *Columns) changedHosts(old *Columns, t *decision.Attributes) {
	same := comparison{}
	for i := range k.attr {
		a, was := &k.attr[i], cluster.AttrColumn{}
		if i < len(old.attr) {
			was = old.attr[i]
		}
		same.add(compared(was.Valid, a.Valid), compared(was.Number, a.Number), compared(was.Bool, a.Bool),
			compared(was.Text.Code, a.Text.Code))
	}
	hosts := max(k.hosts.Len(), old.hosts.Len())
	if !shared(old.order, k.order) {
		same.add(compared(listed(old.order, hosts), listed(k.order, hosts)))
	}
	for g := range k.members {
		if !shared(old.members[g], k.members[g]) {
			same.add(compared(listed(old.members[g], hosts), listed(k.members[g], hosts)))
		}
	}
	var changed []cluster.HostID
	same.each(hosts, hosts, func(h int) { changed = append(changed, cluster.HostID(h)) })
	k.describe(t, changed, true)
}

// listed tells of each host whether it is in a list.
func listed(list []cluster.HostID, hosts int) []bool {
	is := make([]bool, hosts)
	for _, h := range list {
		is[h] = true
	}
	return is
}

// describe appends the attributes and groups of hosts; with gone one that has none, or is not there any more, has a row
// that says so.
func (k *Columns) describe(t *decision.Attributes, hosts []cluster.HostID, gone bool) {
	words := &cluster.Names{}
	t.Host.Dict, t.Attribute.Dict, t.Value.Dict = k.hosts, words, words
	if len(hosts) == 0 {
		return
	}
	there := listed(k.order, k.hosts.Len())
	names, values := make([]int32, len(k.attr)), make([]func(cluster.HostID) int32, len(k.attr))
	for i := range k.attr {
		names[i], values[i] = words.InternString(k.attr[i].Name), k.values(i, words)
	}
	group := words.InternString("group")
	groups := make([][]int32, k.hosts.Len())
	for _, g := range k.groupOrder() {
		code := words.InternString(k.policy.Groups[g].Name)
		for _, h := range k.members[g] {
			groups[h] = append(groups[h], code)
		}
	}
	for _, h := range hosts {
		rows := len(t.Host.Code)
		for i := 0; there[h] && i < len(k.attr); i++ {
			if value := values[i](h); value != decision.Null {
				t.Add(int32(h), names[i], value)
			}
		}
		for i := 0; there[h] && i < len(groups[h]); i++ {
			t.Add(int32(h), group, groups[h][i])
		}
		if gone && len(t.Host.Code) == rows {
			t.Add(int32(h), decision.Null, decision.Null)
		}
	}
}

// groupOrder are all resource groups, those of plans first, in the order that the plan has them.
func (k *Columns) groupOrder() (groups []int) {
	for plan := range k.plans {
		for _, g := range k.groupsOf(plan) {
			if !slices.Contains(groups, g) {
				groups = append(groups, g)
			}
		}
	}
	for g := range k.members {
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// comparison finds the rows in which columns differ from what they were.
type comparison struct {
	block []func(from, end int) bool // whether rows of a column are as they were
}

func (c *comparison) add(columns ...func(from, end int) bool) {
	for _, of := range columns {
		if of != nil {
			c.block = append(c.block, of)
		}
	}
}

// compared compares rows of a column with what they were; nil for a column that is shared. A row that only one of them
// has differs.
func compared[T comparable](was, is []T) func(from, end int) bool {
	if shared(was, is) {
		return nil
	}
	return func(from, end int) bool {
		if end > len(was) || end > len(is) {
			return from >= len(was) && from >= len(is)
		}
		return slices.Equal(was[from:end], is[from:end])
	}
}

// shared tells whether two columns are one.
func shared[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// same tells whether nothing differs in rows.
func (c *comparison) same(from, end int) bool {
	for _, of := range c.block {
		if !of(from, end) {
			return false
		}
	}
	return true
}

// each calls f for the rows that differ, of so many before and now.
func (c *comparison) each(before, now int, f func(row int)) {
	if len(c.block) == 0 {
		return
	}
	rows := max(before, now)
	for from := 0; from < rows; from += blockRows {
		end := min(from+blockRows, rows)
		if c.same(from, end) {
			continue
		}
		for row := from; row < end; row++ {
			if !c.same(row, row+1) {
				f(row)
			}
		}
	}
}
