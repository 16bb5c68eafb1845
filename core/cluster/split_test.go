package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// deed gives a consumer a part of a host of the first plan: of the 8 ncpus and 64 maxmem that each has.
type deed struct {
	consumer, host string
	ncpus, maxmem  int64
}

// own makes these all the deeds of the first plan and splits its hosts.
func own(s *State, deeds ...deed) {
	p := &s.Plans[0]
	slices.SortStableFunc(deeds, func(a, b deed) int {
		x, _ := s.Policy.Find(a.consumer)
		y, _ := s.Policy.Find(b.consumer)
		return int(x - y)
	})
	p.Deeds = Deeds{Amount: make([][]int64, 2)}
	for _, d := range deeds {
		node, _ := s.Policy.Find(d.consumer)
		host, _ := s.Host.Find([]byte(d.host))
		p.Deeds.Consumer = append(p.Deeds.Consumer, s.ConsumerOf[node])
		p.Deeds.Host = append(p.Deeds.Host, HostID(host))
		p.Deeds.Amount[0], p.Deeds.Amount[1] = append(p.Deeds.Amount[0], d.ncpus), append(p.Deeds.Amount[1], d.maxmem)
		p.Deeds.Rule, p.Deeds.Number = append(p.Deeds.Rule, 0), append(p.Deeds.Number, 0)
	}
	s.Divide(p)
	p.Reassign = false
	p.Owe()
}

// laid shows the parcels of the first plan: owner, ncpus, and the units of each leaf with what they count as.
func laid(s *State) string {
	var out []string
	p, h := &s.Plans[0].Parcels, &s.Holding
	name := func(c ConsumerID) string {
		if c == NoID {
			return "-"
		}
		return s.Consumer.String(int32(c))
	}
	for k := range p.Host {
		line := fmt.Sprintf("%s %s %d:", s.Host.Names.String(int32(p.Host[k])), name(p.Owner[k]), p.Cap[0][k])
		var units []string
		for q := p.First[k]; q != NoID; q = h.NextOnParcel[q] {
			units = append(units, fmt.Sprintf(" %s×%d %s %s %s", s.Consumer.String(int32(s.Sub.Consumer[h.Sub[q]])),
				h.Units[q], decision.Origins[h.Origin[q]], name(h.Pool[q]), name(h.Lender[q])))
		}
		slices.Sort(units)
		out = append(out, line+strings.Join(units, ","))
	}
	return strings.Join(out, "\n")
}

// TestSplit places units anew where a host's parcels change.
func TestSplit(t *testing.T) {
	s := newState(t)
	if err := s.SetHosts(hostTable("a1", "a2"), true); err != nil {
		t.Fatal(err)
	}
	demand := demandTable("/P/L a - -", "/Q a - one", "/R a - -")
	demand.Units = []int64{4, 3, 1}
	if err := s.SetDemand("s", demand); err != nil {
		t.Fatal(err)
	}
	running := &HoldingTable{Rows: 3, Consumer: texts("/P/L", "/Q", "/R"), Allocation: texts("a", "a", "a"),
		Sub:  texts("-", "-", "-"),
		Host: texts("a1", "a1", "a1"), Units: []int64{4, 3, 1}}
	if err := s.AddRunning("s", running); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		deeds []deed
		want  string
	}{
		{"nobody owns anything", nil,
			"a1 - 8: /P/L×4 public_pool / -, /Q×3 public_pool / -, /R×1 public_pool / -\na2 - 8:"},
		// 2 are public
		{"those that came first stay, the others go where their leaf's pools are",
			[]deed{{"/P", "a1", 4, 32}, {"/R", "a1", 2, 16}},
			"a1 - 2: /P/L×2 public_pool / -\na1 /P 4: /P/L×2 private_pool /P -, /Q×2 public_pool / /P\n" +
				"a1 /R 2: /Q×1 public_pool / /R, /R×1 owned - -\na2 - 8:"},
		{"wholly owned: its leaf's, then its parent's, at last anyone's",
			[]deed{{"/P", "a1", 8, 64}, {"/P/L", "a1", 3, 24}},
			"a1 /P 5: /P/L×2 private_pool /P -, /Q×3 public_pool / /P\na1 /P/L 3: /P/L×2 owned - -, /R×1 public_pool " +
				"/ /P/L\na2 - 8:"},
		{"those whose owners have nothing any more go where they fit, the oldest first",
			[]deed{{"/Q", "a1", 1, 8}, {"/R", "a1", 7, 56}},
			"a1 /Q 1: /P/L×1 public_pool / /Q\na1 /R 7: /P/L×3 public_pool / /R, /Q×3 public_pool / /R, /R×1 owned - " +
				"-\na2 - 8:"},
		{"what fits none stays, though it is too much",
			[]deed{{"/P", "a1", 1, 60}, {"/Q", "a1", 1, 2}, {"/R", "a1", 6, 2}},
			"a1 /P 1: /P/L×1 private_pool /P -\na1 /Q 1:\na1 /R 6: /P/L×3 public_pool / /R, /Q×3 public_pool / /R, " +
				"/R×1 owned - -\na2 - 8:"},
		{"all is public again", nil,
			"a1 - 8: /P/L×4 public_pool / -, /Q×3 public_pool / -, /R×1 public_pool / -\na2 - 8:"},
	} {
		own(s, c.deeds...)
		if got := laid(s); got != c.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", c.name, got, c.want)
		}
		if err := s.Verify(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestSplitRandom splits hosts at random under random work, with changes of hosts and reclaims between, and recomputes
// all that the state keeps.
func TestSplitRandom(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newState(t)
		names := []string{"a1", "a2", "a3", "a4"}
		if err := s.SetHosts(hostTable(names...), true); err != nil {
			r.Fatal(err)
		}
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			demand := demandTable("/P/L a - -", "/P/L b - -", "/Q a - one", "/R a - -")
			for i := range demand.Units {
				demand.Units[i], demand.Size[0][i] = rapid.Int64Range(0, 9).Draw(r, "units"), 1+int64(i%2)
			}
			if err := s.SetDemand("s", demand); err != nil {
				r.Fatal(err)
			}
			for range 4 { // refused where it does not fit
				i := rapid.IntRange(0, 3).Draw(r, "row")
				_ = s.AddRunning("s", &HoldingTable{Rows: 1, Consumer: texts([]string{"/P/L", "/P/L", "/Q", "/R"}[i]),
					Allocation: texts([]string{"a", "b", "a", "a"}[i]),
					Sub:        texts("-"), Host: texts(rapid.SampledFrom(names).Draw(r, "host")),
					Units: []int64{rapid.Int64Range(0, 4).Draw(r, "running")}})
			}
			change := hostTable(rapid.SampledFrom(names).Draw(r, "changed"))
			change.Size[0][0] = rapid.Int64Range(0, 10).Draw(r, "ncpus")
			if rapid.Bool().Draw(r, "attributes too") {
				change.Attr = nil
			}
			if rapid.Bool().Draw(r, "lost") {
				change.State = []HostState{Unavail}
			}
			if err := s.SetHosts(change, false); err != nil {
				r.Fatal(err)
			}
			s.Settle(s.NowUS)
			own(s, drawDeeds(r, s, names)...)
			if err := s.Verify(); err != nil {
				r.Fatalf("%v\n%s", err, laid(s))
			}
			for q, sub := range s.Holding.Sub {
				if sub != NoID && s.Holding.Set[q] == NoID && rapid.IntRange(0, 3).Draw(r, "reclaimed") == 0 {
					s.Reclaim(HoldingID(q), 1, s.NowUS, 90e6, decision.ReclaimRecall)
				}
			}
			s.Finish(s.Cycle+1, s.NowUS+60e6)
			if err := s.Verify(); err != nil {
				r.Fatalf("%v\n%s", err, laid(s))
			}
		}
	})
}

// drawDeeds gives consumers parts of hosts, /P/L of /P's.
func drawDeeds(r *rapid.T, s *State, names []string) (deeds []deed) {
	for _, host := range names {
		id, _ := s.Host.Find([]byte(host))
		if s.Host.State[id] == Unavail {
			continue
		}
		left, most := [2]int64{s.Host.Size[0][id], s.Host.Size[1][id]}, [2]int64{}
		for _, path := range []string{"/P", "/P/L", "/Q", "/R"} {
			from := &left
			if path == "/P/L" {
				from = &most
			}
			if rapid.IntRange(0, 2).Draw(r, "owns") == 0 {
				continue
			}
			d := deed{path, host, rapid.Int64Range(0, from[0]).Draw(r, "part"),
				rapid.Int64Range(0, from[1]).Draw(r, "of maxmem")}
			if d.ncpus+d.maxmem == 0 {
				continue
			}
			from[0], from[1] = from[0]-d.ncpus, from[1]-d.maxmem
			if path == "/P" {
				most = [2]int64{d.ncpus, d.maxmem}
			}
			deeds = append(deeds, d)
		}
	}
	return deeds
}

// TestDeedsFollow keeps deeds and parcels through new policies: they are matched by path, or by what a
// consumer was renamed from.
func TestDeedsFollow(t *testing.T) {
	s := newState(t)
	if err := s.SetHosts(hostTable("a1"), true); err != nil {
		t.Fatal(err)
	}
	own(s, deed{"/P", "a1", 4, 32}, deed{"/Q", "a1", 2, 8})
	p, err := plan.Parse("policy.yaml",
		[]byte(strings.NewReplacer("{path: /Q}, {path: /R}, {path: /S}]", "{path: /T, renamed_from: /Q}, {path: /S}]",
			"{path: /Q}, {path: /R}]", "{path: /T}]", "{path: /Q}]", "{path: /T}]").Replace(policyText)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetPolicy(p, false); err != nil {
		t.Fatal(err)
	}
	s.Divide(&s.Plans[0])
	if got, want := laid(s), "a1 - 2:\na1 /P 4:\na1 /T 2:"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
}
