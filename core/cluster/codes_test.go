package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// varied is a table of hosts some of which are alike, with attributes of each kind and missing values.
func varied(r *rand.Rand, hosts int) *HostTable {
	t := &HostTable{Rows: hosts, Host: texts(), Size: make([][]int64, 2)}
	model := AttrColumn{Name: "model", Kind: plan.Text, Text: texts()}
	fast := AttrColumn{Name: "fast", Kind: plan.Boolean}
	weight := AttrColumn{Name: "weight", Kind: plan.Number}
	for i := range hosts {
		t.Host.Code = append(t.Host.Code, t.Host.Names.InternString(fmt.Sprintf("a%d", i)))
		t.Size[0], t.Size[1] = append(t.Size[0], r.Int64N(4)), append(t.Size[1], r.Int64N(3)*1024)
		model.Valid = append(model.Valid, r.IntN(4) > 0)
		model.Text.Code = append(model.Text.Code, model.Text.Names.InternString([]string{"X5", "X6", "T4"}[r.IntN(3)]))
		fast.Valid, fast.Bool = append(fast.Valid, r.IntN(4) > 0), append(fast.Bool, r.IntN(2) > 0)
		weight.Valid = append(weight.Valid, r.IntN(4) > 0)
		weight.Number = append(weight.Number, []float64{-1, 0, 2.5}[r.IntN(3)])
	}
	zone := AttrColumn{Name: "zone", Kind: plan.Text, Text: texts(), Valid: make([]bool, hosts)}
	for i := range hosts {
		zone.Valid[i], zone.Text.Code = true, append(zone.Text.Code, zone.Text.Names.InternString("a"))
	}
	t.Attr = []AttrColumn{model, fast, weight, zone}
	return t
}

// condition is a random condition over the columns of varied.
func condition(r *rand.Rand, depth int) string {
	if depth > 0 && r.IntN(4) > 0 {
		return fmt.Sprintf("(%s %s %s)", condition(r, depth-1), []string{"&&", "||"}[r.IntN(2)], condition(r, depth-1))
	}
	switch r.IntN(9) {
	case 0:
		return "fast"
	case 1:
		return "!fast"
	case 2:
		return []string{"X5", "T4", "'X6'", "'none'"}[r.IntN(4)]
	case 3:
		return fmt.Sprintf("model %s 'X6'", []string{"==", "!=", "<"}[r.IntN(3)])
	case 4:
		return fmt.Sprintf("weight * %d > ncpus - 1", r.IntN(3))
	case 5:
		return fmt.Sprintf("maxmem / weight >= %d", r.IntN(3000))
	case 6:
		return "state == 'ok'"
	case 7:
		return fmt.Sprintf("name == 'a%d'", r.IntN(40))
	}
	return fmt.Sprintf("ncpus == %d", r.IntN(4))
}

// TestSelector holds what is evaluated once for hosts that are alike against what is evaluated host by host.
func TestSelector(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shared, single := 0, 0
	for range 300 {
		s, hosts := newState(t), 1+r.IntN(300)
		if err := s.SetHosts(varied(r, hosts), true); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			text := "select(" + condition(r, 3) + ")"
			q, err := plan.ParseRequirement(text)
			if err != nil {
				t.Fatal(err)
			}
			b, err := q.Bind(s)
			if err != nil {
				continue // it names what none of these hosts has
			}
			var codes HostCodes
			codes.Reset(s)
			selector := b.Selector(&codes, hosts)
			if selector.Steps(hosts) > int64(hosts)*(1+int64(strings.Count(text, " ")+5)*2) {
				t.Fatalf("%s: %d steps on %d hosts", text, selector.Steps(hosts), hosts)
			}
			if selector.Shared() {
				shared++
			} else {
				single++
			}
			for h := range hosts {
				if got, want := selector.Match(h), b.Match(h); got != want {
					t.Fatalf("%s on host %d: %v, by itself %v", text, h, got, want)
				}
			}
		}
	}
	if t.Logf("%d requirements by combination, %d host by host", shared, single); shared < 300 || single < 100 {
		t.Error("too few of one kind")
	}
}

// TestRequirementBudget pushes requirements that go by each host's name until a source has too many.
func TestRequirementBudget(t *testing.T) {
	s := newState(t)
	r := rand.New(rand.NewPCG(1, 2))
	if err := s.SetHosts(varied(r, 20_000), true); err != nil {
		t.Fatal(err)
	}
	costly := func(i int) string {
		return "select(" + strings.Repeat("name != 'b' && ", 200) + fmt.Sprintf("ncpus != %d)", i+1)
	}
	ask := func(from, to int, requirement func(i int) string) *DemandTable {
		rows, texted := []string{}, []string{}
		for i := from; i < to; i++ {
			rows = append(rows, fmt.Sprintf("/Q job%d - one", i))
			texted = append(texted, requirement(i))
		}
		table := demandTable(rows...)
		table.Requirement = texts(texted...)
		return table
	}
	few := ask(0, 10, costly)
	if err := s.SetDemand("x", few); err != nil {
		t.Fatal("ten costly requirements:", err)
	}
	many := ask(0, 40, costly)
	err := s.SetDemand("x", many)
	if err == nil || !strings.Contains(err.Error(), "row 17, column requirement") ||
		!strings.Contains(err.Error(), "268435456 are allowed") {
		t.Fatalf("forty costly requirements: %v", err)
	}
	if err := s.ChangeDemand("x", ask(10, 14, costly)); err != nil {
		t.Fatal("four more:", err)
	}
	if err := s.ChangeDemand("x", ask(14, 40, costly)); err == nil ||
		!strings.Contains(err.Error(), "row 3, column requirement") {
		t.Fatalf("changes that are too many with what was asked for before: %v", err)
	}
	if err := s.SetDemand("y", ask(100, 600, func(i int) string {
		return "select(" + strings.Repeat("ncpus != 9 && ", 200) + fmt.Sprintf("maxmem != %d)", i)
	})); err != nil {
		t.Fatal("many that go by columns of few values:", err)
	}
	s.Accepted = true
	if err := s.SetDemand("x", many); err != nil {
		t.Fatal("what was accepted before:", err)
	}
}
