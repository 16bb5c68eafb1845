package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// ChangedOutside tells what differs between two policy files besides the entries of consumers below one of the branches
// (PLAN-5: a consumer administrator changes settings below its own consumer, and never its own entry). nil: nothing.
// Both files must have passed Parse. O(bytes of both).
func ChangedOutside(old, new []byte, branches []string) error {
	var was, is map[string]any
	if err := yaml.Unmarshal(old, &was); err != nil {
		return fmt.Errorf("the policy in force: %w", err)
	}
	if err := yaml.Unmarshal(new, &is); err != nil {
		return err
	}
	below := newBranches(branches)
	if err := inherits(is, below); err != nil {
		return err
	}
	prune(was, below)
	prune(is, below)
	return differs("", was, is)
}

// branches are the consumers that somebody administers.
type branches map[string]bool

func newBranches(paths []string) branches {
	b := make(branches, len(paths))
	for _, path := range paths {
		b[path] = path != "/"
	}
	return b
}

// below tells whether an entry is of a consumer below one of the branches. O(length of its path).
func (b branches) below(path string) bool {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' && b[path[:i]] {
			return true
		}
	}
	return false
}

// inherits refuses entries below the branches that take over what a consumer elsewhere holds.
func inherits(file map[string]any, below branches) error {
	list, _ := file["consumers"].([]any)
	for _, e := range list {
		m, _ := e.(map[string]any)
		from, ok := m["renamed_from"].(string)
		if ok && below.below(pathOf(e)) && !below.below(from) {
			return fmt.Errorf("consumer %v: renamed_from: %s is not below a consumer that this token administers",
				m["path"], from)
		}
	}
	return nil
}

// prune takes the entries below branches out of every list of consumers.
func prune(v any, below branches) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if list, ok := value.([]any); ok && key == "consumers" {
				value = slices.DeleteFunc(list, func(e any) bool { return below.below(pathOf(e)) })
				v[key] = value
			}
			prune(value, below)
		}
	case []any:
		for _, e := range v {
			prune(e, below)
		}
	}
}

// pathOf is the path of an entry, "" where it has none.
func pathOf(entry any) string {
	m, _ := entry.(map[string]any)
	path, _ := m["path"].(string)
	return path
}

// differs names the first place, in the order of keys, where two documents are not the same.
func differs(at string, was, is any) error {
	if reflect.DeepEqual(was, is) {
		return nil
	}
	wasMap, ok1 := was.(map[string]any)
	isMap, ok2 := is.(map[string]any)
	if ok1 && ok2 {
		var keys []string
		for k := range wasMap {
			keys = append(keys, k)
		}
		for k := range isMap {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if err := differs(strings.TrimPrefix(at+"."+k, "."), wasMap[k], isMap[k]); err != nil {
				return err
			}
		}
	}
	wasList, ok1 := was.([]any)
	isList, ok2 := is.([]any)
	if ok1 && ok2 {
		old, new := pathsOf(wasList), pathsOf(isList)
		for i := range max(len(wasList), len(isList)) {
			name, a, b := entries(wasList, isList, old, new, i)
			if err := differs(at+"["+name+"]", a, b); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%s is not the same as in the policy in force, and is not below a consumer that this token "+
		"administers", at)
}

// pathsOf are the paths of a list's entries.
func pathsOf(list []any) map[string]bool {
	paths := make(map[string]bool, len(list))
	for _, e := range list {
		paths[pathOf(e)] = true
	}
	return paths
}

// entries gives what stands at a place of two lists, which have the paths given, and what to call it: entries of
// consumers by their path, for those that may be changed were taken out, so that their number says nothing. Where one
// came or went, it alone is given.
func entries(was, is []any, old, new map[string]bool, i int) (name string, a, b any) {
	if i < len(was) {
		a = was[i]
	}
	if i < len(is) {
		b = is[i]
	}
	switch p, q := pathOf(a), pathOf(b); {
	case p == "" && q == "":
		return strconv.Itoa(i), a, b
	case q != "" && !old[q]:
		return q, nil, b
	case p != "" && !new[p]:
		return p, a, nil
	default: // at another place: the order counts
		return cmp.Or(q, p), a, b
	}
}
