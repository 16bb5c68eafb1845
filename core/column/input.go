package column

import (
	"slices"

	"github.com/stintd/stint/core/pack"
)

// Input is what a line of an input table says besides.
type Input struct {
	Type    string // of the values, in the words of docs/tables.md
	Default string // of rows without a value, in words; "": there is none
	Unset   int64  // what such a row reads as. Absent is what a row reads as that lacks the column
	Least   int64  // the least number
	Most    int    // bytes of a text
	Unique  bool   // each value stands in one row
}

// TextOf is a text column with a dictionary of one type.
type TextOf[D Dict] struct {
	Names D
	Code  []int32 // by row: id in Names, or Null; nil when the column was not given
}

// At gives the code of a row, Null when the column was not given.
func (t *TextOf[D]) At(row int) int32 {
	if t.Code == nil {
		return Null
	}
	return t.Code[row]
}

// Len is the number of rows, 0 when the column was not given.
func (t *TextOf[D]) Len() int { return len(t.Code) }

// Resize makes the column so many rows long. Rows that are new have any codes.
func (t *TextOf[D]) Resize(rows int) { t.Code = resized(t.Code, rows) }

// Drop removes the first rows.
func (t *TextOf[D]) Drop(rows int) { t.Code = dropped(t.Code, rows) }

// Save names the codes; the dictionary is kept by whoever has it.
func (t *TextOf[D]) Save(c *pack.Coder) { pack.Column(c, &t.Code) }

func (t *TextOf[D]) show(c *Column)         { c.Type, c.Code, c.Dict = Text, t.Code, t.Names }
func (t *TextOf[D]) fill(from int, _ int64) { filled(t.Code[from:], Null) }

func (t *TextOf[D]) copy(from Cells) {
	was := from.(*TextOf[D])
	t.Names, t.Code = was.Names, slices.Clone(was.Code)
}

func (t *TextOf[D]) value(row int) any {
	if code := t.At(row); code != Null {
		return string(t.Names.Bytes(code))
	}
	return nil
}

func (v *ints[T]) value(row int) any { return int64((*v)[row]) }
func (v *ints[T]) slice() any        { return (*[]T)(v) }
func (v *bools) value(row int) any   { return (*v)[row] }
func (v *bools) slice() any          { return (*[]bool)(v) }

// Slice is where cells of numbers or truths have their values; nil: they are of another type.
func Slice[T any](c Cells) *[]T {
	of, ok := c.(interface{ slice() any })
	if !ok {
		return nil
	}
	s, _ := of.slice().(*[]T)
	return s
}

// Given are the lines of an input table that it has.
func (s Schema) Given() (lines []*Line) {
	for i := range s.Lines {
		if l := &s.Lines[i]; l.Of.Len() > 0 || !l.Nullable {
			lines = append(lines, l)
		}
	}
	return lines
}

// Value is what a row of an input table says: a string, an int64, or a bool; nil: nothing.
func (l *Line) Value(row int) any {
	v := l.Of.(interface{ value(row int) any }).value(row)
	switch n, whole := v.(int64); {
	case !whole:
		return v
	case l.Words == nil && (n != l.Absent || n == 0):
		return n
	case l.Words != nil && n < int64(len(l.Words)):
		return l.Words[n]
	}
	return nil
}
