//go:build mutant

package md

// mutant is the wrong behaviour that the planner shows, 0 for none: a row of Mutants, from 1.
var mutant int

// SetMutant makes every planner show a wrong behaviour, 0: none. A test of the tests of core/cycle,
// which have to notice.
func SetMutant(n int) { mutant = n }

// Mutants says what the wrong behaviours are.
var Mutants = [...]string{
	"assign: what is configured and not met counts for nothing",              // 1
	"assign: cycles without input count for a rebalance",                     // 2
	"assign: what was had by another list counts as had by this one's rules", // 3
	"assign: all work on a host is on its public part",                       // 4
	"assign: the table leaves out parts of which only something went",        // 5
	"own: what is idle of the least preferred group is used first",           // 6
	"own: promised units wait, though their own parcels have come free",      // 7
	"own: what a unit given on own parcels was promised is kept for it",      // 8
	"preference: nothing is recalled for it",                                 // 9
	"preference: recalled on parcels of any",                                 // 10
	"grace: that of lenders ignored",                                         // 11
	"grace: that of the owner's consumers above ignored",                     // 12
	"grace: that of pools ignored",                                           // 13
	"grace: the holder's alone makes the deadline",                           // 14
	"reserve: lent",                                                                            // 15
	"reserve: only that of the owner holds",                                                    // 16
	"reserve: what a set of outsiders keeps does not count",                                    // 17
	"reserve: nothing is taken back for it",                                                    // 18
	"reserve: its reclaims are never cancelled",                                                // 19
	"capacity: what is reserved is part of a pool",                                             // 20
	"capacity: what nearer ones hold is part of a pool",                                        // 21
	"capacity: shares of private pools are measured by the public one",                         // 22
	"pool: borrowers take what the owner prefers most",                                         // 23
	"label: no lender is noted",                                                                // 24
	"limit: what is held from a consumer's own pool counts for it",                             // 25
	"limit: nothing is taken back for it from private pools",                                   // 26
	"recall: the first rank gives first",                                                       // 27
	"recall: the oldest give first",                                                            // 28
	"recall: leaves in reverse rank order",                                                     // 29
	"recall: for leaves' own parcels alone, not for branches",                                  // 30
	"recall: share limits of branches ignored",                                                 // 31
	"recall: no joining",                                                                       // 32
	"recall: where the budget does not reach, the next pool up is tried",                       // 33
	"recall: the sets of outsiders stay",                                                       // 34
	"recall: the earliest set of outsiders ends first",                                         // 35
	"recall: a set more than it takes ends",                                                    // 36
	"recall: victims of sets that end are not taken over",                                      // 37
	"recall: what was in vain before a set ended is not looked at again",                       // 38
	"recall: victims that are not needed are kept",                                             // 39
	"recall: what is taken over counts in the budget",                                          // 40
	"recall: those who lost a set do not get another unit promised in the cycle",               // 41
	"fair: nothing is taken back in private pools",                                             // 42
	"fair: those who take nothing back do in private pools",                                    // 43
	"choice: takers by deficit alone, whatever their ratios",                                   // 44
	"choice: one alone that is enough has no precedence",                                       // 45
	"choice: no victims of one leaf alone",                                                     // 46
	"choice: ties in rank order",                                                               // 47
	"choice: a unit moves though the sum of squares is no lower",                               // 48
	"review: sets stand though their takers' grace is too long by now",                         // 49
	"review: sets stand though what they move does not lower the sum of squares any more",      // 50
	"join: reserves left aside",                                                                // 51
	"reclaim: takers' grace left aside",                                                        // 52
	"parcel: what is too much on one is left there",                                            // 53
	"parcel: what is under reclaim is still too much",                                          // 54
	"choice: bands left aside",                                                                 // 55
	"lead: nothing is tried",                                                                   // 56
	"lead: what others wait for is granted",                                                    // 57
	"lead: what is granted may be over a share limit of now",                                   // 58
	"lead: the deadline is that of the window of now",                                          // 59
	"hand: what was taken stays on hand in the cycle",                                          // 60
	"hand: what is held on parcels is as it was when it was taken down first",                  // 61
	"hand: what is free on parcels is as it was when it was looked at first",                   // 62
	"recall: what outsiders hold is as it was when it was looked at first",                     // 63
	"reserve: what leaves a reserve alone once does ever after",                                // 64
	"recall: what an owner leaves of what it took from a neighbour is no news to their branch", // 65
	"join: room that is gained is no news to who looks through all parcels",                    // 66
	"join: who looks behind where there was none for less does not hear of what gained room",   // 67
	"hand: leaves hold what they did when they were listed first",                              // 68
	"hand: news that were dropped were none",                                                   // 69
	"figures: leaves that lost units of this cycle have theirs as before",                      // 70
	"figures: those above leaves that lost units of this cycle have theirs as before",          // 71
	"figures: quotas go by what was used before units of this cycle were taken back",           // 72
	"sight: what was granted since parcels were looked at leaves them as they were",            // 73
	"figures: quotas go by what was under reclaim before this cycle took any back",             // 74
	"tables: who is short again, as what a set gave was taken back, is not told of",            // 75
	"tables: what this cycle granted and took back was granted",                                // 76
	"choice: the first parcel in place of that which takes the fewest victims",                 // 77
	"choice: of a sub-allocation's units those granted before stay chosen",                     // 78
	"recall: victims of sets that end go before units granted in the cycle",                    // 79
	"choice: what has run for too short a time is taken too",                                   // 80
	"recall: what has run for too short a time is taken like all else",                         // 81
	"hand: who may give more offers what it did",                                               // 82
	"choice: victims that make a move one for the worse",                                       // 83
	"review: no turn is taken when a unit is",                                                  // 84
}
