package cluster

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/pack"
)

// derived are the fields that Save leaves out: Load makes them of the others,
// of the policy, or they are scratch memory.
var derived = []string{
	"State.Policy", "State.at", "State.allocOf", "State.subOf", "State.scratch", "State.Renamed", "State.Renumbered",
	"State.Changes", "State.victim", "State.aged", "State.parting",
	"Names.slot", "Shapes.of", "Shapes.key", "Needs.Parsed", "Hosts.words", "Subs.noted", "Subs.prev", "Subs.after",
	"Subs.before", "Allocs.prev", "State.Accepted", "State.UnitsOfHost", "Plan.sizing",
	"State.ofSource", "Pairs.many", "State.noted", "State.Both", "State.Stop",
	"AttrColumn.Keep",
	"Plan.Index", "Plan.MD", "Plan.Slots", "Plan.Terms", "Plan.Owns", "Plan.Spent", "History.first",
	"Holdings.onDevices", "Parcels.Device", "Parcels.Stride",
}

// TestSavesEachField has one row in every list of structs, and looks that each field below the state
// was named or is known to be made of others.
func TestSavesEachField(t *testing.T) {
	s := &State{
		Plans: make([]Plan, 1), Released: make([]Release, 1), Reclaims: make([]Reclaimed, 1),
		orphans: make([]orphan, 1), asked: make([]asked, 1), last: make([]hostFigures, 1),
		Policy: newState(t).Policy,
	}
	s.Host.Attr, s.Sub.Alloc = make([]AttrColumn, 1), make([]AllocID, 1)
	c := pack.Save()
	c.Watch()
	s.Save(c)
	used := map[string]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name
			if slices.Contains(derived, name) {
				used[name] = true
				continue
			}
			switch {
			case f.Kind() == reflect.Struct:
				walk(f)
				continue
			case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct && !f.IsNil():
				walk(f.Elem())
			case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
				if f.Len() == 0 {
					t.Errorf("the test gives %s no row", name)
					continue
				}
				walk(f.Index(0))
			}
			if !c.Met(f.UnsafeAddr()) {
				t.Errorf("%s is neither saved nor known as derived: name it in save.go (if c.Since(another form)), "+
					"or make it in derive.go and list it here", name)
			}
		}
	}
	walk(reflect.ValueOf(s).Elem())
	for _, name := range derived {
		if !used[name] {
			t.Errorf("%s is listed as derived, and is no field", name)
		}
	}
}

func bytesOf(t testing.TB, s *State) []byte {
	t.Helper()
	c := pack.Save()
	s.Save(c)
	c.Hold()
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sameState compares all fields of two states, derived ones too, but for scratch memory and functions.
func sameState(t testing.TB, a, b *State) {
	t.Helper()
	if x, y := bytesOf(t, a), bytesOf(t, b); !bytes.Equal(x, y) {
		t.Fatalf("saved again it has other bytes (%d, %d)", len(x), len(y))
	}
	for _, what := range []struct {
		name string
		a, b any
	}{
		{"allocations by key", a.allocOf, b.allocOf}, {"sub-allocations by key", a.subOf, b.subOf},
		{"shapes", a.Shape.of, b.Shape.of},
		{"order of hosts", a.at.order, b.at.order}, {"selected hosts", a.at.selected, b.at.selected},
		{"members of groups", a.at.members, b.at.members},
		{"warnings", a.at.warnings, b.at.warnings}, {"number of requirements", len(a.Need.Parsed), len(b.Need.Parsed)},
	} {
		if !reflect.DeepEqual(what.a, what.b) && (reflect.ValueOf(what.a).Kind() != reflect.Slice ||
			reflect.ValueOf(what.a).Len()+reflect.ValueOf(what.b).Len() > 0) {
			t.Fatalf("%s: %v, after loading %v", what.name, what.a, what.b)
		}
	}
	for i := range a.Plans {
		p, q := &a.Plans[i], &b.Plans[i]
		if p.Index != q.Index || p.MD != q.MD || p.Slots != q.Slots || !reflect.DeepEqual(p.Terms, q.Terms) ||
			p.Owns != q.Owns {
			t.Fatalf("plan %s has other settings after loading", p.Name)
		}
	}
	if err := b.Verify(); err != nil {
		t.Fatal(err)
	}
}

// lived is a state with something in most of its tables: holdings, some of them under reclaim for a taker, deeds,
// requirements, demand that is gone, rows that are free again.
func lived(t testing.TB) *State {
	t.Helper()
	s := serving(t)
	demand := demandTable("/P/L x - one", "/R z - one", "/Q w - two")
	demand.Requirement = texts("select(ncpus > 1)", "-", "select(zone == 'a')")
	if err := s.SetDemand("s", demand); err != nil {
		t.Fatal(err)
	}
	own(s, deed{"/P", "a1", 4, 32}, deed{"/P/L", "a1", 2, 16})
	settle(t, s)
	p := &s.Plans[0]
	taker := s.Plans[0].FirstAlloc[s.NodeOf[s.Alloc.Consumer[0]]]
	q := s.Sub.First[s.Alloc.First[taker]]
	id := s.OpenSet(p, s.Holding.Parcel[q], 0, s.Alloc.First[taker], s.NowUS)
	s.TakeBack(id, q, 1, s.NowUS+60e6)
	s.Promise(id, 1)
	s.Silence("s")
	return s
}

func TestSaveBothWays(t *testing.T) {
	for _, s := range []*State{newState(t), serving(t), lived(t)} {
		got, err := s.Copy()
		if err != nil {
			t.Fatal(err)
		}
		sameState(t, s, got)
	}
}

// TestLoadDamaged cuts a saved state short, and changes each of its bytes: what
// comes is an error or a state, never a panic.
func TestLoadDamaged(t *testing.T) {
	s := lived(t)
	whole := bytesOf(t, s)
	load := func(b []byte) error {
		c := pack.Load(bytes.NewReader(b), int64(len(b)))
		_, err := Load(c, s.Policy)
		if err == nil {
			err = c.End()
		}
		return err
	}
	for n := 0; n < len(whole); n += 3 {
		if load(whole[:n]) == nil {
			t.Fatalf("cut at byte %d it was loaded", n)
		}
	}
	found := 0
	for i := range whole {
		for _, to := range []byte{0xff, whole[i] + 1, whole[i] ^ 0x80} {
			bad := bytes.Clone(whole)
			bad[i] = to
			if load(bad) != nil {
				found++
			}
		}
	}
	t.Logf("%d bytes, %d of %d changes are refused without a checksum", len(whole), found, 3*len(whole))
	other := bytes.Clone(whole)
	other[0] = 99
	if err := load(other); err == nil || !strings.Contains(err.Error(), "form 99 of a state") {
		t.Error(err)
	}
}

// FuzzLoadState loads a state from arbitrary bytes.
func FuzzLoadState(f *testing.F) {
	s := lived(f)
	f.Add(bytesOf(f, s))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = Load(pack.Load(bytes.NewReader(b), int64(len(b))), s.Policy)
	})
}
