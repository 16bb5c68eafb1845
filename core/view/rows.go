package view

import (
	"cmp"
	"slices"
	"sort"

	"github.com/stintd/stint/core/column"
)

// Key is by what rows of one group are told apart. What its parts are the view says that has them.
type Key struct{ A, B, C int32 }

func (k Key) compare(o Key) int {
	switch {
	case k.A != o.A:
		return cmp.Compare(k.A, o.A)
	case k.B != o.B:
		return cmp.Compare(k.B, o.B)
	}
	return cmp.Compare(k.C, o.C)
}

// Group is the rows of one group, in the order of their keys, in the view's own memory.
type Group struct {
	Key            []Key
	Units, Leaving []int64
}

// fewRows is in how many rows a key is looked for one by one.
const fewRows = 16

// Get is the units of a key, 0 where it has no row.
func (g Group) Get(key Key) int64 {
	if len(g.Key) <= fewRows {
		for i := range g.Key {
			if g.Key[i] == key {
				return g.Units[i]
			}
		}
		return 0
	}
	if i, ok := slices.BinarySearchFunc(g.Key, key, Key.compare); ok {
		return g.Units[i]
	}
	return 0
}

// of is the rows whose keys have a as their first part.
func (g Group) of(a int32) Group {
	from, _ := slices.BinarySearchFunc(g.Key, a, func(k Key, a int32) int { return cmp.Compare(k.A, a) })
	to := from + sort.Search(len(g.Key)-from, func(i int) bool { return g.Key[from+i].A > a })
	return Group{g.Key[from:to], g.Units[from:to], g.Leaving[from:to]}
}

// rows are units by group and key, in flat columns: the rows of a group stand together in the order of their keys,
// with room behind them for a few more. A group that outgrows its room moves behind all others; where half of the
// columns is left behind so, all groups are moved together again. Rows without units are removed.
type rows struct {
	first, size, room []int32 // by group
	key               []Key
	units, leaving    []int64
	left              int // rows of the columns that are no group's any more
	moved, merged     laid
	sorted            []change
}

// laid is memory to lay rows out anew.
type laid struct {
	key            []Key
	units, leaving []int64
}

// put adds a row, unless it has no units.
func (m *laid) put(key Key, units, leaving int64) {
	if units != 0 || leaving != 0 {
		m.key, m.units, m.leaving = append(m.key, key), append(m.units, units), append(m.leaving, leaving)
	}
}

// reset makes so many groups without rows.
func (r *rows) reset(groups int) {
	r.first, r.size, r.room = column.Zeros(r.first, groups), column.Zeros(r.size, groups), column.Zeros(r.room, groups)
	r.key, r.units, r.leaving, r.left = r.key[:0], r.units[:0], r.leaving[:0], 0
}

// of is the rows of a group.
func (r *rows) of(group int32) Group {
	if int(group) >= len(r.first) {
		return Group{}
	}
	from, to := r.first[group], r.first[group]+r.size[group]
	return Group{r.key[from:to:to], r.units[from:to:to], r.leaving[from:to:to]}
}

// find is where the row of a key is in its group, or would be.
func (r *rows) find(group int32, key Key) (at int32, ok bool) {
	from := r.first[group]
	i, ok := slices.BinarySearchFunc(r.key[from:from+r.size[group]], key, Key.compare)
	return from + int32(i), ok
}

// get is the units of a key, ok false where it has no row.
func (r *rows) get(group int32, key Key) (units int64, ok bool) {
	if int(group) >= len(r.first) {
		return 0, false
	}
	at, ok := r.find(group, key)
	if !ok {
		return 0, false
	}
	return r.units[at], true
}

// add adds units to the row of a key. O(rows of the group) where the row is new or goes.
func (r *rows) add(group int32, key Key, units, leaving int64) {
	for int(group) >= len(r.first) {
		r.first, r.size, r.room = append(r.first, 0), append(r.size, 0), append(r.room, 0)
	}
	at, ok := r.find(group, key)
	end := r.first[group] + r.size[group]
	switch {
	case ok && (r.units[at]+units != 0 || r.leaving[at]+leaving != 0):
		r.units[at] += units
		r.leaving[at] += leaving
	case ok:
		copy(r.key[at:end], r.key[at+1:end])
		copy(r.units[at:end], r.units[at+1:end])
		copy(r.leaving[at:end], r.leaving[at+1:end])
		r.size[group]--
	case units != 0 || leaving != 0:
		if r.size[group] == r.room[group] {
			place := at - r.first[group]
			r.widen(group, max(4, r.size[group]*3/2))
			at, end = r.first[group]+place, r.first[group]+r.size[group]
		}
		copy(r.key[at+1:end+1], r.key[at:end])
		copy(r.units[at+1:end+1], r.units[at:end])
		copy(r.leaving[at+1:end+1], r.leaving[at:end])
		r.key[at], r.units[at], r.leaving[at] = key, units, leaving
		r.size[group]++
	}
}

// clear removes the rows of a group.
func (r *rows) clear(group int32) {
	if int(group) < len(r.size) {
		r.size[group] = 0
	}
}

// widen moves a group behind all others, with room for so many rows.
func (r *rows) widen(group, room int32) {
	if r.left += int(r.room[group]); r.left > len(r.key)/2+1024 {
		r.pack()
		r.left = int(r.room[group])
	}
	from, n := r.first[group], r.size[group]
	r.first[group], r.room[group] = int32(len(r.key)), room
	r.key = stretch(append(r.key, r.key[from:from+n]...), int(room-n))
	r.units = stretch(append(r.units, r.units[from:from+n]...), int(room-n))
	r.leaving = stretch(append(r.leaving, r.leaving[from:from+n]...), int(room-n))
}

// pack moves all groups together.
func (r *rows) pack() {
	m := &r.moved
	m.key, m.units, m.leaving = m.key[:0], m.units[:0], m.leaving[:0]
	for g, from := range r.first {
		to := from + r.room[g]
		r.first[g] = int32(len(m.key))
		m.key = append(m.key, r.key[from:to]...)
		m.units = append(m.units, r.units[from:to]...)
		m.leaving = append(m.leaving, r.leaving[from:to]...)
	}
	r.key, m.key = m.key, r.key
	r.units, m.units = m.units, r.units
	r.leaving, m.leaving = m.leaving, r.leaving
}

// change is units for the row of a key.
type change struct {
	group          int32
	key            Key
	units, leaving int64
}

// build makes so many groups of rows that each gives in any order, each time it is called the same. O(rows), and the
// sorting of groups that are not in order.
func (r *rows) build(groups int, each func(f func(c change))) {
	r.reset(groups)
	each(func(c change) { r.room[c.group]++ })
	at := int32(0)
	for g, n := range r.room {
		r.first[g], at = at, at+n
	}
	n := int(at)
	r.key, r.units, r.leaving = stretch(r.key, n), stretch(r.units, n), stretch(r.leaving, n)
	each(func(c change) {
		to := r.first[c.group] + r.size[c.group]
		r.key[to], r.units[to], r.leaving[to] = c.key, c.units, c.leaving
		r.size[c.group]++
	})
	for g := range r.first {
		r.order(int32(g))
	}
}

// order sorts the rows of a group that build has filled, and makes one row of those of one key.
func (r *rows) order(group int32) {
	g := r.of(group)
	if !slices.IsSortedFunc(g.Key, Key.compare) {
		list := r.sorted[:0]
		for i, key := range g.Key {
			list = append(list, change{group, key, g.Units[i], g.Leaving[i]})
		}
		slices.SortFunc(list, func(a, b change) int { return a.key.compare(b.key) }) // those of one key become one
		for i := range list {
			g.Key[i], g.Units[i], g.Leaving[i] = list[i].key, list[i].units, list[i].leaving
		}
		r.sorted = list
	}
	n := 0
	for i := range g.Key {
		if n > 0 && g.Key[n-1] == g.Key[i] {
			g.Units[n-1] += g.Units[i]
			g.Leaving[n-1] += g.Leaving[i]
			continue
		}
		g.Key[n], g.Units[n], g.Leaving[n] = g.Key[i], g.Units[i], g.Leaving[i]
		n++
	}
	r.size[group] = int32(n)
}

// merge adds changes to rows, those of a group in one pass: a leaf may hold something on every host. The changes are
// sorted. O(changes × log, and the rows of groups in which a row is new or goes).
func (r *rows) merge(list []change) {
	slices.SortFunc(list, func(a, b change) int {
		if a.group != b.group {
			return cmp.Compare(a.group, b.group)
		}
		return a.key.compare(b.key)
	})
	n := 0
	for i := range list { // one of those of one key
		if n > 0 && list[n-1].group == list[i].group && list[n-1].key == list[i].key {
			list[n-1].units += list[i].units
			list[n-1].leaving += list[i].leaving
			continue
		}
		list[n] = list[i]
		n++
	}
	list = list[:n]
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].group == list[0].group {
			n++
		}
		r.mergeGroup(list[:n])
		list = list[n:]
	}
}

// fewMost is how many changes of a group are made one by one.
const fewMost = 8

// mergeGroup is merge for one group, of whose keys each has one change.
func (r *rows) mergeGroup(list []change) {
	group := list[0].group
	if len(list) <= fewMost || int(group) >= len(r.first) {
		for _, c := range list {
			r.add(group, c.key, c.units, c.leaving)
		}
		return
	}
	m, g, i := &r.merged, r.of(group), 0
	m.key, m.units, m.leaving = m.key[:0], m.units[:0], m.leaving[:0]
	for _, c := range list {
		for ; i < len(g.Key) && g.Key[i].compare(c.key) < 0; i++ {
			m.put(g.Key[i], g.Units[i], g.Leaving[i])
		}
		if i < len(g.Key) && g.Key[i] == c.key {
			c.units, c.leaving, i = c.units+g.Units[i], c.leaving+g.Leaving[i], i+1
		}
		m.put(c.key, c.units, c.leaving)
	}
	for ; i < len(g.Key); i++ {
		m.put(g.Key[i], g.Units[i], g.Leaving[i])
	}
	n := int32(len(m.key))
	if r.room[group] < n {
		r.widen(group, n+n/2)
	}
	at := r.first[group]
	copy(r.key[at:], m.key)
	copy(r.units[at:], m.units)
	copy(r.leaving[at:], m.leaving)
	r.size[group] = n
}

// stretch is s with so many zeros behind it.
func stretch[T any](s []T, n int) []T {
	from := len(s)
	s = slices.Grow(s, n)[:from+n]
	clear(s[from:])
	return s
}
