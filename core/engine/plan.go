package engine

import (
	"errors"
)

// compared is what came of comparing a policy file with the newest one, of which it has the revision.
type compared struct {
	revision int64
	err      error
}

// comparesMax is how often a policy file is compared again because the policy changed meanwhile.
const comparesMax = 8

// submitPlan is Submit of a policy file. What is to be found out by reading both files is found out here, in the
// goroutine of who gives it: the writer looks at revisions alone, and has the comparison made again when the policy
// changed meanwhile.
func (e *Engine) submitPlan(in *Input) (r Receipt, err error) {
	for range comparesMax {
		in.compare(e.View().Policy)
		r, err = e.send(&request{in: in})
		var refused *Error
		if !errors.As(err, &refused) || refused.Kind != Moved {
			break
		}
	}
	return r, err
}

// compare finds out whether a policy file may follow the newest one (PLAN-5, PLAN-6). O(bytes of both).
func (in *Input) compare(was *PolicyView) {
	in.compared = compared{}
	if was == nil {
		if in.Principal != nil {
			in.compared.err = refuse(Forbidden, "only a cluster administrator may give the first policy")
		}
		return
	}
	in.compared.revision = was.Revision
	if in.Principal != nil {
		if err := in.Principal.MayPlan(was.Policy, was.Text, in.Body); err != nil {
			in.compared.err = refuse(Forbidden, "%v", err)
			return
		}
	}
	if off := in.Policy.TakesSystemOff(was.Policy); len(off) > 0 && in.Principal != nil {
		in.compared.err = refuse(Forbidden, "only a cluster administrator may take `system: true` off consumer %s",
			off[0])
		return
	}
	if err := in.Policy.Follows(was.Policy, in.Force); err != nil {
		in.compared.err = refuse(BadPlan, "%v", err)
	}
}

// admitPlan checks the conditions of another policy file (PLAN-3), for which it must have been compared with the newest
// one. O(1).
func (e *Engine) admitPlan(in *Input) error {
	switch {
	case in.IfRevision != 0 && in.IfRevision != e.revision():
		return refuse(Revision, "made from revision %d; the newest is %d", in.IfRevision, e.revision())
	case in.compared.revision != e.revision():
		return refuse(Moved, "the policy changed meanwhile, from revision %d to %d", in.compared.revision, e.revision())
	}
	return in.compared.err
}
