package grant

import (
	"cmp"
	"math"
	"slices"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/share"
)

// Filling in rounds (MD-16): a step of share usage is divided among the leaves that come first, becomes whole units,
// and these are placed kind by kind. A step whose units do not all find room is undone and repeated smaller, until it
// is small enough that what found room may stay.

// supply is how far the units of a kind are in a pool's turn.
type supply struct {
	weight  int64 // what a unit adds to its leaf's usage
	open    int64 // units outstanding
	fit     int64 // of these, how many have room now
	asked   int64 // units that leaves claim that take part in the step
	planned int64 // units of the step
	gone    bool  // nothing fits any more
	first   int32 // its segments in placed, 1 more; 0: none
	last    int32
	row     int32 // the next row of the first segment, while units are dealt
}

// Parts of a step.
const (
	stepParts, stepOf = 6, 10 // a step is so many parts of what is claimed and fits
	finest            = 1000  // a step of this part of the usage is not undone
	finer             = 4     // a step that is undone is repeated as this part of it
)

// rounds is the memory of a pool's rounds. Nodes are numbered from the pool's consumer on, 0.
type rounds struct {
	parent          []int32 // by node
	usage, ratio    []int64 // by node
	priority        []int32 // by node
	claim, part     []int64 // by node: usage that is claimed, and given in the step
	fresh           []int64 // by node: usage of the units of the step
	in              []bool  // by node: takes part in the step
	best            []int32 // by node: the highest priority of children with claims
	amount          [][]int64
	claims, planned []int64 // by ask: units
	given           []int64 // by ask: units, of steps that were done
	wish            []int64 // by ask: units of a step before the kind lost some; else 0
	size            []size  // of leaves and their sizes
	sizeOf, latest  []int32 // by ask: in size; by shape: scratch
	live            []int32 // lines with claims
	began           []int32 // by line: the step for which it began last
	order           []int32 // kinds, the largest size first
	bound           int64   // no step is larger
	step            int32   // number
	single          bool    // the step has one unit or gang
	touched         []int32 // asks with units in the step
	placed          placed
	siblings        siblings
	ahead           []int64 // scratch: usage with the step's units
	racing          []int32
}

// siblings are children among which something is divided.
type siblings struct {
	node                      []int32
	usage, ratio, claim, part []int64
}

// fillInRounds hands out the room of a pool.
func (g *Granter) fillInRounds(out *Decisions) {
	g.beginRounds()
	for g.claim() {
		step := g.stepOf()
		if g.divide(step); !g.plan(step) {
			break
		}
		small := step <= (g.rounds.usage[0]+step)/finest || g.rounds.single
		if g.placeStep(small) {
			g.commit()
			continue
		}
		g.undo()
		g.rounds.bound = max(1, step/finer, g.rounds.usage[0]/finest)
	}
	g.deal(out)
}

// beginRounds readies a pool's rounds. O(consumers of the pool, asks, kinds × log).
func (g *Granter) beginRounds() {
	e, r, t := g.env, &g.rounds, g.env.State.Policy
	n := int(t.End[g.top] - g.top)
	g.net.Sum(&e.Env, e.Promises, g.top)
	r.usage = g.net.Stakes(&e.Env, r.usage)
	r.parent, r.ratio, r.priority = column.Zeros(r.parent, n), column.Zeros(r.ratio, n), column.Zeros(r.priority, n)
	for i := 1; i < n; i++ {
		at := g.top + plan.Node(i)
		r.parent[i], r.priority[i] = int32(t.Parent[at]-g.top), e.Window.Priority[at]
		r.ratio[i] = max(1, e.Ratio(g.top, at))
	}
	g.line = column.Zeros(g.line, n)
	r.live, r.bound, r.step = r.live[:0], math.MaxInt64, 0
	r.began = column.Zeros(r.began, len(g.leaves))
	for l, leaf := range g.leaves {
		g.line[leaf] = int32(l)
		r.live = append(r.live, int32(l))
	}
	asks := len(g.queue.Ask)
	r.claims, r.planned = column.Zeros(r.claims, asks), column.Zeros(r.planned, asks)
	r.given, r.wish, r.touched = column.Zeros(r.given, asks), column.Zeros(r.wish, asks), r.touched[:0]
	r.order = r.order[:0]
	large := make([]int64, len(g.kind))
	for i := range g.kind {
		k := &g.kind[i]
		k.supply = supply{weight: max(1, share.One/max(1, e.Views.Capacity.Of(e.State, g.top, k.key.shape)))}
		large[i] = g.lots.rules.largest(e.State.Shape.Size(k.key.shape))
		r.order = append(r.order, int32(i))
	}
	slices.SortStableFunc(r.order, func(a, b int32) int { return cmp.Compare(large[b], large[a]) })
	for i := range g.queue.Ask {
		a := &g.queue.Ask[i]
		g.kind[a.Kind].open = share.Add(g.kind[a.Kind].open, outstanding(a))
	}
	g.beginSizes()
	r.placed.reset(e.Plan.HasDevices())
}

// outstanding is how many units an ask is short of.
func outstanding(a *pool.Ask) int64 { return a.Wanted - a.Has }

// spent tells whether a step gives an ask no more: all that it claims is planned, or its min_units of a gang
// that waits.
func (r *rounds) spent(at int32, a *pool.Ask) bool {
	return r.planned[at] == r.claims[at] || a.Least > 1 && r.planned[at] > 0
}

// claim finds what kinds, asks and consumers claim as things are now, and who takes part in the next step; it is false
// where nobody claims anything. O(consumers, asks that are left, and rows with room for what is claimed).
func (g *Granter) claim() bool {
	r := &g.rounds
	for i := range g.kind {
		k := &g.kind[i]
		if k.asked, k.fit = 0, 0; !k.gone && k.open > 0 {
			k.fit = g.fit(int32(i), k.open)
			k.gone = k.fit == 0
		}
	}
	r.claim = column.Zeros(r.claim, len(r.parent))
	if g.env.Limits != nil {
		r.amount = slices.Grow(r.amount[:0], len(g.lots.free))[:len(g.lots.free)]
		for d := range r.amount {
			r.amount[d] = column.Zeros(r.amount[d], len(r.parent))
		}
	}
	live := r.live[:0]
	for _, l := range r.live {
		if g.claimOf(l) {
			live = append(live, l)
		}
	}
	r.live = live
	for i := len(r.parent) - 1; i > 0; i-- {
		up := r.parent[i]
		if g.env.Limits != nil {
			g.limit(int32(i))
		}
		r.claim[up] = share.Add(r.claim[up], r.claim[i])
	}
	g.takePart()
	return r.claim[0] > 0
}

// claimOf finds what the asks of a line claim, and tells whether they claim anything.
func (g *Granter) claimOf(l int32) bool {
	r, e, leaf := &g.rounds, g.env, g.leaves[l]
	from, to := g.queue.Span(l)
	sum := int64(0)
	for i := from; i < to; i++ {
		a := &g.queue.Ask[i]
		if r.claims[i] = 0; a.Gone || a.Has >= a.Wanted {
			continue
		}
		k := &g.kind[a.Kind]
		c := min(outstanding(a), k.fit)
		partial := a.Least > 1 && e.State.Staying(a.Sub) > 0 // what is left of a gang goes first
		a.Gone = k.gone || partial || c < a.Least || g.limitOf(a) < a.Least
		if a.Gone {
			k.open -= outstanding(a)
			continue
		}
		r.claims[i] = c
		sum = share.Add(sum, share.Mul(c, k.weight))
		if e.Limits != nil {
			for d, v := range e.State.Shape.Size(a.Shape) {
				r.amount[d][leaf] = share.Add(r.amount[d][leaf], share.Mul(c, v))
			}
		}
	}
	r.claim[leaf] = sum
	return sum > 0
}

// limitOf returns how many units more of an ask share limits leave.
func (g *Granter) limitOf(a *pool.Ask) int64 {
	e := g.env
	return e.Limits.Left(&e.Env, e.State.Node(a.Sub), g.top, e.State.Shape.Size(a.Shape))
}

// limit caps the claim of a consumer by what its share limits leave of what is claimed below it.
func (g *Granter) limit(node int32) {
	r, e := &g.rounds, g.env
	at, claim := g.top+plan.Node(node), r.claim[node]
	for d := range r.amount {
		claimed := r.amount[d][node]
		r.amount[d][r.parent[node]] = share.Add(r.amount[d][r.parent[node]], claimed)
		if left := max(0, -e.Limits.Beyond(&e.Env, at, d, 0)); e.ShareLimit(at, d) != plan.Unlimited && claimed > left {
			r.claim[node] = min(r.claim[node], share.Part(claim, left, claimed))
		}
	}
}

// takePart finds who takes part in the step: from the pool's consumer down, of the children that claim something those
// of the highest priority.
func (g *Granter) takePart() {
	r := &g.rounds
	n := len(r.parent)
	r.in, r.best = column.Zeros(r.in, n), column.Zeros(r.best, n)
	for i := range r.best {
		r.best[i] = math.MinInt32
	}
	for i := 1; i < n; i++ {
		if r.claim[i] > 0 {
			r.best[r.parent[i]] = max(r.best[r.parent[i]], r.priority[i])
		}
	}
	r.in[0] = true
	for i := 1; i < n; i++ {
		up := r.parent[i]
		r.in[i] = r.in[up] && r.claim[i] > 0 && r.priority[i] == r.best[up]
	}
}

// stepOf is the share usage that the next step gives: a part of what those who take part claim, and of that what fits
// by volume; at least the smallest unit, at most the bound.
func (g *Granter) stepOf() int64 {
	r, e := &g.rounds, g.env
	for _, l := range r.live {
		if !r.in[g.leaves[l]] {
			continue
		}
		from, to := g.queue.Span(l)
		for i := from; i < to; i++ {
			if a := &g.queue.Ask[i]; r.claims[i] > 0 {
				g.kind[a.Kind].asked = share.Add(g.kind[a.Kind].asked, r.claims[i])
			}
		}
	}
	claimed := make([]int64, len(g.lots.free))
	usage, smallest := int64(0), int64(math.MaxInt64)
	for i := range g.kind {
		k := &g.kind[i]
		units := min(k.asked, k.fit)
		if units == 0 {
			continue
		}
		usage, smallest = share.Add(usage, share.Mul(units, k.weight)), min(smallest, k.weight)
		for d, v := range e.State.Shape.Size(k.key.shape) {
			claimed[d] = share.Add(claimed[d], share.Mul(units, v))
		}
	}
	whole := share.Part(min(usage, r.claim[0]), stepParts, stepOf)
	step := whole
	for d, amount := range claimed {
		if free := g.lots.free[d]; amount > free {
			step = min(step, share.Part(whole, free, amount))
		}
	}
	return min(max(step, smallest), r.bound)
}

// divide divides a step among those who take part, from the pool's consumer down: their usage ÷ ratio is raised to one
// level.
func (g *Granter) divide(step int64) {
	r, t := &g.rounds, g.env.State.Policy
	r.part = column.Zeros(r.part, len(r.parent))
	r.part[0] = step
	s := &r.siblings
	for i := range r.parent {
		total := min(r.part[i], r.claim[i])
		if !r.in[i] || total == 0 || t.Leaf(g.top+plan.Node(i)) {
			continue
		}
		s.node, s.usage, s.ratio, s.claim = s.node[:0], s.usage[:0], s.ratio[:0], s.claim[:0]
		for k := t.First[g.top+plan.Node(i)]; k != plan.None; k = t.Next[k] {
			if at := int32(k - g.top); r.in[at] {
				s.node, s.usage = append(s.node, at), append(s.usage, r.usage[at])
				s.ratio, s.claim = append(s.ratio, r.ratio[at]), append(s.claim, r.claim[at])
			}
		}
		s.part = slices.Grow(s.part[:0], len(s.node))[:len(s.node)]
		share.Level(total, s.usage, s.ratio, s.claim, s.part)
		for at, node := range s.node {
			r.part[node] = s.part[at]
		}
	}
}

// plan turns parts into whole units, and where these are less than half of the step hands out its rest one unit or gang
// a turn. It is false where no unit is planned.
func (g *Granter) plan(step int64) bool {
	r := &g.rounds
	r.step++
	r.fresh = column.Zeros(r.fresh, len(r.parent))
	r.single = false
	sum := int64(0)
	for _, l := range r.live {
		if leaf := g.leaves[l]; r.in[leaf] && r.part[leaf] > 0 {
			sum += g.units(l, r.part[leaf])
		}
	}
	if sum < step-sum { // less than half
		g.loop(step, sum)
	}
	return len(r.touched) > 0
}

// start points a line at its first ask, once in a step.
func (g *Granter) start(l int32) {
	if g.rounds.began[l] != g.rounds.step {
		g.rounds.began[l] = g.rounds.step
		g.queue.Again(l)
	}
}

// units turns a leaf's part of a step into whole units by CYC-10, rounded down, and returns their usage. A unit that a
// share limit stands against ends the leaf's turn.
func (g *Granter) units(l int32, part int64) (usage int64) {
	r, q := &g.rounds, &g.queue
	g.start(l)
	for q.Advance(l) {
		at := q.Next(l)
		a := &q.Ask[at]
		left, weight := r.claims[at]-r.planned[at], g.kind[a.Kind].weight
		if !r.spent(at, a) {
			units := a.Least
			if units == 1 && q.Alone(l) {
				units = min(left, part/weight, g.limitOf(a))
			}
			need := share.Mul(units, weight)
			if units == 0 || need > part || g.limitOf(a) < units {
				break
			}
			g.planUnits(l, at, units)
			part -= need
			usage += need
		}
		a.Passed = r.spent(at, a)
		q.Settle(l)
	}
	return usage
}

// planUnits adds units of an ask to the step.
func (g *Granter) planUnits(l, at int32, units int64) {
	r, a := &g.rounds, &g.queue.Ask[at]
	r.single = len(r.touched) == 0 && units == a.Least
	if r.planned[at] == 0 {
		r.touched = append(r.touched, at)
	}
	r.planned[at] += units
	a.Has += units
	k := &g.kind[a.Kind]
	k.planned += units
	r.fresh[g.leaves[l]] += g.use(at, units)
	g.addLimits(a, units)
}

// size is the units of one size of a leaf: those that count, those of the step, and those dealt to a kind
// that lost some.
type size struct{ units, planned, dealt, capacity int64 }

// usage returns what so many units add to the usage of a leaf that has some others.
func (s *size) usage(has, more int64) int64 {
	return share.Fraction(has+more, s.capacity) - share.Fraction(has, s.capacity)
}

// use adds units of an ask to those of its size and leaf in the step, and returns what that adds to the leaf's usage
// (MD-12).
func (g *Granter) use(at int32, units int64) int64 {
	s := &g.rounds.size[g.rounds.sizeOf[at]]
	more := s.usage(s.units+s.planned, units)
	s.planned += units
	return more
}

// beginSizes finds how many units of each size leaves have net.
func (g *Granter) beginSizes() {
	r, e, q := &g.rounds, g.env, &g.queue
	r.size, r.sizeOf = r.size[:0], column.Zeros(r.sizeOf, len(q.Ask))
	r.latest = column.Zeros(r.latest, e.State.Shape.Len())
	for l, leaf := range q.Leaf {
		first := int32(len(r.size))
		from, to := q.Span(int32(l))
		for at := from; at < to; at++ {
			shape := q.Ask[at].Shape
			if r.latest[shape] <= first {
				r.size = append(r.size, size{
					units: g.net.Of(leaf, shape), capacity: e.Views.Capacity.Of(e.State, g.top, shape)})
				r.latest[shape] = int32(len(r.size))
			}
			r.sizeOf[at] = r.latest[shape] - 1
		}
	}
}

// addLimits adds units of an ask to what consumers hold.
func (g *Granter) addLimits(a *pool.Ask, units int64) {
	if e := g.env; e.Limits != nil {
		e.Limits.Add(&e.Env, e.State.Node(a.Sub), g.top, e.State.Shape.Size(a.Shape), units)
	}
}

// loop hands out the rest of a step, one unit or gang a turn, to any leaf with claims, as MD-16's loop walks; the last
// may go beyond the step.
func (g *Granter) loop(step, sum int64) {
	r := &g.rounds
	r.ahead = append(r.ahead[:0], r.usage...)
	for i := len(r.parent) - 1; i > 0; i-- {
		up := r.parent[i]
		r.fresh[up] += r.fresh[i]
		r.ahead[i] += r.fresh[i]
	}
	for i, up := range r.parent { // fresh is of leaves again
		if i > 0 {
			r.fresh[up] = 0
		}
	}
	r.racing = r.racing[:0]
	for _, l := range r.live {
		r.racing = append(r.racing, g.leaves[l])
	}
	if !g.race.begin(&g.env.Env, g.top, r.racing, r.ahead) {
		return
	}
	for leaf := g.race.next(); leaf != nobody && sum < step; leaf = g.race.next() {
		before := r.fresh[leaf]
		weight := g.turn(g.line[leaf])
		g.race.served(leaf, r.fresh[leaf]-before, weight > 0)
		sum += weight
	}
}

// turn adds one unit or gang of a leaf to the step, and returns its weight, 0 where the leaf has none.
func (g *Granter) turn(l int32) (weight int64) {
	r, q := &g.rounds, &g.queue
	g.start(l)
	for q.Advance(l) {
		at := q.Next(l)
		a := &q.Ask[at]
		if !r.spent(at, a) && g.limitOf(a) >= a.Least {
			weight = a.Least * g.kind[a.Kind].weight
			g.planUnits(l, at, a.Least)
		}
		a.Passed = weight == 0 || r.spent(at, a)
		if q.Settle(l); weight > 0 {
			break
		}
	}
	return weight
}

// commit makes the units of a step those of the turn.
func (g *Granter) commit() {
	r := &g.rounds
	for _, at := range r.touched {
		a := &g.queue.Ask[at]
		k := &g.kind[a.Kind]
		units := r.planned[at]
		if units == 0 {
			continue
		}
		r.given[at] += units
		r.size[r.sizeOf[at]].units += units
		k.open -= units
		if a.Least > 1 {
			a.Least, g.formed = 1, true
			g.bind(a)
		}
		for d, v := range g.env.State.Shape.Size(a.Shape) {
			g.lots.free[d] -= v * units
		}
	}
	for i := len(r.parent) - 1; i > 0; i-- {
		r.usage[i] += r.fresh[i]
		r.fresh[r.parent[i]] += r.fresh[i]
	}
	r.usage[0] += r.fresh[0]
	g.endStep()
}

// bind has the next units of a gang that formed together look where it must be.
func (g *Granter) bind(a *pool.Ask) {
	k := &g.kind[a.Kind]
	if need := g.env.Views.Needs.Need(g.env.State, a.Sub); need != k.key.need {
		k.key.need = need
		for at := range k.unit {
			k.unit[at] = finder{}
		}
	}
}

// undo takes the units of a step back.
func (g *Granter) undo() {
	r := &g.rounds
	for _, at := range r.touched {
		a := &g.queue.Ask[at]
		a.Has -= r.planned[at]
		g.addLimits(a, -r.planned[at])
	}
	g.unplace()
	g.endStep()
}

// endStep forgets what was planned.
func (g *Granter) endStep() {
	r := &g.rounds
	for _, at := range r.touched {
		r.planned[at], g.kind[g.queue.Ask[at].Kind].planned, r.size[r.sizeOf[at]].planned = 0, 0, 0
	}
	r.touched = r.touched[:0]
	r.placed.step()
}

// shorten gives the units of a kind that found room to its asks, one a turn as MD-16's loop walks. The kind leaves.
func (g *Granter) shorten(i int32, got int64) {
	r := &g.rounds
	k := &g.kind[i]
	k.gone = true
	r.racing = r.racing[:0]
	for _, at := range r.touched {
		if a := &g.queue.Ask[at]; a.Kind == i {
			r.wish[at] = r.planned[at]
			r.racing = append(r.racing, int32(g.env.State.Node(a.Sub)-g.top))
			g.planMore(at, -r.planned[at])
		}
	}
	if got > 0 {
		slices.Sort(r.racing)
		r.racing = slices.Compact(r.racing)
		r.ahead = append(r.ahead[:0], r.usage...)
		g.race.begin(&g.env.Env, g.top, r.racing, r.ahead)
		for ; got > 0; got-- {
			leaf := g.race.next()
			usage, more := g.regain(g.line[leaf], i)
			g.race.served(leaf, usage, more)
		}
	}
	for _, at := range r.touched {
		r.wish[at], r.size[r.sizeOf[at]].dealt = 0, 0
	}
}

// regain gives a unit of a kind back to the first ask of a line that lost some. It returns what the unit adds to the
// usage of the leaf as the step began, and whether the line lost more.
func (g *Granter) regain(l, kind int32) (usage int64, more bool) {
	r, given := &g.rounds, false
	from, to := g.queue.Span(l)
	for at := from; at < to && !more; at++ {
		if g.queue.Ask[at].Kind != kind || r.planned[at] >= r.wish[at] {
			continue
		}
		if !given {
			given = true
			s := &r.size[r.sizeOf[at]]
			usage = s.usage(s.units+s.dealt, 1)
			s.dealt++
			g.planMore(at, 1)
		}
		more = r.planned[at] < r.wish[at]
	}
	return usage, more
}

// planMore adds units to those of an ask in the step, or takes some out.
func (g *Granter) planMore(at int32, units int64) {
	r, a := &g.rounds, &g.queue.Ask[at]
	r.planned[at] += units
	a.Has += units
	g.kind[a.Kind].planned += units
	r.fresh[int32(g.env.State.Node(a.Sub)-g.top)] += g.use(at, units)
	g.addLimits(a, units)
}
