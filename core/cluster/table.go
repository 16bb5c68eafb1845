package cluster

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
)

// TextColumn is a dictionary-encoded text column of an input table. Names is never nil in a decoded table, even if the
// column was not given.
type TextColumn = column.TextOf[*Names]

// Null is the code of a missing text value.
const Null = column.Null

// HostState says what may happen on a host (SPEC chapter 1, "host").
type HostState uint8

// The states of a host.
const (
	OK HostState = iota
	Closed
	Draining
	Unavail

	// Keep is the state in a row of a HostTable that gives no state: in changes the host keeps its state, in a whole
	// table the host is OK.
	Keep
)

// Shut tells whether nothing new starts on a host of this state, whose owners keep it.
func (s HostState) Shut() bool { return s == Closed || s == Draining }

// NotGiven is the size in a row of a HostTable that gives no size: in changes the host keeps its size, in a whole table
// the size is 0.
const NotGiven int64 = -1

// HostStates are the names of the states, by value.
var HostStates = [...]string{"ok", "closed", "draining", "unavail"}

// HostTable is a decoded hosts table (SPEC chapter 7): one row per host.
type HostTable struct {
	Name  string // what messages call it, e.g. the file
	Rows  int
	Host  TextColumn
	State []HostState // or Keep; nil when the column was not given
	// Size is by dimension of the policy, then row, or NotGiven; nil where the table has no
	// such column (in changes such a column keeps its value).
	Size [][]int64
	Attr []AttrColumn // every other column
}

// AttrColumn is one attribute of hosts. Its kind is that of all its values:
// numbers when all parse as finite numbers, booleans when all are true or false,
// else text. (Parquet and Arrow columns keep the kind of their type.)
type AttrColumn struct {
	Name  string
	Kind  plan.Kind
	Valid []bool // by row: whether the host has a value
	// by row of a HostTable: whether it says nothing of the attribute, which stays as it is in changes; nil: none does
	Keep   []bool
	Number []float64
	Bool   []bool
	Text   TextColumn
}

// DemandTable is a decoded demand table (SPEC chapter 7): one row per sub-allocation.
type DemandTable struct {
	Name        string // what messages call it, e.g. the file
	Rows        int
	Consumer    TextColumn
	Allocation  TextColumn
	Sub         TextColumn // Null reads as ""
	Plan        TextColumn // Null or "": the consumer's only plan
	Requirement TextColumn // Null or "": none
	Together    TextColumn // Null or "": units of a gang lie anywhere
	Units       []int64
	Size        [][]int64 // by dimension of the policy, then row; nil where not given (= 0)
	MaxPerHost  []int64   // plan.Unlimited where not given; nil when the column was not given
	MinUnits    []int64   // 1 where not given; nil when the column was not given
}

// HoldingTable is a decoded table of running or released units (SPEC chapter 7).
type HoldingTable struct {
	Name       string // what messages call it, e.g. the file
	Rows       int
	Consumer   TextColumn
	Allocation TextColumn
	Sub        TextColumn
	Host       TextColumn
	Units      []int64
	Done       []bool     // releases only; nil when not given (= false)
	Device     TextColumn // releases only: on which devices the units are; Null or "": on any
}

func (t *HostTable) title() string    { return cmp.Or(t.Name, "hosts") }
func (t *DemandTable) title() string  { return cmp.Or(t.Name, "demand") }
func (t *HoldingTable) title() string { return cmp.Or(t.Name, "holdings") }

// Limits of names and numbers in tables (SPEC chapter 7).
const (
	NameBytesMax       = 256
	NumberMax    int64 = 1 << 53
)

// RowFault is one bad value of an input table.
type RowFault struct {
	Row    int // from 1, the header or opening bracket not counted; 0: the table as a whole
	Column string
	Value  string // as given, shortened
	Reason string
}

// Faults is why an input table was refused: the first rowFaultsMax bad rows and how many there are in all.
// The zero value is ready to collect.
type Faults struct {
	Table string // what the caller names it, e.g. the file
	Rows  []RowFault
	Count int
}

const (
	rowFaultsMax  = 100
	faultValueMax = 64
)

// Add collects one fault; past the first hundred it only counts.
func (f *Faults) Add(row int, column, value, reason string) {
	f.Count++
	if len(f.Rows) < rowFaultsMax {
		if len(value) > faultValueMax {
			value = strings.ToValidUTF8(value[:faultValueMax], "") + "…"
		}
		f.Rows = append(f.Rows, RowFault{row, column, value, reason})
	}
}

// Err is the faults as an error, nil when there are none.
func (f *Faults) Err() error {
	if f.Count == 0 {
		return nil
	}
	return f
}

// Error lists the collected faults, a line each, and the count of all.
func (f *Faults) Error() string {
	var b strings.Builder
	for i, r := range f.Rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(f.Table)
		if r.Row > 0 {
			fmt.Fprintf(&b, ": row %d", r.Row)
		}
		if r.Column != "" {
			fmt.Fprintf(&b, ", column %s", r.Column)
		}
		if r.Value != "" {
			fmt.Fprintf(&b, ", value %q", r.Value)
		}
		b.WriteString(": " + r.Reason)
	}
	if f.Count > len(f.Rows) {
		fmt.Fprintf(&b, "\n%s: %d faults in all, the first %d are shown", f.Table, f.Count, len(f.Rows))
	}
	return b.String()
}
