package cycle_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
)

// cloner clones the state before each of a case's first cycles: a copy has all that the state has and shares no memory
// with it, a cycle on a copy decides what the state then does, and the state stays as it was.
type cloner struct {
	decided string // by the copy, "" when nothing
	cloned  int    // so far
}

// clonedMax is in how many cycles of a case the state is cloned.
const clonedMax = 8

func (c *cloner) begin(*player) { c.decided = "" }

func (c *cloner) look(t *rapid.T, p *player) {
	c.end(t, p)
	if c.decided = ""; p.cycles > clonedMax {
		return
	}
	kept, used := p.engine.Clone(), p.engine.Clone()
	for _, copied := range []*cluster.State{kept, used} {
		if err := compareStates(p.engine, copied); err != nil {
			t.Fatal(err)
		}
	}
	fresh := cycle.Runner{Eager: true}
	var out decision.Cycle
	fresh.Run(used, p.nowUS, &out)
	fresh.Keyframe(&out)
	c.decided = decision.Digest(everything(&out))
	if err := compareStates(p.engine, kept); err != nil {
		t.Fatalf("after a cycle on a copy: %v", err)
	}
	if err := used.Verify(); err != nil {
		t.Fatal(err)
	}
	c.cloned++
}

func (c *cloner) end(t *rapid.T, p *player) {
	if c.decided != "" && c.decided != decision.Digest(everything(&p.out)) {
		t.Fatalf("cycle %d: the copy decided otherwise", p.cycles-1)
	}
}

func (c *cloner) report(t *testing.T, cases int) {
	if t.Logf("cluster.Clone: %d states cloned", c.cloned); !testing.Short() && c.cloned < cases {
		t.Error("cluster.Clone: too few states were cloned")
	}
}

// compareStates tells where two states differ, or share memory that somebody may change.
func compareStates(a, b *cluster.State) error {
	c := comparer{seen: map[[2]uintptr]bool{{reflect.ValueOf(a).Pointer(), reflect.ValueOf(b).Pointer()}: true}}
	c.values("State", reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem())
	if len(c.faults) > 0 {
		return fmt.Errorf("a copied state: %s", strings.Join(c.faults, "; "))
	}
	return nil
}

// Of these a copy has no use, or shares them because nobody changes them.
var (
	unused = []string{"State.scratch", "State.victim", "State.aged", "State.parting", "State.Shape.key"}
	shared = []string{"*plan.Policy", "*plan.MDPlan", "*plan.SlotPlan", "*plan.Requirement", "[]plan.boundNode",
		"[]plan.boundKey"}
)

type comparer struct {
	seen   map[[2]uintptr]bool
	faults []string
}

func (c *comparer) fault(path, text string) {
	if len(c.faults) < 5 {
		c.faults = append(c.faults, path+" "+text)
	}
}

func (c *comparer) values(path string, a, b reflect.Value) {
	if slices.Contains(unused, path) {
		return
	}
	alike := slices.Contains(shared, a.Type().String()) || strings.HasSuffix(path, ".Terms.Member") ||
		strings.HasSuffix(path, ".Terms.Budget")
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				c.fault(path, "is nil in one alone")
			}
			return
		}
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			c.values(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	case reflect.Interface:
		c.values(path, a.Elem(), b.Elem())
	case reflect.Pointer:
		pair := [2]uintptr{a.Pointer(), b.Pointer()}
		if (pair[0] == pair[1]) != alike {
			c.fault(path, "is shared where it must not be, or the other way round")
		}
		if !c.seen[pair] && !alike {
			c.seen[pair] = true
			c.values(path, a.Elem(), b.Elem())
		}
	case reflect.Slice:
		if a.Cap() > 0 && b.Cap() > 0 && a.Type().Elem().Size() > 0 && (a.Pointer() == b.Pointer()) != alike {
			c.fault(path, "is shared where it must not be, or the other way round")
		}
		c.elements(path, a, b, alike)
	case reflect.Array:
		c.elements(path, a, b, alike)
	case reflect.Map:
		if a.Pointer() == b.Pointer() {
			c.fault(path, "is a map that is shared")
		}
		if a.Len() != b.Len() {
			c.fault(path, "has another length")
		}
		for it := a.MapRange(); it.Next(); {
			if v := b.MapIndex(it.Key()); !v.IsValid() || !v.Equal(it.Value()) {
				c.fault(path, "has other entries")
			}
		}
	case reflect.Func: // how two things are done at once
	default:
		if !a.Equal(b) {
			c.fault(path, "is another value")
		}
	}
}

func (c *comparer) elements(path string, a, b reflect.Value, alike bool) {
	if a.Len() != b.Len() {
		c.fault(path, fmt.Sprintf("has %d entries and %d", a.Len(), b.Len()))
		return
	}
	for i := 0; i < a.Len() && !alike; i++ {
		c.values(path+"[]", a.Index(i), b.Index(i))
	}
}
