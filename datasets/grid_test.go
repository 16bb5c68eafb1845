package datasets

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// TestGrid checks what the options promise, over small and lopsided sizes.
func TestGrid(t *testing.T) {
	for _, o := range []Options{
		{Hosts: 40, Consumers: 20, Units: 1000, Seed: 1},
		{Hosts: 1000, Consumers: 200, Units: 20_000, Seed: 2},
		{Hosts: 3, Consumers: 2, Units: 1, Seed: 3},
		{Hosts: 7, Consumers: 100, Units: 26, Shapes: 1, Seed: 4},
		{Hosts: 100, Consumers: 9, Units: 5000, Shapes: 200, Seed: 5},
	} {
		d, err := Grid(o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if d.Hosts.Rows != o.Hosts {
			t.Errorf("%+v: %d hosts", o, d.Hosts.Rows)
		}
		var units int64
		demand, capacity := vector{}, vector{}
		shapes := map[vector]bool{}
		for row := range d.Demand.Rows {
			if d.Demand.Units[row] < 1 {
				t.Fatalf("%+v: row %d wants %d units", o, row, d.Demand.Units[row])
			}
			units += d.Demand.Units[row]
			var v vector
			for i := range v {
				v[i] = d.Demand.Size[i][row]
				demand[i] += v[i] * d.Demand.Units[row]
			}
			shapes[v] = true
		}
		if units != o.Units {
			t.Errorf("%+v: %d units in all", o, units)
		}
		if want := max(o.Shapes, 6); len(shapes) > want {
			t.Errorf("%+v: %d shapes", o, len(shapes))
		}
		for i := range capacity {
			for _, v := range d.Hosts.Size[i] {
				capacity[i] += v
			}
		}
		if o.Units >= 1000 {
			if d.Demand.Consumer.Names.Len() != min(o.Consumers, d.Demand.Rows) {
				t.Errorf("%+v: %d consumers have demand", o, d.Demand.Consumer.Names.Len())
			}
			if fill := float64(demand[ncpus]) / float64(capacity[ncpus]); fill < 0.9 || fill > 1.1 {
				t.Errorf("%+v: demand is %.2f of the processors", o, fill)
			}
		}
	}
}

// TestPlan checks that the policy file compiles, with the leaves that were asked for and nothing the engine refuses.
func TestPlan(t *testing.T) {
	for _, n := range []int{2, 3, 20, 1000} {
		d, err := Grid(Options{Hosts: 10, Consumers: n, Units: 100, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Parse("plan.yaml", d.Plan)
		if err != nil {
			t.Fatalf("%d leaves: %v", n, err)
		}
		leaves, first := 0, 0
		for i := range p.Tree.Len() {
			if p.Leaf(plan.Node(i)) {
				leaves++
				if p.Depth[i] != 3 {
					t.Errorf("%d leaves: %s is at level %d", n, p.Path[i], p.Depth[i])
				}
			}
			if p.Depth[i] == 1 {
				first++
			}
		}
		if leaves != n || first < 2 {
			t.Errorf("%d leaves asked for: %d leaves under %d branches", n, leaves, first)
		}
		if !slices.Equal(p.Dimensions, d.Dimensions) {
			t.Errorf("dimensions %v, policy %v", d.Dimensions, p.Dimensions)
		}
	}
}

// TestSeed checks that options decide all, and that the seed matters.
func TestSeed(t *testing.T) {
	grid := func(seed uint64) *Dataset {
		d, err := Grid(Options{Hosts: 50, Consumers: 30, Units: 3000, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a, b, c := grid(1), grid(1), grid(2)
	if !bytes.Equal(a.Plan, b.Plan) || !reflect.DeepEqual(a.Demand.Units, b.Demand.Units) ||
		!reflect.DeepEqual(a.Hosts.Size, b.Hosts.Size) {
		t.Error("the same options give two datasets")
	}
	if slices.Equal(a.Demand.Units, c.Demand.Units) {
		t.Error("two seeds give the same demand")
	}
}

func TestValidate(t *testing.T) {
	_, err := Grid(Options{Hosts: 0, Consumers: 1, Units: -5, Shapes: -1})
	want := `grid, column hosts, value "0": must be from 1 to 10000000
grid, column consumers, value "1": must be from 2 to 900000
grid, column units, value "-5": must be from 1 to 400000000
grid, column shapes, value "-1": must be from 0 to 10000`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

// TestWrite checks that each format writes once and refuses to overwrite.
func TestWrite(t *testing.T) {
	d, err := Grid(Options{Hosts: 3, Consumers: 2, Units: 60, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(t.TempDir(), "xml"); err == nil || !strings.Contains(err.Error(), `format "xml"`) {
		t.Errorf("unknown format: %v", err)
	}
	for _, format := range Formats {
		dir := filepath.Join(t.TempDir(), "new")
		if err := d.Write(dir, format); err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"plan.yaml", "hosts." + format, "demand." + format} {
			if info, err := os.Stat(filepath.Join(dir, n)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", n, err)
			}
		}
		if err := d.Write(dir, format); err == nil || !strings.Contains(err.Error(), "already there") {
			t.Errorf("%s written twice: %v", format, err)
		}
	}
}

// TestLenders reads clusters of lenders back: about half of the consumers own something, and some of them set what is
// lent.
func TestLenders(t *testing.T) {
	for _, o := range []Options{
		{Hosts: 100, Consumers: 100, Units: 2000, Shapes: 20, Seed: 3},
		{Hosts: 20_000, Consumers: 2000, Units: 20_000, Shapes: 50, Seed: 1},
	} {
		d, err := Lenders(o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		p, err := plan.Parse("plan.yaml", d.Plan)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		w, owners, graces, reserves := &p.MDPlans[0].Windows[0], 0, 0, 0
		for n, rules := range w.Own {
			if len(rules) == 0 {
				continue
			}
			if owners++; w.LendGraceUS[n] != plan.Unlimited {
				graces++
			}
			if w.Reserve[n].Percent != plan.Unlimited {
				reserves++
			}
		}
		if o.Hosts > o.Consumers && (owners < o.Consumers/3 || owners > o.Consumers*2/3 || graces == 0 ||
			reserves == 0) {
			t.Errorf("%+v: %d owners, %d graces, %d reserves", o, owners, graces, reserves)
		}
	}
}

// TestOwned reads clusters of owners back: all own something, a tenth of them parts.
func TestOwned(t *testing.T) {
	for _, o := range []Options{
		{Hosts: 1000, Consumers: 40, Units: 2000, Seed: 1},
		{Hosts: 20_000, Consumers: 2000, Units: 20_000, Seed: 2},
	} {
		d, err := Owners(o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		p, err := plan.Parse("plan.yaml", d.Plan)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		owners, parts := 0, 0
		for _, rules := range p.MDPlans[0].Windows[0].Own {
			if len(rules) > 0 {
				owners++
				if rules[0].PerHost != nil || rules[0].Partial {
					parts++
				}
			}
		}
		if owners != o.Consumers || parts < owners/20 || parts > owners/5 {
			t.Errorf("%+v: %d owners, %d of parts", o, owners, parts)
		}
	}
}
