package cycle

import "runtime"

// thing is what tasks read and write, as a bitset of things.
type thing uint32

// The things of a cycle. What a plan's planner has become known of is one thing for each plan, up to plansMost; those of
// more plans than that are one.
const (
	theState thing = 1 << iota
	theEvents
	theGrants
	theShortfalls
	theStates
	firstPlan
)

const plansMost = 24 // things of plans, at most

// planThing is what a plan's planner has.
func planThing(plan int) thing { return firstPlan << min(plan, plansMost-1) }

// task is a part of a cycle. It reads and writes what it says, and nothing else that another task writes.
type task struct {
	reads, writes thing
	do            func()
}

// conflicts tells whether two tasks must not be done at once, and come in the order in which they are listed.
func (t *task) conflicts(o *task) bool {
	return t.writes&(o.reads|o.writes) != 0 || t.reads&o.writes != 0
}

// run does tasks: each once all are done that are listed before it and conflict with it, as many at once as there are
// processors.
func (r *Runner) run(list []task) {
	waits := make([]int, len(list)) // for how many others
	var ready []int
	for i := range list {
		for k := range i {
			if list[i].conflicts(&list[k]) {
				waits[i]++
			}
		}
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	release := func(at int) {
		for i := at + 1; i < len(list); i++ {
			if list[i].conflicts(&list[at]) {
				if waits[i]--; waits[i] == 0 {
					ready = append(ready, i)
				}
			}
		}
	}
	next := func() (at int) {
		i := 0
		if r.pick != nil {
			i = r.pick(len(ready))
		}
		at = ready[i]
		ready = append(ready[:i], ready[i+1:]...)
		return at
	}
	most := runtime.GOMAXPROCS(0)
	if r.pick != nil || len(list) == 1 {
		most = 1
	}
	done, running := make(chan int, len(list)), 0
	for len(ready) > 0 || running > 0 {
		for len(ready) > 0 && running < most-1 {
			at := next()
			running++
			go func() {
				list[at].do()
				done <- at
			}()
		}
		if len(ready) > 0 { // this goroutine is one of them
			at := next()
			list[at].do()
			release(at)
		} else {
			release(<-done)
			running--
		}
		for more := true; more; {
			select {
			case at := <-done:
				release(at)
				running--
			default:
				more = false
			}
		}
	}
}

// both calls two functions at once, of which neither writes what the other reads.
func both(f, g func()) {
	done := make(chan struct{})
	go func() {
		g()
		close(done)
	}()
	f()
	<-done
}
