package decision

import (
	"math"
	"testing"
)

// TestDevices holds texts of devices against sets, there and back, and what is no such text.
func TestDevices(t *testing.T) {
	for set, want := range map[uint64]string{0: "", 1: "0", 0b11110000: "4+5+6+7", 1<<63 | 2: "1+63", math.MaxUint64 >> 62: "0+1"} {
		if got := DeviceText(set); got != want {
			t.Errorf("%b is %q, want %q", set, got, want)
		}
		if got, ok := ReadDevices(want); !ok || got != set {
			t.Errorf("%q is read as %b, %v", want, got, ok)
		}
	}
	for _, bad := range []string{"a", "-1", "64", "1+0", "1+1", "01", "+1", "1+", "1 + 2", "300"} {
		if set, ok := ReadDevices(bad); ok {
			t.Errorf("%q is read as %b", bad, set)
		}
	}
}
