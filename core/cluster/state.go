package cluster

import (
	"cmp"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/stintd/stint/core/plan"
)

// Row ids of the state's tables. An id is given once and not reused while anything hangs on it.
type (
	ConsumerID int32 // a consumer's path, across revisions
	SourceID   int32 // a feed of demand
	HostID     int32
	ParcelID   int32 // a plan's parcels, in host order (docs/decisions.md, D-1), those of one host by their owners
	ShapeID    int32 // a distinct unit size
	NeedID     int32 // a distinct requirement; NoID: none
	AllocID    int32
	SubID      int32
	HoldingID  int32
	PairID     int32 // a leaf, a shape and a pool in one plan
)

// NoID is the id that names nothing, of any of the types.
const NoID = -1

// State is all that a cycle starts from and leaves behind: policy, hosts, demand
// and holdings as columns. One goroutine at a time may use it. Methods that take
// a table check it whole first; on an error nothing has changed.
type State struct {
	Policy   *plan.Policy
	Revision int64
	Cycle    int64 // number of the last cycle, 0 before the first
	NowUS    int64 // the last cycle's now
	Times    Times

	Consumer   Names        // paths, by ConsumerID
	ConsumerOf []ConsumerID // by plan.Node of the policy in force
	NodeOf     []plan.Node  // by ConsumerID; None when the policy in force has no such consumer
	Source     Names        // by SourceID, until Forget
	Label      Names        // names of allocations and sub-allocations, until Forget

	Host    Hosts
	Shape   Shapes
	Need    Needs
	Alloc   Allocs
	Sub     Subs
	Holding Holdings
	Set     Sets
	Plans   []Plan // the policy's MD plans, then its slot plans, each in its order

	// ReportUnknown takes demand of consumers that the policy does not have as a
	// shortfall `not_in_plan` instead of a bad row (SPEC chapter 7, `unknown: report`).
	ReportUnknown bool

	// Accepted says that tables were accepted before, perhaps by a version of other limits: what a limit alone stands
	// against is taken again, so that a journal or log can always be read back. It is no part of the state.
	Accepted bool

	// UnitsOfHost is, for tests, of how many units of a size hosts may have room on average; 0: the usual limit.
	UnitsOfHost int64

	// Both calls two functions, of which neither writes what the other reads, at once; nil: one comes after the other.
	// It decides nothing, and is no part of the state.
	Both func(f, g func())

	// Stop tells whether the cycle under way is to be given up (Yield); nil: it never is. Clones share it. Any
	// goroutine may call it, and it must cost little.
	Stop func() bool

	Released   []Release   // units that came back since the last cycle's emit
	Reclaims   []Reclaimed // steps of reclaims of this cycle
	NewPlan    bool        // a revision took effect since the last cycle
	Renamed    bool        // names have other ids since the last cycle: see Forget
	Renumbered bool        // requirements have other ids since the last cycle: see ForgetNeeds
	Relabelled bool        // units count as something else since the last cycle (CYC-3)

	Changes ChangeLog

	arrival      int64 // arrivals of allocations so far
	sequence     int64 // sub-allocations so far
	reclaims     int64 // reclaims so far
	snapshot     int32 // number of the last demand table applied
	orphans      []orphan
	orphanUS     int64         // when they were settled last: now of the cycle under way
	asked        []asked       // each once, as they were
	last         []hostFigures // what hosts were in the last cycle that may be something else now: each once
	noted        bitset.BitSet // by HostID: it stands in last
	excess       []SubID       // may hold more than they want, or want nothing
	gone         []SubID       // forgotten once their releases are emitted
	outsideDirty bool
	silent       []SourceID // get no new grants (API-6)
	victim       []HoldingID
	aged         [2][]aged
	parting      [2][]parting
	at           *layout // of the hosts now
	// host tables and policies applied, and plans whose hosts were split anew: what depends on attributes, by parcel,
	// is good for one number
	HostTables int64
	allocOf    map[allocKey]AllocID
	subOf      map[subKey]SubID
	// by SourceID: the first of its sub-allocations, in the list of Subs.after; made of Subs.Source
	ofSource []SubID
	scratch  demandScratch
}

type allocKey struct {
	plan     int32
	consumer ConsumerID
	name     int32
}

type subKey struct {
	alloc AllocID
	name  int32
	shape ShapeID
}

// Allocs are the allocations, by AllocID: arrays of one column each.
type Allocs struct {
	Plan     []int32 // index into State.Plans; NoID: of a consumer in no plan
	Consumer []ConsumerID
	Source   []SourceID
	Name     []int32 // in State.Label
	Arrival  []int64
	First    []SubID   // its sub-allocations, in row order
	Last     []SubID   //
	Next     []AllocID // the leaf's next, by arrival
	prev     []AllocID // made of Next
	free     []AllocID
}

// Subs are the sub-allocations, by SubID.
type Subs struct {
	Source     []SourceID
	Plan       []int32
	Consumer   []ConsumerID
	Alloc      []AllocID
	Name       []int32 // in State.Label
	Shape      []ShapeID
	Need       []NeedID
	MaxPerHost []int64 // plan.Unlimited when not given
	MinUnits   []int64 // REQ-3: more than 1 of a gang; never more than Wanted, save that it is at least 1
	Together   []int32 // label: on hosts with one value of which attribute a gang's units are (D-108); 0: on any
	Wanted     []int64 // units wanted in all, held ones included
	Held       []int64
	Pair       []PairID    // of what it draws from the public pool; of a slot plan all
	First      []HoldingID // its holdings, newest first
	Next       []SubID     // the allocation's next, in row order
	Seq        []int64     // order of first sight
	FirstSeen  []int64     // the cycle after that; 0: not known, of a state that was saved before this was
	ShortSince []int64     // µs: the time of the cycle since which it has been short without a break; 0: it is not
	Orphan     []bool      // no plan has it any more, what it holds is under reclaim (PLAN-4)
	// odd when fair share last took from it: how often that and its taking for it came in turn (docs/shares.md)
	Turns  []int8
	seen   []int32 // the snapshot that named it last, or unnamed
	noted  []bool  // it stands in State.asked
	prev   []SubID // made of Next
	after  []SubID // the next of its source, in no order: see State.ofSource
	before []SubID // made with after
	free   []SubID
}

// Plan is the state of one plan.
type Plan struct {
	Index   int32
	Name    string         // a slot plan has its resource group's
	MD      *plan.MDPlan   // nil in a slot plan
	Slots   *plan.SlotPlan // nil in an MD plan
	Terms   Terms
	Parcels Parcels
	Pairs   Pairs

	sizing sizing

	FirstAlloc []AllocID // by Node: the leaf's allocations, by arrival
	LastAlloc  []AllocID
	FirstPair  []PairID // by Node
	RankOrder  []int32  // by Node: place when all are sorted by rank, level by level (SPEC chapter 1, "rank")

	Window int // the time window in force (PLAN-1), as of the last cycle; NoID before the plan's first
	Before int // the one before it, since the policy took effect; NoID when there was none (PLAN-2)
	Coming int // the one that will be in force a `lead` from now, when that is another; else NoID

	// What changed since the last cycle, for the stages that keep figures.
	Dirty   bool       // demand, hosts, holdings or settings
	again   bool       // what is under reclaim since this cycle lets others have what limits kept from them
	Rebuilt bool       // parcels were laid out anew
	Resized bool       // capacity or state of a parcel changed
	Changed []ParcelID // parcels whose free room or state changed; may name one twice
	Seen    int        // how many of Changed the cycle has taken into account

	// What consumers own of an MD plan's hosts.
	Owns     bool     // some consumer has a rule, in some window
	Deeds    Deeds    // what was assigned last
	Reassign bool     // policy, window, hosts, their groups or capacities changed since then
	Stirred  bool     // demand, hosts or policy changed since the last cycle
	Since    int32    // cycles in which they had changed, since then
	Turned   bool     // some sub-allocation has turned (Subs.Turns)
	shifted  []HostID // split hosts whose capacity changed since their parcels were made

	Lost []int64 // by ConsumerID, short where the rest is 0: unit-milliseconds that reclaims stopped before their end

	Budgets Budgets
	Spent   []bool // by Node: its budget is used up, as of the cycle under way; nil: nobody's is

	History History

	// Unlabelled are the holdings of `running` rows of a slot plan in row order. They have no
	// origin (decision.Null) until the plan's next cycle gives them one; some may be gone by then.
	Unlabelled []HoldingID
}

// Terms are the settings that plans of both kinds have.
type Terms struct {
	Member         []bool // by Node
	Placement      plan.Placement
	ReclaimBudget  int64         // units a cycle, or plan.Unlimited (CYC-4)
	Confirmed      bool          // release: confirmed (CYC-8)
	OverdueAfterUS int64         // plan.Unlimited when not set
	Budget         []plan.Budget // by Node; nil: nobody has one
}

// Continue makes the plan's next cycle look at everything again: what this one did may lead to more.
func (p *Plan) Continue() { p.again = true }

// Dimensions is by how many figures parcels and units of the plan are measured: slots alone in a slot plan.
func (p *Plan) Dimensions() int { return len(p.Parcels.Cap) }

// Pairs are a plan's (leaf, shape) pairs in each of its pools, by PairID: units of equal size in a
// leaf are counted together (MD-12, docs/decisions.md D-5). In a slot plan all are of one pool.
type Pairs struct {
	Leaf    []plan.Node
	Shape   []ShapeID
	Pool    []ConsumerID // whose pool the units are held from, NoID: the leaf's own
	Units   []int64      // held
	Leaving []int64      // of these, under reclaim
	Next    []PairID
	many    map[pairKey]PairID // made of the rest: the pairs of leaves that have more than pairsWalked
}

// New makes an empty state under a policy.
func New(p *plan.Policy) (*State, error) {
	s := &State{allocOf: map[allocKey]AllocID{}, subOf: map[subKey]SubID{}}
	s.Label.InternString("") // label 0: the sub-allocation without a name
	if err := s.SetPolicy(p, false); err != nil {
		return nil, err
	}
	return s, nil
}

// Node gives the row of a sub-allocation's consumer in the policy in force, None for an orphan.
func (s *State) Node(sub SubID) plan.Node {
	if s.Sub.Orphan[sub] {
		return plan.None
	}
	return s.NodeOf[s.Sub.Consumer[sub]]
}

// Short is how many units a sub-allocation wants and does not hold; what orphans lose they do not want back.
func (s *State) Short(sub SubID) int64 {
	if s.Sub.Orphan[sub] {
		return 0
	}
	return max(0, s.Sub.Wanted[sub]-s.Sub.Held[sub])
}

// NoteShort notes since when sub-allocations are short, as a cycle leaves them. O(sub-allocations).
func (s *State) NoteShort(nowUS int64) {
	b := &s.Sub
	for sub, wanted := range b.Wanted {
		switch since := &b.ShortSince[sub]; {
		case wanted <= b.Held[sub] || b.Orphan[sub]:
			*since = 0
		case *since == 0:
			*since = nowUS
		}
	}
}

// Size is the unit size of a sub-allocation by dimension. In a slot plan the first
// figure is the unit's slots, whatever the policy's dimensions, and the rest are 0. Read it only.
func (s *State) Size(sub SubID) []int64 { return s.Shape.Size(s.Sub.Shape[sub]) }

// Shapes are the distinct unit sizes, interned.
type Shapes struct {
	dims int
	size []int64 // shape-major
	of   map[string]ShapeID
	key  []byte
}

// Len is the number of shapes.
func (h *Shapes) Len() int {
	if h.dims == 0 {
		return 0
	}
	return len(h.size) / h.dims
}

// Size is a shape's size by dimension. Read it only.
func (h *Shapes) Size(i ShapeID) []int64 {
	return h.size[int(i)*h.dims : (int(i)+1)*h.dims : (int(i)+1)*h.dims]
}

// NewShapes is an empty table of sizes of so many dimensions.
func NewShapes(dims int) Shapes { return Shapes{dims: dims, of: map[string]ShapeID{}} }

// find is the id of a size, if it has one.
func (h *Shapes) find(size []int64) (ShapeID, bool) {
	i, ok := h.of[string(h.keyOf(size))]
	return i, ok
}

// Intern gives the id of a size. Amortised O(dimensions).
func (h *Shapes) Intern(size []int64) ShapeID {
	key := h.keyOf(size)
	if i, ok := h.of[string(key)]; ok {
		return i
	}
	i := ShapeID(h.Len())
	h.of[string(key)] = i
	h.size = append(h.size, size...)
	return i
}

// keyOf is by what a size is found, in scratch memory.
func (h *Shapes) keyOf(size []int64) []byte {
	h.key = h.key[:0]
	for _, v := range size {
		u := uint64(v)
		h.key = append(h.key, byte(u), byte(u>>8), byte(u>>16), byte(u>>24), byte(u>>32), byte(u>>40), byte(u>>48),
			byte(u>>56))
	}
	return h.key
}

// Needs are the distinct requirements of sub-allocations, interned by text.
type Needs struct {
	Names
	Parsed []*plan.Requirement // by NeedID
}

// Outside is the sub-allocations whose consumer takes part in no plan, in order of
// first sight (only with ReportUnknown), and the units they are short of.
func (s *State) Outside() (subs []SubID, short int64) {
	for sub := range s.Sub.Live() {
		if s.Sub.Plan[sub] < 0 && s.Sub.Wanted[sub] > 0 {
			subs = append(subs, sub)
			short += s.Sub.Wanted[sub]
		}
	}
	slices.SortFunc(subs, func(a, b SubID) int { return cmp.Compare(s.Sub.Seq[a], s.Sub.Seq[b]) })
	return subs, short
}

// OutsideChanged tells whether demand outside of any plan changed since the last cycle.
func (s *State) OutsideChanged() bool { return s.outsideDirty }

// HeldUnits is how many units are held in all. O(sub-allocations).
func (s *State) HeldUnits() (units int64) {
	for _, n := range s.Sub.Held {
		units += n
	}
	return units
}

// SubAllocations is how many sub-allocations there are: a source names them, or they hold units still, or this cycle
// forgets them. O(1).
func (s *State) SubAllocations() int64 { return int64(len(s.Sub.Source) - len(s.Sub.free)) }
