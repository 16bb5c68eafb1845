// Package decision holds what a cycle decided, as columns: one struct per table of the decision log (SPEC chapter 8).
// The schema of each declares its columns; writers, printers and tests read views of them.
package decision

import (
	"io"
	"slices"

	"github.com/stintd/stint/core/column"
)

// The types of tables, of core/column.
type (
	Type   = column.Type
	Dict   = column.Dict
	Words  = column.Words
	Column = column.Column
	Table  = column.Table
	Coded  = column.Coded
)

// The types of columns, of core/column.
const (
	Int   = column.Int
	Float = column.Float
	Text  = column.Text
	Time  = column.Time
	List  = column.List
	Null  = column.Null
)

// Seconds are the seconds of a column of unit-seconds.
func Seconds(ms int64) float64 { return float64(ms) / 1e3 }

// Cycle is all that one cycle decided. The event tables hold what happened in it;
// the state tables (consumers, amounts, shares, shortfalls) what is true after it.
type Cycle struct {
	Summary    Summary
	Grants     Grants
	Reclaims   Reclaims
	Releases   Releases
	Consumers  Consumers
	Amounts    Amounts
	Shares     Shares
	Shortfalls Shortfalls
	Ownership  Ownership
	Plans      Plans
	Holdings   Holdings    // filled on demand: keyframes
	Hosts      Hosts       // filled on demand: keyframes
	Owners     Owners      // filled on demand: keyframes
	Keyframe   bool        // whether Holdings, Hosts and Owners are filled
	Standing   *Standing   // what is new of what stands besides, for the log; nil where nobody asked for it
	State      io.WriterTo // the state after the cycle, saved, for the log; nil where it gets none
}

// events are the tables of what happened in the cycle.
func (c *Cycle) events() []column.Schema {
	return []column.Schema{c.Grants.Schema(), c.Reclaims.Schema(), c.Releases.Schema(), c.Ownership.Schema(),
		c.Plans.Schema()}
}

// states are the tables of what is true after the cycle.
func (c *Cycle) states() []column.Schema {
	return []column.Schema{c.Consumers.Schema(), c.Amounts.Schema(), c.Shares.Schema(), c.Shortfalls.Schema()}
}

// keyframe are the tables that are filled on demand.
func (c *Cycle) keyframe() []column.Schema {
	return []column.Schema{c.Holdings.Schema(), c.Hosts.Schema(), c.Owners.Schema()}
}

func views(schemas []column.Schema) []Table {
	tables := make([]Table, len(schemas))
	for i, s := range schemas {
		tables[i] = s.Table()
	}
	return tables
}

// EventTables are views of the tables of what happened in the cycle.
func (c *Cycle) EventTables() []Table { return views(c.events()) }

// StateTables are views of the tables of what is true after the cycle.
func (c *Cycle) StateTables() []Table { return views(c.states()) }

// KeyframeTables are views of the tables that are filled on demand.
func (c *Cycle) KeyframeTables() []Table { return views(c.keyframe()) }

// Tables are the event and state tables in the log's order, without cycles and without keyframes. The digest is of
// these: a table belongs to it by being one of events or one of states.
func (c *Cycle) Tables() []Table {
	events, states := c.EventTables(), c.StateTables()
	return slices.Concat(events[:3], states, events[3:]) // ownership and plans stand behind the states
}

// View is a view of one of the cycle's tables by its name, of cycles and keyframes too; nil where there is none.
func (c *Cycle) View(name string) *Table {
	for _, s := range slices.Concat([]column.Schema{c.Summary.Schema()}, c.events(), c.states(), c.keyframe()) {
		if s.Name == name {
			t := s.Table()
			return &t
		}
	}
	return nil
}

// Wide is the table consumers with the amounts as columns: see the function.
func (c *Cycle) Wide() *Table {
	wide := Wide(c.View("consumers"), c.View("amounts"))
	return &wide
}

// schemas are the schemas of all tables of the log, by name.
var schemas = func() map[string]column.Schema {
	var c Cycle
	var s Standing
	all := map[string]column.Schema{}
	for _, one := range slices.Concat(c.events(), c.states(), c.keyframe(), s.schemas(),
		[]column.Schema{c.Summary.Schema(), new(Inputs).Schema(), new(Audit).Schema()}) {
		all[one.Name] = one
	}
	return all
}()

// SchemaOf is the schema of a table of the log by its name; ok is false where there is none.
func SchemaOf(table string) (s column.Schema, ok bool) {
	s, ok = schemas[table]
	return s, ok
}

// lineOf is the line of a column of a table of the log, nil where there is none.
func lineOf(table, name string) *column.Line { return schemas[table].Line(name) }

// Digest is the digest of what was decided (column.Digest).
func Digest(tables []Table) string { return column.Digest(tables, lineOf, column.Decided) }

// Content is the digest by which the log knows whether state tables differ from those that it wrote last: as Digest,
// but work lost counts too, where the table tells of any (D-120), and so does what was used of budgets (D-162) and of
// pools lately (D-166).
func Content(tables []Table) string { return column.Digest(tables, lineOf, column.Content) }

// DigestAfter is the digest of a cycle's tables. last is the frozen cycle before it, with a digest that is right, or
// nil. Where neither of the two had events and the state tables were not made anew, all tables are equal, so the digest
// is that of last and nothing is hashed.
func (c *Cycle) DigestAfter(last *Cycle) string {
	if last != nil && !c.Summary.Restated && c.EventRows() == 0 && last.EventRows() == 0 {
		return last.Summary.Digest
	}
	return Digest(c.Tables())
}

// The names of dictionaries that are not those of their columns.
const (
	consumers = "consumer"
	labels    = "label"
)

// Dicts are the dictionaries that the tables of one cycle share.
type Dicts struct {
	Plan, Source, Consumer, Label, Host, Dimension, Detail, Device Dict
}

// named is a dictionary by its name; nil for one that a table has of its own.
func (d *Dicts) named(name string) Dict {
	switch name {
	case "plan":
		return d.Plan
	case "source":
		return d.Source
	case consumers:
		return d.Consumer
	case labels:
		return d.Label
	case "host":
		return d.Host
	case "dimension":
		return d.Dimension
	case "detail":
		return d.Detail
	case "device":
		return d.Device
	}
	return nil
}

// ResetEvents empties the tables of what happened in a cycle, keeping their memory.
func (c *Cycle) ResetEvents(d *Dicts) {
	for _, t := range c.events() {
		t.Reset(d.named)
	}
	c.Plans = Plans{}
}

// ResetStates empties the tables of what is true after a cycle, keeping their memory.
func (c *Cycle) ResetStates(d *Dicts) {
	for _, t := range c.states() {
		t.Reset(d.named)
	}
}

// ResetKeyframe empties the keyframe tables, keeping their memory.
func (c *Cycle) ResetKeyframe(d *Dicts) {
	for _, t := range c.keyframe() {
		t.Reset(d.named)
	}
	c.Keyframe = false
}

// Freeze is a copy of what a cycle decided that nobody will change, for readers of other goroutines. dict gives the
// frozen form of a dictionary. State tables that were not made anew (Summary.Restated) are shared with last, the frozen
// cycle before, unless that is nil. Keyframes are copied when they are filled. O(rows), an allocation a column.
func (c *Cycle) Freeze(last *Cycle, dict func(Dict) Dict) *Cycle {
	f := &Cycle{Summary: c.Summary, Keyframe: c.Keyframe}
	f.Summary.Inputs = nil
	to, from := f.events(), c.events()
	if c.Summary.Restated || last == nil {
		to, from = append(to, f.states()...), append(from, c.states()...)
	} else {
		f.Consumers, f.Amounts, f.Shares, f.Shortfalls = last.Consumers, last.Amounts, last.Shares, last.Shortfalls
	}
	if c.Keyframe {
		to, from = append(to, f.keyframe()...), append(from, c.keyframe()...)
	}
	for i, t := range to {
		t.CopyFrom(from[i], dict)
	}
	return f
}

// Events is the frozen cycle without its state tables, keyframes and ownership: what those who follow the changes of
// units go by.
func (c *Cycle) Events() *Cycle {
	return &Cycle{Summary: c.Summary, Grants: c.Grants, Reclaims: c.Reclaims, Releases: c.Releases, Plans: c.Plans}
}

// EventRows is how many rows the tables of events have.
func (c *Cycle) EventRows() int {
	return len(c.Grants.Units) + len(c.Reclaims.Units) + len(c.Releases.Units) + len(c.Ownership.Amount) +
		len(c.Plans.Revision)
}

// names calls f for the columns of a cycle's events whose codes are of a dictionary.
func (c *Cycle) names(dict string, f func(*Coded)) {
	for _, t := range c.events() {
		for _, l := range t.Lines {
			if of, ok := l.Of.(*Coded); ok && l.Dictionary() == dict {
				f(of)
			}
		}
	}
}

// EachName calls label for each code of an allocation or sub-allocation in the cycle's events, and source for each of a
// source, Null ones too.
func (c *Cycle) EachName(label, source func(code int32)) {
	each := func(f func(code int32)) func(*Coded) {
		return func(of *Coded) {
			for _, code := range of.Code {
				f(code)
			}
		}
	}
	c.names(labels, each(label))
	c.names("source", each(source))
}

// RenameEvents is a frozen cycle without its state tables and keyframes, as Events gives it, in which names have other
// codes, given by the old ones, and other dictionaries. The cycle stays as it is. O(rows).
func (c *Cycle) RenameEvents(labelOf, sourceOf []int32, label, source Dict) *Cycle {
	renamed := c.Events()
	renamed.names(labels, func(of *Coded) { of.Rename(labelOf, label) })
	renamed.names("source", func(of *Coded) { of.Rename(sourceOf, source) })
	return renamed
}
