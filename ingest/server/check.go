package server

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/plan"
)

// changesMax bounds the changes that a check lists.
const changesMax = 1_000

// planCheck tells what comes of a policy file if it is put.
type planCheck struct {
	OK           bool          `json:"ok"`
	Consumers    int           `json:"consumers"`
	Revision     int64         `json:"revision"` // it was compared with; 0: there is none
	Refused      string        `json:"refused,omitempty"`
	Forceable    bool          `json:"forceable"` // it is refused, and with force it would be taken
	Warnings     []string      `json:"warnings"`
	Same         bool          `json:"same"`          // not a byte is another
	Changes      []plan.Change `json:"changes"`       // as stint diff tells them, the first changesMax
	ChangesCount int           `json:"changes_count"` // of all

	Windows []plan.Settings `json:"windows,omitempty"` // what each consumer has set by time window, where that is asked
}

// checkPlan tells whether a policy file would be taken, what is suspect about it, and what would change. The memory
// that its parse was allowed is free again by then, and is enough for the comparison.
func (s *Server) checkPlan(q *request) error {
	if err := q.known("force", "windows"); err != nil {
		return err
	}
	force, err := q.flag("force")
	if err != nil {
		return err
	}
	windows, err := q.flag("windows")
	if err != nil {
		return err
	}
	in := &engine.Input{Kind: engine.InputPlan}
	done, err := q.readPlan(in, true)
	if err != nil {
		return err
	}
	defer done()
	was, revision, err := s.newestPlan(q)
	if err != nil {
		return err
	}
	answer := planCheck{
		OK: true, Consumers: in.Policy.Len() - 1, Revision: revision, Warnings: []string{}, Changes: []plan.Change{},
	}
	for _, w := range in.Policy.Warnings() {
		answer.Warnings = append(answer.Warnings, w.String())
	}
	if windows {
		answer.Windows = in.Policy.Settings()
	}
	list, count := plan.Difference(was, in.Policy, changesMax)
	answer.Changes, answer.ChangesCount = append(answer.Changes, list...), count
	if was == nil {
		return q.json(200, answer)
	}
	answer.Same = was.Digest == in.Policy.Digest
	refused, err := s.refusal(q, in, was, force)
	if err != nil {
		return err
	}
	if refused != nil {
		answer.OK, answer.Refused = false, refused.Error()
	}
	if refused != nil && !force {
		forced, err := s.refusal(q, in, was, true)
		if err != nil {
			return err
		}
		answer.Forceable = forced == nil
	}
	return q.json(200, answer)
}

// refusal is why a policy file would not be taken from who asks; nil: it would. Error: the engine does not answer.
func (s *Server) refusal(q *request, in *engine.Input, was *plan.Policy, force bool) (refused, err error) {
	if refused = in.Policy.Follows(was, force); refused != nil || s.o.LogAlone {
		return refused, nil
	}
	newest := q.engine.View().Policy
	if refused = q.who.mayPut(newest, in); refused != nil {
		return refused, nil
	}
	if q.who.Role == RoleConsumerAdmin && newest != nil {
		refused = principal{q.who}.MayPlan(newest.Policy, newest.Text, in.Body) // as when it is put
		if refused != nil {
			return refused, nil
		}
	}
	err = q.engine.Ask(func(state *cluster.State) error {
		refused = state.CheckPolicy(in.Policy, force)
		return nil
	})
	return refused, err
}

// newestPlan is the newest policy and its revision; nil and 0 where there is none yet.
func (s *Server) newestPlan(q *request) (*plan.Policy, int64, error) {
	if !s.o.LogAlone {
		if p := q.engine.View().Policy; p != nil {
			return p.Policy, p.Revision, nil
		}
		return nil, 0, nil
	}
	r, text, err := s.loggedPlan(q)
	if err != nil {
		return nil, 0, err
	}
	p, err := plan.ParseAccepted(planName, text)
	return p, r.Revision, err
}
