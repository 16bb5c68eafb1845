package server

import (
	"maps"
	"testing"

	"github.com/stintd/stint/core/decision"
)

// TestLostMetric: work lost is counted once, by consumers of the first level, so that series add up to what was lost.
func TestLostMetric(t *testing.T) {
	m := NewMetrics(1)
	c := &decision.Cycle{}
	r, words := &c.Releases, decision.Words{"p", "/A/x", "/A/y", "/B"}
	r.Plan = decision.Coded{Code: []int32{0, 0, 0, 0}, Dict: words}
	r.Consumer = decision.Coded{Code: []int32{1, 2, 3, 3}, Dict: words}
	r.Cause = decision.Coded{Code: []int32{0, 0, 0, 0}, Dict: decision.Words{"reclaimed"}}
	r.Units, r.UnitSecondsLost = []int64{1, 1, 2, 1}, []float64{1.5, 2, 0, 40}
	for range 2 {
		m.Cycle(c)
	}
	families, err := m.gathers.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "stint_consumer_lost_unit_seconds_total" {
			continue
		}
		for _, one := range f.GetMetric() {
			key := ""
			for _, l := range one.GetLabel() {
				key += l.GetName() + "=" + l.GetValue() + " "
			}
			got[key] = one.GetCounter().GetValue()
		}
	}
	if want := map[string]float64{"consumer=/A plan=p ": 7, "consumer=/B plan=p ": 80}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
