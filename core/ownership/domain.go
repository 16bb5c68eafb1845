package ownership

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// form is the form of a rule.
type form uint8

const (
	list form = iota
	hosts
	percent
	amount
	perHost
	remaining
)

func formOf(r *plan.OwnRule) form {
	switch {
	case r.HostList != nil:
		return list
	case r.Hosts != plan.Unlimited:
		return hosts
	case r.Percent != plan.Unlimited:
		return percent
	case r.Amount != nil:
		return amount
	case r.PerHost != nil:
		return perHost
	}
	return remaining
}

// chooses tells whether a claim chooses its hosts, so that it may give up an idle one for a better one.
func (c *claim) chooses() bool { return c.form == hosts || c.form == percent || c.form == amount }

// claim is a rule of a consumer, with what it has come to.
type claim struct {
	node   plan.Node
	rule   int32
	place  int32 // in the order of the domain's claims
	form   form
	unmet  bool    // of perHost: see short
	first  pieceID // its pieces
	count  int64   // how many
	want   int64   // hosts, percent: how many hosts
	short  int64   // perHost: on how many hosts it got less than it asks
	listed []int32 // list: the hosts, nothing where the plan has one not
	rests  []stamp // amount, partial: clean cells of which it has a piece and something is left
}

// stamp names a cell as long as it has that version.
type stamp struct {
	cell    partID
	version uint32
}

// lister is a claim that lists a host.
type lister struct {
	host, place int32
	node        plan.Node
}

// domain is what the children of a consumer divide among themselves. Its cells are the parts of that consumer.
type domain struct {
	node     plan.Node
	order    []claimID
	every    []int32  // places of claims that look at every host: perHost, remaining
	percents []int32  // places
	listers  []lister // by host
	count    []int64  // by group: cells that are something
	index    []index  // by group: of clean cells, and of soiled ones as of the last flush
	laid     bool     // whether there are indexes: from the first stain after a full sweep on
	soiled   []partID
	noted    []partID // children's parts of soiled cells, before and now
	waiting  bool     // soiled cells are to be swept
	unmet    []uint64 // by place: claims of numbers of hosts and amounts that are unmet
	event    events
}

// plot lays out claims and domains of a policy's window.
func (a *Assigner) plot() {
	t := a.g.Tree
	a.claims, a.base, a.last, a.unclaimed = a.claims[:0], a.base[:0], a.last[:0], a.unclaimed[:0]
	a.domains, a.domainOf = a.domains[:0], a.domainOf[:0]
	for n := range plan.Node(t.Len()) {
		a.base = append(a.base, claimID(len(a.claims)))
		a.last, a.unclaimed = append(a.last, nothing), append(a.unclaimed, nothing)
		a.domainOf = append(a.domainOf, nothing)
		for i := range a.g.Window.Own[n] {
			r := &a.g.Window.Own[n][i]
			c := claim{node: n, rule: int32(i), form: formOf(r), first: nothing}
			for _, name := range r.HostList {
				c.listed = append(c.listed, a.g.Listed(name))
			}
			a.claims = append(a.claims, c)
		}
	}
	a.base = append(a.base, claimID(len(a.claims)))
	a.got, a.asked = zeroed(a.got, len(a.claims)*a.dims), zeroed(a.asked, len(a.claims)*a.dims)
	a.short = zeroed(a.short, len(a.claims)*a.dims)
	for i := range a.claims {
		if c := &a.claims[i]; c.form == amount {
			copy(vector(a.short, i, a.dims), a.g.Window.Own[c.node][c.rule].Amount)
		}
	}
	for n := range plan.Node(t.Len()) {
		k := len(a.domains)
		if k == cap(a.domains) {
			a.domains = append(a.domains, domain{})
		} else {
			a.domains = a.domains[:k+1]
		}
		if a.line(n, &a.domains[k]); len(a.domains[k].order) == 0 {
			a.domains = a.domains[:k]
		} else {
			a.domainOf[n] = int32(k)
		}
	}
}

// zeroed makes a slice of n zeros out of one that is no longer needed.
func zeroed[T any](v []T, n int) []T {
	v = slices.Grow(v[:0], n)[:n]
	clear(v)
	return v
}

// line puts the claims of a domain in order: by rank, of each consumer in the order of its list,
// `remaining` after all others. The domain's memory may be that of another before.
func (a *Assigner) line(n plan.Node, d *domain) {
	d.node, d.count, d.waiting = n, zeroed(d.count, len(a.group)), false
	d.order, d.every, d.percents, d.listers = d.order[:0], d.every[:0], d.percents[:0], d.listers[:0]
	d.soiled, d.event = d.soiled[:0], d.event[:0]
	d.index, d.laid = slices.Grow(d.index[:0], len(a.group))[:len(a.group)], false
	var children []plan.Node
	for c := a.g.Tree.First[n]; c != plan.None; c = a.g.Tree.Next[c] {
		if a.base[c] < a.base[c+1] {
			children = append(children, c)
		}
	}
	slices.SortStableFunc(children, func(x, y plan.Node) int { return cmp.Compare(a.g.Rank[x], a.g.Rank[y]) })
	for _, late := range []bool{false, true} {
		for _, c := range children {
			for id := a.base[c]; id < a.base[c+1]; id++ {
				if late == (a.claims[id].form == remaining) {
					a.join(d, id)
				}
			}
		}
	}
	d.unmet = zeroed(d.unmet, (len(d.order)+63)/64)
	slices.SortFunc(d.listers, func(x, y lister) int {
		return cmp.Or(cmp.Compare(x.host, y.host), cmp.Compare(x.place, y.place))
	})
}

// join makes a claim the next of a domain.
func (a *Assigner) join(d *domain, id claimID) {
	c := &a.claims[id]
	c.place = int32(len(d.order))
	d.order = append(d.order, id)
	a.last[c.node] = c.place
	switch c.form {
	case perHost, remaining:
		d.every = append(d.every, c.place)
	case percent:
		d.percents = append(d.percents, c.place)
	}
	for _, h := range c.listed {
		if h >= 0 {
			d.listers = append(d.listers, lister{h, c.place, c.node})
		}
	}
}

// listing are the claims that list a host.
func (d *domain) listing(h int32) []lister {
	from, _ := slices.BinarySearchFunc(d.listers, h, func(l lister, h int32) int { return cmp.Compare(l.host, h) })
	to := from
	for to < len(d.listers) && d.listers[to].host == h {
		to++
	}
	return d.listers[from:to]
}

// listedBeside tells whether another child than n lists a host.
func (d *domain) listedBeside(h int32, n plan.Node) bool {
	return slices.ContainsFunc(d.listing(h), func(l lister) bool { return l.node != n })
}

// place is where a piece stands in the order of claims; one of no claim with its consumer's last claim.
func (a *Assigner) place(p pieceID) int32 {
	if id := a.piece[p].claim; id != nothing {
		return a.claims[id].place
	}
	return a.last[a.part[a.piece[p].part].node]
}

// ruleOf is the rule of a claim.
func (a *Assigner) ruleOf(c *claim) *plan.OwnRule { return &a.g.Window.Own[c.node][c.rule] }

// cell is a consumer's part of a host, nothing when it has none. O(depth · pieces).
func (a *Assigner) cell(n plan.Node, h int32) partID {
	if h < 0 {
		return nothing
	}
	if n == plan.Root {
		return partID(h)
	}
	up := a.cell(a.g.Tree.Parent[n], h)
	if up == nothing {
		return nothing
	}
	return a.partOf(up, n)
}

// partOf is the part that a child has of a cell, nothing when it has none.
func (a *Assigner) partOf(c partID, n plan.Node) partID {
	for p := a.part[c].first; p != nothing; p = a.piece[p].next {
		if of := a.piece[p].part; a.part[of].node == n {
			return of
		}
	}
	return nothing
}

// weigh adds up what is held on a consumer's part of a host, into scratch.
func (a *Assigner) weigh(n plan.Node, h int32) (sum []int64) {
	sum = a.sum
	clear(sum)
	for r := a.use.first[h]; r != nothing; r = a.use.row[r].next {
		if o := a.use.row[r].owner; n <= o && o < a.g.Tree.End[n] {
			add(sum, vector(a.use.amount, int(r), a.dims))
		}
	}
	return sum
}

// settleLoad finds the load of a cell.
func (a *Assigner) settleLoad(c partID) {
	at := &a.part[c]
	at.load = 0
	if a.use.first[at.host] == nothing {
		return
	}
	for d, v := range a.weigh(at.node, at.host) {
		at.load = max(at.load, share.Fraction(v, a.amountOf(c)[d]))
	}
}

// settleBusy finds whether a part is busy.
func (a *Assigner) settleBusy(c partID) {
	at := &a.part[c]
	at.busy = a.use.first[at.host] != nothing && !zero(a.weigh(at.node, at.host))
}

// shut tells whether a host is closed or draining.
func (a *Assigner) shut(h int32) bool { return a.closed[h>>6]>>(h&63)&1 != 0 }

// belongs tells whether a host is of a group of the plan, any of the group -1.
func (a *Assigner) belongs(h int32, group int) bool {
	return group < 0 || a.group[group][h>>6]>>(h&63)&1 != 0
}
