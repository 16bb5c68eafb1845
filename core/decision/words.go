package decision

// The origins of a unit (SPEC chapter 8).
const (
	OriginOwned int32 = iota
	OriginPrivatePool
	OriginPublicPool
	OriginSharePool
	OriginBorrowed
	OriginHybrid
)

// Origins are the names of the origins, by value.
var Origins = Words{"owned", "private_pool", "public_pool", "share_pool", "borrowed", "hybrid"}

// The causes of a release.
const (
	CauseClient int32 = iota
	CauseDone
	CauseGraceExpired
	CauseHostLost
	CauseDemandGone
	CauseGangBroken
)

// Causes are the names of the causes, by value.
var Causes = Words{"client", "done", "grace_expired", "host_lost", "demand_gone", "gang_broken"}

// The reasons of a shortfall, in the order in which they would have to be lifted
// (see docs/decisions.md).
const (
	ReasonNotInPlan int32 = iota
	ReasonNoHostMatches
	ReasonShareLimit
	ReasonTooBig
	ReasonMaxPerHost
	ReasonFragmented
	ReasonLowerPriority
	ReasonOverQuota
	ReasonPoolExhausted
	ReasonConsumerLimit
	ReasonBorrowLimit
	ReasonGraceFilter
	ReasonWaitingForReclaim
	ReasonOwnershipUnmet
	ReasonReclaimBudget
	ReasonTooSmall
	ReasonGang
	ReasonBudget
)

// Reasons are the names of the reasons, by value.
var Reasons = Words{
	"not_in_plan", "no_host_matches", "share_limit", "too_big", "max_per_host", "fragmented",
	"lower_priority", "over_quota", "pool_exhausted", "consumer_limit", "borrow_limit", "grace_filter",
	"waiting_for_reclaim", "ownership_unmet", "reclaim_budget", "too_small", "gang",
	"budget",
}

// The steps of a reclaim.
const (
	ActionIssued int32 = iota
	ActionCancelled
)

// Actions are the names of the steps, by value.
var Actions = Words{"issued", "cancelled"}

// The reasons of a reclaim.
const (
	ReclaimRecall int32 = iota
	ReclaimFairShare
	ReclaimOverLimit
	ReclaimReserve
	ReclaimOwnershipChange
	ReclaimWindowSwitch
	ReclaimPlanChange
	ReclaimDrain
	ReclaimGang
)

// ReclaimReasons are the names of the reasons, by value.
var ReclaimReasons = Words{
	"recall", "fair_share", "over_limit", "reserve", "ownership_change", "window_switch", "plan_change", "drain",
	"gang",
}

// The steps of ownership.
const (
	ActionAssigned int32 = iota
	ActionTrimmed
)

// OwnerActions are the names of the steps of ownership, by value.
var OwnerActions = Words{"assigned", "trimmed"}

// The policies of consumers in plans.
const (
	PolicyOwnership int32 = iota
	PolicyShareRatio
	PolicyHybrid
	PolicyMD // of MD plans
)

// Policies are the names of the policies, by value.
var Policies = Words{"ownership", "share_ratio", "hybrid", "md"}

// States are the names of host states, by core/cluster's HostState.
var States = Words{"ok", "closed", "draining", "unavail"}
