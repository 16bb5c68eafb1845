//go:build mutant

package cluster

// mutant is the wrong behaviour that states show, 0 for none: a row of Mutants, from 1.
var mutant int

// SetMutant makes every state show a wrong behaviour, 0: none. A test of the tests of core/cycle,
// which have to notice.
func SetMutant(n int) { mutant = n }

// Mutants says what the wrong behaviours are.
var Mutants = [...]string{
	"reclaim: no room is held for takers",               // 1
	"reclaim: clients need not confirm",                 // 2
	"reclaim: overdue_after is not waited for",          // 3
	"settle: owned units before others",                 // 4
	"settle: what is under reclaim does not come first", // 5

	"window: a minute late",               // 6
	"window: at midnight the first opens", // 7
	"window: no switch is one",            // 8

	"policy: orphans have no grace",                    // 9
	"policy: a renamed consumer loses what it holds",   // 10
	"policy: what is promised to orphans is kept back", // 11

	"parcel: what is missing on a host is granted on its others", // 12
	"parcel: a host that came back had another capacity",         // 13
}
