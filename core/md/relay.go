package md

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/line"
	"github.com/stintd/stint/core/plan"
)

// In a relay the race and the lines of a pool go ahead on a goroutine of their own as if every unit found room, and hand over whose
// turn it was; units are placed behind them. Nearly all do find room: free room only falls, so that most of what fits nowhere comes last. When one
// does not, what was given so far is taken for the beginning, and the turns behind it are forgotten. What comes of it is what one
// turn after the other gives.

// relayTurns is how many turns are handed over at once, and relayRounds how often before the first are placed.
const (
	relayTurns  = 1 << 10
	relayRounds = 4
)

// calmMin is how many units have to find room one after the other before a relay is begun: where the pool is full none may.
const calmMin = 1 << 12

// relay is its memory.
type relay struct {
	from     int64 // units by which it is worth it; 0: it is not
	calm     int64 // turns since one was in vain
	patience int64 // turns without one in vain that it waits for
	turns    [relayRounds][]cluster.SubID
}

// readyRelay tells the relay how many units of a pool are outstanding. Only the public pool is worth it: others are small, and served two at a time.
// Share limits go by what was given, so that turns cannot go ahead of it.
func (g *granter) readyRelay(o *pool, outstanding int64) {
	r := &g.relay
	r.from, r.calm = g.spreadFrom(), 0
	if r.patience = min(r.from, calmMin); o.node != plan.Root || outstanding < r.from || len(g.pooled) > 0 || len(g.fairness.undone) > 0 {
		r.from = 0
	}
}

// serveAll serves those in line until nobody is left.
func (g *granter) serveAll(o *pool) {
	r := &g.relay
	for {
		if r.from > 0 && r.calm >= r.patience {
			if g.serveAhead(o) {
				return
			}
			r.calm, r.patience = 0, 4*r.patience+r.from
		}
		at := g.race.Next()
		if at < 0 {
			return
		}
		r.calm++
		more, stays := g.serve(o, o.node+plan.Node(at))
		g.race.Served(at, more, stays)
	}
}

// serveAhead is a relay until a unit finds no room, whose turn it is then; it tells whether nobody is left.
func (g *granter) serveAhead(o *pool) bool {
	r, given := &g.relay, g.given
	full, free := make(chan []cluster.SubID, relayRounds), make(chan []cluster.SubID, relayRounds)
	for i := range r.turns {
		if r.turns[i] == nil {
			r.turns[i] = make([]cluster.SubID, 0, relayTurns)
		}
		free <- r.turns[i]
	}
	go g.runAhead(o, free, full)
	for turns := range full {
		for _, sub := range turns {
			k := g.seek(o, g.p.Pairs.Leaf[g.s.Sub.Pair[sub]], sub)
			if k == cluster.NoID {
				close(free)
				for range full { // so that nobody is ahead any more
				}
				g.given = given
				g.goBack(o)
				return false
			}
			given = append(given, gift{sub, k})
		}
		free <- turns
	}
	close(free)
	g.given = given
	return true
}

// runAhead takes turns as if every unit found room, and hands over whose they were.
func (g *granter) runAhead(o *pool, free <-chan []cluster.SubID, full chan<- []cluster.SubID) {
	defer close(full)
	step, pair := g.step, g.s.Sub.Pair
	for turns := range free {
		turns = turns[:0]
		for len(turns) < cap(turns) {
			at := g.race.Next()
			if at < 0 {
				break
			}
			leaf := o.node + plan.Node(at)
			sub := g.line.Next(leaf)
			turns = append(turns, sub)
			usage := step[pair[sub]].next()
			g.line.Served(leaf)
			g.race.Served(at, usage, g.line.Advance(leaf))
		}
		if len(turns) == 0 {
			return
		}
		full <- turns
	}
}

// goBack sets lines, usages and race to what was given. O(what the pool holds, and is short of).
func (g *granter) goBack(o *pool) {
	g.eachInLine(func(_ cluster.SubID, t *line.Turn) { t.Held, t.Given = t.Held-int64(t.Given), 0 })
	for _, one := range g.given[g.from.givenEnd:] {
		t := &g.line.Sub[one.sub]
		t.Held++
		t.Given++
	}
	g.countGiven(1)
	g.weigh(o)
	g.layStep(o)
	g.countGiven(-1) // it is booked with the rest
	node := g.enter(o)
	for _, leaf := range g.leaves {
		node[leaf-o.node].In = g.line.Open(leaf)
	}
	g.race.Start()
}

// countGiven adds what was given in the loop over the public pool, so many times, to what is net.
func (g *granter) countGiven(times int64) {
	g.eachInLine(func(sub cluster.SubID, t *line.Turn) {
		if t.Given > 0 {
			g.promise.net[g.s.Sub.Pair[sub]] += times * int64(t.Given)
		}
	})
}
