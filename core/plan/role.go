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
// Both files must have passed Parse.
func ChangedOutside(old, new []byte, branches []string) error {
	var was, is map[string]any
	if err := yaml.Unmarshal(old, &was); err != nil {
		return fmt.Errorf("the policy in force: %w", err)
	}
	if err := yaml.Unmarshal(new, &is); err != nil {
		return err
	}
	if err := inherits(is, branches); err != nil {
		return err
	}
	prune(was, branches)
	prune(is, branches)
	return differs("", was, is)
}

// inherits refuses entries below the branches that take over what a consumer elsewhere holds.
func inherits(file map[string]any, branches []string) error {
	list, _ := file["consumers"].([]any)
	for _, e := range list {
		m, _ := e.(map[string]any)
		from, ok := m["renamed_from"].(string)
		if ok && entryBelow(e, branches) && !entryBelow(map[string]any{"path": from}, branches) {
			return fmt.Errorf("consumer %v: renamed_from: %s is not below a consumer that this token administers", m["path"], from)
		}
	}
	return nil
}

// prune takes the entries below branches out of every list of consumers.
func prune(v any, branches []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if list, ok := value.([]any); ok && key == "consumers" {
				value = slices.DeleteFunc(list, func(e any) bool { return entryBelow(e, branches) })
				v[key] = value
			}
			prune(value, branches)
		}
	case []any:
		for _, e := range v {
			prune(e, branches)
		}
	}
}

func entryBelow(entry any, branches []string) bool {
	m, _ := entry.(map[string]any)
	path, _ := m["path"].(string)
	return slices.ContainsFunc(branches, func(b string) bool { return b != "/" && strings.HasPrefix(path, b+"/") })
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
		for i := range max(len(wasList), len(isList)) {
			name, a, b := entries(wasList, isList, i)
			if err := differs(at+"["+name+"]", a, b); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%s is not the same as in the policy in force, and is not below a consumer that this token administers", at)
}

// entries gives what stands at a place of two lists, and what to call it: entries of consumers by their path, for those that may be
// changed were taken out, so that their number says nothing. Where one came or went, it alone is given.
func entries(was, is []any, i int) (name string, a, b any) {
	path := func(e any) string {
		m, _ := e.(map[string]any)
		text, _ := m["path"].(string)
		return text
	}
	has := func(list []any, p string) bool {
		return slices.ContainsFunc(list, func(e any) bool { return path(e) == p })
	}
	if i < len(was) {
		a = was[i]
	}
	if i < len(is) {
		b = is[i]
	}
	switch p, q := path(a), path(b); {
	case p == "" && q == "":
		return strconv.Itoa(i), a, b
	case q != "" && !has(was, q):
		return q, nil, b
	case p != "" && !has(is, p):
		return p, a, nil
	default: // at another place: the order counts
		return cmp.Or(q, p), a, b
	}
}
