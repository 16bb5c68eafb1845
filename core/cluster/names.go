// Package cluster holds the state of a cluster as columns: input tables, names,
// hosts, parcels, demand and holdings, and the changes that may be applied to
// them. It decides nothing; the policies of core/md and core/slot do.
package cluster

import (
	"hash/maphash"
	"math/bits"
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

func (n *Names) grow() {
	size := 16
	if c := len(n.slot) * 2; c > size {
		size = 1 << bits.Len(uint(c-1))
	}
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
