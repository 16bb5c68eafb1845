package decision

import (
	"reflect"
)

// Freeze is a copy of what a cycle decided that nobody will change, for readers of other goroutines. dict gives the
// frozen form of a dictionary. State tables that were not made anew (Summary.Restated) are shared with last, the frozen
// cycle before, unless that is nil. Keyframes are copied when they are filled. O(rows), a few allocations a column.
func (c *Cycle) Freeze(last *Cycle, dict func(Dict) Dict) *Cycle {
	f := &Cycle{Summary: c.Summary, Keyframe: c.Keyframe}
	f.Summary.Inputs = nil
	z := freezer{dict}
	z.table(&f.Grants, &c.Grants)
	z.table(&f.Reclaims, &c.Reclaims)
	z.table(&f.Releases, &c.Releases)
	z.table(&f.Ownership, &c.Ownership)
	z.table(&f.Plans, &c.Plans)
	if c.Summary.Restated || last == nil {
		z.table(&f.Consumers, &c.Consumers)
		z.table(&f.Amounts, &c.Amounts)
		z.table(&f.Shares, &c.Shares)
		z.table(&f.Shortfalls, &c.Shortfalls)
	} else {
		f.Consumers, f.Amounts, f.Shares, f.Shortfalls = last.Consumers, last.Amounts, last.Shares, last.Shortfalls
	}
	if c.Keyframe {
		z.table(&f.Holdings, &c.Holdings)
		z.table(&f.Hosts, &c.Hosts)
		z.table(&f.Owners, &c.Owners)
	}
	return f
}

// Events is the frozen cycle without its state tables, keyframes and ownership: what those who follow the changes of
// units go by.
func (c *Cycle) Events() *Cycle {
	return &Cycle{Summary: c.Summary, Grants: c.Grants, Reclaims: c.Reclaims, Releases: c.Releases, Plans: c.Plans}
}

// EventRows is how many rows the tables of events have.
func (c *Cycle) EventRows() (n int) {
	for _, t := range c.EventTables() {
		n += t.Rows
	}
	return n
}

type freezer struct{ dict func(Dict) Dict }

// table copies a table's columns, of whatever table: to and from point to structs of one type.
func (z freezer) table(to, from any) {
	z.value(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem())
}

func (z freezer) value(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Struct:
		for i := range from.NumField() {
			z.value(to.Field(i), from.Field(i))
		}
	case reflect.Array:
		for i := range from.Len() {
			z.value(to.Index(i), from.Index(i))
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			reflect.Copy(to, from)
		}
	case reflect.Interface:
		if d, ok := from.Interface().(Dict); ok && d != nil {
			to.Set(reflect.ValueOf(z.dict(d)))
		}
	default:
		panic("BUG: a decision table with a " + from.Kind().String())
	}
}
