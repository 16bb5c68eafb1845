package engine

import (
	"sync"

	"github.com/stintd/stint/core/decision"
)

// eventRows is where the events of one source are in the tables of a cycle: rows in rising order.
type eventRows struct{ releases, reclaims, grants []int32 }

// bySource finds the events of every source of a cycle. It is made once for a cycle, so that whoever reads the changes
// of a source looks at the rows of that source alone. O(rows).
func bySource(c *decision.Cycle) map[string]eventRows {
	index := map[string]eventRows{}
	add := func(column *decision.Coded, set func(*eventRows, []int32)) {
		byCode(column, func(code int32, rows []int32) {
			source := string(column.Dict.Bytes(code))
			e := index[source]
			set(&e, rows)
			index[source] = e
		})
	}
	add(&c.Releases.Source, func(e *eventRows, rows []int32) { e.releases = rows })
	add(&c.Reclaims.Source, func(e *eventRows, rows []int32) { e.reclaims = rows })
	add(&c.Grants.Source, func(e *eventRows, rows []int32) { e.grants = rows })
	return index
}

// byCode gives the rows of each code that a column has. O(rows + words).
func byCode(c *decision.Coded, each func(code int32, rows []int32)) {
	if len(c.Code) == 0 {
		return
	}
	ends := make([]int32, c.Dict.Len())
	known := int32(0)
	for _, code := range c.Code {
		if code != decision.Null {
			ends[code]++
			known++
		}
	}
	from := int32(0)
	for code, n := range ends {
		ends[code] = from
		from += n
	}
	rows := make([]int32, known)
	for row, code := range c.Code {
		if code != decision.Null {
			rows[ends[code]] = int32(row)
			ends[code]++
		}
	}
	from = 0
	for code, end := range ends {
		if end > from {
			each(int32(code), rows[from:end:end])
		}
		from = end
	}
}

// indexed gives the indexes of the cycles that are kept, in their order; those of the last view are used again.
func (e *Engine) indexed(old *View) []map[string]eventRows {
	index := make([]map[string]eventRows, len(e.recent))
	for i, at := 0, 0; i < len(e.recent); i++ {
		for at < len(old.Recent) && old.Recent[at].Summary.Cycle < e.recent[i].Summary.Cycle {
			at++
		}
		if at < len(old.Recent) && old.Recent[at] == e.recent[i] {
			index[i] = old.index[at]
		} else {
			index[i] = bySource(e.recent[i])
		}
	}
	return index
}

// waiters are those who wait for changes, by source; the empty source is any.
type waiters struct {
	mu    sync.Mutex
	cycle int64 // the last cycle that woke whom it concerns
	of    map[string]map[*Waiter]struct{}
}

// Waiter waits for changes of one source.
type Waiter struct {
	in     *waiters
	source string
	woken  chan struct{}
	quiet  int64 // the last cycle known to have nothing for the source; set when it is woken or stops
}

// Wait makes a waiter for changes of a source; empty: of any. From now on the first cycle with such changes wakes it,
// after they can be read. What came before is for the caller to look at, in a view that it gets after this call. Stop
// must be called.
func (e *Engine) Wait(source string) *Waiter {
	w := &Waiter{in: &e.waiting, source: source, woken: make(chan struct{})}
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	if w.in.of == nil {
		w.in.of = map[string]map[*Waiter]struct{}{}
	}
	if w.in.of[source] == nil {
		w.in.of[source] = map[*Waiter]struct{}{}
	}
	w.in.of[source][w] = struct{}{}
	return w
}

// Woken is closed when there are changes.
func (w *Waiter) Woken() <-chan struct{} { return w.woken }

// Stop ends the waiting. No cycle since Wait, up to the one that it gives, has changes of the source.
func (w *Waiter) Stop() (quiet int64) {
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	select {
	case <-w.woken:
		return w.quiet
	default:
	}
	delete(w.in.of[w.source], w)
	if len(w.in.of[w.source]) == 0 {
		delete(w.in.of, w.source)
	}
	return w.in.cycle
}

// wake wakes those whom a cycle concerns. O(sources that have events in it, or that somebody waits for, whichever are
// fewer).
func (ws *waiters) wake(c *decision.Cycle, index map[string]eventRows) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.cycle = c.Summary.Cycle
	if len(index) > 0 {
		ws.wakeSource("", ws.cycle)
	}
	if len(index) < len(ws.of) {
		for source := range index {
			ws.wakeSource(source, ws.cycle)
		}
		return
	}
	for source := range ws.of {
		if _, concerned := index[source]; concerned {
			ws.wakeSource(source, ws.cycle)
		}
	}
}

// wakeSource wakes those who wait for a source.
func (ws *waiters) wakeSource(source string, cycle int64) {
	for w := range ws.of[source] {
		w.quiet = cycle - 1
		close(w.woken)
	}
	delete(ws.of, source)
}
