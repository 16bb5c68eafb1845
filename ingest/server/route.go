package server

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/engine"
)

// facts are what is true of a call.
type facts uint8

const (
	noToken     facts = 1 << iota // it needs no token
	needsEngine                   // it needs an engine
	packs                         // it answers with packed tables where the client takes them
	fromLog                       // it is there too where a log is shown alone
)

// route is a call of the service.
type route struct {
	name   string // for metrics, and the path in the OpenAPI description
	method string
	path   string // a path, or, with a slash at its end, the beginning of one
	needs  string // the least role
	has    facts
	handle func(*Server, *request) error
}

// is tells whether a fact is true of the call.
func (r *route) is(f facts) bool { return r.has&f != 0 }

// routes are all calls. Of two that match, the longer path counts.
var routes = []*route{
	{"/v1/hosts", "PUT", "/v1/hosts", RoleAdmin, needsEngine, input(engine.InputHosts)},
	{"/v1/hosts", "PATCH", "/v1/hosts", RoleAdmin, needsEngine, input(engine.InputHostChanges)},
	{"/v1/plan", "PUT", "/v1/plan", RoleConsumerAdmin, needsEngine, (*Server).putPlan},
	{"/v1/plan", "GET", "/v1/plan", RoleReader, needsEngine | fromLog, (*Server).getPlan},
	{"/v1/plan/check", "POST", "/v1/plan/check", RoleReader, needsEngine | fromLog, (*Server).checkPlan},
	{"/v1/demand/{source}", "PUT", "/v1/demand/", RoleSubmitter, needsEngine, input(engine.InputDemand)},
	{"/v1/demand/{source}", "PATCH", "/v1/demand/", RoleSubmitter, needsEngine,
		input(engine.InputDemandChanges)},
	{"/v1/demand/{source}", "DELETE", "/v1/demand/", RoleSubmitter, needsEngine, (*Server).deleteDemand},
	{"/v1/running/{source}", "PUT", "/v1/running/", RoleSubmitter, needsEngine,
		input(engine.InputRunning)},
	{"/v1/releases", "POST", "/v1/releases", RoleSubmitter, needsEngine, input(engine.InputReleases)},
	{"/v1/cycles", "POST", "/v1/cycles", RoleAdmin, needsEngine, (*Server).postCycle},
	{"/v1/cycles", "GET", "/v1/cycles", RoleReader, needsEngine | packs | fromLog, (*Server).getCycles},
	{"/v1/cycles/{cycle}/{table}", "GET", "/v1/cycles/", RoleReader, needsEngine | packs | fromLog, (*Server).getTable},
	{"/v1/changes", "GET", "/v1/changes", RoleReader, needsEngine, (*Server).getChanges},
	{"/v1/holdings", "GET", "/v1/holdings", RoleReader, needsEngine | fromLog, (*Server).getHoldings},
	{"/v1/consumers", "GET", "/v1/consumers", RoleReader, needsEngine | packs | fromLog, (*Server).getConsumers},
	{"/v1/consumers/{path}", "GET", "/v1/consumers/", RoleReader, needsEngine | packs | fromLog,
		(*Server).getConsumers},
	{"/v1/explain/{path}", "GET", "/v1/explain/", RoleReader, needsEngine | fromLog, (*Server).getExplain},
	{"/v1/whatif", "POST", "/v1/whatif", RoleReader, needsEngine, (*Server).postWhatif},
	{"/v1/simulate", "POST", "/v1/simulate", RoleReader, needsEngine, (*Server).postSimulate},
	{"/v1/hosts", "GET", "/v1/hosts", RoleReader, needsEngine | packs | fromLog, (*Server).getHosts},
	{"/v1/loans", "GET", "/v1/loans", RoleReader, needsEngine | packs | fromLog, (*Server).getLoans},
	{"/v1/demand/{source}", "GET", "/v1/demand/", RoleReader, needsEngine, (*Server).getDemand},
	{"/v1/sources", "GET", "/v1/sources", RoleReader, needsEngine, (*Server).getSources},
	{actorsPath + "/{source}", "PUT", actorsPath + "/", RoleSubmitter, needsEngine, (*Server).putActor},
	{actorsPath, "GET", actorsPath, RoleReader, needsEngine, (*Server).getActors},
	{"/v1/plan/revisions", "GET", "/v1/plan/revisions", RoleReader, needsEngine | fromLog, (*Server).getRevisions},
	{"/v1/plan/revisions/{n}", "GET", "/v1/plan/revisions/", RoleReader, needsEngine | fromLog,
		(*Server).getRevisions},
	{"/v1/events", "GET", "/v1/events", RoleReader, needsEngine | fromLog, (*Server).getEvents},
	{"/", "GET", "/", "", noToken, (*Server).getPage},
	{"/console/{file}", "GET", "/console/", "", noToken, (*Server).getPage},
	{"/healthz", "GET", "/healthz", "", noToken, (*Server).getHealth},
	{"/readyz", "GET", "/readyz", "", noToken, (*Server).getReady},
	{"/metrics", "GET", "/metrics", RoleReader, 0, (*Server).getMetrics},
	{"/openapi.json", "GET", "/openapi.json", "", noToken, (*Server).getOpenAPI},
}

// find gives the route of a request.
func (s *Server) find(q *request) (*route, error) {
	path, method := string(q.URI().PathOriginal()), string(q.Method())
	if method == "HEAD" {
		method = "GET"
	}
	var best *route
	var allowed []string
	for _, r := range routes {
		rest, ok := strings.CutPrefix(path, r.path)
		if !ok || r.path != "/" && strings.HasSuffix(r.path, "/") == (rest == "") || r.path == "/" && rest != "" {
			continue
		}
		allowed = append(allowed, r.method)
		if r.method == method && (best == nil || len(r.path) > len(best.path)) {
			best, q.rest = r, rest
		}
	}
	if best == nil && len(allowed) == 0 {
		return nil, problem{Status: 404, Type: "not-found", Detail: "no call " + path}
	}
	if best == nil {
		slices.Sort(allowed)
		q.Response.Header.Set("Allow", strings.Join(slices.Compact(allowed), ", "))
		return nil, problem{Status: 405, Type: "wrong-method",
			Detail: path + " knows " + strings.Join(slices.Compact(allowed), ", ")}
	}
	rest, err := url.PathUnescape(q.rest)
	if err != nil {
		return nil, badRequest("the path cannot be read: " + err.Error())
	}
	q.rest = rest
	return best, nil
}

// input is the handler of inputs of a kind.
func input(kind string) func(*Server, *request) error {
	return func(_ *Server, q *request) error {
		in := &engine.Input{Kind: kind, Source: q.rest}
		if err := q.known("format", "allow_shrink"); err != nil {
			return err
		}
		if !validSource(q.rest) {
			return badSource()
		}
		var err error
		if in.AllowShrink, err = q.flag("allow_shrink"); err != nil {
			return err
		}
		return q.submit(in)
	}
}

func badSource() error {
	return badRequest("a source is called by up to 256 bytes of UTF-8 without slashes and control characters, and " +
		"not . or ..")
}

// validSource tells whether a source may be called so; "" is of calls that have none.
func validSource(name string) bool {
	// "." and ".." are steps of a path: who tidies it on the way would have another call made.
	return name != "." && name != ".." && len(name) <= cluster.NameBytesMax &&
		utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == '/' || unicode.IsControl(r)
	})
}
