package grant

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/owner"
	"github.com/stintd/stint/core/plan"
)

const owners = `
stint: 1
dimensions: [ncpus, maxmem]
resource_groups: [{name: G, select: "select(ncpus > 0)"}, {name: H, select: "select(ncpus < 0)"}]
consumers: [{path: /A}, {path: /A/A1}, {path: /A/A2}, {path: /B}]
md_plans:
  - name: p
    resource_groups: [{name: G}, {name: H}]
    consumers:
      - {path: /A, own: [{group: G, hosts: 2}], reserve: {percent: 50}}
      - {path: /A/A1, own: [{group: G, hosts: 1}], reserve: {percent: 25}}
      - {path: /A/A2}
      - {path: /B}
`

// ownedState is a state after stage own.
func ownedState(t failer, policy, hosts, demand string) *cluster.State {
	e := stateOf(t, policy, hosts, demand)
	var owned owner.Decisions
	new(owner.Passes).Decide(owner.New(e.State, e.Plan), &owned)
	owned.Book(e.State, e.Plan)
	return e.State
}

// take holds units of a sub-allocation on a parcel, as if granted in an earlier cycle.
func take(s *cluster.State, sub cluster.SubID, k cluster.ParcelID, units int64) cluster.HoldingID {
	row := cluster.Holding{Sub: sub}
	row.Origin, row.Pool, row.Lender = s.CountsAs(s.Node(sub), s.Plans[0].Parcels.Owner[k])
	return s.Hold(nil, row, slices.Repeat([]cluster.ParcelID{k}, int(units)))[0]
}

// TestPromisedIsGiven holds what sets give against the words of the step, unit by unit: on parcels with reserves, of
// several sets each, whose victims hold a part yet.
func TestPromisedIsGiven(t *testing.T) {
	gave, kept, shared := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		demand := "consumer,allocation,units,ncpus,maxmem\n/A/A1,a,40,1,1\n/A/A2,b,40,2,1\n/B,c,40,1,3\n/B,d,40,2,2\n"
		s := ownedState(t, owners, "host,ncpus,maxmem\nh1,12,12\nh2,16,8\nh3,9,20\n", demand)
		p := &s.Plans[0]
		for i := range rapid.IntRange(1, 8).Draw(t, "steps") {
			sub := cluster.SubID(rapid.IntRange(0, 3).Draw(t, "sub"))
			k := cluster.ParcelID(rapid.IntRange(0, p.Parcels.Len()-1).Draw(t, "parcel"))
			units := rapid.Int64Range(1, 3).Draw(t, "units")
			for d, u := range s.Size(sub) {
				units = min(units, max(0, p.Parcels.Free[d][k])/u)
			}
			if units == 0 {
				continue
			}
			q := take(s, sub, k, units)
			if !rapid.Bool().Draw(t, "is taken back") {
				continue
			}
			taker := cluster.SubID(rapid.IntRange(0, 3).Draw(t, "taker"))
			set := s.OpenSet(p, k, decision.ReclaimFairShare, taker, 60e6)
			s.TakeBack(set, q, rapid.Int64Range(1, units).Draw(t, "of which"), 120e6+int64(i))
			s.Promise(set, rapid.Int64Range(1, 4).Draw(t, "promised"))
		}
		want := unitByUnit(s.Clone())
		e := envOf(s)
		for _, id := range e.Promises.Set {
			if on := e.Promises.On(s.Aim(id)); len(on) > 1 {
				shared++
			}
		}
		var out Decisions
		var given Given
		Promised(e, &out, &given)
		runs, parcels := out.Runs(e, s.Cycle+1, nil)
		s.HoldAll(nil, runs, parcels)
		given.Book(s)
		if got := heldAndPromised(s); got != want {
			t.Fatalf("got\n%swant\n%s", got, want)
		}
		if err := s.Verify(); err != nil {
			t.Fatal(err)
		}
		gave += out.Sub.Len()
		for _, units := range s.Set.Units {
			kept += int(units)
		}
	})
	if gave == 0 || kept == 0 || shared == 0 {
		t.Errorf("%d units given, %d not, %d sets beside others", gave, kept, shared)
	}
}

// unitByUnit gives what sets promise by the words of the step.
func unitByUnit(s *cluster.State) string {
	e := envOf(s)
	for _, id := range slices.Clone(e.Promises.Set) {
		sub, k := s.Set.Taker[id], s.Aim(id)
		for s.Set.Units[id] > 0 {
			e = envOf(s)
			free, rest := make([]int64, 2), make([]int64, 2)
			e.Promises.Room(k, e.Meet(s.Node(sub), k), free, rest)
			fits := true
			for d, u := range s.Size(sub) {
				fits = fits && rest[d]+s.Kept(id, d) >= u
			}
			if !fits {
				break
			}
			row := cluster.Holding{Sub: sub, Granted: s.Cycle + 1}
			row.Origin, row.Pool, row.Lender = s.CountsAs(s.Node(sub), e.Plan.Parcels.Owner[k])
			s.Hold(nil, row, []cluster.ParcelID{k})
			s.Promise(id, s.Set.Units[id]-1)
			for s.Set.Units[id] == 0 && s.Set.Number[id] > 0 {
				q := s.Set.First[id]
				s.Cancel(q, s.Holding.Units[q])
			}
		}
	}
	return heldAndPromised(s)
}

// heldAndPromised is what is held, and what sets promise, as text.
func heldAndPromised(s *cluster.State) string {
	units := map[string]int64{}
	for q, sub := range s.Holding.Sub {
		if sub != cluster.NoID {
			units[fmt.Sprint(sub, " on ", s.Holding.Parcel[q], " since ", s.Holding.Granted[q], " under reclaim ",
				s.Holding.Set[q] != cluster.NoID)] += s.Holding.Units[q]
		}
	}
	var lines []string
	for at, n := range units {
		lines = append(lines, fmt.Sprint(at, ": ", n, "\n"))
	}
	slices.Sort(lines)
	return fmt.Sprint(lines, s.Set.Units)
}

// booked is sets of a state, where what is decided is booked at once.
type booked struct {
	e       *Env
	granted []string
	prefer  map[cluster.SubID]int // units that Prefer promises
	units   map[cluster.SubID]int64
}

func (b *booked) Promised(sub cluster.SubID) int64 { return b.e.Promises.Units[sub] + b.units[sub] }

func (b *booked) Latest(sub cluster.SubID) (k cluster.ParcelID, ok bool) {
	for _, id := range b.e.Promises.Set {
		if b.e.State.Set.Taker[id] == sub {
			k, ok = b.e.State.Aim(id), true
		}
	}
	return k, ok
}

func (b *booked) Lapse(sub cluster.SubID) {
	for _, id := range slices.Backward(b.e.Promises.Set) {
		if b.e.State.Set.Taker[id] == sub {
			b.e.State.Promise(id, b.e.State.Set.Units[id]-1)
			break
		}
	}
	b.e.Promises.Sum(b.e.Env)
}

func (b *booked) Prefer(sub cluster.SubID, among func(k cluster.ParcelID) bool) bool {
	for k := range cluster.ParcelID(b.e.Plan.Parcels.Len()) {
		if b.e.Owner(k) == b.e.State.Node(sub) && among(k) && b.prefer[sub] > 0 {
			b.prefer[sub]--
			b.units[sub]++
			return true
		}
	}
	return false
}

func (b *booked) Hold(sub cluster.SubID, k cluster.ParcelID) {
	take(b.e.State, sub, k, 1)
	b.e.Views.Follow(b.e.State, b.e.Plan)
	b.granted = append(b.granted, fmt.Sprint(b.e.State.Label.String(b.e.State.Alloc.Name[b.e.State.Sub.Alloc[sub]]), k))
}

func (b *booked) Room(k cluster.ParcelID, pool plan.Node, free, rest []int64) bool {
	return b.e.Promises.Room(k, pool, free, rest)
}

const preferred = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(good)"}, {name: H, select: "select(!good)"}]
consumers: [{path: /A}, {path: /B}]
md_plans:
  - name: p
    resource_groups: [{name: G, preference: 1}, {name: H, preference: 2}]
    reclaim_for_preference: %v
    consumers:
      - {path: /A, own: [{group: G, hosts: 1}, {group: H, hosts: 1}]}
      - {path: /B}
`

// TestOwnBesideSets holds what a leaf is given of its own parcels beside what it is promised (step 4).
func TestOwnBesideSets(t *testing.T) {
	// parcel 0 is /A's, 1 public, 2 /A's and less preferred
	const hosts = "host,ncpus,good\nh0,4,true\nh1,4,false\nh2,4,true\n"
	for _, c := range []struct {
		name     string
		prefers  bool
		demand   string
		promised [3]int64 // by parcel: units of allocation a that a set promises there
		prefer   int      // units of it that can be promised on preferred parcels
		full     int64    // of parcel 0, units of 1 that somebody else holds
		want     []string
	}{
		{"nothing promised", false, "/A,a,3,2\n", [3]int64{}, 0, 0, []string{"a0", "a0", "a2"}},
		{"what is promised elsewhere is given", false, "/A,a,3,2\n", [3]int64{0, 2}, 0, 0, []string{"a0", "a0", "a2"}},
		{"what is promised has its turn", false, "/A,a,2,2\n/A,b,4,1\n", [3]int64{0, 2}, 0, 0,
			[]string{"a0", "a0", "b2", "b2", "b2", "b2"}},
		{"a set that lapses frees room for what was passed over", false, "/A,b,2,3\n/A,a,2,1\n", [3]int64{0, 0, 2}, 0,
			0, []string{"b0", "a0", "b2"}},
		{"nothing worse than what is promised", true, "/A,a,2,2\n", [3]int64{1}, 0, 2, []string{"a2"}},
		{"promised on a preferred parcel before others are used", true, "/A,a,3,2\n", [3]int64{}, 1, 2,
			[]string{"a0", "a2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ownedState(t, fmt.Sprintf(preferred, c.prefers), hosts,
				"consumer,allocation,units,ncpus\n/B,o,9,1\n"+c.demand)
			first := cluster.SubID(0)
			for sub, a := range s.Sub.Alloc {
				if a != cluster.NoID && s.Label.String(s.Alloc.Name[a]) == "a" {
					first = cluster.SubID(sub)
				}
			}
			if c.full > 0 {
				take(s, 0, 0, c.full)
			}
			for k, units := range c.promised {
				if units > 0 {
					s.Promise(s.OpenSet(&s.Plans[0], cluster.ParcelID(k), decision.ReclaimRecall, first, 60e6), units)
				}
			}
			e := envOf(s)
			b := &booked{e: e, prefer: map[cluster.SubID]int{first: c.prefer}, units: map[cluster.SubID]int64{}}
			var g Granter
			var out Decisions
			a, _ := s.Policy.Find("/A")
			g.Own(e, a, b, &out)
			if !slices.Equal(b.granted, c.want) {
				t.Errorf("granted %v, want %v", b.granted, c.want)
			}
		})
	}
}
