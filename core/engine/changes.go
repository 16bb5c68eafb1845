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

// ChangeKinds are the names of what happens to units, by value: in this order within a cycle.
var ChangeKinds = decision.Words{"release", "cancel", "grant", "reclaim"}

// Changes is what happened to a source after a cycle, in order, as one table; empty source: to all. It ends with the
// cycle upTo, which is to be asked for next. Errors and limits are those of Pages.
func (v *View) Changes(source string, since int64, rowsMax int) (t *decision.Table, upTo int64, err error) {
	p, err := v.Pages(source, since, rowsMax)
	if err != nil {
		return nil, 0, err
	}
	if t, err = p.Next(v, p.Rows()); err != nil {
		return nil, 0, err
	}
	return t, p.UpTo, nil
}

// Pages is what happened to a source after a cycle, to be read part by part. Between two parts it keeps nothing of the
// cycles, so that who reads slowly holds no memory.
type Pages struct {
	UpTo   int64 // the cycle that they end with, which is to be asked for next
	source string
	cycle  int64 // the one under way
	at     int   // its events before this place have been given
	rows   int
}

// Pages finds what happened to a source after a cycle, in order; empty source: to all. It ends with the last cycle,
// unless there would be more than rowsMax rows. Cycles are never split. Errors: Compacted when cycles after since are
// not kept any more, Future when there was no such cycle. O(cycles).
func (v *View) Pages(source string, since int64, rowsMax int) (*Pages, error) {
	last := v.Cycle()
	if since > last {
		return nil, refuse(Future, "there was no cycle %d yet; the last one is %d", since, last)
	}
	if since < v.resync {
		return nil, refuse(Compacted, "cycles up to %d were decided anew when the service started, otherwise than "+
			"before: read /v1/holdings and go on from its cycle", v.resync-1)
	}
	first := last + 1
	if len(v.Recent) > 0 {
		first = v.Recent[0].Summary.Cycle
	}
	if since+1 < first {
		return nil, refuse(Compacted, "changes after cycle %d are not kept any more, the oldest kept are those of "+
			"cycle %d: read /v1/holdings and go on from its cycle", since, first)
	}
	p := &Pages{UpTo: since, source: source, cycle: since + 1}
	for i := v.place(since + 1); i < len(v.Recent); i++ {
		e := v.events(i, source)
		n := e.releases.n + e.reclaims.n + e.grants.n
		if p.rows > 0 && p.rows+n > rowsMax {
			break
		}
		p.rows += n
		p.UpTo = v.Recent[i].Summary.Cycle
	}
	return p, nil
}

// Rows is how many rows the pages have in all.
func (p *Pages) Rows() int { return p.rows }

// More tells whether there is more to come.
func (p *Pages) More() bool { return p.cycle <= p.UpTo }

// Next gives the next rows, at most so many, out of the newest view. Error: Compacted when their cycle is not kept any
// more. O(rows), and O(plans) for each cycle.
func (p *Pages) Next(v *View, rowsMax int) (*decision.Table, error) {
	b := changes{room: rowsMax}
	b.begin(min(rowsMax, p.rows))
	for ; p.cycle <= p.UpTo; p.cycle, p.at = p.cycle+1, 0 {
		i := v.place(p.cycle)
		if i == len(v.Recent) || v.Recent[i].Summary.Cycle != p.cycle {
			return nil, refuse(Compacted,
				"changes of cycle %d are not kept any more: the client was too slow to read them", p.cycle)
		}
		var whole bool
		if p.at, whole = b.add(v.Recent[i], v.events(i, p.source), p.at); !whole {
			break
		}
	}
	return b.table(), nil
}

// place is where the cycles from one on begin among those that are kept.
func (v *View) place(cycle int64) int {
	return sort.Search(len(v.Recent), func(i int) bool { return v.Recent[i].Summary.Cycle >= cycle })
}

// rowSet is n rows of a table: those listed, or where there is no list the first ones.
type rowSet struct {
	n    int
	list []int32
}

func (r rowSet) at(i int) int {
	if r.list == nil {
		return i
	}
	return int(r.list[i])
}

// cycleEvents are the rows of a cycle that concern somebody.
type cycleEvents struct{ releases, reclaims, grants rowSet }

// events are those of one of the cycles that are kept, for a source; empty: for all.
func (v *View) events(i int, source string) cycleEvents {
	if c := v.Recent[i]; source == "" {
		return cycleEvents{
			rowSet{n: len(c.Releases.Units)}, rowSet{n: len(c.Reclaims.Units)}, rowSet{n: len(c.Grants.Units)},
		}
	}
	e := v.index[i][source]
	return cycleEvents{
		rowSet{len(e.releases), e.releases}, rowSet{len(e.reclaims), e.reclaims}, rowSet{len(e.grants), e.grants},
	}
}

// changes gathers the events of cycles.
type changes struct {
	room    int // rows that it still takes
	columns []decision.Column
	plans   decision.Words
	devices decision.Words
	words   map[string]int32 // by text: its code in devices
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
	colDevice
	columnsCount
)

var changeColumns = [columnsCount]struct {
	name string
	kind decision.Type
}{
	{"cycle", decision.Int}, {"change", decision.Text}, {"plan", decision.Text}, {"source", decision.Text},
	{"consumer", decision.Text},
	{"allocation", decision.Text}, {"sub", decision.Text}, {"host", decision.Text}, {"units", decision.Int},
	{"origin", decision.Text},
	{"pool", decision.Text}, {"lender", decision.Text}, {"cause", decision.Text}, {"reclaim", decision.Int},
	{"reason", decision.Text},
	{"deadline", decision.Time}, {"for_consumer", decision.Text}, {"for_allocation", decision.Text},
	{"for_sub", decision.Text},
	{"device", decision.Text},
}

// begin makes columns for so many rows. Ids of consumers, labels, hosts and sources are the same in all
// cycles and only grow in number, so the dictionaries of the last cycle serve for all; those of plans are
// others with each revision.
func (b *changes) begin(rows int) {
	b.columns = make([]decision.Column, columnsCount)
	for i, c := range changeColumns {
		b.columns[i] = decision.Column{Name: c.name, Type: c.kind}
		if c.kind == decision.Text {
			b.columns[i].Code = make([]int32, 0, rows)
		} else {
			b.columns[i].Int = make([]int64, 0, rows)
		}
	}
	b.columns[colDeadline].Optional, b.columns[colDeadline].Null = true, make([]bool, 0, rows)
	b.columns[colKind].Dict, b.columns[colOrigin].Dict = ChangeKinds, decision.Origins
	b.columns[colCause].Dict, b.columns[colReason].Dict = decision.Causes, decision.ReclaimReasons
}

// table is what was gathered.
func (b *changes) table() *decision.Table {
	b.columns[colPlan].Dict, b.columns[colDevice].Dict = b.plans, b.devices
	for i := range b.columns {
		if c := &b.columns[i]; c.Type == decision.Text && c.Dict == nil {
			c.Dict = decision.Words{}
		}
	}
	return &decision.Table{Name: "changes", Rows: len(b.columns[colUnits].Int), Columns: b.columns}
}

// add appends events of a cycle from a place on, as many as there is room for, and gives the place behind them and
// whether it is the end. The places are those of its releases, of its steps of reclaims for the cancellations, of its
// grants, and of the steps again for what was issued.
func (b *changes) add(c *decision.Cycle, e cycleEvents, at int) (next int, whole bool) {
	if e.releases.n+e.reclaims.n+e.grants.n == 0 {
		return 0, true
	}
	b.dicts(&c.Grants.Key, c.Grants.Source.Dict, c.Grants.Host.Dict)
	plans := b.plansOf(c.Grants.Key.Plan.Dict)
	from := 0
	for _, part := range []struct {
		rows rowSet
		add  func(row int)
	}{
		{e.releases, func(row int) { b.release(c, plans, row) }},
		{e.reclaims, func(row int) { b.reclaim(c, plans, row, decision.ActionCancelled, changeCancel) }},
		{e.grants, func(row int) { b.grant(c, plans, row) }},
		{e.reclaims, func(row int) { b.reclaim(c, plans, row, decision.ActionIssued, changeReclaim) }},
	} {
		for ; at < from+part.rows.n; at++ {
			if b.room == 0 {
				return at, false
			}
			part.add(part.rows.at(at - from))
		}
		from += part.rows.n
	}
	return at, true
}

// release appends a unit given back.
func (b *changes) release(c *decision.Cycle, plans []int32, i int) {
	r := &c.Releases
	b.row(c.Summary.Cycle, changeRelease, plans, &r.Key, i, r.Source.Code[i], r.Host.Code[i], r.Units[i])
	b.detail(r.Origin.Code[i], decision.Null, r.Lender.Code[i], r.Cause.Code[i], r.Reclaim[i])
	b.noReclaim()
	b.device(&r.Device, i)
}

// grant appends a grant.
func (b *changes) grant(c *decision.Cycle, plans []int32, i int) {
	g := &c.Grants
	b.row(c.Summary.Cycle, changeGrant, plans, &g.Key, i, g.Source.Code[i], g.Host.Code[i], g.Units[i])
	b.detail(g.Origin.Code[i], g.Pool.Code[i], g.Lender.Code[i], decision.Null, 0)
	b.noReclaim()
	b.device(&g.Device, i)
}

// reclaim appends a step of a reclaim, if it is of the kind.
func (b *changes) reclaim(c *decision.Cycle, plans []int32, i int, action, kind int32) {
	t := &c.Reclaims
	if t.Action.Code[i] != action {
		return
	}
	b.row(c.Summary.Cycle, kind, plans, &t.Key, i, t.Source.Code[i], t.Host.Code[i], t.Units[i])
	b.detail(decision.Null, decision.Null, decision.Null, decision.Null, t.Reclaim[i])
	b.code(colReason, t.Reason.Code[i])
	b.columns[colDeadline].Int = append(b.columns[colDeadline].Int, t.Deadline[i])
	b.columns[colDeadline].Null = append(b.columns[colDeadline].Null, false)
	b.code(colForConsumer, t.ForConsumer.Code[i])
	b.code(colForAllocation, t.ForAllocation.Code[i])
	b.code(colForSub, t.ForSub.Code[i])
	b.device(&t.Device, i)
}

func (b *changes) code(column int, code int32) {
	b.columns[column].Code = append(b.columns[column].Code, code)
}

// row begins a row.
func (b *changes) row(cycle int64, kind int32, plans []int32, k *decision.Key, i int, source, host int32, units int64) {
	b.room--
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

// device fills the column of devices; each cycle has a dictionary of its own of them.
func (b *changes) device(c *decision.Coded, i int) {
	code := c.Code[i]
	if code != decision.Null {
		text := c.Dict.Bytes(code)
		known, ok := b.words[string(text)]
		if !ok {
			if b.words == nil {
				b.words = map[string]int32{}
			}
			known = int32(len(b.devices))
			b.devices, b.words[string(text)] = append(b.devices, string(text)), known
		}
		code = known
	}
	b.code(colDevice, code)
}

// noReclaim fills the columns of reclaims in a row that is of none.
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
