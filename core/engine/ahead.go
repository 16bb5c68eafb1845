package engine

import (
	"context"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
)

// aheadMaxUS is where looking ahead ends: the last instant whose year RFC 3339 can write.
const aheadMaxUS = 253_402_300_799_999_999

// Ahead decides what comes next of a state that is the caller's own: the next cycle at nowUS, its digest set,
// and then cycles an interval of the policy apart, with no new input, until one changes nothing, there were
// so many more, or ctx is done. Each is shown to a function, with whether it is the last; what it holds is
// borrowed. When ctx is done the cycle under way is given up, and none was the last. It reports whether the first was
// decided.
func Ahead(
	ctx context.Context, s *cluster.State, nowUS int64, more int, seen func(c *decision.Cycle, last bool),
) (some bool) {
	s.Stop = func() bool {
		select {
		case <-ctx.Done():
			return true
		default:
			return false
		}
	}
	var runner cycle.Runner
	var out decision.Cycle
	for n := 0; ; n++ {
		if !runner.Try(s, nowUS, &out) {
			return n > 0
		}
		if n == 0 {
			out.Summary.Digest = decision.Digest(out.Tables())
		}
		nowUS = s.NowUS + s.Policy.IntervalUS
		last := n == more || out.Summary.Stable() || ctx.Err() != nil || nowUS > aheadMaxUS
		if seen(&out, last); last {
			return true
		}
	}
}

// Clone gives a copy of the state as it is now, between two cycles. It waits in the queue of inputs, and keeps the
// engine from its work for as long as the copying takes. Errors: busy, stopping, no policy yet.
func (e *Engine) Clone() (copied *cluster.State, err error) {
	err = e.Ask(func(s *cluster.State) error {
		copied = s.Clone()
		return nil
	})
	return copied, err
}
