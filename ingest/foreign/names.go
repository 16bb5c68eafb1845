package foreign

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stintd/stint/core/plan"
)

// nameBytesMax is how long the name of a dimension or attribute may be.
const nameBytesMax = 31

// Renaming is a name of another system that has a different name here.
type Renaming struct {
	What string `json:"what"` // the kind of thing and its name in the other system, such as resource nvidia.com/gpu
	Name string `json:"name"` // its name here
}

// names gives the dimensions and the host attributes of an import their names. All importers use it, because columns,
// dimensions and attributes of a host table share one space of names. Invariant: no two things get the same name, and
// no name is that of a column. The zero value is ready.
type names struct {
	owner   map[string]thing // by name
	given   map[thing]string
	renamed []Renaming
}

// thing is what has a name: its kind (resource, feature, partition, …) and its name in the other system.
type thing struct{ kind, name string }

// fix reserves names that an importer writes literally, such as an attribute that a select expression mentions.
func (n *names) fix(list ...string) {
	for _, name := range list {
		n.give(thing{kind: "column", name: name}, name)
	}
}

// of returns the name of a thing, the same one each time. A name that is taken, or that is a column of stint's tables,
// gets the kind in front (feature_gpu), then a number behind. A name that differs from the other system's is listed as
// a renaming.
func (n *names) of(kind, original string) string { return n.as(kind, original, original) }

// as is of for a thing that is to have a certain name here, such as cpu_milli for the resource cpu.
func (n *names) as(kind, original, wanted string) string {
	t := thing{kind: kind, name: original}
	if name, ok := n.given[t]; ok {
		return name
	}
	base := identifier(wanted)
	if base == "" || n.taken(base) {
		base = identifier(kind + "_" + base)
	}
	name := base
	for i := 2; n.taken(name); i++ {
		suffix := fmt.Sprintf("_%d", i)
		name = strings.TrimSuffix(base[:min(len(base), nameBytesMax-len(suffix))], "_") + suffix
	}
	n.give(t, name)
	if name != original {
		n.renamed = append(n.renamed, Renaming{What: kind + " " + original, Name: name})
	}
	return name
}

// known returns the name that a thing has got, and whether it has one.
func (n *names) known(kind, original string) (string, bool) {
	name, ok := n.given[thing{kind: kind, name: original}]
	return name, ok
}

func (n *names) taken(name string) bool {
	_, taken := n.owner[name]
	return taken || plan.ReservedName(name) || slices.Contains(yamlWords, name)
}

// yamlWords are names that a policy would have to put in quotes: to YAML they are no texts.
var yamlWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}

func (n *names) give(t thing, name string) {
	if n.owner == nil {
		n.owner, n.given = map[string]thing{}, map[thing]string{}
	}
	n.owner[name], n.given[t] = t, name
}

// The kind of a resource: its name becomes a dimension.
const kindResource = "resource"

// dim returns the number of the dimension of a resource, which it adds when it is new.
func (p *policy) dim(resource string) int { return p.dimAs(resource, resource) }

// dimAs is dim for a resource whose dimension is to have a certain name.
func (p *policy) dimAs(resource, wanted string) int {
	name := p.names.as(kindResource, resource, wanted)
	if i := slices.Index(p.dims, name); i >= 0 {
		return i
	}
	p.dims = append(p.dims, name)
	return len(p.dims) - 1
}

// dimKnown returns the number of the dimension of a resource, or -1.
func (p *policy) dimKnown(resource string) int {
	name, ok := p.names.known(kindResource, resource)
	if !ok {
		return -1
	}
	return slices.Index(p.dims, name)
}

// identifier converts a name of another system to the form of a dimension's name: nvidia.com/gpu becomes
// nvidia_com_gpu. It returns "" where no letter is left.
func identifier(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' && b.Len() > 0 {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "_") {
			b.WriteByte('_')
		}
	}
	return strings.TrimSuffix(b.String()[:min(b.Len(), nameBytesMax)], "_")
}
