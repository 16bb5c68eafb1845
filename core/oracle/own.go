package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Who owns which hosts in MD plans, by docs/ownership.md.

// piece is what a consumer's rule took of a host.
type piece struct {
	of   plan.Node
	rule int // in the consumer's list; -1 when that is another list now
	host *host
	v    []int64
}

// part is what a consumer has of a host, as a key.
type part struct {
	of   plan.Node
	host *host
}

// estate is what is owned in an MD plan since its last pass.
type estate struct {
	basis      string // what the pass went by
	hosts      []*host
	pieces     []piece
	number     map[part]int64
	lists      []string // by consumer: its rules, as text
	unmet      []bool   // by consumer: a claim of its is unmet
	open       bool     // a claim is unmet, or has less than a whole host or a closed one
	configured [][]int64
	split      map[*host][]parcel
	around     string               // the input that the plan went by in the last cycle, but what is asked for
	asked      map[plan.Node]string // by leaf: what it asks for
	changes    int                  // cycles since the pass in which that changed
}

// title is a claim: a rule of a consumer.
type title struct {
	of   plan.Node
	i    int
	rule *plan.OwnRule
}

// pass is a pass over a plan's ownership.
type pass struct {
	*Cluster
	in     int
	m      *plan.MDPlan
	w      *plan.MDWindow
	hosts  []*host // the plan's that are there and have anything
	had    []piece
	pieces []piece   // taken in this pass
	up     plan.Node // the consumer whose domain is divided
	claims []title   // of the domain
	at     int       // the claim that takes
}

// own makes a pass when one is due, and splits the hosts by it.
func (c *Cluster) own(in int, r *Result) {
	p := &pass{Cluster: c, in: in, m: &c.p.MDPlans[in], w: c.mdWindow(in)}
	for _, h := range c.order[in] {
		if h.State != "unavail" && slices.Max(c.capacity(in, h)) > 0 {
			p.hosts = append(p.hosts, h)
		}
	}
	e := c.estates[in]
	basis, around, asked := p.basis(), p.around(), p.asked()
	if around != e.around || !maps.Equal(asked, e.asked) {
		e.changes++
		for _, a := range c.allocs {
			for _, s := range a.subs {
				if a.plan == in && c.lookUS == 0 && (around != e.around || asked[a.leaf] != e.asked[a.leaf]) {
					s.turns = 0
				}
			}
		}
		e.around, e.asked = around, asked
	}
	if e.basis == basis && !(e.open && e.changes >= int(p.m.OwnershipRebalance)) {
		return
	}
	lists := make([]string, c.p.Len())
	for n := range lists {
		for _, rule := range p.w.Own[n] {
			rule.Line = 0
			lists[n] += fmt.Sprintf("%+v\n", rule)
		}
	}
	for _, q := range e.pieces {
		if lists[q.of] != e.lists[q.of] {
			q.rule = -1
		}
		p.had = append(p.had, q)
	}
	next := &estate{basis: basis, hosts: p.hosts, lists: lists, around: around, asked: asked,
		unmet: make([]bool, c.p.Len()), number: map[part]int64{}}
	for range c.p.Len() {
		next.configured = append(next.configured, p.nothing())
	}
	for n := range plan.Node(c.p.Len()) { // parents come before their children
		if p.m.Member[n] {
			p.divide(n, next)
		}
	}
	for _, q := range p.pieces {
		k := part{q.of, q.host}
		if next.number[k] == 0 {
			next.number[k] = cmp.Or(e.number[k], c.next())
		}
	}
	next.pieces = p.pieces
	c.estates[in] = next
	p.report(e, r)
	p.resplit(e, next)
}

// basis is all that a pass goes by, as text, but for what is held.
func (p *pass) basis() string {
	text := fmt.Sprint(p.revision, p.w.Name)
	for _, g := range p.m.Groups {
		text += "\n"
		for _, name := range p.p.Groups[g.Group].Hosts { // one that was there once stands in its place
			text += fmt.Sprint(" ", name, slices.Contains(p.names, name))
		}
		for _, h := range p.grouped[g.Group] {
			switch {
			case slices.Contains(p.hosts, h):
				text += fmt.Sprint(" ", h.Name, p.capacity(p.in, h), closed(h))
			case p.p.Groups[g.Group].Select != nil:
				text += fmt.Sprint(" ", h.Name) // not there
			}
		}
	}
	return text
}

// around is the input that a plan goes by but what is asked for, as text.
func (p *pass) around() string {
	text := p.basis()
	for _, h := range p.order[p.in] {
		text += fmt.Sprint("\n", h.Host, h.size)
	}
	return text + fmt.Sprint("\n", p.broke[p.in])
}

// asked is what leaves ask for, as text.
func (p *pass) asked() map[plan.Node]string {
	text := map[plan.Node]string{}
	for _, a := range p.allocs {
		for _, s := range a.subs {
			if a.plan == p.in && s.wanted > 0 {
				text[a.leaf] += fmt.Sprint("\n", s.arrival, s.wanted, s.req, s.perHost, s.least, s.together)
			}
		}
	}
	return text
}

func (p *pass) nothing() []int64 { return make([]int64, len(p.p.Dimensions)) }

// least is the lesser of two vectors, dimension by dimension.
func least(a, b []int64) []int64 {
	v := slices.Clone(a)
	for d := range v {
		v[d] = min(v[d], b[d])
	}
	return v
}

func zero(v []int64) bool { return !slices.ContainsFunc(v, func(n int64) bool { return n != 0 }) }

// sum adds up the pieces that ok accepts.
func (p *pass) sum(pieces []piece, ok func(q piece) bool) []int64 {
	v := p.nothing()
	for _, q := range pieces {
		if ok(q) {
			plus(v, q.v, 1)
		}
	}
	return v
}

// divide gives the children of a consumer what their claims take of its domain, in order.
func (p *pass) divide(up plan.Node, next *estate) {
	p.up, p.claims = up, nil
	kids := p.kids(up)
	for _, remaining := range []bool{false, true} {
		for _, k := range kids {
			for i := range p.w.Own[k] {
				if rule := &p.w.Own[k][i]; rule.Remaining == remaining {
					p.claims = append(p.claims, title{k, i, rule})
				}
			}
		}
	}
	for i, t := range p.claims {
		p.at = i
		asked, met := p.take(t)
		plus(next.configured[t.of], asked, 1)
		next.unmet[t.of] = next.unmet[t.of] || !met
		next.open = next.open || !met || p.staysOpen(t)
	}
}

// kids are the children of a consumer by rank, ties in tree order.
func (p *pass) kids(up plan.Node) []plan.Node {
	var list []plan.Node
	for k := p.p.First[up]; k != plan.None; k = p.p.Next[k] {
		if p.m.Member[k] {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list, func(a, b plan.Node) int { return cmp.Compare(p.w.Rank[a], p.w.Rank[b]) })
	return list
}

// amount is what the domain has of a host.
func (p *pass) amount(h *host) []int64 {
	if p.up == plan.Root {
		return p.capacity(p.in, h)
	}
	return p.sum(p.pieces, func(q piece) bool { return q.of == p.up && q.host == h })
}

// left is what nobody took of it yet.
func (p *pass) left(h *host) []int64 {
	return plus(p.amount(h), p.sum(p.pieces, func(q piece) bool { return p.p.Parent[q.of] == p.up && q.host == h }), -1)
}

// hads tells whether a piece is one that a claim had.
func hads(t title, q piece) bool { return q.of == t.of && (q.rule == t.i || q.rule < 0) }

// coming tells whether somebody had a piece by a claim that is still to come, and not by the one that takes.
func (p *pass) coming(q piece) bool {
	return !hads(p.claims[p.at], q) && slices.ContainsFunc(p.claims[p.at+1:], func(t title) bool { return hads(t, q) })
}

// busy tells whether any unit is held on a consumer's part of a host.
func (p *pass) busy(n plan.Node, h *host) bool { return !zero(p.heldOn(n, h)) }

// heldOn is what units take of a consumer's part of a host.
func (p *pass) heldOn(n plan.Node, h *host) []int64 {
	v := p.nothing()
	for _, u := range h.units {
		if u.sub.alloc.plan == p.in && u.owner >= n && u.owner < p.p.End[n] {
			plus(v, u.sub.size, 1)
		}
	}
	return v
}

// kept is what is left to those who had it busy and whose claims are still to come.
func (p *pass) kept(h *host) []int64 {
	return least(p.left(h), p.sum(p.had, func(q piece) bool { return q.host == h && p.coming(q) && p.busy(q.of, h) }))
}

func (p *pass) open(h *host) []int64 { return plus(p.left(h), p.kept(h), -1) }

// load is the largest part of the domain's amount that is held on a host.
func (p *pass) load(h *host) uint64 {
	most := uint64(0)
	whole := p.amount(h)
	for d, n := range p.heldOn(p.up, h) {
		share := uint64(0)
		switch {
		case n > 0 && n >= whole[d]:
			share = one
		case n > 0:
			share, _ = muldiv(uint64(n), one, uint64(whole[d]))
		}
		most = max(most, share)
	}
	return most
}

// group are the hosts of a claim's group.
func (p *pass) group(t title) []*host {
	all := p.grouped[p.m.Groups[t.rule.Group].Group]
	return slices.DeleteFunc(slices.Clone(p.hosts), func(h *host) bool {
		return !slices.Contains(all, h) || zero(p.amount(h))
	})
}

// closed tells whether nothing new may start on a host.
func closed(h *host) bool { return h.State == "closed" || h.State == "draining" }

// staysOpen tells whether a claim that was met has less than a whole host where hosts count, or a closed one (MD-3).
func (p *pass) staysOpen(t title) bool {
	chosen := t.rule.HostList == nil && t.rule.PerHost == nil && !t.rule.Remaining
	return chosen && slices.ContainsFunc(p.pieces, func(q piece) bool {
		mine := q.of == t.of && q.rule == t.i
		less := t.rule.Amount == nil && !slices.Equal(q.v, p.amount(q.host))
		return mine && (less || closed(q.host))
	})
}

// own are the hosts of which a claim had something, in the order in which it takes them again: busy ones, of which the
// most loaded come first, then idle ones; of either those that are not closed before those that are.
func (p *pass) own(t title) []*host {
	list := slices.DeleteFunc(p.group(t), func(h *host) bool { return zero(p.held(t, h)) })
	merit := map[*host][]int64{}
	for _, h := range list {
		merit[h] = []int64{1, bit(closed(h)), 0}
		if p.busy(t.of, h) {
			merit[h] = []int64{0, bit(closed(h)), -int64(p.load(h))}
		}
	}
	slices.SortStableFunc(list, func(a, b *host) int { return slices.Compare(merit[a], merit[b]) })
	return list
}

// held is what a claim had of a host.
func (p *pass) held(t title, h *host) []int64 {
	return p.sum(p.had, func(q piece) bool { return q.host == h && hads(t, q) })
}

// candidates are the hosts that a claim may take besides, the best first; where hosts count, not those that it took.
func (p *pass) candidates(t title) []*host {
	list := slices.DeleteFunc(p.group(t), func(h *host) bool {
		took := slices.ContainsFunc(p.pieces, func(q piece) bool {
			return q.host == h && q.of == t.of && q.rule == t.i
		})
		return zero(p.left(h)) || took && t.rule.Amount == nil
	})
	merit := map[*host][]int64{}
	for _, h := range list {
		merit[h] = p.merit(t, h)
	}
	slices.SortStableFunc(list, func(a, b *host) int { return slices.Compare(merit[a], merit[b]) })
	return list
}

// merit orders candidates, the least first.
func (p *pass) merit(t title, h *host) []int64 {
	load, part, shut := int64(p.load(h)), bit(!slices.Equal(p.left(h), p.amount(h))), bit(closed(h))
	if zero(p.kept(h)) {
		wanted := slices.ContainsFunc(p.had, func(q piece) bool { return q.host == h && p.coming(q) })
		return []int64{part, 0, shut, bit(p.listedBeside(t, h)), load, bit(wanted)}
	}
	others, first := false, int64(-1)
	for i, k := range p.kids(p.up) {
		for _, q := range p.had {
			if q.of == k && q.host == h && p.coming(q) {
				if others = others || k != t.of; first < 0 && p.busy(k, h) {
					first = int64(i)
				}
			}
		}
	}
	return []int64{part, 1, shut, bit(others), -first, load}
}

// Candidates that serve as well as a host that the claim cedes have a merit of 0 in so many places.
const (
	mayReplace = 3 // a part or a closed host: whole, public, and not closed
	asGood     = 5 // a host that another child lists: listed by no other child, and idle, besides
)

// serves tells whether a candidate serves as well as a host that the claim cedes.
func (p *pass) serves(t title, h *host, places int) bool {
	return slices.Max(p.merit(t, h)[:places]) == 0
}

// bit is 1 for what is true, else 0.
func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// get gives a claim something of a host; false when that is nothing.
func (p *pass) get(t title, h *host, v []int64) bool {
	if zero(v) {
		return false
	}
	p.pieces = append(p.pieces, piece{t.of, t.i, h, v})
	return true
}

// got is what a claim took in this pass.
func (p *pass) got(t title) []int64 {
	return p.sum(p.pieces, func(q piece) bool { return q.of == t.of && q.rule == t.i })
}
