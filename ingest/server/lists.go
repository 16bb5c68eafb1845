package server

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/export"
)

// asOf is the cycle that a call asks for by its parameter `cycle`, by default the last one, and what is shown.
func (s *Server) asOf(q *request) (w shown, n int64, same bool, err error) {
	if w, err = s.settled(q); err != nil {
		return w, 0, false, err
	}
	if n, err = q.number("cycle", 1, w.last); err != nil {
		return w, 0, false, err
	}
	same, err = s.versioned(q, w, n, q.query("cycle") != "")
	return w, n, same, err
}

// heldAt is what is held after a cycle, with the requests as far as they are known; nil: they are not.
func (s *Server) heldAt(w shown, n int64) (held, requests *decision.Table, err error) {
	if v := w.view; v != nil && n == w.last {
		return &v.Holdings.Table, v.Standing.Requests(), nil
	}
	held, err = s.history.held(n)
	return held, nil, err
}

// madeOf is a table that is made of what is held after a cycle, kept for who asks for it again.
func (s *Server) madeOf(
	w shown, n int64, name string, make func(held, requests *decision.Table) *decision.Table,
) (*decision.Table, error) {
	held, requests, err := s.heldAt(w, n)
	if err != nil {
		return nil, err
	}
	if w.view == nil || n < w.last {
		return s.history.made(n, name, func(*export.Reader) (*decision.Table, error) {
			return make(held, requests), nil
		})
	}
	s.now.mu.Lock()
	defer s.now.mu.Unlock()
	if s.now.cycle != n || s.now.of == nil {
		s.now.cycle, s.now.of = n, map[string]*decision.Table{}
	}
	if s.now.of[name] == nil {
		s.now.of[name] = make(held, requests)
	}
	return s.now.of[name], nil
}

// getLoans gives who has what of whom.
func (s *Server) getLoans(q *request) error {
	if err := q.list("cycle", "version"); err != nil {
		return err
	}
	w, n, same, err := s.asOf(q)
	if err != nil || same {
		return err
	}
	var t *decision.Table
	if v := w.view; v != nil && n == w.last {
		t = v.Standing.Loans()
	} else if t, err = s.history.loans(n); err != nil {
		return err
	}
	return q.table(t, t, all(t), w.at(n))
}

// loans is who had what of whom after a cycle. Where the log does not have that table it is made of what was held.
func (h *history) loans(n int64) (*decision.Table, error) {
	stands := false
	err := h.reading(n, func(r *export.Reader) error {
		_, stands = r.Stands(n)
		return nil
	})
	if err != nil || stands {
		return h.table("loans", n)
	}
	held, err := h.held(n)
	if err != nil {
		return nil, err
	}
	return h.made(n, "loans of holdings", func(*export.Reader) (*decision.Table, error) {
		lender := held.Column("lender")
		lent := func(row int) bool { return lender.Code[row] != decision.Null }
		return sumBy(held, nil, []string{"plan", "lender", "consumer", "pool"}, lent).
			table("loans", []string{"plan", "lender", "borrower", "pool"}, "under_recall"), nil
	})
}

// groupings are the columns by which holdings can be added up.
var groupings = map[string][]string{
	"consumer": {"plan", "consumer", "origin", "pool", "lender"},
	"host":     {"plan", "host", "consumer", "origin", "lender"},
}

// getHoldings gives what is held now, or after an earlier cycle, as it is or added up.
func (s *Server) getHoldings(q *request) error {
	if err := q.list("source", "cycle", "by", "host", "consumer", "version"); err != nil {
		return err
	}
	if !s.o.LogAlone && q.query("cycle") == "" && q.query("by") == "" { // who follows the changes waits for nothing
		h := q.engine.View().Holdings
		if h == nil {
			return noCycle()
		}
		q.tellTime()
		return q.table(&h.Table, &h.Table.Columns[0], q.chosen(&h.Table), moment{cycle: h.Cycle})
	}
	w, n, same, err := s.asOf(q)
	if err != nil || same {
		return err
	}
	q.packs = true
	var t *decision.Table
	switch by := q.query("by"); {
	case by == "":
		t, _, err = s.heldAt(w, n)
	case groupings[by] == nil:
		return badRequest("parameter by=" + by + ": must be consumer or host")
	default:
		t, err = s.madeOf(w, n, "held by "+by, func(held, requests *decision.Table) *decision.Table {
			return sumBy(held, requests, groupings[by], nil).table("holdings", groupings[by], "leaving")
		})
	}
	if err != nil {
		return err
	}
	return q.table(t, t, q.chosen(t), w.at(n))
}

// chosen are the rows of a table of holdings that the parameters ask for.
func (q *request) chosen(t *decision.Table) rows {
	var wanted []func(row int) bool
	if source := q.query("source"); source != "" {
		wanted = append(wanted, words(t, "source", func(word string) bool { return word == source }))
	}
	if host := q.query("host"); host != "" {
		wanted = append(wanted, words(t, "host", func(word string) bool { return word == host }))
	}
	if consumer := q.query("consumer"); consumer != "" {
		wanted = append(wanted, under(t, consumer))
	}
	switch len(wanted) {
	case 0:
		return all(t)
	case 1:
		return matching(t, wanted[0])
	}
	return matching(t, func(row int) bool {
		return !slices.ContainsFunc(wanted, func(is func(int) bool) bool { return !is(row) })
	})
}

// getHosts gives the hosts with capacity, use and state: of a service as they are now with their attributes, of a log
// as its last keyframe up to the cycle has them.
func (s *Server) getHosts(q *request) error {
	if err := q.list("cycle", "host", "by", "version"); err != nil {
		return err
	}
	by := q.query("by")
	if by != "" && by != "plan" && by != "group" {
		return badRequest("parameter by=" + by + ": must be plan or group")
	}
	w, n, same, err := s.asOf(q)
	if err != nil || same {
		return err
	}
	var t *decision.Table
	if v := w.view; v != nil && n == w.last {
		t = v.Standing.Hosts()
	} else if t, err = s.history.hosts(n); err != nil {
		return err
	}
	if by == "" {
		return q.table(t, t, q.chosen(t), w.at(n))
	}
	sum := hostsBy(t, map[string][]string{"plan": {"plan", "state"}, "group": {"plan", "group", "state"}}[by])
	return q.table(sum, sum, all(sum), w.at(n))
}

// hostsBy adds hosts up by at most three columns.
func hostsBy(t *decision.Table, by []string) *decision.Table {
	var m melding
	var of, keys [3][]int32
	for i, name := range by {
		of[i] = m.codes(t.Column(name))
	}
	row := map[[3]int32]int{}
	var hosts []int64
	to := make([]int, t.Rows)
	for i := range t.Rows {
		var k [3]int32
		for n := range by {
			k[n] = at(of[n], i)
		}
		place, ok := row[k]
		if !ok {
			place = len(hosts)
			row[k], hosts = place, append(hosts, 0)
			for n := range by {
				keys[n] = append(keys[n], k[n])
			}
		}
		hosts[place]++
		to[i] = place
	}
	out := &decision.Table{Name: "hosts", Rows: len(hosts)}
	for n, name := range by {
		out.Columns = append(out.Columns, m.text(name, keys[n]))
	}
	out.Columns = append(out.Columns, ints("hosts", hosts))
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Type != decision.Int {
			continue
		}
		values, null := make([]int64, len(hosts)), slices.Repeat([]bool{true}, len(hosts))
		for j, v := range c.Int {
			if c.Null == nil || !c.Null[j] {
				values[to[j]], null[to[j]] = values[to[j]]+v, false
			}
		}
		out.Columns = append(out.Columns, optional(c.Name, values, null))
	}
	return out
}

// hosts is the keyframe of hosts as a row for each of them.
func (h *history) hosts(n int64) (*decision.Table, error) {
	return h.made(n, "hosts wide", func(r *export.Reader) (*decision.Table, error) {
		long, err := r.Table("hosts", n)
		if err != nil {
			return nil, err
		}
		var m melding
		plan, host, state := m.codes(long.Column("plan")), m.codes(long.Column("host")), m.codes(long.Column("state"))
		dimension := m.codes(long.Column("dimension"))
		capacity, used := long.Column("capacity").Int, long.Column("used").Int
		row := map[[2]int32]int{}
		var kept []int32
		var dims []int32
		column := map[int32]int{}
		for i := range long.Rows {
			k := [2]int32{plan[i], host[i]}
			if _, ok := row[k]; !ok {
				row[k] = len(kept)
				kept = append(kept, int32(i))
			}
			if _, ok := column[dimension[i]]; !ok {
				column[dimension[i]] = len(dims)
				dims = append(dims, dimension[i])
			}
		}
		pick := func(codes []int32) []int32 {
			out := make([]int32, len(kept))
			for i, from := range kept {
				out[i] = codes[from]
			}
			return out
		}
		t := &decision.Table{Name: "hosts", Rows: len(kept), Columns: []decision.Column{
			m.text("plan", pick(plan)), m.text("host", pick(host)), m.text("state", pick(state)),
		}}
		fixed := len(t.Columns)
		for _, prefix := range []string{"capacity_", "used_"} {
			for _, d := range dims {
				values, null := make([]int64, len(kept)), slices.Repeat([]bool{true}, len(kept))
				t.Columns = append(t.Columns, optional(prefix+m.names.String(d), values, null))
			}
		}
		for i := range long.Rows {
			to, at := row[[2]int32{plan[i], host[i]}], fixed+column[dimension[i]]
			t.Columns[at].Int[to], t.Columns[at].Null[to] = capacity[i], false
			at += len(dims)
			t.Columns[at].Int[to], t.Columns[at].Null[to] = used[i], false
		}
		return t, addGroups(r, n, t)
	})
}

// addGroups adds the column `group` to a table of hosts of the log, by the attributes that it tells: of several groups
// the first.
func addGroups(r *export.Reader, n int64, t *decision.Table) error {
	if _, ok := r.Stands(n); !ok {
		return nil
	}
	attributes, err := r.Table("attributes", n)
	if err != nil {
		return err
	}
	var m melding
	host, attribute := m.codes(attributes.Column("host")), m.codes(attributes.Column("attribute"))
	value := m.codes(attributes.Column("value"))
	group, of := m.names.InternString("group"), map[int32]int32{}
	for i := range host {
		if _, known := of[host[i]]; attribute[i] == group && !known {
			of[host[i]] = value[i]
		}
	}
	codes := m.codes(t.Column("host"))
	for i, h := range codes {
		var ok bool
		if codes[i], ok = of[h]; !ok {
			codes[i] = decision.Null
		}
	}
	t.Columns = append(t.Columns, m.text("group", codes))
	return nil
}

// getDemand gives what a source asks for, as of the last cycle.
func (s *Server) getDemand(q *request) error {
	if err := q.list(); err != nil {
		return err
	}
	if !validSource(q.rest) {
		return badSource()
	}
	w, err := s.settled(q)
	if err != nil {
		return err
	}
	v := w.view
	known := slices.ContainsFunc(v.Standing.Sources(), func(is engine.SourceView) bool { return is.Name == q.rest })
	if !known {
		return problem{Type: "no-source", Status: 404, Detail: fmt.Sprintf("there is no source %q", q.rest)}
	}
	t := v.Standing.Requests()
	wanted := words(t, "source", func(word string) bool { return word == q.rest })
	return q.table(t, t, matching(t, wanted), w.at(w.last))
}

// getSources gives who pushes demand, and when it pushed last: as of the last cycle.
func (s *Server) getSources(q *request) error {
	if err := q.list(); err != nil {
		return err
	}
	w, err := s.settled(q)
	if err != nil {
		return err
	}
	return q.rows(all(sourcesTable(q.who.cutSources(w.view.Standing))), w.at(w.last), func() {})
}

func sourcesTable(list []engine.SourceView) *decision.Table {
	names := &cluster.Names{}
	var name, owner, silent []int32
	var heard, rows, wanted, held []int64
	for _, is := range list {
		name = append(name, names.InternString(is.Name))
		by := decision.Null
		if is.Owner != "" {
			by = names.InternString(is.Owner)
		}
		owner = append(owner, by)
		silent = append(silent, names.InternString(strconv.FormatBool(is.Silent)))
		heard, rows = append(heard, is.HeardUS), append(rows, is.Rows)
		wanted, held = append(wanted, is.Wanted), append(held, is.Held)
	}
	text := func(column string, codes []int32) decision.Column {
		return decision.Column{Name: column, Type: decision.Text, Code: codes, Dict: names}
	}
	return &decision.Table{Name: "sources", Rows: len(name), Columns: []decision.Column{
		text("source", name), text("owner", owner), instants("heard", heard), ints("rows", rows),
		text("silent", silent), ints("wanted", wanted), ints("held", held),
	}}
}
