package conform

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// service plays the part of a stint service to an actor: it decides what a script tells it to. It knows one source.
type service struct {
	mu       sync.Mutex
	woken    chan struct{} // closed by the next cycle
	ahead    time.Duration // its clock before this machine's
	cycle    int64
	started  map[int64]time.Time
	changes  []client.Change
	held     []client.Holding
	demand   []map[string]any
	released []client.Unit
	keys     map[string][]byte // answers
	reclaims int64
}

func newService(ahead time.Duration) *service {
	return &service{woken: make(chan struct{}), ahead: ahead, started: map[int64]time.Time{}, keys: map[string][]byte{}}
}

func (s *service) now() time.Time { return time.Now().Add(s.ahead) }

// next begins a cycle; s.mu is held. The caller adds its changes and calls publish.
func (s *service) next() {
	s.cycle++
	s.started[s.cycle] = s.now()
}

func (s *service) publish() {
	close(s.woken)
	s.woken = make(chan struct{})
}

// grant grants a unit of work on a host.
func (s *service) grant(w Work, host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next()
	sub := ""
	for _, row := range s.demand {
		if row["allocation"] == w.Allocation {
			sub, _ = row["sub"].(string)
		}
	}
	s.held = append(s.held, client.Holding{Consumer: w.Consumer, Allocation: w.Allocation, Sub: sub, Host: host,
		Units: 1, Granted: s.cycle})
	s.changes = append(s.changes, client.Change{Cycle: s.cycle, Change: "grant", Consumer: w.Consumer,
		Allocation: w.Allocation, Sub: sub, Host: host, Units: 1})
	s.publish()
}

// reclaim takes the units of work on a host back by a deadline, which it returns by this machine's clock.
func (s *service) reclaim(w Work, host string, grace time.Duration) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next()
	s.reclaims++
	due := s.now().Add(grace)
	for i := range s.held {
		if h := &s.held[i]; h.Allocation == w.Allocation && h.Host == host && h.Reclaim == 0 {
			h.Reclaim, h.Deadline = s.reclaims, &due
			s.changes = append(s.changes, client.Change{Cycle: s.cycle, Change: "reclaim", Consumer: w.Consumer,
				Allocation: w.Allocation, Sub: h.Sub, Host: host, Units: h.Units, Reclaim: s.reclaims, Deadline: &due})
		}
	}
	s.publish()
	return due.Add(-s.ahead)
}

// holds is how many units of work are held.
func (s *service) holds(w Work) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		if h.Allocation == w.Allocation {
			n += h.Units
		}
	}
	return n
}

// wants is how many units of work the actor asks for.
func (s *service) wants(w Work) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range s.demand {
		if row["allocation"] == w.Allocation {
			units, _ := row["units"].(float64)
			n += int64(units)
		}
	}
	return n
}

// ServeHTTP answers the calls that an actor makes.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Stint-Now", s.now().UTC().Format(time.RFC3339Nano))
	switch call := r.Method + " " + r.URL.Path; {
	case call == "GET /v1/holdings":
		rows(s, w, s.held)
	case call == "GET /v1/changes":
		s.follow(w, r)
	case call == "GET /v1/cycles":
		last := []map[string]any{}
		for n := int64(1); n <= s.cycle; n++ {
			last = append(last, map[string]any{"cycle": n, "now": s.started[n], "decisions_digest": "script"})
		}
		answer(w, last)
	case strings.HasPrefix(call, "GET /v1/demand/"):
		told := make([]map[string]any, len(s.demand))
		for i, row := range s.demand {
			told[i] = maps.Clone(row)
			told[i]["wanted"] = row["units"]
		}
		answer(w, told)
	case strings.HasPrefix(call, "PUT /v1/demand/"):
		s.demand = nil
		s.take(w, r, &s.demand, func() {})
	case call == "POST /v1/releases":
		var units []client.Unit
		s.take(w, r, &units, func() { s.release(units) })
	default:
		http.Error(w, fmt.Sprintf("the suite's service does not know %s", call), http.StatusNotFound)
	}
}

func answer(w http.ResponseWriter, value any) {
	_ = json.NewEncoder(w).Encode(value) // a client that is gone asks again
}

func rows[T any](s *service, w http.ResponseWriter, list []T) {
	w.Header().Set("Stint-Cycle", strconv.FormatInt(s.cycle, 10))
	for _, row := range list {
		answer(w, row)
	}
}

// follow answers with the changes after a cycle. It waits for some; s.mu is free meanwhile.
func (s *service) follow(w http.ResponseWriter, r *http.Request) {
	since, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	wait, err2 := time.ParseDuration(r.URL.Query().Get("wait"))
	if err != nil || err2 != nil {
		http.Error(w, "since and wait must be given", http.StatusBadRequest)
		return
	}
	if since >= s.cycle {
		woken := s.woken
		s.mu.Unlock()
		select {
		case <-woken:
		case <-time.After(wait):
		case <-r.Context().Done():
		}
		s.mu.Lock()
	}
	var later []client.Change
	for _, c := range s.changes {
		if c.Cycle > since {
			later = append(later, c)
		}
	}
	w.Header().Set("Stint-Now", s.now().UTC().Format(time.RFC3339Nano))
	rows(s, w, later)
}

// take reads an input and counts it once for each idempotency key.
func (s *service) take(w http.ResponseWriter, r *http.Request, into any, count func()) {
	key := r.Header.Get("Idempotency-Key")
	text, known := s.keys[key]
	if !known {
		if err := json.NewDecoder(r.Body).Decode(into); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		count()
		text, _ = json.Marshal(client.Receipt{Cycle: s.cycle}) // numbers and texts only
		s.keys[key] = text
	}
	_, _ = w.Write(text)
}

// release frees units at once, in a cycle of their own.
func (s *service) release(units []client.Unit) {
	s.next()
	for _, u := range units {
		for i := range s.held {
			h := &s.held[i]
			if h.Allocation != u.Allocation || h.Sub != u.Sub || h.Host != u.Host || h.Units < u.Units {
				continue
			}
			s.changes = append(s.changes, client.Change{Cycle: s.cycle, Change: "release", Consumer: h.Consumer,
				Allocation: h.Allocation, Sub: h.Sub, Host: h.Host, Units: u.Units, Reclaim: h.Reclaim,
				Cause: "client"})
			if h.Units -= u.Units; h.Units == 0 {
				s.held = append(s.held[:i], s.held[i+1:]...)
			}
			break
		}
		s.released = append(s.released, u)
	}
	s.publish()
}
