package verify

import (
	"fmt"
	"maps"
	"slices"
)

// model is the cluster as the log's inputs and events make it.
type model struct {
	policy   *policy
	revision int64
	hosts    map[string]*host
	order    []string // hosts in the order of the hosts table
	attrs    map[string]bool
	numeric  map[string]bool // attributes that are numbers
	subs     map[key]*sub
	arrival  int64
	piles    map[spot]*pile
	onHost   map[string]map[spot]*pile
	of       map[string]*account  // by plan, then consumer: what leaves hold
	conds    map[string]*expr     // parsed requirements
	claims   map[int64][]*claim   // reclaims under way, by number
	former   map[key]map[key]bool // sub-allocations of other sizes, by the key of their rows
	spots    map[key][]string     // hosts of what sub-allocations hold, while sizes change; nil: not made yet
	given    []*pile              // of which clients gave something back
	// by plan: cycles since then in which somebody waited though nothing was under reclaim
	hidden map[string]int
	// by plan: rows that took something for a share from a sub-allocation, or from what was promised to it, since its
	// turns began
	swaps   map[string]map[key]int
	leaving int64
	vague   map[key]bool // what is wanted depends on how many units the cycle releases as done
	cycle   int64
	estates map[string]*estate // of MD plans of which anybody owned anything
	// what is held is not known: nor who holds something of those that a policy left without their place
	lost     bool
	replaced int64 // sub-allocations that are forgotten before the log counts them
}

type host struct {
	name  string
	state string
	size  []int64
	attr  map[string]any // string, float64 or bool
	plan  string         // whose group has it; "" none
	cap   []int64        // in the plan's own figures: by dimension, or slots
	gone  bool           // a full table left it out
}

func (h *host) isWord(word string) bool {
	return h.name == word || h.attr["type"] == word || h.attr["model"] == word
}

// sub is a sub-allocation: what is wanted and what is held.
type sub struct {
	key
	source   string
	units    int64 // wanted
	was      int64 // wanted in the cycle before
	size     []int64
	slots    int64 // that its unit takes in a slot plan
	cond     *expr
	need     string // its requirement
	perHost  int64
	together string // an attribute of which a gang's hosts have one value; "prefer …": where they can
	least    int64  // units of a gang that are held at least, or none; at most 1: it is no gang
	named    bool   // by its source's last snapshot
	held     int64
	arrival  int64
	orphan   bool // its consumer is no leaf of its plan any more, and it holds something
	grace    int64
}

// pile is what a sub-allocation holds on a host.
type pile struct {
	spot
	size    []int64
	label   map[label]int64
	units   int64
	leaving int64
	asked   [2]int64        // units that clients gave back since the last cycle, and that they said are done
	back    [2]int64        // those of them that the cycle released
	lots    map[int64]int64 // units granted, by cycle
	was     map[label]int64 // what it counted as before its host left the plan
	left    int64           // the cycle in which that was
	loose   bool            // a release did not tell which pool's units it took
	orphan  bool            // it counts for no consumer, only for the whole and as lent (D-37)

	// In plans with devices:
	seats     map[string]int64 // units by their devices
	leavingOn map[string]int64 // under reclaim
	slack     [2]int64         // so many more than asked may come back
	askedAny  int64            // that clients gave back on whatever devices
	askedOn   map[string]int64 // on the devices that they named
	backOn    map[string]int64 // those that the cycle released
}

// account is what a consumer of a plan holds, with all below it.
type account struct {
	units                         int64
	slots                         int64
	owned, shared, borrowed, lent int64 // slots
	size                          []int64
}

func newModel() *model {
	return &model{hosts: map[string]*host{}, attrs: map[string]bool{}, numeric: map[string]bool{}, subs: map[key]*sub{},
		piles: map[spot]*pile{}, onHost: map[string]map[spot]*pile{}, of: map[string]*account{},
		conds:  map[string]*expr{},
		claims: map[int64][]*claim{}, former: map[key]map[key]bool{}, swaps: map[string]map[key]int{},
		hidden: map[string]int{}, estates: map[string]*estate{}, vague: map[key]bool{}}
}

func (m *model) isNumber(word string) bool {
	_, ok := m.policy.dimension(word)
	return ok || m.numeric[word]
}

// account is the account of a consumer in a plan.
func (m *model) account(plan, consumer string) *account {
	name := plan + "\x00" + consumer
	a := m.of[name]
	if a == nil {
		a = &account{size: make([]int64, max(1, len(m.policy.dimensions)))}
		m.of[name] = a
	}
	return a
}

// setPolicy puts a policy in force.
func (m *model) setPolicy(p *policy) {
	was := m.policy
	m.policy = p
	m.revision++
	if was == nil {
		return
	}
	if !slices.Equal(was.dimensions, p.dimensions) {
		m.measure(was.dimensions, p.dimensions)
	}
	m.rename(p.renamed)
	maps.DeleteFunc(m.estates, func(name string, _ *estate) bool { return p.byName[name] == nil || !p.byName[name].md })
	for k, s := range m.subs {
		t := p.byName[k.plan]
		if k.plan == "" || t != nil && t.member[k.consumer] && p.leaf(k.consumer) && !s.orphan {
			continue
		}
		if s.held > 0 || m.lost {
			if !s.orphan {
				s.grace = was.grace[oldName(p, k.consumer)]
			}
			s.orphan, s.named, s.units = true, false, s.held
		} else {
			delete(m.subs, k)
			m.replaced++
		}
	}
	m.listFormer()
	m.placeOutside(p)
	m.lay()
	m.disown()
	m.equip(was)
}

// placeOutside gives demand of no plan its place, once its consumer is a leaf of one plan that has no allocation of its
// name and can count all its units.
func (m *model) placeOutside(p *policy) {
	type allocation struct{ plan, consumer, name string }
	subs, taken := map[allocation][]*sub{}, map[allocation]bool{}
	for k, s := range m.subs {
		a := allocation{k.plan, k.consumer, k.allocation}
		if taken[a] = taken[a] || !s.orphan; k.plan != "" || !s.named {
			continue
		}
		subs[a] = append(subs[a], s)
	}
	for a, list := range subs {
		var t *plan
		plans := 0
		for _, one := range p.plans {
			if one.member[a.consumer] {
				t = one
				plans++
			}
		}
		if plans != 1 || !p.leaf(a.consumer) || taken[allocation{t.name, a.consumer, a.name}] {
			continue
		}
		if slices.ContainsFunc(list, func(s *sub) bool { return !m.counts(t, s) }) {
			continue
		}
		for _, s := range list {
			delete(m.subs, s.key)
			if s.plan = t.name; !t.md {
				s.size = []int64{s.slots}
			}
			if was := m.subs[s.key]; was != nil { // what is still held of before its consumer left the plan
				was.named, was.units = false, was.held
				m.move(was, former(s.key, was))
			}
			m.subs[s.key] = s
		}
	}
}

// counts tells whether a plan can count a unit of demand of no plan.
func (m *model) counts(t *plan, s *sub) bool {
	some := !t.md
	for d, n := range s.size {
		if !t.md && n > 0 && m.policy.dimensions[d] != "slots" {
			return false
		}
		some = some || n > 0
	}
	return some
}

// forsake makes the sub-allocation of an orphan known of which demand tells that came before the policy that took its
// place away: it is held yet.
func (m *model) forsake(k key) {
	was, t := m.subs[key{"", k.consumer, k.allocation, k.sub, ""}], m.policy.byName[k.plan]
	if m.subs[k] != nil || was == nil || t == nil {
		return
	}
	m.arrival++
	s := &sub{key: k, source: was.source, size: was.size, slots: was.slots, perHost: none, arrival: m.arrival,
		orphan: true}
	if !t.md {
		s.size = []int64{s.slots}
	}
	m.subs[k] = s
}

// disown has what orphans hold count for no consumer.
func (m *model) disown() {
	for _, pile := range m.piles {
		if s := m.subs[pile.key]; s != nil && s.orphan {
			pile.orphan = true
		}
	}
	m.recount()
}

func oldName(p *policy, path string) string {
	for old, now := range p.renamed {
		if now == path {
			return old
		}
	}
	return path
}

// rename gives what consumers have to those that a policy renames them to.
func (m *model) rename(to map[string]string) {
	if len(to) == 0 {
		return
	}
	name := func(s string) string {
		if now, ok := to[s]; ok {
			return now
		}
		return s
	}
	subs, piles := map[key]*sub{}, map[spot]*pile{}
	for k, s := range m.subs {
		k.consumer = name(k.consumer)
		s.key, subs[k] = k, s
	}
	m.onHost = map[string]map[spot]*pile{}
	for at, p := range m.piles {
		at.consumer = name(at.consumer)
		p.spot, piles[at] = at, p
		labels := map[label]int64{}
		for l, n := range p.label {
			labels[label{l.origin, name(l.pool), name(l.lender)}] += n
		}
		p.label = labels
		m.hang(p)
	}
	for _, e := range m.estates {
		e.rename(name)
	}
	for _, list := range m.claims {
		for _, c := range list {
			c.consumer, c.forConsumer = name(c.consumer), name(c.forConsumer)
		}
	}
	m.subs, m.piles = subs, piles
}

func (m *model) hang(p *pile) {
	if m.onHost[p.host] == nil {
		m.onHost[p.host] = map[spot]*pile{}
	}
	m.onHost[p.host][p.spot] = p
}

// measure makes all sizes those of other dimensions.
func (m *model) measure(was, now []string) {
	pick := func(size []int64) []int64 {
		to := make([]int64, len(now))
		for d, name := range now {
			if i := slices.Index(was, name); i >= 0 && i < len(size) {
				to[d] = size[i]
			}
		}
		return to
	}
	for _, h := range m.hosts {
		old := h.size
		h.size = pick(old)
		for d, name := range now {
			if v, ok := h.attr[name].(float64); ok && !slices.Contains(was, name) {
				h.size[d] = int64(max(0, v))
				delete(h.attr, name)
			}
		}
		for d, name := range was {
			if !slices.Contains(now, name) {
				h.attr[name] = float64(old[d])
				m.attrs[name], m.numeric[name] = true, true
			}
		}
	}
	for _, s := range m.subs {
		if t := m.policy.byName[s.plan]; t == nil || t.md {
			s.size = pick(s.size)
		}
	}
	for _, p := range m.piles {
		if t := m.policy.byName[p.plan]; t == nil || t.md {
			p.size = pick(p.size)
		}
	}
	for _, e := range m.estates {
		for i := range e.pieces {
			e.pieces[i].v = pick(e.pieces[i].v)
		}
		for k, v := range e.parts {
			e.parts[k] = pick(v)
		}
	}
}

// recount adds up all accounts anew.
func (m *model) recount() {
	m.of = map[string]*account{}
	for _, p := range m.piles {
		for l, n := range p.label {
			m.count(p, l, n)
		}
	}
}

// count adds units of a pile to the accounts of its leaf and of all above it.
func (m *model) count(p *pile, l label, n int64) {
	slots := int64(0)
	if t := m.policy.byName[p.plan]; t != nil && !t.md {
		slots = n * p.size[0]
	}
	from := p.consumer
	if p.orphan {
		from = "/"
	}
	for path := from; path != ""; path = parentOf(path) {
		a := m.account(p.plan, path)
		a.units += n
		a.slots += slots
		for d, v := range p.size {
			a.size[d] += v * n
		}
		switch l.origin {
		case "owned":
			a.owned += slots
		case "share_pool":
			a.shared += slots
		case "borrowed":
			a.borrowed += slots
		}
	}
	if l.lender != "" {
		for path := l.lender; path != ""; path = parentOf(path) {
			m.account(p.plan, path).lent += slots
		}
	}
}

// put adds units to what is held, or takes them off; cycle is that of the grant, 0 when they go.
func (m *model) put(at spot, l label, n, cycle int64) *pile {
	p := m.piles[at]
	if p == nil {
		p = &pile{spot: at, label: map[label]int64{}, lots: map[int64]int64{}}
		m.piles[at] = p
		m.hang(p)
	}
	s := m.subs[at.key]
	if p.units == 0 && s != nil {
		p.size = s.size
	} else if p.size == nil { // of a sub-allocation that nothing names
		p.size = make([]int64, max(1, len(m.policy.dimensions)))
	}
	p.units += n
	if p.label[l] += n; p.label[l] == 0 {
		delete(p.label, l)
	}
	if cycle > 0 {
		p.lots[cycle-1] += n
	}
	if s != nil {
		s.held += n
	}
	m.count(p, l, n)
	if p.units == 0 && len(p.label) == 0 {
		delete(m.piles, at)
		delete(m.onHost[at.host], at)
	}
	return p
}

// rest is what a pile has besides what clients gave back.
func (p *pile) rest() int64 { return p.units - p.asked[0] - p.asked[1] }

// ask notes that clients give units of a pile back, or say that they are done.
func (m *model) ask(p *pile, how int, units int64) {
	if units > 0 {
		p.asked[how] += units
		m.given = append(m.given, p)
	}
}

// arrived is when a sub-allocation came, among all.
func (m *model) arrived(k key) int64 {
	if s := m.subs[k]; s != nil {
		return s.arrival
	}
	return 0
}

// relabel makes a pile count as it is said to.
func (m *model) relabel(p *pile, to map[label]int64) {
	for l, n := range p.label {
		m.count(p, l, -n)
	}
	p.label = maps.Clone(to)
	for l, n := range p.label {
		m.count(p, l, n)
	}
}

// setDemand replaces all that a source said before, or with changes only adds to it and takes away from it: what is
// wanted 0 times. It gives the plan of rows by their consumer where they name none.
func (m *model) setDemand(source string, g *grid, whole bool) error {
	seen := map[key]bool{}
	m.spots = nil
	for row := range g.rows {
		k := g.key(row, g.text(row, "plan"))
		if k.plan == "" {
			k.plan = m.onlyPlan(k.consumer)
		}
		if n, _ := g.whole(row, "units"); n == 0 && !whole {
			if s := m.subs[k]; s != nil {
				s.named, s.units = false, 0
			}
			continue
		}
		if err := m.setRow(source, k, g, row); err != nil {
			return err
		}
		seen[k] = true
	}
	if !whole {
		return nil
	}
	for k, s := range m.subs {
		if s.source == source && s.named && !seen[k] {
			s.named, s.units = false, 0
		}
	}
	return nil
}

// removeSource has a source want nothing any more.
func (m *model) removeSource(source string) {
	for _, s := range m.subs {
		if s.source == source && s.named {
			s.named, s.units = false, 0
		}
	}
}

// onlyPlan is the plan of a consumer that takes part in one.
func (m *model) onlyPlan(consumer string) string {
	for _, t := range m.policy.plans {
		if t.member[consumer] {
			return t.name
		}
	}
	return ""
}

func (m *model) setRow(source string, k key, g *grid, row int) error {
	units, _ := g.whole(row, "units")
	s := m.sized(k, m.sizeOf(k, g, row))
	s.source, s.named, s.units = source, true, units
	delete(m.vague, k)
	slots, _ := g.whole(row, "slots")
	s.slots = max(1, slots)
	var given bool
	if s.perHost, given = g.whole(row, "max_per_host"); !given || g.cell(row, "max_per_host") == (null{}) {
		s.perHost = none
	}
	s.least = 1
	if _, taken := m.policy.dimension("min_units"); !taken {
		if n, given := g.whole(row, "min_units"); given {
			s.least = n
		}
	}
	if _, taken := m.policy.dimension("together"); !taken {
		s.together = g.text(row, "together")
	}
	s.lower()
	text := g.text(row, "requirement")
	if s.need = text; text == "" {
		s.cond = nil
		return nil
	}
	cond, ok := m.conds[text]
	if !ok {
		var err error
		if cond, err = parseSelect(text); err != nil {
			return fmt.Errorf("row %d: requirement: %w", row+1, err)
		}
		m.conds[text] = cond
	}
	s.cond = cond
	return nil
}

// sizeOf is what a unit of a row takes: by dimension, in slot plans its slots.
func (m *model) sizeOf(k key, g *grid, row int) []int64 {
	if t := m.policy.byName[k.plan]; t != nil && !t.md {
		n, _ := g.whole(row, "slots")
		return []int64{max(1, n)}
	}
	size := make([]int64, len(m.policy.dimensions))
	for d, name := range m.policy.dimensions {
		size[d], _ = g.whole(row, name)
	}
	return size
}

// may tells whether units of a sub-allocation may run on a host as far as its state and requirement go.
func (m *model) may(s *sub, h *host) bool {
	return h != nil && !h.gone && h.plan == s.plan && h.state == "ok" && (s.cond == nil || s.cond.truth(h, m))
}

// used is what is held on a host in a plan's figures.
func (m *model) used(h string, plan string, n int) []int64 {
	sum := make([]int64, n)
	for _, p := range m.onHost[h] {
		if p.plan == plan {
			for d := range min(n, len(p.size)) {
				sum[d] += p.size[d] * p.units
			}
		}
	}
	return sum
}
