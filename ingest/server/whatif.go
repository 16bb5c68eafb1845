package server

import (
	"bytes"
	"context"
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
)

// postWhatif tells what the next cycle would be under another policy, were it to run now, and what would come of it.
// Cycles go on meanwhile: it is decided on copies of the state, one what-if at a time.
func (s *Server) postWhatif(q *request) error {
	if err := q.known("force", "settle", "format"); err != nil {
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
	in := &engine.Input{Kind: engine.InputPlan}
	done, err := q.readPlan(in, true)
	if err != nil {
		return err
	}
	defer done()
	select { // a body that comes slowly keeps nobody waiting: it is here by now
	case s.whatif <- struct{}{}:
		defer func() { <-s.whatif }()
	default:
		return problem{Type: "busy", Status: 429, RetryAfter: 5,
			Detail: "another what-if is under way; there is one at a time"}
	}
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
	if format == "json" {
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
	ctx, cancel := context.WithTimeout(context.Background(), whatifTimeMax)
	defer cancel()
	go func() { // a service that ends looks no further either
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	nowUS := time.Now().UnixMicro() // the cycle's is never before the last one's
	was, is := ahead(ctx, before, nowUS, settle), ahead(ctx, after, nowUS, settle)
	return explain.Compare(was, is), nil
}

// ahead is what comes next of a state.
func ahead(ctx context.Context, state *cluster.State, nowUS int64, settle int) (a explain.Ahead) {
	engine.Ahead(ctx, state, nowUS, settle, func(c *decision.Cycle, last bool) {
		a.See(c, state.Policy, last && settle > 0)
	})
	return a
}
