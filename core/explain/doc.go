// Package explain tells why a figure is what it is: from the tables that cycles decided, and from the policy in force
// then. It decides nothing and knows no state. What it says is sentences with their numbers, each with the rules of
// SPEC that it follows from; the form for programs and the one for people have the same content.
package explain

// Explanation is why a consumer, or one of its allocations, has what it has after a cycle.
type Explanation struct {
	Cycle      int64   `json:"cycle"`
	Now        string  `json:"now"` // RFC 3339
	Revision   int64   `json:"revision"`
	Consumer   string  `json:"consumer"`
	Allocation *string `json:"allocation,omitempty"`
	Plans      []Part  `json:"plans"`
}

// Part is what one plan decided. Unit is what Demand, Held and Short count: slots in slot plans, units in
// multidimensional ones; with an allocation they are its own, and in units.
type Part struct {
	Plan   string `json:"plan"`           // "" for demand that is in no plan
	Kind   string `json:"kind,omitempty"` // slots or md
	Policy string `json:"policy,omitempty"`
	Window string `json:"window,omitempty"` // "" without windows
	Unit   string `json:"unit"`
	Demand int64  `json:"demand"`
	Held   int64  `json:"held"`
	Short  int64  `json:"short"`
	Answer string `json:"answer"` // what is short, why, and what would change it, in a sentence or two

	Tables     []Grid      `json:"tables"`     // figures side by side: up the tree, beside its siblings, by dimension
	Points     []Point     `json:"points"`     // each figure and what it follows from
	Happened   []Point     `json:"happened"`   // grants, releases and steps of reclaims of this cycle
	Shortfalls []Shortfall `json:"shortfalls"` // why it has no more
	Leaving    []Reclaim   `json:"leaving"`    // what is being taken back of it
	Coming     []Reclaim   `json:"coming"`     // what is being taken back for it

	// How many rows of these are left out beyond the first thousand.
	ShortfallsMore int `json:"shortfalls_more,omitempty"`
	LeavingMore    int `json:"leaving_more,omitempty"`
	ComingMore     int `json:"coming_more,omitempty"`
}

// Point is one thing that is so, and why.
type Point struct {
	Figure    string   `json:"figure,omitempty"` // the column of the decision log
	Value     *int64   `json:"value,omitempty"`
	Dimension string   `json:"dimension,omitempty"`
	Text      string   `json:"text"`
	Rules     []string `json:"rules"` // of SPEC and docs/decisions.md
}

// Grid is figures in rows, null where a row has none. Shares of pools are fractions.
type Grid struct {
	Title   string   `json:"title"`
	Columns []string `json:"columns"`
	Rows    []Row    `json:"rows"`
	More    int      `json:"more,omitempty"` // rows that were left out
}

// Row is a row of a Grid.
type Row struct {
	Name   string `json:"name"`
	Values []any  `json:"values"` // nil, int64 or float64
}

// Shortfall is why units of a sub-allocation were not granted: the row of the log, in words, and what it rests on.
type Shortfall struct {
	Consumer   string   `json:"consumer"`
	Allocation string   `json:"allocation"`
	Sub        string   `json:"sub"`
	Units      int64    `json:"units_short"`
	Reason     string   `json:"reason"`
	Dimension  string   `json:"dimension,omitempty"`
	Blocker    string   `json:"blocker,omitempty"`
	Detail     string   `json:"detail,omitempty"`
	Until      string   `json:"until,omitempty"`
	Text       string   `json:"text"`
	Rules      []string `json:"rules"`
	Because    []Point  `json:"because"` // from the leaf up the tree, or step by step

	Requirement *Requirement `json:"requirement,omitempty"` // which hosts meet it, where that is known
	MinUnits    int64        `json:"min_units,omitempty"`   // of a gang: so many are held at least, or none
}

// Reclaim is units of a sub-allocation that are being taken back for one taker, or for a rule, by one deadline.
type Reclaim struct {
	Consumer   string   `json:"consumer"`
	Allocation string   `json:"allocation"`
	Sub        string   `json:"sub"`
	Units      int64    `json:"units"`
	Hosts      []string `json:"hosts"`
	Reason     string   `json:"reason"` // "" where it was decided in a cycle that is not kept any more
	For        *Taker   `json:"for"`    // null: a rule
	Issued     string   `json:"issued,omitempty"`
	Deadline   string   `json:"deadline"`
	Overdue    bool     `json:"overdue"`
	Text       string   `json:"text"`
	Rules      []string `json:"rules"`

	leftUS int64 // from the cycle's now to the deadline
}

// Taker is the sub-allocation for which units are taken back.
type Taker struct {
	Consumer   string `json:"consumer"`
	Allocation string `json:"allocation"`
	Sub        string `json:"sub"`
}
