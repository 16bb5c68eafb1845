package place

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Lot is some of a desk's parcels, among which units are placed tier by tier: what one pool, or one leaf, has to give
// in a grant stage. A lot of a few parcels is looked through one by one; larger ones have finders.
// It keeps its memory; Begin comes first, then Add for every parcel, then Close.
type Lot struct {
	desk *Desk
	item []Item
	rest []int64 // what reserves leave of parcels for this lot, a vector each
	at   []int32 // by ParcelID, in large lots: its item
	span []int32 // the tiers; the items of span[i] are item[from[i]:from[i+1]]
	from []int32
	wait [][]int64 // by tier: the graces of its items, each once, in large lots

	looks []look
	sets  []tierSet
	byAsk map[tierAsk]int32
	finds []Finder
	aside []uint64
}

// Item is a parcel of a lot.
type Item struct {
	Parcel cluster.ParcelID
	Tier   int32 // the lowest is tried first
	Side   int32 // who is on this side gets nothing of it; NoID: for all
	Grace  int64 // whoever may take longer gets nothing of it
	rest   int32 // of what reserves leave: where its vector begins; NoID: no reserve
}

// Who asks for room in a lot.
type Who struct {
	Side  int32
	Grace int64
}

// few is how many parcels a lot may have that is looked through one by one.
const few = 96

// look is what a lot knows of a sub-allocation that asks for room.
type look struct {
	*form
	who      Who
	ask      ask
	most     int64                      // max_per_host, plan.Unlimited when not given
	on       map[cluster.ParcelID]int64 // units by the first parcel of a host, when most is given
	selected []uint64
	turn     []int32
	best     int32 // what Find said last in a small lot, and when: as long as nothing changed it is said again
	class    int16
	seen     int
	tiers    []int32 // in a large lot: its finder for a tier, from 1
}

// tierSet is the parcels of a tier that askers of a grace may have.
type tierSet struct {
	tier  int32
	grace int64
	bits  []uint64
}

// tierAsk is what finders of a large lot are shared by.
type tierAsk struct {
	ask
	set int32
}

// Begin empties the lot.
func (l *Lot) Begin(d *Desk) {
	l.desk, l.item, l.rest = d, l.item[:0], l.rest[:0]
	l.looks, l.sets = l.looks[:0], l.sets[:0]
	if len(l.byAsk) > 0 {
		clear(l.byAsk)
	}
	l.finds = l.finds[:0]
}

// Add adds a parcel; rest is what reserves leave of it, nil when there are none.
func (l *Lot) Add(one Item, rest []int64) {
	one.rest = cluster.NoID
	if rest != nil {
		one.rest = int32(len(l.rest))
		l.rest = append(l.rest, rest...)
	}
	l.item = append(l.item, one)
}

// Close readies the lot, and tells whether there is anything in it.
func (l *Lot) Close() bool {
	byTier := func(a, b Item) int { return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Parcel, b.Parcel)) }
	if !slices.IsSortedFunc(l.item, byTier) {
		slices.SortFunc(l.item, byTier)
	}
	l.span, l.from = l.span[:0], l.from[:0]
	for i := range l.item {
		if i == 0 || l.item[i].Tier != l.item[i-1].Tier {
			l.span, l.from = append(l.span, l.item[i].Tier), append(l.from, int32(i))
		}
	}
	l.from = append(l.from, int32(len(l.item)))
	if l.large() {
		l.at = resize(l.at, l.desk.p.Parcels.Len())
		for i := range l.item {
			l.at[l.item[i].Parcel] = int32(i)
		}
		l.listGraces()
	}
	return len(l.item) > 0
}

// listGraces lists the graces of each tier.
func (l *Lot) listGraces() {
	l.wait = resize(l.wait, len(l.span))
	for i := range l.span {
		list := l.wait[i][:0]
		for _, it := range l.item[l.from[i]:l.from[i+1]] {
			if n := len(list); (n == 0 || list[n-1] != it.Grace) && !slices.Contains(list, it.Grace) {
				list = append(list, it.Grace)
			}
		}
		l.wait[i] = list
	}
}

func (l *Lot) large() bool { return len(l.item) > few }

// Lookup gives the number by which the lot knows a sub-allocation of someone who asks. O(1), with max_per_host O(its holdings).
func (l *Lot) Lookup(sub cluster.SubID, who Who) int32 {
	l.looks = resize(l.looks, len(l.looks)+1)
	one, s := &l.looks[len(l.looks)-1], l.desk.s
	key := ask{s.Sub.Shape[sub], s.Sub.Need[sub]}
	tiers := one.tiers[:0]
	*one = look{form: l.desk.form(key.shape), who: who, ask: key, most: s.Sub.MaxPerHost[sub], best: cluster.NoID}
	one.selected, _ = l.desk.Selected(key.need)
	one.turn = l.desk.turns(key.need)
	if one.most != plan.Unlimited {
		one.on = map[cluster.ParcelID]int64{}
		for q := s.Sub.First[sub]; q != cluster.NoID; q = s.Holding.NextOfSub[q] {
			one.on[l.desk.p.Parcels.Begin(s.Holding.Parcel[q])] += s.Holding.Units[q]
		}
	}
	if l.large() {
		for range l.span {
			tiers = append(tiers, 0)
		}
	}
	one.tiers = tiers
	return int32(len(l.looks) - 1)
}

// Find is the parcel for the next unit of what a number stands for, of the first tier that has one; NoID when it fits none.
func (l *Lot) Find(number int32) cluster.ParcelID {
	one := &l.looks[number]
	if one.unit.never {
		return cluster.NoID
	}
	if !l.large() {
		return l.scan(one)
	}
	for i := range l.span {
		if k := l.within(one, i); k != cluster.NoID {
			return k
		}
	}
	return cluster.NoID
}

// Has tells whether any parcel of the lot is of a tier.
func (l *Lot) Has(tier int32) bool { return slices.Contains(l.span, tier) }

// FindIn is Find in one tier alone.
func (l *Lot) FindIn(number, tier int32) cluster.ParcelID {
	one := &l.looks[number]
	i := slices.Index(l.span, tier)
	switch {
	case i < 0 || one.unit.never:
		return cluster.NoID
	case l.large():
		return l.within(one, i)
	}
	if best := l.first(one, l.from[i], l.from[i+1]); best != cluster.NoID {
		return l.item[best].Parcel
	}
	return cluster.NoID
}

// Give takes a unit off the parcel that Find found.
func (l *Lot) Give(number int32, k cluster.ParcelID) {
	one := &l.looks[number]
	l.desk.Field.Take(k, &one.unit)
	l.Count(number, k)
	if len(l.rest) == 0 {
		return
	}
	if it := &l.item[l.indexOf(k)]; it.rest != cluster.NoID {
		for _, d := range one.unit.need {
			l.rest[int(it.rest)+d] -= one.unit.size[d]
		}
	}
}

// Count notes a unit on a parcel, which may be another than those of the lot: with max_per_host it counts on its host.
func (l *Lot) Count(number int32, k cluster.ParcelID) {
	if on := l.looks[number].on; on != nil {
		on[l.desk.p.Parcels.Begin(k)]++
	}
}

// indexOf is the item of a parcel.
func (l *Lot) indexOf(k cluster.ParcelID) int {
	if l.large() {
		return int(l.at[k])
	}
	return slices.IndexFunc(l.item, func(it Item) bool { return it.Parcel == k })
}

// scan is Find in a small lot.
func (l *Lot) scan(one *look) cluster.ParcelID {
	f := &l.desk.Field
	if one.best != cluster.NoID && one.seen == len(f.log) && one.turn == nil && f.placement != plan.Balanced {
		if it := &l.item[one.best]; f.class[it.Parcel] == one.class && l.takes(one, it) {
			return it.Parcel
		}
	}
	one.best = cluster.NoID
	for i := range l.span {
		if best := l.first(one, l.from[i], l.from[i+1]); best != cluster.NoID {
			k := l.item[best].Parcel
			one.best, one.class, one.seen = best, f.class[k], len(f.log)
			return k
		}
	}
	return cluster.NoID
}

// first is the first of some items, all of a tier, in the order of the requirement or of the placement, that a unit fits.
func (l *Lot) first(one *look, from, to int32) int32 {
	f, best, least := &l.desk.Field, int32(cluster.NoID), int64(0)
	for i := from; i < to; i++ {
		it := &l.item[i]
		if !l.takes(one, it) {
			continue
		}
		var key int64 // equal ones: the first in host order
		switch {
		case one.turn != nil:
			key = int64(one.turn[it.Parcel])
		case f.placement == plan.Balanced:
			key = -f.free[it.Parcel]
		default:
			key = int64(one.rankOf(f.class[it.Parcel]))
		}
		if best == cluster.NoID || key < least {
			best, least = i, key
		}
	}
	return best
}

// takes tells whether an item is for who asks, and a unit fits it.
func (l *Lot) takes(one *look, it *Item) bool {
	f, k := &l.desk.Field, it.Parcel
	if f.class[k] == shut || !f.fits(k, &one.unit) || it.Side == one.who.Side && it.Side != cluster.NoID || it.Grace < one.who.Grace {
		return false
	}
	if one.selected != nil && one.selected[k>>6]>>(uint(k)&63)&1 == 0 {
		return false
	}
	if it.rest != cluster.NoID && !l.leaves(it, &one.unit) {
		return false
	}
	return one.on == nil || one.on[f.parcels.Begin(k)] < one.most
}

// leaves tells whether what reserves leave of an item has room for a unit.
func (l *Lot) leaves(it *Item, u *Unit) bool {
	for _, d := range u.need {
		if l.rest[int(it.rest)+d] < u.size[d] {
			return false
		}
	}
	return true
}

// spares is leaves for a parcel of a large lot.
func (l *Lot) spares(k cluster.ParcelID, u *Unit) bool {
	if len(l.rest) == 0 {
		return true
	}
	it := &l.item[l.at[k]]
	return it.rest == cluster.NoID || l.leaves(it, u)
}

// within is Find in a large lot, in the tier at i.
func (l *Lot) within(one *look, i int) cluster.ParcelID {
	if one.tiers[i] == 0 {
		one.tiers[i] = l.finder(one, i) + 1
	}
	q := &l.finds[one.tiers[i]-1]
	return q.findFor(one)
}

// finder gives the finder of a tier for what is asked: it is shared by all of one shape, requirement and grace, but for
// those with max_per_host.
func (l *Lot) finder(one *look, i int) int32 {
	if l.byAsk == nil {
		l.byAsk = map[tierAsk]int32{}
	}
	key := tierAsk{one.ask, l.set(i, one.who.Grace)}
	if n, ok := l.byAsk[key]; ok {
		return n
	}
	l.finds = resize(l.finds, len(l.finds)+1)
	n := int32(len(l.finds) - 1)
	q, allowed := &l.finds[n], l.sets[key.set].bits
	selected, order := l.desk.Selected(key.need)
	if selected != nil {
		allowed = slices.Clone(allowed)
		for w := range allowed {
			allowed[w] &= selected[w]
		}
	}
	q.reset(&l.desk.Field, one.form, allowed, order)
	q.lot = l
	q.from, q.end = bounds(allowed)
	l.byAsk[key] = n
	return n
}

// bounds says before which parcel a bitset has none, and behind so many words.
func bounds(set []uint64) (from, end int) {
	for end = len(set); end > 0 && set[end-1] == 0; end-- {
	}
	for from < end && set[from] == 0 {
		from++
	}
	return from << 6, end
}

// set gives the parcels of the tier at i that an asker of a grace may have: the same for all graces between two that
// are set.
func (l *Lot) set(i int, grace int64) int32 {
	least := int64(-1) // of the graces of parcels that it may not have, the longest: all between are alike
	for _, us := range l.wait[i] {
		if us < grace {
			least = max(least, us)
		}
	}
	for n := range l.sets {
		if l.sets[n].tier == l.span[i] && l.sets[n].grace == least {
			return int32(n)
		}
	}
	words := l.desk.p.Parcels.Words()
	l.sets = resize(l.sets, len(l.sets)+1)
	one := &l.sets[len(l.sets)-1]
	one.tier, one.grace, one.bits = l.span[i], least, resize(one.bits, words)
	clear(one.bits)
	for _, it := range l.item[l.from[i]:l.from[i+1]] {
		if it.Grace > least {
			one.bits[it.Parcel>>6] |= 1 << (uint(it.Parcel) & 63)
		}
	}
	return int32(len(l.sets) - 1)
}

// mayHave tells whether the item of a parcel that a shared finder found is for who asks.
func (l *Lot) mayHave(one *look, k cluster.ParcelID) bool {
	side := l.item[l.at[k]].Side
	return (side == cluster.NoID || side != one.who.Side) && (one.on == nil || one.on[l.desk.Field.parcels.Begin(k)] < one.most)
}

// findFor is Find for one who asks: parcels that are not for him are passed by, and stay for others.
func (q *Finder) findFor(one *look) cluster.ParcelID {
	switch {
	case q.order != nil:
		return q.inOrderFor(one)
	case q.field.placement == plan.Balanced:
		return q.field.tree.findFor(q, one)
	}
	if !q.catchUp() && q.best != cluster.NoID && q.field.class[q.best] == q.bestClass && q.fits(q.best) && q.lot.mayHave(one, q.best) {
		return q.best
	}
	best, passed := q.searchFor(one)
	if q.best = best; passed {
		q.best = cluster.NoID // the next to ask may have a better one
	}
	if best != cluster.NoID {
		q.bestClass = q.field.class[best]
	}
	return best
}

// searchFor is search for one who asks, and tells whether parcels were passed by.
func (q *Finder) searchFor(one *look) (best cluster.ParcelID, passed bool) {
	best, rank := cluster.ParcelID(cluster.NoID), -1
	aside := q.lot.aside[:0]
	for {
		k, late := q.top()
		if late < 0 {
			break
		}
		if q.lot.mayHave(one, k) {
			best, rank = k, late
			break
		}
		aside = append(aside, q.late[0])
		q.pop()
	}
	for _, v := range aside {
		q.push(v)
	}
	q.lot.aside, passed = aside, len(aside) > 0
	for r := q.nextLive(0); r >= 0 && (rank < 0 || r < rank); r = q.nextLive(r + 1) {
		k, stays := q.scanFor(r, one)
		passed = passed || stays
		if k >= 0 {
			return cluster.ParcelID(k), passed
		}
	}
	return best, passed
}

// nextLive is the first rank from r on whose class the cursor has not passed, -1 when there is none.
func (q *Finder) nextLive(r int) int {
	for w := r >> 6; w < len(q.live); w++ {
		live := q.live[w]
		if w == r>>6 {
			live &^= 1<<(uint(r)&63) - 1
		}
		if live != 0 {
			return w<<6 + bits.TrailingZeros64(live)
		}
	}
	return -1
}

// scanFor is scan for one who asks. The cursor moves up to the first parcel that fits, whoever may have it; stays tells
// that it is not for him.
func (q *Finder) scanFor(r int, one *look) (k int, stays bool) {
	k = q.scan(r)
	if k < 0 {
		q.cursor[r] = int32(q.field.parcels.Len())
		q.live[r>>6] &^= 1 << (r & 63)
		return -1, false
	}
	first := int32(k)
	q.cursor[r] = first
	for k >= 0 && !q.lot.mayHave(one, cluster.ParcelID(k)) {
		stays = true
		q.cursor[r] = int32(k) + 1
		k = q.scan(r)
	}
	q.cursor[r] = first
	return k, stays
}

// inOrderFor is inOrder for one who asks.
func (q *Finder) inOrderFor(one *look) cluster.ParcelID {
	k := q.inOrder()
	if k == cluster.NoID || q.lot.mayHave(one, k) {
		return k
	}
	for _, k := range q.order[q.next+1:] {
		if q.field.parcels.IsOpen(k) && q.fits(k) && q.lot.mayHave(one, k) {
			return k
		}
	}
	return cluster.NoID
}
