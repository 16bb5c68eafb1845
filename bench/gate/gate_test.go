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

// TestSlower: a quarter more is let through, what is above that fails and is marked.
func TestSlower(t *testing.T) {
	m := &measured{suites: []suite{{figures: []figure{"a", "b"}}}, base: 100, least: []float64{250, 260}, runs: 7}
	held := &ratios{Of: map[figure]float64{"a": 2, "b": 2}}
	if n := m.slower(held); n != 1 {
		t.Errorf("%d are slower, want 1", n)
	}
	var out bytes.Buffer
	if err := m.show(&out, held); err != nil {
		t.Fatal(err)
	}
	s := out.String()
	if !strings.HasPrefix(s, "SLOWER: 1 of 2;") || strings.Count(s, "slower") != 1 ||
		!strings.Contains(s, "2.600 │ 2.000 │ 1.30 │ slower") {
		t.Errorf("got\n%s", s)
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
