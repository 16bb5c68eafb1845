//go:build mutant

package cycle_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/md"
	"github.com/stintd/stint/core/scenario"
)

// mutants are a package's wrong behaviours.
type mutants struct {
	of    string
	names []string
	set   func(n int)
	cases func(name string) string // the kind of those that must notice
}

// TestMutants makes the engine wrong in many small ways, one at a time: random cases must notice each, or they prove
// little. It prints how many cases that took. What they do not come across must be noticed by a scenario that says what it is about. A part
// of them is played with -run 'TestMutants/md/recall'.
func TestMutants(t *testing.T) {
	for _, m := range []mutants{
		{"md", md.Mutants[:], md.SetMutant, func(name string) string { return kindOf(name, "lend") }},
	} {
		t.Run(m.of, func(t *testing.T) {
			for i, name := range m.names {
				t.Run(name, func(t *testing.T) {
					m.set(i + 1)
					defer m.set(0)
					noticing := m.cases(name)
					caught(t, kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == noticing })])
				})
			}
		})
	}
}

// kindOf is the kind of cases that must notice a mutant: what its name is about, else the one that is usual for its package.
func kindOf(mutant, usual string) string {
	about, _, _ := strings.Cut(mutant, ":")
	switch {
	case slices.Contains([]string{"hybrid", "switch", "window", "policy"}, about):
		return "hybrid"
	case slices.Contains([]string{"assign", "parcel"}, about):
		return "own"
	case about == "choice":
		return "fair"
	}
	return usual
}

// caught plays random cases of a kind until one fails, none beyond casesMin; then the scenarios.
func caught(t *testing.T, k kind) {
	setRapid(t, casesMin, 1)
	set(t, "rapid.shrinktime", "0s")
	cases, done := 0, make(chan struct{})
	r := recorder{TB: t}
	go func() { // a goroutine, as FailNow ends it
		defer close(done)
		rapid.Check(&r, func(t *rapid.T) {
			cases++
			play(t, k)
		})
	}()
	<-done
	if r.failed {
		t.Logf("noticed by case %d: %s", cases, r.first)
	} else if name := unexpected(t); name != "" {
		t.Logf("noticed by no case of %d, but by the scenario %q", casesMin, name)
	} else if err := reserveAfterResync(); err != nil {
		t.Logf("noticed by no case of %d and no scenario, but after a resynchronisation: %v", casesMin, err)
	} else {
		t.Errorf("no case of %d noticed, and no scenario", casesMin)
	}
}

// unexpected plays the scenarios, and names the first in which not all is as expected.
func unexpected(t *testing.T) string {
	files, err := filepath.Glob("../../testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("scenarios: %v, %v", files, err)
	}
	for _, file := range files {
		list, err := scenario.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			if r, err := one.Play(); err != nil || !r.OK() {
				return one.Name
			}
		}
	}
	return ""
}

// recorder takes what rapid reports as good news.
type recorder struct {
	rapid.TB
	failed bool
	first  string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Name() string                      { return "mutant" }
func (r *recorder) Failed() bool                      { return r.failed }
func (r *recorder) Fail()                             { r.failed = true }
func (r *recorder) Log(...any)                        {}
func (r *recorder) Logf(string, ...any)               {}
func (r *recorder) Error(args ...any)                 { r.note(fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.note(fmt.Sprintf(format, args...)) }
func (r *recorder) FailNow()                          { r.failed = true; runtime.Goexit() }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) note(text string) {
	if r.failed = true; r.first == "" {
		r.first = fmt.Sprintf("%.120q", text)
	}
}
