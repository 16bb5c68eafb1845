package cluster

import (
	"fmt"
	"iter"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/pack"
)

// The tables of the state as schemas. A column is written down here once: saving, loading, cloning, growing, renaming
// and the checks of what was loaded are loops. A column that comes later names the form of the saved state that brought
// it (Since).

// Tables and dictionaries of which columns name rows.
const (
	ofSources, ofConsumers, ofLabels, ofNodes = "sources", "consumers", "labels", "consumers of the policy"
	ofShapes, ofNeeds, ofPlans, ofHosts       = "sizes", "requirements", "plans", "hosts"
	ofAllocs, ofSubs, ofHoldings, ofSets      = "allocations", "sub-allocations", "holdings", "sets"
	ofStates, ofParcels, ofPairs              = "states", "parcels", "pairs"
)

// figure is a column of numbers.
func figure[T pack.Integer](name string, of *[]T) column.Line {
	return column.Line{Name: name, Of: column.Ints(of)}
}

// id is a column of row ids of a table.
func id[T ~uint8 | ~int32](name string, of *[]T, names string) column.Line {
	return column.Line{Name: name, Of: column.Ints(of), Names: names}
}

// optional is a column of row ids of a table, or NoID.
func optional[T ~int32](name string, of *[]T, names string) column.Line {
	return column.Line{Name: name, Of: column.Ints(of), Names: names, Nullable: true}
}

// separate is a column with a length of its own.
func separate(l column.Line) column.Line { l.Apart = true; return l }

// computed is a column that is made of others.
func computed(l column.Line) column.Line { l.Derived = true; return l }

// since is a column that a form of the saved state brought, with the value that it has in earlier ones.
func since(form int, absent int64, l column.Line) column.Line {
	l.Since, l.Absent = form, absent
	return l
}

// amounts is a column for each dimension; where it is nil no row has amounts yet.
func amounts(name string, of *[][]int64) column.Line {
	return column.Line{Name: name, Of: column.Grid(of), Bare: *of == nil}
}

func (s *State) consumerTables() []column.Schema {
	return []column.Schema{
		{Name: ofNodes, Lines: []column.Line{id("consumer", &s.ConsumerOf, ofConsumers)}},
		{Name: ofConsumers, Lines: []column.Line{optional("node", &s.NodeOf, ofNodes)}},
	}
}

func (h *Hosts) schema() column.Schema {
	return column.Schema{Name: ofHosts, Lines: []column.Line{
		id("state", &h.State, ofStates),
		amounts("size", &h.Size),
		separate(id("order", &h.Order, ofHosts)),
		optional("plan", &h.Plan, ofPlans),
		figure("parcel", &h.Parcel),
		{Name: "listed", Of: column.Bools(&h.listed), Bare: h.listed == nil},
	}}
}

func (a *Allocs) schema() column.Schema {
	return column.Schema{Name: ofAllocs, Lines: []column.Line{
		optional("plan", &a.Plan, ofPlans),
		id("consumer", &a.Consumer, ofConsumers),
		id("source", &a.Source, ofSources),
		id("name", &a.Name, ofLabels),
		figure("arrival", &a.Arrival),
		optional("first", &a.First, ofSubs),
		id("last", &a.Last, ofSubs),
		optional("next", &a.Next, ofAllocs),
		computed(figure("prev", &a.prev)),
		separate(id("free", &a.free, ofAllocs)),
	}, Live: func(row int) bool { return a.First[row] != NoID }}
}

func (b *Subs) schema() column.Schema {
	return column.Schema{Name: ofSubs, Lines: []column.Line{
		id("source", &b.Source, ofSources),
		optional("plan", &b.Plan, ofPlans),
		id("consumer", &b.Consumer, ofConsumers),
		optional("allocation", &b.Alloc, ofAllocs),
		id("name", &b.Name, ofLabels),
		id("shape", &b.Shape, ofShapes),
		optional("need", &b.Need, ofNeeds),
		figure("max_per_host", &b.MaxPerHost),
		figure("wanted", &b.Wanted),
		figure("held", &b.Held),
		figure("pair", &b.Pair),
		optional("first", &b.First, ofHoldings),
		optional("next", &b.Next, ofSubs),
		figure("seq", &b.Seq),
		{Name: "orphan", Of: column.Bools(&b.Orphan)},
		figure("turns", &b.Turns),
		figure("seen", &b.seen),
		separate(id("free", &b.free, ofSubs)),
		since(5, 0, figure("first_seen", &b.FirstSeen)),
		since(7, 1, figure("min_units", &b.MinUnits)),
		since(9, 0, id("together", &b.Together, ofLabels)),
		since(11, 0, figure("short_since", &b.ShortSince)),
		computed(column.Line{Name: "noted", Of: column.Bools(&b.noted)}),
		computed(figure("prev", &b.prev)),
		computed(figure("after", &b.after)),
		computed(figure("before", &b.before)),
	}, Live: func(row int) bool { return b.Alloc[row] != NoID }}
}

func (h *Holdings) schema() column.Schema {
	device := since(10, 0, figure("device", &h.Device))
	device.Bare = !h.onDevices
	return column.Schema{Name: ofHoldings, Lines: []column.Line{
		optional("sub", &h.Sub, ofSubs),
		figure("parcel", &h.Parcel),
		figure("units", &h.Units),
		figure("origin", &h.Origin),
		optional("pool", &h.Pool, ofConsumers),
		optional("lender", &h.Lender, ofConsumers),
		figure("granted", &h.Granted),
		optional("next_of_sub", &h.NextOfSub, ofHoldings),
		optional("prev_of_sub", &h.PrevOfSub, ofHoldings),
		optional("next_on_parcel", &h.NextOnParcel, ofHoldings),
		optional("prev_on_parcel", &h.PrevOnParcel, ofHoldings),
		optional("set", &h.Set, ofSets),
		figure("next_of_set", &h.NextOfSet),
		figure("due", &h.Due),
		device,
		separate(id("free", &h.free, ofHoldings)),
	}, Live: func(row int) bool { return h.Sub[row] != NoID }}
}

func (t *Sets) schema() column.Schema {
	return column.Schema{Name: ofSets, Lines: []column.Line{
		figure("number", &t.Number),
		id("plan", &t.Plan, ofPlans),
		figure("reason", &t.Reason),
		figure("issued", &t.Issued),
		optional("taker", &t.Taker, ofSubs),
		id("target", &t.Target, ofHosts),
		optional("owner", &t.Owner, ofConsumers),
		figure("units", &t.Units),
		optional("first", &t.First, ofHoldings),
		separate(figure("kept", &t.kept)),
		separate(id("free", &t.free, ofSets)),
	}, Live: func(row int) bool { return t.Number[row] != 0 }}
}

// live goes over the rows that are in use: in those that are not a column has the value spare.
func live[ID ~int32, T comparable](of []T, spare T) iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for row, v := range of {
			if v != spare && !yield(ID(row)) {
				return
			}
		}
	}
}

// Live goes over the allocations that there are, spare rows left out.
func (a *Allocs) Live() iter.Seq[AllocID] { return live[AllocID](a.First, NoID) }

// Live goes over the sub-allocations that there are.
func (b *Subs) Live() iter.Seq[SubID] { return live[SubID](b.Alloc, NoID) }

// Live goes over the sets under way.
func (t *Sets) Live() iter.Seq[SetID] { return live[SetID](t.Number, 0) }

// Of goes over the sets under way of a plan.
func (t *Sets) Of(p *Plan) iter.Seq[SetID] {
	return func(yield func(SetID) bool) {
		for id := range t.Live() {
			if t.Plan[id] == p.Index && !yield(id) {
				return
			}
		}
	}
}

// lists are what stands beside the tables.
func (s *State) lists() column.Schema {
	return column.Schema{Name: "lists", Lines: []column.Line{
		separate(id("excess", &s.excess, ofSubs)),
		separate(id("gone", &s.gone, ofSubs)),
		separate(id("silent", &s.silent, ofSources)),
		separate(figure("times", &s.Times.us)),
		separate(computed(figure("of_source", &s.ofSource))),
	}}
}

// tables are the tables of the state, those of plans apart.
func (s *State) tables() []column.Schema {
	return append(s.consumerTables(), s.Host.schema(), s.Alloc.schema(), s.Sub.schema(), s.Holding.schema(),
		s.Set.schema(), s.lists())
}

// tables are the tables of a plan.
func (p *Plan) tables() []column.Schema {
	return []column.Schema{p.Parcels.schema(), p.Pairs.schema(), p.leaves(), p.lists(), p.Deeds.schema(),
		p.Deeds.lists(), p.Deeds.kept(), p.Deeds.byNode(), p.Budgets.schema(), p.History.schema()}
}

func (p *Parcels) schema() column.Schema {
	return column.Schema{Name: ofParcels, Lines: []column.Line{
		id("host", &p.Host, ofHosts),
		optional("owner", &p.Owner, ofConsumers),
		amounts("cap", &p.Cap),
		amounts("free", &p.Free),
		amounts("kept", &p.Kept),
		amounts("owed", &p.Owed),
		separate(figure("open", &p.Open)),
		optional("first", &p.First, ofHoldings),
		separate(computed(figure("moved", &p.Moved))), // it is saved behind figures of its own
		separate(computed(figure("device", &p.Device))),
	}}
}

func (q *Pairs) schema() column.Schema {
	return column.Schema{Name: ofPairs, Lines: []column.Line{
		id("leaf", &q.Leaf, ofNodes),
		id("shape", &q.Shape, ofShapes),
		optional("pool", &q.Pool, ofConsumers),
		figure("units", &q.Units),
		figure("leaving", &q.Leaving),
		optional("next", &q.Next, ofPairs),
	}}
}

// leaves is the table of a plan's consumers, by Node.
func (p *Plan) leaves() column.Schema {
	rank := figure("rank_order", &p.RankOrder)
	rank.Bare = p.RankOrder == nil
	return column.Schema{Name: "leaves", Lines: []column.Line{
		optional("first_alloc", &p.FirstAlloc, ofAllocs),
		optional("last_alloc", &p.LastAlloc, ofAllocs),
		optional("first_pair", &p.FirstPair, ofPairs),
		rank,
		separate(computed(column.Line{Name: "spent", Of: column.Bools(&p.Spent)})),
	}}
}

// lists are what stands beside a plan's tables.
func (p *Plan) lists() column.Schema {
	return column.Schema{Name: "lists", Lines: []column.Line{
		separate(id("changed", &p.Changed, ofParcels)),
		separate(id("shifted", &p.shifted, ofHosts)),
		separate(id("unlabelled", &p.Unlabelled, ofHoldings)),
		separate(since(6, 0, figure("lost", &p.Lost))),
		separate(computed(figure("sizing_hosts", &p.sizing.hosts))),
		separate(computed(figure("sizing_total", &p.sizing.total))),
		separate(computed(column.Line{Name: "sizing_small", Of: column.Bools(&p.sizing.small)})),
	}}
}

func (d *Deeds) schema() column.Schema {
	return column.Schema{Name: "deeds", Lines: []column.Line{
		id("consumer", &d.Consumer, ofConsumers),
		id("host", &d.Host, ofHosts),
		figure("rule", &d.Rule),
		figure("number", &d.Number),
		amounts("amount", &d.Amount),
	}}
}

// lists is the table of the consumers that had rules.
func (d *Deeds) lists() column.Schema {
	return column.Schema{Name: "lists of rules", Lines: []column.Line{
		id("lister", &d.Lister, ofConsumers), {Name: "list", Of: column.Strings(&d.List)},
	}}
}

// kept is the table of what is reserved of consumers' parts.
func (d *Deeds) kept() column.Schema {
	return column.Schema{Name: "reserved parts", Lines: []column.Line{
		id("keeper", &d.Keeper, ofConsumers), id("host", &d.KeptOn, ofHosts), amounts("amount", &d.KeptAmount),
	}}
}

// byNode is the table of what the last pass over ownership told of consumers.
func (d *Deeds) byNode() column.Schema {
	return column.Schema{Name: "figures of rules", Lines: []column.Line{
		separate(figure("unmet", &d.Unmet)),
		separate(amounts("configured", &d.Configured)),
		separate(amounts("reserved", &d.Reserved)),
	}}
}

func (b *Budgets) schema() column.Schema {
	return column.Schema{Name: "budgets", Lines: []column.Line{
		figure("consumer", &b.Consumer), // checked against the policy
		figure("used", &b.Used),
		figure("rest", &b.rest),
		figure("rate", &b.rate),
		figure("told", &b.told),
		figure("told_rest", &b.toldRest),
	}}
}

func (h *History) schema() column.Schema {
	return column.Schema{Name: "usage", Lines: []column.Line{
		figure("consumer", &h.Consumer), // checked against the policy, as the pool
		figure("pool", &h.Pool),
		figure("decayed", &h.Decayed),
		figure("held", &h.Held),
		figure("told", &h.Told),
		figure("factor", &h.Factor),
		separate(column.Line{Name: "wants", Of: column.Bools(&h.Wants)}),
		separate(computed(figure("first", &h.first))),
	}}
}

// copyTables makes tables copies of others of the same schemas.
func copyTables(to, from []column.Schema) {
	for i := range to {
		to[i].CopyFrom(from[i], nil)
	}
}

// save names columns of a table (column.Schema.SaveNamed).
func save(c *pack.Coder, t column.Schema, columns ...string) {
	t.SaveNamed(c, c.Version(), columns, nil)
}

// saveAll names all columns of tables that are saved whole.
func saveAll(c *pack.Coder, tables ...column.Schema) {
	for _, t := range tables {
		t.Save(c, c.Version(), nil)
	}
}

// known checks that tables that were loaded have columns of one length, and that the rows that they name are there.
func known(tables []column.Schema, rows func(table string) int) error {
	for _, t := range tables {
		if err := t.Sound(); err != nil {
			return err
		}
		if err := t.Known(rows); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf is the number of rows of a table or dictionary, free ones included; p has the plan's own tables.
func (s *State) rowsOf(p *Plan) func(table string) int {
	return func(table string) int {
		switch table {
		case ofSources:
			return s.Source.Len()
		case ofConsumers:
			return s.Consumer.Len()
		case ofLabels:
			return s.Label.Len()
		case ofNodes:
			return s.Policy.Len()
		case ofShapes:
			return s.Shape.Len()
		case ofNeeds:
			return s.Need.Len()
		case ofPlans:
			return len(s.Plans)
		case ofHosts:
			return s.Host.Len()
		case ofStates:
			return len(HostStates)
		case ofAllocs:
			return len(s.Alloc.First)
		case ofSubs:
			return len(s.Sub.Alloc)
		case ofHoldings:
			return s.Holding.Len()
		case ofSets:
			return len(s.Set.Number)
		case ofParcels:
			return p.Parcels.Len()
		case ofPairs:
			return len(p.Pairs.Leaf)
		}
		panic(fmt.Sprintf("BUG: no table %s", table))
	}
}
