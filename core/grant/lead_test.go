package grant

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
)

const leads = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /A/A1}, {path: /B, reclaim_grace: 120s}]
md_plans:
  - name: p
    resource_groups: [{name: G}]
    consumers:
      - {path: /A, own: [{group: G, amount: {ncpus: 4}, partial: true}], lend_grace: 60s}
      - {path: /A/A1, own: [{group: G, amount: {ncpus: 2}, partial: true}], reserve: {percent: 50}}
      - {path: /B, share: {limit: {ncpus: 3}}}
`

// TestFollow holds what is granted of what a coming window would grant: as far as the present one bears it.
func TestFollow(t *testing.T) {
	// Of h1's eight, two are /A/A1's, one of which is reserved, two more /A's, and four public: parcels 2, 1 and 0.
	for _, c := range []struct {
		name   string
		sub    cluster.SubID
		units  int64 // that the coming window would grant
		before int64 // granted in this cycle already, on the public parcel
		kept   int64 // of that parcel by a set whose victim still holds the rest
		want   []cluster.ParcelID
	}{
		{"its own before its parent's, then public", 0, 9, 0, 0, []cluster.ParcelID{2, 2, 1, 1, 0, 0, 0, 0}},
		{"no more than it was to get", 0, 3, 0, 0, []cluster.ParcelID{2, 2, 1}},
		{"less what it was given before", 0, 3, 2, 0, []cluster.ParcelID{2}},
		{"nothing of what is kept for others", 0, 9, 0, 1, []cluster.ParcelID{2, 2, 1, 1, 0, 0}},
		{"public alone where its grace is too long, up to its limit", 1, 9, 0, 0, []cluster.ParcelID{0, 0, 0}},
		{"no more than it wants", 2, 9, 0, 0, []cluster.ParcelID{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ownedState(t, leads, "host,ncpus\nh1,8\n",
				"consumer,allocation,units,ncpus\n/A/A1,a,20,1\n/B,b,20,1\n/A/A1,c,1,2\n")
			if c.before > 0 {
				row := cluster.Holding{Sub: c.sub, Granted: s.Cycle + 1}
				row.Origin, row.Pool, row.Lender = s.CountsAs(s.Node(c.sub), cluster.NoID)
				s.Hold(nil, row, slices.Repeat([]cluster.ParcelID{0}, int(c.before)))
			}
			if c.kept > 0 { // a unit of two, of which one is idle
				set := s.OpenSet(&s.Plans[0], 0, decision.ReclaimFairShare, 2, 60e6)
				s.TakeBack(set, take(s, 1, 0, 1), 1, 120e6)
				s.Promise(set, 1)
			}
			var list Prospects
			list.Sub.Add(c.sub)
			list.Host.Add(0)
			list.Units.Add(c.units)
			var out Decisions
			Follow(envOf(s), &list, &out)
			if got := out.Parcel.Values(); !slices.Equal(got, c.want) {
				t.Errorf("granted on %v, want %v; parcels of %v", got, c.want,
					fmt.Sprint(s.Plans[0].Parcels.Owner, s.Plans[0].Parcels.Cap))
			}
		})
	}
}
