package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHeld runs every suite once, and holds the committed file to the figures that are measured.
func TestHeld(t *testing.T) {
	all, err := suites(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		took, err := s.run()
		if err != nil {
			t.Fatalf("%v: %v", s.figures, err)
		}
		if len(took) != len(s.figures) {
			t.Errorf("%v: %d times", s.figures, len(took))
		}
		for i, us := range took {
			if us < 0 {
				t.Errorf("%s: %g µs", s.figures[i], us)
			}
		}
	}
	held, err := readRatios("ratios.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := held.name(newMeasured(all).figures()); err != nil {
		t.Error(err)
	}
}

// TestVerdicts: what takes up to 14 % more passes, and what takes up to 12 % less; the rest fails and is marked.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		least       float64 // of "b"; "a" is as held
		fails       int
		begins, row string
	}{
		{227, 0, "nothing is slower; the limit is × 1.14\n┌", "2.270 │ 2.000 │ 1.14 │  "},
		{229, 1, "SLOWER: 1 of 2; the limit is × 1.14\n┌", "2.290 │ 2.000 │ 1.15 │ slower"},
		{176, 0, "nothing is slower; the limit is × 1.14\n┌", "1.760 │ 2.000 │ 0.88 │  "},
		{175, 1, "nothing is slower; the limit is × 1.14\n" +
			"FASTER: 1 of 2, so that a slowdown of 30 % would pass; make gate-write holds them anew\n┌",
			"1.750 │ 2.000 │ 0.88 │ faster"},
	} {
		m := &measured{suites: []suite{{figures: []figure{"a", "b"}}}, base: 100, least: []float64{200, c.least},
			runs: 7}
		held := &ratios{Of: map[figure]float64{"a": 2, "b": 2}}
		if n := m.fails(held); n != c.fails {
			t.Errorf("%g: %d fail, want %d", c.least, n, c.fails)
		}
		var out bytes.Buffer
		if err := m.show(&out, held); err != nil {
			t.Fatal(err)
		}
		if s := out.String(); !strings.HasPrefix(s, c.begins) || !strings.Contains(s, c.row) {
			t.Errorf("%g: got\n%s", c.least, s)
		}
	}
}

func TestRatiosRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ratios.json")
	for text, want := range map[string]string{
		`{"ratios": {"a": 1}}`:                        `no ratio of "b" above 0`,
		`{"ratios": {"a": 1, "b": 0}}`:                `no ratio of "b" above 0`,
		`{"ratios": {"a": 1, "b": 1, "c": 1}}`:        `3 ratios, and 2 figures`,
		`{"ratios": {"a": 1, "b": 1}, "limit": 1.25}`: `unknown field "limit"`,
		`{"ratios": {"a": "1"}}`:                      `cannot unmarshal string`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := readRatios(file)
		if err == nil {
			err = r.name([]figure{"a", "b"})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
