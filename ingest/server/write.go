package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

// planName is what messages call a policy file that came over the network.
const planName = "plan"

// acknowledgement is the answer to an input that is durable.
type acknowledgement struct {
	Snapshot string `json:"snapshot"` // names the input
	Rows     int64  `json:"rows"`
	Cycle    int64  `json:"cycle"` // the first that goes by it
	Revision int64  `json:"revision,omitempty"`
	Released *int64 `json:"released,omitempty"` // units
	Added    *int64 `json:"added,omitempty"`
	Beyond   *int64 `json:"beyond,omitempty"` // units released beyond what was held
	Repeated bool   `json:"repeated,omitempty"`

	Warnings []string `json:"warnings,omitempty"` // of a policy file: what is legal but suspect
}

// acknowledge answers an input that is durable.
func (q *request) acknowledge(in *engine.Input, r engine.Receipt) error {
	if q.checks() {
		return q.json(200, acknowledgement{Rows: in.Rows})
	}
	a := acknowledgement{Snapshot: r.Snapshot, Rows: r.Rows, Cycle: r.Cycle, Repeated: r.Repeated}
	switch in.Kind {
	case engine.InputPlan:
		a.Revision = r.Revision
		for _, w := range in.Policy.Warnings() {
			a.Warnings = append(a.Warnings, w.String())
		}
		q.Response.Header.Set("ETag", etag(r.Revision))
	case engine.InputReleases:
		a.Released, a.Beyond = &r.Released, &r.Beyond
	case engine.InputDemandDelete:
		a.Released = &r.Released
	case engine.InputRunning:
		a.Released, a.Added = &r.Released, &r.Added
	}
	if !r.Repeated {
		q.put.rows, q.put.revision = r.Rows, a.Revision
		q.s.o.Metrics.took(in.Kind, r.Rows, int64(len(in.Body)))
		q.s.o.Log.Info("input", "kind", in.Kind, "source", in.Source, "rows", r.Rows, "bytes", len(in.Body), "snapshot",
			r.Snapshot, "by", in.Author)
	}
	return q.json(200, a)
}

// json answers with a value.
func (q *request) json(status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	q.SetStatusCode(status)
	q.SetContentType("application/json")
	q.SetBody(append(text, '\n'))
	return nil
}

func etag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// planBytes is how much memory parsing takes for a byte of a policy file, about.
const planBytes = 32

// readPlan receives a policy file and parses it. Of a call that changes nothing, which a reader may make too, all
// memory is that of checks. The caller calls done when the policy is not needed any more.
func (q *request) readPlan(in *engine.Input, check bool) (done func(), err error) {
	packing, err := q.packing()
	if err != nil {
		return nil, err
	}
	media, err := q.media()
	if err == nil && !slices.Contains(planTypes, media) {
		err = unsupported("content type " + media + " is no policy file: YAML is")
	}
	if err != nil {
		return nil, err
	}
	s := q.s
	bodies, parsed := s.bodies.account(q.caller, "bodies"), s.decoded.account(q.caller, "policy files being read")
	if check {
		parsed = s.checks.account(q.caller, "policy files being checked")
		bodies = parsed
	}
	done = func() {
		bodies.close()
		parsed.close()
	}
	if err := q.parsePlan(in, packing, bodies, parsed); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// parsePlan is readPlan within accounts of memory.
func (q *request) parsePlan(in *engine.Input, packing table.Compression, bodies, parsed *account) error {
	s := q.s
	body, digest, err := q.readBody(bodies, s.o.Limits.PlanBytesMax)
	if err != nil {
		return err
	}
	leave, err := s.parses.enter(q.caller, s.closing)
	if err != nil {
		return err
	}
	defer leave()
	l := table.Limits{BytesMax: s.o.Limits.BodyBytesMax, DecodedBytesMax: s.o.Limits.PlanBytesMax}
	o := table.Options{Name: planName, Compression: packing, Limits: l, Spend: s.spender(parsed)}
	text, err := table.UnpackText(bytes.NewReader(body), o)
	if err == nil {
		err = parsed.take(planBytes * int64(len(text)))
	}
	if err == nil {
		in.Policy, text, err = s.parsesPlan(planName, text)
	}
	var faults plan.Faults
	var p problem
	switch {
	case err == nil:
		in.Body, in.Digest, in.Format, in.Packing = text, digest, "yaml", table.Plain.String()
		return nil
	case errors.As(err, &p):
		return p
	case errors.As(err, &faults):
		if stack := faults.Bug(); stack != "" {
			s.o.Log.Error("a bug", "route", "policy file", "panic", faults[len(faults)-1].Reason, "stack", stack)
		}
		return problem{Type: "bad-plan", Status: 422, Detail: faults.Error(), faults: faults, count: len(faults)}
	case errors.Is(err, table.ErrLimit):
		return overLimit(err.Error())
	}
	return problem{Type: "bad-plan", Status: 422, Detail: err.Error()}
}

// putPlan puts a policy file in force from the next cycle on (PLAN-3).
func (s *Server) putPlan(q *request) error {
	if err := q.known("force", "message"); err != nil {
		return err
	}
	in := &engine.Input{Kind: engine.InputPlan, Author: q.who.Name, Message: q.query("message")}
	var err error
	if in.Force, err = q.flag("force"); err != nil {
		return err
	}
	if len(in.Message) > 1024 {
		return badRequest("the message has more than 1024 bytes")
	}
	if match := string(q.Request.Header.Peek("If-Match")); match != "" && match != "*" {
		if in.IfRevision, err = strconv.ParseInt(strings.Trim(match, `"`), 10, 64); err != nil || in.IfRevision < 1 {
			return badRequest("If-Match: must be the number of a revision, such as " + etag(3))
		}
	}
	if in.Key, err = q.key(); err != nil {
		return err
	}
	done, err := q.readPlan(in, false)
	if err != nil {
		return err
	}
	defer done()
	if q.who.Role != RoleAdmin {
		in.Principal = principal{q.who}
	}
	r, err := q.engine.Submit(in)
	if err != nil {
		return err
	}
	return q.acknowledge(in, r)
}

// getPlan gives the newest policy file as it was put.
func (s *Server) getPlan(q *request) error {
	if s.o.LogAlone {
		r, text, err := s.loggedPlan(q)
		if err != nil {
			return err
		}
		q.Response.Header.Set("ETag", etag(r.Revision))
		if q.hasVersion(etag(r.Revision)) {
			q.SetStatusCode(304)
			return nil
		}
		q.Response.Header.Set("Stint-Author", headerText(r.Author))
		q.SetContentType("application/yaml")
		q.Response.SetBodyRaw(text)
		return nil
	}
	p := q.engine.View().Policy
	if p == nil {
		return problem{Type: "no-plan", Status: 404, Detail: "there is no policy yet"}
	}
	q.Response.Header.Set("ETag", etag(p.Revision))
	if q.hasVersion(etag(p.Revision)) {
		q.SetStatusCode(304)
		return nil
	}
	q.Response.Header.Set("Stint-Author", p.Author)
	q.Response.Header.Set("Last-Modified", time.UnixMicro(p.AtUS).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
	q.SetContentType("application/yaml")
	q.Response.SetBodyRaw(plan.Whole(p.Text, s.o.Division)) // shared
	return nil
}

// hasVersion tells whether the client has the version of a page that a tag names (If-None-Match, RFC 9110).
func (q *request) hasVersion(tag string) bool {
	for known := range strings.SplitSeq(string(q.Request.Header.Peek("If-None-Match")), ",") {
		if known = strings.TrimPrefix(strings.TrimSpace(known), "W/"); known == tag || known == "*" {
			return true
		}
	}
	return false
}

// deleteDemand has a source be forgotten, with all that it wants; what it holds is released.
func (s *Server) deleteDemand(q *request) (err error) {
	in := &engine.Input{Kind: engine.InputDemandDelete, Source: q.rest, Format: table.Auto.String(), Author: q.who.Name}
	if err := q.known("allow_shrink"); err != nil {
		return err
	}
	if !validSource(q.rest) {
		return badSource()
	}
	if in.AllowShrink, err = q.flag("allow_shrink"); err != nil {
		return err
	}
	if in.Key, err = q.key(); err != nil {
		return err
	}
	if q.who.Role != RoleAdmin {
		in.Principal = principal{q.who}
	}
	r, err := q.engine.Submit(in)
	if err != nil {
		return err
	}
	return q.acknowledge(in, r)
}

// postCycle runs a cycle now and waits for it.
func (s *Server) postCycle(q *request) error {
	if err := q.engine.Cycle(); err != nil {
		return err
	}
	sum := &q.engine.View().Last.Summary
	return q.json(200, cycleDone{
		Cycle: sum.Cycle, Now: time.UnixMicro(sum.NowUS).UTC().Format(time.RFC3339Nano), Revision: sum.Revision,
		Granted: sum.UnitsGranted, Released: sum.UnitsReleased, Reclaimed: sum.UnitsReclaimed,
		Held: sum.UnitsHeld, Short: sum.UnitsShort, Digest: sum.Digest,
	})
}

// cycleDone is what a cycle did that was asked for.
type cycleDone struct {
	Cycle     int64  `json:"cycle"`
	Now       string `json:"now"`
	Revision  int64  `json:"revision"`
	Granted   int64  `json:"units_granted"`
	Released  int64  `json:"units_released"`
	Reclaimed int64  `json:"units_reclaimed"`
	Held      int64  `json:"units_held"`
	Short     int64  `json:"units_short"`
	Digest    string `json:"decisions_digest"`
}
