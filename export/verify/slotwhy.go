package verify

// whySlot is why a unit of a slot plan is short, as docs/slots.md says, while nothing is promised there. sure is false
// where the tables do not tell.
func (v *verifier) whySlot(p *plan, s *sub) (r found, blocker string, sure bool) {
	f := v.figures[p.name]
	if f == nil || f.vague || p.exclusive != "" || v.switched && v.lastCycle > 0 || p.lead > 0 {
		return r, "", false
	}
	host := v.slotHosts(p, s)
	if host == "no_host_matches" || host == "too_big" {
		return found{reason: host}, "", true
	}
	k, leaf := s.size[0], s.consumer
	needs := f.lacks(v.m.policy, func(path string) int64 { // of reserves, with one unit more
		n := v.m.account(p.name, path).slots
		if under(leaf, path) {
			n += k
		}
		return n
	})
	for path := leaf; path != "/"; path = parentOf(path) {
		if e := f.w.entry[path]; e.most != none && v.m.account(p.name, path).slots+k+needs[path] > e.most {
			return found{reason: "consumer_limit"}, path, true
		}
	}
	a, e := v.m.account(p.name, leaf), f.w.entry[leaf]
	switch {
	case host == "max_per_host":
		return found{reason: host}, "", true
	case e.kind == "hybrid":
		return v.whyHybrid(p, f, a.slots, k, f.quota[leaf], host), "", true
	case v.brokeBelow(p.name, leaf, "/") != "":
		return found{reason: "budget"}, leaf, true
	case e.borrow > 0 && a.borrowed+k > e.borrow:
		return found{reason: "borrow_limit"}, "", true
	}
	own, pools := f.owned[leaf]-a.owned-a.lent, int64(0)
	for _, n := range f.pool {
		pools += n
	}
	idle, claims := v.idleAndClaims(p, f)
	spare := idle - claims
	bar := ""
	for path := leaf; path != "/" && bar == ""; path = parentOf(path) {
		if f.w.entry[path].ratio == 0 && f.poolsBelow(path) < pools {
			bar = path
		}
	}
	account := own >= k || f.pooled(leaf, func(path string) int64 { return v.m.account(p.name, path).shared }) >= k &&
		spare >= k
	if host != "" && !account && claims >= k && idle >= k && e.borrow != 0 && v.lenderFor(f, leaf, k) != "" {
		if spare < 0 {
			return r, "", false // whether what is idle is for reserves and owners
		}
		account = true
	}
	deserve := f.dynamic[leaf]
	if p.static {
		deserve = min(f.static[leaf], f.need[leaf])
	}
	switch {
	case account && host != "":
		return found{reason: host}, "", true
	case bar != "":
		return found{reason: "share_limit"}, bar, true
	case !f.known:
		return r, "", false
	case a.shared > 0 && a.shared+k > deserve && deserve < pools:
		return found{reason: "over_quota"}, "", true
	}
	return found{reason: "pool_exhausted"}, "", true
}

// idleAndClaims are the idle slots of a plan, and the slots that owners under another policy than hybrid neither use
// nor lend.
func (v *verifier) idleAndClaims(p *plan, f *slots) (idle, claims int64) {
	for _, free := range v.roomOf(p).free {
		idle += max(0, free[0])
	}
	for _, path := range v.m.policy.leaves(p) {
		if b := v.m.account(p.name, path); f.w.entry[path].kind != "hybrid" {
			claims += max(0, f.owned[path]-b.owned-b.lent)
		}
	}
	return idle, claims
}

// whyHybrid is why a unit of a hybrid leaf is short, when neither the unit nor a limit stands against it.
func (v *verifier) whyHybrid(p *plan, f *slots, held, k, quota int64, host string) found {
	idle := f.hybrid
	for _, path := range v.m.policy.leaves(p) {
		if f.w.entry[path].kind == "hybrid" {
			idle -= v.m.account(p.name, path).slots
		}
	}
	switch {
	case idle >= k && held+k <= quota && host != "":
		return found{reason: host}
	case held+k > quota:
		return found{reason: "over_quota"}
	}
	return found{reason: "pool_exhausted"}
}

// slotHosts tells what of the hosts stands against a unit, "" when nothing does.
func (v *verifier) slotHosts(p *plan, s *sub) string {
	r := v.roomOf(p)
	open, large, free, allowed := 0, 0, 0, 0
	for i, h := range r.host {
		if !v.m.may(s, h) {
			continue
		}
		open++
		if h.cap[0] < s.size[0] {
			continue
		}
		large++
		fit := r.free[i][0] >= s.size[0]
		if fit {
			free++
		}
		if s.perHost == none || v.on(s, h) < s.perHost {
			if fit {
				return ""
			}
			allowed++
		}
	}
	switch {
	case open == 0 && s.need != "":
		return "no_host_matches"
	case open == 0:
		return ""
	case large == 0:
		return "too_big"
	case free > 0 || allowed == 0:
		return "max_per_host"
	}
	return "fragmented"
}
