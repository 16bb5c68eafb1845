package engine

import (
	"context"
	"errors"
	"fmt"
)

// Fed is a record that another process appended. What came of it is sent to Done.
type Fed struct {
	Seq     uint64
	Kind    byte
	Payload []byte // the engine's until it is done
	Done    chan<- error
}

// ErrDiffers is in the chain of what comes of a record that this process decides otherwise than the one that leads.
var ErrDiffers = errors.New("decided otherwise than by the leader")

// Follow takes records that another process appends, decides their cycles again and publishes them, until records is
// closed. Then Run may follow. Questions are answered meanwhile; inputs and requests for cycles are refused. A cycle
// that comes out otherwise than recorded is not published: the engine takes no record any more, and Unready says why
// (HA-2). It is for the goroutine that called Recovered.
func (e *Engine) Follow(ctx context.Context, records <-chan Fed) {
	e.following.Store(true)
	for {
		select {
		case <-ctx.Done():
			e.close()
			return
		case r := <-e.queue:
			switch {
			case r.ask == nil:
				r.answer(Receipt{}, errFollowing())
			case e.differs.Load() != nil:
				r.answer(Receipt{}, refuse(NotLeader, "%s", *e.differs.Load()))
			default:
				r.answer(Receipt{}, e.answer(r.ask))
			}
		case done := <-e.requests:
			done <- errFollowing()
		case r, more := <-records:
			if !more {
				e.lead()
				return
			}
			r.Done <- e.follow(r)
		}
	}
}

// Following tells whether another process leads.
func (e *Engine) Following() bool { return e.following.Load() }

func errFollowing() error {
	return refuse(NotLeader, "this process follows: another one takes input and runs cycles")
}

// lead begins to lead. How long ago the last input was taken is not known, and clocks of other processes are not
// compared.
func (e *Engine) lead() {
	e.following.Store(false)
	e.whole = e.o.Shared // what a process before this one told is not known
	e.time = reckoned{latestUS: max(e.now(), e.heardUS), atUS: e.o.Elapsed()}
}

// follow takes one record.
func (e *Engine) follow(r Fed) error {
	if why := e.differs.Load(); why != nil {
		return fmt.Errorf("%w: %s", ErrDiffers, *why)
	}
	e.watch.begin(fmt.Sprintf("record %d", r.Seq), 0)
	defer e.watch.end()
	var err error
	if r.Kind == recordCycle {
		err = e.followCycle(r.Seq, r.Payload)
	} else {
		err = e.followInput(r)
	}
	if err == nil || errors.Is(err, ErrOtherRules) {
		return err
	}
	why := fmt.Sprintf("record %d: %v", r.Seq, err)
	e.differs.Store(&why)
	e.o.Log.Error("this process decides otherwise than the leader; it publishes nothing any more and will not lead",
		"record", r.Seq, "error", err)
	return fmt.Errorf("%w: %s", ErrDiffers, why)
}

func (e *Engine) followInput(r Fed) error {
	revision := e.revision()
	if err := e.Replay(r.Seq, r.Kind, r.Payload); err != nil {
		return err
	}
	if e.state != nil {
		e.state.Accepted = false
	}
	in := e.pending[len(e.pending)-1]
	e.heardUS = max(e.heardUS, in.AtUS)
	if e.lane != nil {
		e.lane.hold(int64(len(in.Body)))
	}
	if e.revision() != revision {
		e.publish()
	}
	return nil
}

// followCycle decides a cycle again, and publishes it when it comes out the same.
func (e *Engine) followCycle(seq uint64, payload []byte) error {
	last, err := e.again(seq, payload)
	if err != nil {
		return err
	}
	e.compared.Add(1)
	e.finish(last)
	e.o.OnCycle(e.frozen)
	return nil
}
