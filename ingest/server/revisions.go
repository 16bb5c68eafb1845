package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/export"
)

// revision is a policy file that was accepted.
type revision struct {
	Revision int64  `json:"revision"`
	Cycle    int64  `json:"cycle"` // from which on it is in force
	Now      string `json:"now,omitempty"`
	Author   string `json:"author,omitempty"`
	Message  string `json:"message,omitempty"`
	Digest   string `json:"digest"`
	InForce  bool   `json:"in_force"`
}

// getRevisions gives the revisions of the policy that the decision log has and the newest one, the newest first; or one
// of them as it was put.
func (s *Server) getRevisions(q *request) error {
	if err := q.known(); err != nil {
		return err
	}
	w, err := s.shown(q)
	if err != nil {
		return err
	}
	var all []revision
	if s.history.dir != "" && w.last > 0 {
		if all, err = s.history.revisions(); err != nil {
			return err
		}
	}
	if w.view != nil {
		all = unloggedRevisions(w.view, all)
	}
	slices.SortFunc(all, func(a, b revision) int { return int(b.Revision - a.Revision) })
	if q.rest == "" {
		if all == nil {
			all = []revision{}
		}
		return q.json(200, all)
	}
	n, err := strconv.ParseInt(q.rest, 10, 64)
	if err != nil || n < 1 {
		return badRequest("revision " + q.rest + ": must be a number from 1")
	}
	for _, r := range all {
		if r.Revision == n {
			return s.sendRevision(q, w, r)
		}
	}
	return problem{Type: "not-found", Status: 404, Detail: fmt.Sprintf("there is no revision %d", n)}
}

// unloggedRevisions adds the newest revisions, which the log may not have yet.
func unloggedRevisions(v *engine.View, all []revision) []revision {
	for _, p := range []*engine.PolicyView{v.InForce, v.Policy} {
		if p == nil || slices.ContainsFunc(all, func(r revision) bool { return r.Revision == p.Revision }) {
			continue
		}
		r := revision{Revision: p.Revision, Cycle: v.Cycle() + 1, Now: rfc3339(p.AtUS), Author: p.Author,
			Message: p.Message, Digest: p.Policy.Digest}
		if p == v.InForce {
			r.Cycle = v.Cycle()
		}
		all = append(all, r)
	}
	for i := range all {
		all[i].InForce = v.InForce != nil && all[i].Revision == v.InForce.Revision
	}
	return all
}

func rfc3339(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }

// sendRevision answers with the text of a revision.
func (s *Server) sendRevision(q *request, w shown, r revision) error {
	var text []byte
	if v := w.view; v != nil {
		for _, p := range []*engine.PolicyView{v.InForce, v.Policy} {
			if p != nil && p.Revision == r.Revision {
				text = p.Text
			}
		}
	}
	if text == nil {
		err := s.history.reading(r.Cycle, func(reader *export.Reader) (err error) {
			text, _, err = reader.Policy(r.Cycle)
			return err
		})
		if err != nil {
			return err
		}
	}
	h := &q.Response.Header
	h.Set("ETag", etag(r.Revision))
	h.Set("Stint-Author", headerText(r.Author))
	q.SetContentType("application/yaml")
	q.Response.SetBodyRaw(text)
	return nil
}

// headerText is a text that a header can have: what is no printable ASCII is left out.
func headerText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
}

// revisions are those that the log names, and the one in force when it begins.
func (h *history) revisions() (all []revision, err error) {
	_, last, err := h.bounds()
	if err != nil || last == 0 {
		return nil, err
	}
	err = h.reading(last, func(r *export.Reader) error {
		first := r.Cycles()[0]
		t, err := r.Rows("plans", first, last)
		if err != nil {
			return err
		}
		heads, err := r.Rows("cycles", last, last)
		if err != nil {
			return err
		}
		newest := heads.Column("revision").Int[0]
		seen := map[int64]bool{}
		word := func(c *decision.Column, row int) string {
			if c == nil || c.Code[row] == decision.Null {
				return ""
			}
			return string(c.Dict.Bytes(c.Code[row]))
		}
		for row := range t.Rows {
			v := revision{
				Revision: t.Column("revision").Int[row], Cycle: t.Column("cycle").Int[row],
				Author: word(t.Column("author"), row), Message: word(t.Column("message"), row),
				Digest: word(t.Column("digest"), row),
			}
			when, err := r.Table("cycles", v.Cycle)
			if err != nil {
				return err
			}
			v.Now, v.InForce = rfc3339(when.Column("now").Int[0]), v.Revision == newest
			seen[v.Revision] = true
			all = append(all, v)
		}
		begin, err := r.Table("cycles", first)
		if err != nil {
			return err
		}
		if n := begin.Column("revision").Int[0]; !seen[n] { // it came with a cycle that is not kept any more
			_, digest, err := r.Policy(first)
			if err != nil {
				return err
			}
			all = append(all, revision{Revision: n, Cycle: first, Digest: digest, InForce: n == newest})
		}
		return nil
	})
	return all, err
}

// loggedPlan gives the newest policy file of a log that is shown alone.
func (s *Server) loggedPlan(q *request) (revision, []byte, error) {
	w, err := s.shown(q)
	if err != nil {
		return revision{}, nil, err
	}
	if w.last == 0 {
		return revision{}, nil, problem{Type: "no-plan", Status: 404,
			Detail: "there is no policy yet: the log is empty"}
	}
	all, err := s.history.revisions()
	if err != nil {
		return revision{}, nil, err
	}
	for _, r := range all {
		if r.InForce {
			var text []byte
			err := s.history.reading(w.last, func(reader *export.Reader) (err error) {
				text, _, err = reader.Policy(w.last)
				return err
			})
			return r, text, err
		}
	}
	return revision{}, nil, problem{Type: "not-found", Status: 404, Detail: "the log does not tell the policy in force"}
}
