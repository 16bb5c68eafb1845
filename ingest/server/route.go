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

// route is a call of the service.
type route struct {
	name   string // for metrics, and the path in the OpenAPI description
	method string
	path   string // a path, or, with a slash at its end, the beginning of one
	needs  string // the least role
	open   bool   // needs no token
	engine bool   // needs an engine
	packs  bool   // answers with packed tables where the client takes that
	log    bool   // is there too where a log is shown alone
	handle func(*Server, *request) error
}

// routes are all calls. Of two that match, the longer path counts.
var routes = []*route{
	{"/v1/hosts", "PUT", "/v1/hosts", RoleAdmin, false, true, false, false, input(engine.InputHosts)},
	{"/v1/hosts", "PATCH", "/v1/hosts", RoleAdmin, false, true, false, false, input(engine.InputHostChanges)},
	{"/v1/plan", "PUT", "/v1/plan", RoleConsumerAdmin, false, true, false, false, (*Server).putPlan},
	{"/v1/plan", "GET", "/v1/plan", RoleReader, false, true, false, true, (*Server).getPlan},
	{"/v1/plan/check", "POST", "/v1/plan/check", RoleReader, false, true, false, true, (*Server).checkPlan},
	{"/v1/demand/{source}", "PUT", "/v1/demand/", RoleSubmitter, false, true, false, false, input(engine.InputDemand)},
	{"/v1/demand/{source}", "PATCH", "/v1/demand/", RoleSubmitter, false, true, false, false,
		input(engine.InputDemandChanges)},
	{"/v1/demand/{source}", "DELETE", "/v1/demand/", RoleSubmitter, false, true, false, false, (*Server).deleteDemand},
	{"/v1/running/{source}", "PUT", "/v1/running/", RoleSubmitter, false, true, false, false,
		input(engine.InputRunning)},
	{"/v1/releases", "POST", "/v1/releases", RoleSubmitter, false, true, false, false, input(engine.InputReleases)},
	{"/v1/cycles", "POST", "/v1/cycles", RoleAdmin, false, true, false, false, (*Server).postCycle},
	{"/v1/cycles", "GET", "/v1/cycles", RoleReader, false, true, true, true, (*Server).getCycles},
	{"/v1/cycles/{cycle}/{table}", "GET", "/v1/cycles/", RoleReader, false, true, true, true, (*Server).getTable},
	{"/v1/changes", "GET", "/v1/changes", RoleReader, false, true, false, false, (*Server).getChanges},
	{"/v1/holdings", "GET", "/v1/holdings", RoleReader, false, true, false, true, (*Server).getHoldings},
	{"/v1/consumers", "GET", "/v1/consumers", RoleReader, false, true, true, true, (*Server).getConsumers},
	{"/v1/consumers/{path}", "GET", "/v1/consumers/", RoleReader, false, true, true, true, (*Server).getConsumers},
	{"/v1/explain/{path}", "GET", "/v1/explain/", RoleReader, false, true, false, true, (*Server).getExplain},
	{"/v1/whatif", "POST", "/v1/whatif", RoleReader, false, true, false, false, (*Server).postWhatif},
	{"/v1/simulate", "POST", "/v1/simulate", RoleReader, false, true, false, false, (*Server).postSimulate},
	{"/v1/hosts", "GET", "/v1/hosts", RoleReader, false, true, true, true, (*Server).getHosts},
	{"/v1/loans", "GET", "/v1/loans", RoleReader, false, true, true, true, (*Server).getLoans},
	{"/v1/demand/{source}", "GET", "/v1/demand/", RoleReader, false, true, false, false, (*Server).getDemand},
	{"/v1/sources", "GET", "/v1/sources", RoleReader, false, true, false, false, (*Server).getSources},
	{actorsPath + "/{source}", "PUT", actorsPath + "/", RoleSubmitter, false, true, false, false, (*Server).putActor},
	{actorsPath, "GET", actorsPath, RoleReader, false, true, false, false, (*Server).getActors},
	{"/v1/plan/revisions", "GET", "/v1/plan/revisions", RoleReader, false, true, false, true, (*Server).getRevisions},
	{"/v1/plan/revisions/{n}", "GET", "/v1/plan/revisions/", RoleReader, false, true, false, true,
		(*Server).getRevisions},
	{"/v1/events", "GET", "/v1/events", RoleReader, false, true, false, true, (*Server).getEvents},
	{"/", "GET", "/", "", true, false, false, false, (*Server).getPage},
	{"/console/{file}", "GET", "/console/", "", true, false, false, false, (*Server).getPage},
	{"/healthz", "GET", "/healthz", "", true, false, false, false, (*Server).getHealth},
	{"/readyz", "GET", "/readyz", "", true, false, false, false, (*Server).getReady},
	{"/metrics", "GET", "/metrics", RoleReader, false, false, false, false, (*Server).getMetrics},
	{"/openapi.json", "GET", "/openapi.json", "", true, false, false, false, (*Server).getOpenAPI},
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
