// Package oracle plays the rules of SPEC chapters 2 to 4 a second time: slowly,
// one unit a step, from the text of the rules alone. It shares nothing with the
// engine but the policy, so that the two can be held against each other. A cycle
// comes a minute after the last one.
//
// It knows multidimensional plans: MD-1 to MD-18, MD-20, REQ-1, by docs/ownership.md and docs/shares.md, with devices
// (D-185); slot plans by docs/slots.md, where placement is exclusive under the policies ownership and share_ratio alone
// and without windows; for both CYC-1 to CYC-10 and the decisions of docs/decisions.md. Input is taken to be valid:
// what the engine would refuse makes it panic. Not for production use; a cycle costs about units² × hosts.
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
	MinUnits                        int64 // of a gang more than 1 (REQ-3); 0 is 1
	// an attribute of which a gang's hosts have one value; "prefer …": where they can
	Together string
}

// Holding is a row of a running or releases table.
type Holding struct {
	Consumer, Allocation, Sub, Host string
	Units                           int64
	Done                            bool
	Device                          string // of releases: of units on these devices alone; "": of any
}

// Key names a sub-allocation in results.
type Key struct{ Plan, Consumer, Allocation, Sub string }

// Units is a number of units of one sub-allocation on one host: a grant, a release (with its cause) or what is held.
// Lender and Pool are paths, "" where there is none; a release has no Pool. Leaving is how many of what is held are
// under reclaim.
type Units struct {
	Key
	Host, Cause          string
	Origin, Lender, Pool string
	Device               string // the devices of each of them, joined by "+"
	Units, Leaving       int64
	LostMS               int64 // of releases: unit-milliseconds that a reclaim stopped before their end (D-120)
}

// Reclaim is units of one sub-allocation on one host that are put under reclaim or taken off it again.
type Reclaim struct {
	Key
	Host, Action, Reason string // Action: issued or cancelled
	For                  Key    // the taker; zero when a rule asks
	Device               string
	Units                int64
	DeadlineUS           int64 // the first cycle is at 60 s
}

// Consumer is a consumer's figures in a plan. In MD plans they are units, and by dimension Amount is what it holds,
// StaticPart its static share quota (MD-15), Configured, Owned and Reserved what it owns, and Lent what others hold of
// that; in slot plans they are slots, and Slots is set.
type Consumer struct {
	Plan, Path         string
	Demand, Held       int64
	Short              int64
	Amount, StaticPart []int64
	Configured, Owned  []int64
	Reserved, Lent     []int64
	Slots              *SlotFigures
	Budget             plan.Budget // of 0 hours: none
	BudgetUsed         float64     // hours
}

// SlotFigures are the columns of a consumer in a slot plan; Limit is plan.Unlimited when there is none.
type SlotFigures struct {
	OwnedConfigured, Owned, Reserved, Limit, StaticQuota, Quota int64
	HeldOwned, HeldShared, HeldBorrowed, Lent, Free             int64
}

// Shortfall is why units of a sub-allocation are missing.
type Shortfall struct {
	Key
	Units                      int64
	Reason, Dimension, Blocker string
	Fits                       int64  // of reason gang: how many units would fit now
	Where                      string // of those that are together: "in rack r7"
	UntilUS                    int64  // when what it waits for is due, as Reclaim.DeadlineUS; 0: nothing
}

// Result is what one cycle decided, and what is true after it.
type Result struct {
	Grants, Releases, Held []Units
	Reclaims               []Reclaim
	Owned                  []Owned
	Leaving                int // units under reclaim after the cycle
	Promised               int // units that a set holds room for after the cycle
	Revoked                int // units that the cycle granted and took back before its end
	Consumers              []Consumer
	Shares                 []Share
	Shortfalls             []Shortfall
	Notes                  map[string]int // how often what no table shows came up, for those who count situations
	Reasoned               []Reasoned     // by MD plan
}

// Reasoned is what reasons of shortfalls in an MD plan go by that no table shows, for tests of those alone.
type Reasoned struct {
	Plan   string
	Joined []Joined
	Denied []Key              // the reclaim budget did not bear what they would have taken
	Stood  map[string][]int64 // by path: what consumers held net from pools above them once everything was granted
}

// Joined is a unit that joined sets under way, on an owner's parcel of a host ("/": the public one).
type Joined struct {
	Key
	Host, Owner string
}

// host is a host with its units in the order in which they came.
type host struct {
	Host
	size  []int64
	units []*unit
}

// The origins of units (SPEC chapter 8).
const (
	owned       = "owned"
	sharePool   = "share_pool"
	borrowed    = "borrowed"
	publicPool  = "public_pool"
	privatePool = "private_pool"
)

// unit is one held unit.
type unit struct {
	sub          *sub
	host         *host
	row          int64  // in order of coming
	cycle        int64  // that granted it
	origin       string // "" in a slot plan until a running unit is labelled
	lender, pool plan.Node
	owner        plan.Node // of its parcel, in an MD plan
	devices      []int     // of its host, ascending
	set          *set      // that it is under reclaim for, nil when it is not
	number, due  int64
}

// set is a reclaim (CYC-6): units of one host under reclaim for a taker, or one unit for a rule.
type set struct {
	number  int64
	cycle   int64
	plan    int
	reason  string
	target  *host
	owner   plan.Node // of the target parcel, in an MD plan
	taker   *sub      // nil: a rule
	n       int64     // units of the taker that room is held for
	account plan.Node // in a slot plan: the owner of a recall; plan.Root is the pool
}

// alloc is an allocation with its subs in order of arrival; allocations stand in order of arrival too (D-12).
type alloc struct {
	source, name string
	arrival      int64
	plan         int
	leaf         plan.Node
	subs         []*sub
	orphan       bool  // a new policy file took its place away
	graceUS      int64 // of its leaf before that
}

// sub is a sub-allocation. One of another unit size is another one (SPEC chapter 7).
type sub struct {
	alloc    *alloc
	name     string
	arrival  int64
	size     []int64 // by dimension; in a slot plan just the slots
	req      string
	perHost  int64
	least    int64  // of a gang more than 1: so many units it holds, or none
	together string // an attribute of which the hosts of a gang have one value; "prefer …": where they can
	named    bool   // by the newest snapshot of its source
	wanted   int64
	held     int64
	turns    int // how often fair share took from it and for it in turn: odd when it took from it last
}

func (u *unit) leaves() bool    { return u.set != nil }
func (u *unit) leaf() plan.Node { return u.sub.alloc.leaf }
func (u *unit) slots() int64    { return u.sub.size[0] } // in slot plans
// short is how many units are missing; what orphans lose they do not want back.
func (s *sub) short() int64 {
	if s.alloc.orphan {
		return 0
	}
	return s.wanted - s.held
}

func (s *sub) slots() int64 { return s.size[0] } // in slot plans

// room is what a set's taker will take.
func (s *set) room() []int64 { return plus(make([]int64, len(s.taker.size)), s.taker.size, s.n) }

// plus adds so many units of a size to a vector.
func plus(v, size []int64, units int64) []int64 {
	for d, n := range size {
		v[d] += n * units
	}
	return v
}

// came is a sub-allocation's arrival, 0 for none.
func (s *sub) came() int64 {
	if s == nil {
		return 0
	}
	return s.arrival
}

// Cluster is the state between cycles. Plans are counted MD plans first, then slot plans.
type Cluster struct {
	UnitsOfHost int64 // of how many units of a size hosts may have room for on average; 0: the usual limit (D-52)

	p         *plan.Policy
	revision  int               // policies so far
	equipped  map[int]bool      // plans that got devices by a policy since the last cycle
	former    []string          // paths of consumers that are not in the policy: see gone
	cycle     int64             // the last one finished
	nowUS     int64             // its time
	times     map[int64]int64   // by cycle: its time
	hosts     []*host           // in the order of the hosts table
	names     []string          // of hosts, in the order in which they came first
	gone      []*host           // left the table since the last cycle
	order     [][]*host         // by plan: its hosts in host order
	grouped   map[int][]*host   // by resource group: its hosts in its order
	slots     []map[*host]int64 // by plan, of slot plans: of every host
	estates   []*estate         // by MD plan: who owns what
	allocs    []*alloc
	sets      []*set // those with takers, in order of number
	count     int64  // numbers given so far to what comes one after the other
	released  map[event]int64
	stopped   []stopped // of them, the units that a reclaim stopped
	reclaimed map[claim]int64
	revoked   int // units granted in this cycle and taken back in it
	startUS   int64
	lookUS    int64          // how far ahead MD plans' windows are looked at, while something is tried
	seasons   []season       // by plan
	notes     map[string]int // of this cycle
	purses    map[purse]*spending
	pasts     map[past]*used
	broke     map[int]map[plan.Node]bool // by plan and consumer: its budget is used up
}

// New is an empty cluster under a policy.
func New(p *plan.Policy) *Cluster {
	c := &Cluster{p: p, startUS: epochUS, times: map[int64]int64{}, released: map[event]int64{},
		reclaimed: map[claim]int64{}, purses: map[purse]*spending{}, pasts: map[past]*used{}}
	for range p.MDPlans {
		c.estates = append(c.estates, &estate{lists: make([]string, p.Len())})
	}
	c.newYear("plan_change")
	c.arrange()
	return c
}

// SetHosts takes a full host table, or changes by host.
func (c *Cluster) SetHosts(rows []Host, full bool) {
	old := c.hosts
	if full {
		c.hosts = nil
	}
	for _, row := range rows {
		if !slices.Contains(c.names, row.Name) {
			c.names = append(c.names, row.Name)
		}
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
	c.arrange()
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
				s.named, s.wanted, s.least = false, 0, 1
			}
		}
	}
	for _, row := range rows {
		a := c.alloc(source, row)
		s := c.sub(a, row.Sub, c.unitSize(a.plan, row))
		s.named, s.wanted, s.req = true, row.Units, row.Requirement
		s.perHost, s.least, s.together = row.MaxPerHost, row.MinUnits, row.Together
		s.asks()
	}
}

// unitSize is the size of a row's unit: over the dimensions, or in a slot plan the slots, 1 where none are given.
func (c *Cluster) unitSize(in int, row Demand) []int64 {
	size := make([]int64, len(c.p.Dimensions))
	for name, v := range row.Size {
		if in < len(c.p.MDPlans) {
			size[dimension(c.p, name)] = v
		} else if name != "slots" && v != 0 {
			panic(fmt.Sprintf("oracle: a row of a slot plan gives %s", name))
		}
	}
	if in < len(c.p.MDPlans) {
		return size
	}
	return []int64{max(1, row.Size["slots"])}
}

// alloc finds the allocation of a demand row, or adds it.
func (c *Cluster) alloc(source string, row Demand) *alloc {
	leaf, ok := c.p.Find(row.Consumer)
	if !ok || !c.p.Leaf(leaf) {
		panic(fmt.Sprintf("oracle: %q is no leaf", row.Consumer))
	}
	in := 0
	for ; in < len(c.order); in++ {
		if t := c.terms(in); t.member[leaf] && (row.Plan == "" || row.Plan == t.name) {
			break
		}
	}
	if in == len(c.order) {
		panic(fmt.Sprintf("oracle: %q takes no part in plan %q", row.Consumer, row.Plan))
	}
	for _, a := range c.allocs {
		if a.plan == in && a.leaf == leaf && a.name == row.Allocation {
			return a
		}
	}
	a := &alloc{source: source, name: row.Allocation, arrival: c.next(), plan: in, leaf: leaf}
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
	s := &sub{alloc: a, name: name, arrival: c.next(), size: size, least: 1}
	a.subs = append(a.subs, s)
	return s
}

// next is the next number.
func (c *Cluster) next() int64 {
	c.count++
	return c.count
}

// Running takes units that are held already, as if granted in the last cycle (D-21).
func (c *Cluster) Running(rows []Holding) {
	for _, row := range rows {
		h := c.host(row.Host)
		for _, a := range c.allocs {
			for _, s := range a.subs {
				if s.named && c.is(s, row) && c.planOf(h) == a.plan {
					for range row.Units {
						c.lay(c.put(s, h))
					}
				}
			}
		}
	}
}

// Release takes units back that clients gave up, in the order of CYC-5. Units beyond what is held are ignored.
func (c *Cluster) Release(rows []Holding) {
	for _, row := range rows {
		h, cause := c.host(row.Host), "client"
		if row.Done {
			cause = "done"
		}
		for range row.Units {
			u := c.first(h.units, func(u *unit) bool {
				return c.is(u.sub, row) && (row.Device == "" || deviceText(u.devices) == row.Device)
			})
			if u == nil {
				break
			}
			if row.Done && u.sub.wanted > 0 {
				u.sub.wanted--
				u.sub.asks()
			}
			c.take(u, cause)
		}
	}
}

// is tells whether a holding row means a sub-allocation.
func (c *Cluster) is(s *sub, row Holding) bool {
	return c.path(s.alloc.leaf) == row.Consumer && s.alloc.name == row.Allocation && s.name == row.Sub
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
func (c *Cluster) put(s *sub, h *host) *unit {
	u := &unit{sub: s, host: h, row: c.next(), cycle: c.cycle, lender: plan.None, pool: plan.None}
	if s.alloc.plan < len(c.p.MDPlans) {
		u.origin, u.pool = publicPool, plan.Root
		u.devices = c.seated(s, h)
	}
	h.units = append(h.units, u)
	s.held++
	return u
}

// drop takes a unit off its host.
func (c *Cluster) drop(u *unit) {
	u.sub.held--
	u.host.units = slices.DeleteFunc(u.host.units, func(v *unit) bool { return v == u })
}

// take gives back a unit and notes the release.
func (c *Cluster) take(u *unit, cause string) {
	c.drop(u)
	e := event{u.sub, u.host, cause, u.origin, u.lender, plan.None, deviceText(u.devices)}
	c.released[e]++
	if u.leaves() && (cause == "grace_expired" || cause == "client") {
		c.stopped = append(c.stopped, stopped{e, u.cycle})
	}
}

func (c *Cluster) key(s *sub) Key {
	return Key{c.terms(s.alloc.plan).name, c.path(s.alloc.leaf), s.alloc.name, s.name}
}

// dimension gives the index of a dimension that must exist.
func dimension(p *plan.Policy, name string) int {
	d, ok := p.Dimension(name)
	if !ok {
		panic(fmt.Sprintf("oracle: no dimension %q", name))
	}
	return d
}
