package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
)

// actorsPath is the call that shows actors. It is answered by the process that leads, since reports go to that.
const actorsPath = "/v1/actors"

const (
	actorsMax      = 1000
	actorBytesMax  = 16 << 10
	actorUnitsMost = 1 << 53
)

// actorReport is what an actor says of itself.
type actorReport struct {
	Running    int64    `json:"running"`
	NotRunning int64    `json:"held_not_running"`
	NotHeld    int64    `json:"running_not_held"`
	LagP50     *float64 `json:"lag_p50"`
	LagP99     *float64 `json:"lag_p99"`
	Effects    int64    `json:"effects"`
	Late       int64    `json:"late"`
	Began      string   `json:"began"`
	Listed     string   `json:"listed"`

	began, listed, seen time.Time
}

// actors are the last reports, by source. They are in memory alone: an actor reports every few seconds.
type actors struct {
	mu sync.Mutex
	of map[string]*actorReport
}

// put keeps a report. Of too many the one goes that was seen longest ago.
func (a *actors) put(source string, r *actorReport) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[string]*actorReport{}
	}
	a.of[source] = r
	if len(a.of) > actorsMax {
		delete(a.of, slices.MinFunc(slices.Collect(maps.Keys(a.of)),
			func(x, y string) int { return a.of[x].seen.Compare(a.of[y].seen) }))
	}
}

func (a *actors) all() map[string]*actorReport {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.of)
}

// actorSeen is the answer to a report.
type actorSeen struct {
	Source string `json:"source"`
	Seen   string `json:"seen"`
}

// putActor takes what an actor says of itself.
func (s *Server) putActor(q *request) error {
	if err := q.known(); err != nil {
		return err
	}
	if !validSource(q.rest) {
		return badSource()
	}
	if at := q.engine.View().Standing; at != nil && q.who.Role != RoleAdmin {
		for _, is := range at.Sources() {
			if is.Name == q.rest && is.Owner != "" && is.Owner != q.who.Name {
				return problem{Status: 403, Type: "forbidden", Detail: "the source " + q.rest + " is another token's"}
			}
		}
	}
	memory := s.bodies.account(q.caller, "bodies")
	defer memory.close()
	body, _, err := q.readBody(memory, actorBytesMax)
	if err != nil {
		return err
	}
	r := &actorReport{seen: q.engine.Now()}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err = d.Decode(r); err == nil {
		err = r.check()
	}
	if err == nil && d.More() {
		err = errors.New("there is something behind the object")
	}
	if err != nil {
		return badRequest("the body cannot be read: " + err.Error())
	}
	s.actors.put(q.rest, r)
	return q.json(200, actorSeen{Source: q.rest, Seen: r.seen.UTC().Format(time.RFC3339Nano)})
}

// check reads the times and refuses what no actor says.
func (r *actorReport) check() (err error) {
	if r.began, err = time.Parse(time.RFC3339Nano, r.Began); err != nil {
		return fmt.Errorf("began: %w", err)
	}
	if r.listed, err = time.Parse(time.RFC3339Nano, r.Listed); err != nil {
		return fmt.Errorf("listed: %w", err)
	}
	for name, n := range map[string]int64{"running": r.Running, "held_not_running": r.NotRunning,
		"running_not_held": r.NotHeld, "effects": r.Effects, "late": r.Late} {
		if n < 0 || n > actorUnitsMost {
			return fmt.Errorf("%s: must be from 0 to 2^53", name)
		}
	}
	for name, lag := range map[string]*float64{"lag_p50": r.LagP50, "lag_p99": r.LagP99} {
		if lag != nil && *lag < 0 {
			return fmt.Errorf("%s: must not be negative", name)
		}
	}
	return nil
}

// getActors gives for each source whose units are held, or whose actor reported, what is granted and what its actor
// says. What is granted is true after a restart, too; what the actor says is there with its next report.
func (s *Server) getActors(q *request) error {
	if err := q.list(); err != nil {
		return err
	}
	w, err := s.settled(q)
	if err != nil {
		return err
	}
	said := s.actors.all()
	held := map[string]int64{}
	for _, is := range w.view.Standing.Sources() {
		if q.who.Branch != "" && is.Owner != q.who.Name {
			delete(said, is.Name) // an actor's figures are of all branches
			continue
		}
		if is.Held > 0 || said[is.Name] != nil {
			held[is.Name] = is.Held
		}
	}
	for source := range said {
		if _, known := held[source]; !known && q.who.Branch == "" {
			held[source] = 0
		}
	}
	return q.rows(all(actorsTable(held, said)), w.at(w.last), func() {})
}

func actorsTable(held map[string]int64, said map[string]*actorReport) *decision.Table {
	names := &cluster.Names{}
	sources := slices.Sorted(maps.Keys(held))
	source, granted := make([]int32, len(sources)), make([]int64, len(sources))
	for i, name := range sources {
		source[i], granted[i] = names.InternString(name), held[name]
	}
	column := func(name string, kind decision.Type, of func(*actorReport) (int64, *float64)) decision.Column {
		c := decision.Column{Name: name, Type: kind, Optional: true, Null: make([]bool, len(sources))}
		for i, name := range sources {
			var n int64
			var lag *float64
			r := said[name]
			if r != nil {
				n, lag = of(r)
			}
			if kind != decision.Float {
				c.Int, c.Null[i] = append(c.Int, n), r == nil
				continue
			}
			if c.Null[i] = lag == nil; lag == nil {
				lag = new(float64)
			}
			c.Float = append(c.Float, *lag)
		}
		return c
	}
	count := func(name string, of func(*actorReport) int64) decision.Column {
		return column(name, decision.Int, func(r *actorReport) (int64, *float64) { return of(r), nil })
	}
	lag := func(name string, of func(*actorReport) *float64) decision.Column {
		return column(name, decision.Float, func(r *actorReport) (int64, *float64) { return 0, of(r) })
	}
	instant := func(name string, of func(*actorReport) time.Time) decision.Column {
		return column(name, decision.Time, func(r *actorReport) (int64, *float64) { return of(r).UnixMicro(), nil })
	}
	return &decision.Table{Name: "actors", Rows: len(sources), Columns: []decision.Column{
		{Name: "source", Type: decision.Text, Code: source, Dict: names}, ints("granted", granted),
		count("running", func(r *actorReport) int64 { return r.Running }),
		count("drift", func(r *actorReport) int64 { return r.NotRunning + r.NotHeld }),
		count("held_not_running", func(r *actorReport) int64 { return r.NotRunning }),
		count("running_not_held", func(r *actorReport) int64 { return r.NotHeld }),
		lag("lag_p50", func(r *actorReport) *float64 { return r.LagP50 }),
		lag("lag_p99", func(r *actorReport) *float64 { return r.LagP99 }),
		count("effects", func(r *actorReport) int64 { return r.Effects }),
		count("late", func(r *actorReport) int64 { return r.Late }),
		instant("began", func(r *actorReport) time.Time { return r.began }),
		instant("listed", func(r *actorReport) time.Time { return r.listed }),
		instant("seen", func(r *actorReport) time.Time { return r.seen }),
	}}
}
