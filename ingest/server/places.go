package server

import (
	"slices"
	"sync"
	"time"
)

// places are what few may have at once, handed out in turn: of the callers that wait, each gets a place before any gets
// its next.
type places struct {
	one     int // places that one caller may have; there is one more, for others
	waitMax time.Duration
	queue   *budget // of those who wait
	full    problem // the refusal of who may not wait, or waited too long

	mu      sync.Mutex
	free    int
	held    map[string]int
	waiting map[string][]*ticket // by caller, the first first
	turn    []string             // the callers that wait, each once, the next first
}

// ticket is one who waits. Both fields change under the lock of the places.
type ticket struct {
	called chan struct{}
	given  bool
}

func newPlaces(one, waiting int, waitMax time.Duration) *places {
	return &places{
		one: one, free: one + 1, waitMax: waitMax, queue: newBudget(int64(waiting)),
		held: map[string]int{}, waiting: map[string][]*ticket{},
		full: busy("this caller has too many bodies that wait to be decoded: come again, with fewer at once"),
	}
}

// newPlace is one place that callers have in turn.
func newPlace(waiting int, waitMax time.Duration) *places {
	p := newPlaces(1, waiting, waitMax)
	p.free = 1
	p.full = problem{Type: "busy", Status: 429, RetryAfter: 5, Detail: "what-ifs and simulations are decided one " +
		"at a time, in turns of callers: this caller has too many that wait, or waited too long; come again, with " +
		"one at once"}
	return p
}

// enter waits for a place, until the time is up or end is closed. Error: a problem; else leave must be called.
func (p *places) enter(caller string, end <-chan struct{}) (leave func(), err error) {
	if !p.queue.take(caller, 1) {
		return nil, p.full
	}
	defer p.queue.give(caller, 1)
	t := &ticket{called: make(chan struct{})}
	p.mu.Lock()
	if len(p.waiting[caller]) == 0 {
		p.turn = append(p.turn, caller)
	}
	p.waiting[caller] = append(p.waiting[caller], t)
	p.call()
	p.mu.Unlock()
	timer := time.NewTimer(p.waitMax)
	defer timer.Stop()
	select {
	case <-t.called:
		return sync.OnceFunc(func() { p.leave(caller) }), nil
	case <-timer.C:
		err = p.full
	case <-end:
		err = stopping()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.given { // meanwhile
		return sync.OnceFunc(func() { p.leave(caller) }), nil
	}
	list := p.waiting[caller]
	for i := range list {
		if list[i] == t {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if p.waiting[caller] = list; len(list) == 0 {
		delete(p.waiting, caller)
		p.turn = slices.DeleteFunc(p.turn, func(c string) bool { return c == caller })
	}
	return nil, err
}

func (p *places) leave(caller string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.held[caller]--; p.held[caller] == 0 {
		delete(p.held, caller)
	}
	p.call()
}

// call hands out what is free. Callers that have all they may keep their turn.
func (p *places) call() {
	var later []string
	for len(p.turn) > 0 && p.free > 0 {
		caller := p.turn[0]
		p.turn = p.turn[1:]
		if p.held[caller] >= p.one {
			later = append(later, caller)
			continue
		}
		list := p.waiting[caller]
		list[0].given = true
		close(list[0].called)
		p.held[caller]++
		p.free--
		if p.waiting[caller] = list[1:]; len(list) > 1 {
			p.turn = append(p.turn, caller)
		} else {
			delete(p.waiting, caller)
		}
	}
	p.turn = append(later, p.turn...)
}

// waits is how many wait.
func (p *places) waits() int64 { return p.queue.inUse() }
