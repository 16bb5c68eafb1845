package decision

import "slices"

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
	return []Table{s.Loans.Table(), s.SubAllocations.Table(), s.Attributes.Table()}
}

// standingKeys are the columns that name what a row stands for, by table; the last one is a column without a value, or
// 0, in a row that says that this is gone.
var standingKeys = map[string][]string{
	"loans":           {"plan", "lender", "borrower", "pool", "units"},
	"sub_allocations": {"plan", "source", "consumer", "allocation", "sub", "first_seen", "wanted"},
	"attributes":      {"host", "attribute"},
}

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
		latest = t.latestOf(key, cycle)
	}
	rows := make([]int, 0, t.Rows)
	for row := range t.Rows {
		is := gone.Type == Text && gone.Code[row] == Null ||
			gone.Type == Int && (gone.Null != nil && gone.Null[row] || gone.Int[row] == 0 && t.Name == "loans")
		if !is && latest(row) {
			rows = append(rows, row)
		}
	}
	return t.pick(rows)
}

// latestOf tells of a row whether it is of the latest cycle that has its key.
func (t *Table) latestOf(key []string, cycle []int64) func(row int) bool {
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

// pick copies rows of a table; texts keep their dictionaries.
func (t *Table) pick(rows []int) *Table {
	out := &Table{Name: t.Name, Rows: len(rows), Columns: make([]Column, len(t.Columns))}
	for i, c := range t.Columns {
		c.Int, c.Float, c.Code = picked(c.Int, rows), picked(c.Float, rows), picked(c.Code, rows)
		c.Lists, c.Null = picked(c.Lists, rows), picked(c.Null, rows)
		out.Columns[i] = c
	}
	return out
}

func picked[T any](from []T, rows []int) []T {
	if from == nil {
		return nil
	}
	to := make([]T, len(rows))
	for i, row := range rows {
		to[i] = from[row]
	}
	return to
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

// Table is a view of the loans.
func (l *Loans) Table() Table {
	return Table{"loans", len(l.Units), l.Amounts.Columns("amount_", []Column{
		text("plan", l.Plan), text("lender", l.Lender), text("borrower", l.Borrower), text("pool", l.Pool),
		ints("units", l.Units), ints("under_recall", l.UnderRecall),
		{Name: "deadline", Type: Time, Int: l.Deadline, Null: l.DeadlineNull, Optional: true},
	})}
}

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

// Table is a view of the sub-allocations.
func (s *SubAllocations) Table() Table {
	return Table{"sub_allocations", len(s.Held), s.Size.Columns("", []Column{
		text("plan", s.Plan), text("source", s.Source), text("consumer", s.Consumer), text("allocation", s.Allocation),
		text("sub", s.Sub), text("requirement", s.Requirement), text("together", s.Together),
		{Name: "max_per_host", Type: Int, Int: s.MaxPerHost, Null: s.MaxPerHostNull, Optional: true},
		ints("min_units", s.MinUnits),
		{Name: "first_seen", Type: Int, Int: s.FirstSeen, Null: s.FirstSeenNull, Optional: true},
		{Name: "wanted", Type: Int, Int: s.Wanted, Null: s.WantedNull, Optional: true}, ints("held", s.Held),
	})}
}

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

// Table is a view of the attributes.
func (a *Attributes) Table() Table {
	return Table{"attributes", len(a.Host.Code), []Column{
		text("host", a.Host), text("attribute", a.Attribute), text("value", a.Value),
	}}
}
