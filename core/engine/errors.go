package engine

import (
	"fmt"
)

// Kind is a kind of refusal. Its text is stable: it ends up in responses.
type Kind string

// The kinds of refusals.
const (
	Busy      Kind = "busy"       // come again
	Stopping  Kind = "stopping"   // the service ends
	Full      Kind = "disk-full"  // no room to make it durable
	Unkept    Kind = "not-kept"   // where it is to be made durable cannot be reached
	NoPlan    Kind = "no-plan"    // there is no policy yet
	BadRows   Kind = "bad-rows"   // Cause lists them
	BadPlan   Kind = "bad-plan"   // Cause lists the faults
	Revision  Kind = "revision"   // made from a revision that is not the newest
	Shrink    Kind = "shrink"     // would release too much
	KeyReused Kind = "key-reused" // the idempotency key came with another body before
	Silent    Kind = "silent"     // changes of a source that was silent too long
	Forbidden Kind = "forbidden"  // not for this role
	NoSource  Kind = "no-source"  // there is none of that name
	TooMany   Kind = "too-many"   // a limit of the engine
	Compacted Kind = "compacted"  // so old a cycle is not kept
	Future    Kind = "future"     // a cycle that was not yet
	NotLeader Kind = "not-leader" // another process leads
	Moved     Kind = "moved"      // the policy changed since the input was decoded: decode it again
)

// Error is why an input was refused. Nothing has changed then.
type Error struct {
	Kind   Kind
	Detail string
	Cause  error // *cluster.Faults or plan.Faults where there are any

	// HostsClosed is how many hosts of a refused table get no new grants until a later one names them, or is full.
	HostsClosed int64
}

// Error is the detail.
func (e *Error) Error() string { return e.Detail }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }

func refuse(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Detail: fmt.Sprintf(format, args...)}
}

func errBusy(format string, args ...any) error { return refuse(Busy, format, args...) }

func errStopping() error { return refuse(Stopping, "the service is stopping") }

// errUnsure is the answer to an input that the journal failed to make durable.
func errUnsure(err error) error {
	return refuse(Unkept, "whether the input is durable is not known: send it again, with the same Idempotency-Key "+
		"if it has one (%v)", err)
}

func errNoPlan() error {
	return refuse(NoPlan, "there is no policy yet: PUT /v1/plan comes first")
}
