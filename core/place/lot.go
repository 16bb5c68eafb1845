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
	desk  *Desk
	item  []Item
	dealt []Item   // scratch
	bits  []uint64 // scratch: by parcel
	rest  []int64  // what reserves leave of parcels for this lot, a vector each
	at    []int32  // by ParcelID, in large lots: its item; of parcels that are not in the lot anything
	span  []int32  // the tiers; the items of span[i] are item[from[i]:from[i+1]]
	from  []int32
	wait  [][]int64 // by tier: the graces of its items, each once, in large lots

	sorted          // large ones: by item
	narrow bool     // least is all that will ask
	least  []uint64 // packed sizes, of which none is smaller than another
	left   int      // parcels that were left out for having room for none of them

	told  int // of the parcels that the field regained
	moved int // how often its gifts changed a parcel's class

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

// tierSet is what of a tier askers of a grace may have: items, or parcels where finders go by those.
type tierSet struct {
	tier   int32
	grace  int64
	byItem bool
	bits   []uint64
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
	l.left, l.narrow = 0, false
	if len(l.byAsk) > 0 {
		clear(l.byAsk)
	}
	l.finds = l.finds[:0]
}

// Add adds a parcel; rest is what reserves leave of it, nil when there are none. Where they leave too little for anyone that Narrow was told of, it is
// left out.
func (l *Lot) Add(one Item, rest []int64) {
	one.rest = cluster.NoID
	if rest != nil {
		if !l.mayHold(l.desk.Field.least(one.Parcel, rest)) {
			return
		}
		one.rest = int32(len(l.rest))
		l.rest = append(l.rest, rest...)
	}
	l.item = append(l.item, one)
}

// Close readies the lot, and tells whether there is anything in it.
func (l *Lot) Close() bool {
	l.sort()
	if l.large() {
		l.at = resize(l.at, l.desk.p.Parcels.Len())
		for i := range l.item {
			l.at[l.item[i].Parcel] = int32(i)
		}
		l.listGraces()
		l.sortItems()
	}
	return len(l.item) > 0
}

// sort puts the items in the order of their tiers, those of a tier in the order of parcels: they mostly come so, of each owner,
// and are dealt out to the tiers before they are sorted where they are not in order yet.
func (l *Lot) sort() {
	l.span = l.span[:0]
	for i := range l.item {
		if n := len(l.span); n == 0 || l.span[n-1] != l.item[i].Tier && !slices.Contains(l.span, l.item[i].Tier) {
			l.span = append(l.span, l.item[i].Tier)
		}
	}
	if len(l.span) > 1 {
		slices.Sort(l.span)
		l.dealt = l.dealt[:0]
		for _, tier := range l.span {
			for i := range l.item {
				if l.item[i].Tier == tier {
					l.dealt = append(l.dealt, l.item[i])
				}
			}
		}
		l.item, l.dealt = l.dealt, l.item
	}
	l.from = l.from[:0]
	for from, i := 0, 1; i <= len(l.item); i++ {
		if i == len(l.item) || l.item[i].Tier != l.item[from].Tier {
			l.from = append(l.from, int32(from))
			l.sortParcels(l.item[from:i])
			from = i
		}
	}
	l.from = append(l.from, int32(len(l.item)))
}

// sortParcels sorts items of one tier: where they are many by a bitset of parcels, of which each has one item.
func (l *Lot) sortParcels(item []Item) {
	byParcel := func(a, b Item) int { return cmp.Compare(a.Parcel, b.Parcel) }
	words := l.desk.p.Parcels.Words()
	switch {
	case slices.IsSortedFunc(item, byParcel):
		return
	case len(item) < words/8:
		slices.SortFunc(item, byParcel)
		return
	}
	l.bits, l.at = resize(l.bits, words), resize(l.at, l.desk.p.Parcels.Len())
	clear(l.bits)
	l.dealt = append(l.dealt[:0], item...)
	for i := range item {
		k := item[i].Parcel
		l.bits[k>>6] |= 1 << (uint(k) & 63)
		l.at[k] = int32(i)
	}
	n := 0
	for w, set := range l.bits {
		for ; set != 0; set &= set - 1 {
			item[n] = l.dealt[l.at[w<<6+bits.TrailingZeros64(set)]]
			n++
		}
	}
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

// large tells whether the lot has finders. Parcels that were left out count: as many ask in vain.
func (l *Lot) large() bool { return len(l.item)+l.left > few }

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
	f := &l.desk.Field
	was := f.class[k]
	f.Take(k, &one.unit)
	l.Count(number, k)
	if len(l.rest) > 0 {
		l.takeRest(&l.item[l.indexOf(k)], &one.unit)
	}
	if f.class[k] != was {
		l.moved++
	}
	switch {
	case !l.large():
	case f.class[k] != was:
		l.follow(l.at[k])
	default:
		l.word[l.at[k]] = l.wordOf(&l.item[l.at[k]])
	}
}

// takeRest takes a unit off what reserves leave of an item.
func (l *Lot) takeRest(it *Item, u *Unit) {
	if it.rest == cluster.NoID {
		return
	}
	for _, d := range u.need {
		l.rest[int(it.rest)+d] -= u.size[d]
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

// news counts what may make another parcel of a small lot better than the one that was found last.
func (l *Lot) news() int { return l.moved + len(l.desk.Field.regained) }

// scan is Find in a small lot.
func (l *Lot) scan(one *look) cluster.ParcelID {
	f := &l.desk.Field
	if one.best != cluster.NoID && one.seen == l.news() && one.turn == nil && f.placement != plan.Balanced {
		if it := &l.item[one.best]; f.class[it.Parcel] == one.class && l.takes(one, it) {
			return it.Parcel
		}
	}
	one.best = cluster.NoID
	for i := range l.span {
		if best := l.first(one, l.from[i], l.from[i+1]); best != cluster.NoID {
			k := l.item[best].Parcel
			one.best, one.class, one.seen = best, f.class[k], l.news()
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
	if !l.leaves(it, &one.unit) {
		return false
	}
	return one.on == nil || one.on[f.parcels.Begin(k)] < one.most
}

// leaves tells whether what reserves leave of an item has room for a unit.
func (l *Lot) leaves(it *Item, u *Unit) bool {
	if it.rest == cluster.NoID {
		return true
	}
	for _, d := range u.need {
		if l.rest[int(it.rest)+d] < u.size[d] {
			return false
		}
	}
	return true
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
	selected, order := l.desk.Selected(one.ask.need)
	key := tierAsk{one.ask, l.admitted(i, one.who.Grace, l.byItem(order))}
	if n, ok := l.byAsk[key]; ok {
		return n
	}
	l.finds = resize(l.finds, len(l.finds)+1)
	n := int32(len(l.finds) - 1)
	q, allowed := &l.finds[n], l.sets[key.set].bits
	if selected != nil {
		allowed = slices.Clone(allowed)
		l.cut(allowed, selected, l.byItem(order))
	}
	q.field, q.rows, q.lot = &l.desk.Field, &l.sorted, l
	q.look(one.form, allowed, order)
	if l.byItem(order) {
		q.from, q.end = int(l.from[i]), int(l.from[i+1]+63)>>6
	} else {
		q.from, q.end = bounds(allowed)
	}
	l.byAsk[key] = n
	return n
}

// byItem tells whether finders of an order, nil for none, go by the classes of items; others go by parcels.
func (l *Lot) byItem(order []cluster.ParcelID) bool {
	return order == nil && l.desk.Field.placement != plan.Balanced
}

// cut leaves of a set of items, or parcels, those that a requirement selects.
func (l *Lot) cut(set, selected []uint64, byItem bool) {
	if !byItem {
		for w := range set {
			set[w] &= selected[w]
		}
		return
	}
	for i, it := range l.item {
		if selected[it.Parcel>>6]>>(uint(it.Parcel)&63)&1 == 0 {
			set[i>>6] &^= 1 << (uint(i) & 63)
		}
	}
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

// admitted gives the items of the tier at i, or their parcels, that an asker of a grace may have: the same for all graces
// between two that are set.
func (l *Lot) admitted(i int, grace int64, byItem bool) int32 {
	least := int64(-1) // of the graces of parcels that it may not have, the longest: all between are alike
	for _, us := range l.wait[i] {
		if us < grace {
			least = max(least, us)
		}
	}
	for n := range l.sets {
		if one := &l.sets[n]; one.tier == l.span[i] && one.grace == least && one.byItem == byItem {
			return int32(n)
		}
	}
	words := l.desk.p.Parcels.Words()
	if byItem {
		words = l.words()
	}
	l.sets = resize(l.sets, len(l.sets)+1)
	one := &l.sets[len(l.sets)-1]
	one.tier, one.grace, one.byItem, one.bits = l.span[i], least, byItem, resize(one.bits, words)
	clear(one.bits)
	for at := l.from[i]; at < l.from[i+1]; at++ {
		if it := &l.item[at]; it.Grace > least {
			bit := at
			if !byItem {
				bit = int32(it.Parcel)
			}
			one.bits[bit>>6] |= 1 << (uint(bit) & 63)
		}
	}
	return int32(len(l.sets) - 1)
}

// mayHave tells whether an item that a shared finder found is for who asks.
func (l *Lot) mayHave(one *look, it *Item) bool {
	return (it.Side == cluster.NoID || it.Side != one.who.Side) && (one.on == nil || one.on[l.desk.Field.parcels.Begin(it.Parcel)] < one.most)
}

// findFor is Find for one who asks: items that are not for him are passed by, and stay for others.
func (q *Finder) findFor(one *look) cluster.ParcelID {
	switch {
	case q.order != nil:
		return q.inOrderFor(one)
	case q.field.placement == plan.Balanced:
		return q.field.tree.findFor(q, one)
	}
	if q.isDry() {
		return cluster.NoID
	}
	q.lot.catchUp()
	if q.catchUp(); q.stands() && q.mayHave(one, q.best) {
		return q.parcel(q.best)
	}
	best, passed := q.searchFor(one)
	switch q.best = best; {
	case passed:
		q.best = cluster.NoID // the next to ask may have a better one
	case best == cluster.NoID:
		q.dryUp()
	}
	return q.parcel(best)
}

func (q *Finder) mayHave(one *look, row int32) bool { return q.lot.mayHave(one, &q.lot.item[row]) }

// searchFor is search for one who asks, and tells whether items were passed by.
func (q *Finder) searchFor(one *look) (best int32, passed bool) {
	best, q.lot.aside = cluster.NoID, q.lot.aside[:0]
	for r := q.nextLive(0); r >= 0; r = q.nextLive(r + 1) {
		row, stays := q.firstFor(r, one)
		passed = passed || stays
		if row >= 0 {
			best, q.bestRank = row, r
			break
		}
		if !stays {
			q.live[r>>6] &^= 1 << (r & 63)
		}
	}
	for _, v := range q.lot.aside {
		q.push(v)
	}
	return best, passed
}

// firstFor is first for one who asks: the cursor moves up to the first item that fits, whoever may have it; stays tells that
// there is one that is not for him. Those of the heap are put aside.
func (q *Finder) firstFor(r int, one *look) (row int32, stays bool) {
	q.readLog(r)
	for row = q.top(r); row >= 0; row = q.top(r) {
		if q.mayHave(one, row) {
			return row, stays
		}
		q.lot.aside = append(q.lot.aside, q.late[0])
		q.pop()
		stays = true
	}
	cursor := &q.mark[r].cursor
	first := q.scan(r)
	if first < 0 {
		*cursor = int32(q.end << 6)
		return cluster.NoID, stays
	}
	for row = first; row >= 0 && !q.mayHave(one, row); row = q.scan(r) {
		*cursor, stays = row+1, true
	}
	*cursor = first
	return row, stays
}

// inOrderFor is inOrder for one who asks.
func (q *Finder) inOrderFor(one *look) cluster.ParcelID {
	may := func(k cluster.ParcelID) bool { return q.lot.mayHave(one, &q.lot.item[q.lot.at[k]]) }
	k := q.inOrder()
	if k == cluster.NoID || may(k) {
		return k
	}
	for _, k := range q.order[q.next+1:] {
		if q.field.parcels.IsOpen(k) && q.fits(k) && may(k) {
			return k
		}
	}
	return cluster.NoID
}
