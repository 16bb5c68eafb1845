// Package plan turns a policy file (SPEC chapter 6) into a checked, compiled
// policy: the consumer tree in pre-order as flat arrays, resource groups, plans
// and requirements. It knows text and figures only; hosts, demand and holdings
// are the business of core/cluster.
package plan

import "time"

// Node is a consumer's row in a policy's tree: pre-order, row 0 is the root "/".
// Every per-consumer array of a compiled policy is indexed by Node. A Node is
// good for one revision only; core/cluster keeps the durable ids.
type Node int32

// None stands for "no consumer": the parent of the root, the child of a leaf.
const None Node = -1

// Root is the row of "/", which every tree has.
const Root Node = 0

// Unlimited is the value of a limit, budget or duration that is not set.
const Unlimited int64 = -1

// Tree is the consumer tree in pre-order. Siblings stand in the order of the
// policy file's top-level `consumers` list, so that comparing two siblings' rows
// settles every tie (SPEC chapter 1, "rank").
type Tree struct {
	Path   []string // "/", "/Risk", "/Risk/Intraday", …
	Parent []Node   // None for the root
	First  []Node   // first child, or None: then the consumer is a leaf
	Next   []Node   // next sibling, or None
	End    []Node   // rows n … End[n]-1 are n and all below it
	Depth  []int32  // 0 for the root
	Line   []int32  // line of the entry in the policy file; 0 for the root

	byPath map[string]Node
}

// Len is the number of consumers, the root included.
func (t *Tree) Len() int { return len(t.Path) }

// Leaf tells whether n has no children and may have demand.
func (t *Tree) Leaf(n Node) bool { return t.First[n] == None && n != Root }

// Within tells whether n is up or below it.
func (t *Tree) Within(n, up Node) bool { return up <= n && n < t.End[up] }

// Find gives the row of a path; ok is false when no consumer has it.
func (t *Tree) Find(path string) (n Node, ok bool) {
	n, ok = t.byPath[path]
	return n, ok
}

// Policy is a policy file, checked and compiled. It is never changed once made.
type Policy struct {
	File       string         // name for messages
	Digest     string         // SHA-256 of the file, in hexadecimal
	Cluster    string         //
	Location   *time.Location // wall clock of the windows
	IntervalUS int64          // µs between cycles
	Dimensions []string       // in the file's order; dimension d of every vector

	Groups []Group
	Tree
	Rank        []int32 // by Node, of the top-level entry
	ReclaimUS   []int64 // by Node: reclaim_grace in µs, its own or that of the nearest above it that has one (SLOT-9)
	RuntimeUS   []int64 // by Node: min_runtime in µs, its own or that of the nearest above it that has one (REQ-4)
	Admins      [][]string
	Users       [][]string
	System      []bool
	RenamedFrom []string // "" when not renamed

	SlotPlans []SlotPlan
	MDPlans   []MDPlan

	Divisions []Division // none: all plans are decided together
	Division  string     // whose plans SlotPlans and MDPlans are; "": all are there
	Foreign   []Foreign  // the others, where there is a division

	groups map[string]int // index into Groups by name
}

// Dimension gives the index of a dimension's name; ok is false when the policy has no such dimension.
func (p *Policy) Dimension(name string) (d int, ok bool) {
	for d, n := range p.Dimensions {
		if n == name {
			return d, true
		}
	}
	return 0, false
}

// Group is a resource group: its hosts are either listed or selected.
type Group struct {
	Name   string
	Line   int32
	Hosts  []string     // in the listed order; nil when selected
	Select *Requirement // nil when listed
	Slots  *Requirement // slots per host as a numeric expression (NumberAt); nil: the dimension `slots`
}

// Placement says which host takes the next unit.
type Placement uint8

// The placements of SLOT-31 and MD-20.
const (
	BestFit Placement = iota
	Stacked
	Balanced
	Exclusive
)

// MDPlan is a multidimensional plan (SPEC chapter 4). Arrays by Node have an
// entry for every consumer of the policy; Member says which of them take part.
type MDPlan struct {
	Name                 string
	Line                 int32
	Groups               []PlanGroup
	OvercommitMilli      []int64 // by dimension, thousandths: 1500 is 1.5; 1000 when not given
	Device               int     // the dimension that is the sum of a host's devices (D-185), -1: none
	DevicePer            int64   // the amount of each device; 0: the plan has no devices
	Placement            Placement
	PublicGraceUS        int64 // Unlimited when not set
	ReclaimForPref       bool
	OwnershipRebalance   int32
	ShareReclaim         bool
	FairBandMilli        int64 // thousandths of a quota: 10 is 0.01
	HalfLifeUS           int64 // after which what was used of pools counts half (D-164); 0: it does not count
	HistoryMilli         int64 // share.weight: how strongly that counts, in thousandths
	ReclaimBudget        int64 // units a cycle, or Unlimited
	ReleaseConfirmed     bool
	OverdueAfterUS       int64 // Unlimited when not set
	LeadUS               int64
	GangWaitUS           int64      // how long room is held for a gang at most (REQ-3)
	Windows              []MDWindow // at least one; a plan without windows has one that holds always
	Budget               []Budget   // by Node; nil: none
	Member               []bool     // by Node: named in the plan (the root always is)
	OvercommitConfigured bool       // whether any dimension's overcommit was given
}

// Owns tells whether a consumer has a rule of what it owns, in any window.
func (m *MDPlan) Owns() bool {
	for i := range m.Windows {
		for _, rules := range m.Windows[i].Own {
			if len(rules) > 0 {
				return true
			}
		}
	}
	return false
}

// PlanGroup is a resource group's part in an MD plan.
type PlanGroup struct {
	Group      int // index into Policy.Groups
	Preference int8
}

// MDWindow holds the settings of every consumer of an MD plan while the window lasts,
// the plan's and the window's merged (a key of the window's entry replaces the plan's as
// a whole). Slices are indexed by Node; entries of consumers that are no member are zero.
type MDWindow struct {
	Window
	Rank         []int32
	Priority     []int32   // share priority: larger wins
	Ratio        []int64   // share ratio ≥ 0
	Limit        [][]int64 // share limit by dimension, then Node; Unlimited when not set
	LendGraceUS  []int64   // Unlimited when not set
	PrivateUS    []int64   // private_pool_grace; Unlimited when not set
	ShareReclaim []bool    // false also where the plan or a consumer above says so
	Preference   [][]int8  // by plan group, then Node; inherited from the parent, then the plan
	Own          [][]OwnRule
	Reserve      []Reserve
}

// OwnRule is one entry of an MD consumer's `own` list (MD-1).
type OwnRule struct {
	Group     int // index into MDPlan.Groups; -1 for a host list
	HostList  []string
	Hosts     int64 // whole hosts; Unlimited when not of this form
	Percent   int64 // thousandths of a percent; Unlimited when not of this form
	Remaining bool
	PerHost   []Part  // by dimension; nil when not of this form
	Amount    []int64 // by dimension, Unlimited when not named; nil when not of this form
	Partial   bool
	Line      int32
}

// Part is an amount of a dimension of each host: absolute, or a percentage.
type Part struct {
	Amount  int64 // absolute, or Unlimited
	Percent int64 // thousandths of a percent, or Unlimited
}

// Reserve is what of the owned is never lent (MD-5); at most one form is set.
type Reserve struct {
	Hosts   int64 // Unlimited when not of this form
	Percent int64 // thousandths of a percent, or Unlimited
	Amount  []int64
}

// Window is when a set of settings holds (PLAN-1).
type Window struct {
	Name string // "" for the window of a plan that has none
	Line int32
	From int32 // minute of the day it begins
	To   int32 // minute of the day it ends; ≤ From when it passes midnight; From == To: the whole day
	Days uint8 // bit 0 Monday … bit 6 Sunday: days on which it begins

	SinceUS, UntilUS int64 // of a dated window (PLAN-8): the instants between which it is open, once; 0: it recurs
}

// Dated tells whether the window is open once, between two instants.
func (w *Window) Dated() bool { return w.UntilUS != 0 }

// PolicyKind is the policy of a first-level branch of a slot plan.
type PolicyKind uint8

// The policies of SPEC chapter 3.
const (
	Ownership PolicyKind = iota
	ShareRatio
	Hybrid
)

// SlotPlan is a slot plan (SPEC chapter 3) over one resource group.
type SlotPlan struct {
	Group            int // index into Policy.Groups
	Line             int32
	ConfiguredSlots  int64 // Unlimited when not given
	AllowOvercommit  bool
	Placement        Placement
	ExclusiveBy      string // "allocation" or "consumer"
	RecallFirst      bool   // recall: before_borrow
	ShareReclaim     bool
	StaticQuota      bool // share_quota: static
	DistributeEvenly bool
	NoShrinkReclaim  bool // disable_reclaim_on_shrink
	ReclaimBudget    int64
	ReleaseConfirmed bool
	OverdueAfterUS   int64
	LeadUS           int64
	GangWaitUS       int64        // as that of an MD plan
	Windows          []SlotWindow // at least one
	Budget           []Budget     // by Node, of leaves; nil: none
	Member           []bool       // by Node
}

// SlotWindow holds the settings of every consumer of a slot plan while the window lasts,
// merged as in MDWindow. Settings that the branch's policy does not know have their defaults;
// entries of consumers that are no member are zero.
type SlotWindow struct {
	Window
	Rank        []int32
	Policy      []PolicyKind // of the first-level branch, for every node below it too
	Owns        []int64
	Reserves    []int64
	Limit       []int64  // Unlimited when not set
	LendLimit   []int64  // 0 when nothing is lent
	LendTo      [][]Peer // nil: any
	BorrowLimit []int64  // 0: no borrowing; Unlimited
	BorrowFrom  [][]Peer // nil: any
	Ratio       []int64
	Max         []int64 // Unlimited when not set
}

// Peer is one entry of lend.to or borrow.from.
type Peer struct {
	Any, Siblings bool
	Node          Node // when neither
}
