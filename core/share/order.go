package share

import "slices"

// Order keeps leaves sorted by distance ÷ ratio, the farthest first, while distances change. Ids of leaves are numbers
// ≥ 0; the zero value is ready after Reset.
type Order struct {
	List []int32 // the ids, in order
	Last bool    // the farthest stands last, where it is cheap to take out

	distance, ratio []int64 // by id
	tie             []int32
	in              []bool
}

// Reset makes room for ids below n, none of which is in it.
func (o *Order) Reset(n int) {
	o.List = o.List[:0]
	o.distance, o.ratio, o.tie, o.in = resized(o.distance, n), resized(o.ratio, n), resized(o.tie, n), resized(o.in, n)
	clear(o.in)
}

// Before compares two leaves that are, or were, in the order: below 0 when the first stands before the second. Of equal
// distances the smaller tie stands first; no two ties are equal.
func (o *Order) Before(a, b int32) int {
	if o.Last {
		a, b = b, a
	}
	if c := Farther(o.distance[b], o.ratio[b], o.distance[a], o.ratio[a]); c != 0 {
		return c
	}
	return int(o.tie[a]) - int(o.tie[b])
}

// Add adds a leaf that is not in the order behind the others; Sort puts all in order.
func (o *Order) Add(id int32, distance, ratio int64, tie int32) {
	o.distance[id], o.ratio[id], o.tie[id], o.in[id] = distance, ratio, tie, true
	o.List = append(o.List, id)
}

// Sort sorts all leaves.
func (o *Order) Sort() { slices.SortFunc(o.List, o.Before) }

// Distance is the distance of a leaf in the order, 0 of others.
func (o *Order) Distance(id int32) int64 {
	if !o.in[id] {
		return 0
	}
	return o.distance[id]
}

// Has tells whether a leaf is in the order.
func (o *Order) Has(id int32) bool { return o.in[id] }

// Remove takes a leaf out of the order. O(leaves behind it).
func (o *Order) Remove(id int32) {
	i, _ := slices.BinarySearchFunc(o.List, id, o.Before)
	o.List, o.in[id] = slices.Delete(o.List, i, i+1), false
}

// Put puts a leaf that is not in the order at its place. O(leaves behind it).
func (o *Order) Put(id int32, distance, ratio int64, tie int32) {
	o.distance[id], o.ratio[id], o.tie[id], o.in[id] = distance, ratio, tie, true
	i, _ := slices.BinarySearchFunc(o.List, id, o.Before)
	o.List = slices.Insert(o.List, i, id)
}

// Move gives a leaf of the order another distance and its place.
func (o *Order) Move(id int32, distance int64) {
	if o.distance[id] != distance {
		o.Remove(id)
		o.Put(id, distance, o.ratio[id], o.tie[id])
	}
}
