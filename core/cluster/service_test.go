package cluster

import (
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// running is rows of "consumer allocation sub host", 2 units each.
func running(rows ...string) *HoldingTable {
	var field [4][]string
	t := &HoldingTable{Rows: len(rows)}
	for _, r := range rows {
		for i, f := range strings.Fields(r) {
			field[i] = append(field[i], f)
		}
		t.Units = append(t.Units, 2)
	}
	t.Consumer, t.Allocation = texts(field[0]...), texts(field[1]...)
	t.Sub, t.Host = texts(field[2]...), texts(field[3]...)
	return t
}

// serving is a state with three hosts and, of the source s, three allocations with 2 units held each.
func serving(t testing.TB) *State {
	t.Helper()
	s := newState(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.SetHosts(hostTable("a1", "a2", "a3"), true))
	must(s.SetDemand("s", demandTable("/P/L x - one", "/P/L y - one", "/R z - one")))
	must(s.AddRunning("s", running("/P/L x - a1", "/P/L y - a2", "/R z - a2")))
	settle(t, s)
	return s
}

func settle(t testing.TB, s *State) (released int64) {
	t.Helper()
	s.Settle(s.NowUS)
	for _, r := range s.Released {
		released += r.Units
	}
	s.Finish(s.Cycle+1, s.NowUS)
	for i := range s.Plans {
		s.Plans[i].Changed = nil
	}
	if err := s.Verify(); err != nil {
		t.Fatal(err)
	}
	return released
}

func wanted(s *State) (units int64) {
	for sub, a := range s.Sub.Alloc {
		if a != NoID {
			units += s.Sub.Wanted[sub]
		}
	}
	return units
}

func TestChangeDemand(t *testing.T) {
	s := serving(t)
	add := demandTable("/R new - one", "/P/L x - one")
	add.Units = []int64{5, 7}
	if err := s.ChangeDemand("s", add); err != nil {
		t.Fatal(err)
	}
	if got := wanted(s); got != 5+7+2+2 {
		t.Errorf("%d units wanted after rows were added", got)
	}
	gone := demandTable("/P/L y - one", "/R never - one")
	gone.Units, gone.Size = []int64{0, 0}, make([][]int64, 2)
	if err := s.ChangeDemand("s", gone); err != nil {
		t.Fatal(err)
	}
	if n := settle(t, s); n != 2 || wanted(s) != 5+7+2 {
		t.Errorf("%d units released and %d wanted after a row was taken away", n, wanted(s))
	}
	resized := demandTable("/P/L x - one")
	resized.Size[0][0] = 3
	if err := s.ChangeDemand("s", resized); err != nil {
		t.Fatal(err)
	}
	if n := settle(t, s); n != 2 || wanted(s) != 5+2+2 {
		t.Errorf("%d units released and %d wanted after the size changed", n, wanted(s))
	}
	if err := s.ChangeDemand("other", demandTable("/R z - one")); err == nil ||
		!strings.Contains(err.Error(), `belongs to source "s"`) {
		t.Error(err)
	}
	sizeless := demandTable("/R z - one")
	sizeless.Size = make([][]int64, 2)
	if err := s.ChangeDemand("s", sizeless); err == nil || !strings.Contains(err.Error(), "no size") {
		t.Error(err)
	}
	if err := s.SetDemand("s", demandTable("/R new - one")); err != nil {
		t.Fatal(err)
	}
	if n := settle(t, s); n != 2 || wanted(s) != 2 {
		t.Errorf("%d units released and %d wanted after a snapshot", n, wanted(s))
	}
}

func TestGuards(t *testing.T) {
	s := serving(t)
	if held := s.HeldBy("s"); held != 6 {
		t.Fatal(held)
	}
	if held := s.HeldBy("nobody"); held != 0 {
		t.Error(held)
	}
	some := demandTable("/P/L x - one", "/R z - one", "/R more - one")
	some.Units[1] = 1
	if kept := s.WouldKeep("s", some); kept != 3 {
		t.Errorf("%d kept", kept)
	}
	guard := func(what string, hosts *HostTable, full bool, want int64) {
		t.Helper()
		risk := s.HostRisk(hosts, full)
		lost, err := s.WouldLose(hosts, full, s.NowUS)
		if err != nil || lost != want || risk.Held != 6 || risk.Units < lost {
			t.Errorf("%s: %d are lost (%v), expected %d; the bound is %+v", what, lost, err, want, risk)
		}
	}
	hosts := hostTable("a2", "a9")
	guard("without a1", hosts, true, 2)
	guard("the same", hosts, false, 0)
	hosts.Size[0][0] = 3
	guard("with a2 smaller", hosts, true, 3)
	guard("a2 smaller", hosts, false, 1)
	hosts.State = []HostState{Unavail, OK}
	guard("with a2 unavailable", hosts, true, 6)
	guard("a2 unavailable", hosts, false, 4)
	if risk := s.HostRisk(hosts, false); len(risk.Worse) != 1 || s.Host.String(int32(risk.Worse[0])) != "a2" {
		t.Errorf("%+v", risk)
	}
	if err := s.SetDemand("s", some); err != nil {
		t.Fatal(err)
	}
	if n := settle(t, s); n != 3 {
		t.Errorf("%d released, the guard foresaw 3", n)
	}
}

func TestSetRunning(t *testing.T) {
	s := serving(t)
	now := running("/P/L x - a1", "/P/L x - a3", "/R z - a1", "/P/L x - a1")
	now.Units = []int64{1, 4, 20, 0} // 20 of 1 × 4 do not fit 8 × 64
	released, added, err := s.SetRunning("s", now)
	if err != nil || released != 1+2+2 || added != 4+20 {
		t.Fatal(released, added, err)
	}
	if n := settle(t, s); n != released+(4+1-2)+(20-2) { // x wants 2, z wants 2
		t.Errorf("%d released in all", n)
	}
	if _, _, err := s.SetRunning("other", running("/R z - a1")); err == nil ||
		!strings.Contains(err.Error(), "another source") {
		t.Error(err)
	}
	if released, added, err = s.SetRunning("s", running("/P/L x - a3")); err != nil {
		t.Error(released, added, err)
	}
	settle(t, s)
	if held := s.HeldBy("s"); held != 2 {
		t.Error(held)
	}
}

func TestSilence(t *testing.T) {
	s := serving(t)
	more := demandTable("/P/L x - one")
	more.Units[0] = 9
	if err := s.SetDemand("s", more); err != nil {
		t.Fatal(err)
	}
	s.Silence("s")
	s.Silence("nobody")
	settle(t, s)
	if !s.Silent("s") || wanted(s) != 2 || s.HeldBy("s") != 2 {
		t.Error("silent:", s.Silent("s"), wanted(s), s.HeldBy("s"))
	}
	if _, _, err := s.Release(running("/P/L x - a1")); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	if wanted(s) != 0 {
		t.Error(wanted(s), "wanted after a release")
	}
	if err := s.SetDemand("s", more); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	if s.Silent("s") || wanted(s) != 9 {
		t.Error("heard again:", s.Silent("s"), wanted(s))
	}
}

func TestFrozenNames(t *testing.T) {
	var n Names
	n.InternString("a")
	f := n.Frozen()
	n.InternString("b")
	if f.Len() != 1 || f.String(0) != "a" || n.Len() != 2 {
		t.Error(f.Len(), n.Len())
	}
}

// TestShrinkBeforePolicy has a host shrink and then a new policy come before the same cycle: the cycle still
// releases what the host does not hold any more.
func TestShrinkBeforePolicy(t *testing.T) {
	s := serving(t)
	hosts := hostTable("a1")
	hosts.Size[0][0] = 1
	if err := s.SetHosts(hosts, false); err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("policy.yaml", []byte(policyText))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetPolicy(p, false); err != nil {
		t.Fatal(err)
	}
	if released := settle(t, s); released != 1 {
		t.Errorf("%d units released, expected 1", released)
	}
}
