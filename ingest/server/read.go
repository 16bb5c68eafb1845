package server

import (
	"fmt"
	"mime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
)

// mediaType is a form of an answer, and what the parameter `format` calls it.
type mediaType struct{ media, format string }

// mediaTypes are the formats of tables in answers, the preferred first.
var mediaTypes = []mediaType{
	{"application/json", "json"},
	{"application/vnd.apache.arrow.stream", "arrow"},
	{"application/vnd.apache.parquet", "parquet"},
	{"application/x-ndjson", "ndjson"},
	{"text/csv", "csv"},
}

// accepted finds the format of a table that the client likes best: the parameter `format`, else the header Accept;
// without both JSON.
func (q *request) accepted() (media, format string, err error) { return q.acceptedOf(mediaTypes) }

// acceptedOf is accepted for other forms, of which the first is preferred.
func (q *request) acceptedOf(types []mediaType) (media, format string, err error) {
	if v := q.query("format"); v != "" {
		var names []string
		for _, m := range types {
			if m.format == v {
				return m.media, m.format, nil
			}
			names = append(names, m.format)
		}
		return "", "", badRequest("parameter format=" + v + ": must be one of " + strings.Join(names, ", "))
	}
	accept := string(q.Request.Header.Peek("Accept"))
	if accept == "" {
		return types[0].media, types[0].format, nil
	}
	best, quality := -1, 0.0
	for range strings.Split(accept, ",")[:min(32, strings.Count(accept, ",")+1)] {
		one, rest, _ := strings.Cut(accept, ",")
		accept = rest
		kind, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		v := 1.0
		if s, ok := params["q"]; ok {
			if v, err = strconv.ParseFloat(s, 64); err != nil {
				continue
			}
		}
		for i, m := range types {
			family, _, _ := strings.Cut(m.media, "/")
			if (kind == m.media || kind == "*/*" || kind == family+"/*") && v > quality {
				best, quality = i, v
				break
			}
		}
	}
	if best < 0 {
		var names []string
		for _, m := range types {
			names = append(names, m.media)
		}
		return "", "", problem{Type: "not-acceptable", Status: 406,
			Detail: "the answer comes as " + strings.Join(names, ", ")}
	}
	return types[best].media, types[best].format, nil
}

// number is a parameter that is a whole number of at least min.
func (q *request) number(name string, min, without int64) (int64, error) {
	v := q.query(name)
	if v == "" {
		return without, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < min {
		return 0, badRequest(fmt.Sprintf("parameter %s=%s: must be a whole number from %d", name, v, min))
	}
	return n, nil
}

// getChanges gives what happened to a source after a cycle; with `wait` it waits until there is something.
func (s *Server) getChanges(q *request) error {
	if err := q.known("source", "since", "wait", "format"); err != nil {
		return err
	}
	since, err := q.number("since", 0, -1)
	if err != nil {
		return err
	}
	if since < 0 {
		return badRequest("parameter since: is missing; 0 is the beginning")
	}
	var until time.Time
	if v := q.query("wait"); v != "" {
		wait, err := time.ParseDuration(v)
		if err != nil || wait < 0 {
			return badRequest("parameter wait=" + v + ": must be a duration such as 30s")
		}
		until = time.Now().Add(min(wait, s.o.Limits.WaitMax))
	}
	if _, _, err := q.accepted(); err != nil {
		return err
	}
	source := q.query("source")
	p, err := q.engine.View().Pages(source, since, s.o.Limits.ResponseRowsMax)
	if err != nil {
		return err
	}
	if p.Rows() == 0 && !until.IsZero() {
		if p, err = s.await(q, source, p.UpTo, until); err != nil {
			return err
		}
	}
	q.tellTime()
	return q.rows(changed(q.engine, p), moment{cycle: p.UpTo}, func() {})
}

// tellTime adds the header Stint-Now, the service's time: clients compare deadlines with it, because their clocks may
// differ.
func (q *request) tellTime() {
	q.Response.Header.Set("Stint-Now", q.engine.Now().UTC().Format(time.RFC3339Nano))
}

// goneLook is how often a call that waits looks whether its client has closed the connection: its share of the calls
// that may wait is free again by then.
const goneLook = time.Second

// await waits until there are changes of a source after a cycle, or the time is up. Only a cycle that has some wakes
// it.
func (s *Server) await(q *request, source string, since int64, until time.Time) (*engine.Pages, error) {
	if !s.waiters.take(q.caller, 1) {
		return nil, busy("this caller has too many calls that wait for changes")
	}
	defer s.waiters.give(q.caller, 1)
	timer, look := time.NewTimer(time.Until(until)), time.NewTicker(goneLook)
	defer timer.Stop()
	defer look.Stop()
	w := q.engine.Wait(source)
	p, err := q.engine.View().Pages(source, since, s.o.Limits.ResponseRowsMax) // what came before it waited
	if err != nil || p.Rows() > 0 {
		w.Stop()
		return p, err
	}
	for waits := true; waits; {
		select {
		case <-look.C:
			waits = !gone(q.Conn())
			continue
		case <-w.Woken():
		case <-timer.C:
		case <-s.closing:
		case <-s.replaced(q.engine):
			w.Stop()
			return nil, problem{Type: "not-ready", Status: 503, RetryAfter: 1,
				Detail: "this process begins anew, as a follower; ask again"}
		}
		waits = false
	}
	// Of what is known to have nothing, nothing is looked at again; it may be forgotten by now.
	return q.engine.View().Pages(source, max(p.UpTo, w.Stop()), s.o.Limits.ResponseRowsMax)
}

func noCycle() error {
	return problem{Type: "no-cycle", Status: 409, Detail: "no cycle has run yet"}
}

// cyclesMax is how many cycles one call gives at most.
const cyclesMax = 100_000

// getCycles gives the last cycles, or those before one, the oldest first: from memory as far as they are there, else
// from the decision log.
func (s *Server) getCycles(q *request) error {
	if err := q.known("limit", "before", "format"); err != nil {
		return err
	}
	limit, err := q.number("limit", 1, 100)
	if err != nil {
		return err
	}
	w, err := s.shown(q)
	if err != nil {
		return err
	}
	before, err := q.number("before", 1, w.last+1)
	if err != nil {
		return err
	}
	before, limit = min(before, w.last+1), min(limit, cyclesMax)
	if w.view != nil {
		recent := w.view.Recent
		for len(recent) > 0 && recent[len(recent)-1].Summary.Cycle >= before {
			recent = recent[:len(recent)-1]
		}
		if int64(len(recent)) >= limit || s.history.dir == "" || len(recent) > 0 && recent[0].Summary.Cycle == 1 ||
			w.last == 0 {
			recent = recent[max(0, len(recent)-int(min(limit, int64(len(recent))))):]
			return q.rows(all(cyclesTable(recent)), w.at(w.last), func() {})
		}
	}
	t, err := s.cyclesBefore(w.view, before, int(limit))
	if err != nil {
		return err
	}
	return q.rows(all(t), w.at(w.last), func() {})
}

// cyclesBefore are the rows of cycles before one out of the log, and of those that it does not have yet out of memory.
func (s *Server) cyclesBefore(v *engine.View, before int64, limit int) (*decision.Table, error) {
	t, err := s.history.cycles(before, limit)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return cyclesTable(nil), nil
	}
	t = unlogged(t)
	if v == nil {
		return t, nil
	}
	last := t.Columns[0].Int[t.Rows-1]
	var recent []*decision.Cycle
	for _, c := range v.Recent {
		if n := c.Summary.Cycle; n > last && n < before {
			recent = append(recent, c)
		}
	}
	if len(recent) == 0 {
		return t, nil
	}
	both := joined(t, cyclesTable(recent))
	return both.Slice(max(0, both.Rows-limit), both.Rows), nil
}

// joined is the rows of two tables of the same columns.
func joined(a, b *decision.Table) *decision.Table {
	out := &decision.Table{Name: a.Name, Rows: a.Rows + b.Rows, Columns: make([]decision.Column, len(a.Columns))}
	for i := range a.Columns {
		x, y, to := &a.Columns[i], b.Column(a.Columns[i].Name), &out.Columns[i]
		*to = decision.Column{Name: x.Name, Type: x.Type, Optional: x.Optional}
		to.Int, to.Float = slices.Concat(x.Int, y.Int), slices.Concat(x.Float, y.Float)
		to.Lists = slices.Concat(x.Lists, y.Lists)
		if x.Null != nil || y.Null != nil {
			to.Null = slices.Concat(nulls(x, a.Rows), nulls(y, b.Rows))
		}
		if x.Type == decision.Text {
			var m melding
			to.Code = slices.Concat(m.codes(x), m.codes(y))
			to.Dict = &m.names
		}
	}
	return out
}

// nulls tells of which of so many rows of a column there is no value.
func nulls(c *decision.Column, rows int) []bool {
	if c.Null == nil {
		return make([]bool, rows)
	}
	return c.Null
}

// cyclesTable is the rows of cycles as one table, with the column cycle.
func cyclesTable(cycles []*decision.Cycle) *decision.Table {
	var out *decision.Table
	numbers := decision.Column{Name: "cycle", Type: decision.Int}
	for _, c := range cycles {
		t := c.Summary.Schema().Table()
		numbers.Int = append(numbers.Int, c.Summary.Cycle)
		if out == nil {
			out = &t
			continue
		}
		out.Rows++
		for i := range t.Columns {
			to, from := &out.Columns[i], &t.Columns[i]
			to.Int, to.Float = append(to.Int, from.Int...), append(to.Float, from.Float...)
			to.Lists = append(to.Lists, from.Lists...)
			if from.Type == decision.Text { // a word a row
				words := to.Dict.(decision.Words)
				to.Code = append(to.Code, int32(len(words)))
				to.Dict = append(words, string(from.Dict.Bytes(from.Code[0])))
			}
		}
	}
	if out == nil {
		t := (&decision.Summary{}).Schema().Table()
		out = &t
		empty(out)
	}
	out.Columns = append([]decision.Column{numbers}, out.Columns...)
	return unlogged(out)
}

// unlogged is the table cycles without what the log alone knows, which is not in memory.
func unlogged(t *decision.Table) *decision.Table {
	some := *t
	some.Columns = slices.DeleteFunc(slices.Clone(t.Columns), func(c decision.Column) bool {
		return c.Name == "inputs" || strings.HasSuffix(c.Name, "_cycle")
	})
	return &some
}

// empty takes the rows of a table away.
func empty(t *decision.Table) {
	t.Rows = 0
	for i := range t.Columns {
		c := &t.Columns[i]
		c.Int, c.Float, c.Code, c.Lists, c.Null = c.Int[:0], c.Float[:0], c.Code[:0], c.Lists[:0], nil
	}
}

// getConsumers gives the consumers with their figures: all, or one and those below it. With `last` it gives one over
// the last cycles.
func (s *Server) getConsumers(q *request) error {
	if err := q.list("last", "until"); err != nil {
		return err
	}
	if q.rest != "" {
		if err := q.who.mayExplain("/" + strings.Trim(q.rest, "/")); err != nil {
			return err
		}
	}
	if q.query("last") != "" || q.query("until") != "" {
		return s.getCurve(q)
	}
	w, err := s.began(q)
	if err != nil {
		return err
	}
	t, key, err := s.decisions(w, w.last, "consumers")
	if err != nil {
		return err
	}
	if q.rest == "" {
		return q.table(t, key, all(t), w.at(w.last))
	}
	wanted := under(t, "/"+strings.Trim(q.rest, "/"))
	for row := range t.Rows {
		if wanted(row) {
			return q.table(t, key, matching(t, wanted), w.at(w.last))
		}
	}
	return noConsumer(q.rest)
}

func noConsumer(path string) error {
	return problem{Type: "not-found", Status: 404, Detail: "no consumer /" + strings.Trim(path, "/") + " in any plan"}
}

// under tells of the rows of a table whether they are a consumer's, or of one below it.
func under(t *decision.Table, path string) func(row int) bool {
	return words(t, "consumer", func(word string) bool {
		return word == path || path == "/" || strings.HasPrefix(word, path+"/")
	})
}

// getTable gives a decision table of a cycle: of the last one from memory, of others from the decision log.
func (s *Server) getTable(q *request) error {
	if err := q.list("consumer", "version"); err != nil {
		return err
	}
	which, name, _ := strings.Cut(q.rest, "/")
	begun := s.began
	if decision.IsStanding(name) {
		begun = s.settled
	}
	w, err := begun(q)
	if err != nil {
		return err
	}
	n := w.last
	if which != "latest" {
		if n, err = strconv.ParseInt(which, 10, 64); err != nil || n < 1 {
			return badRequest("cycle " + which + ": must be a number from 1, or latest")
		}
	}
	if same, err := s.versioned(q, w, n, which != "latest"); err != nil || same {
		return err
	}
	t, key, err := s.decisions(w, n, name)
	if err != nil {
		return err
	}
	next := all(t)
	if consumer := q.query("consumer"); consumer != "" {
		next = matching(t, under(t, consumer))
	}
	return q.table(t, key, next, w.at(n))
}

// cycleTable names a table of a cycle in memory.
type cycleTable struct {
	cycle *decision.Cycle
	name  string
}

// decisions finds a table of a cycle, and what stands for it among the pages.
func (s *Server) decisions(w shown, n int64, name string) (t *decision.Table, key any, err error) {
	if n > w.last {
		return nil, nil, noCycleYet(n, w.last)
	}
	if v := w.view; v != nil && n == w.last {
		switch name {
		case "cycles":
			t = cyclesTable([]*decision.Cycle{v.Last})
			return t, t, nil
		case "consumers":
			return v.Consumers(), v.Consumers(), nil
		}
		for _, t := range v.Last.Tables() {
			if t.Name == name {
				return &t, cycleTable{v.Last, name}, nil
			}
		}
		if decision.IsStanding(name) {
			return v.Standing.Table(name), v.Standing.Table(name), nil
		}
	}
	t, err = s.history.table(name, n)
	return t, t, err
}

func noCycleYet(n, last int64) error {
	detail := fmt.Sprintf("there was no cycle %d yet; the last one is %d", n, last)
	return problem{Type: "not-found", Status: 404, Detail: detail}
}

// getHealth tells that the process lives and can do its work.
func (s *Server) getHealth(q *request) error {
	e := s.engine.Load()
	if e == nil {
		e = s.starts.Load()
	}
	if e != nil {
		if why := e.Unhealthy(); why != "" {
			return problem{Type: "unhealthy", Status: 503, Detail: why}
		}
	}
	return q.json(200, health{Status: "ok", Version: s.o.Version})
}

// health is the answer of a process that can do its work.
type health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

// readiness is the answer of a service that takes input and runs cycles, or that shows a log.
type readiness struct {
	Status   string `json:"status"`
	Cycle    int64  `json:"cycle"`
	Plan     bool   `json:"plan"` // there is a policy
	Instance string `json:"instance"`
	LogAlone bool   `json:"log_alone,omitempty"`

	// Of a service.
	LogBehind *int64 `json:"log_behind_cycles,omitempty"`
	LogLost   *bool  `json:"log_at_next_start,omitempty"`

	// Of a process of a cluster.
	Leads  *bool   `json:"leads,omitempty"`
	Leader *string `json:"leader,omitempty"`
	Term   *uint64 `json:"term,omitempty"`
}

// getReady tells whether input is taken and cycles run.
func (s *Server) getReady(q *request) error {
	e := s.engine.Load()
	if s.o.LogAlone {
		_, last, err := s.history.bounds()
		if err != nil {
			return err
		}
		return q.json(200, readiness{Status: "ok", Cycle: last, Plan: last > 0, Instance: s.instance, LogAlone: true})
	}
	if e == nil {
		return problem{Type: "not-ready", Status: 503, Detail: *s.why.Load(), RetryAfter: 1}
	}
	why := e.Unready()
	if why == "" {
		why = s.apart()
	}
	if why != "" {
		return problem{Type: "not-ready", Status: 503, Detail: why, RetryAfter: 1}
	}
	if j := s.member(); j != nil && j.Leader().Name == "" {
		return noLeader("no process of the cluster leads yet; input is taken once one does")
	}
	stats, v := e.Stats(), e.View()
	ready := readiness{
		Status: "ok", Cycle: v.Cycle(), Plan: v.Policy != nil, Instance: s.instance,
		LogBehind: &stats.LogBehind, LogLost: &stats.LogLost,
	}
	if j := s.member(); j != nil {
		l, leads := j.Leader(), !e.Following()
		ready.Leads, ready.Leader, ready.Term = &leads, &l.Name, &l.Term
	}
	return q.json(200, ready)
}
