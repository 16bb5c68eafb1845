package server

import (
	"fmt"
	"strconv"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
)

// shown is what can be read: of a service its view, or, where a log is shown alone, that log.
type shown struct {
	view *engine.View // nil: a log alone
	last int64        // the newest cycle, 0 before the first
}

// moment is the cycle at which rows are true. The log may have them in another order than memory has.
type moment struct {
	cycle  int64
	logged bool   // they were read from the log
	all    string // of several divisions: the cycle of each
}

// at is the moment of rows of a cycle.
func (w shown) at(cycle int64) moment {
	return moment{cycle: cycle, logged: w.view == nil || cycle < w.last}
}

func (m moment) String() string {
	s := m.all
	if s == "" {
		s = strconv.FormatInt(m.cycle, 10)
	}
	if m.logged {
		s += " of the decision log"
	}
	return s
}

// shown is what can be read now.
func (s *Server) shown(q *request) (shown, error) {
	if s.o.LogAlone {
		_, last, err := s.history.bounds()
		return shown{nil, last}, err
	}
	v := q.engine.View()
	return shown{v, v.Cycle()}, nil
}

// began is shown, where there was a cycle.
func (s *Server) began(q *request) (shown, error) {
	w, err := s.shown(q)
	if err == nil && w.last == 0 {
		err = noCycle()
	}
	return w, err
}

// versioned sets the validator of an answer that is made of a published cycle. Such a cycle never changes. So an answer
// whose URL names its version may be kept for ever; with another version the URL is of another log, and there is no
// such thing here. It tells whether the client has the answer already. fixed: the URL names the cycle by its number.
func (s *Server) versioned(q *request, w shown, n int64, fixed bool) (same bool, err error) {
	if n > w.last {
		return false, noCycleYet(n, w.last)
	}
	if q.gather != nil {
		return false, nil // an answer of several divisions has no one version
	}
	t, _, err := s.decisions(w, n, "cycles")
	if err != nil {
		return false, err
	}
	version, asked := versionOf(t), q.query("version")
	if asked != "" && asked != version {
		return false, problem{Type: "not-found", Status: 404,
			Detail: fmt.Sprintf("cycle %d has the version %s here, not %s: this is another log", n, version, asked)}
	}
	h := &q.Response.Header
	if q.page.limit > 0 { // a page that a cache has kept may name a next one that is refused
		h.Set("Cache-Control", "no-store")
		return false, nil
	}
	h.Set("ETag", `W/"`+version+`"`)
	h.Set("Cache-Control", "private, no-cache")
	if asked != "" && fixed {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	h.Set("Vary", "Accept, Accept-Encoding, Authorization")
	if string(q.Request.Header.Peek("If-None-Match")) == `W/"`+version+`"` {
		q.SetStatusCode(304)
		return true, nil
	}
	return false, nil
}

// versionOf names what a cycle decided, in a log: the beginning of its digest, and when it was started.
func versionOf(cycles *decision.Table) string {
	digest, started := cycles.Column("decisions_digest"), cycles.Column("started")
	word := string(digest.Dict.Bytes(digest.Code[0]))
	return word[:min(16, len(word))] + "-" + strconv.FormatInt(started.Int[0], 10)
}
