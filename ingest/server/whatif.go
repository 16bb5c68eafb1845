package server

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/explain"
)

// What one what-if may take: cycles ahead, and time after which it looks no further.
const (
	whatifSettle    = 100
	whatifSettleMax = 1_000
	whatifTimeMax   = 20 * time.Second
	whatifsWaitMax  = 32               // what-ifs and simulations that wait
	whatifWaitMax   = 30 * time.Second // how long one waits
)

// postWhatif tells what the next cycle would be under another policy, were it to run now, and what would come of it.
// Cycles go on meanwhile: it is decided on copies of the state, one what-if at a time.
func (s *Server) postWhatif(q *request) error {
	if err := q.known("force", "settle", "format", "limit", "after"); err != nil {
		return err
	}
	media, format, err := q.acceptedOf(textTypes)
	if err != nil {
		return err
	}
	force, err := q.flag("force")
	if err != nil {
		return err
	}
	settle, err := q.number("settle", 0, whatifSettle)
	if err != nil {
		return err
	}
	if settle > whatifSettleMax {
		return badRequest("parameter settle=" + q.query("settle") + ": must be at most " +
			strconv.Itoa(whatifSettleMax))
	}
	w, err := q.window()
	if err != nil {
		return err
	}
	in := &engine.Input{Kind: engine.InputPlan}
	done, err := q.readPlan(in, true)
	if err != nil {
		return err
	}
	defer done()
	// A body that comes slowly keeps nobody waiting: it is here by now.
	leave, err := s.whatifs.enter(q.caller, s.closing)
	if err != nil {
		return err
	}
	defer leave()
	if err := q.who.mayPut(q.engine.View().Policy, in); err != nil {
		return problem{Type: "forbidden", Status: 403, Detail: err.Error()}
	}
	c, err := s.compare(q.engine, in, force, int(settle))
	if err != nil {
		return err
	}
	q.who.cutComparison(c)
	q.Response.Header.Set("Stint-Cycle", strconv.FormatInt(c.Cycle, 10))
	q.Response.Header.Set("Vary", "Accept")
	if format == "json" { // text shows the first rows of each list anyway
		w.cutComparison(c)
		return q.json(200, c)
	}
	var b bytes.Buffer
	if err := c.Write(&b, "the policy given", explain.Style{}); err != nil {
		return err
	}
	q.SetContentType(media + "; charset=utf-8")
	q.SetBody(b.Bytes())
	return nil
}

// compare decides the next cycle under the newest policy and under another.
func (s *Server) compare(e *engine.Engine, in *engine.Input, force bool, settle int) (*explain.Comparison, error) {
	before, err := e.Clone()
	if err != nil {
		return nil, err
	}
	after := before.Clone()
	if err := in.Policy.Follows(before.Policy, force); err != nil {
		return nil, problem{Type: "bad-plan", Status: 422, Detail: err.Error()}
	}
	if err := after.SetPolicy(in.Policy, force); err != nil {
		return nil, problem{Type: "bad-plan", Status: 422, Detail: err.Error()}
	}
	ctx, cancel := s.within(whatifTimeMax)
	defer cancel()
	nowUS := time.Now().UnixMicro() // the cycle's is never before the last one's
	was, ok := ahead(ctx, before, nowUS, settle)
	if !ok {
		return nil, s.stoppedWhatif("the next cycle under the policy in force takes", whatifTimeMax)
	}
	is, ok := ahead(ctx, after, nowUS, settle)
	if !ok {
		return nil, s.stoppedWhatif("the next cycle under both policies takes", whatifTimeMax)
	}
	return explain.Compare(was, is), nil
}

// within is a context that is done after a time, or when the service ends.
func (s *Server) within(most time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// stoppedWhatif is the refusal of a question whose first cycle was given up.
func (s *Server) stoppedWhatif(what string, most time.Duration) error {
	select {
	case <-s.closing:
		return stopping()
	default:
	}
	return overLimit(fmt.Sprintf("%s longer than %v: ask for less, or with stint whatif and stint simulate --log on a "+
		"machine of your own", what, most))
}

// ahead is what comes next of a state; false: it was given up before a cycle was decided.
func ahead(ctx context.Context, state *cluster.State, nowUS int64, settle int) (a explain.Ahead, ok bool) {
	ok = engine.Ahead(ctx, state, nowUS, settle, func(c *decision.Cycle, _ bool) {
		a.See(c, state.Policy, settle > 0) // the end is the last cycle that was decided in time
	})
	return a, ok
}
