package cycle_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/reason"
	"github.com/stintd/stint/core/view"
)

// pooled holds what core/pool says after a cycle against the oracle, to the last 2⁻⁴⁸ of a share, and counts what it
// compared.
type pooled struct {
	rows, statics, passed int
	views                 []view.Views
	steps                 int // that the case had when it was looked at last
}

func (w *pooled) begin(*player) { w.views, w.steps = nil, -1 }

// look compares before a cycle that has the input of the last one: the state is as the last one left it.
func (w *pooled) look(t *rapid.T, p *player) {
	if p.cycles > 1 && w.steps == len(p.steps) {
		w.compare(t, p)
	}
	w.steps = len(p.steps)
}

func (w *pooled) end(*rapid.T, *player) {}

func (w *pooled) report(t *testing.T, cases int) {
	t.Logf("core/pool: %d rows of shares, %d static quotas; %d cycles passed over", w.rows, w.statics, w.passed)
	if !testing.Short() && (w.rows < 10*cases || w.statics < 10*cases) {
		t.Error("core/pool: too little was compared")
	}
}

// compare compares all MD plans of a case. Where a cycle took back some of its own grants, pools of lent parcels
// counted what is not held any more.
func (w *pooled) compare(t *rapid.T, p *player) {
	s := p.engine
	for len(w.views) < len(s.Plans) {
		w.views = append(w.views, view.Views{})
	}
	for i := range s.Plans {
		if s.Plans[i].MD == nil {
			continue
		}
		w.views[i].Follow(s, &s.Plans[i])
		if s.Plans[i].Parcels.Owned && p.last.Revoked > 0 {
			w.passed++
			continue
		}
		at := slices.IndexFunc(p.last.Reasoned, func(b oracle.Reasoned) bool { return b.Plan == s.Plans[i].Name })
		e := envOf(s, &s.Plans[i], &w.views[i], &p.last.Reasoned[at])
		w.shares(t, p, e)
		w.static(t, p, &e.Env)
	}
}

// shares compares the rows of the table shares that the oracle has of a plan.
func (w *pooled) shares(t *rapid.T, p *player, e *reason.Env) {
	figures := map[string]*pool.Figures{}
	for _, n := range e.List() {
		figures[e.State.Policy.Path[n]] = e.Figures.Of(n)
	}
	for _, row := range p.last.Shares {
		if row.Plan != e.Plan.Name {
			continue
		}
		n, _ := e.State.Policy.Find(row.Path)
		f, ok := figures[row.Pool]
		if !ok {
			t.Fatalf("cycle %d: no pool of %s, the oracle has %+v", p.cycles, row.Pool, row)
		}
		at := n - f.Pool
		got := fmt.Sprint(f.Held[at], f.Wanted[at], f.Usage[at], f.Demand[at], f.Quota[at])
		want := fmt.Sprint(row.UnitsHeld, row.UnitsWanted, row.Fixed, row.Demand, row.Quota)
		if got != want {
			t.Fatalf("cycle %d: %s in the pool of %s: held, wanted, usage, demand, quota %s; the oracle %s",
				p.cycles, row.Path, row.Pool, got, want)
		}
		w.rows++
	}
}

// static compares the static share quotas: of each consumer the sum of its parts of all pools above it.
func (w *pooled) static(t *rapid.T, p *player, e *pool.Env) {
	policy := e.State.Policy
	sums := make([][]int64, policy.Len())
	for n := range sums {
		sums[n] = make([]int64, len(policy.Dimensions))
	}
	var f pool.Figures
	for _, n := range e.List() {
		for d := range policy.Dimensions {
			for i, part := range f.Static(e, n, d, nil)[1:] {
				sums[int(n)+i+1][d] += part
			}
		}
	}
	for _, row := range p.last.Consumers {
		if n, ok := policy.Find(row.Path); ok && row.Plan == e.Plan.Name {
			if !slices.Equal(sums[n], row.StaticPart) {
				t.Fatalf("cycle %d: %s has static quotas %v, the oracle %v", p.cycles, row.Path, sums[n],
					row.StaticPart)
			}
			w.statics++
		}
	}
}
