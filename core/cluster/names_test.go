package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stintd/stint/core/cluster"
)

// TestNames holds both ways of interning against a map: ids in order of first
// sight, through growth, reserving and reuse.
func TestNames(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var names cluster.Names
	for round := range 20 {
		names.Reset()
		if round%3 == 0 {
			names.Reserve(random.IntN(5_000))
		}
		known := map[string]int32{}
		for names.Len() < 3_000 {
			var data []byte
			offsets, ids := []int32{0}, make([]int32, random.IntN(200))
			for range ids {
				data = fmt.Append(data, "name", random.IntN(4_000))
				offsets = append(offsets, int32(len(data)))
			}
			if names.InternAll(data, offsets, ids); len(ids) > 0 {
				ids = append(ids, names.Intern(data[offsets[0]:offsets[1]]))
				offsets = append(offsets, offsets[len(offsets)-1])
			}
			for i, id := range ids {
				name := string(data[offsets[i]:offsets[i+1]])
				if i == len(ids)-1 {
					name = string(data[:offsets[1]])
				}
				if _, ok := known[name]; !ok {
					known[name] = int32(len(known))
				}
				if found, ok := names.Find([]byte(name)); id != known[name] || names.String(id) != name || !ok ||
					found != id {
					t.Fatalf("%s has id %d (found %d), which is %s; want %d", name, id, found, names.String(id),
						known[name])
				}
			}
		}
		if _, ok := names.Find([]byte("nobody")); ok || names.Len() != len(known) {
			t.Fatalf("%d names of %d; nobody found: %t", names.Len(), len(known), ok)
		}
	}
}
