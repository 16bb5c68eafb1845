package decision

import (
	"math"
	"testing"
)

// TestDeviceDetail holds details against what they are told by.
func TestDeviceDetail(t *testing.T) {
	for _, c := range []struct {
		amount int64
		hosts  int
		want   string
	}{
		{700, 1, "a unit takes 700 gpu_milli of one device, no device of 1 host has so much free"},
		{1000, 3, "a unit takes 1000 gpu_milli of one device, no device of 3 hosts has so much free"},
		{4000, 3, "a unit takes 4 whole devices of gpu_milli, none of 3 hosts has so many free"},
	} {
		if got := DeviceDetail(c.amount, 1000, "gpu_milli", c.hosts); got != c.want || !IsDeviceDetail(got) {
			t.Errorf("%q, %t, want %q", got, IsDeviceDetail(got), c.want)
		}
	}
	if IsDeviceDetail("a unit takes 700 gpu_milli, 2 of 3 hosts have less free") {
		t.Error("a detail of hosts is taken for one of devices")
	}
}

// TestDevices holds texts of devices against sets, there and back, and what is no such text.
func TestDevices(t *testing.T) {
	for set, want := range map[uint64]string{0: "", 1: "0", 0b11110000: "4+5+6+7", 1<<63 | 2: "1+63",
		math.MaxUint64 >> 62: "0+1"} {
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
