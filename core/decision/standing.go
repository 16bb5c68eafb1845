package decision

import (
	"slices"

	"github.com/stintd/stint/core/column"
)

// Standing is what stands after a cycle besides its decisions, as rows for what is another than in the cycle before:
// who has what of whom, what is asked for, what is known of hosts. Rows take the place of earlier ones of the same key
// (StandingKey). No digest counts them: they follow from inputs and decisions.
type Standing struct {
	Whole          bool // they are all rows that there are, not only those that are new
	Loans          Loans
	SubAllocations SubAllocations
	Attributes     Attributes
}

// Tables are views of the tables.
func (s *Standing) Tables() []Table {
	return []Table{s.Loans.Table(), s.SubAllocations.Table(), s.Attributes.Schema().Table()}
}

// schemas are the tables, without the columns of dimensions.
func (s *Standing) schemas() []column.Schema {
	return []column.Schema{s.Loans.Schema(), s.SubAllocations.Schema(), s.Attributes.Schema()}
}

// standingKeys are the columns that name what a row stands for, by table; the last one is a column without a value, or
// 0, in a row that says that this is gone.
var standingKeys = map[string][]string{
	"loans":           {"plan", "lender", "borrower", "pool", "units"},
	"sub_allocations": {"plan", "source", "consumer", "allocation", "sub", "first_seen", "wanted"},
	"attributes":      {"host", "attribute"},
}

// HasFigures tells whether a table has columns of dimensions behind those of its schema.
func HasFigures(table string) bool { return table == "loans" || table == "sub_allocations" }

// IsStanding tells whether a table has rows for what changed alone.
func IsStanding(table string) bool { return standingKeys[table] != nil }

// Latest gives what stands after the last cycle of a table's rows, which has the column cycle: of the rows of one key
// those of the latest cycle, unless they say that it is gone. O(rows).
func Latest(t *Table) *Table {
	key := standingKeys[t.Name]
	if key == nil {
		panic("BUG: " + t.Name + " has rows of every cycle")
	}
	cycle := t.Column("cycle").Int
	gone := t.Column(key[len(key)-1])
	key = key[:len(key)-1]
	latest := func(int) bool { return true }
	if t.Rows > 0 && cycle[0] != cycle[t.Rows-1] { // else no row takes the place of another
		latest = latestOf(t, key, cycle)
	}
	rows := make([]int, 0, t.Rows)
	for row := range t.Rows {
		is := gone.Type == Text && gone.Code[row] == Null ||
			gone.Type == Int && (gone.Null != nil && gone.Null[row] || gone.Int[row] == 0 && t.Name == "loans")
		if !is && latest(row) {
			rows = append(rows, row)
		}
	}
	return t.Pick(rows)
}

// latestOf tells of a row whether it is of the latest cycle that has its key.
func latestOf(t *Table, key []string, cycle []int64) func(row int) bool {
	type place [6]int64
	columns := make([]*Column, len(key))
	for i, name := range key {
		columns[i] = t.Column(name)
	}
	at := func(row int) (p place) {
		for i, c := range columns {
			if c.Type == Text {
				p[i] = int64(c.Code[row])
			} else {
				p[i] = c.Int[row]
			}
		}
		return p
	}
	last := make(map[place]int64, t.Rows)
	for row := range t.Rows {
		last[at(row)] = cycle[row] // rows come in the order of cycles
	}
	return func(row int) bool { return last[at(row)] == cycle[row] }
}

// Figures are columns of numbers, one for each dimension of a policy, and one for what slot plans count in. They have
// no value where a plan does not count in them.
type Figures struct {
	Names []string
	Int   [][]int64
	Null  [][]bool
	dims  int // of the policy
	slots int // the column of slots, -1 where nothing counts in them
}

// NewFigures makes the columns without rows. slotPlans is whether the policy has plans that count in slots.
func NewFigures(dimensions []string, slotPlans bool) Figures {
	f := Figures{Names: slices.Clone(dimensions), dims: len(dimensions), slots: slices.Index(dimensions, "slots")}
	if f.slots < 0 && slotPlans {
		f.slots = len(f.Names)
		f.Names = append(f.Names, "slots")
	}
	f.Int, f.Null = make([][]int64, len(f.Names)), make([][]bool, len(f.Names))
	return f
}

// Grow makes room for so many rows more.
func (f *Figures) Grow(rows int) {
	for i := range f.Names {
		f.Int[i], f.Null[i] = slices.Grow(f.Int[i], rows), slices.Grow(f.Null[i], rows)
	}
}

// Add appends a row with the figures of a plan; in a slot plan there is one, its slots.
func (f *Figures) Add(inSlots bool, of []int64) {
	for i := range f.Names {
		is, d := i < f.dims && !inSlots, i
		if inSlots && i == f.slots {
			is, d = true, 0
		}
		v := int64(0)
		if is {
			v = of[d]
		}
		f.Int[i], f.Null[i] = append(f.Int[i], v), append(f.Null[i], !is)
	}
}

// AddNull appends a row without values.
func (f *Figures) AddNull() {
	for i := range f.Names {
		f.Int[i], f.Null[i] = append(f.Int[i], 0), append(f.Null[i], true)
	}
}

// Beside is a view of a table with the figures as columns behind its others.
func (f *Figures) Beside(s column.Schema, prefix string) Table {
	t := s.Table()
	t.Rows, t.Columns = s.Rows(), f.Columns(prefix, t.Columns)
	return t
}

// Columns are the figures as columns of a table, which has others too: a dimension of a policy that was accepted before
// a table had a column of its name gets a name of its own.
func (f *Figures) Columns(prefix string, others []Column) []Column {
	for i, name := range f.Names {
		name = prefix + name
		if slices.ContainsFunc(others, func(c Column) bool { return c.Name == name }) {
			name = "dimension_" + name
		}
		others = append(others, Column{Name: name, Type: Int, Int: f.Int[i], Null: f.Null[i], Optional: true})
	}
	return others
}

// Loans are who has what of whom: a row for each lender, borrower and pool.
type Loans struct {
	Plan, Lender, Borrower, Pool Coded
	Units, UnderRecall           []int64
	Deadline                     []int64 // the first by which some of them are given back
	DeadlineNull                 []bool
	Amounts                      Figures
}

// Schema declares the columns, those of dimensions left out.
func (l *Loans) Schema() column.Schema {
	const whose = "whose resources they are, and who holds them"
	return column.Schema{Name: "loans", Lines: []column.Line{
		planLine(&l.Plan, whose),
		{Name: "lender", Of: &l.Lender, Dict: consumers, Doc: whose},
		{Name: "borrower", Of: &l.Borrower, Dict: consumers, Doc: whose},
		{Name: "pool", Of: &l.Pool, Dict: consumers, Nullable: true, Doc: asGranted},
		{Name: "units", Of: column.Ints(&l.Units)},
		{Name: "under_recall", Of: column.Ints(&l.UnderRecall), Doc: "of them, under reclaim"},
		{Name: "deadline", Of: column.Ints(&l.Deadline), Type: Time, Null: &l.DeadlineNull,
			Doc: "by when the first of these are given back"},
	}}
}

// Table is a view of the loans.
func (l *Loans) Table() Table { return l.Amounts.Beside(l.Schema(), "amount_") }

// SubAllocations are the standing requests, with what of them is held.
type SubAllocations struct {
	Key
	Source         Coded
	Requirement    Coded
	Together       Coded
	MaxPerHost     []int64
	MaxPerHostNull []bool
	MinUnits       []int64
	FirstSeen      []int64 // cycle
	FirstSeenNull  []bool
	Wanted, Held   []int64
	WantedNull     []bool // it is gone
	Size           Figures
}

// Schema declares the columns, those of dimensions left out.
func (s *SubAllocations) Schema() column.Schema {
	const held = "units, as in `consumers` of the same cycle"
	return column.Schema{Name: "sub_allocations", Lines: []column.Line{
		{Name: "plan", Of: &s.Plan, Nullable: true, Doc: "null for consumers that are in no plan"},
		sourceLine(&s.Source, ""),
		consumerLine(&s.Consumer, ""),
		allocationLine(&s.Allocation, ""),
		subLine(&s.Sub, ""),
		{Name: "requirement", Of: &s.Requirement, Nullable: true, Doc: "as it was given"},
		{Name: "together", Of: &s.Together, Dict: labels, Nullable: true, Since: 7,
			Doc: "by which attribute the hosts of a gang are together, or `prefer` and that"},
		{Name: "max_per_host", Of: column.Ints(&s.MaxPerHost), Null: &s.MaxPerHostNull, Doc: "null: none"},
		{Name: "min_units", Of: column.Ints(&s.MinUnits), Since: 6, Absent: 1,
			Doc: "more than 1 of a gang; with the units that are done it becomes no more than are wanted"},
		{Name: "first_seen", Of: column.Ints(&s.FirstSeen), Null: &s.FirstSeenNull, Doc: "the cycle that knew it " +
			"first. Null: an earlier version of stint saved the state without that"},
		{Name: "wanted", Of: column.Ints(&s.Wanted), Null: &s.WantedNull, Doc: held},
		{Name: "held", Of: column.Ints(&s.Held), Doc: held},
	}}
}

// Table is a view of the sub-allocations.
func (s *SubAllocations) Table() Table { return s.Size.Beside(s.Schema(), "") }

// Attributes are what the hosts table says of hosts besides capacity and state, and the resource groups that they are
// in, as the attribute group. A host whose attributes change has all its rows anew.
type Attributes struct {
	Host, Attribute, Value Coded
}

// Add appends a row.
func (a *Attributes) Add(host, attribute, value int32) {
	a.Host.Add(host)
	a.Attribute.Add(attribute)
	a.Value.Add(value)
}

// Schema declares the columns.
func (a *Attributes) Schema() column.Schema {
	return column.Schema{Name: "attributes", Lines: []column.Line{
		hostLine(&a.Host, ""),
		{Name: "attribute", Of: &a.Attribute},
		{Name: "value", Of: &a.Value, Doc: "numbers in decimal digits, `true` and `false`"},
	}}
}
