package foreign

import (
	"fmt"
	"strconv"
	"strings"
)

// hostList expands a list of Slurm's node names, such as n[001-128],gpu[1,3-5]-[0-1]. limit bounds how many there may
// be.
func hostList(text string, limit int) (names []string, err error) {
	for _, part := range splitOutside(text, ',') {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		more, err := expand(part, limit-len(names))
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	return names, nil
}

// splitOutside cuts a text at a separator that stands outside of brackets.
func splitOutside(text string, separator byte) (parts []string) {
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case separator:
			if depth <= 0 {
				parts = append(parts, text[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, text[from:])
}

// expand expands one name with any number of bracketed ranges.
func expand(text string, limit int) ([]string, error) {
	before, rest, ok := strings.Cut(text, "[")
	if !ok {
		if strings.Contains(text, "]") {
			return nil, fmt.Errorf("%q has a ] without a [", text)
		}
		if limit < 1 {
			return nil, fmt.Errorf("there are more names than are allowed")
		}
		return []string{text}, nil
	}
	inner, after, ok := strings.Cut(rest, "]")
	if !ok {
		return nil, fmt.Errorf("%q has a [ without a ]", text)
	}
	tails, err := expand(after, limit)
	if err != nil {
		return nil, err
	}
	var names []string
	for r := range strings.SplitSeq(inner, ",") {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		low, wrong := strconv.ParseUint(first, 10, 32)
		high, alsoWrong := strconv.ParseUint(last, 10, 32)
		if wrong != nil || alsoWrong != nil || high < low || len(first) > 9 {
			return nil, fmt.Errorf("%q in %q is no range such as 001-128", r, text)
		}
		if high-low >= uint64(limit) || len(names)+int(high-low+1)*len(tails) > limit {
			return nil, fmt.Errorf("%q: there are more names than are allowed", text)
		}
		for n := low; n <= high; n++ {
			for _, tail := range tails {
				names = append(names, fmt.Sprintf("%s%0*d%s", before, len(first), n, tail))
			}
		}
	}
	return names, nil
}
