package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/stintd/stint/core/decision"
)

// flushMax is how long the end of the service waits for the log. What is missing then, the next start writes.
const flushMax = 20 * time.Second

// lane takes cycles to the decision log, one after the other, in a goroutine of its own. Cycles do not wait for a log
// that cannot be written: when too many wait for it, it gets no more until the next start, which decides them again.
type lane struct {
	o        Options
	mu       sync.Mutex
	wake     chan struct{}
	halt     chan struct{} // closed when the service ends
	done     chan struct{}
	waiting  []laneCycle
	bytes    int64 // of inputs, those of the cycle to come included
	failing  bool
	lost     bool // cycles were left out: nothing may follow them
	missed   int64
	stopping bool
	until    time.Time
	written  int64         // the last cycle in the log
	advanced chan struct{} // closed when written is another, or will never be
	ended    bool          // no cycle is written any more
}

type laneCycle struct {
	cycle  *decision.Cycle
	inputs []*Input
}

func newLane(o Options) *lane {
	l := &lane{
		o: o, wake: make(chan struct{}, 1), halt: make(chan struct{}), done: make(chan struct{}),
		written:  o.Exporter.Last(),
		advanced: make(chan struct{}),
	}
	go l.run()
	return l
}

// room tells whether an input of so many bytes may wait for the log. While the log cannot be
// written at all it may: the journal keeps it.
func (l *lane) room(bytes int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost || l.bytes == 0 || l.bytes+bytes <= l.o.BacklogBytesMax || l.failing
}

// hold counts the bytes of an accepted input.
func (l *lane) hold(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes += bytes
}

// push hands a cycle over. It waits while a log that works is behind by BacklogCyclesMax cycles.
func (l *lane) push(c *decision.Cycle, inputs []*Input) {
	for {
		l.mu.Lock()
		full := len(l.waiting) >= l.o.BacklogCyclesMax || l.failing && l.bytes > l.o.BacklogBytesMax
		switch {
		case l.lost || full && l.failing:
			if !l.lost {
				l.o.Log.Error("the decision log cannot be written; it gets the missing cycles at the next start",
					"from", c.Summary.Cycle)
			}
			l.lost = true
			l.advance()
			l.missed++
			l.bytes -= bytesOf(inputs)
			l.mu.Unlock()
			return
		case !full:
			l.waiting = append(l.waiting, laneCycle{c, inputs})
			l.mu.Unlock()
			select {
			case l.wake <- struct{}{}:
			default:
			}
			return
		}
		l.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

func bytesOf(inputs []*Input) (n int64) {
	for _, in := range inputs {
		n += int64(len(in.Body))
	}
	return n
}

// behind is how many cycles the log lacks.
func (l *lane) behind() (cycles int64, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.waiting)) + l.missed, l.lost
}

// stop waits until the log has what it can get.
func (l *lane) stop() {
	l.mu.Lock()
	l.stopping, l.until = true, time.Now().Add(flushMax)
	l.mu.Unlock()
	close(l.halt)
	close(l.wake)
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := int64(len(l.waiting)) + l.missed; n > 0 {
		l.o.Log.Warn("the decision log lacks cycles; it gets them at the next start", "cycles", n)
	}
}

// advance wakes those who wait for a cycle to be in the log.
func (l *lane) advance() {
	close(l.advanced)
	l.advanced = make(chan struct{})
}

// wait waits until the log has a cycle, durably; false when it will not get it before the next start.
func (l *lane) wait(cycle int64) bool {
	for {
		l.mu.Lock()
		there, never, advanced := l.written >= cycle, l.lost || l.ended, l.advanced
		l.mu.Unlock()
		if there || never {
			return there
		}
		<-advanced
	}
}

// sound tells whether the log is being written.
func (l *lane) sound() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.lost && !l.failing
}

// begin has a log that has no cycle begin behind one.
func (l *lane) begin(cycle int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written = cycle
}

// had is the last cycle that the log had when the engine was made, or has got since.
func (l *lane) had() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written
}

func (l *lane) run() {
	defer close(l.done)
	defer func() {
		l.mu.Lock()
		l.ended = true
		l.advance()
		l.mu.Unlock()
	}()
	for {
		l.mu.Lock()
		var next *laneCycle
		if len(l.waiting) > 0 {
			next = &l.waiting[0]
		}
		stopping, until := l.stopping, l.until
		l.mu.Unlock()
		if stopping && (next == nil || time.Now().After(until)) {
			return
		}
		if next == nil {
			<-l.wake
			continue
		}
		c := *next.cycle // the log writes into the summary
		err := l.o.Exporter.Cycle(&c, next.inputs)
		if err == nil {
			l.o.Step("exported")
			l.mu.Lock()
			l.bytes -= bytesOf(next.inputs)
			l.waiting[0] = laneCycle{}
			l.waiting = l.waiting[1:]
			l.failing = false
			l.written = c.Summary.Cycle
			l.advance()
			l.mu.Unlock()
			continue
		}
		l.o.Log.Error("the decision log cannot be written; trying again", "cycle", c.Summary.Cycle, "error", err)
		l.mu.Lock()
		l.failing = true
		l.mu.Unlock()
		if stopping {
			return
		}
		select {
		case <-l.halt:
		case <-time.After(l.o.BacklogRetryDelay):
		}
	}
}

// errAhead is why an engine does not start.
var errAhead = errors.New("the decision log is ahead of the journal")
