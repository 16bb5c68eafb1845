package engine

// forgetNames drops the names that nothing has any more, when they are many: neither the demand that there is, nor the
// cycles whose events are kept. It comes right before a cycle, which makes all tables of the new names; views that were
// published keep theirs.
func (e *Engine) forgetNames() {
	s := e.state
	if s.MayForgetNeeds() || e.o.ForgetAlways {
		s.ForgetNeeds()
	}
	if !s.MayForget(min(e.recentNames, 4*e.rows)) && !e.o.ForgetAlways { // a row of events has four names at most
		return
	}
	labelOf, sourceOf := s.Forget(func(label, source func(int32)) {
		for _, c := range e.recent {
			c.EachName(label, source)
		}
	})
	label, source := s.Label.Frozen(), s.Source.Frozen()
	recent := e.recent
	e.recent = nil
	for _, c := range recent {
		e.recent = append(e.recent, c.RenameEvents(labelOf, sourceOf, label, source))
	}
	e.recentNames = max(0, s.NamesKnown()-s.NamesUsed())
}
