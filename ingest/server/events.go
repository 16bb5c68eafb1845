package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/stintd/stint/core/decision"
)

// Of a stream of events: how long it goes on before its client must come again, how often it shows that it lives, and
// how often a log that is shown alone is looked at.
const (
	eventsTimeMax = 10 * time.Minute
	eventsBeat    = 15 * time.Second
	eventsLook    = 2 * time.Second
)

// event is a cycle that was published.
type event struct {
	Cycle     int64  `json:"cycle"`
	Now       string `json:"now"`
	Revision  int64  `json:"revision"`
	Newest    int64  `json:"newest_revision"` // in force from the next cycle on where it is another
	Wanted    int64  `json:"units_wanted"`
	Held      int64  `json:"units_held"`
	Short     int64  `json:"units_short"`
	Granted   int64  `json:"units_granted"`
	Reclaimed int64  `json:"units_reclaimed"`
	Released  int64  `json:"units_released"`
	Digest    string `json:"decisions_digest"`
	Version   string `json:"version"` // to be named in calls for what the cycle decided
}

// getEvents tells of cycles as they are published, as server-sent events. With the header Last-Event-ID, or the
// parameter `since`, it begins behind that cycle, else with the last one. Cycles that are not kept in memory any more
// are passed over: the numbers of those that come tell.
func (s *Server) getEvents(q *request) error {
	if err := q.known("since"); err != nil {
		return err
	}
	since, err := q.number("since", 0, -1)
	if err != nil {
		return err
	}
	if id := string(q.Request.Header.Peek("Last-Event-ID")); id != "" {
		if since, err = strconv.ParseInt(id, 10, 64); err != nil || since < 0 {
			return badRequest("Last-Event-ID " + id + ": must be the number of a cycle")
		}
	}
	w, err := s.shown(q)
	if err != nil {
		return err
	}
	if since > w.last {
		since = -1 // numbers of another log, or of a service that lost its folder
	}
	if since < 0 {
		since = max(0, w.last-1)
	}
	if !s.waiters.take(q.caller, 1) {
		return busy("this caller has too many calls that wait for something")
	}
	e := &eventStream{
		s: s, q: q, since: since, caller: q.caller, who: credentialsOf(q.RequestCtx), conn: q.Conn(),
		until: time.Now().Add(eventsTimeMax),
	}
	q.Response.Header.Set("Cache-Control", "no-store")
	q.Response.Header.Set("X-Accel-Buffering", "no")
	q.SetContentType("text/event-stream")
	q.Response.ImmediateHeaderFlush = true
	q.Response.SetBodyStreamWriter(e.write)
	return nil
}

// eventStream is a stream of events under way. It keeps nothing of its request, which is gone when it is written.
type eventStream struct {
	s      *Server
	q      *request
	since  int64
	caller string
	who    credentials
	conn   net.Conn
	until  time.Time
}

// write sends events until the client is gone, its token is not known any more, or the time is up.
func (e *eventStream) write(w *bufio.Writer) {
	defer e.s.waiters.give(e.caller, 1)
	engine := e.q.engine
	e.q = nil
	fmt.Fprint(w, "retry: 2000\n\n")
	beat := time.NewTicker(eventsBeat)
	defer beat.Stop()
	for time.Now().Before(e.until) {
		if !e.s.stillKnown(e.who) {
			fmt.Fprint(w, "event: unauthorized\ndata: {}\n\n")
			_ = w.Flush()
			return
		}
		now := shown{}
		var next <-chan struct{}
		var err error
		if newer := e.s.engine.Load(); engine != nil && newer != nil {
			engine = newer // a process of a cluster that began anew has another
		}
		if engine != nil {
			now.view = engine.View()
			now.last, next = now.view.Cycle(), now.view.Next()
		} else if _, now.last, err = e.s.history.bounds(); err != nil {
			return
		}
		if err := e.send(w, now); err != nil {
			return
		}
		look := time.NewTimer(eventsLook)
		select {
		case <-next:
		case <-beat.C:
			fmt.Fprint(w, ": still here\n\n")
			if w.Flush() != nil {
				look.Stop()
				return
			}
		case <-look.C: // also notices a token that was taken away
			if gone(e.conn) {
				return
			}
		case <-e.s.closing:
			look.Stop()
			return
		}
		look.Stop()
	}
}

// stillKnown tells whether somebody would still be let in.
func (s *Server) stillKnown(of credentials) bool {
	_, err := s.authenticate(of)
	return err == nil
}

// send sends the cycles behind the one sent last.
func (e *eventStream) send(w *bufio.Writer, now shown) error {
	if now.last <= e.since {
		return nil
	}
	var cycles []event
	if v := now.view; v != nil {
		newest := int64(0)
		if v.Policy != nil {
			newest = v.Policy.Revision
		}
		for _, c := range v.Recent {
			if c.Summary.Cycle > e.since {
				cycles = append(cycles, eventOf(cyclesTable([]*decision.Cycle{c}), newest))
			}
		}
	} else {
		t, err := e.s.history.table("cycles", now.last)
		if err != nil {
			return err
		}
		c := eventOf(t, 0)
		c.Cycle, c.Newest = now.last, c.Revision
		cycles = append(cycles, c)
	}
	for _, c := range cycles {
		data, err := json.Marshal(c)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "id: %d\nevent: cycle\ndata: %s\n\n", c.Cycle, data)
	}
	e.since = now.last
	return w.Flush()
}

// eventOf is the event of a row of cycles.
func eventOf(t *decision.Table, newest int64) event {
	num := func(name string) int64 {
		if c := t.Column(name); c != nil {
			return c.Int[0]
		}
		return 0
	}
	digest := t.Column("decisions_digest")
	return event{
		Cycle: num("cycle"), Now: rfc3339(num("now")), Revision: num("revision"), Newest: newest,
		Wanted: num("units_wanted"), Held: num("units_held"), Short: num("units_short"), Granted: num("units_granted"),
		Reclaimed: num("units_reclaimed"), Released: num("units_released"),
		Digest: string(digest.Dict.Bytes(digest.Code[0])), Version: versionOf(t),
	}
}
