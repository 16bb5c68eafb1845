// Package oracle plays the rules of SPEC chapters 2 and 4 a second time: slowly,
// one unit a step, from the text of the rules alone. It shares nothing with the
// engine but the policy, so that the two can be held against each other. A cycle
// comes a minute after the last one.
//
// It knows multidimensional plans whose public pool is all there is: MD-7 without
// ownership, MD-11 to MD-16, MD-18's limits, MD-20, REQ-1, CYC-3, CYC-5, CYC-10
// and decisions D-1 to D-12. Input is taken to be valid: what the engine would
// refuse makes it panic. Not for production use; a cycle costs about units² × hosts.
package oracle

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Host is a row of a hosts table. In changes an empty State and missing keys of Size and Attr
// keep their values; a new host starts as ok, with 0 of everything.
type Host struct {
	Name, State string
	Size        map[string]int64
	Attr        map[string]any // string, float64 or bool
}

// Demand is a row of a source's demand snapshot.
type Demand struct {
	Plan, Consumer, Allocation, Sub string // Plan "": the consumer's only plan
	Units                           int64
	Size                            map[string]int64
	Requirement                     string
	MaxPerHost                      int64 // plan.Unlimited or at least 1
}

// Holding is a row of a running or releases table.
type Holding struct {
	Consumer, Allocation, Sub, Host string
	Units                           int64
	Done                            bool
}

// Key names a sub-allocation in results.
type Key struct{ Plan, Consumer, Allocation, Sub string }

// Units is a number of units of one sub-allocation on one host: a grant, a release (with its cause) or what is held.
type Units struct {
	Key
	Host, Cause string
	Units       int64
}

// Consumer is a consumer's figures in a plan, in units; Amount is the vector that it holds, Static its
// static share quota (MD-15) by dimension.
type Consumer struct {
	Plan, Path         string
	Demand, Held       int64
	Short              int64
	Amount, StaticPart []int64
}

// Shortfall is why units of a sub-allocation are missing.
type Shortfall struct {
	Key
	Units                      int64
	Reason, Dimension, Blocker string
}

// Result is what one cycle decided, and what is true after it.
type Result struct {
	Grants, Releases, Held []Units
	Reclaims               []Units // Cause: issued or cancelled
	Leaving                int     // units under reclaim after the cycle
	Consumers              []Consumer
	Shares                 []Share
	Shortfalls             []Shortfall
}

// host is a host with its units in the order in which they came.
type host struct {
	Host
	size  []int64
	units []unit
}

// unit is one held unit, the cycle that granted it and, when it is under reclaim, its number and when it is due.
type unit struct {
	sub         *sub
	cycle       int64
	number, due int64
}

func (u unit) leaves() bool { return u.number > 0 }

// alloc is an allocation with its subs in order of arrival; allocations stand in order of arrival too (D-12).
type alloc struct {
	source, name string
	arrival      int64
	plan         int
	leaf         plan.Node
	subs         []*sub
}

// sub is a sub-allocation. One of another unit size is another one (SPEC chapter 7).
type sub struct {
	alloc   *alloc
	name    string
	arrival int64
	size    []int64
	req     string
	perHost int64
	named   bool // by the newest snapshot of its source
	wanted  int64
	held    int64
}

// event is what happened to units of a sub-allocation on a host; the cause is that of a release.
type event struct {
	sub   *sub
	host  *host
	cause string
}

// Cluster is the state between cycles.
type Cluster struct {
	p         *plan.Policy
	cycle     int64     // the last one finished
	hosts     []*host   // in the order of the hosts table
	gone      []*host   // left the table since the last cycle
	order     [][]*host // by plan: its hosts in host order
	allocs    []*alloc
	arrivals  int64
	nowUS     int64
	numbers   int64           // units put under reclaim so far
	released  map[event]int64 // units, since the last cycle ended
	granted   map[event]int64
	reclaimed map[event]int64
}

// New is an empty cluster under a policy.
func New(p *plan.Policy) *Cluster {
	return &Cluster{p: p, released: map[event]int64{}, granted: map[event]int64{}, reclaimed: map[event]int64{}}
}

// SetPolicy replaces the policy by one with the same consumers, plans and groups.
func (c *Cluster) SetPolicy(p *plan.Policy) { c.p = p }

// SetHosts takes a full host table, or changes by host.
func (c *Cluster) SetHosts(rows []Host, full bool) {
	old := c.hosts
	if full {
		c.hosts = nil
	}
	for _, row := range rows {
		i := slices.IndexFunc(old, func(h *host) bool { return h.Name == row.Name })
		switch {
		case i < 0:
			c.hosts = append(c.hosts, &host{Host: Host{Name: row.Name, State: "ok", Attr: map[string]any{}},
				size: make([]int64, len(c.p.Dimensions))})
			c.hosts[len(c.hosts)-1].change(c.p, row)
		case full:
			old[i].State, old[i].Attr = "ok", map[string]any{}
			clear(old[i].size)
			c.hosts = append(c.hosts, old[i])
			fallthrough
		default:
			old[i].change(c.p, row)
		}
	}
	for _, h := range old {
		if !slices.Contains(c.hosts, h) {
			c.gone = append(c.gone, h)
		}
	}
	c.order = nil
	for in := range c.p.MDPlans {
		c.order = append(c.order, c.planHosts(in))
	}
}

// change takes over what a row of a hosts table names.
func (h *host) change(p *plan.Policy, row Host) {
	if row.State != "" {
		h.State = row.State
	}
	for name, v := range row.Size {
		h.size[dimension(p, name)] = v
	}
	for name, v := range row.Attr {
		h.Attr[name] = v
	}
}

// SetDemand replaces what a source said before.
func (c *Cluster) SetDemand(source string, rows []Demand) {
	for _, a := range c.allocs {
		for _, s := range a.subs {
			if a.source == source {
				s.named, s.wanted = false, 0
			}
		}
	}
	for _, row := range rows {
		size := make([]int64, len(c.p.Dimensions))
		for name, v := range row.Size {
			size[dimension(c.p, name)] = v
		}
		s := c.sub(c.alloc(source, row), row.Sub, size)
		s.named, s.wanted, s.req, s.perHost = true, row.Units, row.Requirement, row.MaxPerHost
	}
}

// alloc finds the allocation of a demand row, or adds it.
func (c *Cluster) alloc(source string, row Demand) *alloc {
	leaf, ok := c.p.Find(row.Consumer)
	if !ok || !c.p.Leaf(leaf) {
		panic(fmt.Sprintf("oracle: %q is no leaf", row.Consumer))
	}
	in := slices.IndexFunc(c.p.MDPlans, func(m plan.MDPlan) bool {
		return m.Member[leaf] && (row.Plan == "" || row.Plan == m.Name)
	})
	if in < 0 {
		panic(fmt.Sprintf("oracle: %q takes no part in plan %q", row.Consumer, row.Plan))
	}
	for _, a := range c.allocs {
		if a.plan == in && a.leaf == leaf && a.name == row.Allocation {
			return a
		}
	}
	c.arrivals++
	a := &alloc{source: source, name: row.Allocation, arrival: c.arrivals, plan: in, leaf: leaf}
	c.allocs = append(c.allocs, a)
	return a
}

// sub finds a sub-allocation by name and unit size, or adds it.
func (c *Cluster) sub(a *alloc, name string, size []int64) *sub {
	for _, s := range a.subs {
		if s.name == name && slices.Equal(s.size, size) {
			return s
		}
	}
	c.arrivals++
	s := &sub{alloc: a, name: name, arrival: c.arrivals, size: size}
	a.subs = append(a.subs, s)
	return s
}

// Running takes units that are held already, as if granted in the last one.
func (c *Cluster) Running(rows []Holding) {
	for _, row := range rows {
		h := c.host(row.Host)
		for _, a := range c.allocs {
			for _, s := range a.subs {
				if s.named && c.is(s, row) && c.planOf(h) == a.plan {
					for range row.Units {
						h.put(s, c.cycle)
					}
				}
			}
		}
	}
}

// Release takes units back that clients gave up, the newest first (CYC-5). Units beyond what is held are ignored.
func (c *Cluster) Release(rows []Holding) {
	for _, row := range rows {
		h, cause := c.host(row.Host), "client"
		if row.Done {
			cause = "done"
		}
		for range row.Units {
			i := c.first(h, func(u unit) bool { return c.is(u.sub, row) })
			if i < 0 {
				break
			}
			if s := h.units[i].sub; row.Done && s.wanted > 0 {
				s.wanted--
			}
			c.take(h, i, cause)
		}
	}
}

// is tells whether a holding row means a sub-allocation.
func (c *Cluster) is(s *sub, row Holding) bool {
	return c.p.Path[s.alloc.leaf] == row.Consumer && s.alloc.name == row.Allocation && s.name == row.Sub
}

func (c *Cluster) host(name string) *host {
	for _, h := range c.hosts {
		if h.Name == name {
			return h
		}
	}
	panic(fmt.Sprintf("oracle: no host %q", name))
}

// put adds a unit to a host.
func (h *host) put(s *sub, cycle int64) {
	h.units = append(h.units, unit{sub: s, cycle: cycle})
	s.held++
}

// take gives back unit i of a host and notes the release.
func (c *Cluster) take(h *host, i int, cause string) {
	s := h.units[i].sub
	s.held--
	h.units = slices.Delete(h.units, i, i+1)
	c.released[event{s, h, cause}]++
}

func (c *Cluster) key(s *sub) Key {
	return Key{c.p.MDPlans[s.alloc.plan].Name, c.p.Path[s.alloc.leaf], s.alloc.name, s.name}
}

// dimension gives the index of a dimension that must exist.
func dimension(p *plan.Policy, name string) int {
	d, ok := p.Dimension(name)
	if !ok {
		panic(fmt.Sprintf("oracle: no dimension %q", name))
	}
	return d
}
