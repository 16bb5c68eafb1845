package verify

import (
	"cmp"
	"fmt"
	"slices"
)

// Fault is one thing that is wrong with a log.
type Fault struct {
	Cycle      int64  `json:"cycle"`
	Rule       string `json:"rule"` // INV-1 … INV-10, CYC-n, or log, seal, digest, manifest, input
	Table      string `json:"table"`
	Plan       string `json:"plan,omitempty"`
	Consumer   string `json:"consumer,omitempty"`
	Allocation string `json:"allocation,omitempty"`
	Sub        string `json:"sub,omitempty"`
	Host       string `json:"host,omitempty"`
	What       string `json:"what"`
	Expected   string `json:"expected,omitempty"`
	Got        string `json:"got,omitempty"`
}

// FaultsMax bounds the faults that a report lists; past it they are only counted.
const FaultsMax = 10_000

// Report is what a verification found.
type Report struct {
	First    int64            `json:"first"`
	Last     int64            `json:"last"`
	Cycles   int64            `json:"cycles"`
	Rows     int64            `json:"rows"`   // of all tables
	Checks   map[string]int64 `json:"checks"` // figures and rows that were held against something, by rule
	Count    int64            `json:"fault_count"`
	Faults   []Fault          `json:"faults"`
	Untold   []string         `json:"untold"` // what of this log could not be told, and why
	untold   map[string]bool
	standing map[standing]string // faults of the last cycle that go on, by what they are: the figures
	now      map[standing]string
}

// standing is what a fault is about: one that goes on with the same figures is told once.
type standing struct {
	rule, table, plan, consumer, allocation, sub, host, what string
}

func newReport() *Report {
	return &Report{Checks: map[string]int64{}, Faults: []Fault{}, Untold: []string{}, untold: map[string]bool{},
		now: map[standing]string{}}
}

// OK tells whether nothing was found.
func (r *Report) OK() bool { return r.Count == 0 }

// add takes note of a fault, unless it is one of the last cycle's that goes on.
func (r *Report) add(f Fault) {
	s := standing{f.Rule, f.Table, f.Plan, f.Consumer, f.Allocation, f.Sub, f.Host, f.What}
	figures := f.Expected + " " + f.Got
	if was, ok := r.now[s]; ok && was == figures {
		return
	}
	r.now[s] = figures
	if was, ok := r.standing[s]; ok && was == figures {
		return
	}
	if r.Count++; len(r.Faults) < FaultsMax {
		r.Faults = append(r.Faults, f)
	}
}

// cannot takes note of what a log does not tell.
func (r *Report) cannot(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !r.untold[text] {
		r.untold[text] = true
		r.Untold = append(r.Untold, text)
	}
}

// turn ends a cycle.
func (r *Report) turn() { r.standing, r.now = r.now, map[standing]string{} }

// sort puts faults in the order of cycles, and of rules within one.
func (r *Report) sort() {
	slices.SortStableFunc(r.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Cycle, b.Cycle), cmp.Compare(a.Rule, b.Rule))
	})
}
