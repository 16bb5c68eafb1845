package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"stint": main})
}

// TestScript plays the scripts of testdata/script, each in a folder of its own.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true})
}

// TestGrouped checks the commas of a number.
func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 1 << 53: "9,007,199,254,740,992"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s, expected %s", n, got, want)
		}
	}
}

// TestBar checks that a bar has its width, ends in eighths, and marks the second fraction.
func TestBar(t *testing.T) {
	s := &summary{}
	for _, c := range []struct {
		fraction, mark float64
		want           string
	}{
		{0, -1, "          "},
		{0.5, -1, "█████     "},
		{0.55, -1, "█████▌    "},
		{2, -1, "██████████"},
		{-1, -1, "          "},
		{0.5, 0.8, "█████   ▏ "},
		{0.5, 0.3, "█████     "},
		{0.1, 1, "█        ▏"},
	} {
		if got := s.bar(c.fraction, c.mark, 10); got != c.want {
			t.Errorf("%v, %v: %q, expected %q", c.fraction, c.mark, got, c.want)
		}
	}
}

// TestChoose checks that of many consumers the upper levels are shown, then the shortest of units.
func TestChoose(t *testing.T) {
	rows := []consumerRow{{path: "/A", depth: 1}}
	for i := range 60 {
		rows = append(rows, consumerRow{path: "/A/x", depth: 2, wanted: 1, short: int64(i % 2)})
	}
	rows = append(rows, consumerRow{path: "/B", depth: 1})
	shown := choose(rows)
	short := 0
	for _, r := range shown {
		short += int(r.short)
	}
	if len(shown) != consumersShown || shown[0].path != "/A" || shown[len(shown)-1].path != "/B" || short != 30 {
		t.Errorf("%d rows, first %s, last %s, %d short", len(shown), shown[0].path, shown[len(shown)-1].path, short)
	}
}
