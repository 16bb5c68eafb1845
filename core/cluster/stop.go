package cluster

// Stopped is the value of the panic that gives a cycle up. Package cycle recovers it.
type Stopped struct{}

// Yield gives the cycle under way up where Stop asks for it. Stages call it at bounded intervals of work: what they
// leave of the state is of no use to anybody. Nothing that is decided depends on it.
func (s *State) Yield() {
	if s.Stop != nil && s.Stop() {
		panic(Stopped{})
	}
}
