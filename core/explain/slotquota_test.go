package explain

import (
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
)

// TestQuotaUnderRecall explains the quota of a borrower: while its lenders want some of it back, not all that it
// borrowed is in the quota, and the sentence must not say so.
func TestQuotaUnderRecall(t *testing.T) {
	f, c := made(t)
	s := &c.Consumers
	one := func(word string) decision.Coded { return decision.Coded{Code: []int32{0}, Dict: decision.Words{word}} }
	s.Plan, s.Consumer, s.Policy = one("G"), one("/A/x:y"), one("ownership")
	s.Rank, s.Demand, s.Held, s.Short = []int64{0}, []int64{9}, []int64{9}, []int64{0}
	// owned 2 and used, 7 borrowed of which 3 are being recalled
	s.AddSlots([...]int64{2, 2, 0, 0, 0, 6, 2, 0, 7, 0, 0}, true)
	f.tables(c)
	for _, p := range f.parts(Target{Consumer: "/A/x:y"}) {
		if p.Plan != "G" {
			continue
		}
		p.Leaving = []Reclaim{{Units: 3}}
		text := p.quotaText(0)
		if !strings.Contains(text, "deserves 6 slots") || strings.Contains(text, "7 borrowed and") ||
			!strings.Contains(text, "do not want back") {
			t.Errorf("the quota of somebody from whom 3 of 7 borrowed slots are recalled: %s", text)
		}
		return
	}
	t.Error("no plan G")
}
