package ownership

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// taking is a claim while it takes.
type taking struct {
	*domain
	claim
	at   int // its place
	rule *plan.OwnRule
	had  map[int32][]int64 // by host: what the claim had
	got  map[int32]int     // by host: index into the consumer's pieces, those of this claim
}

// carryOut lets a claim take what it can, and notes what is missing.
func (d *domain) carryOut(at int) {
	c := d.claims[at]
	t := &taking{domain: d, claim: c, at: at, rule: &d.g.Window.Own[c.node][c.rule], had: map[int32][]int64{}, got: map[int32]int{}}
	for _, one := range d.pass.had[c.node] {
		if one.rule == c.rule || one.rule == None {
			if t.had[one.host] == nil {
				t.had[one.host] = make([]int64, d.dims)
			}
			add(t.had[one.host], one.amount)
		}
	}
	missing, met := t.form()
	if !met && (d.unmet[c.node] == None || c.rule < d.unmet[c.node]) {
		d.unmet[c.node] = c.rule
	}
	for i := range d.dims {
		sum := missing[i]
		for _, k := range t.got {
			sum = share.Add(sum, d.got[c.node][k].amount[i])
		}
		d.configured[i][c.node] = share.Add(d.configured[i][c.node], sum)
	}
}

// form takes as the rule's form says. What is missing is by how much more is configured than was got.
func (t *taking) form() (missing []int64, met bool) {
	switch r := t.rule; {
	case r.HostList != nil:
		return t.list()
	case r.Hosts != plan.Unlimited:
		return t.count(r.Hosts)
	case r.Percent != plan.Unlimited:
		n, _ := share.Scale(int64(t.size()), r.Percent, hundred)
		return t.count(n)
	case r.Amount != nil:
		return t.amount()
	case r.PerHost != nil:
		return t.perHost()
	default:
		for _, h := range t.domain.host {
			if t.in(h) {
				t.take(h, t.left[h])
			}
		}
		return make([]int64, t.dims), true
	}
}

// hundred is 100 %, in thousandths of a percent.
const hundred = 100_000

// in tells whether a host is of the claim's group.
func (t *taking) in(h int32) bool {
	return t.rule.Group < 0 || t.g.Group[t.rule.Group][h>>6]>>(h&63)&1 != 0
}

// size is how many hosts of the domain are of the claim's group.
func (t *taking) size() (n int) {
	for _, h := range t.domain.host {
		if t.in(h) {
			n++
		}
	}
	return n
}

// take gives the claim something of a host, if it is something.
func (t *taking) take(h int32, v []int64) {
	if zero(v) {
		return
	}
	v = slices.Clone(v)
	t.begun[h] = true
	for i, x := range v {
		t.left[h][i] -= x
	}
	if k, again := t.got[h]; again {
		add(t.domain.got[t.node][k].amount, v)
		return
	}
	t.got[h] = len(t.domain.got[t.node])
	t.domain.got[t.node] = append(t.domain.got[t.node], piece{node: t.node, host: h, rule: t.claim.rule, number: t.number(h), amount: v})
}

// number is that of the consumer's part of a host: as before, or a new one.
func (t *taking) number(h int32) int64 {
	key := part{t.node, h}
	if n, known := t.part[key]; known {
		return n
	}
	number := t.next
	if k := slices.IndexFunc(t.pass.had[t.node], func(one piece) bool { return one.host == h }); k >= 0 {
		number = t.pass.had[t.node][k].number
	} else {
		t.next++
	}
	t.part[key] = number
	return number
}

// own gives the hosts of the group on which the claim had something: busy ones first, the most
// loaded first; then idle ones in host order.
func (t *taking) own() (host []int32) {
	busy := map[int32]bool{}
	for _, one := range t.pass.had[t.node] {
		busy[one.host] = busy[one.host] || one.busy
	}
	for _, h := range t.domain.host {
		if _, ok := t.had[h]; ok && t.in(h) {
			host = append(host, h)
		}
	}
	slices.SortStableFunc(host, func(a, b int32) int {
		switch {
		case busy[a] && busy[b]:
			return cmp.Compare(t.load[b], t.load[a])
		case busy[a]:
			return -1
		case busy[b]:
			return 1
		}
		return 0
	})
	return host
}

// candidate is a host with what it is sorted by.
type candidate struct {
	host   int32
	part   bool  // something of it was taken
	kept   bool  // something of it is kept
	second bool  // public: another child lists it; kept: others than the consumer itself had something
	victim int32 // kept: rank of the first of those who had it busy
	load   int64
	had    bool // public: somebody to come had something of it
}

// candidates gives the hosts of the group of which something is left, the best first.
func (t *taking) candidates() []int32 {
	var list []candidate
	for _, h := range t.domain.host {
		if t.in(h) && !zero(t.left[h]) {
			list = append(list, t.candidate(h))
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(before(a.part, b.part), before(a.kept, b.kept), before(a.second, b.second),
			-cmp.Compare(a.victim, b.victim), cmp.Compare(a.load, b.load), before(a.had, b.had))
	})
	host := make([]int32, len(list))
	for i, c := range list {
		host[i] = c.host
	}
	t.touched += int64(len(list))
	return host
}

// candidate tells what a host is sorted by.
func (t *taking) candidate(h int32) candidate {
	c := candidate{host: h, part: t.begun[h], kept: !zero(t.kept(h, t.at)), load: t.load[h]}
	if !c.kept {
		for _, n := range t.lister[h] {
			c.second = c.second || n != t.node
		}
		for _, one := range t.domain.had[h] {
			c.had = c.had || t.toCome(one, t.at)
		}
		return c
	}
	c.victim = -1
	for _, one := range t.domain.had[h] {
		if !t.toCome(one, t.at) {
			continue
		}
		c.second = c.second || one.node != t.node
		if rank := t.g.Rank[one.node]; one.busy && (c.victim < 0 || rank < c.victim) {
			c.victim = rank
		}
	}
	return c
}

// before orders those for which something does not hold before those for which it does.
func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// list takes the hosts listed.
func (t *taking) list() (missing []int64, met bool) {
	missing, met = make([]int64, t.dims), true
	for _, name := range t.rule.HostList {
		h := t.g.Listed(name)
		if h >= 0 {
			t.take(h, t.left[h])
		}
		if h >= 0 && !zero(t.whole[h]) && slices.Equal(t.mine(h), t.whole[h]) {
			continue
		}
		met = false
		for i := range missing {
			missing[i] = share.Add(missing[i], t.lacking(name, h, i))
		}
	}
	return missing, met
}

// lacking is what the table says of a listed host, less what of it is the consumer's.
func (t *taking) lacking(name string, h int32, d int) int64 {
	if h < 0 || zero(t.capacity(h)) {
		return t.g.Known(name, d)
	}
	return t.g.Cap[d][h] - t.mine(h)[d]
}

func (t *taking) capacity(h int32) []int64 {
	v := make([]int64, t.dims)
	for i := range v {
		v[i] = t.g.Cap[i][h]
	}
	return v
}

// mine is what the consumer took of a host so far, by all its claims.
func (t *taking) mine(h int32) []int64 {
	sum := make([]int64, t.dims)
	for _, one := range t.domain.got[t.node] {
		if one.host == h {
			add(sum, one.amount)
		}
	}
	return sum
}

// count takes a number of hosts, whole if it can.
func (t *taking) count(want int64) (missing []int64, met bool) {
	for _, h := range t.own() {
		if int64(len(t.got)) < want {
			t.take(h, t.open(h, t.at))
		}
	}
	for _, h := range t.candidates() {
		if _, already := t.got[h]; !already && int64(len(t.got)) < want {
			t.take(h, t.left[h])
		}
	}
	missing = make([]int64, t.dims)
	short := want - int64(len(t.got))
	if short <= 0 {
		return missing, true
	}
	hosts := int64(0)
	for h := range int32(t.hosts) {
		if v := t.capacity(h); t.in(h) && !zero(v) {
			hosts++
			add(missing, v)
		}
	}
	for i := range missing {
		missing[i] = share.Mul(short, missing[i]/max(1, hosts))
	}
	return missing, false
}
