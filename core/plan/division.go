package plan

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// divisionsMax is how many divisions a policy may have.
const divisionsMax = 64

// divisionName are the names that a division may have: folders and prefixes are called so.
var divisionName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// Division is a set of plans that a service decides apart from all others (HA-5).
type Division struct {
	Name  string
	Plans []string
	Line  int32
}

// Foreign is a plan of another division than the one that a policy is of: its hosts may be in no plan here.
type Foreign struct {
	Name, Division string
	Groups         []int // indices into Policy.Groups
}

// DivisionNamed tells whether a division may be called so.
func DivisionNamed(name string) bool { return divisionName.MatchString(name) }

// divisions reads which plans are decided apart from others. Each plan is in exactly one division, and its groups and
// hosts with it.
func (r *reader) divisions(p *Policy, f fields) {
	of, one := f.get("division")
	v, ok := f.get("divisions")
	if !ok {
		if one {
			r.fault(of, "there are no divisions of which it could be one")
		}
		return
	}
	list, _ := r.list(v, divisionsMax)
	if list != nil && len(list) == 0 {
		r.fault(v, "there must be at least one division")
	}
	in := map[string]string{} // plan → division
	for _, entry := range list {
		r.division(p, entry, in)
	}
	for _, name := range p.PlanNames() {
		if _, ok := in[name]; !ok && len(list) > 0 {
			r.fault(v, "plan %s is in no division", name)
		}
	}
	if !one {
		return
	}
	if p.Division, ok = r.name(of); ok && !slices.Contains(p.DivisionNames(), p.Division) {
		r.fault(of, "there is no such division%s", listed(p.DivisionNames()))
	}
}

// division reads one of them.
func (r *reader) division(p *Policy, entry value, in map[string]string) {
	f, ok := r.fields(entry, divisionObject.names...)
	if !ok {
		return
	}
	d := Division{Line: entry.line()}
	if v, ok := r.need(entry, f, "name"); ok {
		name, ok := r.name(v)
		at := slices.IndexFunc(p.Divisions, func(d Division) bool { return d.Name == name })
		switch {
		case !ok:
		case !DivisionNamed(name):
			r.fault(v, "a division's name is a small letter and at most 30 small letters, digits and - after it")
		case at >= 0:
			r.fault(v, "there is already a division of this name, on line %d", p.Divisions[at].Line)
		}
		d.Name = name
	}
	if v, ok := r.need(entry, f, "plans"); ok {
		list, _ := r.list(v, 2*plansMax)
		if list != nil && len(list) == 0 {
			r.fault(v, "a division has at least one plan")
		}
		for _, one := range list {
			name, ok := r.name(one)
			switch other, twice := in[name]; {
			case !ok:
			case !slices.Contains(p.PlanNames(), name):
				if p.plansNamed() { // otherwise the entry may name a plan that has an error of its own
					r.fault(one, "there is no such plan%s", listed(p.PlanNames()))
				}
			case twice:
				r.fault(one, "the plan is in division %s already", other)
			default:
				in[name] = d.Name
				d.Plans = append(d.Plans, name)
			}
		}
	}
	p.Divisions = append(p.Divisions, d)
}

// PlanNames lists the names of all plans, MD plans first. It skips plans whose name has an error, which only a policy
// that is still being read has.
func (p *Policy) PlanNames() (names []string) {
	for i := range p.MDPlans {
		if name := p.MDPlans[i].Name; name != "" {
			names = append(names, name)
		}
	}
	for i := range p.SlotPlans {
		if g := p.SlotPlans[i].Group; g >= 0 {
			names = append(names, p.Groups[g].Name)
		}
	}
	return names
}

// plansNamed reports whether every plan has a name.
func (p *Policy) plansNamed() bool { return len(p.PlanNames()) == len(p.MDPlans)+len(p.SlotPlans) }

// DivisionNames are the names of the divisions, in the file's order.
func (p *Policy) DivisionNames() (names []string) {
	for _, d := range p.Divisions {
		names = append(names, d.Name)
	}
	return names
}

// DivisionOf gives the index of the division that a plan is in, -1 where there is no such plan.
func (p *Policy) DivisionOf(plan string) int {
	return slices.IndexFunc(p.Divisions, func(d Division) bool { return slices.Contains(d.Plans, plan) })
}

// keepDivision leaves the plans of the policy's division, and notes those of the others.
func (p *Policy) keepDivision() {
	at := func(name string) int { return p.DivisionOf(name) }
	foreign := func(name string, groups []int) bool {
		d := p.Divisions[at(name)]
		if d.Name == p.Division {
			return false
		}
		p.Foreign = append(p.Foreign, Foreign{name, d.Name, groups})
		return true
	}
	p.MDPlans = slices.DeleteFunc(p.MDPlans, func(m MDPlan) bool {
		var groups []int
		for _, g := range m.Groups {
			groups = append(groups, g.Group)
		}
		return foreign(m.Name, groups)
	})
	p.SlotPlans = slices.DeleteFunc(p.SlotPlans, func(m SlotPlan) bool {
		return foreign(p.Groups[m.Group].Name, []int{m.Group})
	})
}

// mark is the end of a policy file that is in force for one division.
func mark(division string) string { return "\ndivision: " + division + "\n" }

// ForDivision is a policy file as it is in force for one of its divisions: the same text, and a line behind it that
// says which. Parse leaves the plans of that division, whose journal and log so say all by themselves.
func ForDivision(text []byte, division string) []byte {
	return append(bytes.Clone(text), mark(division)...)
}

// Whole is the policy file that ForDivision made another one of; a text that it did not make is given back.
func Whole(text []byte, division string) []byte {
	return bytes.TrimSuffix(text, []byte(mark(division)))
}

// MovesBothWays tells of a division that would give a plan to another and get one by the same file: what it gives must
// be gone before another has it, so that the two come one after the other. Error: nil where there is none.
func (p *Policy) MovesBothWays(was *Policy) error {
	for _, d := range p.Divisions {
		if gives, gets := p.moves(was, d.Name); len(gives) > 0 && len(gets) > 0 {
			return fmt.Errorf("%s: division %s would give %s away and get %s: put them in force one after the other",
				p.File, d.Name, strings.Join(gives, ", "), strings.Join(gets, ", "))
		}
	}
	return nil
}

// Gives tells whether a division has plans in the policy before that another has in this one.
func (p *Policy) Gives(was *Policy, division string) bool {
	gives, _ := p.moves(was, division)
	return len(gives) > 0
}

// moves are the plans that a division gives to others and gets from them.
func (p *Policy) moves(was *Policy, division string) (gives, gets []string) {
	for _, name := range p.PlanNames() {
		from, to := was.DivisionOf(name), p.DivisionOf(name)
		if from < 0 || to < 0 || was.Divisions[from].Name == p.Divisions[to].Name {
			continue
		}
		switch division {
		case was.Divisions[from].Name:
			gives = append(gives, name)
		case p.Divisions[to].Name:
			gets = append(gets, name)
		}
	}
	return gives, gets
}
