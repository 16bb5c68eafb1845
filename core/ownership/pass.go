package ownership

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// piece is a vector of a host that a claim of a consumer took.
type piece struct {
	node   plan.Node
	host   int32
	rule   int32
	number int64
	amount []int64
	busy   bool // of the part that it belongs to; told only of what was had
}

// pass is one pass: what it goes by and what it found so far.
type pass struct {
	g          *Ground
	hosts      int
	dims       int
	next       int64
	had        [][]piece // by Node: what was had, by host and rule
	got        [][]piece // by Node: what was taken, by host and rule
	use        [][]Use   // by host
	unmet      []int32
	configured [][]int64
	touched    int64
}

func newPass(g *Ground, had *Deeds) *pass {
	nodes, dims := g.Tree.Len(), len(g.Cap)
	p := &pass{
		g: g, hosts: len(g.Cap[0]), dims: dims, next: had.Next,
		had: make([][]piece, nodes), got: make([][]piece, nodes),
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
		one := piece{node: n, host: had.Host[i], rule: had.Rule[i], number: had.Number[i], amount: make([]int64, dims)}
		if int(one.rule) >= len(g.Window.Own[n]) {
			one.rule = None
		}
		for d := range dims {
			one.amount[d] = had.Amount[d][i]
		}
		one.busy = !zero(p.used(n, one.host))
		p.had[n] = append(p.had[n], one)
	}
	p.touched = int64(len(had.Node) + len(g.Use))
	return p
}

// used is what is held on the part that a consumer has of a host: on its parcel and on those of all below it.
func (p *pass) used(n plan.Node, h int32) []int64 {
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
func (p *pass) domains() {
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
func (p *pass) deeds() *Deeds {
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
type claim struct {
	node plan.Node
	rule int32
}

// domain is what the children of a consumer divide among themselves.
type domain struct {
	*pass
	host   []int32   // those of which the domain has something, in host order
	whole  [][]int64 // by host: what the domain has
	left   [][]int64 // by host: less what was taken
	load   []int64   // by host, 2⁴⁸ths
	begun  []bool    // by host: something was taken of it in this pass
	had    [][]piece // by host: what the children had, in tree order
	lister [][]plan.Node
	claims []claim // in order
	place  map[claim]int
	last   map[plan.Node]int // the place of a consumer's last claim
	part   map[part]int64    // the numbers of parts taken
}

type part struct {
	node plan.Node
	host int32
}

// domain lays out the domain of a consumer's children; nil when none of them has a rule.
func (p *pass) domain(n plan.Node) *domain {
	d := &domain{pass: p, place: map[claim]int{}, last: map[plan.Node]int{}, part: map[part]int64{}}
	d.line(n)
	if len(d.claims) == 0 {
		return nil
	}
	d.whole, d.left, d.load = make([][]int64, p.hosts), make([][]int64, p.hosts), make([]int64, p.hosts)
	d.begun, d.had, d.lister = make([]bool, p.hosts), make([][]piece, p.hosts), make([][]plan.Node, p.hosts)
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
	p.touched += int64(len(d.host))
	return d
}

// line puts the claims of a domain in order: by rank, of each consumer in the order of
// its list, `remaining` after all others.
func (d *domain) line(n plan.Node) {
	var children []plan.Node
	for c := d.g.Tree.First[n]; c != plan.None; c = d.g.Tree.Next[c] {
		children = append(children, c)
	}
	slices.SortStableFunc(children, func(a, b plan.Node) int { return cmp.Compare(d.g.Rank[a], d.g.Rank[b]) })
	for _, remaining := range []bool{false, true} {
		for _, c := range children {
			for i, rule := range d.g.Window.Own[c] {
				if rule.Remaining == remaining {
					one := claim{c, int32(i)}
					d.place[one], d.last[c] = len(d.claims), len(d.claims)
					d.claims = append(d.claims, one)
				}
			}
		}
	}
}

// close hands the children what they took, by host and rule.
func (d *domain) close() {
	for _, c := range d.claims {
		slices.SortFunc(d.got[c.node], func(a, b piece) int {
			return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.rule, b.rule))
		})
	}
}

// toCome tells whether a piece was had by a claim that is still to come while the claim at a
// place takes. Pieces of no claim are until their consumer's last, but not against its own claims.
func (d *domain) toCome(one piece, at int) bool {
	if one.rule == None {
		last, any := d.last[one.node]
		return any && last > at && one.node != d.claims[at].node
	}
	return d.place[claim{one.node, one.rule}] > at
}

// kept is what is kept on a host for claims to come: what they had and is busy, at most what is left.
func (d *domain) kept(h int32, at int) []int64 {
	sum := make([]int64, d.dims)
	for _, one := range d.had[h] {
		if one.busy && d.toCome(one, at) {
			add(sum, one.amount)
		}
	}
	return least(sum, d.left[h])
}

// open is what is left of a host less what is kept on it.
func (d *domain) open(h int32, at int) []int64 {
	v := slices.Clone(d.left[h])
	for i, k := range d.kept(h, at) {
		v[i] -= k
	}
	return v
}

func zero(v []int64) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

func add(to, v []int64) {
	for i, x := range v {
		to[i] = share.Add(to[i], x)
	}
}

func least(a, b []int64) []int64 {
	v := slices.Clone(a)
	for i, x := range b {
		v[i] = min(v[i], x)
	}
	return v
}
