package cycle

import (
	"runtime"

	"github.com/stintd/stint/core/cluster"
)

// thing is what tasks read and write, as a bitset of things.
type thing uint32

// The things of a cycle. The planner of each plan is one thing; planners behind the first plansMost-1 share one.
const (
	theState thing = 1 << iota
	theEvents
	theGrants
	theShortfalls
	theStates
	firstPlan
)

const plansMost = 24 // things that stand for planners, at most

// planThing is the thing that stands for a plan's planner.
func planThing(plan int) thing { return firstPlan << min(plan, plansMost-1) }

// task is a part of a cycle. Of things that other tasks write, a task touches only those in reads and writes.
type task struct {
	reads, writes thing
	do            func()
}

// conflicts tells whether one of two tasks writes a thing that the other touches. Such tasks are done in listed order.
func (t *task) conflicts(o *task) bool {
	return t.writes&(o.reads|o.writes) != 0 || t.reads&o.writes != 0
}

// run does tasks, as many at once as there are processors. A task waits for the tasks before it in the list that
// conflict with it.
func (r *Runner) run(list []task) {
	waits := make([]int, len(list)) // for how many other tasks
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
	done, running := make(chan ended, len(list)), 0
	given := false // up
	for len(ready) > 0 || running > 0 {
		for len(ready) > 0 && running < most-1 {
			at := next()
			running++
			go func() { done <- ended{at, stops(list[at].do)} }()
		}
		if len(ready) > 0 { // the caller's goroutine does tasks too
			at := next()
			given = stops(list[at].do) || given
			release(at)
		} else {
			one := <-done
			given = one.stopped || given
			release(one.task)
			running--
		}
		for more := true; more; {
			select {
			case one := <-done:
				given = one.stopped || given
				release(one.task)
				running--
			default:
				more = false
			}
		}
	}
	if given {
		panic(cluster.Stopped{})
	}
}

// ended is a task that is done, or that gave the cycle up.
type ended struct {
	task    int
	stopped bool
}

// stops calls a function, and tells whether it gives the cycle up. Another panic is a bug and ends the process.
func stops(do func()) (stopped bool) {
	defer func() {
		switch v := recover(); v.(type) {
		case nil:
		case cluster.Stopped:
			stopped = true
		default:
			panic(v)
		}
	}()
	do()
	return false
}

// both calls two functions at once, of which neither writes what the other reads.
func both(f, g func()) {
	done := make(chan bool)
	go func() { done <- stops(g) }()
	stopped := stops(f)
	if <-done || stopped {
		panic(cluster.Stopped{})
	}
}
