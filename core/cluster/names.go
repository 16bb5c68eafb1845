// Package cluster holds the state of a cluster as columns: input tables, names,
// hosts, parcels, demand and holdings, and the changes that may be applied to
// them. It decides nothing; the policies of core/md and core/slot do.
package cluster

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// Names is an append-only dictionary of byte strings: all bytes in one arena,
// an id per distinct string, ids in order of first sight. It allocates nothing
// per lookup. The zero value is ready to use.
//
// Ids are the Arrow-style dictionary codes of text columns. Order of ids never
// depends on the hash seed, only the speed of a lookup does (INV-8).
type Names struct {
	bytes []byte
	end   []uint64 // end of name i in bytes
	slot  []int32  // open-addressed hash table of id+1; 0 is empty
	hash  []uint32 // hash of name i, so that growing rehashes no bytes
}

var nameSeed = maphash.MakeSeed()

// Len is the number of distinct names.
func (n *Names) Len() int { return len(n.end) }

// Reset forgets all names and keeps the memory. Ids given before mean nothing any more.
func (n *Names) Reset() {
	n.bytes, n.end, n.hash = n.bytes[:0], n.end[:0], n.hash[:0]
	clear(n.slot)
}

// Bytes gives name i. The slice is the dictionary's own: read it, do not keep it across Intern.
func (n *Names) Bytes(i int32) []byte {
	var from uint64
	if i > 0 {
		from = n.end[i-1]
	}
	return n.bytes[from:n.end[i]:n.end[i]]
}

// String copies name i out.
func (n *Names) String(i int32) string { return string(n.Bytes(i)) }

// Find gives the id of a name, ok false when it was never interned.
func (n *Names) Find(name []byte) (id int32, ok bool) {
	if len(n.slot) == 0 {
		return 0, false
	}
	h := uint32(maphash.Bytes(nameSeed, name))
	mask := uint32(len(n.slot) - 1)
	for s := h & mask; n.slot[s] != 0; s = (s + 1) & mask {
		if id = n.slot[s] - 1; n.hash[id] == h && string(n.Bytes(id)) == string(name) {
			return id, true
		}
	}
	return 0, false
}

// Intern gives the id of a name, adding it (by copy) when it is new. Amortised O(len(name)).
func (n *Names) Intern(name []byte) int32 {
	if (len(n.end)+1)*4 > len(n.slot)*3 {
		n.grow()
	}
	h := uint32(maphash.Bytes(nameSeed, name))
	mask := uint32(len(n.slot) - 1)
	s := h & mask
	for ; n.slot[s] != 0; s = (s + 1) & mask {
		if id := n.slot[s] - 1; n.hash[id] == h && string(n.Bytes(id)) == string(name) {
			return id
		}
	}
	id := int32(len(n.end))
	n.slot[s] = id + 1
	n.hash = append(n.hash, h)
	n.bytes = append(n.bytes, name...)
	n.end = append(n.end, uint64(len(n.bytes)))
	return id
}

// InternString is Intern for a string.
func (n *Names) InternString(name string) int32 { return n.Intern([]byte(name)) }

// Reserve makes room for more names, so that interning them does not grow the table step by step.
func (n *Names) Reserve(more int) {
	if want := (len(n.end) + more) * 4 / 3; want >= len(n.slot) {
		n.resize(want)
	}
	n.end = slices.Grow(n.end, more)
	n.hash = slices.Grow(n.hash, more)
}

func (n *Names) grow() { n.resize(len(n.slot) * 2) }

// resize makes the hash table hold at least slots slots, a power of two.
func (n *Names) resize(slots int) {
	size := max(16, 1<<bits.Len(uint(slots)))
	n.slot = make([]int32, size)
	mask := uint32(size - 1)
	for id, h := range n.hash {
		s := h & mask
		for n.slot[s] != 0 {
			s = (s + 1) & mask
		}
		n.slot[s] = int32(id) + 1
	}
}
