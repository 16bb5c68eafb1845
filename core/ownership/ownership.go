// Package ownership decides who owns which hosts of an MD plan (SPEC MD-1 to
// MD-5; docs/ownership.md has every word used here, the order of all that is
// done and the ties). It knows hosts by number, consumers by their place in
// the tree, what is held by sums: amounts in, amounts out.
package ownership

import "github.com/stintd/stint/core/plan"

// Ground is what a pass knows. Hosts are the indexes 0…n-1 in the plan's host
// order; hosts that are lost have a capacity of 0 in every dimension.
type Ground struct {
	Tree   *plan.Tree
	Plan   *plan.MDPlan
	Window *plan.MDWindow // rules (Own) and reserves in force
	Rank   []int32        // by Node: place in rank order among all consumers; siblings compare by it
	Cap    [][]int64      // by dimension, then host: capacity with overcommit
	Group  [][]uint64     // by plan group: bitset of hosts
	Use    []Use          // what is held, a row per host and owner or finer, in any order

	// Listed gives the index of a host named in a host_list, -1 when the plan has it not.
	Listed func(name string) int32
	// Known is what the hosts table says, in a dimension and with overcommit, of a listed
	// host that has no capacity in Cap; 0 when it says nothing.
	Known func(name string, d int) int64
}

// Use is what is held on the parcel of a host with a certain owner; plan.Root owns the
// public one. A row with no amount above 0 makes no part busy.
type Use struct {
	Host   int32
	Owner  plan.Node
	Amount []int64 // by dimension
}

// Deeds are the pieces of a plan's hosts that consumers own: rows sorted by
// node (tree order), host, rule; none twice, none of nothing.
type Deeds struct {
	Node   []plan.Node
	Host   []int32
	Rule   []int32   // index into the consumer's list of rules; -1: of no claim
	Number []int64   // of the part: the same on all rows of one node and host
	Amount [][]int64 // by dimension, then row
	Next   int64     // the number that the next new part gets
}

// None is the rule of a piece of no claim, and what Unmet gives when every claim is met.
const None int32 = -1

// Assigner makes passes. The zero value is ready; it is not safe for concurrent use.
type Assigner struct {
	g          *Ground
	deeds      *Deeds
	unmet      []int32   // by Node
	configured [][]int64 // by dimension, then Node
	touched    int64
}

// Pass makes one pass over the plan's ownership. What was had is not changed; the
// result is the caller's.
func (a *Assigner) Pass(g *Ground, had *Deeds) *Deeds {
	p := newPass(g, had)
	p.domains()
	a.g, a.deeds, a.unmet, a.configured, a.touched = g, p.deeds(), p.unmet, p.configured, p.touched
	return a.deeds
}

// Unmet is the first rule of n that the last pass could not meet, in the order of its
// list; None when all are met. It panics for a node that the tree has not.
func (a *Assigner) Unmet(n plan.Node) int32 { return a.unmet[n] }

// AnyUnmet tells whether the last pass left a claim of any consumer unmet.
func (a *Assigner) AnyUnmet() bool {
	for _, rule := range a.unmet {
		if rule != None {
			return true
		}
	}
	return false
}

// Configured is what a consumer's rules ask for in a dimension, as of the last pass: what
// they got, and of those that are unmet what is missing (docs/ownership.md). 0 for the root.
func (a *Assigner) Configured(n plan.Node, d int) int64 { return a.configured[d][n] }

// Touched counts the rows that the last pass looked at: pieces had, hosts of domains, candidates.
func (a *Assigner) Touched() int64 { return a.touched }
