package cluster

import (
	"math"

	"github.com/stintd/stint/core/decision"
)

// settleLost computes what work each release of the cycle stops before its end, and adds it to the accounts of the
// consumers (docs/decisions.md, D-120). O(releases).
func (s *State) settleLost(nowUS int64) {
	for i := range s.Released {
		r := &s.Released[i]
		if r.LostMS = s.lostBy(r, nowUS); r.LostMS == 0 {
			continue
		}
		p, c := &s.Plans[s.Sub.Plan[r.Sub]], int(s.Sub.Consumer[r.Sub])
		for len(p.Lost) <= c {
			p.Lost = append(p.Lost, 0)
		}
		p.Lost[c] = saturatingAdd(p.Lost[c], r.LostMS)
	}
}

// lostBy is the work, in unit-milliseconds, that a release stops before its end: how long its units have run where they
// come back because they were reclaimed. What is done, not wanted any more, or gone with its host is not lost by a
// reclaim.
func (s *State) lostBy(r *Release, nowUS int64) int64 {
	if r.Number == 0 || r.Cause != decision.CauseGraceExpired && r.Cause != decision.CauseClient {
		return 0
	}
	return saturatingMul(r.Units, s.Times.ran(r.Granted, nowUS)/1000)
}

// ran is for how many microseconds units that a cycle granted have run; of a cycle whose time is not known any more, at
// least so long.
func (t *Times) ran(granted, nowUS int64) int64 {
	if len(t.us) == 0 || granted >= t.first+int64(len(t.us)) {
		return 0
	}
	return nowUS - max(t.Of(granted), t.us[0])
}

// LostBelow is, by plan.Node, the work in unit-milliseconds that each consumer of a plan lost by reclaims and those
// below it. nil: none did. O(consumers).
func (s *State) LostBelow(p *Plan) []int64 {
	if len(p.Lost) == 0 {
		return nil
	}
	sum := make([]int64, s.Policy.Len())
	for n := len(sum) - 1; n > 0; n-- { // those below come behind
		if !p.Terms.Member[n] {
			continue
		}
		if c := int(s.ConsumerOf[n]); c < len(p.Lost) {
			sum[n] = saturatingAdd(sum[n], p.Lost[c])
		}
		up := s.Policy.Parent[n]
		sum[up] = saturatingAdd(sum[up], sum[n])
	}
	return sum
}

// inheritLost moves the account of a renamed consumer's lost work to its new name.
func (p *Plan) inheritLost(from, to ConsumerID) {
	if int(from) >= len(p.Lost) || p.Lost[from] == 0 {
		return
	}
	for len(p.Lost) <= int(to) {
		p.Lost = append(p.Lost, 0)
	}
	p.Lost[to], p.Lost[from] = saturatingAdd(p.Lost[to], p.Lost[from]), 0
}

// saturatingAdd is a + b for amounts ≥ 0; it saturates at the largest int64.
func saturatingAdd(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }
