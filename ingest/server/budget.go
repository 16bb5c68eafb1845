package server

import (
	"fmt"
	"sync"
)

// budget is so much of something (bytes, long polls) that callers share. A caller may have no more than stays free for
// others: alone it gets half, n callers that all want more get 1/(n+1) each, and there is always something left for one
// who comes.
type budget struct {
	max  int64
	mu   sync.Mutex
	used int64
	of   map[string]int64 // by caller
}

func newBudget(max int64) *budget { return &budget{max: max, of: map[string]int64{}} }

// alone is the most that a caller can have.
func (b *budget) alone() int64 { return (b.max + 1) / 2 }

// take takes n for a caller, if its share bears it. It is taken whole or not at all.
func (b *budget) take(caller string, n int64) bool {
	if n > b.max {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[caller]+n > b.max-b.used-n+1 {
		return false
	}
	b.add(caller, n)
	return true
}

// give gives back.
func (b *budget) give(caller string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(caller, -n)
}

// pass has another caller have what one had.
func (b *budget) pass(from, to string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(from, -n)
	b.add(to, n)
}

func (b *budget) add(caller string, n int64) {
	b.used += n
	if b.of[caller] += n; b.of[caller] == 0 {
		delete(b.of, caller)
	}
	if b.used < 0 || b.of[caller] < 0 {
		panic(fmt.Sprintf("BUG: %d of a budget are used, %d by %s", b.used, b.of[caller], caller))
	}
}

// inUse is how much all have.
func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// account is the memory that one request has of a budget.
type account struct {
	b      *budget
	caller string
	what   string // for messages: what the memory is for
	mu     sync.Mutex
	held   int64
}

func (b *budget) account(caller, what string) *account {
	return &account{b: b, caller: caller, what: what}
}

// take takes so many bytes more, or gives some back. Error: a problem, 413 where the request alone needs more than a
// caller can ever have, else 429.
func (a *account) take(bytes int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case bytes < 0:
		a.b.give(a.caller, -bytes)
	case a.held+bytes > a.b.alone():
		return overLimit(fmt.Sprintf("the request takes more than %d bytes of memory (%s), which is all that a caller "+
			"gets: send it in smaller pieces, or raise memory_max", a.b.alone(), a.what))
	case !a.b.take(a.caller, bytes):
		return busy("this caller's share of the memory (" + a.what +
			") is taken: come again, with fewer requests at once")
	}
	a.held += bytes
	return nil
}

// close gives all back.
func (a *account) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.b.give(a.caller, a.held)
	a.held = 0
}

// pages are tables that answers under way are made of. Answers share them: each counts once, for the caller who has had
// it longest.
type pages struct {
	b  *budget
	mu sync.Mutex
	of map[any]*page
}

type page struct {
	bytes   int64
	callers []string // one for each answer
}

// pin keeps a table that a key stands for, until unpin is called. Error: a problem when there is no room.
func (p *pages) pin(caller string, key any, bytes int64) (unpin func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of[key]
	if one == nil {
		if !p.b.take(caller, bytes) {
			return nil, busy(fmt.Sprintf("a table of %d bytes is asked for, and this caller's share of the memory for "+
				"answers is taken: read those under way first, or raise memory_max", bytes))
		}
		one = &page{bytes: bytes}
		p.of[key] = one
	}
	one.callers = append(one.callers, caller)
	return sync.OnceFunc(func() { p.unpin(caller, key) }), nil
}

func (p *pages) unpin(caller string, key any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of[key]
	pays := one.callers[0]
	for i := len(one.callers) - 1; i >= 0; i-- { // the latest of the caller's
		if one.callers[i] == caller {
			one.callers = append(one.callers[:i], one.callers[i+1:]...)
			break
		}
	}
	switch {
	case len(one.callers) == 0:
		p.b.give(pays, one.bytes)
		delete(p.of, key)
	case one.callers[0] != pays:
		p.b.pass(pays, one.callers[0], one.bytes)
	}
}
