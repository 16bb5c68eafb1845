package engine

// source is what is known of a feed.
type source struct {
	heardUS int64
	rows    int64  // of its last snapshot
	owner   string // the caller that pushed to it first, of those that may not do all; "" until there is one
}

// sourceIdleUS is how long a source that has nothing is remembered when there is no room for another.
const sourceIdleUS = keyTTLUS

// seekUS is how long nobody looks again for sources to forget where none was found.
const seekUS = 1_000_000

// admitSource checks that there is room for an input's source, when it is new, and that it is nobody else's.
func (e *Engine) admitSource(in *Input) error {
	s := e.sources[in.Source]
	switch {
	case in.Source == "":
		return nil
	case s == nil && in.Kind == InputDemandDelete:
		return refuse(NoSource, "there is no source %q", in.Source)
	case s == nil:
		return e.admitNew(in)
	case in.Owner != "" && s.owner != "" && s.owner != in.Owner:
		return refuse(Forbidden, "source %q belongs to another token, which pushed to it first", in.Source)
	}
	return nil
}

// admitNew checks that another source may be remembered.
func (e *Engine) admitNew(in *Input) error {
	of, full := e.fullFor(in.Owner)
	if !full {
		return nil
	}
	if in.AtUS >= e.soughtUS && in.AtUS < e.soughtUS+seekUS || len(e.idle(of, in.AtUS)) == 0 {
		e.soughtUS = in.AtUS
		if of != "" {
			return refuse(TooMany, "source %q: this token has %d sources already, as many as one may have; "+
				"DELETE /v1/demand/{source} removes one", in.Source, e.o.SourcesPerCallerMax)
		}
		return refuse(TooMany, "source %q: there are %d sources already, as many as allowed; "+
			"DELETE /v1/demand/{source} removes one", in.Source, e.o.SourcesMax)
	}
	return nil
}

// fullFor tells whether there is no room for another source of a caller, and whose must go to make some: the caller's,
// or, when of is "", anybody's.
func (e *Engine) fullFor(owner string) (of string, full bool) {
	if owner != "" {
		owned := 0
		for _, s := range e.sources {
			if s.owner == owner {
				owned++
			}
		}
		if owned >= e.o.SourcesPerCallerMax {
			return owner, true
		}
	}
	return "", len(e.sources) >= e.o.SourcesMax
}

// idle lists the sources, of one owner unless that is "", that want and hold nothing and that nobody has pushed to for
// long. O(sources), and O(allocations) when there may be any.
func (e *Engine) idle(owner string, nowUS int64) (names []string) {
	for name, s := range e.sources {
		if nowUS-s.heardUS > sourceIdleUS && (owner == "" || s.owner == owner) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	busy := e.state.BusySources()
	some := names[:0]
	for _, name := range names {
		if !busy[name] {
			some = append(some, name)
		}
	}
	return some
}

// noteSource remembers the source of an input that was taken.
func (e *Engine) noteSource(in *Input) {
	if in.Kind == InputDemandDelete {
		delete(e.sources, in.Source)
		e.keys.forget(in.Source)
		return
	}
	s := e.sources[in.Source]
	if s == nil {
		if of, full := e.fullFor(in.Owner); full {
			for _, name := range e.idle(of, in.AtUS) {
				delete(e.sources, name)
			}
		}
		s = new(source)
		e.sources[in.Source] = s
	}
	if s.owner == "" {
		s.owner = in.Owner
	}
	s.heardUS = in.AtUS
	if in.Kind == InputDemand {
		s.rows = in.Rows
	}
}
