package datasets

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

var (
	divisionNames = []string{"Markets", "Risk", "Treasury", "Research", "Insurance", "Wealth", "Clearing", "Reporting"}
	deskNames     = []string{"Rates", "Credit", "Equities", "FX", "Commodities", "Funding", "Hybrids", "Securitised"}
	bookNames     = []string{"Pricing", "Exposure", "VaR", "Stress", "Scenarios", "Calibration", "EndOfDay", "Backtest"}
)

// tree is the consumers of a grid in three levels: division, desk, book. Only books are leaves.
type tree struct {
	divisions []string
	desks     [][]string // paths by division
	books     [][]string // paths by desk, desks numbered across divisions
	leaves    []string   // all books, in tree order
}

// newTree spreads n ≥ 2 leaves: about ∛n divisions, at least two, about as many desks in each, and the
// leaves evenly over the desks. Twenty leaves stand under three divisions with three desks each.
func newTree(n int) *tree {
	t := &tree{}
	divisions := max(2, int(math.Round(math.Cbrt(float64(n)))))
	each := max(1, min(n/divisions, int(math.Round(math.Sqrt(float64(n)/float64(divisions))))))
	desks := divisions * each
	for i := range divisions {
		division := "/" + name(divisionNames, i)
		t.divisions = append(t.divisions, division)
		var paths []string
		for k := range each {
			desk := division + "/" + name(deskNames, k)
			paths = append(paths, desk)
			at := i*each + k
			var books []string
			for b := range (at+1)*n/desks - at*n/desks {
				books = append(books, desk+"/"+name(bookNames, b))
			}
			t.books = append(t.books, books)
			t.leaves = append(t.leaves, books...)
		}
		t.desks = append(t.desks, paths)
	}
	return t
}

// name is the i-th of endless names: the words, then the words numbered.
func name(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return fmt.Sprintf("%s%d", words[i%len(words)], i/len(words)+1)
}

// policy writes the policy file: one MD plan over all hosts. Divisions and desks differ in share ratio; one book
// in eight comes before its siblings by share priority. With owners, the divisions own four fifths of the
// first group's hosts in equal parts of whole percents, and each division's desks what it owns.
func (t *tree) policy(r *rand.Rand, p *profile, owners bool) []byte {
	var top, in bytes.Buffer
	add := func(path string, share string) {
		fmt.Fprintf(&top, "  - {path: %q}\n", path)
		fmt.Fprintf(&in, "      - {path: %q%s}\n", path, share)
	}
	own := func(percent, among int) string {
		if !owners {
			return ""
		}
		return fmt.Sprintf(", own: [{group: %s, percent: %d}]", p.groups[0].name, max(1, percent/among))
	}
	desk := 0
	for i, division := range t.divisions {
		add(division, fmt.Sprintf(", share: {ratio: %d}", 2+r.IntN(4))+own(80, len(t.divisions)))
		for _, path := range t.desks[i] {
			add(path, fmt.Sprintf(", share: {ratio: %d}", 1+r.IntN(3))+own(100, len(t.desks[i])))
			for _, book := range t.books[desk] {
				if r.IntN(8) == 0 {
					add(book, ", share: {priority: 1}")
				} else {
					add(book, "")
				}
			}
			desk++
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b,
		"# A made-up %s: %d leaves under %d divisions.\nstint: 1\ncluster: %s\ndimensions: [%s]\nresource_groups:\n",
		p.title, len(t.leaves), len(t.divisions), p.name, strings.Join(dimensionNames[:], ", "))
	var names []string
	for _, g := range p.groups {
		fmt.Fprintf(&b, "  - {name: %s, select: %q}\n", g.name, g.rule)
		names = append(names, "{name: "+g.name+"}")
	}
	b.WriteString("consumers:\n")
	b.Write(top.Bytes())
	fmt.Fprintf(&b, "md_plans:\n  - name: %s\n    resource_groups: [%s]\n    consumers:\n", p.name,
		strings.Join(names, ", "))
	b.Write(in.Bytes())
	return b.Bytes()
}
