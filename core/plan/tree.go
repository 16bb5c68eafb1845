package plan

import (
	"strings"
)

// entry is a consumer's entry in a list of the file.
type entry struct {
	value
	fields fields
	path   string
	pathAt value
}

// entries reads a list of consumer entries, which have a path each, none twice.
func (r *reader) entries(v value, known ...string) []entry {
	list, _ := r.list(v, consumersMax)
	out := make([]entry, 0, len(list))
	first := make(map[string]int32, len(list))
	for _, one := range list {
		f, ok := r.fields(one, known...)
		if !ok {
			continue
		}
		at, ok := r.need(one, f, "path")
		if !ok {
			continue
		}
		path, ok := r.path(at)
		if !ok {
			continue
		}
		if line, twice := first[path]; twice {
			r.fault(at, "the consumer stands here a second time, first on line %d", line)
			continue
		}
		first[path] = at.line()
		out = append(out, entry{one, f, path, at})
	}
	return out
}

// path reads a consumer's path below the root.
func (r *reader) path(v value) (s string, ok bool) {
	s, ok = r.name(v)
	switch {
	case !ok:
		return "", false
	case s == "/":
		r.fault(v, "the root is always there and has no settings")
	case s[0] != '/' || strings.HasSuffix(s, "/") || strings.Contains(s, "//"):
		r.fault(v, "must be a full path such as /Risk/Intraday")
	default:
		return s, true
	}
	return "", false
}

// parent is the path above a consumer's.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// consumers reads the top-level list and builds the tree from it.
func (r *reader) consumers(p *Policy, v value) {
	list := r.entries(v, consumerObject.names...)
	if len(list) == 0 {
		if len(r.found) == 0 {
			r.fault(v, "there must be at least one consumer")
		}
		return
	}
	row := make(map[string]int, len(list))
	for i := range list {
		row[list[i].path] = i
	}
	for _, e := range list {
		if up := parent(e.path); up != "/" {
			if _, ok := row[up]; !ok {
				r.fault(e.pathAt, "its parent %s is not listed", up)
			}
		}
	}
	order := preorder(list, row)
	paths := make([]string, 1, len(list)+1)
	paths[0] = "/"
	for _, i := range order {
		paths = append(paths, list[i].path)
	}
	p.grow(paths)
	r.entryAt = make([]value, len(paths))
	for n, i := range order {
		r.entryAt[n+1] = list[i].pathAt
		p.Line[n+1] = list[i].pathAt.line()
		r.consumer(p, Node(n+1), list[i])
	}
	r.renames(p, list)
}

// preorder gives the entries' rows parents first, siblings in the order of the
// list. A consumer whose parent is missing counts with the nearest one above it.
func preorder(list []entry, row map[string]int) []int {
	first := make([]int, len(list)+1) // first child; the root's is the last
	next := make([]int, len(list))
	for i := range first {
		first[i] = -1
	}
	for i := len(list) - 1; i >= 0; i-- {
		up := len(list)
		for path := parent(list[i].path); path != "/"; path = parent(path) {
			if at, ok := row[path]; ok {
				up = at
				break
			}
		}
		next[i], first[up] = first[up], i
	}
	order := make([]int, 0, len(list))
	stack := []int{first[len(list)]}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		if i < 0 {
			stack = stack[:len(stack)-1]
			continue
		}
		stack[len(stack)-1] = next[i]
		order = append(order, i)
		stack = append(stack, first[i])
	}
	return order
}

// grow makes the tree of paths that stand in pre-order, and the arrays beside it.
func (p *Policy) grow(paths []string) {
	n := len(paths)
	t := &p.Tree
	t.Path, t.byPath = paths, make(map[string]Node, n)
	t.Parent, t.First, t.Next, t.End = filled(n, None), filled(n, None), filled(n, None), make([]Node, n)
	t.Depth, t.Line = make([]int32, n), make([]int32, n)
	last := filled(n, None) // last child so far
	for i, path := range paths {
		c := Node(i)
		t.byPath[path], t.End[i] = c, c+1
		if c == Root {
			continue
		}
		up, ok := t.byPath[parent(path)]
		for above := parent(path); !ok; up, ok = t.byPath[above] {
			above = parent(above)
		}
		t.Parent[i], t.Depth[i] = up, t.Depth[up]+1
		if last[up] == None {
			t.First[up] = c
		} else {
			t.Next[last[up]] = c
		}
		last[up] = c
	}
	for c := Node(n - 1); c > Root; c-- {
		t.End[t.Parent[c]] = max(t.End[t.Parent[c]], t.End[c])
	}
	p.Rank, p.ReclaimUS, p.RuntimeUS, p.System = make([]int32, n), make([]int64, n), make([]int64, n), make([]bool, n)
	p.Admins, p.Users, p.RenamedFrom = make([][]string, n), make([][]string, n), make([]string, n)
}

// filled makes a slice of n equal values.
func filled[T any](n int, v T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = v
	}
	return s
}

// consumer reads the settings of a top-level entry.
func (r *reader) consumer(p *Policy, n Node, e entry) {
	if v, ok := e.fields.get("rank"); ok {
		p.Rank[n] = r.rank(v)
	}
	p.ReclaimUS[n] = p.ReclaimUS[p.Parent[n]] // which comes before it
	if v, ok := e.fields.get("reclaim_grace"); ok {
		p.ReclaimUS[n], _ = r.duration(v)
	}
	p.RuntimeUS[n] = p.RuntimeUS[p.Parent[n]]
	if v, ok := e.fields.get("min_runtime"); ok {
		p.RuntimeUS[n], _ = r.duration(v)
	}
	if v, ok := e.fields.get("admins"); ok {
		p.Admins[n], _ = r.names(v, peopleMax)
	}
	if v, ok := e.fields.get("users"); ok {
		p.Users[n], _ = r.names(v, peopleMax)
	}
	if v, ok := e.fields.get("system"); ok {
		p.System[n], _ = r.boolean(v)
	}
	if v, ok := e.fields.get("renamed_from"); ok {
		p.RenamedFrom[n], _ = r.path(v)
	}
}

// rank reads a rank: a whole number, 0 is first.
func (r *reader) rank(v value) int32 {
	n, _ := r.integer(v, 0, 1<<31-1)
	return int32(n)
}

// renames checks renamed_from: the old path is gone from the file, and has one heir.
func (r *reader) renames(p *Policy, list []entry) {
	heirs := make(map[string]string)
	for _, e := range list {
		n, _ := p.Find(e.path)
		old := p.RenamedFrom[n]
		if old == "" {
			continue
		}
		v, _ := e.fields.get("renamed_from")
		if _, ok := p.Find(old); ok {
			r.fault(v, "the old path is still a consumer")
		} else if heirs[old] != "" {
			r.fault(v, "%s is renamed from it already", heirs[old])
		}
		heirs[old] = e.path
	}
}
