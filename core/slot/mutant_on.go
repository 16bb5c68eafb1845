//go:build mutant

package slot

// mutant is the wrong behaviour that the planner shows, 0 for none: a row of Mutants, from 1.
var mutant int

// SetMutant makes every planner show a wrong behaviour, 0: none. A test of the tests of core/cycle,
// which have to notice.
func SetMutant(n int) { mutant = n }

// Mutants says what the wrong behaviours are.
var Mutants = [...]string{
	"own: ranks reversed",                                   // 1
	"own: reserves not before the rest",                     // 2
	"quota: rounded in reverse rank order",                  // 3
	"quota: ratios ignored",                                 // 4
	"quota: a share.max does not cap the need",              // 5
	"quota: static entitles to more than is needed",         // 6
	"grant: a share.max of branches ignored",                // 7
	"grant: one above a share.max",                          // 8
	"grant: the pool takes what owners could claim",         // 9
	"grant: the pool's first round without a bound",         // 10
	"grant: the turns of the pool by rank alone",            // 11
	"grant: a share ratio of 0 draws",                       // 12
	"borrow: the limit ignored",                             // 13
	"borrow: reserves lent",                                 // 14
	"borrow: lend.to ignored",                               // 15
	"borrow: lenders in another order",                      // 16
	"borrow: the order of borrow.from ignored",              // 17
	"borrow: serves what is promised",                       // 18
	"relabel: loans stay loans when own slots are idle",     // 19
	"relabel: loans stay loans when pool slots are idle",    // 20
	"label: running units never count as owned",             // 21
	"pool: always said to be the cluster's",                 // 22
	"recall: the first rank gives first",                    // 23
	"victims: the oldest first",                             // 24
	"recall: loans never move to another lender",            // 25
	"recall: before_borrow ignored",                         // 26
	"fair share: ties in rank order",                        // 27
	"fair share: a victim may end worse off than the taker", // 28
	"fair share: one above the quota",                       // 29
	"join: never",                                           // 30
	"join: max_per_host not counted",                        // 31
	"reclaim: grace ignored",                                // 32
	"reclaim: the budget ignored",                           // 33
	"reclaim: no set may pass the budget, not the first",    // 34
	"reclaim: unneeded victims kept",                        // 35
	"reclaim: what was granted in the cycle is served anew", // 36
	"review: a lapsed set keeps its victims",                // 37
	"review: limits that no longer ask are not cancelled",   // 38
	"review: takers fit their hosts for ever",               // 39
	"promised: waits for all its victims",                   // 40
	"net: what is leaving counts as held",                   // 41
	"limits: own slots before loans",                        // 42
	"limits: nothing is relabelled",                         // 43
	"limits: a lowered share.max is not taken back",         // 44
	"shortfall: borrow_limit before max_per_host",           // 45
	"shortfall: waits until the first deadline",             // 46

	"hybrid: quotas rounded in reverse rank order",                // 47
	"hybrid: reserves not before the rest",                        // 48
	"hybrid: a limit does not cap what is used",                   // 49
	"hybrid: those who own nothing are served with owners",        // 50
	"hybrid: distribute_evenly goes by what is owned now",         // 51
	"hybrid: disable_reclaim_on_shrink ignored",                   // 52
	"hybrid: the last rank gives first, however much",             // 53
	"hybrid: what is given rounded in rank order",                 // 54
	"hybrid: what is owned is not scaled",                         // 55
	"hybrid: idle slots that reserves need are granted",           // 56
	"hybrid: the first round of grants goes beyond quotas",        // 57
	"hybrid: takers join what reserves need",                      // 58
	"hybrid: nothing is taken back for reserves",                  // 59
	"hybrid: owners beside do not get back what is theirs",        // 60
	"hybrid: branches do not reserve what their children do",      // 61
	"hybrid: nobody else gives where units do not serve",          // 62
	"fair share: under share ratios victims are taken one by one", // 63
	"switch: foreign units are not settled",                       // 64
	"switch: the newest units stay",                               // 65
	"switch: more stays than is owned",                            // 66
	"switch: lead reclaims nothing",                               // 67
	"switch: with lead, grants need not last",                     // 68
	"switch: reclaims are cancelled while a window comes",         // 69
	"switch: loans of those who share by now stay",                // 70
	"switch: with lead, promised units need not last",             // 71

	"switch: what is borrowed yet counts as hybrid",                        // 72
	"quota: what is being recalled is shown as deserved",                   // 73
	"grant: a ratio of 0 on a branch bars nobody below",                    // 74
	"limits: what is on closed hosts goes like the rest",                   // 75
	"borrow: nothing while somebody has more than its part",                // 76
	"borrow: also what owners reserve or want",                             // 77
	"limits: new work comes before what runs",                              // 78
	"limits: an owner is kept out by what siblings share",                  // 79
	"hybrid: reserves do not count against limits",                         // 80
	"hybrid: two are taken for one while others hold more than their part", // 81
	"hybrid: nothing is taken back for reserves below limits",              // 82
	"hybrid: what the budget lets through is not divided",                  // 83
	"hybrid: all that is held above the part is given for owners",          // 84
	"grant: what a recall promises counts as promised by the pool",         // 85
	"hybrid: a lowered limit takes what fills reserves below",              // 86
	"switch: what is promised leaves nothing to units from before",         // 87
	"switch: what is promised stays beside units from before",              // 88
	"switch: what its takers leave to units from before is settled later",  // 89
	"victims: nothing is taken where the newest come to an end",            // 90
}
