package cycle

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

// TestRun holds what tasks leave behind, done side by side and in any legal order, against what they leave one after
// the other: each adds up what it reads, and writes that with its number.
func TestRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const things = 5
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		reads, writes := make([]thing, n), make([]thing, n)
		for i := range n {
			reads[i] = thing(rapid.Uint32Range(0, 1<<things-1).Draw(t, "reads"))
			writes[i] = thing(rapid.Uint32Range(0, 1<<things-1).Draw(t, "writes"))
		}
		play := func(r *Runner, at bool) (value [things]int) {
			var list []task
			for i := range n {
				list = append(list, task{reads[i], writes[i], func() {
					sum := i
					for k := range things {
						if (reads[i]|writes[i])>>k&1 == 1 {
							sum = 31*sum + value[k]
						}
					}
					for k := range things {
						if writes[i]>>k&1 == 1 {
							value[k] = sum
						}
					}
				}})
			}
			if at {
				for i := range list {
					list[i].do()
				}
			} else {
				r.run(list)
			}
			return value
		}
		want := play(nil, true)
		if got := play(&Runner{}, false); got != want {
			t.Fatalf("side by side: %v, want %v", got, want)
		}
		any := &Runner{pick: func(ready int) int { return rapid.IntRange(0, ready-1).Draw(t, "next") }}
		if got := play(any, false); got != want {
			t.Fatalf("in another order: %v, want %v", got, want)
		}
	})
}

// TestLegalOrders plays cycles of several plans with their tasks side by side and in many legal orders: all give the
// same digest.
func TestLegalOrders(t *testing.T) {
	want := digests(t, &Runner{})
	orders := 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		pick := func(ready int) int {
			if ready > 1 {
				orders++
			}
			return random.IntN(ready)
		}
		if got := digests(t, &Runner{pick: pick}); got != want {
			t.Fatalf("order %d: another digest\n%s\n%s", seed, got, want)
		}
	}
	if orders < 100 {
		t.Errorf("only %d times there was a choice", orders)
	}
}

// digests plays some cycles, and gives what they decided.
func digests(t *testing.T, r *Runner) string {
	t.Helper()
	p, err := plan.Parse("policy.yaml", []byte(`
stint: 1
dimensions: [ncpus, slots]
resource_groups:
  - {name: G, select: "select(ncpus > 10)"}
  - {name: H, select: "select(ncpus < 10)"}
  - {name: S, select: "select(ncpus == 10)"}
consumers: [{path: /A}, {path: /A/A1}, {path: /A/A2}, {path: /B}]
md_plans:
  - name: p
    resource_groups: [{name: G}]
    consumers: [{path: /A, own: [{group: G, hosts: 3}]}, {path: /A/A1}, {path: /A/A2, share: {limit: {ncpus: 30}}}, {path: /B, share: {ratio: 2}}]
  - {name: q, resource_groups: [{name: H}], consumers: [{path: /A}, {path: /A/A1}, {path: /B}]}
slot_plans:
  - {resource_group: S, consumers: [{path: /A, policy: share_ratio}, {path: /A/A1, policy: share_ratio}, {path: /B, policy: share_ratio}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	hosts := "host,ncpus,slots\n"
	for i := range 12 {
		hosts += fmt.Sprintf("h%d,%d,4\n", i, 9+i%4)
	}
	o := table.Options{Format: table.CSV, Dimensions: p.Dimensions}
	h, err := table.ReadHosts(strings.NewReader(hosts), o)
	if err == nil {
		err = s.SetHosts(h, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out decision.Cycle
	all := ""
	for i := range int64(8) {
		demand := "plan,consumer,allocation,units,ncpus,slots\n"
		for k, leaf := range []string{"/A/A1", "/A/A2", "/B"} {
			demand += fmt.Sprintf("p,%s,x,%d,2,0\n", leaf, (7+int64(k)*5+i*11)%40)
			if leaf != "/A/A2" {
				demand += fmt.Sprintf("q,%s,x,%d,3,0\nS,%s,x,%d,0,1\n", leaf, (3+i*int64(k+2))%9, leaf,
					(2+i*int64(3-k))%11)
			}
		}
		d, err := table.ReadDemand(strings.NewReader(demand), o)
		if err == nil {
			err = s.SetDemand("s", d)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Run(s, i*60e6, &out)
		all += decision.Digest(out.Tables()) + "\n"
	}
	return all
}
