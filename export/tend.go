package export

import (
	"context"
	"time"
)

// looseMax is how many cycles may be loose, each with files of its own, before Tend puts them together.
const looseMax = 1000

// tendDelay is how long Tend waits after a compaction that failed, and at the least between two.
const tendDelay = 10 * time.Second

// TendOptions say how a log is kept small while it is written.
type TendOptions struct {
	Every    time.Duration // the log is compacted so often, and whenever a thousand cycles have come; 0: not at all
	KeepDays int           // see CompactOptions
	Grace    time.Duration
	Done     func(c Compacted, took time.Duration, err error) // told of each compaction; nil: nobody is told
}

// Tend compacts the log again and again, beside the goroutine that writes it, until ctx is done. The Writer must not
// be closed before it has returned.
func (w *Writer) Tend(ctx context.Context, o TendOptions) {
	if o.Every <= 0 {
		return
	}
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		case <-w.full:
		}
		start := time.Now()
		c, err := w.Compact(CompactOptions{KeepDays: o.KeepDays, Today: true, Grace: o.Grace, Stop: ctx.Done()})
		if o.Done != nil {
			o.Done(c, time.Since(start), err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(o.Every, tendDelay)):
		}
		next.Reset(o.Every)
	}
}
