package place

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/vecpack"
)

// leastMost is how many sizes parcels are compared with before they are added; of more, the least in each dimension is one.
const leastMost = 8

// Narrow tells the lot the sizes of all units that will be asked for: parcels that have no room for any of them may be left out, as free room only falls.
// O(sizes × those of them that no other is smaller than).
func (l *Lot) Narrow(shapes []cluster.ShapeID) {
	l.least = l.least[:0]
	for _, shape := range shapes {
		unit := &l.desk.form(shape).unit
		if unit.never || slices.ContainsFunc(l.least, func(small uint64) bool { return vecpack.Covers(unit.word, small) }) {
			continue
		}
		l.least = slices.DeleteFunc(l.least, func(large uint64) bool { return vecpack.Covers(large, unit.word) })
		if l.least = append(l.least, unit.word); len(l.least) > leastMost {
			for _, other := range l.least[1:] {
				l.least[0] += other - vecpack.Most(l.least[0], other)
			}
			l.least = l.least[:1]
		}
	}
	l.narrow = true
}

// MayUse tells whether a parcel may have room for anyone that Narrow was told of. Those that have none need not be added.
func (l *Lot) MayUse(k cluster.ParcelID) bool {
	return l.mayHold(l.desk.Field.word[k])
}

// mayHold tells whether anyone that Narrow was told of may fit into so much, packed; where none may, it counts as left out.
func (l *Lot) mayHold(room uint64) bool {
	if !l.narrow {
		return true
	}
	for _, small := range l.least {
		if vecpack.Covers(room, small) {
			return true
		}
	}
	l.left++
	return false
}
