package verify

import "slices"

// pool is the pool of a consumer of an MD plan: what it owns itself, and what is lent in it; the root's is the public
// one.
type pool struct {
	at     string
	ok     []rested  // its parcels on ok hosts
	shut   [][]int64 // what is held through it on the others, which is all they count (D-4)
	fits   map[sizeKey]int64
	shutBy map[sizeKey]int64
	leaf   map[string]bool                  // the leaves for which it exists; nil: all
	fit    func(size, amount []int64) int64 // how many units of a size an amount of a host takes
}

// rested is a parcel with what of it reaches a pool.
type rested struct {
	host  *host
	owner string
	rest  []int64
	whole []int64 // of a parcel that the pool's consumer owns: all of it
}

func newPool(at string) *pool {
	return &pool{at: at, fits: map[sizeKey]int64{}, shutBy: map[sizeKey]int64{}, fit: fitOf}
}

// exists tells whether there is anything that a leaf draws on through the pool.
func (p *pool) exists(leaf string) bool { return p.leaf == nil || p.leaf[leaf] }

// capacity is how many units of a size the pool would take were it empty (MD-11).
func (p *pool) capacity(size []int64) int64 {
	k := keyOf(size)
	n, ok := p.fits[k]
	if !ok {
		for _, c := range p.ok {
			n += p.fit(size, c.rest)
		}
		p.fits[k] = n
	}
	s, ok := p.shutBy[k]
	if !ok {
		for _, c := range p.shut {
			s += p.fit(size, c)
		}
		p.shutBy[k] = s
	}
	return n + s
}

// through is how many units of a pile are held through a pool, and how many of them are under reclaim; sure is false
// when that is not told.
func (p *pile) through(pool string) (n, leaving int64, sure bool) {
	for l, units := range p.label {
		if l.pool == pool {
			n += units
		}
	}
	switch {
	case n == p.units:
		return n, p.leaving, true
	case p.leaving == p.units:
		return n, n, true
	}
	return n, max(0, n+p.leaving-p.units), n == 0 || p.leaving == 0
}

// blur finds the plans of which it is not known of what pools some units are.
func (v *verifier) blur() {
	v.hazy, v.owned, v.spreads = map[string]bool{}, map[string]map[string]*pool{}, map[string]*spread{}
	for _, t := range v.m.policy.plans {
		v.hazy[t.name] = t.md && v.strange[t.name]
	}
	for at, labels := range v.given { // a gang has its own parcels with those of pools, whose figures were made before
		if t := v.m.policy.byName[at.plan]; t != nil && t.md && v.waited[at.key] && labels[label{origin: "owned"}] > 0 {
			v.hazy[at.plan] = true
		}
	}
	for at, p := range v.m.piles {
		if t := v.m.policy.byName[at.plan]; t != nil && t.md && (p.loose || p.label[label{}] > 0) {
			v.hazy[at.plan] = true
		}
	}
}

// poolsOf makes the pools of a plan, by consumer.
func (v *verifier) poolsOf(t *plan) map[string]*pool {
	if e := v.m.estates[t.name]; e == nil || len(e.parts) == 0 {
		return map[string]*pool{"/": v.public(t)}
	}
	if v.owned[t.name] == nil {
		v.owned[t.name] = v.ownedPools(t)
	}
	return v.owned[t.name]
}

// public makes the pool of a plan in which nobody owns anything. What ok hosts take is kept until hosts or policy
// change.
func (v *verifier) public(t *plan) *pool {
	if v.pools == nil {
		v.pools = map[string]*pool{}
	}
	p := v.pools[t.name]
	if p == nil || v.resized {
		p = newPool("/")
		if t.device != "" {
			p.fit = func(size, amount []int64) int64 { return v.m.fitOn(t, size, amount) }
		}
		for _, name := range sortedKeys(v.m.hosts) {
			if h := v.m.hosts[name]; h.plan == t.name && h.state == "ok" {
				p.ok = append(p.ok, rested{host: h, owner: "/", rest: h.cap, whole: h.cap})
			}
		}
		v.pools[t.name] = p
	}
	p.shut, p.shutBy = p.shut[:0], map[sizeKey]int64{}
	v.hostsOf(t, func(h *host, in bool) {
		if !in || h.state != "ok" {
			p.shut = append(p.shut, v.m.used(h.name, t.name, len(v.m.policy.dimensions)))
		}
	})
	return p
}

// ownedPools makes the pools of a plan in which consumers own hosts.
func (v *verifier) ownedPools(t *plan) map[string]*pool {
	e := v.m.estates[t.name]
	all := map[string]*pool{"/": newPool("/")}
	for _, path := range v.m.policy.paths {
		if t.member[path] && !v.m.policy.leaf(path) {
			all[path] = newPool(path)
			all[path].leaf = map[string]bool{}
		}
	}
	for _, leaf := range v.m.policy.leaves(t) {
		for k := range e.owners() {
			if p := all[meet(leaf, k)]; p != nil && p.leaf != nil {
				p.leaf[leaf] = true
			}
		}
	}
	v.hostsOf(t, func(h *host, in bool) {
		on := v.m.holders(t, h.name)
		for _, c := range v.m.parcels(e, t, h.name) {
			for at := c.owner; at != ""; at = parentOf(at) {
				p := all[at]
				switch {
				case p == nil: // a leaf's own
				case in && h.state == "ok":
					one := rested{host: h, owner: c.owner, rest: e.rest(on, c, h.name, at)}
					if c.owner == at {
						one.whole = c.size
					}
					p.ok = append(p.ok, one)
				default:
					p.shut = append(p.shut, on.sum(len(c.size), func(x holder) bool {
						return x.owner == c.owner && x.pool == at
					}))
				}
			}
		}
	})
	return all
}

// owners are those who own parcels.
func (e *estate) owners() map[string]bool {
	all := map[string]bool{}
	for _, list := range e.split {
		for _, p := range list {
			all[p.owner] = true
		}
	}
	return all
}

// meet is where the ways up from two consumers meet.
func meet(a, b string) string {
	for ; a != "/" && !under(b, a); a = parentOf(a) {
	}
	return a
}

// lenders are those who lend a parcel in a pool: its owner and all above it, below the pool.
func lenders(owner, pool string) (list []string) {
	for ; owner != pool && owner != "/" && owner != ""; owner = parentOf(owner) {
		list = append(list, owner)
	}
	return list
}

// holder is what a leaf holds on an owner's parcel of a host.
type holder struct {
	leaf, owner, pool string
	size              []int64
	units, leaving    int64 // leaving: at most so many are under reclaim
	lots              map[int64]int64
	gang              bool // of a sub-allocation that is one
}

// holders are what a plan's leaves hold on a host.
type holders []holder

func (m *model) holders(t *plan, host string) (list holders) {
	for at, p := range m.onHost[host] {
		if at.plan != t.name {
			continue
		}
		for l, n := range p.label {
			list = append(list, holder{at.consumer, l.owner(at.consumer), l.pool, p.size, n, min(n, p.leaving), p.lots,
				m.subs[at.key].gang()})
		}
	}
	return list
}

// sum is what the units of some take.
func (h holders) sum(dims int, ok func(x holder) bool) []int64 {
	v := make([]int64, dims)
	for _, x := range h {
		if ok(x) {
			plus(v, x.size, x.units)
		}
	}
	return v
}

// rest is what of a parcel reaches a pool: all of its own; of what is lent what each lender's side neither uses nor
// reserves (MD-8).
func (e *estate) rest(on holders, c parcel, host, pool string) []int64 {
	rest, line := slices.Clone(c.size), lenders(c.owner, pool)
	for _, x := range line {
		top := line[len(line)-1]
		inside := on.sum(len(rest), func(h holder) bool { return h.owner == c.owner && under(h.leaf, x) })
		near := on.sum(len(rest), func(h holder) bool {
			return h.owner == c.owner && under(h.leaf, top) && !under(h.leaf, x)
		})
		keeps := e.aside[aside{x, c.owner, host}]
		for d, n := range inside {
			if keeps != nil {
				n = max(n, keeps[d])
			}
			rest[d] = max(0, min(rest[d], c.size[d]-n-near[d]))
		}
	}
	return rest
}
