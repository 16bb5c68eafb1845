package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/plan"
)

// fitsDivisions tells why a policy file cannot be in force here, by its divisions.
func (s *Server) fitsDivisions(p *plan.Policy) error {
	bad := func(format string, args ...any) error {
		return problem{Type: "bad-plan", Status: 422, Detail: p.File + ": " + fmt.Sprintf(format, args...)}
	}
	has, want := slices.Sorted(slices.Values(p.DivisionNames())), slices.Sorted(slices.Values(s.o.Divisions))
	switch {
	case s.o.LogAlone:
		return nil // whatever it is compared with was in force
	case p.Division != s.o.Division:
		return bad("division: a service writes this key, not who puts a policy file")
	case slices.Equal(has, want):
		return nil
	case len(want) == 0:
		return bad("divisions: this service decides all plans together; to divide them its configuration must have "+
			"divisions: [%s]",
			strings.Join(has, ", "))
	case len(has) == 0:
		return bad("divisions: missing; this service has %s, and each plan must be in one of them",
			strings.Join(want, ", "))
	}
	return bad("divisions: the file has %s, this service %s (divisions of its configuration)",
		strings.Join(has, ", "), strings.Join(want, ", "))
}

// parsesPlan parses a policy file as it would be in force here: of a division, with a line that says of which. Faults
// are told by the file as it was given.
func (s *Server) parsesPlan(name string, text []byte) (p *plan.Policy, inForce []byte, err error) {
	inForce = text
	if s.o.Division != "" {
		inForce = plan.ForDivision(text, s.o.Division)
	}
	p, err = plan.Parse(name, inForce)
	if err != nil && s.o.Division != "" {
		whole, fault := plan.Parse(name, text)
		if fault != nil {
			return nil, nil, fault
		}
		if fault = s.fitsWhole(whole); fault != nil {
			return nil, nil, fault
		}
	}
	if err == nil {
		err = s.fitsDivisions(p)
	}
	return p, inForce, err
}

// fitsWhole is fitsDivisions of a file that is of no division yet.
func (s *Server) fitsWhole(p *plan.Policy) error {
	if p.Division != "" {
		return s.fitsDivisions(&plan.Policy{File: p.File, Division: "-"})
	}
	is := *p
	is.Division = s.o.Division
	return s.fitsDivisions(&is)
}

// revisionsTag is a validator of the policy of all divisions: the revision of each, such as "east:3 west:4".
func (s *Server) revisionsTag() string {
	var list []string
	for _, d := range s.divisions {
		if e := d.engine.Load(); e != nil {
			if v := e.View().Policy; v != nil {
				list = append(list, d.o.Division+":"+strconv.FormatInt(v.Revision, 10))
			}
		}
	}
	return `"` + strings.Join(list, " ") + `"`
}

// dividedPlan gives the newest policy file, of all divisions.
func (s *Server) dividedPlan(q *request) error {
	p, text, err := s.newestWhole()
	if err != nil {
		return err
	}
	if p == nil {
		return problem{Type: "no-plan", Status: 404, Detail: "there is no policy yet"}
	}
	q.Response.Header.Set("ETag", s.revisionsTag())
	q.SetContentType("application/yaml")
	q.Response.SetBodyRaw(text) // shared
	return nil
}

// ifRevisions reads the revisions that a policy file was made from, by division.
func (s *Server) ifRevisions(match string) (of map[string]string, err error) {
	of = map[string]string{}
	if match == "" || match == "*" {
		return of, nil
	}
	for _, one := range strings.Fields(strings.Trim(match, `"`)) {
		name, revision, ok := strings.Cut(one, ":")
		n, err := strconv.ParseInt(revision, 10, 64)
		if !ok || err != nil || n < 1 || s.division(name) == nil {
			return nil, badRequest("If-Match: must be the revision of each division, as GET /v1/plan tells " +
				"them, such as " +
				`"` + s.o.Divisions[0] + `:3"`)
		}
		of[name] = etag(n)
	}
	return of, nil
}

// putDividedPlan puts a policy file in force in each division: nowhere, when one of them says that it would not take
// it; else in one after the other, first in those that give plans away, so that no plan is in two. Who names a division
// means its revision, and has its answer: the file is put in force in all the same.
func (s *Server) putDividedPlan(q *request, of *Server) error {
	if err := q.known("force", "message", divisionParam); err != nil {
		return err
	}
	match := string(q.Request.Header.Peek("If-Match"))
	if of != nil && match != "" && match != "*" {
		match = of.o.Division + ":" + strings.Trim(match, `"`)
	}
	revisions, err := s.ifRevisions(match)
	if err != nil {
		return err
	}
	in := &engine.Input{Kind: engine.InputPlan}
	done, err := q.readPlan(in, false)
	if err != nil {
		return err
	}
	defer done()
	was, _, err := s.newestWhole()
	if err != nil {
		return err
	}
	gives := func(*Server) bool { return false }
	if was != nil {
		if err := in.Policy.MovesBothWays(was); err != nil {
			return problem{Type: "bad-plan", Status: 422, Detail: err.Error()}
		}
		gives = func(d *Server) bool { return in.Policy.Gives(was, d.o.Division) }
	}
	headers := map[string]string{"Content-Type": "application/yaml", "Content-Encoding": "", "If-Match": ""}
	checks := s.allParts(in.Body, headers)
	args := q.args()
	args.Del("message")
	askAll(q, routeOf("POST", "/v1/plan/check"), checks, "/v1/plan/check", args)
	if err := refusedPart(checks); err != nil {
		return untaken(err)
	}
	var first, rest []*portion
	for _, c := range checks {
		var check planCheck
		if err := json.Unmarshal(c.answer, &check); err != nil {
			return fmt.Errorf("division %s answers %q: %w", c.d.o.Division, c.answer, err)
		}
		is := revisions[c.d.o.Division]
		p := &portion{d: c.d, body: in.Body, headers: map[string]string{
			"Content-Type": "application/yaml", "Content-Encoding": "", "If-Match": is, partOfAll: partPut,
		}}
		switch {
		case !check.OK, is != "" && is != etag(check.Revision): // it says best itself why it refuses
			first = slices.Insert(first, 0, p)
		case gives(c.d):
			first = append(first, p)
		default:
			rest = append(rest, p)
		}
	}
	return s.putParts(q, append(first, rest...), in.Policy, of)
}

// untaken is a refusal of which nothing was taken.
func untaken(err error) error {
	p := asProblem(err)
	p.Detail, _, _ = strings.Cut(p.Detail, " (taken by ")
	return p
}

// putParts puts a policy file in force in one division after the other, until one refuses.
func (s *Server) putParts(q *request, parts []*portion, p *plan.Policy, of *Server) error {
	for i, one := range parts {
		q.wentTo = append(q.wentTo, one.d)
		one.ask(q, routeOf("PUT", "/v1/plan"), "/v1/plan", q.args())
		if !one.ok() {
			return refusedPart(parts[:i+1])
		}
	}
	if of != nil {
		one := parts[slices.IndexFunc(parts, func(p *portion) bool { return p.d == of })]
		q.Response.Header.Set("ETag", string(one.head.Peek("ETag")))
		return q.json(200, json.RawMessage(one.answer))
	}
	a, err := acknowledgedBy(parts, 0)
	if err != nil {
		return err
	}
	for _, w := range p.Warnings() {
		a.Warnings = append(a.Warnings, w.String())
	}
	tags := []string{}
	for _, d := range s.divisions {
		var one acknowledgement
		if err := json.Unmarshal(a.Divisions[d.o.Division], &one); err != nil {
			return err
		}
		tags = append(tags, d.o.Division+":"+strconv.FormatInt(one.Revision, 10))
	}
	q.Response.Header.Set("ETag", `"`+strings.Join(tags, " ")+`"`)
	return q.json(200, a)
}

// routeOf is the route of a call.
func routeOf(method, path string) *route {
	at := slices.IndexFunc(routes, func(r *route) bool { return r.method == method && r.path == path })
	return routes[at]
}

// dividedCheck is what each division says of a policy file.
type dividedCheck struct {
	OK        bool                       `json:"ok"`
	Refused   string                     `json:"refused,omitempty"`
	Divisions map[string]json.RawMessage `json:"divisions"`
}

// checkDivided tells what each division would say to a policy file.
func (s *Server) checkDivided(q *request, r *route) error {
	if err := q.known("force", "windows"); err != nil {
		return err
	}
	in := &engine.Input{Kind: engine.InputPlan}
	done, err := q.readPlan(in, true)
	if err != nil {
		return err
	}
	defer done()
	parts := s.allParts(in.Body, map[string]string{"Content-Type": "application/yaml", "Content-Encoding": ""})
	askAll(q, r, parts, r.path, q.args())
	if err := refusedPart(parts); err != nil {
		return untaken(err)
	}
	a := dividedCheck{OK: true, Divisions: byDivision(parts)}
	for _, p := range parts {
		var check planCheck
		if err := json.Unmarshal(p.answer, &check); err != nil {
			return err
		}
		if !check.OK && a.OK {
			a.OK, a.Refused = false, "division "+p.d.o.Division+": "+check.Refused
		}
	}
	if was, _, err := s.newestWhole(); err == nil && was != nil && a.OK {
		if err := in.Policy.MovesBothWays(was); err != nil {
			a.OK, a.Refused = false, err.Error()
		}
	}
	return q.json(200, a)
}

// dividedReadiness is the answer of a process all of whose divisions are ready.
type dividedReadiness struct {
	Status    string                     `json:"status"`
	Instance  string                     `json:"instance"`
	Divisions map[string]json.RawMessage `json:"divisions"`
}

// dividedReady tells whether the divisions that this process decides are ready. Those of others are theirs.
func (s *Server) dividedReady(q *request) error {
	parts, err := s.stateOfParts(q, routeOf(http.MethodGet, "/readyz"))
	if err != nil {
		return err
	}
	return q.json(200, dividedReadiness{Status: "ok", Instance: s.instance, Divisions: byDivision(parts)})
}

// dividedHealth tells whether they can do their work.
func (s *Server) dividedHealth(q *request) error {
	if _, err := s.stateOfParts(q, routeOf(http.MethodGet, "/healthz")); err != nil {
		return err
	}
	return q.json(200, health{Status: "ok", Version: s.o.Version})
}

// stateOfParts asks each division of this process for its state.
func (s *Server) stateOfParts(q *request, r *route) (parts []*portion, err error) {
	for _, d := range s.divisions {
		if !d.far {
			parts = append(parts, &portion{d: d})
		}
	}
	for _, p := range parts {
		p.ask(q, r, r.path, nil)
	}
	if err := refusedPart(parts); err != nil {
		return nil, untaken(err)
	}
	return parts, nil
}
