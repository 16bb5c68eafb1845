package place

import "github.com/stintd/stint/core/cluster"

// tree is a segment tree over the parcels for balanced placement: below each
// node the greatest weighted free room and the greatest free amount of each
// dimension. Node 1 is the root, the children of i are 2i and 2i+1, the parcels
// are the leaves.
type tree struct {
	leaves int
	most   []int64   // weighted free room; -1 where no parcel is open
	room   [][]int64 // by dimension
}

// build makes the tree of a field's parcels. O(parcels × dimensions).
func (t *tree) build(f *Field) {
	t.leaves = 1
	for t.leaves < f.parcels.Len() {
		t.leaves *= 2
	}
	t.most = resize(t.most, 2*t.leaves)
	t.room = resize(t.room, len(f.weight))
	for d := range t.room {
		t.room[d] = resize(t.room[d], 2*t.leaves)
		clear(t.room[d])
	}
	for i := range t.most {
		t.most[i] = -1
	}
	for k := range f.parcels.Len() {
		t.leaf(f, cluster.ParcelID(k))
	}
	for i := t.leaves - 1; i > 0; i-- {
		t.merge(i)
	}
}

func (t *tree) leaf(f *Field, k cluster.ParcelID) int {
	i := t.leaves + int(k)
	t.most[i] = f.free[k]
	for d := range t.room {
		t.room[d][i] = f.room[int(k)*len(t.room)+d]
	}
	return i
}

func (t *tree) merge(i int) {
	t.most[i] = max(t.most[2*i], t.most[2*i+1])
	for d := range t.room {
		t.room[d][i] = max(t.room[d][2*i], t.room[d][2*i+1])
	}
}

// update follows a change of one parcel. O(log parcels × dimensions).
func (t *tree) update(f *Field, k cluster.ParcelID) {
	for i := t.leaf(f, k) / 2; i > 0; i /= 2 {
		t.merge(i)
	}
}

// find is the parcel with the greatest weighted free room that a unit fits, the
// first of equal ones. It looks into a subtree only if that can hold a better one.
func (t *tree) find(q *Finder) cluster.ParcelID {
	if q.field.parcels.Len() == 0 {
		return cluster.NoID
	}
	w := widest{q: q, best: -1, at: -1}
	w.search(1, 0, t.leaves)
	return cluster.ParcelID(w.at)
}

// widest is a search of the tree for the best parcel so far.
type widest struct {
	q    *Finder
	best int64
	at   int
}

// search looks through the subtree of node i, whose parcels are first … first+span-1.
func (w *widest) search(i, first, span int) {
	t, q := &w.q.field.tree, w.q
	if m := t.most[i]; m < 0 || m < w.best || m == w.best && first > w.at {
		return
	}
	for _, d := range q.unit.need {
		if t.room[d][i] < q.unit.size[d] {
			return
		}
	}
	if i >= t.leaves {
		if q.fits(cluster.ParcelID(first)) {
			w.best, w.at = t.most[i], first
		}
		return
	}
	span /= 2
	if t.most[2*i+1] > t.most[2*i] {
		w.search(2*i+1, first+span, span)
		w.search(2*i, first, span)
		return
	}
	w.search(2*i, first, span)
	w.search(2*i+1, first+span, span)
}
