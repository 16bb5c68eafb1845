package plan

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// notCarriedOut are the settings that are checked in full, but that the engine
// does not carry out yet: key paths, with [] for any entry of a list, and the
// value that is meant, "" for any. Whoever carries a setting out takes its line away.
var notCarriedOut = []struct{ path, value string }{
	{"md_plans[].lead", ""},
}

// Unsupported lists the settings of the policy that this version of stint does
// not carry out yet, nil when there are none. They have been checked like all others.
func (p *Policy) Unsupported() Faults { return slices.Clone(p.unsupported) }

// findUnsupported walks a file that has no faults.
func findUnsupported(file string, root value) Faults {
	r := &reader{collector{file: file}}
	for _, s := range notCarriedOut {
		r.find(root, strings.Split(strings.ReplaceAll(s.path, "[]", ".[]"), "."), s.value)
	}
	return r.faults()
}

// find reports the values at a path below v that are the one meant.
func (r *reader) find(v value, path []string, meant string) {
	if len(path) == 0 {
		if text, _ := scalar(v.node); meant == "" || text == meant {
			r.fault(v, "not yet supported")
		}
		return
	}
	switch n := v.node.(type) {
	case *ast.SequenceNode:
		if path[0] == "[]" {
			for i, one := range n.Values {
				r.find(value{one, &step{up: v.at, index: i}}, path[1:], meant)
			}
		}
	case ast.MapNode:
		for it := n.MapRange(); it.Next(); {
			if key := it.Key().GetToken().Value; key == path[0] {
				r.find(value{it.Value(), &step{up: v.at, key: key}}, path[1:], meant)
			}
		}
	}
}
