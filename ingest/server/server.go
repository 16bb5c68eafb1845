// Package server is the HTTP service of SPEC chapter 10 on fasthttp: it bounds what comes in, decodes it, hands it to
// the engine, and answers from the engine's views. It decides nothing.
package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/journal"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/ingest/console"
)

// Limits bound what clients can cost. A zero field means the default.
type Limits struct {
	BodyBytesMax     int64         // of a request as it comes (256 MiB)
	DecodedBytesMax  int64         // of a request's body unpacked (2 GiB)
	PlanBytesMax     int64         // of a policy file unpacked (16 MiB)
	RowsMax          int           // of a table (5,000,000)
	MemoryMax        int64         // of the process; those below are parts of it (8 GiB)
	InflightBytesMax int64         // of bodies until their inputs are durable (1 GiB, at most an eighth)
	DecodedMemoryMax int64         // of all that is being decoded (a quarter)
	ChecksMemoryMax  int64         // of policy files being checked: bodies and what is decoded of them (an eighth)
	AnswersMemoryMax int64         // of answers under way (an eighth)
	HistoryMemoryMax int64         // of what is kept of the decision log for readers (a sixteenth)
	DecodesMax       int           // of one caller at once (half the processors); one more is for others
	DecodesWaitMax   int           // bodies waiting for that (256)
	DecodeTimeMax    time.Duration // of one body (1 min)
	HeaderTimeMax    time.Duration // until the header has come (10 s)
	BodyTimeMax      time.Duration // until the body has come (2 min)
	BodyRateMin      int64         // bytes a second of a body, and of a response; 10 s of grace (16 KiB)
	WriteTimeMax     time.Duration // until a response is taken (5 min)
	IdleTimeMax      time.Duration // between two requests of a connection (2 min)
	ConnsMax         int           // (20,000); fewer where the process may not open so many files
	ConnsPerIPMax    int           // (0: no more than stay free for others)
	WaitersMax       int           // long polls (10,000)
	WaitMax          time.Duration // of one (60 s)
	ResponseRowsMax  int           // of changes, but for a cycle that alone has more (2,000,000)
}

func (l Limits) withDefaults() Limits {
	l.BodyBytesMax = cmp.Or(l.BodyBytesMax, 256<<20)
	l.DecodedBytesMax = cmp.Or(l.DecodedBytesMax, 2<<30)
	l.PlanBytesMax = cmp.Or(l.PlanBytesMax, 16<<20)
	l.RowsMax = cmp.Or(l.RowsMax, 5_000_000)
	l.MemoryMax = cmp.Or(l.MemoryMax, 8<<30)
	l.InflightBytesMax = min(cmp.Or(l.InflightBytesMax, 1<<30), l.MemoryMax/8)
	l.DecodedMemoryMax = cmp.Or(l.DecodedMemoryMax, l.MemoryMax/4)
	l.ChecksMemoryMax = cmp.Or(l.ChecksMemoryMax, l.MemoryMax/8)
	l.AnswersMemoryMax = cmp.Or(l.AnswersMemoryMax, l.MemoryMax/8)
	l.HistoryMemoryMax = cmp.Or(l.HistoryMemoryMax, l.MemoryMax/16)
	// A body is copied as it grows, and one caller has half of the memory. What is unpacked for the log is in memory
	// whole.
	l.BodyBytesMax = min(l.BodyBytesMax, l.InflightBytesMax/3)
	l.DecodedBytesMax = min(l.DecodedBytesMax, l.MemoryMax/8)
	l.DecodeTimeMax = cmp.Or(l.DecodeTimeMax, time.Minute)
	l.DecodesMax = cmp.Or(l.DecodesMax, max(1, runtime.GOMAXPROCS(0)/2))
	l.DecodesWaitMax = cmp.Or(l.DecodesWaitMax, 256)
	l.HeaderTimeMax = cmp.Or(l.HeaderTimeMax, 10*time.Second)
	l.BodyTimeMax = cmp.Or(l.BodyTimeMax, 2*time.Minute)
	l.BodyRateMin = cmp.Or(l.BodyRateMin, 16<<10)
	l.WriteTimeMax = cmp.Or(l.WriteTimeMax, 5*time.Minute)
	l.IdleTimeMax = cmp.Or(l.IdleTimeMax, 2*time.Minute)
	l.ConnsMax = cmp.Or(l.ConnsMax, 20_000)
	l.WaitersMax = cmp.Or(l.WaitersMax, 10_000)
	l.WaitMax = cmp.Or(l.WaitMax, time.Minute)
	l.ResponseRowsMax = cmp.Or(l.ResponseRowsMax, 2_000_000)
	return l
}

// Options are what a server is made of.
type Options struct {
	HostsAllowed []string // names besides loopback ones under which the service is asked; with tokens, none: all
	Tokens       []Token  // none: everybody may do everything, and Serve takes loopback listeners only
	// nil: connections are plain, and Serve takes loopback listeners only, or with Insecure all
	TLS      *TLS
	Insecure bool // plain connections are taken from everywhere
	// the authorities of the certificates of other processes of a cluster; nil: the machine's
	Others        *x509.CertPool
	LogDir        string       // of the decision log, for cycles that are not in memory; "": none
	LogFiles      export.Files // its files, where they lie elsewhere: LogDir is what messages call it then
	Audit         bool         // calls are noted, and Run writes them to the log
	LogAlone      bool         // that log is all there is: it is shown, and nothing can be changed
	ReportUnknown bool         // demand of unknown consumers is a shortfall, not a bad row
	Limits        Limits
	Log           *slog.Logger
	Metrics       *Metrics
	Version       string

	Division  string   // whose plans alone the engine decides; "": all of the policy
	Divisions []string // all that there are; none: plans are not divided

	// For /metrics alone.
	Dir             string // of the service; "": it has none
	JournalBytesMax int64  // of the journal in that folder; 0: it is elsewhere
}

// Server serves one engine. It may listen before there is one: then it says that it is not ready.
type Server struct {
	o       Options
	engine  atomic.Pointer[engine.Engine]
	starts  atomic.Pointer[engine.Engine] // the engine that recovers, while there is no other
	why     atomic.Pointer[string]        // while there is no engine
	tokens  atomic.Pointer[known]
	hosts   atomic.Pointer[[]string] // that are allowed
	http    *fasthttp.Server
	history history
	actors  actors
	audit   *auditor // nil: calls are not noted
	now     made

	bodies   *budget       // bytes
	decoded  *budget       // bytes
	checks   *budget       // bytes
	answers  *budget       // bytes
	waiters  *budget       // long polls
	decodes  *places       // for tables
	parses   *places       // for policy files
	encodes  chan struct{} // slots to begin answers
	pages    pages
	intake   intake
	whatifs  *places // one, for what-ifs and simulations
	lingers  atomic.Int64
	tables   sync.Pool     // *cluster.DemandTable
	closing  chan struct{} // closed when the server shuts down: long polls end
	mu       sync.Mutex    // of ln
	ln       *listener     // that is served
	instance string

	// the OpenAPI description: routes lead to handlers, so that none of these may ask for it itself
	described func() []byte

	shared  atomic.Pointer[journal.Shared] // the journal of several processes; nil: there is one
	rejoins atomic.Pointer[string]         // why this process opens that journal again; nil: it does not
	passes  *http.Client                   // to the process that leads

	wholes    wholes    // the policy of all divisions
	divisions []*Server // of a service that is divided: it has no engine itself, and these have one each
	far       bool      // the division is decided by other processes: calls go to who leads it
}

// New makes a server. Errors: tokens that are not valid.
func New(o Options) (*Server, error) {
	o.Limits = o.Limits.withDefaults()
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Metrics == nil {
		o.Metrics = NewMetrics(1)
	}
	tokens, err := checkTokens(o.Tokens)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, closing: make(chan struct{}),
		encodes: make(chan struct{}, max(2, runtime.GOMAXPROCS(0))), described: OpenAPI}
	s.budgets()
	s.passes = &http.Client{
		Transport: &http.Transport{ // no proxy of the environment
			MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, TLSClientConfig: o.TLS.toOthers(o.Others),
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.tokens.Store(tokens)
	s.SetHostsAllowed(o.HostsAllowed)
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails
	s.instance = hex.EncodeToString(id[:])
	s.NotReady("starting")
	l := &s.o.Limits
	if n := connsBearable(l.ConnsMax); n < l.ConnsMax {
		o.Log.Warn("fewer connections than configured: the process may not open so many files (ulimit -n)",
			"connections", n, "configured", l.ConnsMax)
		l.ConnsMax = n
	}
	s.http = &fasthttp.Server{
		HeaderReceived: s.headerReceived, Handler: s.handle, ErrorHandler: s.unreadable,
		ExpectHandler: s.expected, Name: "stint", Logger: discard{},
		StreamRequestBody: true, MaxRequestBodySize: int(l.BodyBytesMax), DisablePreParseMultipartForm: true,
		ReadTimeout: l.HeaderTimeMax, WriteTimeout: l.WriteTimeMax, IdleTimeout: l.IdleTimeMax,
		Concurrency: l.ConnsMax + lingersMax, ReadBufferSize: 8 << 10, WriteBufferSize: 8 << 10,
		ReduceMemoryUsage: true, CloseOnShutdown: true, NoDefaultContentType: true,
	}
	o.Metrics.attach(s)
	o.Metrics.attachTLS(o.TLS)
	if o.Audit {
		s.audit = newAuditor()
		o.Metrics.registry.MustRegister(s.audit.lost, s.audit.failed)
	}
	return s, nil
}

// budgets makes what callers share.
func (s *Server) budgets() {
	l := &s.o.Limits
	s.bodies, s.decoded = newBudget(l.InflightBytesMax), newBudget(l.DecodedMemoryMax)
	s.checks = newBudget(l.ChecksMemoryMax)
	s.answers, s.waiters = newBudget(l.AnswersMemoryMax), newBudget(int64(l.WaitersMax))
	s.pages = pages{b: s.answers, of: map[any]*page{}}
	s.decodes = newPlaces(l.DecodesMax, l.DecodesWaitMax, decodeWaitMax)
	s.parses = newPlaces(1, l.DecodesWaitMax, decodeWaitMax)
	s.whatifs = newPlace(whatifsWaitMax, whatifWaitMax)
	s.history = history{dir: s.o.LogDir, from: s.o.LogFiles, name: s.o.LogDir, kept: kept{bytesMax: l.HistoryMemoryMax}}
}

// decodeWaitMax is how long a body waits to be decoded.
const decodeWaitMax = time.Minute

// discard takes what fasthttp has to say of single connections: clients that break off are no news.
type discard struct{}

// Printf does nothing.
func (discard) Printf(string, ...any) {}

// SetEngine gives the server the engine that is ready.
func (s *Server) SetEngine(e *engine.Engine) { s.engine.Store(e) }

// SetHostsAllowed has other hosts be allowed from the next request on.
func (s *Server) SetHostsAllowed(hosts []string) { s.hosts.Store(&hosts) }

// NotReady says what is going on while there is no engine.
func (s *Server) NotReady(why string) { s.why.Store(&why) }

// Errors of Serve for a listener that others than this machine reach.
var (
	ErrOpen  = errors.New("without tokens the service listens on a loopback address only")
	ErrPlain = errors.New("without TLS (tls.certificate) the service listens on a loopback address only, " +
		"unless the configuration says insecure: true")
)

// MayListen tells why a service may not listen on an address, nil when it may. It is asked before there is a socket.
func (o *Options) MayListen(ip net.IP) error {
	switch {
	case ip.IsLoopback():
		return nil
	case len(o.Tokens) == 0:
		return ErrOpen
	case o.TLS == nil && !o.Insecure:
		return ErrPlain
	}
	return nil
}

// Serve answers requests until Shutdown.
func (s *Server) Serve(ln net.Listener) error {
	console.Find("/") // it is packed before anybody asks for it
	if addr, ok := ln.Addr().(*net.TCPAddr); ok {
		if err := s.o.MayListen(addr.IP); err != nil {
			return errors.Join(err, ln.Close())
		}
	}
	l := &listener{Listener: ln, s: s, perIP: map[string]int{}}
	if s.o.TLS != nil {
		l.tls = s.o.TLS.config()
		go s.o.TLS.watch(s.closing, s.o.Log)
	}
	s.mu.Lock()
	s.ln = l
	s.mu.Unlock()
	select {
	case <-s.closing:
		return l.Close() // it was shut down before
	default:
	}
	return s.http.Serve(l)
}

// Shutdown stops listening, ends long polls and waits for requests under way until ctx is done. It may come before
// Serve, or while that begins: fasthttp does not know of the listener then, and would go on with it.
func (s *Server) Shutdown(ctx context.Context) error {
	close(s.closing)
	s.mu.Lock()
	l := s.ln
	s.mu.Unlock()
	var err error
	if l != nil {
		err = l.Close()
	}
	return errors.Join(err, s.http.ShutdownWithContext(ctx))
}

// unreadable answers a request whose header cannot be read, or whose body is announced as too long.
func (s *Server) unreadable(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	p := problem{Status: 400, Type: "bad-request", Detail: "the request cannot be read"}
	switch {
	case errors.As(err, &small):
		p = problem{Status: 431, Type: "header-too-large", Detail: "the header of the request is too large"}
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		p = tooLarge(s.o.Limits.BodyBytesMax)
	case errors.As(err, &timeout) && timeout.Timeout():
		p = problem{Status: 408, Type: "too-slow", Detail: "the request did not come in time"}
	}
	s.o.Metrics.refused(p.Type)
	p.write(ctx)
	linger(ctx)
}

// expected tells a client that asks whether it shall send its body (Expect: 100-continue): not one that is refused
// unseen.
func (s *Server) expected(ctx *fasthttp.RequestCtx) int {
	q := &request{RequestCtx: ctx, s: s}
	err := s.guard(q)
	var r *route
	if err == nil {
		r, err = s.find(q)
	}
	if err == nil {
		err = s.admit(q, r)
	}
	if err == nil {
		return fasthttp.StatusContinue
	}
	p := asProblem(err)
	s.o.Metrics.refused(p.Type)
	p.write(ctx)
	linger(ctx)
	return p.Status
}

// handle answers a request. Whatever the handler does with the body, nothing of it is left to be taken for another
// request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	start := time.Now()
	name := "none"
	defer func() {
		took := time.Since(start)
		s.o.Metrics.request(name, ctx.Response.StatusCode(), took)
		s.o.Log.Debug("request", "method", string(ctx.Method()), "path", string(ctx.Path()), "status",
			ctx.Response.StatusCode(), "took", took)
	}()
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	q := &request{RequestCtx: ctx, s: s}
	err := s.guard(q)
	var r *route
	if err == nil {
		r, err = s.find(q)
	}
	if err == nil {
		name = r.name
		err = s.guarded(q, r)
	}
	if err != nil {
		p := asProblem(err)
		s.o.Metrics.refused(p.Type)
		p.write(ctx)
	}
	if r != nil && r.needs != "" {
		varies(ctx)
	}
	if r != nil {
		s.audits(q, r, start)
		for _, d := range q.wentTo {
			d.audits(q, r, start)
		}
	}
	s.dispose(q)
}

// varies tells caches that an answer depends on who asks: a token may be limited to a branch.
func varies(ctx *fasthttp.RequestCtx) {
	const header = "Authorization"
	h := &ctx.Response.Header
	switch was := string(h.Peek("Vary")); {
	case was == "":
		h.Set("Vary", header)
	case !strings.Contains(was, header):
		h.Set("Vary", was+", "+header)
	}
}

// guarded is run, save that a bug in a handler costs one request and not the service. The engine has its own goroutine:
// a bug there ends the process, for nobody could tell what the state is worth.
func (s *Server) guarded(q *request, r *route) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.o.Log.Error("a bug", "route", r.name, "panic", v, "stack", string(debug.Stack()))
			err = problem{Status: 500, Type: "internal", Detail: "a bug in the service; its log has the details"}
		}
	}()
	return s.run(q, r)
}

// admit checks who asks.
func (s *Server) admit(q *request, r *route) error {
	if !r.is(noToken) {
		of := credentialsOf(q.RequestCtx)
		who, err := s.authenticate(of)
		if err != nil {
			return err
		}
		if s.o.TLS != nil && of.authorization == "" {
			q.subject, _ = of.conn.certified(s.o.TLS)
		}
		q.who, q.caller = who, "token "+who.Name
		if who == everybody {
			q.caller = "address " + q.RemoteIP().String()
		}
		if !who.has(r.needs) {
			return problem{Status: 403, Type: "forbidden", Detail: "the role " + who.Role + " may not do this"}
		}
		if err := who.mayRead(r); err != nil {
			return err
		}
		q.Response.Header.Set("Stint-Role", s.roleOf(who))
		q.Response.Header.Set("Stint-Name", headerText(who.Name))
	}
	return nil
}

// roleOf is what a token may do here: with a log alone nobody can do more than read.
func (s *Server) roleOf(who *Token) string {
	if s.o.LogAlone {
		return RoleReader
	}
	return who.Role
}

// made are tables made of what stands after the last cycle, for who asks for them again.
type made struct {
	mu    sync.Mutex
	cycle int64
	of    map[string]*decision.Table
}

// guardedAnswer is answer with the same for a call of one division among others.
func (s *Server) guardedAnswer(q *request, r *route) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.o.Log.Error("a bug", "route", r.name, "panic", v, "stack", string(debug.Stack()))
			err = problem{Status: 500, Type: "internal", Detail: "a bug in the service; its log has the details"}
		}
	}()
	return s.answer(q, r)
}

// run checks who asks and answers.
func (s *Server) run(q *request, r *route) error {
	if err := s.admit(q, r); err != nil {
		return err
	}
	if s.divisions != nil && (r.is(needsEngine) || r.path == "/healthz" || r.path == "/readyz") {
		return s.divide(q, r)
	}
	return s.answer(q, r)
}

// answer answers who may ask.
func (s *Server) answer(q *request, r *route) error {
	q.packs = r.is(packs)
	if s.o.LogAlone && r.is(needsEngine) {
		if !r.is(fromLog) {
			return problem{Type: "log-alone", Status: 409,
				Detail: "a decision log is shown alone here (stint serve --log): " +
					"nothing can be changed, and what needs a running service cannot be asked"}
		}
		return r.handle(s, q)
	}
	if s.elsewhere(r) {
		return s.passOn(q)
	}
	if r.is(needsEngine) {
		if q.engine = s.engine.Load(); q.engine == nil {
			return problem{Status: 503, Type: "not-ready", Detail: "not ready: " + *s.why.Load(), RetryAfter: 1}
		}
	}
	return s.behind(r.handle(s, q))
}

// request is a request under way.
type request struct {
	*fasthttp.RequestCtx
	s       *Server
	who     *Token // nil: all is allowed
	subject string // of the client certificate by which that is known; "": by none
	caller  string // whose share of the limits counts: the token's, or without tokens the address's
	engine  *engine.Engine
	// the answer is packed where the client takes that: for people's lines, not for those who follow changes
	packs bool
	rest  string                         // what follows the route's fixed part in the path
	put   struct{ rows, revision int64 } // of the input that was taken
	read  int64                          // bytes of the body
	ended bool                           // the body was read to its end
	page  cursor                         // of the rows, where it is asked for by pages
	// where the rows of the answer go, which are of one division among others; nil: to the client
	gather *gathered
	wentTo []*Server // divisions that the call went to
}

// drainBytesMax is how much of a body that nobody wants is read all the same, so that the connection can go on.
const drainBytesMax = 64 << 10

// dispose gets rid of what is left of the body: by reading it when that is little, else by closing the connection after
// the answer.
func (s *Server) dispose(q *request) {
	body := q.RequestBodyStream()
	if body == nil || q.ended {
		return
	}
	if n := q.Request.Header.ContentLength(); n >= 0 && int64(n)-q.read <= drainBytesMax {
		_ = q.Conn().SetReadDeadline(time.Now().Add(time.Second))
		m, err := io.CopyN(io.Discard, body, int64(n)-q.read)
		if q.read += m; (err == nil || err == io.EOF) && q.read == int64(n) {
			return
		}
	}
	linger(q.RequestCtx)
}

// linger closes the connection after the answer, and not before the client had time to read that.
func linger(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c, ok := ctx.Conn().(*conn); ok {
		c.linger.Store(true)
	}
}

// query is a parameter of the URL, "" when it is not given.
func (q *request) query(name string) string { return string(q.QueryArgs().Peek(name)) }

// flag is a parameter that is true or false.
func (q *request) flag(name string) (bool, error) {
	switch v := q.query(name); v {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, problem{Status: 400, Type: "bad-request",
			Detail: "parameter " + name + "=" + v + ": must be true or false"}
	}
}

// known refuses parameters that a route does not know: a misspelt one must not be passed over.
func (q *request) known(names ...string) error {
	if q.s.o.Division != "" {
		names = append(names, divisionParam)
	}
	var unknown string
	seen := map[string]bool{}
	for key := range q.QueryArgs().All() {
		if seen[string(key)] {
			return problem{Status: 400, Type: "bad-request", Detail: "parameter " + string(key) + ": is given twice"}
		}
		seen[string(key)] = true
		found := false
		for _, n := range names {
			found = found || n == string(key)
		}
		if !found {
			unknown = string(key)
		}
	}
	if unknown != "" {
		return problem{Status: 400, Type: "bad-request",
			Detail: "no parameter " + unknown + " here; there are " + strings.Join(names, ", ")}
	}
	return nil
}
