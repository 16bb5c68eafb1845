package engine

import (
	"sort"

	"github.com/stintd/stint/core/decision"
)

// The kinds of changes, in the order in which they come within a cycle.
const (
	changeRelease int32 = iota
	changeCancel
	changeGrant
	changeReclaim
)

var changeKinds = decision.Words{"release", "cancel", "grant", "reclaim"}

// Changes is what happened to a source after a cycle, in order, as one table; empty source: to all. It ends with the cycle upTo, which is
// to be asked for next: the last one, unless there would be more than rowsMax rows. Cycles are never split. Errors: Compacted when
// cycles after since are not kept any more, Future when there was no such cycle. O(rows of the cycles).
func (v *View) Changes(source string, since int64, rowsMax int) (t *decision.Table, upTo int64, err error) {
	last := v.Cycle()
	if since > last {
		return nil, 0, refuse(Future, "there was no cycle %d yet; the last one is %d", since, last)
	}
	if since < v.resync {
		return nil, 0, refuse(Compacted, "cycles up to %d were decided anew when the service started, otherwise than before: read /v1/holdings and go on from its cycle", v.resync-1)
	}
	first := last + 1
	if len(v.Recent) > 0 {
		first = v.Recent[0].Summary.Cycle
	}
	if since+1 < first {
		return nil, 0, refuse(Compacted, "changes after cycle %d are not kept any more, the oldest kept are those of cycle %d: read /v1/holdings and go on from its cycle", since, first)
	}
	from := sort.Search(len(v.Recent), func(i int) bool { return v.Recent[i].Summary.Cycle > since })
	var b changes
	upTo = since
	for _, c := range v.Recent[from:] {
		n := b.count(c, source)
		if len(b.parts) > 0 && b.rows+n > rowsMax {
			break
		}
		b.rows += n
		b.parts = append(b.parts, c)
		upTo = c.Summary.Cycle
	}
	return b.table(source), upTo, nil
}

// changes gathers the events of cycles.
type changes struct {
	parts   []*decision.Cycle
	rows    int
	columns []decision.Column
	plans   decision.Words
}

// count is how many rows of a cycle are about a source.
func (b *changes) count(c *decision.Cycle, source string) (n int) {
	if source == "" {
		return len(c.Grants.Units) + len(c.Reclaims.Units) + len(c.Releases.Units)
	}
	for _, col := range []*decision.Coded{&c.Grants.Source, &c.Reclaims.Source, &c.Releases.Source} {
		if code, ok := codeOf(col.Dict, source); ok {
			for _, v := range col.Code {
				if v == code {
					n++
				}
			}
		}
	}
	return n
}

// The columns of changes.
const (
	colCycle = iota
	colKind
	colPlan
	colSource
	colConsumer
	colAllocation
	colSub
	colHost
	colUnits
	colOrigin
	colPool
	colLender
	colCause
	colReclaim
	colReason
	colDeadline
	colForConsumer
	colForAllocation
	colForSub
	columnsCount
)

var changeColumns = [columnsCount]struct {
	name string
	kind decision.Type
}{
	{"cycle", decision.Int}, {"change", decision.Text}, {"plan", decision.Text}, {"source", decision.Text}, {"consumer", decision.Text},
	{"allocation", decision.Text}, {"sub", decision.Text}, {"host", decision.Text}, {"units", decision.Int}, {"origin", decision.Text},
	{"pool", decision.Text}, {"lender", decision.Text}, {"cause", decision.Text}, {"reclaim", decision.Int}, {"reason", decision.Text},
	{"deadline", decision.Time}, {"for_consumer", decision.Text}, {"for_allocation", decision.Text}, {"for_sub", decision.Text},
}

// table makes one table of the cycles gathered. Ids of consumers, labels, hosts and sources are the same in all
// cycles and only grow in number, so the dictionaries of the last cycle serve for all; those of plans are
// others with each revision.
func (b *changes) table(source string) *decision.Table {
	b.columns = make([]decision.Column, columnsCount)
	for i, c := range changeColumns {
		b.columns[i] = decision.Column{Name: c.name, Type: c.kind}
		if c.kind == decision.Text {
			b.columns[i].Code = make([]int32, 0, b.rows)
		} else {
			b.columns[i].Int = make([]int64, 0, b.rows)
		}
	}
	b.columns[colDeadline].Optional, b.columns[colDeadline].Null = true, make([]bool, 0, b.rows)
	b.columns[colKind].Dict, b.columns[colOrigin].Dict = changeKinds, decision.Origins
	b.columns[colCause].Dict, b.columns[colReason].Dict = decision.Causes, decision.ReclaimReasons
	for _, c := range b.parts {
		b.add(c, source)
	}
	b.columns[colPlan].Dict = b.plans
	for i := range b.columns {
		if c := &b.columns[i]; c.Type == decision.Text && c.Dict == nil {
			c.Dict = decision.Words{}
		}
	}
	return &decision.Table{Name: "changes", Rows: len(b.columns[colUnits].Int), Columns: b.columns}
}

// add appends the events of a cycle.
func (b *changes) add(c *decision.Cycle, source string) {
	g := &c.Grants
	b.dicts(&g.Key, g.Source.Dict, g.Host.Dict)
	plans := b.plansOf(g.Key.Plan.Dict)
	r := &c.Releases
	match := matching(r.Source, source)
	for i := range r.Units {
		if match(r.Source.Code[i]) {
			b.row(c.Summary.Cycle, changeRelease, plans, &r.Key, i, r.Source.Code[i], r.Host.Code[i], r.Units[i])
			b.detail(r.Origin.Code[i], decision.Null, r.Lender.Code[i], r.Cause.Code[i], r.Reclaim[i])
			b.noReclaim()
		}
	}
	b.reclaims(c, source, plans, decision.ActionCancelled, changeCancel)
	match = matching(g.Source, source)
	for i := range g.Units {
		if match(g.Source.Code[i]) {
			b.row(c.Summary.Cycle, changeGrant, plans, &g.Key, i, g.Source.Code[i], g.Host.Code[i], g.Units[i])
			b.detail(g.Origin.Code[i], g.Pool.Code[i], g.Lender.Code[i], decision.Null, 0)
			b.noReclaim()
		}
	}
	b.reclaims(c, source, plans, decision.ActionIssued, changeReclaim)
}

// matching tells of a code whether it is a source's; an empty source is any.
func matching(c decision.Coded, source string) func(int32) bool {
	if source == "" {
		return func(int32) bool { return true }
	}
	code, ok := codeOf(c.Dict, source)
	return func(v int32) bool { return ok && v == code }
}

// reclaims appends the steps of reclaims of one kind.
func (b *changes) reclaims(c *decision.Cycle, source string, plans []int32, action, kind int32) {
	t := &c.Reclaims
	match := matching(t.Source, source)
	for i := range t.Units {
		if t.Action.Code[i] != action || !match(t.Source.Code[i]) {
			continue
		}
		b.row(c.Summary.Cycle, kind, plans, &t.Key, i, t.Source.Code[i], t.Host.Code[i], t.Units[i])
		b.detail(decision.Null, decision.Null, decision.Null, decision.Null, t.Reclaim[i])
		b.code(colReason, t.Reason.Code[i])
		b.columns[colDeadline].Int = append(b.columns[colDeadline].Int, t.Deadline[i])
		b.columns[colDeadline].Null = append(b.columns[colDeadline].Null, false)
		b.code(colForConsumer, t.ForConsumer.Code[i])
		b.code(colForAllocation, t.ForAllocation.Code[i])
		b.code(colForSub, t.ForSub.Code[i])
	}
}

func (b *changes) code(column int, code int32) {
	b.columns[column].Code = append(b.columns[column].Code, code)
}

// row begins a row.
func (b *changes) row(cycle int64, kind int32, plans []int32, k *decision.Key, i int, source, host int32, units int64) {
	b.columns[colCycle].Int = append(b.columns[colCycle].Int, cycle)
	b.code(colKind, kind)
	b.code(colPlan, plans[k.Plan.Code[i]])
	b.code(colSource, source)
	b.code(colConsumer, k.Consumer.Code[i])
	b.code(colAllocation, k.Allocation.Code[i])
	b.code(colSub, k.Sub.Code[i])
	b.code(colHost, host)
	b.columns[colUnits].Int = append(b.columns[colUnits].Int, units)
}

func (b *changes) detail(origin, pool, lender, cause int32, reclaim int64) {
	b.code(colOrigin, origin)
	b.code(colPool, pool)
	b.code(colLender, lender)
	b.code(colCause, cause)
	b.columns[colReclaim].Int = append(b.columns[colReclaim].Int, reclaim)
}

// noReclaim ends a row that is none of a reclaim.
func (b *changes) noReclaim() {
	b.code(colReason, decision.Null)
	b.columns[colDeadline].Int = append(b.columns[colDeadline].Int, 0)
	b.columns[colDeadline].Null = append(b.columns[colDeadline].Null, true)
	b.code(colForConsumer, decision.Null)
	b.code(colForAllocation, decision.Null)
	b.code(colForSub, decision.Null)
}

// dicts takes the dictionaries of a cycle, which have all names of those before.
func (b *changes) dicts(k *decision.Key, source, host decision.Dict) {
	for _, c := range []int{colConsumer, colPool, colLender, colForConsumer} {
		b.columns[c].Dict = k.Consumer.Dict
	}
	for _, c := range []int{colAllocation, colSub, colForAllocation, colForSub} {
		b.columns[c].Dict = k.Allocation.Dict
	}
	b.columns[colSource].Dict, b.columns[colHost].Dict = source, host
}

// plansOf gives, for a cycle's plans, the codes of their names here.
func (b *changes) plansOf(d decision.Dict) []int32 {
	codes := make([]int32, d.Len())
	for i := range codes {
		name := string(d.Bytes(int32(i)))
		code, ok := codeOf(b.plans, name)
		if !ok {
			code = int32(len(b.plans))
			b.plans = append(b.plans, name)
		}
		codes[i] = code
	}
	return codes
}
