package verify

import (
	"math/big"
	"slices"
)

// hybrids is what hybrid consumers own now, keep free, can use and deserve (SLOT-20 … SLOT-25).
func (s *slots) hybrids(p *policy) {
	mixed, configured, any := false, int64(0), false
	for _, c := range p.sorted(s.plan, s.w, "/") {
		if s.w.entry[c].kind == "hybrid" {
			any = true
			configured += s.w.entry[c].owns
		} else {
			mixed = true
		}
	}
	if !any {
		return
	}
	if !mixed && s.configured != none {
		configured = s.configured
	}
	for _, path := range slices.Backward(p.paths) {
		e := s.w.entry[path]
		if !s.member[path] || e.kind != "hybrid" {
			continue
		}
		if configured > 0 {
			var x big.Int
			x.Mul(big.NewInt(e.owns), big.NewInt(s.hybrid))
			s.scaled[path] = x.Quo(&x, big.NewInt(configured)).Int64()
		}
		below := s.keeps[path] // by now the sum of its children's, which are no one else's at its level either
		s.keeps[path] = min(e.reserves, s.scaled[path])
		if e.most != none {
			s.keeps[path] = min(s.keeps[path], e.most)
		}
		if s.keeps[path] = max(s.keeps[path], below); parentOf(path) != "/" {
			s.keeps[parentOf(path)] += s.keeps[path]
		}
		want := s.use[path] // of a branch, by now the sum of its children's
		if p.leaf(path) {
			want = s.demand[path]
		}
		s.use[path] = max(want, s.keeps[path])
		if e.most != none {
			s.use[path] = min(s.use[path], e.most)
		}
		s.use[parentOf(path)] += s.use[path]
	}
	s.quota["/"] = s.hybrid
	for _, path := range append([]string{"/"}, p.paths...) {
		if path == "/" || s.member[path] && s.w.entry[path].kind == "hybrid" && !p.leaf(path) {
			s.share(p, path, configured)
		}
	}
}

// share divides a consumer's quota among its hybrid children.
func (s *slots) share(p *policy, path string, configured int64) {
	var children []string
	for _, c := range p.sorted(s.plan, s.w, path) {
		if s.w.entry[c].kind == "hybrid" {
			children = append(children, c)
		}
	}
	n := len(children)
	owns, use, floor := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, c := range children {
		owns[i], use[i], floor[i] = s.w.entry[c].owns, s.use[c], s.keeps[c]
	}
	q := s.quota[path]
	var part []int64
	var left int64
	if s.even {
		most, sum := make([]int64, n), int64(0)
		weight := make([]*big.Rat, n)
		for i := range children {
			most[i], floor[i] = min(use[i], owns[i]), min(floor[i], owns[i])
			sum += most[i]
			weight[i] = new(big.Rat).SetInt64(owns[i])
		}
		if q >= sum {
			part, left = most, q-sum
		} else {
			part, left = between(q, weight, floor, most), 0
		}
	} else {
		weight, sum := make([]*big.Rat, n), new(big.Rat)
		for i := range children { // min(u, E)
			weight[i] = new(big.Rat)
			if configured > 0 {
				weight[i].Mul(new(big.Rat).SetInt64(owns[i]), big.NewRat(s.hybrid, configured))
			}
			if u := new(big.Rat).SetInt64(use[i]); u.Cmp(weight[i]) < 0 {
				weight[i] = u
			}
			sum.Add(sum, weight[i])
		}
		if new(big.Rat).SetInt64(q).Cmp(sum) < 0 {
			part, left = between(q, weight, floor, nil), 0
		} else {
			part, left = fill(q, owns, use)
		}
	}
	ones, room := make([]int64, n), make([]int64, n)
	for i := range children {
		ones[i], room[i] = 1, use[i]-part[i]
	}
	more, _ := fill(left, ones, room)
	for i, c := range children {
		s.quota[c] = part[i] + more[i]
	}
}

// between divides a total in proportion to weights, none below its floor or above its limit (nil: none); when the
// floors alone are more than the total, they are the limits. Floors of parts, then one each to those who had a
// fraction.
func between(total int64, weight []*big.Rat, floor, limit []int64) []int64 {
	sum := int64(0)
	for _, f := range floor {
		sum += f
	}
	if sum > total {
		floor, limit = make([]int64, len(floor)), floor
	}
	n := len(weight)
	bound := make([]int, n) // -1 at its floor, 1 at its limit
	for {
		left, weights := new(big.Rat).SetInt64(total), new(big.Rat)
		for i := range n {
			switch bound[i] {
			case -1:
				left.Sub(left, new(big.Rat).SetInt64(floor[i]))
			case 1:
				left.Sub(left, new(big.Rat).SetInt64(limit[i]))
			default:
				weights.Add(weights, weight[i])
			}
		}
		if left.Sign() < 0 {
			left.SetInt64(0)
		}
		part := func(i int) *big.Rat {
			if weights.Sign() == 0 {
				return new(big.Rat)
			}
			return new(big.Rat).Quo(new(big.Rat).Mul(left, weight[i]), weights)
		}
		low, high := new(big.Rat), new(big.Rat) // how much floors and limits bind
		side := make([]int, n)
		for i := range n {
			if bound[i] != 0 {
				continue
			}
			x := part(i)
			if f := new(big.Rat).SetInt64(floor[i]); x.Cmp(f) < 0 {
				side[i] = -1
				low.Add(low, f.Sub(f, x))
			} else if limit != nil {
				if l := new(big.Rat).SetInt64(limit[i]); x.Cmp(l) > 0 {
					side[i] = 1
					high.Add(high, x.Sub(x, l))
				}
			}
		}
		order, done := low.Cmp(high), true
		for i, s := range side {
			if s < 0 && order >= 0 || s > 0 && order <= 0 {
				bound[i], done = s, false
			}
		}
		if done {
			return rounded(total, bound, part, floor, limit)
		}
	}
}

// rounded cuts parts to whole numbers, and gives what that leaves one each, in order, to those who had a fraction.
func rounded(total int64, bound []int, part func(i int) *big.Rat, floor, limit []int64) []int64 {
	out, fraction := make([]int64, len(bound)), make([]bool, len(bound))
	for i, b := range bound {
		switch b {
		case -1:
			out[i] = floor[i]
		case 1:
			out[i] = limit[i]
		default:
			x := part(i)
			out[i] = new(big.Int).Quo(x.Num(), x.Denom()).Int64()
			fraction[i] = !x.IsInt()
		}
		total -= out[i]
	}
	for i := range out {
		if total > 0 && fraction[i] {
			out[i]++
			total--
		}
	}
	return out
}

// freeShown is the column free of hybrid consumers (SLOT-28): what of reserves nobody holds when somebody is short of
// its demand, else its part of the idle slots.
func (s *slots) freeShown(p *policy, held func(path string) int64) map[string]int64 {
	free := map[string]int64{}
	short := false
	total := int64(0)
	for _, path := range p.leaves(s.plan) {
		if s.w.entry[path].kind == "hybrid" {
			short = short || s.demand[path] > held(path)
			total += held(path)
		}
	}
	if short {
		for _, path := range slices.Backward(p.paths) {
			if s.member[path] && s.w.entry[path].kind == "hybrid" {
				free[path] = max(free[path], s.keeps[path]-held(path), 0)
				free[parentOf(path)] += free[path]
			}
		}
		return free
	}
	free["/"] = max(0, s.hybrid-total)
	for _, path := range append([]string{"/"}, p.paths...) {
		var children []string
		var owns, limit []int64
		for _, c := range p.sorted(s.plan, s.w, path) {
			if s.w.entry[c].kind == "hybrid" {
				children, owns, limit = append(children, c), append(owns, s.w.entry[c].owns), append(limit, 1<<62)
			}
		}
		part, _ := fill(free[path], owns, limit)
		for i, c := range children {
			free[c] = part[i]
		}
	}
	return free
}
