package oracle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Owned is a change of what a consumer owns of a dimension of a host; Action is assigned or trimmed.
type Owned struct {
	Plan, Consumer, Host, Action, Dimension string
	Amount                                  int64
}

// part is what a consumer has of a host by some pieces.
func (p *pass) part(pieces []piece, n plan.Node, h *host) []int64 {
	return p.sum(pieces, func(q piece) bool { return q.of == n && q.host == h })
}

// placed are the plan's hosts in host order with those among some that are gone that its groups list.
func (p *pass) placed(gone []*host) []*host {
	var list []*host
	for _, g := range p.m.Groups {
		for _, name := range p.p.Groups[g.Group].Hosts {
			for _, h := range slices.Concat(p.Cluster.hosts, gone) {
				if h.Name == name {
					list = append(list, h)
				}
			}
		}
		list = append(list, p.grouped[g.Group]...)
	}
	return list
}

// report lists what changed: by consumer in tree order, by host in host order, where a listed host that is gone keeps its
// place; those that left behind them, in the order of the table, and those that are not there any more in that in which they came; what
// went before what came.
func (p *pass) report(old *estate, r *Result) {
	var hosts []*host
	gone := slices.Clone(old.hosts)
	slices.SortStableFunc(gone, func(a, b *host) int { return cmp.Compare(slices.Index(p.names, a.Name), slices.Index(p.names, b.Name)) })
	for _, h := range slices.Concat(p.placed(gone), p.Cluster.hosts, gone) {
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	for n := range plan.Node(p.p.Len()) {
		for _, h := range hosts {
			change := plus(p.part(p.pieces, n, h), p.part(p.had, n, h), -1)
			for _, sign := range []int64{-1, 1} {
				for d, v := range change {
					if v*sign > 0 {
						r.Owned = append(r.Owned, Owned{p.m.Name, p.p.Path[n], h.Name, map[int64]string{-1: "trimmed", 1: "assigned"}[sign],
							p.p.Dimensions[d], v * sign})
					}
				}
			}
		}
	}
}

// possession is what a consumer owns in all, and what of it is reserved (MD-5).
func (g *round) possession(n plan.Node) (owns, reserved []int64) {
	e, zeros := g.estates[g.in], make([]int64, len(g.p.Dimensions))
	parts := map[int64][]int64{} // by number
	var numbers []int64
	owns = slices.Clone(zeros)
	for _, q := range e.pieces {
		if q.of != n {
			continue
		}
		plus(owns, q.v, 1)
		at := e.number[part{n, q.host}]
		if parts[at] == nil {
			parts[at], numbers = slices.Clone(zeros), append(numbers, at)
		}
		plus(parts[at], q.v, 1)
	}
	slices.Sort(numbers)
	rest, reserve, reserved := slices.Clone(zeros), g.w.Reserve[n], slices.Clone(zeros)
	named := func(d int) bool { return reserve.Amount == nil || reserve.Amount[d] != plan.Unlimited }
	for d := range rest {
		switch {
		case reserve.Percent != plan.Unlimited:
			rest[d] = fraction{uint64(reserve.Percent), 100_000}.of(owns[d])
		case reserve.Amount != nil && named(d):
			rest[d] = reserve.Amount[d]
		}
	}
	for i, at := range numbers {
		if reserve.Hosts != plan.Unlimited {
			if int64(i) < reserve.Hosts {
				plus(reserved, parts[at], 1)
			}
			continue
		}
		v := least(parts[at], rest)
		along(parts[at], v, named)
		for d := range rest {
			if named(d) {
				rest[d] -= v[d]
			}
		}
		plus(reserved, v, 1)
	}
	return owns, reserved
}
