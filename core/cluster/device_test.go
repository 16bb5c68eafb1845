package cluster

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestChooseDevices holds the devices that units are given against every device by itself, and the two figures by which
// an index knows whether there are any against that.
func TestChooseDevices(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		per := rapid.Int64Range(1, 6).Draw(r, "per")
		free := make([]int64, rapid.IntRange(0, 6).Draw(r, "devices"))
		for i := range free {
			free[i] = rapid.Int64Range(noDevice, per).Draw(r, "free")
		}
		g := rapid.Int64Range(1, per).Draw(r, "part")
		if rapid.Bool().Draw(r, "whole") {
			g = per * rapid.Int64Range(1, 4).Draw(r, "times")
		}
		var want Devices
		if g > per {
			for i, n := range free {
				if n == per && bits.OnesCount64(uint64(want)) < int(g/per) {
					want |= 1 << i
				}
			}
			if bits.OnesCount64(uint64(want)) < int(g/per) {
				want = 0
			}
		} else {
			for left := g; left <= per && want == 0; left++ {
				if i := slices.Index(free, left); i >= 0 {
					want = 1 << i
				}
			}
		}
		on, ok := ChooseDevices(free, per, g)
		if ok != (want != 0) || ok && on != want {
			r.Fatalf("a unit of %d lies on %b (%t) of %v of %d each, want %b", g, on, ok, free, per, want)
		}
		most, empty := RoomOfDevices(free, per)
		needMost, needEmpty := NeedOfDevices(per, g)
		if ok != (most >= needMost && empty >= needEmpty) {
			r.Fatalf("a unit of %d needs %d and %d, there are %d and %d of %v of %d each", g, needMost, needEmpty, most,
				empty, free, per)
		}
		if !ok {
			return
		}
		left, units := slices.Clone(free), fill(free, on, per, g)
		for range units {
			if again, ok := ChooseDevices(left, per, g); !ok || again != on {
				r.Fatalf("one of %d units of %d lies on %b of %v, not on %b", units, g, again, left, on)
			}
			TakeOfDevices(left, on, per, g, 1)
		}
		if again, ok := ChooseDevices(left, per, g); ok && again == on {
			r.Fatalf("more than %d units of %d lie on %b of %v", units, g, on, free)
		}
	})
}
