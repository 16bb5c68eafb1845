package explain

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/stintd/stint/core/decision"
)

// nearMax is how many names an error suggests.
const nearMax = 3

// Target is what is to be explained: a consumer, or one of its allocations.
type Target struct {
	Consumer   string
	Allocation *string // nil: the consumer
}

// Find reads CONSUMER[:ALLOCATION]. A path may have colons itself: the longest part that is a consumer counts as one.
// Consumers are those of the policy, and others of which the cycle tells: with demand in no plan, or removed with work
// that still runs. The errors are UnknownErrors; the root is one of its own.
func (f *Facts) Find(name string) (Target, error) {
	if name == "/" {
		return Target{}, errors.New("/ is the root, which has no figures; name a consumer below it")
	}
	all := f.consumers()
	for at := len(name); at > 0; at = strings.LastIndexByte(name[:at], ':') {
		if _, ok := slices.BinarySearch(all, name[:at]); !ok {
			continue
		}
		if at == len(name) {
			return Target{Consumer: name}, nil
		}
		allocation := name[at+1:]
		return Target{name[:at], &allocation}, f.knows(name[:at], allocation)
	}
	near := nearest(name, all)
	if path, _, ok := strings.Cut(name, ":"); ok && len(near) == 0 {
		name, near = path, nearest(path, all)
	}
	return Target{}, &UnknownError{What: "consumer", Name: name, Near: near}
}

// Allocation is Find for an allocation of a consumer that was found.
func (f *Facts) Allocation(t Target, allocation string) (Target, error) {
	t.Allocation = &allocation
	return t, f.knows(t.Consumer, allocation)
}

// knows gives an error unless an allocation of a consumer, or of those below it, wants or holds something.
func (f *Facts) knows(consumer, allocation string) error {
	var all []string
	v := view(f.Shortfalls)
	mine := f.under(v, "consumer", consumer)
	for row := range v.Rows {
		if mine(row) {
			all = append(all, v.text("allocation", row))
		}
	}
	own, _ := f.held(consumer)
	own.each(func(h holder, _ int64) { all = append(all, h.allocation) })
	slices.Sort(all)
	all = slices.Compact(all)
	if _, ok := slices.BinarySearch(all, allocation); ok {
		return nil
	}
	return &UnknownError{What: "allocation", Name: allocation, Of: consumer, Near: nearest(allocation, all),
		Some: all[:min(len(all), nearMax)]}
}

// consumers are the paths of all consumers, sorted. O(rows of the holdings), without a text each.
func (f *Facts) consumers() []string {
	all := slices.Clone(f.Policy.Path[1:])
	for _, t := range []*decision.Table{f.Shortfalls, f.Holdings, f.Later.Grants} {
		if t == nil || t.Rows == 0 {
			continue
		}
		c := t.Column("consumer")
		seen := make([]bool, c.Dict.Len())
		for _, code := range c.Code {
			seen[code] = true
		}
		for code, yes := range seen {
			if yes {
				all = append(all, f.renamed(string(c.Dict.Bytes(int32(code)))))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// nearest are the names that a name may have been meant for, the nearest first: those that differ by few letters, whole
// or in their last part, upper and lower case counting as one.
func nearest(name string, all []string) []string {
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	low := strings.ToLower(name)
	last := low[strings.LastIndexByte(low, '/')+1:]
	for _, other := range all {
		o := strings.ToLower(other)
		far := distance(low, o)
		if tail := o[strings.LastIndexByte(o, '/')+1:]; last != "" && tail != o {
			far = min(far, distance(last, tail)+1)
		}
		if far <= max(2, len(last)/3) {
			found = append(found, candidate{other, far})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.far, b.far) })
	var names []string
	for _, c := range found[:min(len(found), nearMax)] {
		names = append(names, c.name)
	}
	return names
}

// distance is how many letters must be put in, left out or changed to make one text the other (Levenshtein).
// O(len(a) × len(b)).
func distance(a, b string) int {
	if len(a) > 256 || len(b) > 256 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
