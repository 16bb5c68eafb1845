//go:build mutant

package ownership

// mutant is the wrong behaviour that assigners show, 0 for none: a row of Mutants, from 1.
var mutant int

// SetMutant makes every assigner show a wrong behaviour, 0: none. A test of the tests of core/cycle,
// which have to notice.
func SetMutant(n int) { mutant = n }

// Mutants says what the wrong behaviours are.
var Mutants = [...]string{
	"claims: ranks reversed",                                       // 1
	"claims: what remains is not left to the last",                 // 2
	"own first: idle hosts before busy ones",                       // 3
	"own first: the least loaded first",                            // 4
	"kept: what others have busy is taken from them",               // 5
	"candidates: parts before whole hosts",                         // 6
	"candidates: the most loaded first",                            // 7
	"candidates: those that others list are no worse",              // 8
	"candidates: those that somebody had are no worse",             // 9
	"candidates: the first in rank gives first",                    // 10
	"candidates: those kept for others are as good as public ones", // 11
	"percent: rounded up",                                          // 12
	"amount: never ends in a part of a host",                       // 13
	"amount: what was had is taken like any other",                 // 14
	"amount: dimensions that it does not name go whole",            // 15
	"per_host: a percentage of what others left",                   // 16
	"list: a host of which a part is gone is met",                  // 17
	"reserve: the latest parts first",                              // 18
	"reserve: a percentage of each part",                           // 19
	"busy: only what is held on the part's own parcel counts",      // 20
	"own first: idle hosts that others list are kept",              // 21
	"own first: hosts in use serve as well as idle ones",           // 22
}
