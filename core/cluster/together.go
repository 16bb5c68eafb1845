package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stintd/stint/core/plan"
)

// preferWord begins what a gang asks for that is to be together where it can, and may be anywhere (D-108).
const preferWord = "prefer "

// Together is what the column together says: the attribute of hosts, and whether gangs may do without.
func Together(text string) (attribute string, prefers bool) {
	attribute, prefers = strings.CutPrefix(text, preferWord)
	return strings.TrimSpace(attribute), prefers
}

// bindTogether finds out which texts of a table's column together name an attribute that hosts may have.
func (s *State) bindTogether(t *DemandTable) {
	b, n := &s.scratch, 0
	if t.Together.Names != nil {
		n = t.Together.Names.Len()
	}
	b.together, b.apart = resize(b.together, n), resize(b.apart, n)
	clear(b.together)
	for c := range b.apart {
		b.apart[c] = ""
		if text := t.Together.Names.Bytes(int32(c)); len(text) > 0 {
			b.apart[c] = s.attributeFault(string(text))
		}
	}
}

// attributeFault is why gangs cannot be together by a text, "" where they can. Before there are hosts any attribute may
// come.
func (s *State) attributeFault(text string) string {
	name, _ := Together(text)
	if name == "" || text != name && text != preferWord+name {
		return "write the name of an attribute of hosts, such as rack, or prefer and a name"
	}
	_, kind, ok := s.Column(name)
	_, dimension := s.Policy.Dimension(name)
	switch {
	case dimension || name == "state" || ok && kind == plan.Boolean:
		return name + " is no attribute that tells places apart: name one that is text or numbers"
	case ok || s.Host.Len() == 0:
		return ""
	}
	names := []string{"host"}
	for i := range s.Host.Attr {
		if a := &s.Host.Attr[i]; a.Kind != plan.Boolean {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("no host has an attribute %s; there are %s", name, listed(names))
}

// listedMost is how many names a message lists.
const listedMost = 12

// listed is the first of some names.
func listed(names []string) string {
	if len(names) > listedMost {
		return strings.Join(names[:listedMost], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// togetherFault is why a row's units may not be together, "" where they may. A row that wants no units asks for no
// gang.
func (s *State) togetherFault(t *DemandTable, i int) string {
	code := t.Together.At(i)
	switch {
	case code == Null || len(t.Together.Names.Bytes(code)) == 0:
		return ""
	case s.scratch.apart[code] != "":
		return s.scratch.apart[code]
	case t.Units[i] > 0 && (t.MinUnits == nil || t.MinUnits[i] <= 1):
		return "only units of a gang are together: give min_units, more than 1"
	}
	return ""
}
