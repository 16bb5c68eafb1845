package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/stintd/stint/core/plan"
)

// divisionParam is the parameter by which a call is for one division.
const divisionParam = "division"

// partOfAll marks what a process sends to a division of a call for all: nobody else puts a policy file in force for one
// division alone. With the word partCheck a table is not taken, but looked at.
const (
	partOfAll = "Stint-Part"
	partPut   = "put"
	partCheck = "check"
)

// checks tells whether a table is to be looked at alone.
func (q *request) checks() bool {
	return q.s.o.Division != "" && string(q.Request.Header.Peek(partOfAll)) == partCheck
}

// divide answers a call of a service that is divided: by the division that it names, else by all (HA-5). What writes
// goes to each division as a call of its own, wherever that is led, and is acknowledged when each has it. Tables are
// put together where their rows stand for themselves. All else must name its division.
func (s *Server) divide(q *request, r *route) error {
	if name := q.query(divisionParam); name != "" {
		d := s.division(name)
		if d == nil {
			detail := fmt.Sprintf("there is no division %q; there are %s", name, s.divisionNames())
			return problem{Type: "no-division", Status: 404, Detail: detail}
		}
		if r.path == "/v1/plan" && r.method == http.MethodPut && len(q.Request.Header.Peek(partOfAll)) == 0 {
			return s.putDividedPlan(q, d)
		}
		return s.askOne(q, r, d)
	}
	switch r.method + " " + r.name {
	case "GET /healthz":
		return s.dividedHealth(q)
	case "GET /readyz":
		return s.dividedReady(q)
	case "GET /v1/plan":
		return s.dividedPlan(q)
	case "PUT /v1/plan":
		return s.putDividedPlan(q, nil)
	case "POST /v1/plan/check":
		return s.checkDivided(q, r)
	case "PUT /v1/hosts", "PATCH /v1/hosts":
		return s.putDividedHosts(q, r)
	case "DELETE /v1/demand/{source}":
		return s.deleteDivided(q, r)
	case "POST /v1/cycles":
		return s.cycleDivided(q, r)
	case "PUT /v1/demand/{source}", "PATCH /v1/demand/{source}", "PUT /v1/running/{source}", "POST /v1/releases":
		return s.divideRows(q, r)
	case "GET /v1/explain/{path}":
		return s.explainDivided(q, r)
	case "GET /v1/holdings", "GET /v1/loans", "GET /v1/hosts", "GET /v1/consumers", "GET /v1/consumers/{path}",
		"GET /v1/sources",
		"GET /v1/demand/{source}", "GET /v1/cycles", "GET /v1/cycles/{cycle}/{table}":
		return s.gatherAll(q, r)
	}
	return s.whichDivision("each division answers this by itself")
}

// askOne has a division answer a call whole.
func (s *Server) askOne(q *request, r *route, d *Server) error {
	q.wentTo = append(q.wentTo, d)
	was := q.s
	q.s = d
	defer func() { q.s = was }()
	return d.answer(q, r)
}

func (s *Server) division(name string) *Server {
	for _, d := range s.divisions {
		if d.o.Division == name {
			return d
		}
	}
	return nil
}

func (s *Server) divisionNames() string { return strings.Join(s.o.Divisions, ", ") }

// whichDivision is the refusal of a call that must name its division.
func (s *Server) whichDivision(why string) error {
	detail := fmt.Sprintf("add ?division= with one of %s: %s", s.divisionNames(), why)
	return problem{Type: "which-division", Status: 400, Detail: detail}
}

// newestWhole is the newest policy of all divisions, as far as this process knows, with its file; nil before the first.
func (s *Server) newestWhole() (p *plan.Policy, text []byte, err error) {
	at := int64(0)
	for _, d := range s.divisions {
		if e := d.engine.Load(); e != nil {
			if v := e.View().Policy; v != nil && v.AtUS > at {
				at, text = v.AtUS, plan.Whole(v.Text, d.o.Division)
			}
		}
	}
	if text == nil {
		return nil, nil, nil
	}
	s.wholes.mu.Lock()
	defer s.wholes.mu.Unlock()
	if w := &s.wholes; w.policy == nil || string(w.text) != string(text) {
		if w.policy, err = plan.ParseAccepted(planName, text); err != nil {
			return nil, nil, err
		}
		w.text = text
	}
	return s.wholes.policy, s.wholes.text, nil
}

// wholes is the policy of all divisions that was asked for last.
type wholes struct {
	mu     sync.Mutex
	text   []byte
	policy *plan.Policy
}

// needWhole is newestWhole, where there must be one.
func (s *Server) needWhole() (*plan.Policy, error) {
	p, _, err := s.newestWhole()
	if err == nil && p == nil {
		err = problem{Type: "no-plan", Status: 409, Detail: "there is no policy yet: PUT /v1/plan comes first"}
	}
	return p, err
}

// portion is a call of a division for one that came for all.
type portion struct {
	d       *Server
	body    []byte
	headers map[string]string // besides those of the call; "": it goes without
	rows    []int32           // of the body: which they were in the call's; nil: all, as they stand

	// The answer.
	status int
	head   *fasthttp.ResponseHeader
	answer []byte
}

// ok tells whether the division has what it was given.
func (p *portion) ok() bool { return p.status == http.StatusOK }

// ask has a division answer its part, by whoever leads it.
func (p *portion) ask(q *request, r *route, path string, args url.Values) {
	ctx := new(fasthttp.RequestCtx)
	ctx.Init2(q.Conn(), discard{}, true)
	q.Request.Header.CopyTo(&ctx.Request.Header)
	ctx.Request.Header.SetMethod(r.method)
	args = maps.Clone(args)
	if args == nil {
		args = url.Values{}
	}
	args.Set(divisionParam, p.d.o.Division)
	ctx.Request.SetRequestURI(path + "?" + args.Encode())
	for name, value := range p.headers {
		ctx.Request.Header.Del(name)
		if value != "" {
			ctx.Request.Header.Set(name, value)
		}
	}
	ctx.Request.Header.Del("Transfer-Encoding")
	ctx.Request.Header.SetContentLength(len(p.body))
	ctx.Request.SetBodyRaw(p.body)
	sub := &request{RequestCtx: ctx, s: p.d, who: q.who, subject: q.subject, caller: q.caller, rest: q.rest}
	if err := p.d.guardedAnswer(sub, r); err != nil {
		asProblem(err).write(ctx)
	}
	p.status, p.head, p.answer = ctx.Response.StatusCode(), &ctx.Response.Header, ctx.Response.Body()
}

// askAll has all parts be answered beside each other.
func askAll(q *request, r *route, parts []*portion, path string, args url.Values) {
	var all sync.WaitGroup
	for _, p := range parts {
		q.wentTo = append(q.wentTo, p.d)
		all.Go(func() { p.ask(q, r, path, args) })
	}
	all.Wait()
}

// askTwice has all parts be looked at, and be taken when no division refuses its own: a table is taken whole or not at
// all. Between the two another input may come, of the same names: then some have taken theirs, and the answer says so.
func askTwice(q *request, r *route, parts []*portion, path string, args url.Values) error {
	if len(parts) > 1 {
		for _, p := range parts {
			p.set(partOfAll, partCheck)
		}
		askAll(q, r, parts, path, args)
		if err := refusedPart(parts); err != nil {
			return untaken(err)
		}
		q.wentTo = q.wentTo[:len(q.wentTo)-len(parts)]
	}
	for _, p := range parts {
		p.set(partOfAll, "")
	}
	askAll(q, r, parts, path, args)
	return nil
}

// set sets a header of the part.
func (p *portion) set(name, value string) {
	p.headers = maps.Clone(p.headers)
	if p.headers == nil {
		p.headers = map[string]string{}
	}
	p.headers[name] = value
}

// allParts is a part for each division, of the same body.
func (s *Server) allParts(body []byte, headers map[string]string) (parts []*portion) {
	for _, d := range s.divisions {
		parts = append(parts, &portion{d: d, body: body, headers: headers})
	}
	return parts
}

// refusedPart is the refusal of a call by the first division that has not taken its part; nil: all have. It says which
// have: sent again, with the same key, the call is applied once by those.
func refusedPart(parts []*portion) error {
	at := slices.IndexFunc(parts, func(p *portion) bool { return !p.ok() })
	if at < 0 {
		return nil
	}
	p := parts[at]
	refused := problem{Status: p.status, Type: "internal", Detail: "an answer that cannot be read"}
	var body problemBody
	if json.Unmarshal(p.answer, &body) == nil && body.Type != "" {
		refused.Type, refused.Detail, refused.count = strings.TrimPrefix(body.Type, typePrefix), body.Detail, body.Count
		refused.rows = p.original(body.Rows)
		refused.faults = faultsOf(body.Faults)
	}
	if v := string(p.head.Peek("Retry-After")); v != "" {
		_, _ = fmt.Sscan(v, &refused.RetryAfter)
	}
	refused.Detail = "division " + p.d.o.Division + ": " + refused.Detail
	var have []string
	for _, p := range parts {
		if p.ok() {
			have = append(have, p.d.o.Division)
		}
	}
	if len(have) > 0 {
		refused.Detail += fmt.Sprintf(" (taken by %s: %s)", strings.Join(have, ", "), sendAgain)
	}
	return refused
}

func faultsOf(list []problemFault) (faults plan.Faults) {
	for _, f := range list {
		faults = append(faults, plan.Fault{Line: f.Line, Column: f.Column, Path: f.Path, Value: f.Value,
			Reason: f.Reason})
	}
	return faults
}

// byDivision is what each division answered, for people and programs alike.
func byDivision(parts []*portion) map[string]json.RawMessage {
	of := map[string]json.RawMessage{}
	for _, p := range parts {
		of[p.d.o.Division] = slices.Clip([]byte(strings.TrimSpace(string(p.answer))))
	}
	return of
}

// dividedAcknowledgement is the answer to an input that each division has.
type dividedAcknowledgement struct {
	Rows      int64                      `json:"rows"`
	Released  *int64                     `json:"released,omitempty"`
	Added     *int64                     `json:"added,omitempty"`
	Beyond    *int64                     `json:"beyond,omitempty"`
	Repeated  bool                       `json:"repeated,omitempty"` // by each
	Warnings  []string                   `json:"warnings,omitempty"`
	Divisions map[string]json.RawMessage `json:"divisions"`
}

// acknowledged puts the acknowledgements of divisions together. rows are those of the call.
func acknowledgedBy(parts []*portion, rows int64) (a dividedAcknowledgement, err error) {
	if err := refusedPart(parts); err != nil {
		return a, err
	}
	a.Rows, a.Repeated, a.Divisions = rows, true, byDivision(parts)
	add := func(to **int64, n *int64) {
		if n != nil {
			if *to == nil {
				*to = new(int64)
			}
			**to += *n
		}
	}
	for _, p := range parts {
		var one acknowledgement
		if err := json.Unmarshal(p.answer, &one); err != nil {
			return a, fmt.Errorf("division %s answers %q: %w", p.d.o.Division, p.answer, err)
		}
		add(&a.Released, one.Released)
		add(&a.Added, one.Added)
		add(&a.Beyond, one.Beyond)
		a.Repeated = a.Repeated && one.Repeated
	}
	return a, nil
}

// putDividedHosts gives all hosts to each division: which of them are in its plans attributes decide, and each sees
// that a host is in no plan of two.
func (s *Server) putDividedHosts(q *request, r *route) error {
	if err := q.known("format", "allow_shrink"); err != nil {
		return err
	}
	memory := s.bodies.account(q.caller, "bodies")
	defer memory.close()
	body, _, err := q.readBody(memory, s.o.Limits.BodyBytesMax)
	if err != nil {
		return err
	}
	parts := s.allParts(body, nil)
	if err := askTwice(q, r, parts, string(q.URI().PathOriginal()), q.args()); err != nil {
		return err
	}
	var first acknowledgement
	_ = json.Unmarshal(parts[0].answer, &first)
	a, err := acknowledgedBy(parts, first.Rows)
	if err != nil {
		return err
	}
	return q.json(200, a)
}

// args are the parameters of a call.
func (q *request) args() url.Values {
	args := url.Values{}
	for name, value := range q.QueryArgs().All() {
		args.Add(string(name), string(value))
	}
	return args
}

// deleteDivided has each division forget a source. Those that do not know it do not matter where another does.
func (s *Server) deleteDivided(q *request, r *route) error {
	if err := q.known("allow_shrink"); err != nil {
		return err
	}
	parts := s.allParts(nil, nil)
	askAll(q, r, parts, string(q.URI().PathOriginal()), q.args())
	if known := slices.DeleteFunc(slices.Clone(parts),
		func(p *portion) bool { return p.status == http.StatusNotFound }); len(known) > 0 {
		parts = known
	}
	a, err := acknowledgedBy(parts, 0)
	if err != nil {
		return err
	}
	return q.json(200, a)
}

// cyclesDone is what the cycles did that were asked for.
type cyclesDone struct {
	Divisions map[string]json.RawMessage `json:"divisions"`
}

// cycleDivided has each division run a cycle.
func (s *Server) cycleDivided(q *request, r *route) error {
	if err := q.known(); err != nil {
		return err
	}
	parts := s.allParts(nil, nil)
	askAll(q, r, parts, string(q.URI().PathOriginal()), q.args())
	if err := refusedPart(parts); err != nil {
		return err
	}
	return q.json(200, cyclesDone{byDivision(parts)})
}

// explainDivided has the division explain in whose plans a consumer takes part.
func (s *Server) explainDivided(q *request, r *route) error {
	p, err := s.needWhole()
	if err != nil {
		return err
	}
	// an allocation may stand behind it
	for path := "/" + strings.Trim(q.rest, "/"); path != "/"; path = path[:max(1, strings.LastIndexByte(path, '/'))] {
		node, ok := p.Find(path)
		if !ok {
			continue
		}
		switch in := divisionsOf(p, node); len(in) {
		case 0:
		case 1:
			return s.askOne(q, r, s.division(p.Divisions[in[0]].Name))
		default:
			var names []string
			for _, d := range in {
				names = append(names, p.Divisions[d].Name)
			}
			return s.whichDivision(path + " takes part in plans of " + strings.Join(names, ", "))
		}
		break
	}
	return s.whichDivision("no consumer of this path takes part in a plan")
}

// divisionsOf are the divisions in whose plans a consumer takes part, by their places in the policy.
func divisionsOf(p *plan.Policy, node plan.Node) (in []int) {
	add := func(name string, member []bool) {
		if d := p.DivisionOf(name); member[node] && d >= 0 && !slices.Contains(in, d) {
			in = append(in, d)
		}
	}
	for i := range p.MDPlans {
		add(p.MDPlans[i].Name, p.MDPlans[i].Member)
	}
	for i := range p.SlotPlans {
		add(p.Groups[p.SlotPlans[i].Group].Name, p.SlotPlans[i].Member)
	}
	slices.Sort(in)
	return in
}
