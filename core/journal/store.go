package journal

import (
	"context"
	"errors"
	"io"
)

// Store is where a service keeps what it must not lose: records in the order of their numbers, bodies that they name,
// and checkpoints, each of which stands for all records up to one. It is opened, restored and replayed, and takes
// records then.
//
// A folder is one (Open), of one process. A bucket of an object store is another, of several: see Shared.
type Store interface {
	// Restore offers the checkpoints to load, the newest first, until it takes one. passed are the reasons why newer
	// ones were not taken.
	Restore(load func(seq uint64, r io.Reader, bytes int64) error) (seq uint64, passed []error, err error)
	// Replay visits the records behind that checkpoint, in order.
	Replay(visit func(Record) error) error
	// Last is the number of the last record, 0 when there is none. It is known after Replay.
	Last() uint64
	// Cut tells what Replay took off the end; nil: nothing.
	Cut() *Cut

	// Put keeps a body and names it, so that a record may: before Append, and from any goroutine. Where records have
	// their bodies it does nothing.
	Put(body []byte) (name string, err error)
	// Append adds a record behind the last one: a head, and a body with the name that Put gave. It is durable for
	// certain only after Sync.
	Append(kind byte, essential bool, head, body []byte, name string) (seq uint64, err error)
	// Undo takes the last record back, before Sync.
	Undo()
	// Sync makes all records appended so far durable, in their places, or gives an error: of those nothing is known
	// then. ErrDeposed is in its chain when another process has appended there.
	Sync() error
	// Checkpoint keeps what write writes, which stands for all records up to seq, and drops what recovery does not need
	// any more. It may run beside the other methods but Close, one call at a time.
	Checkpoint(seq uint64, write func(io.Writer) error) error
	// Bytes is how much the records take.
	Bytes() int64
	Close() error
}

// Shared is a store that several processes have. One of them leads: it alone appends.
type Shared interface {
	Store
	// Follow visits the records that others append, in order, until this process leads: then it gives nil, and records
	// are taken. It comes after Replay. Errors: ctx is done, what visit gives, ErrDropped.
	Follow(ctx context.Context, visit func(Record) error) error
	// Wait reads what others append, without visiting records, until there is a newer checkpoint than after Replay or
	// Restore. It never leads. The store must be opened anew then.
	Wait(ctx context.Context) error
	// Observe reads who leads, and nothing else, until ctx is done. It comes in place of Restore and Replay.
	Observe(ctx context.Context) error
	// Leader is who leads, as far as is known; Trouble is why the store cannot be read just now, "" when it can. Any
	// goroutine may ask.
	Leader() Leader
	Trouble() string
	// Lost is closed when this process led and does no more.
	Lost() <-chan struct{}
}

// Leader is the process that leads.
type Leader struct {
	Name    string // "": nobody is known to
	Address string // where it takes requests; "": it does not say
	Self    bool   // it is this process
	Term    uint64 // grows with every change
}

// ErrDeposed is in the chain of errors of a Shared store when another process leads. The store must be opened anew.
var ErrDeposed = errors.New("another process leads")

// ErrDropped is in the chain of errors of Follow when the records that come next are not kept any more. The store must
// be opened anew.
var ErrDropped = errors.New("the records that come next are not kept any more")

var _ Store = (*Journal)(nil)
