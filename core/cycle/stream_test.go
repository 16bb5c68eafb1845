package cycle_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
)

// This file plays long streams of single operations, where random_test.go makes short cases of large steps: states that
// take many changes to come about, and what goes stale meanwhile.

// streamLen is how many operations a stream has.
const streamLen = 200

// TestStreams plays random streams of operations on plans that lend, on engine, twin and oracle; after each operation
// comes a cycle. A stream that fails is reduced, and printed as a scenario file.
func TestStreams(t *testing.T) {
	setCases(t, 3, 100)
	counts := map[string]int{}
	set(t, "rapid.steps", strconv.Itoa(streamLen))
	defer set(t, "rapid.steps", "30")
	rapid.Check(t, func(t *rapid.T) { stream(t).count(counts) })
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-40s %8d", name, counts[name])
	}
}

// stream plays one stream.
func stream(t *rapid.T) *player {
	p := newPlayer(t, lendKind)
	p.alone = true
	whole := false
	defer func() {
		if !whole {
			keepFailed(t, "stream", p.scenario())
			t.Logf("%s\nIts last cycle:\n%s", p.scenario(), p.decided())
		}
	}()
	p.operate(t, p.drawStep(t, true, nil))
	ops := map[string]func(t *rapid.T){
		"a host is added":        func(t *rapid.T) { p.operate(t, p.addHost(t)) },
		"a host's state":         func(t *rapid.T) { p.operate(t, p.otherState(t)) },
		"a host comes back":      func(t *rapid.T) { p.operate(t, p.backAgain(t)) },
		"a host's size":          func(t *rapid.T) { p.operate(t, p.otherSize(t)) },
		"a host leaves or joins": func(t *rapid.T) { p.operate(t, p.otherGroup(t)) },
		"a release":              func(t *rapid.T) { p.operate(t, p.release(t)) },
		"a policy":               func(t *rapid.T) { p.operate(t, step{policy: p.revise(t), forced: p.forced}) },
		"time goes by":           func(t *rapid.T) { p.operate(t, step{wait: choose(t, "wait", 1, 2, 5, 24*60-8)}) },
		"a cycle":                func(t *rapid.T) { p.operate(t, step{cycles: choose(t, "cycles", 0, 0, 1)}) },
	}
	for _, more := range []string{"", " again", " once more"} { // what is wanted changes most often
		ops["demand"+more] = func(t *rapid.T) { p.operate(t, p.otherDemand(t)) }
	}
	t.Repeat(ops)
	p.end(t)
	whole = true
	return p
}

// operate plays a step and its cycles.
func (p *player) operate(t *rapid.T, s step) {
	p.rob(p.last.Held)
	p.play(t, s)
	for k := range s.cycles + 1 {
		p.run(t, k > 0)
	}
}

// some draws the name of a host that ok accepts; there is nothing to do in this place where there is none.
func (w *world) some(t *rapid.T, ok func(h oracle.Host) bool) oracle.Host {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(w.hosts)) {
		if ok(w.hosts[name]) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Skip("no such host")
	}
	return w.hosts[pick(t, "host", names...)]
}

// changed is a step in which one host is another.
func (w *world) changed(h oracle.Host) step {
	w.hosts[h.Name] = h
	return step{hosts: []oracle.Host{h}}
}

// addHost adds a host.
func (w *world) addHost(t *rapid.T) step {
	for n := range w.names() {
		if _, known := w.hosts[hostName(n)]; !known {
			return w.changed(w.drawHost(t, n))
		}
	}
	t.Skip("no more names")
	return step{}
}

// otherState closes a host that is ok, lets it drain or fail.
func (w *world) otherState(t *rapid.T) step {
	h := w.some(t, func(h oracle.Host) bool { return h.State == "ok" })
	h.State = choose(t, "state", "closed", "draining", "draining", "unavail")
	return w.changed(h)
}

// backAgain makes a host ok that is not.
func (w *world) backAgain(t *rapid.T) step {
	h := w.some(t, func(h oracle.Host) bool { return h.State != "ok" })
	h.State = "ok"
	return w.changed(h)
}

// otherSize makes a host smaller, or another one.
func (w *world) otherSize(t *rapid.T) step {
	h := w.some(t, func(oracle.Host) bool { return true })
	h.Size = maps.Clone(h.Size)
	for _, d := range w.dims {
		if once(t, "grows", 4) {
			h.Size[d] += int64(between(t, "by", 1, 4))
		} else {
			h.Size[d] = max(0, h.Size[d]-int64(between(t, "less", 0, 3)))
		}
	}
	return w.changed(h)
}

// otherGroup takes a host out of its group, or puts it back.
func (w *world) otherGroup(t *rapid.T) step {
	out := once(t, "back", 2)
	h := w.some(t, func(h oracle.Host) bool { return (h.Attr["in"] == false) == out })
	h.Attr = maps.Clone(h.Attr)
	h.Attr["in"] = out
	return w.changed(h)
}

// otherDemand makes a new snapshot of a source.
func (w *world) otherDemand(t *rapid.T) step {
	source := choose(t, "source", sources...)
	return step{demand: []snapshot{{source, slices.Clone(w.drawDemand(t, source))}}}
}

// release gives back some of what is held in one place.
func (p *player) release(t *rapid.T) step {
	held := slices.DeleteFunc(slices.Clone(p.last.Held), func(u oracle.Units) bool { return p.lostOn(u) })
	if len(held) == 0 {
		t.Skip("nothing is held")
	}
	return step{releases: []oracle.Holding{p.drawRelease(t, pick(t, "held", held...))}}
}

// lostOn tells whether units are on a host that is in another plan by now, or nowhere: their work is lost.
func (w *world) lostOn(u oracle.Units) bool {
	in := w.planOf(u.Host)
	return in != u.Plan && (in != "" || w.hosts[u.Host].Name == "")
}

// drawRelease gives back some of what is held, or a unit more than that.
func (w *world) drawRelease(t *rapid.T, u oracle.Units) oracle.Holding {
	row := oracle.Holding{Consumer: u.Consumer, Allocation: u.Allocation, Sub: u.Sub, Host: u.Host,
		Units: int64(upTo(t, "released", 1, int(u.Units)+1)), Done: odds(t, "done", 2)}
	w.drawDeviceRelease(t, &row, u)
	return row
}
