package decision

import "github.com/stintd/stint/core/column"

// Key is the columns that name a sub-allocation in a plan.
type Key struct {
	Plan, Consumer, Allocation, Sub Coded
}

// Add appends a row's key.
func (k *Key) Add(plan, consumer, allocation, sub int32) {
	k.Plan.Add(plan)
	k.Consumer.Add(consumer)
	k.Allocation.Add(allocation)
	k.Sub.Add(sub)
}

// Columns that several tables have.

func planLine(of *Coded, doc string) column.Line { return column.Line{Name: "plan", Of: of, Doc: doc} }

func consumerLine(of *Coded, doc string) column.Line {
	return column.Line{Name: "consumer", Of: of, Doc: doc}
}

func hostLine(of *Coded, doc string) column.Line { return column.Line{Name: "host", Of: of, Doc: doc} }

func dimensionLine(of *Coded) column.Line { return column.Line{Name: "dimension", Of: of} }

func allocationLine(of *Coded, doc string) column.Line {
	return column.Line{Name: "allocation", Of: of, Dict: labels, Doc: doc}
}

func subLine(of *Coded, doc string) column.Line {
	return column.Line{Name: "sub", Of: of, Dict: labels, Doc: doc}
}

func sourceLine(of *Coded, doc string) column.Line {
	return column.Line{Name: "source", Of: of, Doc: doc}
}

// served is the source of the rows of a table that does not show it: for those who serve the sources.
func served(of *Coded) column.Line { return column.Line{Name: "source", Of: of, Inner: true} }

func originLine(of *Coded, doc string) column.Line {
	return column.Line{Name: "origin", Of: of, Words: Origins, Doc: doc}
}

func lenderLine(of *Coded, doc string) column.Line {
	return column.Line{Name: "lender", Of: of, Dict: consumers, Nullable: true, Doc: doc}
}

// deviceLine is the devices of each unit of a row (D-187).
func deviceLine(of *Coded, doc string) column.Line {
	return column.Line{Name: "device", Of: of, Nullable: true, Since: 8, Count: column.IfSet, Doc: doc}
}

// lostLine is the work that reclaims stopped before its end (D-120), null in logs that do not tell.
func lostLine(of column.Cells, doc string) column.Line {
	return column.Line{Name: "unit_seconds_lost", Of: of, Nullable: true, Since: 5, Count: column.IfChanged,
		Doc: doc + ": see [work lost](#work-lost)"}
}

const asGranted = "as in the grant"

// Grants are the units given in a cycle: one row per sub-allocation, host, origin, pool, lender and devices.
type Grants struct {
	Key
	Source, Host Coded
	Units        []int64
	Origin       Coded // Origins
	Pool         Coded // consumer paths; Null when owned
	Lender       Coded // consumer paths; Null when not lent
	Device       Coded // the devices of each unit, such as 4+5 (D-185); Null when it takes none
}

// Schema declares the columns.
func (g *Grants) Schema() column.Schema {
	const where = "who and where"
	return column.Schema{Name: "grants", Lines: []column.Line{
		planLine(&g.Plan, where),
		sourceLine(&g.Source, where),
		consumerLine(&g.Consumer, where),
		allocationLine(&g.Allocation, where),
		subLine(&g.Sub, where),
		hostLine(&g.Host, where),
		{Name: "units", Of: column.Ints(&g.Units)},
		originLine(&g.Origin, "MD plans `owned` (on the leaf's own hosts or parts of hosts), `private_pool`, "+
			"`public_pool`; slot plans `owned`, `share_pool`, `borrowed`, under the hybrid policy always `hybrid`"),
		{Name: "pool", Of: &g.Pool, Dict: consumers, Nullable: true,
			Doc: "path of the consumer whose pool it is, `/` the public one or the cluster's; null when owned or " +
				"borrowed"},
		lenderLine(&g.Lender, "whose resource it is; null when not lent"),
		deviceLine(&g.Device, "on which [devices](shares.md#devices) of the host each unit lies: `0`, `4+5+6+7`; null "+
			"when it takes none"),
	}}
}

// Reclaims are the units to be given back: a row for each holding and step.
type Reclaims struct {
	Key
	Reclaim                            []int64 // the reclaim's id
	Action                             Coded   // Actions
	Host                               Coded
	Units                              []int64
	Reason                             Coded // ReclaimReasons
	ForConsumer, ForAllocation, ForSub Coded // the taker; Null for a rule
	Issued, Deadline                   []int64
	Device                             Coded // of each unit
	TakerWait                          []float64
	TakerWaitNull                      []bool
	Source                             Coded // whose demand it is
}

// Schema declares the columns.
func (r *Reclaims) Schema() column.Schema {
	const (
		whose = "whose units, where"
		taker = "who shall get the room; null when a rule takes it back"
		due   = "they are given back at the deadline at the latest; with `release: confirmed` when the client does"
	)
	return column.Schema{Name: "reclaims", Lines: []column.Line{
		planLine(&r.Plan, whose),
		{Name: "reclaim", Of: column.Ints(&r.Reclaim), Doc: "id; releases name it"},
		{Name: "action", Of: &r.Action, Words: Actions, Doc: "`issued`, `cancelled`"},
		consumerLine(&r.Consumer, whose),
		allocationLine(&r.Allocation, whose),
		subLine(&r.Sub, whose),
		hostLine(&r.Host, whose),
		{Name: "units", Of: column.Ints(&r.Units)},
		{Name: "reason", Of: &r.Reason, Words: ReclaimReasons, Doc: "see below"},
		{Name: "for_consumer", Of: &r.ForConsumer, Dict: consumers, Nullable: true, Doc: taker},
		{Name: "for_allocation", Of: &r.ForAllocation, Dict: labels, Nullable: true, Doc: taker},
		{Name: "for_sub", Of: &r.ForSub, Dict: labels, Nullable: true, Doc: taker},
		{Name: "issued", Of: column.Ints(&r.Issued), Type: Time, Doc: due},
		{Name: "deadline", Of: column.Ints(&r.Deadline), Type: Time, Doc: due},
		deviceLine(&r.Device, asGranted),
		{Name: "taker_wait", Of: column.Floats(&r.TakerWait), Null: &r.TakerWaitNull, Since: 11,
			Count: column.Uncounted, Doc: "seconds for which the taker had been short when the reclaim was issued; " +
				"null when a rule takes it back or the units stay, and in cycles of earlier versions"},
		served(&r.Source),
	}}
}

// Releases are the units that came back in a cycle.
type Releases struct {
	Key
	Host    Coded
	Units   []int64
	Cause   Coded   // Causes
	Reclaim []int64 // id of the reclaim, 0 when none
	Origin  Coded
	Lender  Coded
	Device  Coded // of each unit

	// UnitSecondsLost is how long the units had run where a reclaim stopped them before their end (D-120), times the
	// units; else 0.
	UnitSecondsLost []float64

	Source Coded // whose demand it was
}

// Schema declares the columns.
func (r *Releases) Schema() column.Schema {
	return column.Schema{Name: "releases", Lines: []column.Line{
		planLine(&r.Plan, ""),
		consumerLine(&r.Consumer, ""),
		allocationLine(&r.Allocation, ""),
		subLine(&r.Sub, ""),
		hostLine(&r.Host, ""),
		{Name: "units", Of: column.Ints(&r.Units)},
		{Name: "cause", Of: &r.Cause, Words: Causes,
			Doc: "`client`, `done`, `grace_expired`, `host_lost`, `demand_gone`, `gang_broken`"},
		{Name: "reclaim", Of: column.Ints(&r.Reclaim), Doc: "id of the reclaim that they were under, 0 when none"},
		originLine(&r.Origin, asGranted),
		lenderLine(&r.Lender, asGranted),
		lostLine(column.Floats(&r.UnitSecondsLost), "of these units"),
		deviceLine(&r.Device, asGranted),
		served(&r.Source),
	}}
}

// Ownership is the parts of hosts that consumers were assigned, or that were trimmed: a row for
// each consumer, host, action and dimension in which the part changed.
type Ownership struct {
	Plan, Consumer, Host, Action, Dimension Coded
	Amount                                  []int64
}

// Schema declares the columns.
func (o *Ownership) Schema() column.Schema {
	const whose = "whose part of which host; what a branch owns includes what those below it do"
	return column.Schema{Name: "ownership", Lines: []column.Line{
		planLine(&o.Plan, whose),
		consumerLine(&o.Consumer, whose),
		hostLine(&o.Host, whose),
		{Name: "action", Of: &o.Action, Words: OwnerActions, Doc: "`assigned`, `trimmed`"},
		dimensionLine(&o.Dimension),
		{Name: "amount", Of: column.Ints(&o.Amount), Doc: "by how much, overcommit included"},
	}}
}

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (g *Grants) Extend(rows int) (first int) { return g.Schema().Extend(rows) }

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (o *Ownership) Extend(rows int) (first int) { return o.Schema().Extend(rows) }

// Plans is the revisions applied in a cycle.
type Plans struct {
	Revision                []int64
	Author, Message, Digest Coded
}

// Schema declares the columns. Digests count neither who gave a policy nor why.
func (p *Plans) Schema() column.Schema {
	return column.Schema{Name: "plans", Lines: []column.Line{
		{Name: "revision", Of: column.Ints(&p.Revision), Doc: "from 1"},
		{Name: "author", Of: &p.Author, Nullable: true, Count: column.Unnamed, Doc: "as in inputs"},
		{Name: "message", Of: &p.Message, Nullable: true, Count: column.Unnamed,
			Doc: "what who gave it to a service said of it"},
		{Name: "digest", Of: &p.Digest, Doc: "of the policy file"},
	}}
}

// Inputs are the inputs that came with a cycle, in the order applied.
type Inputs struct {
	Kind, Source, Format, Digest, Author Coded
	Bytes, Rows                          []int64
}

// Schema declares the columns.
func (i *Inputs) Schema() column.Schema {
	return column.Schema{Name: "inputs", Lines: []column.Line{
		{Name: "kind", Of: &i.Kind, Doc: "`plan`, `hosts`, `hosts_change`, `demand`, `running`, `releases`, of a " +
			"[service](service.md#on-disk) others too; the folder under `blobs`"},
		{Name: "source", Of: &i.Source, Doc: "of demand and running"},
		{Name: "format", Of: &i.Format, Doc: "how the bytes are to be read"},
		{Name: "digest", Of: &i.Digest, Doc: "SHA-256 of the decompressed input; the file's name"},
		{Name: "bytes", Of: column.Ints(&i.Bytes), Doc: "of the decompressed input"},
		{Name: "rows", Of: column.Ints(&i.Rows), Doc: "of the decompressed input"},
		{Name: "author", Of: &i.Author, Nullable: true, Since: 2, Doc: "the name of the token that gave it; " +
			"`configuration` of the first policy of a service; null when nobody is known"},
	}}
}
