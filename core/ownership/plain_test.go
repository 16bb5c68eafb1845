package ownership

// The pass as docs/ownership.md says it, slow and obvious: what the fast one is held against.

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// piece is a vector of a host that a claim of a consumer took.
type plainPiece struct {
	node   plan.Node
	host   int32
	rule   int32
	number int64
	amount []int64
	busy   bool // of the part that it belongs to; told only of what was had
}

// pass is one pass: what it goes by and what it found so far.
type plainPass struct {
	g          *Ground
	hosts      int
	dims       int
	next       int64
	had        [][]plainPiece // by Node: what was had, by host and rule
	got        [][]plainPiece // by Node: what was taken, by host and rule
	use        [][]Use        // by host
	unmet      []int32
	staysOpen  bool // a claim is unmet, or would rather have other hosts
	configured [][]int64
}

func newPlain(g *Ground, had *Deeds) *plainPass {
	nodes, dims := g.Tree.Len(), len(g.Cap)
	p := &plainPass{
		g: g, hosts: len(g.Cap[0]), dims: dims, next: had.Next,
		had: make([][]plainPiece, nodes), got: make([][]plainPiece, nodes),
		unmet: slices.Repeat([]int32{None}, nodes), configured: make([][]int64, dims),
	}
	for d := range p.configured {
		p.configured[d] = make([]int64, nodes)
	}
	p.use = make([][]Use, p.hosts)
	for _, u := range g.Use {
		p.use[u.Host] = append(p.use[u.Host], u)
	}
	for i, n := range had.Node {
		one := plainPiece{node: n, host: had.Host[i], rule: had.Rule[i], number: had.Number[i],
			amount: make([]int64, dims)}
		if int(one.rule) >= len(g.Window.Own[n]) {
			one.rule = None
		}
		for d := range dims {
			one.amount[d] = had.Amount[d][i]
		}
		one.busy = !zero(p.used(n, one.host))
		p.had[n] = append(p.had[n], one)
	}
	return p
}

// used is what is held on the part that a consumer has of a host: on its parcel and on those of all below it.
func (p *plainPass) used(n plan.Node, h int32) []int64 {
	sum := make([]int64, p.dims)
	for _, u := range p.use[h] {
		if n <= u.Owner && u.Owner < p.g.Tree.End[n] {
			for d, v := range u.Amount {
				sum[d] = share.Add(sum[d], v)
			}
		}
	}
	return sum
}

// domains goes from the root down, parents before their children.
func (p *plainPass) domains() {
	for n := range plan.Node(p.g.Tree.Len()) {
		if d := p.domain(n); d != nil {
			for at := range d.claims {
				d.carryOut(at)
			}
			d.close()
		}
	}
}

// deeds gives what was taken as columns.
func (p *plainPass) deeds() *Deeds {
	out := &Deeds{Next: p.next, Amount: make([][]int64, p.dims)}
	for _, list := range p.got {
		for _, one := range list {
			out.Node, out.Host = append(out.Node, one.node), append(out.Host, one.host)
			out.Rule, out.Number = append(out.Rule, one.rule), append(out.Number, one.number)
			for d, v := range one.amount {
				out.Amount[d] = append(out.Amount[d], v)
			}
		}
	}
	return out
}

// claim is a rule of a consumer.
type plainClaim struct {
	node plan.Node
	rule int32
}

// domain is what the children of a consumer divide among themselves.
type plainDomain struct {
	*plainPass
	host   []int32        // those of which the domain has something, in host order
	whole  [][]int64      // by host: what the domain has
	left   [][]int64      // by host: less what was taken
	load   []int64        // by host, 2⁴⁸ths
	begun  []bool         // by host: something was taken of it in this pass
	had    [][]plainPiece // by host: what the children had, in tree order
	lister [][]plan.Node
	claims []plainClaim // in order
	place  map[plainClaim]int
	last   map[plan.Node]int   // the place of a consumer's last claim
	part   map[plainPart]int64 // the numbers of parts taken
}

type plainPart struct {
	node plan.Node
	host int32
}

// domain lays out the domain of a consumer's children; nil when none of them has a rule.
func (p *plainPass) domain(n plan.Node) *plainDomain {
	d := &plainDomain{plainPass: p, place: map[plainClaim]int{}, last: map[plan.Node]int{}, part: map[plainPart]int64{}}
	d.line(n)
	if len(d.claims) == 0 {
		return nil
	}
	d.whole, d.left, d.load = make([][]int64, p.hosts), make([][]int64, p.hosts), make([]int64, p.hosts)
	d.begun, d.had, d.lister = make([]bool, p.hosts), make([][]plainPiece, p.hosts), make([][]plan.Node, p.hosts)
	for h := range p.hosts {
		d.whole[h] = make([]int64, p.dims)
		if n == plan.Root {
			for i := range p.dims {
				d.whole[h][i] = p.g.Cap[i][h]
			}
		}
	}
	if n != plan.Root {
		for _, one := range p.got[n] {
			add(d.whole[one.host], one.amount)
		}
	}
	for h := range int32(p.hosts) {
		d.left[h] = slices.Clone(d.whole[h])
		if !zero(d.whole[h]) {
			d.host = append(d.host, h)
		}
		for i, v := range p.used(n, h) {
			d.load[h] = max(d.load[h], share.Fraction(v, d.whole[h][i]))
		}
	}
	for c := p.g.Tree.First[n]; c != plan.None; c = p.g.Tree.Next[c] {
		for _, one := range p.had[c] {
			d.had[one.host] = append(d.had[one.host], one)
		}
		for _, rule := range p.g.Window.Own[c] {
			for _, name := range rule.HostList {
				if h := p.g.Listed(name); h >= 0 {
					d.lister[h] = append(d.lister[h], c)
				}
			}
		}
	}
	return d
}

// line puts the claims of a domain in order: by rank, of each consumer in the order of
// its list, `remaining` after all others.
func (d *plainDomain) line(n plan.Node) {
	var children []plan.Node
	for c := d.g.Tree.First[n]; c != plan.None; c = d.g.Tree.Next[c] {
		children = append(children, c)
	}
	slices.SortStableFunc(children, func(a, b plan.Node) int { return cmp.Compare(d.g.Rank[a], d.g.Rank[b]) })
	for _, remaining := range []bool{false, true} {
		for _, c := range children {
			for i, rule := range d.g.Window.Own[c] {
				if rule.Remaining == remaining {
					one := plainClaim{c, int32(i)}
					d.place[one], d.last[c] = len(d.claims), len(d.claims)
					d.claims = append(d.claims, one)
				}
			}
		}
	}
}

// close hands the children what they took, by host and rule.
func (d *plainDomain) close() {
	for _, c := range d.claims {
		slices.SortFunc(d.got[c.node], func(a, b plainPiece) int {
			return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.rule, b.rule))
		})
	}
}

// toCome tells whether a piece was had by a claim that is still to come while the claim at a
// place takes. Pieces of no claim are until their consumer's last, but not against its own claims.
func (d *plainDomain) toCome(one plainPiece, at int) bool {
	if one.rule == None {
		last, any := d.last[one.node]
		return any && last > at && one.node != d.claims[at].node
	}
	return d.place[plainClaim{one.node, one.rule}] > at
}

// kept is what is kept on a host for claims to come: what they had and is busy, at most what is left.
func (d *plainDomain) kept(h int32, at int) []int64 {
	sum := make([]int64, d.dims)
	for _, one := range d.had[h] {
		if one.busy && d.toCome(one, at) {
			add(sum, one.amount)
		}
	}
	return plainLeast(sum, d.left[h])
}

// open is what is left of a host less what is kept on it.
func (d *plainDomain) open(h int32, at int) []int64 {
	v := slices.Clone(d.left[h])
	for i, k := range d.kept(h, at) {
		v[i] -= k
	}
	return v
}

// taking is a claim while it takes.
type plainTaking struct {
	*plainDomain
	plainClaim
	at   int // its place
	rule *plan.OwnRule
	had  map[int32][]int64 // by host: what the claim had
	got  map[int32]int     // by host: index into the consumer's pieces, those of this claim
}

// carryOut lets a claim take what it can, and notes what is missing.
func (d *plainDomain) carryOut(at int) {
	c := d.claims[at]
	t := &plainTaking{plainDomain: d, plainClaim: c, at: at, rule: &d.g.Window.Own[c.node][c.rule],
		had: map[int32][]int64{}, got: map[int32]int{}}
	for _, one := range d.plainPass.had[c.node] {
		if one.rule == c.rule || one.rule == None {
			if t.had[one.host] == nil {
				t.had[one.host] = make([]int64, d.dims)
			}
			add(t.had[one.host], one.amount)
		}
	}
	missing, met := t.form()
	d.staysOpen = d.staysOpen || !met || t.wants()
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

// wants tells whether the claim has less than a whole host where hosts count, or a closed one that it chose.
func (t *plainTaking) wants() bool {
	chooses := t.rule.HostList == nil && t.rule.PerHost == nil && !t.rule.Remaining
	for h, k := range t.got {
		less := t.rule.Amount == nil && !slices.Equal(t.plainDomain.got[t.node][k].amount, t.whole[h])
		if chooses && (less || t.shut(h)) {
			return true
		}
	}
	return false
}

// form takes as the rule's form says. What is missing is by how much more is configured than was got.
func (t *plainTaking) form() (missing []int64, met bool) {
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
		for _, h := range t.plainDomain.host {
			if t.in(h) {
				t.take(h, t.left[h])
			}
		}
		return make([]int64, t.dims), true
	}
}

// in tells whether a host is of the claim's group.
func (t *plainTaking) in(h int32) bool {
	return t.rule.Group < 0 || t.g.Group[t.rule.Group][h>>6]>>(h&63)&1 != 0
}

// size is how many hosts of the domain are of the claim's group.
func (t *plainTaking) size() (n int) {
	for _, h := range t.plainDomain.host {
		if t.in(h) {
			n++
		}
	}
	return n
}

// take gives the claim something of a host, if it is something.
func (t *plainTaking) take(h int32, v []int64) {
	if zero(v) {
		return
	}
	v = slices.Clone(v)
	t.begun[h] = true
	for i, x := range v {
		t.left[h][i] -= x
	}
	if k, again := t.got[h]; again {
		add(t.plainDomain.got[t.node][k].amount, v)
		return
	}
	t.got[h] = len(t.plainDomain.got[t.node])
	t.plainDomain.got[t.node] = append(t.plainDomain.got[t.node],
		plainPiece{node: t.node, host: h, rule: t.plainClaim.rule, number: t.number(h), amount: v})
}

// number is that of the consumer's part of a host: as before, or a new one.
func (t *plainTaking) number(h int32) int64 {
	key := plainPart{t.node, h}
	if n, known := t.part[key]; known {
		return n
	}
	number := t.next
	if k := slices.IndexFunc(t.plainPass.had[t.node], func(one plainPiece) bool { return one.host == h }); k >= 0 {
		number = t.plainPass.had[t.node][k].number
	} else {
		t.next++
	}
	t.part[key] = number
	return number
}

// shut tells whether a host is closed or draining.
func (p *plainPass) shut(h int32) bool { return p.g.Closed[h>>6]>>(h&63)&1 != 0 }

// own gives the hosts of the group on which the claim had something: busy ones first, the most
// loaded first; then idle ones in host order; of either closed ones last.
func (t *plainTaking) own() (host []int32) {
	busy := map[int32]bool{}
	for _, one := range t.plainPass.had[t.node] {
		busy[one.host] = busy[one.host] || one.busy
	}
	for _, h := range t.plainDomain.host {
		if _, ok := t.had[h]; ok && t.in(h) {
			host = append(host, h)
		}
	}
	slices.SortStableFunc(host, func(a, b int32) int {
		load := 0
		if busy[a] && busy[b] {
			load = cmp.Compare(t.load[b], t.load[a])
		}
		return cmp.Or(before(busy[b], busy[a]), before(t.shut(a), t.shut(b)), load)
	})
	return host
}

// candidate is a host with what it is sorted by.
type plainCandidate struct {
	host   int32
	part   bool  // something of it was taken
	kept   bool  // something of it is kept
	shut   bool  // it is closed or draining
	second bool  // public: another child lists it; kept: others than the consumer itself had something
	victim int32 // kept: rank of the first of those who had it busy
	load   int64
	had    bool // public: somebody to come had something of it
}

// cedes tells how the claim leaves a host that it had where another serves as well.
func (t *plainTaking) cedes(h int32) cession {
	for _, one := range t.plainPass.had[t.node] {
		if one.host == h && one.busy {
			return keeps
		}
	}
	counts := t.rule.Amount == nil
	switch {
	case t.shut(h) || counts && !slices.Equal(t.open(h, t.at), t.whole[h]):
		return toBetter
	case counts && slices.ContainsFunc(t.lister[h], func(n plan.Node) bool { return n != t.node }):
		return toLister
	}
	return keeps
}

// free tells whether a host is whole, public, and not closed.
func (c plainCandidate) free() bool { return !c.part && !c.kept && !c.shut }

// candidates gives the hosts of the group of which something is left, the best first.
func (t *plainTaking) candidates() []int32 {
	var list []plainCandidate
	for _, h := range t.plainDomain.host {
		if t.in(h) && !zero(t.left[h]) {
			list = append(list, t.candidate(h))
		}
	}
	slices.SortStableFunc(list, func(a, b plainCandidate) int {
		return cmp.Or(before(a.part, b.part), before(a.kept, b.kept), before(a.shut, b.shut),
			before(a.second, b.second),
			-cmp.Compare(a.victim, b.victim), cmp.Compare(a.load, b.load), before(a.had, b.had))
	})
	host := make([]int32, len(list))
	for i, c := range list {
		host[i] = c.host
	}
	return host
}

// candidate tells what a host is sorted by.
func (t *plainTaking) candidate(h int32) plainCandidate {
	c := plainCandidate{host: h, part: t.begun[h], kept: !zero(t.kept(h, t.at)), shut: t.shut(h),
		load: t.load[h]}
	if !c.kept {
		for _, n := range t.lister[h] {
			c.second = c.second || n != t.node
		}
		for _, one := range t.plainDomain.had[h] {
			c.had = c.had || t.toCome(one, t.at)
		}
		return c
	}
	c.victim = -1
	for _, one := range t.plainDomain.had[h] {
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
func (t *plainTaking) list() (missing []int64, met bool) {
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
func (t *plainTaking) lacking(name string, h int32, d int) int64 {
	if h < 0 || zero(t.capacity(h)) {
		return t.g.Known(name, d)
	}
	return t.g.Cap[d][h] - t.mine(h)[d]
}

func (t *plainTaking) capacity(h int32) []int64 {
	v := make([]int64, t.dims)
	for i := range v {
		v[i] = t.g.Cap[i][h]
	}
	return v
}

// mine is what the consumer took of a host so far, by all its claims.
func (t *plainTaking) mine(h int32) []int64 {
	sum := make([]int64, t.dims)
	for _, one := range t.plainDomain.got[t.node] {
		if one.host == h {
			add(sum, one.amount)
		}
	}
	return sum
}

// count takes a number of hosts, whole if it can.
func (t *plainTaking) count(want int64) (missing []int64, met bool) {
	own := t.own()
	again := func(what cession) {
		for _, h := range own {
			_, already := t.got[h]
			if !already && int64(len(t.got)) < want && t.cedes(h) == what {
				t.take(h, t.open(h, t.at))
			}
		}
	}
	others := func(serves func(c plainCandidate) bool) {
		for _, h := range t.candidates() {
			_, already := t.got[h]
			if !already && int64(len(t.got)) < want && serves(t.candidate(h)) {
				t.take(h, t.left[h])
			}
		}
	}
	again(keeps)
	others(func(c plainCandidate) bool { return c.free() && !c.second && c.load == 0 })
	again(toLister)
	others(plainCandidate.free)
	again(toBetter)
	others(func(plainCandidate) bool { return true })
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

// amount takes hosts that fit in what is missing, and with `partial` parts of hosts for the rest.
func (t *plainTaking) amount() (missing []int64, met bool) {
	short := slices.Clone(t.rule.Amount)
	fit := func(h int32, v []int64) {
		if fits(v, short) {
			t.take(h, v)
			pay(short, v)
		}
	}
	turns := func(own, other func(h int32)) {
		for _, what := range []cession{keeps, toBetter} {
			for _, h := range t.own() {
				if t.cedes(h) == what {
					own(h)
				}
			}
			for _, h := range t.candidates() {
				if what == toBetter || t.candidate(h).free() {
					other(h)
				}
			}
		}
	}
	turns(func(h int32) { fit(h, plainLeast(t.had[h], t.left[h])) },
		func(h int32) { fit(h, slices.Clone(t.left[h])) })
	if t.rule.Partial && owing(short) {
		cut := func(h int32) {
			v := plainCut(short, t.left[h])
			t.take(h, v)
			pay(short, v)
		}
		turns(cut, cut)
	}
	missing = make([]int64, t.dims)
	for d, v := range short {
		missing[d] = max(0, v)
	}
	return missing, !owing(short)
}

// perHost takes a part of each host.
func (t *plainTaking) perHost() (missing []int64, met bool) {
	missing, met = make([]int64, t.dims), true
	for _, h := range t.plainDomain.host {
		if !t.in(h) {
			continue
		}
		ask := plainAsked(t.rule.PerHost, t.whole[h])
		give := plainLeast(ask, t.left[h])
		t.take(h, give)
		for d := range ask {
			met = met && give[d] == ask[d]
			missing[d] = share.Add(missing[d], ask[d]-give[d])
		}
	}
	return missing, met
}

func plainLeast(a, b []int64) []int64 { return least(make([]int64, len(a)), a, b) }

func plainCut(most, v []int64) []int64 { return cut(make([]int64, len(v)), most, v) }

func plainAsked(rule []plan.Part, whole []int64) []int64 {
	return asked(make([]int64, len(whole)), rule, whole)
}
