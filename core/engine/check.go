package engine

import "github.com/stintd/stint/core/cluster"

// Check tells whether Submit would take a table as things stand, and changes nothing, save that hosts of a table that
// the shrink guard refuses are closed as Submit closes them: of what is given to several
// engines none takes its part when one refuses its own. Of hosts it looks at the conditions alone.
func (e *Engine) Check(in *Input) error {
	if e.following.Load() {
		return errFollowing()
	}
	err := e.Ask(func(s *cluster.State) (err error) {
		in.AtUS = e.clock()
		if in.Owner = ""; in.Principal != nil {
			in.Owner = in.Author
		}
		if _, ok, err := e.repeated(in); ok || err != nil {
			return err
		}
		if err := e.admit(in); err != nil {
			return err
		}
		s.ReportUnknown = in.ReportUnknown
		switch in.Kind {
		case InputDemand:
			err = s.CheckDemand(in.Source, in.Table.(*cluster.DemandTable))
		case InputDemandChanges:
			err = s.CheckChanges(in.Source, in.Table.(*cluster.DemandTable))
		case InputRunning:
			_, err = s.WouldRun(in.Source, in.Table.(*cluster.HoldingTable))
		case InputReleases:
			err = s.CheckRelease(in.Table.(*cluster.HoldingTable))
		}
		if err != nil {
			return badInput(in, err)
		}
		return nil
	})
	if err != nil {
		e.followHosts(in, err)
	}
	return err
}
