// Package ownership decides who owns which hosts of an MD plan (SPEC MD-1 to
// MD-5; docs/ownership.md has every word used here, the order of all that is
// done and the ties). It knows hosts by number, consumers by their place in
// the tree, what is held by sums: amounts in, amounts out.
package ownership

import (
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// Ground is what a pass knows. Hosts are the indexes 0…n-1 in the plan's host
// order; hosts that are lost have a capacity of 0 in every dimension.
type Ground struct {
	Tree   *plan.Tree
	Plan   *plan.MDPlan
	Window *plan.MDWindow // rules (Own) and reserves in force
	Rank   []int32        // by Node: place in rank order among all consumers; siblings compare by it
	Cap    [][]int64      // by dimension, then host: capacity with overcommit
	Group  [][]uint64     // by plan group: bitset of hosts
	Closed []uint64       // bitset of hosts that are closed or draining
	Use    []Use          // what is held, a row per host and owner or finer, in any order

	// Listed gives the index of a host named in a host_list, -1 when the plan has it not.
	Listed func(name string) int32
	// Known is what the hosts table says, in a dimension and with overcommit, of a listed
	// host that has no capacity in Cap; 0 when it says nothing.
	Known func(name string, d int) int64
}

// Use is what is held on the parcel of a host with a certain owner; plan.Root owns the
// public one. A row with no amount above 0 makes no part busy.
type Use struct {
	Host   int32
	Owner  plan.Node
	Amount []int64 // by dimension
}

// Deeds are the pieces of a plan's hosts that consumers own: rows sorted by
// node (tree order), host, rule; none twice, none of nothing.
type Deeds struct {
	Node   []plan.Node
	Host   []int32
	Rule   []int32   // index into the consumer's list of rules; -1: of no claim
	Number []int64   // of the part: the same on all rows of one node and host
	Amount [][]int64 // by dimension, then row
	Next   int64     // the number that the next new part gets
}

// None is the rule of a piece of no claim, and what Unmet gives when every claim is met.
const None int32 = -1

// Assigner makes passes and remembers the last one, so that the next need look only at what has changed. The zero
// value is ready; it is not safe for concurrent use. It keeps about 200 bytes for each part and piece.
type Assigner struct {
	// Both calls two functions at once; nil: one comes after the other. It decides nothing.
	Both func(f, g func())

	store
	g     *Ground
	hosts int
	next  int64 // number of the next new part

	group     [][]uint64 // as in Ground
	closed    []uint64   // as in Ground
	members   []int64    // by group: its hosts that have something
	sums      []wide     // by group, then dimension: what they have
	shared    []int64    // by group, then group: hosts that are of both
	use       use
	claims    []claim
	base      []claimID  // by Node: its first claim; its claims end where the next one's begin
	last      []int32    // by Node: the place of its last claim
	unclaimed []pieceID  // by Node: its pieces of no claim
	got       []wide     // by claim, then dimension
	asked     []wide     // by claim of the form perHost, then dimension
	short     []int64    // by claim of the form amount, then dimension: what is missing
	domains   []domain   // in tree order
	domainOf  []int32    // by Node, nothing where no child has a rule
	cellsOf   [][]partID // by Node, in a full pass: its parts in host order
	hadFrom   []int32    // by Node: its first row of what was had
	awaited   []int      // by Node: about how many pieces it will have
	waiting   events     // domains that are to be swept
	unsettled []stamp    // clean cells that another pass would leave otherwise, whatever else changes
	moved     []uint64   // parts that a sweep dealt with: node << 32, host
	dead      []partID   // parts that are nothing any more
	deeds     *Deeds

	halved  int    // by how many pieces of the first level a pass goes in two halves; 0: halvedMin
	cramped bool   // whether the store was too small for that once
	other   memory // of the second half

	memory
	epoch, turns, searches uint32

	touched, skipped int64
}

// memory is scratch memory of sweeps.
type memory struct {
	sweep                sweep
	finder               search
	pending, cells       []partID
	spot                 []partID // by host, nothing between its uses
	list                 []entry
	lists                [][]entry // by group
	spare                []index   // by group: those of full sweeps, one after the other
	before, taken, ask   []int64
	scratch, behind, sum []int64
}

// suit makes memory suit so many dimensions, groups and hosts.
func (m *memory) suit(dims, groups, hosts int) {
	for _, v := range []*[]int64{&m.ask, &m.scratch, &m.behind, &m.sum} {
		*v = zeroed(*v, dims)
	}
	m.lists = append(m.lists, make([][]entry, max(0, groups-len(m.lists)))...)
	m.spare = slices.Grow(m.spare[:0], groups)[:groups]
	m.spot = slices.Grow(m.spot[:0], hosts)[:hosts]
	for h := range m.spot {
		m.spot[h] = nothing
	}
}

// kept is the memory without what it was used for.
func (m *memory) kept() memory {
	m.sweep = sweep{turn: m.sweep.turn, own: m.sweep.own, had: m.sweep.had, lost: m.sweep.lost}
	m.finder = search{own: m.finder.own}
	return *m
}

// Unmet is the first rule of n that the last pass could not meet, in the order of its list; None when all are met.
func (a *Assigner) Unmet(n plan.Node) int32 {
	for id := a.base[n]; id < a.base[n+1]; id++ {
		if a.claims[id].unmet || a.claims[id].short > 0 {
			return a.claims[id].rule
		}
	}
	return None
}

// Open tells whether the last pass left a claim of any consumer unmet, or with less than a whole host where hosts
// count, or with a closed host that it chose (MD-3): such claims are tried again. O(claims and pieces).
func (a *Assigner) Open() bool {
	return slices.ContainsFunc(a.claims, func(c claim) bool { return c.unmet || c.short > 0 || a.wants(&c) })
}

// wants tells whether a claim that was met would rather have other hosts.
func (a *Assigner) wants(c *claim) bool {
	if !c.chooses() {
		return false
	}
	for p := c.first; p != nothing; p = a.piece[p].after {
		cell := a.part[a.piece[p].part].up
		less := c.form != amount && !slices.Equal(a.givesOf(p), a.amountOf(cell))
		if less || a.shut(a.part[cell].host) {
			return true
		}
	}
	return false
}

// Touched counts the rows that the last pass looked at: hosts of domains, parts and pieces, candidates. Blocks of
// candidates that it passed over unread count apart, see Skipped.
func (a *Assigner) Touched() int64 { return a.touched }

// Skipped counts the blocks of up to 512 candidates that the last pass passed over or opened, by their summaries.
func (a *Assigner) Skipped() int64 { return a.skipped }

// Configured is what a consumer's rules ask for in a dimension, as of the last pass: what they got, and of
// those that are unmet what is missing (docs/ownership.md). 0 for the root. O(rules and hosts that they list).
func (a *Assigner) Configured(n plan.Node, d int) (sum int64) {
	for id := a.base[n]; id < a.base[n+1]; id++ {
		c := &a.claims[id]
		got := a.got[int(id)*a.dims+d].amount()
		switch {
		case c.form == perHost:
			got = a.asked[int(id)*a.dims+d].amount()
		case c.unmet:
			got = share.Add(got, a.lacking(id, d))
		}
		sum = share.Add(sum, got)
	}
	return sum
}

// lacking is by how much more is configured than an unmet claim got.
func (a *Assigner) lacking(id claimID, d int) (sum int64) {
	c := &a.claims[id]
	switch c.form {
	case amount:
		return max(0, a.shortOf(id)[d])
	case hosts, percent:
		g := a.ruleOf(c).Group
		return share.Mul(c.want-c.count, a.sums[g*a.dims+d].amount()/max(1, a.members[g]))
	}
	for i, h := range c.listed {
		if h < 0 || zero(a.amountOf(partID(h))) {
			sum = share.Add(sum, a.g.Known(a.ruleOf(c).HostList[i], d))
		} else {
			sum = share.Add(sum, a.amountOf(partID(h))[d]-a.wholly(c.node, h, d))
		}
	}
	return sum
}

// wholly is what a consumer owns of a listed host; all of the host when it owns all that its parent does.
func (a *Assigner) wholly(n plan.Node, h int32, d int) int64 {
	cell := a.cell(a.g.Tree.Parent[n], h)
	if cell == nothing {
		return 0
	}
	of := a.partOf(cell, n)
	switch {
	case of == nothing:
		return 0
	case slices.Equal(a.amountOf(of), a.amountOf(cell)):
		return a.amountOf(partID(h))[d]
	}
	return a.amountOf(of)[d]
}
