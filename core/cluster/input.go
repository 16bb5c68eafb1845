package cluster

import (
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
)

// The input tables as schemas. A column is written down here once: reading and writing, docs/tables.md and the
// description of the HTTP service are loops.

// RequirementBytesMax is the longest requirement.
const RequirementBytesMax = 4096

// name is a column of names, which each row has.
func name(name string, of *TextColumn, doc string) column.Line {
	return column.Line{Name: name, Of: of, Doc: doc, Input: &column.Input{Type: "name", Most: NameBytesMax}}
}

// path is a column of consumers.
func path(of *TextColumn, doc string) column.Line {
	l := name("consumer", of, doc)
	l.Input.Type = "path"
	return l
}

// count is a column of numbers, which each row has.
func count(name string, of *[]int64, doc string) column.Line {
	return column.Line{Name: name, Of: column.Ints(of), Doc: doc, Input: &column.Input{Type: "number"}}
}

// or makes a column one that rows may leave out, and says in words what they have then.
func or(fallback string, l column.Line) column.Line {
	l.Nullable, l.Input.Default = true, fallback
	return l
}

// orNumber is or for a column of numbers from 1, with what such rows read as.
func orNumber(fallback string, value int64, l column.Line) column.Line {
	l = or(fallback, l)
	l.Absent, l.Input.Unset, l.Input.Least = value, value, 1
	return l
}

// of gives a column a type in words.
func of(words string, l column.Line) column.Line {
	l.Input.Type = words
	return l
}

// sizeLines are the columns of a size, one for each dimension.
func sizeLines(size *[][]int64, dimensions []string, doc string) (lines []column.Line) {
	if len(*size) != len(dimensions) {
		*size = append(*size, make([][]int64, len(dimensions))...)[:len(dimensions)]
	}
	for d, dimension := range dimensions {
		lines = append(lines, or("0", count(dimension, &(*size)[d], doc)))
	}
	return lines
}

// Schema declares the columns that every hosts table may have; all others are attributes.
func (t *HostTable) Schema(dimensions []string) column.Schema {
	host := name("host", &t.Host, "each once")
	host.Input.Unique = true
	lines := []column.Line{host, or("`ok`", column.Line{
		Name: "state", Of: column.Ints(&t.State), Words: HostStates[:], Absent: int64(Keep),
		Doc: "`closed` keeps what runs there and gets no more; `draining` gets no more and gives back what runs " +
			"there, with the holder's grace; on `unavail` it is lost",
		Input: &column.Input{Type: "`ok`, `closed`, `draining`, `unavail`"},
	})}
	for _, l := range sizeLines(&t.Size, dimensions, "capacity, before overcommit") {
		l.Absent = NotGiven
		lines = append(lines, l)
	}
	return column.Schema{Name: "hosts", Lines: lines}
}

// Schema declares the columns of demand. A dimension of an older policy may have the name of a column that came later,
// which then is missing (D-157).
func (t *DemandTable) Schema(dimensions []string) column.Schema {
	requirement := of("text, at most 4 KiB", name("requirement", &t.Requirement,
		"which hosts, in [the requirement language](policy.md#requirements)"))
	requirement.Input.Most = RequirementBytesMax
	lines := []column.Line{
		path(&t.Consumer, "a leaf of the policy"),
		name("allocation", &t.Allocation, "allocations are served in order of first sight"),
		or("empty", name("sub", &t.Sub, "the subs of one allocation keep pace with each other")),
		count("units", &t.Units, "wanted in all, *held units included*; 0 keeps the allocation's place in the queue"),
		or("the consumer's only plan", name("plan", &t.Plan, "needed where it takes part in several")),
	}
	lines = append(lines, sizeLines(&t.Size, dimensions, "the size of a unit")...)
	return column.Schema{Name: "demand", Lines: append(lines,
		or("none", requirement),
		orNumber("unlimited", plan.Unlimited, of("number from 1", count("max_per_host", &t.MaxPerHost,
			"most units of this sub-allocation on one host"))),
		orNumber("1", 1, of("number from 1 to `units`", count("min_units", &t.MinUnits,
			"a gang: at least so many units are held, or none ([gangs](concepts.md#gangs))"))),
		or("none", of("an attribute of hosts, or `prefer` and one", name("together", &t.Together,
			"of a gang: all its hosts have one value of it, such as `rack`; with `prefer rack` if they can"))),
	)}
}

// Schema declares the columns of running units.
func (t *HoldingTable) Schema() column.Schema {
	const whose = "a sub-allocation that the demand names; only that tells the unit's size"
	return column.Schema{Name: "running", Lines: []column.Line{
		path(&t.Consumer, whose),
		name("allocation", &t.Allocation, whose),
		or("empty", name("sub", &t.Sub, whose)),
		name("host", &t.Host, "where"),
		count("units", &t.Units, "how many"),
	}}
}

// Releases declares the columns of released units.
func (t *HoldingTable) Releases() column.Schema {
	return column.Schema{Name: "releases", Lines: append(t.Schema().Lines,
		or("`false`", column.Line{Name: "done", Of: column.Bools(&t.Done),
			Doc: "the work is finished, so as many fewer are wanted", Input: &column.Input{Type: "boolean"}}),
		or("any", of("text", name("device", &t.Device, "on which [devices](shares.md#devices) of the host each unit "+
			"lies, as the tables tell it: `0`, `4+5`; what lies on others is not meant"))),
	)}
}
