package server

import (
	"slices"
	"strings"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
)

// What a curve takes: of so many cycles, at so many of them.
const (
	curveCyclesMax = 10_000
	curvePointsMax = 240
)

// kinds of what a consumer has in a curve: of its own, from a private pool, from a pool that all share, borrowed; and
// what others have of it.
const (
	kindOwned = iota
	kindPrivate
	kindShared
	kindBorrowed
	kindLent
	kindsCount
)

var kindNames = [kindsCount]string{"owned", "private_pool", "shared", "borrowed", "lent"}

// point is a consumer in a plan after a cycle.
type point struct {
	cycle, now                  int64
	plan                        string
	slots                       bool // figures are slots, else units
	demand, held, short         int64
	quota                       int64 // -1: none
	of                          [kindsCount]int64
	granted, reclaimed, release int64 // units, in the cycles since the point before
}

// getCurve gives a consumer's figures over the last cycles, those of a plan in the order of cycles. Of many cycles it
// gives some, evenly spread.
func (s *Server) getCurve(q *request) error {
	w, err := s.began(q)
	if err != nil {
		return err
	}
	last, err := q.number("last", 1, 200)
	if err != nil {
		return err
	}
	until, err := q.number("until", 1, w.last)
	if err != nil {
		return err
	}
	if until > w.last {
		return noCycleYet(until, w.last)
	}
	path := "/" + strings.Trim(q.rest, "/")
	var points []point
	err = s.history.reading(until, func(r *export.Reader) (err error) {
		points, err = curve(r, path, until, min(last, curveCyclesMax))
		return err
	})
	if err != nil {
		return err
	}
	if len(points) == 0 {
		return noConsumer(path)
	}
	t := curveTable(points)
	return q.rows(all(t), moment{cycle: until, logged: true}, func() {})
}

// curve makes the points of a consumer.
func curve(r *export.Reader, path string, until, last int64) (points []point, err error) {
	cycles := r.Cycles()
	end, _ := slices.BinarySearch(cycles, until+1)
	cycles = cycles[max(0, end-int(last)):end]
	if n := len(cycles); n > curvePointsMax {
		some := make([]int64, curvePointsMax)
		for i := range some {
			some[i] = cycles[i*(n-1)/(curvePointsMax-1)]
		}
		cycles = some
	}
	heads, err := r.Rows("cycles", cycles[0], until)
	if err != nil {
		return nil, err
	}
	now := map[int64]int64{}
	for row, n := range heads.Columns[0].Int {
		now[n] = heads.Column("now").Int[row]
	}
	var flow flow
	if err := flow.open(r, path, cycles[0], until); err != nil {
		return nil, err
	}
	var rows []point
	holder := int64(-1)
	for _, n := range cycles {
		at, err := r.Holder("consumers", n)
		if err != nil {
			return nil, err
		}
		if at != holder {
			t, err := r.Table("consumers", at)
			if err != nil {
				return nil, err
			}
			holder, rows = at, standingOf(t, path)
		}
		if err := flow.to(r, n); err != nil {
			return nil, err
		}
		for _, p := range rows {
			p.cycle, p.now = n, now[n]
			if !p.slots {
				p.of = flow.held[p.plan]
			}
			p.granted, p.reclaimed, p.release = flow.took(p.plan)
			points = append(points, p)
		}
		flow.begin()
	}
	return points, nil
}

// standingOf are the figures of a consumer in each of its plans; the root's are the sums of the first level.
func standingOf(t *decision.Table, path string) (rows []point) {
	text := func(name string, row int) string {
		c := t.Column(name)
		if c.Code[row] == decision.Null {
			return ""
		}
		return string(c.Dict.Bytes(c.Code[row]))
	}
	num := func(name string, row int) int64 {
		c := t.Column(name)
		if c == nil || c.Null != nil && c.Null[row] {
			return 0
		}
		return c.Int[row]
	}
	wanted := words(t, "consumer", func(word string) bool {
		return word == path || path == "/" && strings.Count(word, "/") == 1
	})
	for row := range t.Rows {
		if !wanted(row) {
			continue
		}
		p := point{
			plan: text("plan", row), slots: text("policy", row) != "md", demand: num("demand", row),
			held: num("held", row), short: num("short", row),
			quota: -1,
		}
		if p.slots {
			p.quota = num("quota", row)
			p.of = [kindsCount]int64{num("held_owned", row), 0, num("held_shared", row), num("held_borrowed", row),
				num("lent", row)}
		}
		i := slices.IndexFunc(rows, func(r point) bool { return r.plan == p.plan })
		if i < 0 {
			rows = append(rows, p)
			continue
		}
		to := &rows[i]
		to.demand, to.held, to.short, to.quota = to.demand+p.demand, to.held+p.held, to.short+p.short, to.quota+p.quota
		for k := range to.of {
			to.of[k] += p.of[k]
		}
	}
	return rows
}

// flow follows what a consumer and those below it hold, in units, by plan and kind: a keyframe, and what was granted
// and came back since.
type flow struct {
	path   string
	frame  int64 // the keyframe that held began with
	cycle  int64 // up to which held goes
	told   int64 // up to which cycle what happened was counted
	held   map[string][kindsCount]int64
	tables [3]*decision.Table // grants, releases, reclaims
	row    [3]int             // the next of each
	in     map[string][3]int64
}

func (f *flow) open(r *export.Reader, path string, first, last int64) (err error) {
	f.path, f.told = path, first-1
	frame, err := r.Holder("holdings", first)
	if err != nil {
		return err
	}
	for i, name := range []string{"grants", "releases", "reclaims"} {
		if f.tables[i], err = r.Rows(name, frame, last); err != nil {
			return err
		}
	}
	f.begin()
	return f.load(r, frame)
}

func (f *flow) begin() { f.in = map[string][3]int64{} }

func (f *flow) took(plan string) (granted, reclaimed, released int64) {
	in := f.in[plan]
	return in[0], in[2], in[1]
}

// load begins anew with a keyframe.
func (f *flow) load(r *export.Reader, frame int64) error {
	t, err := r.Table("holdings", frame)
	if err != nil {
		return err
	}
	f.frame, f.cycle, f.held = frame, frame, map[string][kindsCount]int64{}
	f.each(t, 0, t.Rows, f.apply(1))
	return nil
}

// apply adds units, or takes them away.
func (f *flow) apply(sign int64) func(plan string, kind int, units int64) {
	return func(plan string, kind int, units int64) {
		h := f.held[plan]
		h[kind] += sign * units
		f.held[plan] = h
	}
}

// to goes on to a cycle.
func (f *flow) to(r *export.Reader, n int64) error {
	frame, err := r.Holder("holdings", n)
	if err != nil {
		return err
	}
	was := f.cycle
	for i, t := range f.tables {
		cycles, from := t.Columns[0].Int, f.row[i]
		for f.row[i] < t.Rows && cycles[f.row[i]] <= n {
			f.row[i]++
		}
		count, _ := slices.BinarySearch(cycles, f.told+1)
		f.count(i, t, count, f.row[i])
		for from < f.row[i] && cycles[from] <= was {
			from++
		}
		if frame > f.frame || i == 2 {
			continue // a newer keyframe tells it
		}
		f.each(t, from, f.row[i], f.apply([]int64{1, -1}[i]))
	}
	if f.told = n; frame <= f.frame {
		f.cycle = n
		return nil
	}
	if err := f.load(r, frame); err != nil {
		return err
	}
	for i, t := range f.tables[:2] { // what came between the keyframe and the cycle
		from, _ := slices.BinarySearch(t.Columns[0].Int, frame+1)
		f.each(t, from, f.row[i], f.apply([]int64{1, -1}[i]))
	}
	f.cycle = n
	return nil
}

// count adds up what happened in rows of the consumer's own.
func (f *flow) count(table int, t *decision.Table, from, end int) {
	mine := words(t, "consumer", func(word string) bool { return within(word, f.path) })
	plan, units, action := t.Column("plan"), t.Column("units").Int, t.Column("action")
	for row := from; row < end; row++ {
		if !mine(row) || plan.Code[row] == decision.Null ||
			action != nil && string(action.Dict.Bytes(action.Code[row])) != "issued" {
			continue
		}
		name := string(plan.Dict.Bytes(plan.Code[row]))
		in := f.in[name]
		in[table] += units[row]
		f.in[name] = in
	}
}

// each tells of rows what they are to the consumer.
func (f *flow) each(t *decision.Table, from, end int, put func(plan string, kind int, units int64)) {
	is := func(word string) bool { return within(word, f.path) }
	mine, lent := words(t, "consumer", is), words(t, "lender", is)
	plan, units, origin, lender := t.Column("plan"), t.Column("units").Int, t.Column("origin"), t.Column("lender")
	for row := from; row < end; row++ {
		if plan.Code[row] == decision.Null {
			continue
		}
		name := string(plan.Dict.Bytes(plan.Code[row]))
		switch {
		case mine(row):
			kind := kindShared
			switch {
			case string(origin.Dict.Bytes(origin.Code[row])) == "owned":
				kind = kindOwned
			case string(origin.Dict.Bytes(origin.Code[row])) == "private_pool":
				kind = kindPrivate
			case lender.Code[row] != decision.Null:
				kind = kindBorrowed
			}
			put(name, kind, units[row])
		case lent(row):
			put(name, kindLent, units[row])
		}
	}
}

// curveTable is points as a table.
func curveTable(points []point) *decision.Table {
	var m melding
	n := len(points)
	column := func(of func(p *point) int64) []int64 {
		values := make([]int64, n)
		for i := range points {
			values[i] = of(&points[i])
		}
		return values
	}
	plan, unit, null := make([]int32, n), make([]int32, n), make([]bool, n)
	for i, p := range points {
		plan[i], null[i] = m.names.InternString(p.plan), p.quota < 0
		unit[i] = m.names.InternString(map[bool]string{true: "slots", false: "units"}[p.slots])
	}
	t := &decision.Table{Name: "curve", Rows: n, Columns: []decision.Column{
		ints("cycle", column(func(p *point) int64 { return p.cycle })), instants("now", column(func(p *point) int64 {
			return p.now
		})),
		m.text("plan", plan), m.text("unit", unit),
		ints("demand", column(func(p *point) int64 { return p.demand })), ints("held", column(func(p *point) int64 {
			return p.held
		})),
		ints("short", column(func(p *point) int64 { return p.short })),
		optional("quota", column(func(p *point) int64 { return max(0, p.quota) }), null),
	}}
	for k, name := range kindNames {
		t.Columns = append(t.Columns, ints(name, column(func(p *point) int64 { return p.of[k] })))
	}
	t.Columns = append(t.Columns,
		ints("granted", column(func(p *point) int64 { return p.granted })),
		ints("reclaimed", column(func(p *point) int64 { return p.reclaimed })),
		ints("released", column(func(p *point) int64 { return p.release })))
	return t
}
