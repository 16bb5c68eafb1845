package cluster

import (
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

const policyText = `
stint: 1
dimensions: [ncpus, maxmem]
resource_groups:
  - {name: A, select: "select(ncpus > 0 && zone != 'b')"}
  - {name: B, hosts: [b1, b2]}
consumers: [{path: /P}, {path: /P/L}, {path: /Q}, {path: /R}, {path: /S}]
md_plans:
  - {name: one, resource_groups: [{name: A}], consumers: [{path: /P}, {path: /P/L}, {path: /Q}, {path: /R}]}
  - {name: two, resource_groups: [{name: B}], consumers: [{path: /Q}]}
`

func newState(t testing.TB) *State {
	t.Helper()
	p, err := plan.Parse("policy.yaml", []byte(policyText))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// texts is a text column of the rows; "-" is no value.
func texts(rows ...string) TextColumn {
	c := TextColumn{Names: &Names{}}
	for _, r := range rows {
		if r == "-" {
			c.Code = append(c.Code, Null)
			continue
		}
		c.Code = append(c.Code, c.Names.InternString(r))
	}
	return c
}

func hostTable(names ...string) *HostTable {
	t := &HostTable{Rows: len(names), Host: texts(names...), Size: make([][]int64, 2)}
	zone := AttrColumn{Name: "zone", Kind: plan.Text, Text: texts()}
	for _, n := range names {
		t.Size[0], t.Size[1] = append(t.Size[0], 8), append(t.Size[1], 64)
		zone.Valid = append(zone.Valid, true)
		zone.Text.Code = append(zone.Text.Code, zone.Text.Names.InternString(n[:1]))
	}
	t.Attr = []AttrColumn{zone}
	return t
}

// demandTable has rows of "consumer allocation sub plan" and 2 units of (1, 4) each.
func demandTable(rows ...string) *DemandTable {
	var field [4][]string
	t := &DemandTable{Rows: len(rows), Size: make([][]int64, 2), Requirement: texts()}
	for _, r := range rows {
		for i, f := range strings.Fields(r) {
			field[i] = append(field[i], f)
		}
		t.Units, t.Size[0], t.Size[1] = append(t.Units, 2), append(t.Size[0], 1), append(t.Size[1], 4)
	}
	t.Consumer, t.Allocation = texts(field[0]...), texts(field[1]...)
	t.Sub, t.Plan = texts(field[2]...), texts(field[3]...)
	return t
}

func TestDemandFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		table *DemandTable
		edit  func(*DemandTable)
		want  string
	}{
		{"unknown consumer", demandTable("/X a - -"), nil,
			`demand: row 1, column consumer, value "/X": no such consumer in the policy`},
		{"a parent", demandTable("/R a - -", "/P a - -"), nil,
			`demand: row 2, column consumer, value "/P": has children; only leaves have demand`},
		{"in no plan", demandTable("/S a - -"), nil,
			`demand: row 1, column consumer, value "/S": takes part in no plan`},
		{"in several plans", demandTable("/Q a - -"), nil,
			`demand: row 1, column plan: /Q takes part in several plans, name one of one, two`},
		{"unknown plan", demandTable("/Q a - three"), nil,
			`demand: row 1, column plan, value "three": no such plan; there are one, two`},
		{"another's plan", demandTable("/R a - two"), nil,
			`demand: row 1, column plan, value "two": /R takes no part in this plan`},
		{"named twice", demandTable("/R a x -", "/R a y -", "/R a x one"), nil,
			`demand: row 3, column allocation, value "a": row 1 names the same sub-allocation`},
		{"no size", demandTable("/R a - -"), func(d *DemandTable) { d.Size[0][0], d.Size[1] = 0, nil },
			`demand: row 1: a unit has no size: all of ncpus, maxmem are 0`},
		{"negative", demandTable("/R a - -"), func(d *DemandTable) { d.Size[0][0] = -1 },
			`demand: row 1, column ncpus, value "-1": not a whole number from 0 to 2^53`},
		{"too many", demandTable("/R a - -"), func(d *DemandTable) { d.Units[0] = NumberMax + 1 },
			`demand: row 1, column units, value "9007199254740993": not a whole number from 0 to 2^53`},
		{"a bad requirement", demandTable("/R a - -"), func(d *DemandTable) {
			d.Requirement = texts("select(ncpus >)")
		},
			`demand: row 1, column requirement, value "select(ncpus >)": `},
		{"a requirement nobody knows", demandTable("/R a - -"), func(d *DemandTable) {
			d.Requirement = texts("select(quantum)")
		},
			`demand: row 1, column requirement, value "select(quantum)": `},
		{"another source's allocation", demandTable("/R taken - -"), nil,
			`demand: row 1, column allocation, value "taken": belongs to source "first" already`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newState(t)
			if err := s.SetHosts(hostTable("a1", "b1"), true); err != nil {
				t.Fatal(err)
			}
			if err := s.SetDemand("first", demandTable("/R taken - -")); err != nil {
				t.Fatal(err)
			}
			if c.edit != nil {
				c.edit(c.table)
			}
			subs, labels := len(s.Sub.Wanted), s.Label.Len()
			err := s.SetDemand("second", c.table)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if len(s.Sub.Wanted) != subs || s.Label.Len() != labels {
				t.Error("a refused table changed the state")
			}
		})
	}
}

func TestHostFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		table *HostTable
		edit  func(*HostTable)
		want  string
	}{
		{"named twice", hostTable("a1", "a2", "a1"), nil,
			`hosts: row 3, column host, value "a1": this host stands in row 1 already`},
		{"negative", hostTable("a1"), func(h *HostTable) { h.Size[1][0] = -5 },
			`hosts: row 1, column maxmem, value "-5": not a whole number from 0 to 2^53`},
		{"another type", hostTable("a1"), func(h *HostTable) {
			h.Attr = []AttrColumn{{Name: "zone", Kind: plan.Number, Valid: []bool{true}, Number: []float64{1}}}
		}, `hosts, column zone: holds numbers, but text up to now`},
		{"in two plans", hostTable("a1", "b1"), func(h *HostTable) { h.Attr[0].Text = texts("a", "a") },
			`hosts: host b1 is in two plans: one and, by resource group B, two`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newState(t)
			if err := s.SetHosts(hostTable("a9"), true); err != nil {
				t.Fatal(err)
			}
			if c.edit != nil {
				c.edit(c.table)
			}
			if err := s.SetHosts(c.table, false); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if s.Host.Len() != 1 || s.Plans[0].Parcels.Len() != 1 {
				t.Error("a refused table changed the state")
			}
		})
	}
}

func TestRunningFaults(t *testing.T) {
	holdings := func(consumer, allocation, host string, units int64) *HoldingTable {
		return &HoldingTable{Rows: 1, Consumer: texts(consumer), Allocation: texts(allocation), Sub: texts("-"),
			Host: texts(host), Units: []int64{units}}
	}
	for _, c := range []struct {
		name, source string
		table        *HoldingTable
		want         string
	}{
		{"unknown host", "s", holdings("/R", "a", "a7", 1),
			`holdings: row 1, column host, value "a7": no host is called this`},
		{"a host in no plan", "s", holdings("/R", "a", "b3", 1),
			`holdings: row 1, column host, value "b3": the host is in no plan`},
		{"unknown consumer", "s", holdings("/X", "a", "a1", 1),
			`holdings: row 1, column consumer, value "/X": no such consumer in the policy`},
		{"not wanted", "s", holdings("/R", "z", "a1", 1),
			`holdings: row 1, column allocation, value "z": /R has no such sub-allocation in plan one`},
		{"another source's", "t", holdings("/R", "a", "a1", 1),
			`holdings: row 1, column allocation, value "a": belongs to another source than "t"`},
		{"beyond capacity", "s", holdings("/R", "a", "a1", 9),
			`holdings: row 1, column units, value "9": host a1 has 8 ncpus free, 9 are needed`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newState(t)
			if err := s.SetHosts(hostTable("a1", "b1", "b3"), true); err != nil {
				t.Fatal(err)
			}
			if err := s.SetDemand("s", demandTable("/R a - -")); err != nil {
				t.Fatal(err)
			}
			if err := s.AddRunning(c.source, c.table); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if s.HeldUnits() != 0 {
				t.Error("a refused table changed the state")
			}
		})
	}
}

// TestNames holds the dictionary against a map, through growth and Reserve.
func TestNames(t *testing.T) {
	var n Names
	ids := map[string]int32{}
	for i := range 5000 {
		name := strings.Repeat("x", i%7) + string(rune('a'+i%997))
		if i == 2000 {
			n.Reserve(3000)
		}
		id := n.InternString(name)
		if old, ok := ids[name]; ok && old != id {
			t.Fatalf("%q was %d and is %d", name, old, id)
		} else if !ok && int(id) != len(ids) {
			t.Fatalf("%q is %d, the next id is %d", name, id, len(ids))
		}
		ids[name] = id
	}
	for name, id := range ids {
		if got, ok := n.Find([]byte(name)); !ok || got != id || n.String(id) != name {
			t.Fatalf("%q: found %d %v, called %q", name, got, ok, n.String(id))
		}
	}
	if _, ok := n.Find([]byte("never seen")); ok || n.Len() != len(ids) {
		t.Error("a name that was never interned is found")
	}
}

// TestForgotten checks that what nobody names or holds leaves no row behind (D-12).
func TestForgotten(t *testing.T) {
	s := newState(t)
	if err := s.SetHosts(hostTable("a1"), true); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.SetDemand("s", demandTable("/R a - -", "/R b x -", "/R b y -", "/P/L a - -")); err != nil {
			t.Fatal(err)
		}
		if err := s.SetDemand("s", demandTable()); err != nil {
			t.Fatal(err)
		}
		s.Settle(0)
		s.Finish(s.Cycle+1, 0)
	}
	if len(s.Sub.Wanted) != more(0) || len(s.Alloc.Plan) != more(0) || s.SubAllocations() != 0 ||
		len(s.Alloc.free) != more(0) || len(s.subOf) != 0 || len(s.allocOf) != 0 {
		t.Errorf("%d sub-allocations and %d allocations have rows, %d and %d are known",
			len(s.Sub.Wanted), len(s.Alloc.Plan), len(s.subOf), len(s.allocOf))
	}
	for n := range s.Plans[0].FirstAlloc {
		if s.Plans[0].FirstAlloc[n] != NoID || s.Plans[0].LastAlloc[n] != NoID {
			t.Errorf("%s still has allocations", s.Policy.Path[n])
		}
	}
}

// TestTurnsEnd checks that sub-allocations that had their turns with fair share may take again once what their leaf
// asks for changed, or hosts or policy; not when others ask for something else (INV-10).
func TestTurnsEnd(t *testing.T) {
	s := newState(t)
	for name, change := range map[string]func() error{
		"nothing": func() error { return nil },
		"demand":  func() error { return s.SetDemand("s", demandTable("/R a - -", "/R b - -")) },
		"others'": func() error { return s.SetDemand("s", demandTable("/R a - -", "/Q a - one")) },
		"hosts":   func() error { return s.SetHosts(hostTable("a1", "a2"), true) },
		"policy": func() error {
			p, err := plan.Parse("policy.yaml", []byte(policyText+"# another"))
			if err != nil {
				return err
			}
			return s.SetPolicy(p, false)
		},
	} {
		if err := s.SetHosts(hostTable("a1"), true); err != nil {
			t.Fatal(err)
		}
		if err := s.SetDemand("s", demandTable("/R a - -")); err != nil {
			t.Fatal(err)
		}
		s.Settle(0)
		s.Finish(s.Cycle+1, 0)
		s.Turn(0, true)
		if err := change(); err != nil {
			t.Fatal(err)
		}
		s.Settle(0)
		if ended := s.Sub.Turns[0] == 0; ended != (name != "nothing" && name != "others'") {
			t.Errorf("%s changed: turns %d", name, s.Sub.Turns[0])
		}
		s.Finish(s.Cycle+1, 0)
	}
}

// TestRenamedInOrder checks that consumers that a policy renames get their new ids in the order of the tree, every time
// (INV-8): tables have rows in the order of lenders.
func TestRenamedInOrder(t *testing.T) {
	names := strings.NewReplacer("{path: /P}, {path: /P/L}, {path: /Q}, {path: /R}, {path: /S}]",
		"{path: /U, renamed_from: /P}, {path: /U/L, renamed_from: /P/L}, {path: /V, renamed_from: /Q}, {path: /W, "+
			"renamed_from: /R}, {path: /X, renamed_from: /S}]",
		"{path: /P}, {path: /P/L}, {path: /Q}, {path: /R}]", "{path: /U}, {path: /U/L}, {path: /V}, {path: /W}]",
		"[{path: /Q}]", "[{path: /V}]")
	p, err := plan.Parse("policy.yaml", []byte(names.Replace(policyText)))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		s := newState(t)
		if err := s.SetPolicy(p, false); err != nil {
			t.Fatal(err)
		}
		for n := plan.Root + 2; int(n) < p.Len(); n++ {
			if s.ConsumerOf[n] <= s.ConsumerOf[n-1] {
				t.Fatalf("%s has id %d, %s before it %d", p.Path[n], s.ConsumerOf[n], p.Path[n-1], s.ConsumerOf[n-1])
			}
		}
	}
}

// TestForeignHosts holds that a host is in no plan of two divisions, and that a plan goes to another division only when
// nothing is held in it.
func TestForeignHosts(t *testing.T) {
	const divisions = "divisions: [{name: east, plans: [one]}, {name: west, plans: [two]}]\n"
	s, err := New(parsed(t, string(plan.ForDivision([]byte(policyText+divisions), "east"))))
	if err != nil {
		t.Fatal(err)
	}
	twice := hostTable("a1", "b1")
	twice.Attr[0].Text = texts("a", "a")
	const want = "hosts: host b1 is in two plans: one and, by resource group B, two of division west"
	if err := s.SetHosts(twice, true); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := s.SetHosts(hostTable("a1", "b1"), true); err != nil {
		t.Fatal(err)
	}
	if len(s.Plans) != 1 || s.Plans[0].Parcels.Len() != 1 {
		t.Errorf("division east has %d plans, the first with %d parcels", len(s.Plans), s.Plans[0].Parcels.Len())
	}
	if err := s.SetDemand("feed", demandTable("/P/L a s -")); err != nil {
		t.Fatal(err)
	}
	running := &HoldingTable{Rows: 1, Consumer: texts("/P/L"), Allocation: texts("a"), Sub: texts("s"),
		Host: texts("a1"), Units: []int64{1}}
	if err := s.AddRunning("feed", running); err != nil {
		t.Fatal(err)
	}
	const moved = "divisions: [{name: west, plans: [one, two]}, {name: east, plans: [three]}]\n"
	text := strings.Replace(policyText, "consumers: [{path: /P}, {path: /P/L}",
		"  - {name: C, hosts: [c1]}\nconsumers: [{path: /P}, {path: /P/L}", 1) +
		"  - {name: three, resource_groups: [{name: C}], consumers: [{path: /S}]}\n"
	const held = "policy.yaml: plan one is gone, and /P/L still holds 1 units in it: it must give them back first"
	if err := s.SetPolicy(parsed(t, string(plan.ForDivision([]byte(text+moved), "east"))), true); err == nil ||
		err.Error() != held {
		t.Errorf("got  %v\nwant %s", err, held)
	}
}

func parsed(t testing.TB, text string) *plan.Policy {
	t.Helper()
	p, err := plan.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
