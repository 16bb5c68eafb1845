package cluster

import (
	"fmt"
	"math"

	"github.com/stintd/stint/core/plan"
)

// valuesMax is how many values of a host column are numbered.
const valuesMax = 1 << 12

// HostCodes numbers the values of host columns, each when it is first asked for (plan.Coded). Its numbers are good for
// one State.HostTables. The zero value is ready; Reset comes first.
type HostCodes struct {
	s      *State
	tables int64
	of     map[int]plan.Codes
}

// Reset points it at a state, and forgets all numbers that are not good any more.
func (c *HostCodes) Reset(s *State) {
	if c.of == nil || c.s != s || c.tables != s.HostTables {
		c.s, c.tables, c.of = s, s.HostTables, map[int]plan.Codes{}
	}
}

// Codes numbers the values of a column (plan.Coded). O(1), and once O(hosts).
func (c *HostCodes) Codes(col int) plan.Codes {
	codes, ok := c.of[col]
	if !ok {
		codes = c.number(col)
		c.of[col] = codes
	}
	return codes
}

// number numbers a column's values in the order in which hosts have them.
func (c *HostCodes) number(col int) plan.Codes {
	n := c.s.Host.Len()
	codes, seen := plan.Codes{Of: make([]int32, n)}, map[uint64]int32{}
	for h := range n {
		value := c.value(col, h)
		code, ok := seen[value]
		if !ok {
			if len(seen) == valuesMax {
				return plan.Codes{}
			}
			code = int32(len(seen))
			seen[value] = code
		}
		codes.Of[h] = code
	}
	codes.Values = len(seen)
	return codes
}

// value is a host's value in a column, as a number that only this value has there.
func (c *HostCodes) value(col, h int) uint64 {
	hosts := &c.s.Host
	const none = math.MaxUint64 // no code, nor the bits of a number that a table can have
	switch {
	case col < columnHost:
		return uint64(hosts.Size[col][h])
	case col == columnHost:
		return uint64(h)
	case col == columnState:
		return uint64(hosts.State[h])
	}
	a := &hosts.Attr[col-columnAttr]
	switch {
	case !a.Valid[h]:
		return none
	case a.Kind == plan.Number:
		return math.Float64bits(a.Number[h])
	case a.Kind == plan.Text:
		return uint64(a.Text.Code[h])
	case a.Bool[h]:
		return 1
	}
	return 0
}

// WordColumns are the columns in which a word may stand that a host matches (plan.Coded).
func (c *HostCodes) WordColumns(word string) (cols []int, ok bool) {
	if _, named := c.s.Host.Find([]byte(word)); named {
		return nil, false
	}
	for _, name := range wordColumns {
		if i := c.s.Host.attribute(name); i >= 0 && c.s.Host.Attr[i].Kind == plan.Text {
			cols = append(cols, columnAttr+i)
		}
	}
	return cols, true
}

// requirementSteps is what evaluating the requirements of a source may cost in a cycle in which any host changed
// (plan.Selector.Steps): some 0.3 to 1 s.
const requirementSteps = 1 << 28

// needSteps are the costs of evaluating requirements, by NeedID; 0: not known.
type needSteps struct {
	codes  HostCodes
	known  []int64
	tables int64
}

// budgetNeeds finds rows whose requirement goes beyond what those of its source may cost; in
// changes, what the source asks for already counts as well. O(rows) where the table has
// requirements, and of changes O(sub-allocations of the source).
func (s *State) budgetNeeds(source string, t *DemandTable, f *Faults) {
	b := &s.scratch
	if s.Accepted || t.Requirement.Names.Len() == 0 || s.Host.Len() == 0 || f.Count > 0 {
		return
	}
	total, counted := int64(0), map[NeedID]bool{}
	if src, ok := s.Source.Find([]byte(source)); ok && b.changes {
		s.eachOfSource(SourceID(src), func(sub SubID) {
			if need := s.Sub.Need[sub]; need != NoID && s.Sub.Wanted[sub] > 0 && !counted[need] {
				counted[need] = true
				total += s.stepsOf(need)
			}
		})
	}
	within := make([]int8, t.Requirement.Names.Len()) // by code: 0 not met yet, 1 within the budget, -1 not
	for i := range t.Rows {
		code := t.Requirement.At(i)
		if code == Null || len(t.Requirement.Names.Bytes(code)) == 0 {
			continue
		}
		if within[code] == 0 {
			within[code] = 1
			if need := b.need[code]; need == NoID || !counted[need] {
				if total += s.stepsFor(need, t.Requirement.Names.Bytes(code)); total > requirementSteps {
					within[code] = -1
				}
			}
		}
		if within[code] < 0 {
			f.Add(i+1, "requirement", t.Requirement.Names.String(code),
				fmt.Sprintf("the requirements of the source up to this one take %d steps to evaluate on %d hosts, "+
					"%d are allowed: have fewer different ones, shorter ones, or ones that go by columns with few "+
					"values", total, s.Host.Len(), int64(requirementSteps)))
		}
	}
}

// stepsFor is the cost of a requirement that may have no id yet.
func (s *State) stepsFor(need NeedID, text []byte) int64 {
	if need != NoID {
		return s.stepsOf(need)
	}
	r, err := plan.ParseRequirement(string(text))
	if err != nil {
		return 0 // it is refused for that
	}
	return s.stepsToSelect(r)
}

// stepsOf is the cost of a requirement that the state knows.
func (s *State) stepsOf(need NeedID) int64 {
	c := &s.scratch.steps
	if c.tables != s.HostTables {
		c.tables, c.known = s.HostTables, c.known[:0]
	}
	for int(need) >= len(c.known) {
		c.known = append(c.known, 0)
	}
	if c.known[need] == 0 {
		c.known[need] = max(1, s.stepsToSelect(s.Need.Parsed[need]))
	}
	return c.known[need]
}

func (s *State) stepsToSelect(r *plan.Requirement) int64 {
	bound, err := r.Bind(s)
	if err != nil {
		return 0 // it selects nothing
	}
	codes := &s.scratch.steps.codes
	codes.Reset(s)
	return bound.Selector(codes, s.Host.Len()).Steps(s.Host.Len())
}
