// Package compare plays what was asked of another system, as its reporting tables tell it, by the policy that was made
// of its plan, and sets what stint would have given beside what the other system gave.
package compare

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/foreign"
)

// Given is slots by what they count as, added up over instants. Under the hybrid policy all that is held counts as
// shared.
type Given struct {
	Owned    int64 `json:"owned"`
	Shared   int64 `json:"shared"`
	Borrowed int64 `json:"borrowed"`
}

// Total is all that was given.
func (g Given) Total() int64 { return g.Owned + g.Shared + g.Borrowed }

// Row is a consumer in a plan: figures in slots, added up over the instants of which the table has a row. Of a branch
// they are those of its leaves together.
type Row struct {
	Plan       string `json:"plan"`
	Consumer   string `json:"consumer"`
	Leaf       bool   `json:"leaf"`
	Instants   int64  `json:"instants"`
	Asked      int64  `json:"asked"`
	Was        Given  `json:"was"`
	Would      Given  `json:"would"`
	WasLent    int64  `json:"was_lent"`
	WouldLent  int64  `json:"would_lent"`
	MoreAt     int64  `json:"more_at"` // instants at which stint would have given more than was given
	LessAt     int64  `json:"less_at"`
	WasBelow   int64  `json:"was_below_owned_at"` // instants at which less was held than is owned and was asked for
	WouldBelow int64  `json:"would_below_owned_at"`
}

// Report is what a comparison found. Rows are consumers in the order of the policy, branches as sums of their leaves.
type Report struct {
	All       Row   `json:"all"` // all leaves together
	FromUS    int64 `json:"from_us"`
	ToUS      int64 `json:"to_us"` // the last instant
	StepUS    int64 `json:"step_us"`
	Instants  int   `json:"instants"`
	Cycles    int64 `json:"cycles"`
	Reclaimed int64 `json:"reclaimed"` // slots that stint would have taken back
	Unsettled int64 `json:"unsettled"` // instants at which something was still under reclaim when the next one came
	Rows      []Row `json:"consumers"`
}

// Hours is slots added up over instants, in slot-hours.
func (r *Report) Hours(slots int64) float64 { return float64(slots) * float64(r.StepUS) / 3.6e9 }

// player plays a history.
type player struct {
	h      *foreign.History
	state  *cluster.State
	runner cycle.Runner
	out    decision.Cycle
	demand *cluster.DemandTable
	report *Report
	row    []int // by line of the history, its row in the report
	at     []int // by line, its row in the table consumers
	column columns
}

// columns are places in the table of consumers of figures that only slot plans have.
type columns struct{ owned, ownedHeld, shared, borrowed, lent int }

// A history is played in parts, side by side; what was asked on the day before a part is played first and does not
// count, so that a part begins as the one before it ends, but for who came first before that day (D-74).
const (
	partUS   = 28 * 24 * 3600 * 1_000_000
	warmUpUS = 24 * 3600 * 1_000_000
)

// Play plays all instants of a history: what was asked at each of them is asked, and cycles are run, an interval apart,
// until nothing is under reclaim and nobody waits for that, or the next instant comes (D-74). progress, unless nil, is
// told how many instants are done.
func Play(p *foreign.Playable, h *foreign.History, progress func(done, all int)) (*Report, error) {
	policy, err := plan.Parse("plan.yaml", p.Plan)
	if err != nil {
		return nil, err
	}
	var first []int // instant of each part, and one behind the last
	for i := range h.AtUS {
		if len(first) == 0 || h.AtUS[i] >= h.AtUS[first[len(first)-1]]+partUS {
			first = append(first, i)
		}
	}
	first = append(first, len(h.AtUS))
	reports, errs := make([]*Report, len(first)-1), make([]error, len(first)-1)
	var next, done atomic.Int64
	var telling sync.Mutex
	tell := func() {
		if n := done.Add(1); progress != nil && (n%256 == 0 || int(n) == len(h.AtUS)) {
			telling.Lock()
			progress(int(n), len(h.AtUS))
			telling.Unlock()
		}
	}
	var players sync.WaitGroup
	for range min(len(reports), runtime.GOMAXPROCS(0)) {
		players.Add(1)
		go func() {
			defer players.Done()
			for i := next.Add(1) - 1; int(i) < len(reports); i = next.Add(1) - 1 {
				reports[i], errs[i] = part(policy, p.Hosts, h, first[i], first[i+1], tell)
			}
		}()
	}
	players.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r := &Report{StepUS: h.StepUS, Instants: len(h.AtUS), FromUS: h.AtUS[0], ToUS: h.AtUS[len(h.AtUS)-1],
		Rows: reports[0].Rows}
	for i, one := range reports {
		r.Cycles, r.Reclaimed, r.Unsettled = r.Cycles+one.Cycles, r.Reclaimed+one.Reclaimed, r.Unsettled+one.Unsettled
		for k := range one.Rows {
			if i > 0 {
				r.Rows[k].add(&one.Rows[k])
			}
		}
	}
	r.sum(policy)
	return r, nil
}

// part plays the instants from one to another.
func part(
	policy *plan.Policy, hosts *cluster.HostTable, h *foreign.History, from, to int, tell func(),
) (*Report, error) {
	x := &player{h: h, report: &Report{}}
	var err error
	if x.state, err = cluster.New(policy); err != nil {
		return nil, err
	}
	if err := x.state.SetHosts(hosts, true); err != nil {
		return nil, err
	}
	x.table()
	warm, _ := slices.BinarySearch(h.AtUS[:from], h.AtUS[from]-warmUpUS)
	for i := warm; i < to; i++ {
		if i == from {
			x.report.Cycles, x.report.Reclaimed, x.report.Unsettled = 0, 0, 0
		}
		if err := x.instant(i); err != nil {
			return nil, err
		}
		if i >= from {
			x.count(i)
			tell()
		}
	}
	return x.report, nil
}

// table makes the table of demand, a row for each line; its units change from instant to instant.
func (x *player) table() {
	text := func() cluster.TextColumn { return cluster.TextColumn{Names: &cluster.Names{}} }
	t := &cluster.DemandTable{Name: "reporting table", Rows: len(x.h.Lines), Consumer: text(), Allocation: text(),
		Sub: text(), Plan: text(), Requirement: text(),
		Units: make([]int64, len(x.h.Lines)), Size: make([][]int64, 1)}
	for i := range x.h.Lines {
		l := &x.h.Lines[i]
		t.Consumer.Code = append(t.Consumer.Code, t.Consumer.Names.InternString(l.Consumer))
		t.Plan.Code = append(t.Plan.Code, t.Plan.Names.InternString(l.Plan))
		t.Allocation.Code = append(t.Allocation.Code, t.Allocation.Names.InternString("slots"))
	}
	x.demand = t
}

// instant asks for what was asked and runs cycles.
func (x *player) instant(i int) error {
	for k := range x.h.Lines {
		x.demand.Units[k] = int64(max(0, x.h.Lines[k].Demand[i]))
	}
	if err := x.state.SetDemand("ego", x.demand); err != nil {
		return fmt.Errorf("what was asked at instant %d: %w", i+1, err)
	}
	next := x.h.AtUS[i] + x.h.StepUS
	if i+1 < len(x.h.AtUS) {
		next = x.h.AtUS[i+1]
	}
	for now := x.h.AtUS[i]; ; now += x.state.Policy.IntervalUS {
		if now >= next && now > x.h.AtUS[i] {
			x.report.Unsettled++
			return nil
		}
		x.runner.Run(x.state, now, &x.out)
		x.report.Cycles++
		x.report.Reclaimed += x.out.Summary.UnitsReclaimed
		if s := &x.out.Summary; s.UnitsLeaving == 0 && s.UnitsPromised == 0 {
			return nil
		}
	}
}

// count adds what is held now to the figures of each line.
func (x *player) count(i int) {
	c := &x.out.Consumers
	if x.row == nil {
		x.find(c)
	}
	for k := range x.h.Lines {
		l, r, at := &x.h.Lines[k], &x.report.Rows[x.row[k]], x.at[k]
		if l.Demand[i] == foreign.NotTold {
			continue
		}
		asked := int64(l.Demand[i])
		was := Given{int64(l.Own[i]), int64(l.Share[i]), int64(l.Borrow[i])}
		would := Given{c.Slot[x.column.ownedHeld][at], c.Slot[x.column.shared][at], c.Slot[x.column.borrowed][at]}
		would.Shared += c.Held[at] - would.Total() // of the hybrid policy
		r.Instants++
		r.Asked += asked
		r.Was.add(was)
		r.Would.add(would)
		r.WasLent += int64(l.Lent[i])
		r.WouldLent += c.Slot[x.column.lent][at]
		due := min(asked, c.Slot[x.column.owned][at])
		for _, one := range []struct {
			into *int64
			is   bool
		}{
			{&r.MoreAt, would.Total() > was.Total()}, {&r.LessAt, would.Total() < was.Total()},
			{&r.WasBelow, was.Total() < due}, {&r.WouldBelow, would.Total() < due},
		} {
			if one.is {
				*one.into++
			}
		}
	}
}

func (g *Given) add(o Given) {
	g.Owned, g.Shared, g.Borrowed = g.Owned+o.Owned, g.Shared+o.Shared, g.Borrowed+o.Borrowed
}

// find finds the rows of the table of consumers, which stay where they are while the policy does, and makes a row of
// each.
func (x *player) find(c *decision.Consumers) {
	into := map[string]*int{"owned": &x.column.owned, "held_owned": &x.column.ownedHeld,
		"held_shared":   &x.column.shared,
		"held_borrowed": &x.column.borrowed, "lent": &x.column.lent}
	first := -1 // of the columns that only slot plans have
	for i, column := range c.Schema().Table().Columns {
		if column.Name == "owned_configured" {
			first = i
		}
		if at := into[column.Name]; at != nil {
			*at = i - first
		}
	}
	if first < 0 {
		panic("BUG: the table of consumers has no column owned_configured")
	}
	place := map[[2]string]int{}
	for i := range c.Held {
		place[[2]string{c.Plan.At(i), c.Consumer.At(i)}] = i
		x.report.Rows = append(x.report.Rows, Row{Plan: c.Plan.At(i), Consumer: c.Consumer.At(i)})
	}
	for i := range x.h.Lines {
		at, ok := place[[2]string{x.h.Lines[i].Plan, x.h.Lines[i].Consumer}]
		if !ok {
			panic("BUG: a line of the history is not in the policy: " + x.h.Lines[i].Consumer)
		}
		x.at, x.row = append(x.at, at), append(x.row, at)
		x.report.Rows[at].Leaf = true
	}
}

// sum adds up branches, and all.
func (r *Report) sum(p *plan.Policy) {
	at := map[[2]string]int{}
	for i := range r.Rows {
		at[[2]string{r.Rows[i].Plan, r.Rows[i].Consumer}] = i
	}
	for i := range r.Rows {
		o := &r.Rows[i]
		if !o.Leaf {
			continue
		}
		r.All.add(o)
		n, ok := p.Find(o.Consumer)
		if !ok {
			panic("BUG: the policy has no " + o.Consumer)
		}
		for up := p.Parent[n]; up != plan.Root; up = p.Parent[up] {
			r.Rows[at[[2]string{o.Plan, p.Path[up]}]].add(o)
		}
	}
}

func (r *Row) add(o *Row) {
	r.Instants, r.Asked = r.Instants+o.Instants, r.Asked+o.Asked
	r.Was.add(o.Was)
	r.Would.add(o.Would)
	r.WasLent, r.WouldLent = r.WasLent+o.WasLent, r.WouldLent+o.WouldLent
	r.MoreAt, r.LessAt = r.MoreAt+o.MoreAt, r.LessAt+o.LessAt
	r.WasBelow, r.WouldBelow = r.WasBelow+o.WasBelow, r.WouldBelow+o.WouldBelow
}

// File is the name of the table that Write writes.
const File = "comparison.csv"

// Write writes the rows as CSV, in slot-hours and instants.
func (r *Report) Write(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"plan", "consumer", "leaf", "instants", "asked", "was", "would", "was_owned", "was_shared",
		"was_borrowed", "was_lent",
		"would_owned", "would_shared", "would_borrowed", "would_lent", "more_at", "less_at", "was_below_owned_at",
		"would_below_owned_at"})
	for i := range r.Rows {
		o := &r.Rows[i]
		row := []string{o.Plan, o.Consumer, strconv.FormatBool(o.Leaf), strconv.FormatInt(o.Instants, 10)}
		for _, n := range []int64{o.Asked, o.Was.Total(), o.Would.Total(), o.Was.Owned, o.Was.Shared, o.Was.Borrowed,
			o.WasLent,
			o.Would.Owned, o.Would.Shared, o.Would.Borrowed, o.WouldLent} {
			row = append(row, strconv.FormatFloat(r.Hours(n), 'f', 2, 64))
		}
		for _, n := range []int64{o.MoreAt, o.LessAt, o.WasBelow, o.WouldBelow} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		out.Write(row)
	}
	out.Flush()
	return out.Error() // the first of all these writes
}
