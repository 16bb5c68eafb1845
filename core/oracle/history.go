package oracle

import (
	"math/big"

	"github.com/stintd/stint/core/plan"
)

// Usage that remembers (D-164, D-165), by docs/memory.md.

// past is a consumer in a pool above it, of a plan, by name.
type past struct{ plan, path, pool string }

// used is what a consumer used of a pool lately, in 2⁻⁴⁸ of it.
type used struct {
	decayed, held int64 // as of the last cycle's time; as the last cycle ended
	told          int64 // decayed as the tables have it
	factor        int64 // hundredths of its ratio that count
}

// roots are ⌊2⁶⁴ × 2^(−2⁻ⁱ)⌋ for i from 1 to 48.
var roots = func() (list []*big.Int) {
	root := new(big.Int).Lsh(big.NewInt(1), 255)
	for range 48 {
		root = new(big.Int).Sqrt(new(big.Int).Lsh(root, 256))
		list = append(list, new(big.Int).Rsh(root, 192))
	}
	return list
}()

// left is 2^(−elapsed ÷ half) in 2⁻⁶².
func left(elapsed, half int64) *big.Int {
	part := new(big.Int).Lsh(big.NewInt(elapsed%half), 48)
	part.Div(part, big.NewInt(half))
	n := new(big.Int).Lsh(big.NewInt(1), 62)
	for i, root := range roots {
		if part.Bit(47-i) == 1 {
			n.Rsh(n.Mul(n, root), 64)
		}
	}
	return n.Rsh(n, uint(elapsed/half))
}

// eachPast calls f for each consumer of a plan with a half-life and each pool above it.
func (c *Cluster) eachPast(in int, f func(n, pool plan.Node, u *used)) {
	for n := range plan.Node(c.p.Len()) {
		for pool := c.p.Parent[n]; pool != plan.None; pool = c.p.Parent[pool] {
			key := past{c.terms(in).name, c.p.Path[n], c.p.Path[pool]}
			if c.pasts[key] == nil {
				c.pasts[key] = &used{factor: 100}
			}
			f(n, pool, c.pasts[key])
		}
	}
}

// decay brings what was used up to now, and finds what it lowers ratios by.
func (c *Cluster) decay(lastUS int64) {
	for in := range c.p.MDPlans {
		half := c.p.MDPlans[in].HalfLifeUS
		if half == 0 {
			continue
		}
		keep := left(c.nowUS-lastUS, half)
		lose := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 62), keep)
		c.eachPast(in, func(_, _ plan.Node, u *used) {
			old, more := new(big.Int).Mul(big.NewInt(u.decayed), keep), new(big.Int).Mul(big.NewInt(u.held), lose)
			u.decayed = old.Rsh(old.Add(old, more), 62).Int64()
		})
		g := &round{frame: newFrame(c, in), m: &c.p.MDPlans[in], w: c.mdWindow(in)}
		other, moved := false, false
		c.eachPast(in, func(n, pool plan.Node, u *used) {
			if was := u.factor; g.member[n] {
				u.factor = g.pool(pool).factor(n)
				other = other || u.factor != was
			}
			const hundredth = one / 100
			moved = moved || u.told/hundredth != u.decayed/hundredth
		})
		if other {
			c.notes["ratios count otherwise"]++
			for _, a := range c.allocs {
				for _, s := range a.subs {
					if a.plan == in {
						s.turns = 0
					}
				}
			}
		}
		if other || moved {
			c.eachPast(in, func(_, _ plan.Node, u *used) { u.told = u.decayed })
		}
	}
}

// holdPast notes what consumers hold of pools as the cycle ends.
func (g *round) holdPast() {
	if g.m.HalfLifeUS > 0 {
		g.eachPast(g.in, func(n, pool plan.Node, u *used) {
			if u.held = 0; g.member[n] {
				u.held = int64(g.pool(pool).usage(n))
			}
		})
	}
}

// decayedOf is what a consumer used of the pool lately.
func (q pool) decayedOf(n plan.Node) *used {
	u := q.pasts[past{q.name, q.p.Path[n], q.p.Path[q.at]}]
	if u == nil {
		return &used{factor: 100}
	}
	return u
}

// peers are those among whom a consumer's ratio divides: siblings of its priority that have a ratio and want something.
func (q pool) peers(n plan.Node) (list []plan.Node) {
	for _, k := range q.children(q.p.Parent[n]) {
		wants := false
		for _, s := range q.below(k) {
			wants = wants || s.wanted > 0
		}
		if wants && q.ratio[k] > 0 && q.w.Priority[k] == q.w.Priority[n] {
			list = append(list, k)
		}
	}
	return list
}

// portion is a part of an amount by a consumer's ratio among its peers, 0 where it is none of them.
func (q pool) portion(amount *big.Int, n plan.Node) *big.Int {
	whole, is := int64(0), false
	for _, k := range q.peers(n) {
		whole, is = whole+q.ratio[k], is || k == n
	}
	if !is {
		return new(big.Int)
	}
	part := new(big.Int).Mul(amount, big.NewInt(q.ratio[n]))
	return part.Div(part, big.NewInt(whole))
}

// byRatios is a consumer's part of the pool by ratios alone.
func (q pool) byRatios(n plan.Node) *big.Int {
	if n == q.at {
		return big.NewInt(one)
	}
	return q.portion(q.byRatios(q.p.Parent[n]), n)
}

// factor is how many hundredths of a consumer's ratio count in the pool.
func (q pool) factor(n plan.Node) int64 {
	together, is := new(big.Int), false
	for _, k := range q.peers(n) {
		together.Add(together, big.NewInt(q.decayedOf(k).decayed))
		is = is || k == n
	}
	fair, base := q.portion(together, n), q.byRatios(n)
	over := new(big.Int).Sub(big.NewInt(q.decayedOf(n).decayed), fair)
	if !is || over.Cmp(big.NewInt(slack)) <= 0 {
		return 100
	}
	if base.Cmp(fair) < 0 {
		base = fair
	}
	over.Div(over.Mul(over, big.NewInt(q.m.HistoryMilli)), big.NewInt(1000))
	sum := over.Add(over, base)
	top := new(big.Int).Mul(base, big.NewInt(200))
	top.Add(top, sum)
	return max(10, top.Div(top, sum.Mul(sum, big.NewInt(2))).Int64())
}

// counting is the ratio of a consumer as it counts in the pool.
func (q pool) counting(n plan.Node) int64 {
	if q.m.HalfLifeUS == 0 {
		return q.ratio[n]
	}
	key := [2]plan.Node{q.at, n}
	if _, ok := q.factors[key]; !ok {
		q.factors[key] = q.factor(n)
	}
	return q.ratio[n] * q.factors[key]
}

// renamePasts gives what was used to those whom a policy renames consumers to, and forgets that of plans without a
// half-life.
func (c *Cluster) renamePasts(p *plan.Policy, heir map[string]string) {
	taken := map[string]bool{}
	for _, to := range heir {
		taken[to] = true
	}
	to := func(path string) string {
		switch name, ok := heir[path]; {
		case ok:
			return name
		case taken[path]:
			return ""
		}
		return path
	}
	was := c.pasts
	c.pasts = map[past]*used{}
	for key, u := range was {
		at := planNamed(p, key.plan, true)
		key.path, key.pool = to(key.path), to(key.pool)
		if n, ok := p.Find(key.path); ok && at >= 0 && p.MDPlans[at].HalfLifeUS > 0 {
			if pool, ok := p.Find(key.pool); ok && pool < n && n < p.End[pool] {
				c.pasts[key] = u
			}
		}
	}
}
