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

	copy(from Cells)          // of the same type: a copy of its values
	show(c *Column)           // sets the values of a column
	absent(rows int, v int64) // makes rows of one value, where what was saved lacks the column
}

// resized is s with so many rows; those that are new have any values.
func resized[T any](s []T, rows int) []T { return slices.Grow(s, max(0, rows-len(s)))[:rows] }

// dropped is s without its first rows, in the same memory.
func dropped[T any](s []T, rows int) []T { return s[:copy(s, s[rows:])] }

// ints are whole numbers.
type ints[T pack.Integer] []T

// Ints are the cells of whole numbers and row ids.
func Ints[T pack.Integer](v *[]T) Cells { return (*ints[T])(v) }

func (v *ints[T]) Len() int           { return len(*v) }
func (v *ints[T]) Resize(rows int)    { *v = resized(*v, rows) }
func (v *ints[T]) Drop(rows int)      { *v = dropped(*v, rows) }
func (v *ints[T]) Save(c *pack.Coder) { pack.Column(c, (*[]T)(v)) }
func (v *ints[T]) copy(from Cells)    { *v = slices.Clone(*from.(*ints[T])) }

func (v *ints[T]) absent(rows int, value int64) { *v = slices.Repeat(ints[T]{T(value)}, rows) }

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

func (v *floats) Len() int                 { return len(*v) }
func (v *floats) Resize(rows int)          { *v = resized(*v, rows) }
func (v *floats) Drop(rows int)            { *v = dropped(*v, rows) }
func (v *floats) Save(c *pack.Coder)       { pack.Floats(c, (*[]float64)(v)) }
func (v *floats) copy(from Cells)          { *v = slices.Clone(*from.(*floats)) }
func (v *floats) show(c *Column)           { c.Type, c.Float = Float, *v }
func (v *floats) absent(rows int, _ int64) { *v = make(floats, rows) }

// bools are truths.
type bools []bool

// Bools are the cells of truths.
func Bools(v *[]bool) Cells { return (*bools)(v) }

func (v *bools) Len() int                  { return len(*v) }
func (v *bools) Resize(rows int)           { *v = resized(*v, rows) }
func (v *bools) Drop(rows int)             { *v = dropped(*v, rows) }
func (v *bools) Save(c *pack.Coder)        { pack.Bools(c, (*[]bool)(v)) }
func (v *bools) copy(from Cells)           { *v = slices.Clone(*from.(*bools)) }
func (v *bools) absent(rows int, is int64) { *v = slices.Repeat(bools{is != 0}, rows) }

func (v *bools) show(c *Column) {
	c.Int = make([]int64, len(*v))
	for row, is := range *v {
		if is {
			c.Int[row] = 1
		}
	}
}

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

func (c *Coded) absent(rows int, _ int64) { c.Code = Without(rows) }

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
func (o *one[T]) absent(int, int64)  { *o.v = *new(T) }
func (o *one[T]) Save(c *pack.Coder) { panic("BUG: a table of one row is not saved as a table") }
