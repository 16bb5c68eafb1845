// Package export writes and reads the decision log (SPEC chapter 8) and prints its tables.
//
// A cycle's tables are Parquet files, one per table and cycle, and the cycle is there
// when its file of the table `cycles` is: that one is written last. Files are whole before
// they get their name, and each is sealed: it carries the SHA-256 of its own bytes, and the
// `cycles` file those of the cycle's other files. A reader parses no byte of a file whose
// seal is broken, for Parquet's footers cannot be trusted with sizes once damaged.
package export

import (
	"slices"
	"strconv"

	"github.com/stintd/stint/core/decision"
)

// The keys of the files' metadata.
const (
	metaSchema    = "stint.schema"    // version of the tables' columns
	metaRules     = "stint.rules"     // version of SPEC's rules
	metaRevision  = "stint.revision"  // of the policy
	metaDecisions = "stint.decisions" // decisions digest of the cycle (D-16)
	metaContent   = "stint.content"   // state tables: digest of the tables written together
	metaFrames    = "stint.frames"    // keyframes of several cycles: the cycles
	metaFile      = "stint.file."     // in cycles, + a table's name: the seal of its file
	metaState     = "stint.state."    // in cycles, + a cycle's number: the digest of the file of its saved state
	metaRows      = "stint.rows"      // in cycles: the most rows that a file of its range has
	metaSeal      = "stint.seal"      // SHA-256 of the file with unsealed in its place
)

// SchemaVersion is the version of the columns of the log's tables that is written. Earlier ones are read too: see
// upgrade. No log has version 9: only checkpoints count it.
const SchemaVersion = "11"

// The tables that are not a decision.Table of every cycle.
const (
	cyclesTable = "cycles"
	inputsTable = "inputs"
)

// set is the state tables that are written together.
type set int

// The sets of state tables, in the order of the columns of cycles that name their cycle.
const (
	consumersSet set = iota // with amounts
	sharesSet
	shortfallsSet
	sets
)

var setOf = map[string]set{
	"consumers": consumersSet, "amounts": consumersSet, "shares": sharesSet, "shortfalls": shortfallsSet,
}

// setTable is the table that stands for a set.
var setTable = [sets]string{"consumers", "shares", "shortfalls"}

// isKeyframe tells whether a table is written in some cycles only, whole.
func isKeyframe(table string) bool {
	return table == "holdings" || table == "hosts" || table == "owners"
}

// shapes are the log's tables without rows; those of what stands lack the columns of dimensions.
func shapes() []decision.Table {
	var c decision.Cycle
	var stands decision.Standing
	version, _ := strconv.Atoi(SchemaVersion)
	cycles := decision.Table{Name: cyclesTable, Columns: c.Summary.Schema().At(version)}
	return slices.Concat(logged(c.Tables(), nil), stands.Tables(),
		c.KeyframeTables(), []decision.Table{inputTable(nil), cycles})
}
