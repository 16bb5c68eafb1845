package view

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRows holds rows against a map, over changes one by one and many at once, and after they were built of a list.
func TestRows(t *testing.T) {
	const groups = 5
	type place struct {
		group int32
		key   Key
	}
	type sum struct{ units, leaving int64 }
	rapid.Check(t, func(t *rapid.T) {
		var r rows
		want := map[place]sum{}
		r.reset(groups)
		draw := func(t *rapid.T) change {
			small := func(name string) int32 { return int32(rapid.IntRange(-1, 3).Draw(t, name)) }
			units := rapid.Int64Range(-3, 3)
			return change{
				int32(rapid.IntRange(0, groups).Draw(t, "group")), Key{small("A"), small("B"), small("C")},
				units.Draw(t, "units"), units.Draw(t, "leaving"),
			}
		}
		count := func(c change) {
			at := place{c.group, c.key}
			now := sum{want[at].units + c.units, want[at].leaving + c.leaving}
			if want[at] = now; now == (sum{}) {
				delete(want, at)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				c := draw(t)
				count(c)
				r.add(c.group, c.key, c.units, c.leaving)
			},
			"merge": func(t *rapid.T) {
				list := rapid.SliceOfN(rapid.Custom(draw), 0, 60).Draw(t, "changes")
				for _, c := range list {
					count(c)
				}
				r.merge(list)
			},
			"build": func(t *rapid.T) {
				var list []change
				for at, s := range want { // in any order, some in two parts
					list = append(list, change{at.group, at.key, s.units - 1, s.leaving},
						change{at.group, at.key, 1, 0})
				}
				r.build(groups+1, func(f func(c change)) {
					for _, c := range list {
						f(c)
					}
				})
			},
			"": func(t *rapid.T) {
				rowsOf := map[place]sum{}
				for group := range int32(groups + 1) {
					g := r.of(group)
					if !slices.IsSortedFunc(g.Key, Key.compare) {
						t.Fatalf("group %d is in the order %v", group, g.Key)
					}
					for i, key := range g.Key {
						rowsOf[place{group, key}] = sum{g.Units[i], g.Leaving[i]}
						if units, ok := r.get(group, key); !ok || units != g.Units[i] {
							t.Fatalf("%v of group %d has %d units, found %d (%v)", key, group, g.Units[i], units, ok)
						}
					}
				}
				if !maps.Equal(rowsOf, want) {
					t.Fatalf("rows %v, want %v", rowsOf, want)
				}
			},
		})
	})
}

// TestRowsPack holds that what groups leave behind when they move is used again.
func TestRowsPack(t *testing.T) {
	var r rows
	const groups, most = 50, 400
	r.reset(groups)
	for i := range int32(most) {
		for group := range int32(groups) {
			r.add(group, Key{A: i}, int64(i)+1, 0)
		}
	}
	if n := len(r.key); n > 4*groups*most {
		t.Fatalf("%d rows take the memory of %d", groups*most, n)
	}
	for group := range int32(groups) {
		if g := r.of(group); len(g.Key) != most || g.Units[most-1] != most {
			t.Fatalf("group %d has %d rows, the last of %d units", group, len(g.Key), g.Units[len(g.Key)-1])
		}
	}
}
