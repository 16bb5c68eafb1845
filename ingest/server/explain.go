package server

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/export"
)

// textTypes are the forms of answers that are sentences, the preferred first.
var textTypes = []mediaType{{"application/json", "json"}, {"text/plain", "text"}}

// getExplain tells why a consumer, or an allocation of it, has what it has after a cycle: of the last one from memory, of
// others from the decision log.
func (s *Server) getExplain(q *request) error {
	if err := q.known("allocation", "cycle", "format"); err != nil {
		return err
	}
	media, format, err := q.acceptedOf(textTypes)
	if err != nil {
		return err
	}
	v, err := s.settled(q)
	if err != nil {
		return err
	}
	n, err := q.number("cycle", 1, v.Cycle())
	if err != nil {
		return err
	}
	f, err := s.facts(v, n)
	if err != nil {
		return err
	}
	target, err := f.Find("/" + strings.Trim(q.rest, "/"))
	if err == nil && q.QueryArgs().Has("allocation") {
		target, err = f.Allocation(explain.Target{Consumer: target.Consumer}, q.query("allocation"))
	}
	var e *explain.Explanation
	if err == nil {
		e, err = explain.Explain(f, target)
	}
	if err != nil {
		return problem{Type: "not-found", Status: 404, Detail: err.Error()}
	}
	q.Response.Header.Set("Stint-Cycle", strconv.FormatInt(n, 10))
	q.Response.Header.Set("Vary", "Accept")
	if format == "json" {
		return q.json(200, e)
	}
	var b bytes.Buffer
	if err := e.Write(&b, explain.Style{}); err != nil {
		return err
	}
	q.SetContentType(media + "; charset=utf-8")
	q.SetBody(b.Bytes())
	return nil
}

// settledMax is how long an explanation waits for the holdings of a cycle that can be read already. They come right behind it.
const settledMax = 2 * time.Second

// settled is a view whose holdings are those of its last cycle.
func (s *Server) settled(q *request) (*engine.View, error) {
	timer := time.NewTimer(settledMax)
	defer timer.Stop()
	for {
		v := q.engine.View()
		if v.Last == nil {
			return nil, noCycle()
		}
		if v.Holdings != nil && v.Holdings.Cycle == v.Cycle() {
			return v, nil
		}
		select {
		case <-v.Next():
		case <-timer.C:
			return nil, problem{Type: "not-ready", Status: 503, Detail: "what is held after the last cycle is not known yet", RetryAfter: 1}
		}
	}
}

// facts are what an explanation of a cycle goes by.
func (s *Server) facts(v *engine.View, n int64) (*explain.Facts, error) {
	if n > v.Cycle() {
		return nil, problem{Type: "not-found", Status: 404, Detail: fmt.Sprintf("there was no cycle %d yet; the last one is %d", n, v.Cycle())}
	}
	if n < v.Cycle() {
		return s.history.facts(n)
	}
	c := v.Last
	f := &explain.Facts{
		Cycle: n, NowUS: c.Summary.NowUS, Revision: c.Summary.Revision, Policy: v.InForce.Policy,
		Consumers: tableOf(c.Consumers.Table()), Amounts: tableOf(c.Amounts.Table()), Shares: tableOf(c.Shares.Table()), Shortfalls: tableOf(c.Shortfalls.Table()),
		Grants: tableOf(c.Grants.Table()), Reclaims: tableOf(c.Reclaims.Table()), Releases: tableOf(c.Releases.Table()), Holdings: &v.Holdings.Table,
	}
	for _, past := range v.Recent {
		f.Past = append(f.Past, tableOf(past.Reclaims.Table()))
	}
	if c.Keyframe {
		f.Hosts = tableOf(c.Hosts.Table())
	}
	return f, nil
}

func tableOf(t decision.Table) *decision.Table { return &t }

// facts reads those of a cycle from the decision log.
func (h *history) facts(n int64) (*explain.Facts, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, err := h.at(n)
	if err != nil {
		return nil, err
	}
	return explain.Read(r, n, planName)
}

// at is a reader that sees a cycle.
func (h *history) at(n int64) (*export.Reader, error) {
	if h.dir == "" {
		return nil, problem{Type: "not-found", Status: 404, Detail: "no decision log is written: only the last cycle can be read"}
	}
	behind := problem{Type: "not-logged", Status: 503, RetryAfter: 1, Detail: fmt.Sprintf("cycle %d is not in the decision log yet", n)}
	if h.r == nil || len(h.r.Cycles()) == 0 || h.r.Cycles()[len(h.r.Cycles())-1] < n {
		r, err := h.r, error(nil)
		if r == nil {
			r, err = export.OpenLog(h.dir)
		} else {
			err = r.Refresh()
		}
		if err != nil {
			h.r = nil
			return nil, behind
		}
		h.r = r
	}
	cycles := h.r.Cycles()
	if _, ok := slices.BinarySearch(cycles, n); !ok {
		if len(cycles) == 0 || n > cycles[len(cycles)-1] {
			return nil, behind
		}
		return nil, problem{Type: "not-found", Status: 404, Detail: fmt.Sprintf("cycle %d is not in the decision log", n)}
	}
	return h.r, nil
}
