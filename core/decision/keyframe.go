package decision

import "github.com/stintd/stint/core/column"

// Holdings is a keyframe: what is held where.
type Holdings struct {
	Key
	Source, Host         Coded
	Units                []int64
	Origin, Pool, Lender Coded
	Granted              []int64 // cycle of the grant
	Device               Coded   // of each unit
}

// Schema declares the columns.
func (h *Holdings) Schema() column.Schema {
	return column.Schema{Name: "holdings", Lines: []column.Line{
		planLine(&h.Plan, "as in grants"),
		sourceLine(&h.Source, "as in grants"),
		consumerLine(&h.Consumer, "as in grants"),
		allocationLine(&h.Allocation, "as in grants"),
		subLine(&h.Sub, "as in grants"),
		hostLine(&h.Host, "as in grants"),
		{Name: "units", Of: column.Ints(&h.Units)},
		originLine(&h.Origin, "as in grants, as of now"),
		{Name: "pool", Of: &h.Pool, Dict: consumers, Nullable: true, Doc: "as in grants, as of now"},
		lenderLine(&h.Lender, "as in grants, as of now"),
		{Name: "granted", Of: column.Ints(&h.Granted), Doc: "the cycle of the grant"},
		deviceLine(&h.Device, "as in grants"),
	}}
}

// Hosts is a keyframe: capacity and use per host and dimension.
type Hosts struct {
	Plan, Host, State, Dimension Coded
	Capacity, Used               []int64
}

// Schema declares the columns.
func (h *Hosts) Schema() column.Schema {
	return column.Schema{Name: "hosts", Lines: []column.Line{
		planLine(&h.Plan, ""),
		hostLine(&h.Host, ""),
		{Name: "state", Of: &h.State, Words: States, Doc: "`ok`, `closed`, `draining`, `unavail`"},
		dimensionLine(&h.Dimension),
		{Name: "capacity", Of: column.Ints(&h.Capacity), Doc: "overcommit included"},
		{Name: "used", Of: column.Ints(&h.Used)},
	}}
}

// Owners is a keyframe: who owns what of which host in MD plans, a row for each piece and dimension of which it has
// something.
type Owners struct {
	Plan, Consumer, Host, Dimension Coded
	Rule, Part, Since, Amount       []int64
}

// Schema declares the columns.
func (o *Owners) Schema() column.Schema {
	const whose = "whose piece of which host; what a branch owns includes what those below it do"
	return column.Schema{Name: "owners", Lines: []column.Line{
		planLine(&o.Plan, whose),
		consumerLine(&o.Consumer, whose),
		hostLine(&o.Host, whose),
		{Name: "rule", Of: column.Ints(&o.Rule),
			Doc: "by which it was taken: its place in the consumer's list `own`, from 1"},
		{Name: "part", Of: column.Ints(&o.Part), Doc: "in the order of these a consumer's parts of hosts came to it, " +
			"as the reserve goes ([ownership.md](ownership.md))"},
		{Name: "since", Of: column.Ints(&o.Since), Doc: "cycles with other input since the last pass over the plan, " +
			"as `ownership_rebalance` counts them"},
		dimensionLine(&o.Dimension),
		{Name: "amount", Of: column.Ints(&o.Amount), Doc: "overcommit included"},
	}}
}
