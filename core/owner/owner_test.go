package owner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/owner"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

const policy = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /A/A1}, {path: /B}]
md_plans:
  - name: p
    resource_groups: [{name: G}]
    consumers:
      - {path: /A, own: [{group: G, hosts: 2}], reserve: {percent: 50}}
      - {path: /A/A1, own: [{group: G, hosts: 1}], reserve: {percent: 25}}
      - {path: /B, own: [{group: G, percent: 34}]}
`

type failer interface {
	Helper()
	Fatal(args ...any)
}

// must ends the test on an error.
func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newState is a state with hosts, after settle.
func newState(t failer, hosts string) *cluster.State {
	p, err := plan.Parse("policy.yaml", []byte(policy))
	must(t, err)
	s, err := cluster.New(p)
	must(t, err)
	setHosts(t, s, hosts, true)
	s.Settle(60e6)
	return s
}

// setHosts applies a table of hosts, or of changes.
func setHosts(t failer, s *cluster.State, text string, whole bool) {
	rows, err := table.ReadHosts(strings.NewReader(text),
		table.Options{Format: table.CSV, Dimensions: s.Policy.Dimensions})
	must(t, err)
	must(t, s.SetHosts(rows, whole))
}

// lines are decisions as text.
func lines(s *cluster.State, d *owner.Decisions) (list []string) {
	for i, c := range d.Consumer.Values() {
		list = append(list, fmt.Sprintf("%s %s %s %+d", s.Consumer.String(int32(c)), s.Host.String(int32(d.Host.At(i))),
			s.Policy.Dimensions[d.Dimension.At(i)], d.Amount.At(i)))
	}
	return list
}

// TestPass holds what a first pass gives, that deciding changes nothing of the state, and what a smaller host takes
// away.
func TestPass(t *testing.T) {
	s := newState(t, "host,ncpus\nh1,4\nh2,4\nh3,8\n")
	p, twin := &s.Plans[0], s.Clone()
	var passes owner.Passes
	var out owner.Decisions
	passes.Decide(owner.New(s, p), &out)
	if fmt.Sprint(p.Parcels, p.Deeds) != fmt.Sprint(twin.Plans[0].Parcels, twin.Plans[0].Deeds) {
		t.Error("the state is another after a decision that was not booked")
	}
	want := []string{"/A h1 ncpus +4", "/A h2 ncpus +4", "/A/A1 h1 ncpus +4", "/B h3 ncpus +8"}
	if got := lines(s, &out); !slices.Equal(got, want) {
		t.Fatalf("a first pass: %q, want %q", got, want)
	}
	if out.Book(s, p); p.Reassign {
		t.Error("after a pass another is due")
	}
	if passes.Decide(owner.New(s, p), &out); out.Consumer.Len() > 0 {
		t.Errorf("without need: %q", lines(s, &out))
	}
	out.Book(s, p)
	s.Finish(1, 60e6)
	setHosts(t, s, "host,ncpus\nh3,6\n", false)
	s.Settle(120e6)
	passes.Decide(owner.New(s, p), &out)
	want = []string{"/B h3 ncpus -2"}
	if got := lines(s, &out); !slices.Equal(got, want) {
		t.Errorf("a host shrank: %q, want %q", got, want)
	}
}

// TestUpdate holds passes that look only at what changed against such as know nothing, over changes of hosts.
func TestUpdate(t *testing.T) {
	changed := 0
	rapid.Check(t, func(t *rapid.T) {
		var hosts strings.Builder
		hosts.WriteString("host,ncpus\n")
		n := rapid.IntRange(1, 12).Draw(t, "hosts")
		for i := range n {
			fmt.Fprintf(&hosts, "h%d,%d\n", i, rapid.IntRange(0, 9).Draw(t, "ncpus"))
		}
		s := newState(t, hosts.String())
		var passes owner.Passes
		for step := range 5 {
			twin := s.Clone()
			var one, other owner.Decisions
			passes.Decide(owner.New(s, &s.Plans[0]), &one)
			one.Book(s, &s.Plans[0])
			new(owner.Passes).Decide(owner.New(twin, &twin.Plans[0]), &other)
			other.Book(twin, &twin.Plans[0])
			if got, want := lines(s, &one), lines(twin, &other); !slices.Equal(got, want) {
				t.Fatalf("step %d: %q, one who knows nothing %q", step, got, want)
			}
			got, want := s.Plans[0].Deeds, twin.Plans[0].Deeds
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("step %d: deeds %+v, of one who knows nothing %+v", step, got, want)
			}
			if !slices.Equal(s.Plans[0].Parcels.Owner, twin.Plans[0].Parcels.Owner) {
				t.Fatalf("step %d: owners %v, want %v", step, s.Plans[0].Parcels.Owner, twin.Plans[0].Parcels.Owner)
			}
			changed += one.Consumer.Len()
			s.Finish(int64(step)+1, int64(step+1)*60e6)
			host, size := rapid.IntRange(0, n-1).Draw(t, "host"), rapid.IntRange(0, 9).Draw(t, "becomes")
			setHosts(t, s, fmt.Sprintf("host,ncpus\nh%d,%d\n", host, size), false)
			s.Settle(int64(step+2) * 60e6)
		}
	})
	if changed < 100 {
		t.Errorf("%d parts changed in all cases", changed)
	}
}
