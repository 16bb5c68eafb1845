package engine

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/stintd/stint/core/cluster"
)

// A table of hosts that the shrink guard refuses may be right: hosts are down, and nobody has confirmed it yet. Until
// somebody does, they get no new grants: the engine closes them by an input of its own, which is journaled and logged
// like any other. A full table ends that, or changes that name the hosts: where those give no state, the engine opens
// the hosts again.

// hostState is a row of an input of the engine's own.
type hostState struct {
	Host  string `json:"host"`
	State string `json:"state"`
}

// guardedHosts are what an input of hosts leaves to be done behind it.
type guardedHosts struct {
	close  []string // hosts of a refused table that may get grants
	tables int64    // that the state had taken before it
	open   []string // hosts that an accepted table names without a state, and that the engine closed
}

// judgeHosts is the shrink guard for a table of hosts: a refusal, or nil.
func (e *Engine) judgeHosts(in *Input) error {
	t, full := in.Table.(*cluster.HostTable), in.Kind == InputHosts
	risk := e.state.HostRisk(t, full)
	if !e.tooMany(risk.Units, risk.Held) {
		return nil
	}
	lost, err := e.state.WouldLose(t, full, in.AtUS)
	if err != nil {
		return badInput(in, err)
	}
	if !e.tooMany(lost, risk.Held) {
		return nil
	}
	in.after = guardedHosts{tables: e.state.HostTables}
	for _, h := range risk.Worse {
		if e.state.Host.State[h] == cluster.OK {
			in.after.close = append(in.after.close, e.state.Host.String(int32(h)))
		}
	}
	refused := e.shrinkRefusal(lost, risk.Held, "units held")
	refused.HostsClosed = int64(len(risk.Worse))
	return refused
}

// followHosts gives the engine the input that a table of hosts leaves to be done: to close hosts for which it was
// refused, or to open those of an accepted one.
func (e *Engine) followHosts(in *Input, err error) {
	names, state := in.after.open, cluster.OK
	if err != nil {
		names, state = in.after.close, cluster.Closed
	}
	if len(names) == 0 {
		return
	}
	own, err2 := e.ownInput(in, names, state)
	if err2 == nil {
		_, err2 = e.Submit(own)
	}
	if err2 == nil {
		return
	}
	e.o.Log.Error("hosts keep their state that the shrink guard has to change", "hosts", len(names), "state",
		cluster.HostStates[state], "error", err2)
	var refused *Error
	if errors.As(err, &refused) {
		refused.HostsClosed -= int64(len(names))
	}
}

// ownInput makes the input that gives hosts a state.
func (e *Engine) ownInput(of *Input, names []string, state cluster.HostState) (*Input, error) {
	rows := make([]hostState, len(names))
	for i, name := range names {
		rows[i] = hostState{name, cluster.HostStates[state]}
	}
	body, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	in := &Input{Kind: InputHostChanges, Format: "json", Packing: "plain", Author: of.Author, Guard: true,
		Rows: int64(len(names)), Body: body, AllowShrink: true}
	if state == cluster.Closed {
		in.after.tables = of.after.tables
	}
	return in, e.o.Decode(in, e.View().Policy.Policy.Dimensions)
}

// current refuses an input of the engine's own where another table of hosts came between.
func (e *Engine) current(in *Input) error {
	if in.Guard && in.after.tables != 0 && in.after.tables != e.state.HostTables {
		return refuse(Moved, "another table of hosts came meanwhile")
	}
	return nil
}

// noteHosts remembers which hosts the engine closed. It follows apply, also after a crash.
func (e *Engine) noteHosts(in *Input) {
	t, ok := in.Table.(*cluster.HostTable)
	switch {
	case !ok:
		return
	case in.Kind == InputHosts:
		clear(e.guarded)
		return
	}
	for row := range t.Rows {
		name := t.Host.Names.String(t.Host.At(row))
		given := t.State != nil && t.State[row] != cluster.Keep
		switch {
		case in.Guard && given && t.State[row] == cluster.Closed:
			e.guarded[name] = true
		case given:
			delete(e.guarded, name)
		case e.guarded[name]:
			in.after.open = append(in.after.open, name)
		}
	}
}

// guardedNames lists the hosts that the engine closed, in order.
func (e *Engine) guardedNames() []string {
	names := make([]string, 0, len(e.guarded))
	for name := range e.guarded {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
