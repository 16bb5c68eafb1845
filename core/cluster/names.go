// Package cluster holds the state of a cluster as columns: input tables, names,
// hosts, parcels, demand and holdings, and the changes that may be applied to
// them. It decides nothing; the rooms of MD plans and core/slot do.
package cluster

import (
	"hash/maphash"
	"math/bits"
	"runtime"
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
	// slot is an open-addressed hash table: hash in the upper half, so that probing
	// and growing look at no names, id+1 in the lower; 0 is empty.
	slot []uint64
}

var nameSeed = maphash.MakeSeed()

// Len is the number of distinct names.
func (n *Names) Len() int { return len(n.end) }

// Size is how many bytes the dictionary takes, without what it has reserved.
func (n *Names) Size() int { return len(n.bytes) + 8*len(n.end) + 8*len(n.slot) }

// Reset forgets all names and keeps the memory. Ids given before mean nothing any more.
func (n *Names) Reset() {
	n.bytes, n.end = n.bytes[:0], n.end[:0]
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
	_, id = n.probe(name, hashOf(name))
	return id, id >= 0
}

// Intern gives the id of a name, adding it (by copy) when it is new. Amortised O(len(name)).
func (n *Names) Intern(name []byte) int32 {
	n.room(1)
	return n.intern(name, hashOf(name))
}

// InternAll is Intern for many names: ids[i] becomes that of data[offsets[i]:offsets[i+1]]. The hash
// table may be larger than every cache; here its misses do not wait for each other.
func (n *Names) InternAll(data []byte, offsets, ids []int32) {
	var hashes [64]uint64
	for from := 0; from < len(ids); from += len(hashes) {
		some := ids[from:min(from+len(hashes), len(ids))]
		o := offsets[from : from+len(some)+1]
		n.room(len(some))
		mask, touched := len(n.slot)-1, uint64(0)
		for i := range some {
			hashes[i] = hashOf(data[o[i]:o[i+1]])
		}
		for _, h := range hashes[:len(some)] {
			touched |= n.slot[int(h>>32)&mask]
		}
		runtime.KeepAlive(touched) // else the loads would be left out
		for i := range some {
			some[i] = n.intern(data[o[i]:o[i+1]], hashes[i])
		}
	}
}

// intern is Intern of a name whose hash is known, where the table has room.
func (n *Names) intern(name []byte, hash uint64) int32 {
	s, id := n.probe(name, hash)
	if id < 0 {
		id = int32(len(n.end))
		n.slot[s] = hash | uint64(id+1)
		n.bytes = append(n.bytes, name...)
		n.end = append(n.end, uint64(len(n.bytes)))
	}
	return id
}

func hashOf(name []byte) uint64 { return maphash.Bytes(nameSeed, name) &^ idBits }

// probe finds the slot of a name, or the empty one where it belongs (id is then -1).
func (n *Names) probe(name []byte, hash uint64) (s int, id int32) {
	slot := n.slot
	mask := len(slot) - 1
	for s = int(hash>>32) & mask; ; s = (s + 1) & mask {
		at := slot[s]
		if at == 0 {
			return s, -1
		}
		if at&^idBits == hash {
			if id = int32(at&idBits) - 1; string(n.Bytes(id)) == string(name) {
				return s, id
			}
		}
	}
}

// idBits are the bits of a slot that hold the id.
const idBits = 1<<32 - 1

// InternString is Intern for a string.
func (n *Names) InternString(name string) int32 { return n.Intern([]byte(name)) }

// Reserve makes room for more names, so that interning them does not grow the table step by step.
func (n *Names) Reserve(more int) {
	if want := (len(n.end) + more) * 4 / 3; want >= len(n.slot) {
		n.resize(want)
	}
	n.end = slices.Grow(n.end, more)
}

// room makes the hash table large enough for more names, at most three quarters full.
func (n *Names) room(more int) {
	if (len(n.end)+more)*4 > len(n.slot)*3 {
		n.resize(max(len(n.slot)*2, (len(n.end)+more)*4/3))
	}
}

// resize makes the hash table hold at least slots slots, a power of two.
func (n *Names) resize(slots int) {
	old := n.slot
	n.slot = make([]uint64, max(16, 1<<bits.Len(uint(slots))))
	mask := len(n.slot) - 1
	for _, at := range old {
		if at == 0 {
			continue
		}
		s := int(at>>32) & mask
		for n.slot[s] != 0 {
			s = (s + 1) & mask
		}
		n.slot[s] = at
	}
}
