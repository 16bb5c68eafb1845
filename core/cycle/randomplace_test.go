package cycle_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
)

// This file draws policy files of other consumers than before (PLAN-3, PLAN-4), for cases without MD plans.

// replace adds, removes and renames consumers, and lists them in another order. The ledger follows.
func (p *player) replace(t *rapid.T) {
	ops := choose(t, "places", "remove", "remove", "rename", "add", "remove rename", "remove add", "rename add",
		"order")
	if strings.Contains(ops, "remove") {
		p.removeOne(t)
	}
	if strings.Contains(ops, "rename") {
		p.renameOne(t)
	}
	if strings.Contains(ops, "add") {
		p.addOne(t)
	}
	if ops == "order" || once(t, "order", 4) {
		p.listed = rapid.Permutation(upTo0(len(p.consumers))).Draw(t, "listed")
	}
	for i := range p.slots {
		plan := &p.slots[i]
		plan.everywhere(func() { p.balance(plan) })
	}
}

// upTo0 are the numbers below n.
func upTo0(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// everywhere does something to the members as every window has them.
func (p *slotPlan) everywhere(do func()) {
	for k := range len(p.windows) + 1 {
		p.within(k, do)
	}
}

// takesPart tells whether a consumer takes part in the plan.
func (p *slotPlan) takesPart(consumer int) bool {
	return slices.ContainsFunc(p.members, func(e slotMember) bool { return e.consumer == consumer })
}

// removeOne removes a consumer and all below it, if every plan keeps somebody. A branch that loses its last child goes
// with it when it was a leaf once: two of one name could not be told apart.
func (p *player) removeOne(t *rapid.T) {
	at := between(t, "removed", 0, len(p.consumers)-1)
	up := p.consumers[at].parent
	for up >= 0 && p.consumers[up].opened && p.children(up) == 1 {
		at, up = up, p.consumers[up].parent
	}
	path, up := p.consumers[at].path, p.consumers[at].parent
	to, kept := make([]int, len(p.consumers)), 0
	for i, c := range p.consumers {
		if to[i] = -1; !below(c.path, path) {
			to[i] = kept
			kept++
		}
	}
	for i := range p.slots {
		if !slices.ContainsFunc(p.slots[i].members, func(e slotMember) bool { return to[e.consumer] >= 0 }) {
			return
		}
	}
	p.forsake(func(consumer string) bool { return below(consumer, path) })
	p.renumber(to)
	if up >= 0 && p.children(to[up]) == 0 {
		p.consumers[to[up]].leaf = true
		p.redraw(t, to[up])
	}
}

// children is how many children a consumer has.
func (s *site) children(of int) (n int) {
	for _, c := range s.consumers {
		if c.parent == of {
			n++
		}
	}
	return n
}

// renumber leaves consumers out and gives the others new rows.
func (s *site) renumber(to []int) {
	var list []consumer
	gone := map[string]bool{}
	for i, c := range s.consumers {
		if to[i] < 0 {
			gone[c.path] = true
			continue
		}
		if c.parent >= 0 {
			c.parent = to[c.parent]
		}
		list = append(list, c)
	}
	s.consumers, s.listed = list, nil
	for i := range s.slots {
		s.slots[i].everywhere(func() {
			p := &s.slots[i]
			p.members = slices.DeleteFunc(p.members, func(e slotMember) bool { return to[e.consumer] < 0 })
			for k := range p.members {
				e := &p.members[k]
				e.consumer = to[e.consumer]
				// Windows may have a list in common.
				e.lendTo = slices.DeleteFunc(slices.Clone(e.lendTo), func(path string) bool { return gone[path] })
				e.borrowFrom = slices.DeleteFunc(slices.Clone(e.borrowFrom), func(path string) bool {
					return gone[path]
				})
			}
		})
	}
}

// redraw draws a consumer's figures in all plans and windows: it is a leaf now, or none any more.
func (s *site) redraw(t *rapid.T, consumer int) {
	for i := range s.slots {
		p := &s.slots[i]
		p.everywhere(func() {
			for k := range p.members {
				if p.members[k].consumer == consumer {
					s.drawMember(t, p, k)
				}
			}
		})
	}
}

// addOne adds a consumer, at times below one that was a leaf so far.
func (p *player) addOne(t *rapid.T) {
	c := consumer{parent: between(t, "parent", -1, len(p.consumers)-1), leaf: true, rank: choose(t, "rank", 0, 0, 1, 2),
		grace: choose(t, "grace", graces...)}
	if c.parent >= 0 && p.consumers[c.parent].depth == 3 || len(p.consumers) == len(numbers) {
		return
	}
	at := len(p.consumers)
	if c.parent >= 0 {
		up := &p.consumers[c.parent]
		c.depth, c.path = up.depth+1, up.path
		if up.leaf {
			up.leaf, up.opened = false, true
			p.forsake(func(path string) bool { return path == up.path })
			p.redraw(t, c.parent)
		}
	}
	p.coined++
	c.path += fmt.Sprintf("/n%d", p.coined)
	p.consumers, p.listed = append(p.consumers, c), nil
	p.changes["added"]++
	for i := range p.slots {
		s := &p.slots[i]
		if c.parent >= 0 && !s.takesPart(c.parent) || once(t, "out", 6) {
			continue
		}
		s.everywhere(func() {
			policy := s.members[0].policy // of some branch
			if c.parent >= 0 {
				policy = s.member(c.parent).policy
			}
			s.members = append(s.members, slotMember{consumer: at, policy: policy})
			p.drawMember(t, s, len(s.members)-1)
		})
	}
}

// renameOne gives a consumer another name, and all below it other paths.
func (p *player) renameOne(t *rapid.T) {
	c := &p.consumers[between(t, "renamed", 0, len(p.consumers)-1)]
	old := c.path
	p.coined++
	now := fmt.Sprintf("%s/r%d", old[:strings.LastIndex(old, "/")], p.coined)
	to := func(path string) string {
		if below(path, old) {
			return now + path[len(old):]
		}
		return path
	}
	was := map[string]bool{}
	for i := range p.consumers {
		if c := &p.consumers[i]; below(c.path, old) {
			was[c.path], c.was, c.path = true, c.path, to(c.path)
		}
	}
	for i := range p.slots {
		p.slots[i].everywhere(func() {
			for _, e := range p.slots[i].members {
				for _, list := range [][]string{e.lendTo, e.borrowFrom} {
					for k := range list {
						list[k] = to(list[k])
					}
				}
			}
		})
	}
	for _, rows := range p.rows {
		for i := range rows {
			rows[i].Consumer = to(rows[i].Consumer)
		}
	}
	key := func(k oracle.Key) oracle.Key {
		if was[k.Consumer] || !p.orphans[k] { // orphans of consumers that are gone keep their names
			k.Consumer = to(k.Consumer)
		}
		return k
	}
	for i := range p.last.Held {
		u := &p.last.Held[i]
		u.Key, u.Lender = key(u.Key), to(u.Lender)
	}
	place := func(h holding) holding { return holding{key(h.Key), h.host} }
	p.held, p.leaving = rekeyed(p.held, place), rekeyed(p.leaving, place)
	p.wanted, p.rules, p.orphans = rekeyed(p.wanted, key), rekeyed(p.rules, key), rekeyed(p.orphans, key)
	p.changes["renamed"]++
}

// rekeyed is a map with other keys.
func rekeyed[K comparable, V any](m map[K]V, key func(K) K) map[K]V {
	now := map[K]V{}
	for k, v := range m {
		now[key(k)] = v
	}
	return now
}

// forsake forgets what consumers want that are to go; what they hold will be orphans'.
func (p *player) forsake(goes func(path string) bool) {
	for source, rows := range p.rows {
		p.rows[source] = slices.DeleteFunc(rows, func(r oracle.Demand) bool { return goes(r.Consumer) })
	}
	for h, n := range p.held { // what was an orphan's before has no place to lose
		if n > 0 && goes(h.Consumer) && !p.orphans[h.Key] && !p.forced {
			p.forced = true
			p.changes["removed by force"]++
		}
	}
	for k := range p.wanted {
		if goes(k.Consumer) {
			delete(p.wanted, k)
			p.orphans[k] = true
		}
	}
}
