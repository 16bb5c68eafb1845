package column

import (
	"slices"

	"github.com/stintd/stint/core/pack"
)

// Cells are the values of a column where they lie. Loops over a schema work on them whatever their type; loops over
// rows work on the slices themselves.
type Cells interface {
	Len() int
	Resize(rows int) // rows that are new have any values
	Drop(rows int)   // the first ones; those behind them move up
	Save(c *pack.Coder)

	copy(from Cells)        // of the same type: a copy of its values
	show(c *Column)         // sets the values of a column
	fill(from int, v int64) // gives rows from one on a value, where it has no meaning 0, or none
}

// IDs are cells that name rows of a table.
type IDs interface {
	Cells
	Renumber(to func(row int, id int32) int32) // gives every row another id, by the one that it has

	// the first row, of those that are live, whose id is below least or not below rows; -1: there is none. A nil live
	// is all
	outside(least, rows int, live func(row int) bool) (row int, id int64)
}

// resized is s with so many rows; those that are new have any values.
func resized[T any](s []T, rows int) []T { return slices.Grow(s, max(0, rows-len(s)))[:rows] }

// dropped is s without its first rows, in the same memory.
func dropped[T any](s []T, rows int) []T { return s[:copy(s, s[rows:])] }

// filled gives all rows one value.
func filled[T any](s []T, v T) {
	for row := range s {
		s[row] = v
	}
}

// ints are whole numbers.
type ints[T pack.Integer] []T

// Ints are the cells of whole numbers and row ids.
func Ints[T pack.Integer](v *[]T) Cells { return (*ints[T])(v) }

func (v *ints[T]) Len() int           { return len(*v) }
func (v *ints[T]) Resize(rows int)    { *v = resized(*v, rows) }
func (v *ints[T]) Drop(rows int)      { *v = dropped(*v, rows) }
func (v *ints[T]) Save(c *pack.Coder) { pack.Column(c, (*[]T)(v)) }
func (v *ints[T]) copy(from Cells)    { *v = slices.Clone(*from.(*ints[T])) }

func (v *ints[T]) fill(from int, value int64) { filled((*v)[from:], T(value)) }

func (v *ints[T]) Renumber(to func(row int, id int32) int32) {
	for row, id := range *v {
		(*v)[row] = T(to(row, int32(id)))
	}
}

func (v *ints[T]) outside(least, rows int, live func(row int) bool) (row int, id int64) {
	for row, id := range *v {
		if (int64(id) < int64(least) || int64(id) >= int64(rows)) && (live == nil || live(row)) {
			return row, int64(id)
		}
	}
	return -1, 0
}

func (v *ints[T]) show(c *Column) {
	if whole, ok := any((*[]T)(v)).(*[]int64); ok {
		c.Int = *whole
		return
	}
	c.Int = make([]int64, len(*v))
	for row, x := range *v {
		c.Int[row] = int64(x)
	}
}

// floats are real numbers.
type floats []float64

// Floats are the cells of real numbers.
func Floats(v *[]float64) Cells { return (*floats)(v) }

func (v *floats) Len() int               { return len(*v) }
func (v *floats) Resize(rows int)        { *v = resized(*v, rows) }
func (v *floats) Drop(rows int)          { *v = dropped(*v, rows) }
func (v *floats) Save(c *pack.Coder)     { pack.Floats(c, (*[]float64)(v)) }
func (v *floats) copy(from Cells)        { *v = slices.Clone(*from.(*floats)) }
func (v *floats) show(c *Column)         { c.Type, c.Float = Float, *v }
func (v *floats) fill(from int, _ int64) { clear((*v)[from:]) }

// bools are truths.
type bools []bool

// Bools are the cells of truths.
func Bools(v *[]bool) Cells { return (*bools)(v) }

func (v *bools) Len() int                { return len(*v) }
func (v *bools) Resize(rows int)         { *v = resized(*v, rows) }
func (v *bools) Drop(rows int)           { *v = dropped(*v, rows) }
func (v *bools) Save(c *pack.Coder)      { pack.Bools(c, (*[]bool)(v)) }
func (v *bools) copy(from Cells)         { *v = slices.Clone(*from.(*bools)) }
func (v *bools) fill(from int, is int64) { filled((*v)[from:], is != 0) }

func (v *bools) show(c *Column) {
	c.Int = make([]int64, len(*v))
	for row, is := range *v {
		if is {
			c.Int[row] = 1
		}
	}
}

// grid is a column of whole numbers for each dimension. Without dimensions it has no rows.
type grid [][]int64

// Grid are the cells of columns for each dimension, all of one length.
func Grid(v *[][]int64) Cells { return (*grid)(v) }

func (v *grid) Len() int {
	if len(*v) == 0 {
		return 0
	}
	return len((*v)[0])
}

func (v *grid) each(f func(column []int64) []int64) {
	for d, column := range *v {
		(*v)[d] = f(column)
	}
}

func (v *grid) Resize(rows int)    { v.each(func(c []int64) []int64 { return resized(c, rows) }) }
func (v *grid) Drop(rows int)      { v.each(func(c []int64) []int64 { return dropped(c, rows) }) }
func (v *grid) Save(c *pack.Coder) { pack.Columns(c, (*[][]int64)(v)) }
func (v *grid) show(*Column)       { panic("BUG: columns for each dimension are not shown as one") }

func (v *grid) fill(from int, value int64) {
	v.each(func(c []int64) []int64 { filled(c[from:], value); return c })
}

func (v *grid) copy(from Cells) {
	*v = slices.Clone(*from.(*grid))
	v.each(slices.Clone[[]int64])
}

// texts are strings, each by itself.
type texts []string

// Strings are the cells of texts that have no dictionary.
func Strings(v *[]string) Cells { return (*texts)(v) }

func (v *texts) Len() int               { return len(*v) }
func (v *texts) Resize(rows int)        { *v = resized(*v, rows) }
func (v *texts) Drop(rows int)          { *v = dropped(*v, rows) }
func (v *texts) Save(c *pack.Coder)     { pack.Texts(c, (*[]string)(v)) }
func (v *texts) copy(from Cells)        { *v = slices.Clone(*from.(*texts)) }
func (v *texts) show(*Column)           { panic("BUG: texts without a dictionary are not shown") }
func (v *texts) fill(from int, _ int64) { clear((*v)[from:]) }

// Len is the number of rows.
func (c *Coded) Len() int { return len(c.Code) }

// Resize makes the column so many rows long. Rows that are new have any codes.
func (c *Coded) Resize(rows int) { c.Code = resized(c.Code, rows) }

// Drop removes the first rows.
func (c *Coded) Drop(rows int) { c.Code = dropped(c.Code, rows) }

// Save names the codes; the dictionary is kept by whoever has it.
func (c *Coded) Save(p *pack.Coder) { pack.Column(p, &c.Code) }

func (c *Coded) copy(from Cells) {
	was := from.(*Coded)
	c.Code, c.Dict = slices.Clone(was.Code), was.Dict
}

func (c *Coded) show(to *Column) { to.Type, to.Code, to.Dict = Text, c.Code, c.Dict }

func (c *Coded) fill(from int, _ int64) { filled(c.Code[from:], Null) }

// One is the cell of a number in a table of one row.
func One(v *int64) Cells { return &one[int64]{v, func(v int64, c *Column) { c.Int = []int64{v} }} }

// Word is the cell of a text in a table of one row.
func Word(v *string) Cells {
	return &one[string]{v, func(v string, c *Column) { c.Type, c.Code, c.Dict = Text, []int32{0}, Words{v} }}
}

// Texts is the cell of a list of texts in a table of one row.
func Texts(v *[]string) Cells {
	return &one[[]string]{v, func(v []string, c *Column) { c.Type, c.Lists = List, [][]string{v} }}
}

// Seconds is the cell of milliseconds, shown in seconds, in a table of one row.
func Seconds(ms *int64) Cells {
	return &one[int64]{ms, func(v int64, c *Column) { c.Type, c.Float = Float, []float64{float64(v) / 1e3} }}
}

// one is the cell of a table that has one row whatever is done to it.
type one[T any] struct {
	v    *T
	make func(v T, c *Column)
}

func (o *one[T]) Len() int           { return 1 }
func (o *one[T]) Resize(int)         {}
func (o *one[T]) Drop(int)           {}
func (o *one[T]) copy(from Cells)    { *o.v = *from.(*one[T]).v }
func (o *one[T]) show(c *Column)     { o.make(*o.v, c) }
func (o *one[T]) fill(int, int64)    { *o.v = *new(T) }
func (o *one[T]) Save(c *pack.Coder) { panic("BUG: a table of one row is not saved as a table") }
