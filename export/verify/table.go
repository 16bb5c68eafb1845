package verify

import (
	"github.com/stintd/stint/core/decision"
)

// rows are the rows of a table of the log, by column name.
type rows struct {
	n      int
	words  map[string]words
	number map[string]numbers
	table  *decision.Table
}

// words are a column of texts; missing values are "".
type words struct {
	code []int32
	word []string
}

// numbers are a column of whole numbers or instants, or of reals.
type numbers struct {
	whole []int64
	real  []float64
	null  []bool
}

// text is the text of a row.
func (c words) text(row int) string {
	if c.code == nil || c.code[row] < 0 {
		return ""
	}
	return c.word[c.code[row]]
}

// at is the number of a row, 0 where there is none.
func (c numbers) at(row int) int64 {
	if c.whole == nil || c.missing(row) {
		return 0
	}
	return c.whole[row]
}

func (c numbers) float(row int) float64 {
	if c.real == nil || c.missing(row) {
		return 0
	}
	return c.real[row]
}

func (c numbers) missing(row int) bool { return c.null != nil && c.null[row] }

// view reads a table's columns. A column that a table lacks reads as without values; schema tells of it.
func view(t *decision.Table) *rows {
	r := &rows{n: t.Rows, words: map[string]words{}, number: map[string]numbers{}, table: t}
	for i := range t.Columns {
		c := &t.Columns[i]
		switch c.Type {
		case decision.Text:
			w := words{code: c.Code}
			if c.Dict != nil {
				for code := range int32(c.Dict.Len()) {
					w.word = append(w.word, string(c.Dict.Bytes(code)))
				}
			}
			r.words[c.Name] = w
		case decision.Int, decision.Time:
			r.number[c.Name] = numbers{whole: c.Int, null: c.Null}
		case decision.Float:
			r.number[c.Name] = numbers{real: c.Float, null: c.Null}
		}
	}
	return r
}

// key names a sub-allocation of a plan; the plan is "" for demand that no plan takes.
type key struct {
	plan, consumer, allocation, sub string
	// of one whose source has given it another unit size since the last cycle: the size it had
	old string
}

// row is the key as tables have it, without a size.
func (k key) row() key {
	k.old = ""
	return k
}

// keys gives the key of a row.
func (r *rows) keys() func(row int) key {
	p, c, a, s := r.words["plan"], r.words["consumer"], r.words["allocation"], r.words["sub"]
	return func(row int) key { return key{p.text(row), c.text(row), a.text(row), s.text(row), ""} }
}

// label is what units count as.
type label struct{ origin, pool, lender string }

func (r *rows) labels() func(row int) label {
	o, p, l := r.words["origin"], r.words["pool"], r.words["lender"]
	return func(row int) label { return label{o.text(row), p.text(row), l.text(row)} }
}

// spot is a sub-allocation on a host.
type spot struct {
	key
	host string
}
