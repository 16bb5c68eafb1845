package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/plan"
)

// typePrefix stands before the kind of an error in the member `type` (RFC 9457). Kinds are stable.
const typePrefix = "urn:stint:error:"

// problem is an error as the client gets it: application/problem+json.
type problem struct {
	Type       string // the kind
	Status     int
	Detail     string
	RetryAfter int // seconds; 0: not said

	rows   []cluster.RowFault
	faults plan.Faults
	count  int
	closed int64 // hosts that get no new grants because of the refusal
}

// Error is the detail.
func (p problem) Error() string { return p.Detail }

type problemRow struct {
	Row    int    `json:"row,omitempty"`
	Column string `json:"column,omitempty"`
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason"`
}

type problemFault struct {
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason"`
}

// problemBody is a problem as it is written.
type problemBody struct {
	Type   string         `json:"type"`
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Detail string         `json:"detail"`
	Rows   []problemRow   `json:"rows,omitempty"`
	Faults []problemFault `json:"faults,omitempty"`
	Count  int            `json:"count,omitempty"`

	HostsClosed int64 `json:"hosts_closed,omitempty"`
}

// write makes the problem the response.
func (p problem) write(ctx *fasthttp.RequestCtx) {
	body := problemBody{Type: typePrefix + p.Type, Title: http.StatusText(p.Status), Status: p.Status, Detail: p.Detail,
		Count: p.count, HostsClosed: p.closed}
	for _, r := range p.rows {
		body.Rows = append(body.Rows, problemRow{r.Row, r.Column, r.Value, r.Reason})
	}
	for _, f := range p.faults {
		body.Faults = append(body.Faults, problemFault{f.Line, f.Column, f.Path, f.Value, f.Reason})
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	ctx.Response.ResetBody()
	for _, header := range []string{"ETag", "Content-Encoding"} { // of the answer that it might have been
		ctx.Response.Header.Del(header)
	}
	ctx.Response.Header.Set("Cache-Control", "no-store") // it may be otherwise in a moment
	ctx.SetStatusCode(p.Status)
	ctx.SetContentType("application/problem+json")
	if p.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Status == fasthttp.StatusUnauthorized {
		ctx.Response.Header.Set("WWW-Authenticate", `Bearer realm="stint"`)
	}
	ctx.SetBody(append(text, '\n'))
}

// statuses are the statuses of the engine's refusals.
var statuses = map[engine.Kind]struct{ status, retryAfter int }{
	engine.Busy:      {429, 1},
	engine.Stopping:  {503, 2},
	engine.Unkept:    {503, 2},
	engine.NotLeader: {503, 1},
	engine.Full:      {507, 30},
	engine.NoPlan:    {409, 0},
	engine.BadRows:   {422, 0},
	engine.BadPlan:   {422, 0},
	engine.Revision:  {412, 0},
	engine.Shrink:    {409, 0},
	engine.KeyReused: {422, 0},
	engine.Silent:    {409, 0},
	engine.Forbidden: {403, 0},
	engine.TooMany:   {409, 0},
	engine.NoSource:  {404, 0},
	engine.Compacted: {410, 0},
	engine.Future:    {422, 0},
	engine.Moved:     {503, 1},
}

// asProblem is the one place that maps errors to statuses.
func asProblem(err error) (p problem) {
	var e *engine.Error
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &e):
		s := statuses[e.Kind]
		p = problem{Type: string(e.Kind), Status: s.status, RetryAfter: s.retryAfter, Detail: e.Detail,
			closed: e.HostsClosed}
		if p.closed > 0 {
			p.Detail += fmt.Sprintf("; the hosts that it would change for the worse (%d) get no new grants until a "+
				"table of hosts is taken that names them", p.closed)
		}
	default:
		p = problem{Type: "internal", Status: 500, Detail: err.Error()}
	}
	var rows *cluster.Faults
	var faults plan.Faults
	if errors.As(err, &rows) {
		p.rows, p.count = rows.Rows, rows.Count
	}
	if errors.As(err, &faults) {
		p.faults, p.count = faults, len(faults)
	}
	return p
}

// badTable is the refusal of a body that is no good table.
func badTable(err error) error {
	var rows *cluster.Faults
	if errors.As(err, &rows) {
		return problem{Type: "bad-rows", Status: 422, Detail: rows.Error(), rows: rows.Rows, count: rows.Count}
	}
	return problem{Type: "bad-request", Status: 400, Detail: err.Error()}
}

func tooLarge(most int64) problem {
	return overLimit("the body is larger than " + strconv.FormatInt(most, 10) + " bytes")
}

// overLimit is the refusal of what takes more than it may.
func overLimit(detail string) problem {
	return problem{Type: "too-large", Status: 413, Detail: detail}
}

// busy is the refusal of what may come again.
func busy(detail string) problem {
	return problem{Type: "busy", Status: 429, RetryAfter: 1, Detail: detail}
}

// stopping is the refusal at the end of the service.
func stopping() problem {
	return problem{Type: "stopping", Status: 503, RetryAfter: 2, Detail: "the service is stopping"}
}

func badRequest(detail string) error {
	return problem{Type: "bad-request", Status: 400, Detail: detail}
}
