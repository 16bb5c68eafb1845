package verify

import (
	"fmt"
	"math/big"
)

// past is what a consumer used of a pool lately, of a plan with a half-life (D-164), in 2⁻⁴⁸ of the pool.
type past struct {
	used   int64 // as of the cycle
	held   int64 // usage as the last cycle ended
	told   int64 // used, as the tables have it
	factor int64 // hundredths of its ratio that count (D-165)
	known  bool  // all that is: else what the table says counts
}

// history is what was used of pools, by plan, consumer and pool.
type history map[[3]string]*past

// halvings are ⌊2⁶⁴ × 2^(−2⁻ⁱ)⌋ for i from 1 to 48.
var halvings = func() (list []*big.Int) {
	root := new(big.Int).Lsh(big.NewInt(1), 383)
	for range 48 {
		root = new(big.Int).Sqrt(new(big.Int).Lsh(root, 384))
		list = append(list, new(big.Int).Rsh(root, 320))
	}
	return list
}()

// leftOf is what a time leaves of 1 that halves in each half-life, in 2⁻⁶².
func leftOf(elapsed, half int64) *big.Int {
	part := new(big.Int).Lsh(big.NewInt(elapsed%half), 48)
	part.Div(part, big.NewInt(half))
	left := new(big.Int).Lsh(big.NewInt(1), 62)
	for i, root := range halvings {
		if part.Bit(47-i) == 1 {
			left.Rsh(left.Mul(left, root), 64)
		}
	}
	return left.Rsh(left, uint(min(elapsed/half, 64)))
}

// decay lets what was used of pools decay since the last cycle, and adds what was held. Where the log does not tell of
// all cycles, it is not known.
func (v *verifier) decay() {
	was, now := v.past, history{}
	for _, p := range v.m.policy.plans {
		if p.halfLife == 0 {
			continue
		}
		left := leftOf(0, p.halfLife)
		if v.lastCycle > 0 {
			left = leftOf(v.now-v.last, p.halfLife)
		}
		gone := new(big.Int).Sub(leftOf(0, p.halfLife), left)
		for _, path := range v.m.policy.paths {
			for pool := parentOf(path); pool != ""; pool = parentOf(pool) {
				id := [3]string{p.name, path, pool}
				h := was[id]
				switch {
				case h == nil:
					h = &past{factor: 100, known: v.lastCycle == 0 && v.cycle == 1 ||
						v.policyCycle == v.cycle && !v.lost}
				case v.lost:
					h.known = false
				}
				sum := new(big.Int).Mul(big.NewInt(h.used), left)
				sum.Add(sum, new(big.Int).Mul(big.NewInt(h.held), gone))
				h.used, now[id] = sum.Rsh(sum, 62).Int64(), h
			}
		}
	}
	v.past = now
}

// unknown forgets what was used: what the log says of it later is believed.
func (l history) unknown() {
	for _, h := range l {
		h.known = false
	}
}

// keep goes on under another policy: consumers that it renames take along what they used.
func (l history) keep(now *policy) history {
	taken := map[string]bool{}
	for _, name := range now.renamed {
		taken[name] = true
	}
	next := history{}
	for id, h := range l {
		whole := true
		for i, path := range id[1:] {
			if name, ok := now.renamedTo(path); ok {
				id[1+i] = name
			} else if taken[path] {
				whole = false
			}
		}
		if whole {
			next[id] = h
		}
	}
	return next
}

// lower finds by what ratios count, in plans with a half-life, and what the tables tell of it.
func (v *verifier) lower() {
	tally := map[string]map[string]bool{}
	for _, p := range v.m.policy.plans {
		if p.halfLife > 0 {
			tally[p.name] = map[string]bool{}
		}
	}
	for k, s := range v.m.subs {
		for path := k.consumer; tally[k.plan] != nil && !s.orphan && s.units > 0 && path != ""; path = parentOf(path) {
			tally[k.plan][path] = true
		}
	}
	for _, p := range v.m.policy.plans {
		if p.halfLife == 0 {
			continue
		}
		known, other := true, false
		for id, h := range v.past {
			known = known && (h.known || id[0] != p.name)
		}
		if !known {
			v.believe(p)
			continue
		}
		w := p.at(v.now, v.m.policy.zone)
		for _, pool := range append([]string{"/"}, v.m.policy.paths...) {
			if !v.m.policy.leaf(pool) {
				other = v.lowerIn(p, w, pool, tally[p.name]) || other
			}
		}
		moved := other
		for id, h := range v.past {
			moved = moved || id[0] == p.name && h.used/(one/100) != h.told/(one/100)
		}
		for id, h := range v.past {
			if moved && id[0] == p.name {
				h.told = h.used
			}
		}
	}
}

// lowerIn finds the factors in one pool, parents before their children, and tells whether any is another than before.
func (v *verifier) lowerIn(p *plan, w *window, pool string, wants map[string]bool) (other bool) {
	part := map[string]int64{pool: one}
	for _, up := range append([]string{"/"}, v.m.policy.paths...) {
		if _, is := part[up]; !is || !under(up, pool) {
			continue
		}
		by := map[int64][]string{}
		for _, c := range v.m.policy.children[up] {
			if part[c] = 0; p.member[c] && w.entry[c].ratio > 0 && wants[c] {
				by[w.entry[c].priority] = append(by[w.entry[c].priority], c)
			} else {
				other = v.setFactor(p, c, pool, 100) || other
			}
		}
		for _, peers := range by {
			ratios, used := int64(0), new(big.Int)
			for _, c := range peers {
				ratios += w.entry[c].ratio
				used.Add(used, big.NewInt(v.past[[3]string{p.name, c, pool}].used))
			}
			for _, c := range peers {
				of := func(n *big.Int) *big.Int {
					n = new(big.Int).Mul(n, big.NewInt(w.entry[c].ratio))
					return n.Div(n, big.NewInt(ratios))
				}
				part[c] = of(big.NewInt(part[up])).Int64()
				f := factorOf(big.NewInt(v.past[[3]string{p.name, c, pool}].used), of(used), big.NewInt(part[c]),
					p.weight)
				other = v.setFactor(p, c, pool, f) || other
			}
		}
	}
	return other
}

func (v *verifier) setFactor(p *plan, path, pool string, factor int64) (other bool) {
	h := v.past[[3]string{p.name, path, pool}]
	other, h.factor = h.factor != factor, factor
	return other
}

// factorOf is by what a ratio counts in hundredths, to the nearest, of who used so much where so much were its fair
// part of what it and its peers used, and its part of the pool is that.
func factorOf(used, fair, part *big.Int, weight int64) int64 {
	over := new(big.Int).Sub(used, fair)
	if over.Cmp(big.NewInt(1<<16)) <= 0 {
		return 100
	}
	base := part
	if part.Cmp(fair) < 0 {
		base = fair
	}
	over.Div(over.Mul(over, big.NewInt(weight)), big.NewInt(1000))
	sum := over.Add(over, base)
	n := new(big.Int).Mul(base, big.NewInt(200))
	n.Div(n.Add(n, sum), new(big.Int).Lsh(sum, 1))
	return max(10, n.Int64())
}

// believe takes over what the table shares says of a plan of whose past not all is known.
func (v *verifier) believe(p *plan) {
	if v.fresh("shares") {
		v.report.cannot("what was used of pools in the plan %s before the log's first cycle: its ratios are taken as "+
			"they are told", p.name)
	}
	t := v.table["shares"]
	if t.number["effective_ratio"].real == nil {
		return
	}
	for row := range t.n {
		h := v.past[[3]string{t.words["plan"].text(row), t.words["consumer"].text(row), t.words["pool"].text(row)}]
		ratio, effective := t.number["ratio"].at(row), t.number["effective_ratio"]
		if h != nil && t.words["plan"].text(row) == p.name && !effective.missing(row) && ratio > 0 {
			h.factor = int64(effective.float(row)*100/float64(ratio) + 0.5)
			h.told = int64(t.number["decayed_usage"].float(row) * float64(one))
		}
	}
}

// ratioIn is by what a consumer's ratio counts in a pool.
func (v *verifier) ratioIn(t *plan, w *window, pool, path string) int64 {
	ratio := w.entry[path].ratio
	if h := v.past[[3]string{t.name, path, pool}]; h != nil {
		ratio *= h.factor
	}
	return ratio
}

// historyRow checks what a row of shares tells of what was used lately.
func (v *verifier) historyRow(t *rows, row int, p *plan, path, pool string) {
	used, effective := t.number["decayed_usage"], t.number["effective_ratio"]
	if used.real == nil {
		return // a log of before
	}
	h := v.past[[3]string{p.name, path, pool}]
	say := func(what string) Fault { return of("D-165", "shares", p.name, path, what+" in the pool "+pool) }
	if !v.is(say("its plan has a half-life, or the row tells of one, and not both"),
		used.missing(row) == (h == nil) && effective.missing(row) == (h == nil)) || h == nil {
		return
	}
	f := say("effective_ratio")
	want := float64(t.number["ratio"].at(row)*h.factor) / 100
	f.Expected, f.Got = fmt.Sprint(want), fmt.Sprint(effective.float(row))
	v.is(f, want == effective.float(row))
	if h.known {
		v.real(of("D-164", "shares", p.name, path, "decayed_usage in the pool "+pool), h.told, used.float(row))
	}
}

// holdPast notes what is held of pools as the cycle ends.
func (v *verifier) holdPast() {
	for _, p := range v.m.policy.plans {
		if p.halfLife == 0 {
			continue
		}
		all := v.shareOf[p.name]
		for id, h := range v.past {
			switch {
			case id[0] != p.name:
			case v.hazy[p.name]:
				h.known = false
			case all != nil:
				if h.held = 0; all[id[2]] != nil && all[id[2]][id[1]] != nil {
					h.held = all[id[2]][id[1]].usage
				}
			}
		}
	}
}

// halfLifeOf reads share: {half_life, weight} of an MD plan.
func (t *plan) halfLifeOf(o object) {
	share := asObject(o["share"])
	t.halfLife, t.weight = share.duration("half_life", 0), 1000
	if w, ok := share["weight"]; ok {
		if n, ok := new(big.Rat).SetString(fmt.Sprint(w)); ok {
			t.weight = new(big.Int).Div(new(big.Int).Mul(n.Num(), big.NewInt(1000)), n.Denom()).Int64()
		}
	}
}
