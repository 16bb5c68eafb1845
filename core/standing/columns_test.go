package standing

import (
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// TestKeptColumns shares the columns in which nothing changed, and has its own of the others: what was kept before
// stays as it was.
func TestKeptColumns(t *testing.T) {
	now := [][]int64{{1, 2}, {3, 4}}
	first := shareAll(nil, now)
	now[1][0] = 9
	second := shareAll(first, now)
	if &second[0][0] != &first[0][0] || &second[1][0] == &first[1][0] {
		t.Error("a column is copied without need, or shared though it changed")
	}
	if first[1][0] != 3 || second[1][0] != 9 {
		t.Error(first, second)
	}
	if got := shareAll(second, now[:1]); len(got) != 1 {
		t.Error(got)
	}
}

// BenchmarkStanding measures what a cycle pays for the tables that readers may ask for, where little changed, and what
// a reader pays who asks for them; and what it pays where a log is told what changed.
func BenchmarkStanding(b *testing.B) {
	const subs, hosts = 1_000_000, 100_000
	k := &Columns{
		alloc: make([]cluster.AllocID, subs), plan: make([]int32, subs), source: make([]cluster.SourceID, subs),
		consumer: make([]cluster.ConsumerID, subs), name: make([]int32, subs), shape: make([]cluster.ShapeID, subs),
		need: make([]cluster.NeedID, subs), maxPerHost: make([]int64, subs), wanted: make([]int64, subs),
		held: make([]int64, subs), seq: make([]int64, subs), firstSeen: make([]int64, subs), orphan: make([]bool, subs),
		label: make([]int32, subs), state: make([]cluster.HostState, hosts), planOf: make([]int32, hosts),
		order: make([]cluster.HostID, hosts),
	}
	s := &cluster.State{}
	s.Sub.Alloc, s.Sub.Plan, s.Sub.Source, s.Sub.Consumer = k.alloc, k.plan, k.source, k.consumer
	s.Sub.Name, s.Sub.Shape, s.Sub.Need, s.Sub.MaxPerHost = k.name, k.shape, k.need, k.maxPerHost
	s.Sub.MinUnits, s.Sub.Together = k.minUnits, k.together
	s.Sub.Wanted, s.Sub.Held, s.Alloc.Name = make([]int64, subs), make([]int64, subs), k.label
	s.Sub.Seq, s.Sub.FirstSeen, s.Sub.Orphan = k.seq, k.firstSeen, k.orphan
	s.Host.State, s.Host.Plan, s.Host.Order = k.state, k.planOf, k.order
	same := func(d decision.Dict) decision.Dict { return d }
	s.Policy = &plan.Policy{}
	for _, names := range []*cluster.Names{&s.Source, &s.Consumer, &s.Label, &s.Need.Names} {
		names.InternString("x")
	}
	for i := range s.Sub.Plan {
		s.Sub.Plan[i] = cluster.NoID
	}
	k = Keep(s, k, same)
	b.Run("cycle", func(b *testing.B) {
		for i := range b.N {
			s.Sub.Held[i%subs]++
			k = Keep(s, k, same)
		}
	})
	b.Run("log", func(b *testing.B) {
		for i := range b.N {
			s.Sub.Held[i%subs]++
			now := Keep(s, k, same)
			if of := now.Since(k); len(of.SubAllocations.Held) != 1 {
				b.Fatal(len(of.SubAllocations.Held))
			}
			k = now
		}
	})
	b.Run("reader", func(b *testing.B) {
		for range b.N {
			k.Requests()
		}
	})
}
