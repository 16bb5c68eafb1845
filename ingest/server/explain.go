package server

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/explain"
)

// textTypes are the forms of answers that are sentences, the preferred first.
var textTypes = []mediaType{{"application/json", "json"}, {"text/plain", "text"}}

// getExplain tells why a consumer, or an allocation of it, has what it has after a cycle: of the last one from memory,
// of others from the decision log.
func (s *Server) getExplain(q *request) error {
	if err := q.known("allocation", "cycle", "format"); err != nil {
		return err
	}
	media, format, err := q.acceptedOf(textTypes)
	if err != nil {
		return err
	}
	w, err := s.settled(q)
	if err != nil {
		return err
	}
	n, err := q.number("cycle", 1, w.last)
	if err != nil {
		return err
	}
	f, err := s.facts(w, n)
	if err != nil {
		return err
	}
	if err := q.who.cutFacts(f); err != nil {
		return err
	}
	target, err := f.Find("/" + strings.Trim(q.rest, "/"))
	if err == nil {
		if err := q.who.mayExplain(target.Consumer); err != nil {
			return err
		}
	}
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

// settledMax is how long an explanation waits for the holdings of a cycle that can be read already. They come right
// behind it.
const settledMax = 2 * time.Second

// settled is what is shown, with the holdings and what else stands of the last cycle.
func (s *Server) settled(q *request) (shown, error) {
	if s.o.LogAlone {
		return s.began(q)
	}
	timer := time.NewTimer(settledMax)
	defer timer.Stop()
	for {
		v := q.engine.View()
		if v.Last == nil {
			return shown{}, noCycle()
		}
		if v.Holdings != nil && v.Holdings.Cycle == v.Cycle() && v.Standing != nil && v.Standing.Cycle == v.Cycle() {
			return shown{v, v.Cycle()}, nil
		}
		select {
		case <-v.Next():
		case <-timer.C:
			return shown{}, problem{Type: "not-ready", Status: 503,
				Detail: "what is held after the last cycle is not known yet", RetryAfter: 1}
		}
	}
}

// facts are what an explanation of a cycle goes by.
func (s *Server) facts(w shown, n int64) (*explain.Facts, error) {
	if n > w.last {
		return nil, noCycleYet(n, w.last)
	}
	v := w.view
	if v == nil || n < w.last {
		return s.history.facts(n)
	}
	c := v.Last
	f := &explain.Facts{
		Cycle: n, NowUS: c.Summary.NowUS, Revision: c.Summary.Revision, Policy: v.InForce.Policy,
		Consumers: c.View("consumers"), Amounts: c.View("amounts"), Shares: c.View("shares"),
		Shortfalls: c.View("shortfalls"), Grants: c.View("grants"), Reclaims: c.View("reclaims"),
		Releases: c.View("releases"), Holdings: &v.Holdings.Table,
	}
	if at := v.Standing; at != nil && at.Cycle == n {
		f.Asked = func() (*explain.Asked, error) {
			return &explain.Asked{Requests: at.Requests(), Inventory: at.Inventory()}, nil
		}
	}
	for _, past := range v.Recent {
		f.Past = append(f.Past, tableOf(past.Reclaims.Schema().Table()))
	}
	if c.Keyframe {
		f.Hosts = tableOf(c.Hosts.Schema().Table())
	}
	return f, nil
}

func tableOf(t decision.Table) *decision.Table { return &t }
