package engine

import (
	"sync"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// View is all that can be read at one time. Nobody changes it; it may be kept.
type View struct {
	Last     *decision.Cycle   // the last cycle, with its state tables; nil before the first
	Recent   []*decision.Cycle // the events of the last cycles, the oldest first
	Holdings *Holdings         // may be one cycle behind while a cycle ends; nil before the first
	Standing *Standing         // as Holdings
	Policy   *PolicyView       // the newest policy, in force from the next cycle on; nil: none yet
	InForce  *PolicyView       // that of the last cycle; nil before the first

	resync int64                  // changes up to this cycle are void: see Engine.resume
	next   chan struct{}          // closed when there is a newer view
	index  []map[string]eventRows // of Recent: where the events of each source are
	wide   func() *decision.Table
}

// PolicyView is a policy file that was accepted.
type PolicyView struct {
	Policy          *plan.Policy
	Text            []byte
	Revision        int64
	Author, Message string
	AtUS            int64
}

// Holdings is what is held after a cycle: a row for each holding, in no order that means anything. It is the table
// holdings of the log, and besides the reclaim that units are under, with the time when they are due.
type Holdings struct {
	Table decision.Table
	Cycle int64
}

// Cycle is the number of the last cycle, 0 before the first.
func (v *View) Cycle() int64 {
	if v.Last == nil {
		return 0
	}
	return v.Last.Summary.Cycle
}

// Next is closed when there is a newer view.
func (v *View) Next() <-chan struct{} { return v.next }

// Consumers is the table consumers with the figures of amounts as columns. It is made when
// first asked for. Nil before the first cycle.
func (v *View) Consumers() *decision.Table {
	if v.wide == nil {
		return nil
	}
	return v.wide()
}

// publish makes a newer view of what holds now.
func (e *Engine) publish() { e.publishWith(nil, nil) }

// publishWith is publish with other holdings, and what else stands; nil: those of the last view.
func (e *Engine) publishWith(held *Holdings, standing *Standing) {
	old := e.view.Load()
	v := &View{Last: e.frozen, Recent: e.recent, Holdings: held, Standing: standing, Policy: e.policy,
		InForce: e.inForce, resync: e.resync,
		next: make(chan struct{}), wide: old.wide}
	if held == nil {
		v.Holdings = old.Holdings
	}
	if standing == nil {
		v.Standing = old.Standing
	}
	v.index = e.indexed(old)
	if last := e.frozen; last != nil && last != old.Last {
		v.wide = sync.OnceValue(last.Wide)
	}
	e.view.Store(v)
	close(old.next)
	if n := len(v.Recent); v.Last != nil && v.Last != old.Last && n > 0 && v.Recent[n-1].Summary.Cycle == v.Cycle() {
		e.waiting.wake(v.Recent[n-1], v.index[n-1])
	}
}

// holdings is what is held now. O(holdings).
func (e *Engine) holdings(dict func(decision.Dict) decision.Dict) *Holdings {
	s := e.state
	h := &s.Holding
	n := 0
	for q := range h.Sub {
		if h.Sub[q] != cluster.NoID && h.Units[q] > 0 {
			n++
		}
	}
	words := make(decision.Words, len(s.Plans))
	for i := range words {
		words[i] = s.Plans[i].Name
	}
	var devices cluster.Names
	text := func(name string, d decision.Dict) decision.Column {
		return decision.Column{Name: name, Type: decision.Text, Code: make([]int32, 0, n), Dict: dict(d)}
	}
	ints := func(name string) decision.Column {
		return decision.Column{Name: name, Type: decision.Int, Int: make([]int64, 0, n)}
	}
	c := []decision.Column{
		text("plan", words), text("source", &s.Source), text("consumer", &s.Consumer), text("allocation", &s.Label),
		text("sub", &s.Label),
		text("host", &s.Host.Names), ints("units"), text("origin", decision.Origins), text("pool", &s.Consumer),
		text("lender", &s.Consumer), ints("granted"), ints("reclaim"),
		{Name: "deadline", Type: decision.Time, Int: make([]int64, 0, n), Null: make([]bool, 0, n), Optional: true},
		text("device", &devices),
	}
	for q, sub := range h.Sub {
		if sub == cluster.NoID || h.Units[q] == 0 {
			continue
		}
		p := s.Sub.Plan[sub]
		codes := [...]int32{0: p, 1: int32(s.Sub.Source[sub]), 2: int32(s.Sub.Consumer[sub]),
			3: s.Alloc.Name[s.Sub.Alloc[sub]],
			4: s.Sub.Name[sub], 5: int32(s.Plans[p].Parcels.Host[h.Parcel[q]]), 7: h.Origin[q], 8: int32(h.Pool[q]),
			9: int32(h.Lender[q])}
		for i, code := range codes {
			if i != 6 {
				c[i].Code = append(c[i].Code, code)
			}
		}
		var number, due int64
		if id := h.Set[q]; id != cluster.NoID {
			number, due = s.Set.Number[id], h.Due[q]
		}
		c[6].Int = append(c[6].Int, h.Units[q])
		c[10].Int, c[11].Int = append(c[10].Int, h.Granted[q]), append(c[11].Int, number)
		c[13].Code = append(c[13].Code, h.On(cluster.HoldingID(q)).Code(&devices))
		c[12].Int, c[12].Null = append(c[12].Int, due), append(c[12].Null, number == 0)
	}
	c[13].Dict = &devices
	return &Holdings{Table: decision.Table{Name: "holdings", Rows: n, Columns: c}, Cycle: s.Cycle}
}

// codeOf finds a word in a dictionary. O(words).
func codeOf(d decision.Dict, word string) (int32, bool) {
	if d == nil {
		return 0, false
	}
	for i := range int32(d.Len()) {
		if string(d.Bytes(i)) == word {
			return i, true
		}
	}
	return 0, false
}

// Pick copies rows of a table.
func Pick(t *decision.Table, rows []int32) *decision.Table {
	out := &decision.Table{Name: t.Name, Rows: len(rows), Columns: make([]decision.Column, len(t.Columns))}
	for i := range t.Columns {
		from, to := &t.Columns[i], &out.Columns[i]
		*to = decision.Column{Name: from.Name, Type: from.Type, Dict: from.Dict, Optional: from.Optional}
		to.Int, to.Float, to.Code = picked(from.Int, rows), picked(from.Float, rows), picked(from.Code, rows)
		to.Lists, to.Null = picked(from.Lists, rows), picked(from.Null, rows)
	}
	return out
}

func picked[T any](from []T, rows []int32) []T {
	if from == nil {
		return nil
	}
	to := make([]T, len(rows))
	for i, row := range rows {
		to[i] = from[row]
	}
	return to
}
