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

// report lists what changed: by consumer in tree order, by host in host order, where a listed host that is gone keeps
// its place; those that left behind them, in the order of the table, and those that are not there any more in that in
// which they came; what went before what came.
func (p *pass) report(old *estate, r *Result) {
	var hosts []*host
	gone := slices.Clone(old.hosts)
	slices.SortStableFunc(gone, func(a, b *host) int {
		return cmp.Compare(slices.Index(p.names, a.Name), slices.Index(p.names, b.Name))
	})
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
						r.Owned = append(r.Owned,
							Owned{p.m.Name, p.p.Path[n], h.Name, map[int64]string{-1: "trimmed", 1: "assigned"}[sign],
								p.p.Dimensions[d], v * sign})
					}
				}
			}
		}
	}
}

// parts are a consumer's parts of hosts, in order of their numbers.
func (g *round) parts(n plan.Node) (hosts []*host, parts [][]int64) {
	e := g.estates[g.in]
	for _, q := range e.pieces {
		if q.of == n && !slices.Contains(hosts, q.host) {
			hosts = append(hosts, q.host)
		}
	}
	slices.SortFunc(hosts, func(a, b *host) int { return cmp.Compare(e.number[part{n, a}], e.number[part{n, b}]) })
	for _, h := range hosts {
		v := make([]int64, len(g.p.Dimensions))
		for _, q := range e.pieces {
			if q.of == n && q.host == h {
				plus(v, q.v, 1)
			}
		}
		parts = append(parts, v)
	}
	return hosts, parts
}

// possession is what a consumer owns in all.
func (g *round) possession(n plan.Node) []int64 {
	v := make([]int64, len(g.p.Dimensions))
	_, parts := g.parts(n)
	for _, part := range parts {
		plus(v, part, 1)
	}
	return v
}

// reserved is what of its parts a consumer reserves (MD-5), by part.
func (g *round) reserved(n plan.Node) (hosts []*host, reserved [][]int64) {
	hosts, parts := g.parts(n)
	rest, reserve, owns := make([]int64, len(g.p.Dimensions)), g.w.Reserve[n], g.possession(n)
	named := func(d int) bool { return reserve.Amount == nil || reserve.Amount[d] != plan.Unlimited }
	for d := range rest {
		switch {
		case reserve.Percent != plan.Unlimited:
			rest[d] = fraction{uint64(reserve.Percent), 100_000}.of(owns[d])
		case reserve.Amount != nil && named(d):
			rest[d] = reserve.Amount[d]
		}
	}
	for i, part := range parts {
		v := least(part, rest)
		switch {
		case reserve.Hosts != plan.Unlimited && int64(i) < reserve.Hosts:
			v = slices.Clone(part)
		case reserve.Hosts != plan.Unlimited:
			clear(v)
		default:
			along(part, v, named)
			for d := range rest {
				if named(d) {
					rest[d] -= v[d]
				}
			}
		}
		reserved = append(reserved, v)
	}
	return hosts, reserved
}

// aside is a consumer's reserve on a parcel, as a key.
type aside struct {
	of, owner plan.Node
	host      *host
}

// reserves lays what consumers reserve of their parts on the parcels there: on their own first, then on those below.
func (g *round) reserves() map[aside][]int64 {
	m := map[aside][]int64{}
	for n := range plan.Node(g.p.Len()) {
		hosts, reserved := g.reserved(n)
		for i, h := range hosts {
			rest := reserved[i]
			for _, t := range g.parcels(g.in, h) {
				if v := least(t.size, rest); g.under(n, t.owner) && !zero(v) {
					m[aside{n, t.owner, h}] = v
					plus(rest, v, -1)
				}
			}
		}
	}
	return m
}
