package foreign

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// ErrImporter is in the chain of errors for which the importer is to blame, not the files.
var ErrImporter = errors.New("stint refuses what the importer made; please report this with the files")

// proofRowsMax bounds the rows of demand that an import tries itself. The rows of a longer table are alike.
const proofRowsMax = 100_000

// reconcile compares the entries that the importer made with the policy as stint reads it: an entry that says something
// else, or a consumer more or less, is an error of the import.
func (p *policy) reconcile(read *plan.Policy) error {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if got := read.Len() - 1; got != len(p.consumers) { // the root is one
		add("%d consumers were read, the policy has %d", len(p.consumers), got)
	}
	for i := range p.plans {
		m := &p.plans[i]
		at := slices.IndexFunc(read.MDPlans, func(o plan.MDPlan) bool { return o.Name == m.name })
		if at < 0 {
			add("plan %s was made, the policy has none of that name", m.name)
			continue
		}
		w := &read.MDPlans[at].Windows[0]
		for _, e := range m.entries {
			n, ok := read.Find(e.path)
			if !ok {
				add("%s was read, the policy has no such consumer", e.path)
				continue
			}
			if w.Ratio[n] != e.ratio || int(w.Priority[n]) != e.priority {
				add("%s: ratio %d and priority %d were read, plan %s has %d and %d", e.path, e.ratio, e.priority,
					m.name, w.Ratio[n], w.Priority[n])
			}
			for d, limit := range e.limit {
				if w.Limit[d][n] != limit {
					add("%s: a limit of %d %s was read, plan %s has %d", e.path, limit, p.dims[d], m.name,
						w.Limit[d][n])
				}
			}
			if got := len(w.Own[n]); got != len(e.own)+len(e.rules) {
				add("%s: %d rules of ownership were read, plan %s has %d", e.path, len(e.own)+len(e.rules), m.name, got)
			}
		}
	}
	if len(wrong) > 0 {
		more := ""
		if len(wrong) > faultsMax {
			wrong, more = wrong[:faultsMax], "\nand more"
		}
		return fmt.Errorf("%w: the policy does not say what the files say:\n%s%s", ErrImporter,
			strings.Join(wrong, "\n"), more)
	}
	return nil
}

// unfit is how many units of some rows fit no host of their plan, and one of the rows.
type unfit struct {
	units  int64
	reason string // of the first shortfall: consumer, allocation and reason
}

// prove does what the user of an import does next: it gives the hosts and the demand to stint and runs a cycle. Demand
// that comes over time is checked but not run, because all of it at once is no cycle that anybody wants.
func prove(policy *plan.Policy, d *datasets.Dataset, overTime bool) (unfit, error) {
	if d.Hosts == nil {
		return unfit{}, nil
	}
	state, err := cluster.New(policy)
	if err != nil {
		return unfit{}, fmt.Errorf("%w: the policy: %w", ErrImporter, err)
	}
	if err := state.SetHosts(d.Hosts, true); err != nil {
		return unfit{}, fmt.Errorf("%w: the hosts: %w", ErrImporter, err)
	}
	if d.Demand == nil || d.Demand.Rows == 0 {
		return unfit{}, nil
	}
	if err := state.SetDemand("import", head(d.Demand, proofRowsMax)); err != nil {
		return unfit{}, fmt.Errorf("%w: the demand: %w", ErrImporter, err)
	}
	if overTime {
		return unfit{}, nil
	}
	var runner cycle.Runner
	var out decision.Cycle
	runner.Run(state, 0, &out)
	return unfitting(&out.Shortfalls), nil
}

// hopeless are the reasons that no policy could mend.
var hopeless = []string{decision.Reasons[decision.ReasonTooBig], decision.Reasons[decision.ReasonNoHostMatches]}

// unfitting adds up the shortfalls that no policy could mend: the unit is larger than every host that it may use.
func unfitting(s *decision.Shortfalls) (u unfit) {
	for i, units := range s.UnitsShort {
		reason := s.Reason.At(i)
		if !slices.Contains(hopeless, reason) {
			continue
		}
		if u.units == 0 {
			u.reason = fmt.Sprintf("%s, allocation %s: %s", s.Consumer.At(i), s.Allocation.At(i), reason)
		}
		u.units += units
	}
	return u
}

// head returns the first rows of a table of demand.
func head(t *cluster.DemandTable, rows int) *cluster.DemandTable {
	if t.Rows <= rows {
		return t
	}
	some := *t
	some.Rows = rows
	for _, c := range []*cluster.TextColumn{&some.Consumer, &some.Allocation, &some.Sub, &some.Plan, &some.Requirement,
		&some.Together} {
		c.Code = c.Code[:min(rows, len(c.Code))]
	}
	for _, c := range []*[]int64{&some.Units, &some.MaxPerHost, &some.MinUnits} {
		*c = (*c)[:min(rows, len(*c))]
	}
	some.Size = slices.Clone(t.Size)
	for d := range some.Size {
		some.Size[d] = some.Size[d][:min(rows, len(some.Size[d]))]
	}
	return &some
}
