package scenario

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
)

// ends ends units that have a `runtime`, as the client that runs them would.
type ends struct {
	runtimes map[string]map[subKey]int64 // by source, what its last snapshot said
	pending  []end                       // in order of grant
}

// end is units that will be done at an instant.
type end struct {
	subKey // plan is "" for what ran at the start
	host   string
	units  int64
	dueUS  int64
}

// runtime is how long a unit runs, 0 for ever. A demand row need not name its plan.
func (e *ends) runtime(source string, key subKey) int64 {
	runtimes := e.runtimes[source]
	if us, ok := runtimes[key]; ok {
		return us
	}
	key.plan = ""
	return runtimes[key]
}

// due takes out what is done by now.
func (e *ends) due(now int64) *holdingTable {
	t := newHoldingTable()
	e.pending = slices.DeleteFunc(e.pending, func(u end) bool {
		if u.dueUS > now {
			return false
		}
		t.add(u)
		return true
	})
	return t
}

// observe takes note of a cycle's grants, and of units that came back before they were done.
func (e *ends) observe(out *decision.Cycle, now int64) {
	if len(e.runtimes) == 0 {
		return
	}
	r := &out.Releases
	for row := range r.Units {
		if c := r.Cause.Code[row]; c != decision.CauseDone && c != decision.CauseClient {
			e.drop(keyAt(&r.Key, row), r.Host.At(row), r.Units[row])
		}
	}
	g := &out.Grants
	for row, units := range g.Units {
		key := keyAt(&g.Key, row)
		if us := e.runtime(g.Source.At(row), key); us > 0 {
			e.pending = append(e.pending, end{key, g.Host.At(row), units, now + us})
		}
	}
}

func keyAt(k *decision.Key, row int) subKey {
	return subKey{k.Plan.At(row), k.Consumer.At(row), k.Allocation.At(row), k.Sub.At(row)}
}

// running takes note of what runs at the start, as if granted now.
func (e *ends) running(source string, t *cluster.HoldingTable, now int64) {
	for row := range t.Rows {
		u := rowOf(t, row)
		if us := e.runtime(source, u.subKey); us > 0 {
			u.dueUS = now + us
			e.pending = append(e.pending, u)
		}
	}
}

// released takes note of what a client gives back.
func (e *ends) released(t *cluster.HoldingTable) {
	for row := range t.Rows {
		u := rowOf(t, row)
		e.drop(u.subKey, u.host, u.units)
	}
}

// drop forgets units that came back, the newest first (CYC-5). A key without a plan is of any.
func (e *ends) drop(key subKey, host string, units int64) {
	for i := len(e.pending) - 1; i >= 0 && units > 0; i-- {
		u := &e.pending[i]
		of := u.subKey
		if key.plan == "" || of.plan == "" {
			of.plan = key.plan
		}
		if of == key && u.host == host {
			n := min(u.units, units)
			u.units -= n
			units -= n
		}
	}
	e.pending = slices.DeleteFunc(e.pending, func(u end) bool { return u.units == 0 })
}

func rowOf(t *cluster.HoldingTable, row int) end {
	at := func(c *cluster.TextColumn) string {
		if code := c.At(row); code != cluster.Null {
			return c.Names.String(code)
		}
		return ""
	}
	return end{subKey{"", at(&t.Consumer), at(&t.Allocation), at(&t.Sub)}, at(&t.Host), t.Units[row], 0}
}

// holdingTable is a table of releases while it is filled.
type holdingTable struct{ cluster.HoldingTable }

func newHoldingTable() *holdingTable {
	t := &holdingTable{}
	for _, c := range []*cluster.TextColumn{&t.Consumer, &t.Allocation, &t.Sub, &t.Host} {
		c.Names = new(cluster.Names)
	}
	return t
}

// add appends a row: units that are done.
func (t *holdingTable) add(u end) {
	set := func(c *cluster.TextColumn, s string) { c.Code = append(c.Code, c.Names.InternString(s)) }
	set(&t.Consumer, u.consumer)
	set(&t.Allocation, u.allocation)
	set(&t.Sub, u.sub)
	set(&t.Host, u.host)
	t.Units, t.Done = append(t.Units, u.units), append(t.Done, true)
	t.Rows++
}
