package export

import (
	"math"
	"slices"
	"sort"

	"github.com/stintd/stint/core/decision"
)

// part is rows of a file of several cycles that a reader keeps, so that who goes from cycle to cycle does not decode
// the file for each: the rows of the row groups that had the cycle asked for last.
type part struct {
	path   string
	table  decision.Table
	loaded []bounds // of the groups that it has
	others []bounds // of those that it has not
}

// bounds are the lowest and highest cycle of a row group, as the file tells.
type bounds struct{ low, high int64 }

func (b bounds) has(cycle int64) bool { return b.low <= cycle && cycle <= b.high }

// covers tells whether a part has all rows of a cycle.
func (p *part) covers(path string, cycle int64) bool {
	return p.path == path && !slices.ContainsFunc(p.others, func(b bounds) bool { return b.has(cycle) })
}

// cycleOf gives the rows of one cycle from a file of several.
func (r *Reader) cycleOf(name string, s span, seal string, cycle int64) (*decision.Table, error) {
	p := r.parts[name]
	if p == nil || !p.covers(s.path, cycle) {
		delete(r.parts, name) // before its memory is needed again
		f, err := r.read(s.path, seal)
		if err != nil {
			return nil, err
		}
		b := builder{name: name}
		p = &part{path: s.path}
		low, high := int64(math.MaxInt64), int64(0)
		for i := range f.RowGroups() {
			at, told := groupBounds(f, i)
			if !told {
				at = bounds{s.first, s.last}
			}
			if at.has(cycle) {
				p.loaded, low, high = append(p.loaded, at), min(low, at.low), max(high, at.high)
			} else {
				p.others = append(p.others, at)
			}
		}
		if err := r.add(&b, name, s, seal, low, high); err != nil {
			return nil, err
		}
		p.table = b.table
		if b.upgraded && name == setTable[consumersSet] {
			p.table = decision.Tree(&b.table)
		}
		p.table.Name = name
		r.parts[name] = p
	}
	return slice(&p.table, cycle), nil
}

// slice gives the rows of a cycle of a table, whose column cycle comes first and rises. Its texts are a dictionary of
// their own.
func slice(t *decision.Table, cycle int64) *decision.Table {
	all := t.Columns[0].Int
	from := sort.Search(len(all), func(i int) bool { return all[i] >= cycle })
	to := sort.Search(len(all), func(i int) bool { return all[i] > cycle })
	out := &decision.Table{Name: t.Name, Rows: to - from, Columns: slices.Clone(t.Columns)}
	for i := range out.Columns {
		c := &out.Columns[i]
		if c.Null != nil {
			c.Null = c.Null[from:to:to]
		}
		switch c.Type {
		case decision.Text:
			*c = ownWords(*c, from, to)
		case decision.Float:
			c.Float = c.Float[from:to:to]
		case decision.List:
			c.Lists = c.Lists[from:to:to]
		default:
			c.Int = c.Int[from:to:to]
		}
	}
	return out
}

// ownWords gives rows of a text column, with a dictionary of the texts that they use.
func ownWords(c decision.Column, from, to int) decision.Column {
	place := map[int32]int32{}
	words := texts{}
	codes := make([]int32, 0, to-from)
	for _, code := range c.Code[from:to] {
		if code != decision.Null {
			own, known := place[code]
			if !known {
				own = int32(len(words))
				place[code], words = own, append(words, c.Dict.Bytes(code))
			}
			code = own
		}
		codes = append(codes, code)
	}
	c.Code, c.Dict = codes, &words
	return c
}
