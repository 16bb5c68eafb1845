package cluster

import (
	"strings"
	"testing"

	"github.com/stintd/stint/core/column"
)

// TestTablesRefuse damages each column of each table of the state in turn, as it was loaded: a row that names none, and
// a column that is too short. The error names table and column, and the row.
func TestTablesRefuse(t *testing.T) {
	s := lived(t)
	tables := func(s *State) []column.Schema { return append(s.tables(), s.Plans[0].tables()...) }
	const nobody = 200 // more than there are of anything
	damaged := 0
	damage := func(i, j int, change func(of column.Schema, l *column.Line) bool, want string) {
		t.Helper()
		c, err := s.Copy()
		if err != nil {
			t.Fatal(err)
		}
		of := tables(c)[i]
		if !change(of, &of.Lines[j]) {
			return
		}
		damaged++
		if err := c.sound(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("table %s, column %s: the error is %v, want one with %q", of.Name, of.Lines[j].Name, err, want)
		}
	}
	for i, of := range tables(s) {
		for j, l := range of.Lines {
			if l.Derived || l.Of.Len() == 0 {
				continue
			}
			if l.Names != "" {
				damage(i, j, func(of column.Schema, l *column.Line) (changed bool) {
					l.Of.(column.IDs).Renumber(func(row int, id int32) int32 {
						if changed || of.Live != nil && !l.Apart && !of.Live(row) {
							return id
						}
						changed = true
						return nobody
					})
					return changed
				}, "table "+of.Name+", column "+l.Name+", row ")
			}
			if !l.Apart && len(of.Lines) > 1 {
				damage(i, j, func(_ column.Schema, l *column.Line) bool {
					l.Of.Resize(l.Of.Len() - 1)
					return true
				}, "table "+of.Name+", column ")
			}
		}
	}
	if damaged < 90 {
		t.Errorf("%d columns were damaged: the state has too little in it", damaged)
	}
}

// TestCloneSharesNothing changes all columns of a copy: the state stays as it was.
func TestCloneSharesNothing(t *testing.T) {
	s := lived(t)
	was := string(bytesOf(t, s))
	c := s.Clone()
	for _, of := range append(c.tables(), c.Plans[0].tables()...) {
		for _, l := range of.Lines {
			if ids, ok := l.Of.(column.IDs); ok {
				ids.Renumber(func(int, int32) int32 { return 7 })
			}
		}
	}
	if string(bytesOf(t, s)) != was {
		t.Error("a change of a copy changed the state")
	}
}
