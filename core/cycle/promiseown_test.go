package cycle_test

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
)

// What must hold of ownership in MD plans, from the tables and what the generator meant.

// ownKey names what a consumer of a plan owns of a dimension of a host.
func ownKey(words ...string) string { return strings.Join(words, " ") }

// countOwned adds up the table of ownership and counts how it changed.
func (p *player) countOwned() {
	for _, o := range p.last.Owned {
		key, sign := ownKey(o.Plan, o.Consumer, o.Host, o.Dimension), int64(1)
		if o.Action == "trimmed" {
			sign = -1
		}
		p.owns[key] += sign * o.Amount
		p.changes["owned "+o.Action]++
		if o.Action == "trimmed" {
			continue
		}
		if whole := p.hosts[o.Host].Size[o.Dimension]; o.Amount < whole {
			p.changes["owned a part"]++
		}
		if strings.Count(o.Consumer, "/") > 1 {
			p.changes["owned by a child"]++
		}
		for _, from := range p.last.Owned {
			if from.Action == "trimmed" && from.Host == o.Host && from.Plan == o.Plan &&
				p.rankIn(o.Plan, o.Consumer) < p.rankIn(o.Plan, from.Consumer) {
				p.changes["owned stolen from a later rank"]++
			}
		}
	}
	for _, m := range p.plans {
		if m.cut > 0 && m.cut == p.cycles {
			p.changes["window switch"]++
		}
	}
}

// rankIn is a consumer's rank in a plan, outside of its second window.
func (p *player) rankIn(plan, path string) int {
	for _, e := range p.mdPlan(plan).members {
		if c := p.consumers[e.consumer]; c.path == path {
			if e.rank >= 0 {
				return e.rank
			}
			return c.rank
		}
	}
	return -1
}

// estates holds that nobody owns less than nothing of a host, and children no more than their parent, the first level
// no more than there is (MD-2).
func (p *player) estates(t *rapid.T) {
	for _, m := range p.plans {
		for h := range hostsMax {
			for _, d := range p.dims {
				p.nested(t, &m, hostName(h), d)
			}
		}
	}
}

func (p *player) nested(t *rapid.T, m *mdPlan, host, dim string) {
	sums := map[int]int64{}
	for _, e := range m.members {
		n := p.owns[ownKey(m.name, p.consumers[e.consumer].path, host, dim)]
		if n < 0 {
			t.Fatalf("%s owns %d %s of %s", p.consumers[e.consumer].path, n, dim, host)
		}
		sums[p.consumers[e.consumer].parent] += n
	}
	for up, sum := range sums {
		most := int64(0)
		if up >= 0 {
			most = p.owns[ownKey(m.name, p.consumers[up].path, host, dim)]
		} else if p.planOf(host) == m.name && p.hosts[host].State != "unavail" {
			most = p.capacity(m.name, p.hosts[host])[dim]
		}
		if sum > most {
			t.Fatalf("%s: children of %d own %d %s of %s, which has %d", m.name, up, sum, dim, host, most)
		}
	}
}

// room is what is free, by the tables, of a consumer's parcel of a host ("/": the public one), beside what other
// parcels of the host hold beyond what they have.
func (p *player) room(plan, host, owner string) map[string]int64 {
	room, missing := map[string]int64{}, map[string]int64{}
	for _, c := range append([]string{"/"}, p.paths()...) {
		free := p.parcel(plan, host, c)
		for i, n := range p.out.Holdings.Units {
			h := &p.out.Holdings
			if k := keyAt(h.Key, i); k.Plan == plan && h.Host.At(i) == host &&
				ownerOf(k, h.Origin.At(i), h.Lender.At(i), h.Pool.At(i)) == c {
				for d, u := range p.rules[k].Size {
					free[d] -= n * u
				}
			}
		}
		for d, n := range free {
			missing[d] += max(0, -n)
		}
		if c == owner {
			room = free
		}
	}
	// Which of the other parcels bear what is missing is left to the comparison with the oracle.
	for d := range room {
		room[d] -= missing[d]
	}
	return room
}

// ownerOf is who owns the parcel on which a unit lies, by what it counts as.
func ownerOf(k oracle.Key, origin, lender, pool string) string {
	switch {
	case origin == "owned":
		return k.Consumer
	case lender != "":
		return lender
	}
	return pool
}

// paths are all consumers.
func (p *player) paths() (list []string) {
	for _, c := range p.consumers {
		list = append(list, c.path)
	}
	return list
}

// parcel is what a consumer owns of a host and none of its children does; "/" has what nobody owns.
func (p *player) parcel(plan, host, owner string) map[string]int64 {
	v := map[string]int64{}
	if owner == "/" && p.planOf(host) == plan && p.hosts[host].State != "unavail" {
		v = p.capacity(plan, p.hosts[host])
	}
	for _, d := range p.dims {
		if owner != "/" {
			v[d] = p.owns[ownKey(plan, owner, host, d)]
		}
		for _, c := range p.paths() {
			if c[:max(1, strings.LastIndex(c, "/"))] == owner {
				v[d] -= p.owns[ownKey(plan, c, host, d)]
			}
		}
	}
	return v
}
