package plan

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Services tells which consumers belong to a system branch: those marked `system: true` and all below them (PLAN-6).
func (p *Policy) Services() []bool {
	in := make([]bool, p.Len())
	for n := Node(1); int(n) < p.Len(); n++ {
		in[n] = p.System[n] || in[p.Parent[n]]
	}
	return in
}

// lack is why a slot plan does not keep a system service alive in one of its windows.
type lack struct {
	node Node
	plan int // index into Policy.SlotPlans
	Fault
}

// services notes which leaves of system branches could lose their last slot in the window (PLAN-6).
func (c *slotCheck) services(t *planned) {
	in := c.p.Services()
	for n := Node(1); int(n) < c.p.Len(); n++ {
		if !in[n] || !c.p.Leaf(n) || !c.s.Member[n] {
			continue
		}
		if key, why := c.lacking(n); why != "" {
			if c.window != "" {
				why = "in window " + c.window + " " + why
			}
			t.lacks = append(t.lacks, lack{n, len(c.p.SlotPlans), c.faultOf(c.m.at(n, key), "%s", why)})
		}
	}
}

// lacking tells which setting leaves a system service without a slot that is its own, and why; nothing when it has one.
func (c *slotCheck) lacking(n Node) (key, why string) {
	w, path := c.w, c.p.Path[n]
	for up := n; up != Root; up = c.p.Parent[up] {
		switch {
		case w.Max[up] == 0:
			return "share", fmt.Sprintf("the system service %s may hold nothing: share.max of %s is 0", path,
				c.p.Path[up])
		case w.Limit[up] == 0:
			return "limit", fmt.Sprintf("the system service %s may hold nothing: the limit of %s is 0", path,
				c.p.Path[up])
		}
	}
	switch {
	case w.Policy[n] == ShareRatio:
		return "policy", fmt.Sprintf("the system service %s owns no slot, as nobody does under share_ratio; it must "+
			"own one that is not lent", path)
	case w.Owns[n] == 0:
		return "owns", fmt.Sprintf("the system service %s owns no slot; it must own one that is not lent", path)
	case w.Policy[n] == Hybrid && w.Reserves[n] == 0:
		return "reserves", fmt.Sprintf("the system service %s reserves none of its slots, so that others may hold "+
			"all; it must reserve one", path)
	case w.Policy[n] == Ownership && w.LendLimit[n] >= w.Owns[n]:
		return "lend", fmt.Sprintf("the system service %s may lend all its slots, %d of %d; one must not be lent", path,
			w.LendLimit[n], w.Owns[n])
	}
	return "", ""
}

// services reports leaves of system branches that no slot plan keeps alive at all times. A branch of which nobody takes
// part in a slot plan is left alone: there it cannot lose any.
func (r *reader) services(p *Policy, t *planned) {
	in := p.Services()
	for n := Node(1); int(n) < p.Len(); n++ {
		if !in[n] || !p.Leaf(n) {
			continue
		}
		top := n
		for p.Parent[top] != Root && in[p.Parent[top]] {
			top = p.Parent[top]
		}
		enters, branch, kept := false, false, false
		for i := range p.SlotPlans {
			member := p.SlotPlans[i].Member
			enters, branch = enters || member[n], branch || member[top]
			kept = kept || member[n] && !slices.ContainsFunc(t.lacks, func(l lack) bool {
				return l.node == n && l.plan == i
			})
		}
		switch {
		case kept:
		case enters:
			for _, l := range t.lacks {
				if l.node == n {
					r.add(l.Fault)
				}
			}
		case branch && int(n) < len(r.entryAt):
			r.fault(r.entryAt[n], "the system service %s is in no slot plan, where %s is; it must own a slot that "+
				"is not lent", p.Path[n], p.Path[top])
		}
	}
}

// TakesSystemOff gives the consumers, by their paths in the policy in force, that p would no longer have in a system
// branch although they stay: the topmost of each branch.
func (p *Policy) TakesSystemOff(was *Policy) (paths []string) {
	before, now, heir := was.Services(), p.Services(), p.heirs()
	for n := Node(1); int(n) < was.Len(); n++ {
		to, stays := heir(was.Path[n])
		if before[n] && stays && !now[to] && p.Path[to] == was.Path[n] &&
			!slices.Contains(paths, was.Path[was.Parent[n]]) {
			paths = append(paths, was.Path[n])
		}
	}
	return paths
}

// heirs gives the consumer of p that follows one of an earlier policy: that of the same path, or the one renamed from
// it.
func (p *Policy) heirs() func(path string) (Node, bool) {
	renamed := map[string]Node{}
	for n, from := range p.RenamedFrom {
		if from != "" {
			renamed[from] = Node(n)
		}
	}
	return func(path string) (Node, bool) {
		if n, ok := p.Find(path); ok {
			return n, true
		}
		n, ok := renamed[path]
		return n, ok
	}
}

// Follows tells why p must not come after the policy in force: it would take a system service away (PLAN-6). Force lets
// it take `system: true` off, when it changes nothing else. The error is of type Faults. nil: it may come.
func (p *Policy) Follows(was *Policy, force bool) error {
	c := &collector{file: p.File}
	say := func(n Node, format string, args ...any) {
		f := Fault{Reason: fmt.Sprintf(format, args...) + " (PLAN-6)"}
		if n != None {
			f.Line, f.Column = int(p.Line[n]), 1
		}
		c.add(f)
	}
	before, now, heir := was.Services(), p.Services(), p.heirs()
	for n := Node(1); int(n) < was.Len(); n++ {
		if !before[n] {
			continue
		}
		to, ok := heir(was.Path[n])
		switch {
		case !ok:
			say(None, "consumer %s belongs to a system branch and must not be removed", was.Path[n])
			continue
		case !now[to] && p.Path[to] != was.Path[n]:
			say(to, "consumer %s belongs to a system branch and must not be renamed out of it, to %s", was.Path[n],
				p.Path[to])
		}
		for _, name := range was.plansOf(n) {
			if !slices.Contains(p.plansOf(to), name) {
				say(to, "consumer %s belongs to a system branch and must not leave plan %s", was.Path[n], name)
			}
		}
	}
	for _, path := range p.TakesSystemOff(was) {
		n, _ := p.Find(path)
		switch {
		case !force:
			say(n, "`system: true` may be taken off consumer %s by a cluster administrator alone, with force, in a "+
				"revision of its own", path)
		case !alike(reflect.ValueOf(was).Elem(), reflect.ValueOf(p).Elem()):
			say(n, "a revision that takes `system: true` off consumer %s must change nothing else", path)
		}
	}
	if faults := c.faults(); faults != nil {
		return faults
	}
	return nil
}

// plansOf names the plans in which a consumer takes part.
func (p *Policy) plansOf(n Node) (names []string) {
	for i := range p.SlotPlans {
		if p.SlotPlans[i].Member[n] {
			names = append(names, p.Groups[p.SlotPlans[i].Group].Name)
		}
	}
	for i := range p.MDPlans {
		if p.MDPlans[i].Member[n] {
			names = append(names, p.MDPlans[i].Name)
		}
	}
	return names
}

// unsaid are fields of policies that do not say what holds: where it stands, what is made of the other fields, and
// `system` itself.
var unsaid = []string{"File", "Digest", "Line", "System", "byPath", "groups"}

// alike tells whether two policies say the same but for `system`.
func alike(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		switch x := a.Interface().(type) {
		case *time.Location:
			return x.String() == b.Interface().(*time.Location).String()
		case *Requirement:
			return x.Text == b.Interface().(*Requirement).Text
		}
		return alike(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !slices.Contains(unsaid, a.Type().Field(i).Name) && !alike(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !alike(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}
