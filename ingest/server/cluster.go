package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/journal"
)

// Cluster is what a service is made of that is one of several processes with the same journal.
type Cluster struct {
	Open      func(ctx context.Context) (journal.Shared, error) // the journal, anew each time
	OpenLog   func(ctx context.Context) (SharedLog, error)      // the decision log, likewise
	GroupWait time.Duration                                     // how long the first of several inputs waits for others
}

// reopenPause is how long a process waits before it opens the journal again.
const reopenPause = 500 * time.Millisecond

// memberUntil runs a process of a cluster until ctx is done. It joins the others again when it led and another does
// now, or when the journal fails. What it has published stays readable meanwhile.
func (s *Server) memberUntil(ctx context.Context, o *ServiceOptions) error {
	for {
		err := s.join(ctx, o)
		switch {
		case ctx.Err() != nil:
			return nil // what a leader acknowledged is in the bucket
		case errors.Is(err, errWaited):
			continue
		case s.engine.Load() == nil:
			return err // the start is refused
		case errors.Is(err, journal.ErrDeposed), errors.Is(err, journal.ErrDropped):
			s.o.Log.Warn("this process begins anew, as a follower", "error", err)
		default:
			s.o.Log.Error("this process cannot go on with the journal; it is tried again", "error", err)
		}
		why := "this process begins anew, as a follower: " + err.Error()
		s.rejoins.Store(&why)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reopenPause):
		}
	}
}

// join opens the journal, reads what is there, follows, and leads, until ctx is done or the journal must be opened
// again.
func (s *Server) join(ctx context.Context, o *ServiceOptions) (err error) {
	s.NotReady("recovering")
	j, err := o.Cluster.Open(ctx)
	if err != nil {
		return err
	}
	s.shared.Store(&j)
	defer func() { err = errors.Join(err, j.Close()) }()
	log, err := s.sharedLog(ctx, o)
	if err != nil {
		return err
	}
	e, t, err := s.memberEngine(ctx, o, j, log)
	if err != nil {
		return s.waits(ctx, j, err)
	}
	if t != nil {
		defer func() { err = errors.Join(err, t.w.Close()) }()
		defer s.tendTail(ctx, t)()
		defer s.keepAudit(filepath.Join(o.Dir, "log"), o.Tend.KeepDays)() // the tail's lock is the folder's
	}
	s.SetEngine(e)
	s.rejoins.Store(nil)
	s.o.Log.Info("ready", "records", j.Last(), "leader", j.Leader().Name)
	if o.Ready != nil {
		o.Ready(e)
	}
	if err := s.follow(ctx, e, j); err != nil {
		e.Abandon()
		return s.waits(ctx, j, err)
	}
	return s.lead(ctx, o, e, j, t)
}

// errWaited ends a time of waiting for a checkpoint.
var errWaited = errors.New("there is a newer checkpoint")

// waits has a process whose version decides by other rules than the one that leads wait for the next checkpoint, with
// which it may go on: of who leads by its rules, or of who ended. It answers with the cycles before, if it has any.
// What else went wrong comes back.
func (s *Server) waits(ctx context.Context, j journal.Shared, why error) error {
	if !errors.Is(why, engine.ErrOtherRules) {
		return why
	}
	text := "waits for a checkpoint: " + why.Error()
	if was := s.rejoins.Swap(&text); was == nil || *was != text {
		s.o.Log.Warn("this process waits: start this version in the place of the process that leads, or that one's "+
			"version here",
			"why", why)
	}
	s.NotReady(text)
	if err := j.Wait(ctx); err != nil {
		return err
	}
	return errWaited
}

// sharedLog opens the decision log; nil: none is written. One that was begun must be gone on with: otherwise it would
// end for all, since checkpoints would leave it behind.
func (s *Server) sharedLog(ctx context.Context, o *ServiceOptions) (SharedLog, error) {
	log, err := o.Cluster.OpenLog(ctx)
	if err != nil {
		return nil, fmt.Errorf("the decision log: %w", err)
	}
	if !o.NoLog {
		return log, nil
	}
	if last := log.View().Last(); last > 0 {
		return nil, fmt.Errorf("decision_log: false: the cluster has a decision log, %s, up to cycle %d; every "+
			"process must go on with it",
			log.Name(), last)
	}
	return nil, nil
}

// tendTail tends a tail; what it returns ends that.
func (s *Server) tendTail(ctx context.Context, t *tail) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.tend(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// memberEngine makes an engine that knows all that the journal has. The tail is nil where no log is written.
func (s *Server) memberEngine(
	ctx context.Context, o *ServiceOptions, j journal.Shared, log SharedLog,
) (e *engine.Engine, t *tail, err error) {
	for logged := log != nil; ; logged = false {
		eo := o.Engine
		eo.Journal, eo.Decode, eo.Log, eo.GroupWait = j, Decode, s.o.Log, o.Cluster.GroupWait
		eo.Shared = true
		eo.OnDifference = differences(filepath.Join(o.Dir, differencesName)).keep
		eo.IsFull = func(err error) bool { return errors.Is(err, journal.ErrFull) }
		if logged {
			if t, err = s.openTail(log, o.Dir); err != nil {
				return nil, nil, err
			}
			eo.Exporter, eo.Journal = decisionLog{t.w}, loggedJournal{j, t}
		}
		e = engine.New(eo)
		s.starts.Store(e)
		if _, err = s.recover(ctx, e, j); err == nil {
			return e, t, nil
		}
		e.Abandon()
		if t != nil {
			err = errors.Join(err, t.w.Close())
			t = nil
		}
		if !logged || !errors.Is(err, engine.ErrLogShort) {
			return nil, nil, err
		}
		s.o.Log.Error("the decision log in the bucket ends before its checkpoints begin, because a process led that "+
			"wrote none; this process writes none either: bring the log back from a backup, or remove it and start "+
			"all anew",
			"log", log.Name(), "ends", log.View().Last(), "error", err)
	}
}

// follow has an engine follow until this process leads. One that decides otherwise stays as it is until ctx is done.
func (s *Server) follow(ctx context.Context, e *engine.Engine, j journal.Shared) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	records, ended := make(chan engine.Fed), make(chan struct{})
	go func() {
		e.Follow(ctx, records)
		close(ended)
	}()
	err := j.Follow(ctx, func(r journal.Record) error {
		done := make(chan error, 1)
		select {
		case records <- engine.Fed{Seq: r.Seq, Kind: r.Kind, Payload: r.Payload, Done: done}:
			return <-done
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if errors.Is(err, engine.ErrDiffers) {
		<-ctx.Done() // it answers questions about what it published before, and never leads
	}
	if err == nil {
		close(records)
	} else {
		cancel()
	}
	<-ended
	return err
}

// lead runs an engine whose process leads, until ctx is done or another leads.
func (s *Server) lead(ctx context.Context, o *ServiceOptions, e *engine.Engine, j journal.Shared, t *tail) error {
	s.o.Log.Info("this process leads", "term", j.Leader().Term)
	if t != nil {
		t.leads.Store(true)
		defer t.leads.Store(false)
	}
	leads, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- e.Run(leads) }()
	go func() {
		select {
		case <-j.Lost():
			cancel()
		case <-leads.Done():
		}
	}()
	if err := s.firstPlan(e, o); err != nil {
		s.o.Log.Error("the first policy is refused", "error", err)
	}
	err := <-ended
	if err == nil && ctx.Err() == nil {
		err = journal.ErrDeposed
	}
	if err == nil {
		e.LastCheckpoint() // who goes on may be of another version
	}
	e.Retire()
	return err
}

// member is this process's journal, where it is one of several that share it.
func (s *Server) member() journal.Shared {
	if j := s.shared.Load(); j != nil {
		return *j
	}
	return nil
}

// passedOn marks a request that one process passed on to another, which does not pass it on again.
const passedOn = "Stint-Passed-On"

// passedFor has the subject of the client certificate that came with a request that is passed on: it is on the
// connection between two processes that the certificate cannot be. It counts only where the process that passes it on
// has a client certificate with the subject of the service's own.
const passedFor = "Stint-Passed-For"

// writes tells whether a call changes anything.
func (r *route) writes() bool {
	return r.method != "GET" && r.path != "/v1/plan/check" && r.path != "/v1/whatif" && r.path != "/v1/simulate"
}

// elsewhere tells whether a call is for the process that leads, and this one does not.
func (s *Server) elsewhere(r *route) bool {
	if s.far {
		return r.is(needsEngine)
	}
	if s.member() == nil || !r.writes() && r.path != actorsPath {
		return false
	}
	e := s.engine.Load()
	return s.rejoins.Load() != nil || e == nil || e.Following()
}

// hopHeaders are of one connection, or were judged here already.
var hopHeaders = []string{
	"Connection", "Keep-Alive", "Transfer-Encoding", "Te", "Upgrade", "Expect", "Host", "Content-Length",
	"Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode",
}

// noLeader is the refusal of what writes while it cannot be passed on.
func noLeader(detail string) problem {
	return problem{Type: "no-leader", Status: 503, RetryAfter: 1, Detail: detail}
}

const sendAgain = "send the request again, with the same Idempotency-Key if it has one"

// passOn has the process that leads answer a request.
func (s *Server) passOn(q *request) error {
	var l journal.Leader
	if j := s.member(); j != nil { // a division of others may not be known yet
		l = j.Leader()
	}
	none := noLeader("no process is known to lead just now; another one will soon")
	switch {
	case l.Name == "" || l.Self:
		return none
	case len(q.Request.Header.Peek(passedOn)) > 0:
		none.Detail = "the request was passed on to a process that does not lead any more"
		return none
	case l.Address == "":
		none.Detail = "this process follows; the one that leads, " + l.Name + ", does not say where it can be reached"
		return none
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Limits.BodyTimeMax+s.o.Limits.WriteTimeMax)
	defer cancel()
	to := strings.TrimSuffix(l.Address, "/") + string(q.URI().PathOriginal())
	if args := q.URI().QueryString(); len(args) > 0 {
		to += "?" + string(args)
	}
	out, err := http.NewRequestWithContext(ctx, string(q.Method()), to, http.NoBody)
	if err != nil {
		return err
	}
	if n := int64(q.Request.Header.ContentLength()); n > 0 || n == -1 { // -1: chunked
		body := newPassedBody(q)
		out.Body, out.ContentLength = body, n
		defer func() { <-body.closed }()
	}
	for name, value := range q.Request.Header.All() {
		out.Header.Add(string(name), string(value))
	}
	for _, name := range hopHeaders {
		out.Header.Del(name)
	}
	out.Header.Set(passedOn, "1")
	out.Header.Del(passedFor)
	if q.who != nil && q.who != everybody && len(q.Request.Header.Peek("Authorization")) == 0 {
		out.Header.Set(passedFor, url.PathEscape(q.subject))
	}
	resp, err := s.passes.Do(out)
	if err != nil {
		linger(q.RequestCtx)
		return noLeader("the process that leads, " + l.Name + ", does not answer; " + sendAgain)
	}
	return q.passBack(resp)
}

// apart tells why a process of a cluster is not with the others, "" when it is.
func (s *Server) apart() string {
	j := s.member()
	if j == nil {
		return ""
	}
	if why := s.rejoins.Load(); why != nil {
		return *why
	}
	return j.Trouble()
}

// behind is an error of a call where a process that follows has not come so far as the client has seen another: it
// will.
func (s *Server) behind(err error) error {
	var refused *engine.Error
	if s.member() != nil && errors.As(err, &refused) && refused.Kind == engine.Future {
		return problem{
			Type: "behind", Status: 503, RetryAfter: 1,
			Detail: refused.Detail + ", at this process, which may be behind another",
		}
	}
	return err
}

// replaced is closed when an engine of a process of a cluster takes nothing any more: another one will.
func (s *Server) replaced(e *engine.Engine) <-chan struct{} {
	if s.member() == nil {
		return nil
	}
	return e.Stopped()
}
