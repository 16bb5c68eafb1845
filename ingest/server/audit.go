package server

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
)

// What is kept of calls until it is written, and how often that is.
const (
	auditEvery      = time.Minute
	auditKeysMax    = 10_000 // that are told apart until then
	auditCallersMax = 2_000  // of those, of one caller
	auditTextBytes  = 512    // of a text that a client chose
)

// auditKey is what calls have in common that are summed.
type auditKey struct {
	minute, revision int64
	by, status       int32
	caller, address  string
	call             string
	source, branch   string
}

// auditSum are calls with one key.
type auditSum struct {
	cycle, calls, rows, first, last int64
}

// auditor sums the calls of the service until they are written. It keeps a bounded number of keys: what comes then is
// told apart by caller, call and status alone, and at last counted as lost.
type auditor struct {
	mu     sync.Mutex
	sums   map[auditKey]*auditSum
	of     map[string]int // keys by caller
	full   chan struct{}
	lost   prometheus.Counter
	failed prometheus.Gauge
}

func newAuditor() *auditor {
	return &auditor{
		sums: map[auditKey]*auditSum{}, of: map[string]int{}, full: make(chan struct{}, 1),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stint_audit_lost_calls_total",
			Help: "Calls that are not in the table audit, as it could not be written for long.",
		}),
		failed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stint_audit_failed", Help: "Whether the table audit could not be written last.",
		}),
	}
}

// note takes note of a call that was answered.
func (a *auditor) note(k auditKey, cycle, rows int64, began time.Time) {
	us := began.UnixMicro()
	k.minute = us - us%time.Minute.Microseconds()
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sums[k]
	if s == nil && (len(a.sums) >= auditKeysMax || a.of[k.caller] >= auditCallersMax) {
		k.address, k.source, k.branch = "", "", ""
		s = a.sums[k]
	}
	if s == nil {
		if len(a.sums) >= 2*auditKeysMax {
			a.lost.Inc()
			return
		}
		s = &auditSum{cycle: cycle, first: us}
		a.sums[k] = s
		if a.of[k.caller]++; len(a.sums) == auditKeysMax {
			select {
			case a.full <- struct{}{}:
			default:
			}
		}
	}
	s.calls++
	s.rows += rows
	s.first, s.last = min(s.first, us), max(s.last, us)
}

// take gives what was noted since it was asked last.
func (a *auditor) take() map[auditKey]*auditSum {
	a.mu.Lock()
	defer a.mu.Unlock()
	sums := a.sums
	a.sums, a.of = map[auditKey]*auditSum{}, map[string]int{}
	return sums
}

// back has calls that could not be written be written later.
func (a *auditor) back(sums map[auditKey]*auditSum) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, s := range sums {
		switch was := a.sums[k]; {
		case was != nil:
			was.cycle, was.calls, was.rows = min(was.cycle, s.cycle), was.calls+s.calls, was.rows+s.rows
			was.first, was.last = min(was.first, s.first), max(was.last, s.last)
		case len(a.sums) >= auditKeysMax:
			a.lost.Add(float64(s.calls))
		default:
			a.sums[k] = s
			a.of[k.caller]++
		}
	}
}

// auditRows are calls as a table, in the order in which they began.
func auditRows(sums map[auditKey]*auditSum) *decision.Audit {
	keys := make([]auditKey, 0, len(sums))
	for k := range sums {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b auditKey) int {
		return cmp.Or(cmp.Compare(sums[a].first, sums[b].first), cmp.Compare(a.caller, b.caller),
			cmp.Compare(a.call, b.call),
			cmp.Compare(a.branch, b.branch), cmp.Compare(a.source, b.source), cmp.Compare(a.address, b.address),
			cmp.Compare(a.status, b.status), cmp.Compare(a.revision, b.revision), cmp.Compare(a.by, b.by))
	})
	t := &decision.Audit{}
	t.By.Dict = decision.AuditBy
	var words decision.Words
	codes := map[string]int32{}
	add := func(to *decision.Coded, word string) {
		if word == "" {
			to.Add(decision.Null)
			return
		}
		if _, ok := codes[word]; !ok {
			codes[word] = int32(len(words))
			words = append(words, word)
		}
		to.Add(codes[word])
	}
	for _, k := range keys {
		s := sums[k]
		t.Cycle, t.Minute = append(t.Cycle, s.cycle), append(t.Minute, k.minute)
		add(&t.Caller, k.caller)
		t.By.Add(k.by)
		add(&t.Address, k.address)
		add(&t.Call, k.call)
		add(&t.Source, k.source)
		add(&t.Branch, k.branch)
		t.Status, t.Calls, t.Rows = append(t.Status, int64(k.status)), append(t.Calls, s.calls), append(t.Rows, s.rows)
		t.Revision, t.First, t.Last = append(t.Revision, k.revision), append(t.First, s.first), append(t.Last, s.last)
	}
	for _, c := range []*decision.Coded{&t.Caller, &t.Address, &t.Call, &t.Source, &t.Branch} {
		c.Dict = words
	}
	return t
}

// audits takes note of a request that was answered with a route, if it is one for which somebody must be known.
func (s *Server) audits(q *request, r *route, began time.Time) {
	if s.audit == nil || r.is(noToken) {
		return
	}
	k := auditKey{by: decision.AuditNobody, status: int32(q.Response.StatusCode()), address: q.RemoteIP().String()}
	k.call, k.revision = r.method+" "+r.name, q.put.revision
	if q.who != nil && q.who != everybody {
		k.caller, k.by = bounded(q.who.Name), decision.AuditToken
		if q.subject != "" {
			k.by = decision.AuditCertificate
		}
	}
	k.source = bounded(q.query("source"))
	if strings.HasSuffix(r.name, "/{source}") {
		k.source = bounded(q.rest)
	}
	if !r.writes() {
		k.branch = q.branchRead(r)
	}
	cycle := int64(0)
	if e := s.engine.Load(); e != nil {
		if v := e.View(); v.Last != nil {
			cycle = v.Last.Summary.Cycle
		}
	}
	s.audit.note(k, cycle, q.put.rows, began)
}

// branchRead is the consumer whose branch a call reads: the one that it asks for, else the one that the caller may
// read, else all.
func (q *request) branchRead(r *route) string {
	asked := q.query("consumer")
	if strings.HasSuffix(r.name, "/{path}") {
		asked = "/" + strings.Trim(q.rest, "/")
	}
	switch {
	case asked != "":
		return bounded(asked)
	case q.who != nil && q.who.Branch != "":
		return q.who.Branch
	}
	return "/"
}

// bounded is a text that a client chose, as far as it is kept. It outlives the request.
func bounded(text string) string {
	if len(text) > auditTextBytes {
		text = text[:auditTextBytes]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.Clone(text)
}

// keepAudit writes what was noted to a log again and again, until what it returns is called. It is for the process that
// has the log.
func (s *Server) keepAudit(dir string, keepDays int) (end func()) {
	if s.audit == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.audit.follow(ctx, dir, keepDays, s.o.Log)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// follow writes to the table until ctx is done, and once more then.
func (a *auditor) follow(ctx context.Context, dir string, keepDays int, log *slog.Logger) {
	tick := time.NewTicker(auditEvery)
	defer tick.Stop()
	var w *export.AuditWriter
	said, day := "", ""
	for last := false; ; {
		err := a.flush(&w, dir, &day, keepDays)
		switch {
		case err == nil:
			a.failed.Set(0)
			said = ""
		case err.Error() != said:
			a.failed.Set(1)
			said = err.Error()
			log.Error("the table audit cannot be written; it is tried again", "error", err)
		}
		if last {
			return
		}
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		case <-a.full:
		}
	}
}

// flush writes what was noted, and keeps the table small.
func (a *auditor) flush(w **export.AuditWriter, dir string, day *string, keepDays int) (err error) {
	if *w == nil {
		if *w, err = export.OpenAudit(dir); err != nil {
			*w = nil
			return err
		}
	}
	now := time.Now()
	if sums := a.take(); len(sums) > 0 {
		if err := (*w).Write(auditRows(sums), now.UnixMicro()); err != nil {
			a.back(sums)
			return err
		}
	}
	if today := now.UTC().Format(time.DateOnly); today != *day || (*w).Crowded() {
		if err := (*w).Tidy(now.UnixMicro(), keepDays); err != nil {
			return err
		}
		*day = today
	}
	return nil
}
