package foreign

// feature is something that policies of other systems ask for. Reports say by it why a setting is not carried over, and
// a test compares docs/comparison.md with it, so that neither tells of a gap that stint does not have.
type feature uint8

const (
	userLimits feature = iota
	jobCounts
	jobLimits
	jobPriority
	queueRules
	reservations
	topology
	backfill
	countables
	halfLife
	gangs
)

// features tells of each feature its row in docs/comparison.md, and what a report says of a setting that needs it: ""
// where stint has it.
var features = map[feature]struct{ row, lack string }{
	userLimits:   {"limits and weights of single users", "limits of single users are not supported"},
	jobCounts:    {"limits on the number of jobs", "the number of allocations is not limited"},
	jobLimits:    {"limits on the size of single jobs", "limits of single jobs are not supported"},
	jobPriority:  {"priorities of single jobs", "allocations of a leaf have no priorities"},
	queueRules:   {"queues made by rule", "consumers are made by the administrator, in the policy file"},
	reservations: {"reservations for a time in the future", "reservations of the future are not supported"},
	backfill:     {"backfill by run time", "an allocation is not held back for one that would end later"},
	countables:   {"licences and other amounts that lie on no host", "an amount that lies on no host is not supported"},
	topology:     {"a gang within one rack", ""},
	halfLife:     {"shares by usage in the past (decay)", ""},
	gangs:        {"gangs: all or nothing", ""},
}

// lack is what a report says of a setting that needs a feature which stint does not have.
func (f feature) lack() string {
	text := features[f].lack
	if text == "" {
		panic("BUG: stint has " + features[f].row)
	}
	return text
}

// togetherInstead is what a report says of settings of topology: stint has it, in the demand.
const togetherInstead = "the column `together` of a row of demand keeps a gang in one rack: name the hosts' " +
	"attribute there"
