package server

import (
	"strings"

	"github.com/stintd/stint/core/decision"
)

// sizing tells the size of a unit by its sub-allocation.
type sizing struct {
	names []string // of the dimensions
	sizes [][]int64
	null  [][]bool
	row   map[[4]int32]int32 // by plan, consumer, allocation and sub, in the codes of a melding
}

// subColumns name a sub-allocation.
var subColumns = []string{"plan", "consumer", "allocation", "sub"}

// sizingOf reads the sizes of units off a table of requests; nil: they are not known.
func sizingOf(m *melding, requests *decision.Table) *sizing {
	if requests == nil {
		return nil
	}
	z := &sizing{row: make(map[[4]int32]int32, requests.Rows)}
	within := false
	for i := range requests.Columns { // the dimensions stand between the name and what is required
		c := &requests.Columns[i]
		if c.Name == "requirement" {
			break
		}
		if within {
			z.names, z.sizes, z.null = append(z.names, c.Name), append(z.sizes, c.Int), append(z.null, c.Null)
		}
		within = within || c.Name == "sub"
	}
	var codes [4][]int32
	for i, name := range subColumns {
		codes[i] = m.codes(requests.Column(name))
	}
	for row := range requests.Rows {
		z.row[[4]int32{at(codes[0], row), at(codes[1], row), at(codes[2], row), at(codes[3], row)}] = int32(row)
	}
	return z
}

// of adds the size of so many units to amounts.
func (z *sizing) add(sub [4]int32, units int64, amounts []int64) {
	row, ok := z.row[sub]
	if !ok {
		return
	}
	for d := range z.sizes {
		if z.null[d] == nil || !z.null[d][row] {
			amounts[d] += units * z.sizes[d][row]
		}
	}
}

// sums are units added up by some columns of a table of holdings.
type sums struct {
	m              melding
	by             []string
	keys           [][6]int32
	units, leaving []int64
	due            []int64   // the first deadline of the units under reclaim
	amounts        [][]int64 // by row, then dimension
	z              *sizing
}

// sumBy adds up the units of a table of holdings by at most six of its columns, those that a function wants (nil: all).
func sumBy(held, requests *decision.Table, by []string, wanted func(row int) bool) *sums {
	s := &sums{by: by}
	s.z = sizingOf(&s.m, requests)
	var key [6][]int32
	var sub [4][]int32
	for i, name := range by {
		key[i] = s.m.codes(held.Column(name))
	}
	for i, name := range subColumns {
		sub[i] = s.m.codes(held.Column(name))
	}
	units, reclaim, deadline := held.Column("units").Int, held.Column("reclaim").Int, held.Column("deadline").Int
	of := map[[6]int32]int32{}
	for row := range held.Rows {
		if wanted != nil && !wanted(row) {
			continue
		}
		var k [6]int32
		for i := range by {
			k[i] = at(key[i], row)
		}
		i, ok := of[k]
		if !ok {
			i = int32(len(s.keys))
			of[k] = i
			s.keys = append(s.keys, k)
			s.units, s.leaving, s.due = append(s.units, 0), append(s.leaving, 0), append(s.due, 0)
			if s.z != nil {
				s.amounts = append(s.amounts, make([]int64, len(s.z.names)))
			}
		}
		s.units[i] += units[row]
		if reclaim[row] != 0 {
			s.leaving[i] += units[row]
			if s.due[i] == 0 || deadline[row] < s.due[i] {
				s.due[i] = deadline[row]
			}
		}
		if s.z != nil {
			s.z.add([4]int32{at(sub[0], row), at(sub[1], row), at(sub[2], row), at(sub[3], row)}, units[row],
				s.amounts[i])
		}
	}
	return s
}

// table is the sums as a table; names are what its columns are called, in the order of those they were added up by.
func (s *sums) table(name string, names []string, leaving string) *decision.Table {
	t := &decision.Table{Name: name, Rows: len(s.keys)}
	for i := range s.by {
		codes := make([]int32, len(s.keys))
		for row := range s.keys {
			codes[row] = s.keys[row][i]
		}
		t.Columns = append(t.Columns, s.m.text(names[i], codes))
	}
	null := make([]bool, len(s.due))
	for row := range s.due {
		null[row] = s.due[row] == 0
	}
	due := decision.Column{Name: "deadline", Type: decision.Time, Int: s.due, Null: null, Optional: true}
	t.Columns = append(t.Columns, ints("units", s.units), ints(leaving, s.leaving), due)
	if s.z == nil {
		return t
	}
	for d, dimension := range s.z.names {
		values := make([]int64, len(s.keys))
		for row := range values {
			values[row] = s.amounts[row][d]
		}
		t.Columns = append(t.Columns, ints("amount_"+dimension, values))
	}
	return t
}

// within tells whether a path is another or below it.
func within(path, up string) bool {
	return path == up || up == "/" || strings.HasPrefix(path, up+"/")
}
