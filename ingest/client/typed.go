package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/core/simulation"
)

// Demand is a sub-allocation that is wanted, a row of demand.
type Demand struct {
	Consumer    string
	Allocation  string
	Sub         string
	Units       int64            // wanted in all, held units included
	Size        map[string]int64 // of a unit, by dimension
	Plan        string           // "": the consumer's only one
	Requirement string
	MaxPerHost  int64 // 0: no limit
	MinUnits    int64 // at least so many at once, or none (a gang); 0: units come one by one
	// an attribute of hosts: a gang's units go to hosts with one value of it; "prefer rack": if they can
	Together string
}

// MarshalJSON writes the row with a key for each dimension.
func (d Demand) MarshalJSON() ([]byte, error) {
	row, err := d.row()
	if err != nil {
		return nil, err
	}
	return json.Marshal(row)
}

func (d Demand) row() (map[string]any, error) {
	row := map[string]any{"consumer": d.Consumer, "allocation": d.Allocation, "units": d.Units}
	for dimension, amount := range d.Size {
		if _, taken := row[dimension]; taken {
			return nil, fmt.Errorf("size: %q is no dimension", dimension)
		}
		row[dimension] = amount
	}
	for name, word := range map[string]string{"sub": d.Sub, "plan": d.Plan, "requirement": d.Requirement} {
		if word != "" {
			row[name] = word
		}
	}
	if d.MaxPerHost > 0 {
		row["max_per_host"] = d.MaxPerHost
	}
	if d.MinUnits > 0 {
		row["min_units"] = d.MinUnits
	}
	if d.Together != "" {
		row["together"] = d.Together
	}
	return row, nil
}

// PutDemandRows is PutDemand of rows.
func (c *Client) PutDemandRows(ctx context.Context, source string, rows []Demand, o Options) (Receipt, error) {
	b, err := jsonRows(rows)
	if err != nil {
		return Receipt{}, err
	}
	return c.PutDemand(ctx, source, b, o)
}

// ChangeDemandRows is ChangeDemand of rows.
func (c *Client) ChangeDemandRows(ctx context.Context, source string, rows []Demand, o Options) (Receipt, error) {
	b, err := jsonRows(rows)
	if err != nil {
		return Receipt{}, err
	}
	return c.ChangeDemand(ctx, source, b, o)
}

// ActorReport are the figures of an actor, which puts the decisions on a source's demand in force.
type ActorReport struct {
	Running    int64     `json:"running"`          // units in its last list of the cluster
	NotRunning int64     `json:"held_not_running"` // units that the service holds and that do not run
	NotHeld    int64     `json:"running_not_held"`
	LagP50     *float64  `json:"lag_p50"` // seconds from a decision to its effect; nil: none took effect
	LagP99     *float64  `json:"lag_p99"`
	Effects    int64     `json:"effects"` // starts and stops that these are of
	Late       int64     `json:"late"`    // units that ran past their deadlines, since it began
	Began      time.Time `json:"began"`   // by the service's clock
	Listed     time.Time `json:"listed"`  // when its last list of the cluster began
}

// PutActor tells the service the figures of the actor of a source.
func (c *Client) PutActor(ctx context.Context, source string, r ActorReport) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = c.whole(ctx, "PUT", "/v1/actors/"+url.PathEscape(source), nil, "application/json",
		Bytes(b, "application/json"))
	return err
}

func jsonRows[T any](rows []T) (Body, error) {
	if rows == nil {
		rows = []T{}
	}
	b, err := json.Marshal(rows)
	return Bytes(b, "application/json"), err
}

// Explain tells why a consumer, or with an allocation that one of its, has what it has after a cycle; 0: the last.
func (c *Client) Explain(ctx context.Context, consumer, allocation string, cycle int64) (*explain.Explanation, error) {
	q := url.Values{}
	if allocation != "" {
		q.Set("allocation", allocation)
	}
	if cycle > 0 {
		q.Set("cycle", strconv.FormatInt(cycle, 10))
	}
	e := new(explain.Explanation)
	return e, c.value(ctx, "GET", "/v1/explain/"+url.PathEscape(strings.Trim(consumer, "/")), q, Body{}, e)
}

// Whatif tells what the next cycle would be under another policy file, and what would come of it in so many cycles.
func (c *Client) Whatif(ctx context.Context, plan Body, settle int, o Options) (*explain.Comparison, error) {
	q := url.Values{"settle": {strconv.Itoa(settle)}}
	set(q, "force", o.Force)
	e := new(explain.Comparison)
	return e, c.value(ctx, "POST", "/v1/whatif", q, plan, e)
}

// Asked is demand that is not there, with hosts that are not there.
type Asked struct {
	Demand []AskedDemand    `json:"demand"`
	Hosts  []map[string]any `json:"hosts,omitempty"` // rows: host, dimensions, attributes
	// of a consumer: percentiles, such as p50, with how long units run at most
	Runtimes []map[string]string `json:"runtimes,omitempty"`
}

// AskedDemand is a row of demand that is not there.
type AskedDemand struct {
	Demand
	Runtime time.Duration // how long a unit runs; 0: not said
}

// MarshalJSON writes the row.
func (d AskedDemand) MarshalJSON() ([]byte, error) {
	row, err := d.Demand.row()
	if err == nil && d.Runtime != 0 {
		row["runtime"] = d.Runtime.String()
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(row)
}

// Simulation says how far to look, and how long that may take; zero values are the service's own.
type Simulation struct {
	Horizon, Every, Within time.Duration // Horizon below 0: the next cycle alone
	Plays                  int
}

// Simulate tells what demand that is not there would get, and when.
func (c *Client) Simulate(ctx context.Context, asked Asked, o Simulation) (*simulation.Answer, error) {
	if asked.Demand == nil {
		asked.Demand = []AskedDemand{}
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	q := url.Values{}
	for name, d := range map[string]time.Duration{"horizon": o.Horizon, "every": o.Every, "within": o.Within} {
		if d != 0 {
			q.Set(name, max(0, d).String())
		}
	}
	if o.Plays > 0 {
		q.Set("plays", strconv.Itoa(o.Plays))
	}
	return c.SimulateBody(ctx, Bytes(body, "application/json"), q)
}

// SimulateBody is Simulate of a body and parameters as the call has them.
func (c *Client) SimulateBody(ctx context.Context, b Body, q url.Values) (*simulation.Answer, error) {
	a := new(simulation.Answer)
	return a, c.value(ctx, "POST", "/v1/simulate", q, b, a)
}

// value makes a call and reads its answer as JSON.
func (c *Client) value(ctx context.Context, method, path string, q url.Values, b Body, to any) error {
	text, err := c.whole(ctx, method, path, q, "application/json", b)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Event is a cycle that was published.
type Event struct {
	Cycle          int64     `json:"cycle"`
	Now            time.Time `json:"now"`
	Revision       int64     `json:"revision"`
	NewestRevision int64     `json:"newest_revision"` // in force from the next cycle on where it is another
	UnitsWanted    int64     `json:"units_wanted"`
	UnitsHeld      int64     `json:"units_held"`
	UnitsShort     int64     `json:"units_short"`
	UnitsGranted   int64     `json:"units_granted"`
	UnitsReclaimed int64     `json:"units_reclaimed"`
	UnitsReleased  int64     `json:"units_released"`
	Digest         string    `json:"decisions_digest"`
	Version        string    `json:"version"` // to be named in calls for what the cycle decided
}

// errUnauthorized ends a stream whose token is not known any more.
var errUnauthorized = errors.New("the token is not known any more")

// Events calls a function for each cycle that is published behind a cycle, -1: from the last one on. Streams that end
// are begun anew behind the cycle seen last; cycles that the service does not keep any more are passed over. It goes on
// until ctx is done, the function gives an error, which it returns, or the service refuses.
func (c *Client) Events(ctx context.Context, since int64, seen func(Event) error) error {
	for {
		q := url.Values{}
		if since >= 0 {
			q.Set("since", strconv.FormatInt(since, 10))
		}
		var ours error
		err := c.call(ctx, "GET", "/v1/events", q, http.Header{"Accept": {"text/event-stream"}}, Body{},
			func(r *http.Response) error {
				ours = readEvents(r.Body, func(e Event) error {
					since = e.Cycle
					return seen(e)
				})
				return nil
			})
		var broken *brokenStream
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case ours != nil && !errors.As(ours, &broken):
			return ours
		}
		select { // a stream that ends at once must not be asked for without a pause
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// brokenStream is an error of the connection.
type brokenStream struct{ error }

// eventBytesMax bounds a line of a stream.
const eventBytesMax = 1 << 20

// readEvents reads server-sent events until the stream ends.
func readEvents(r io.Reader, seen func(Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, eventBytesMax)
	kind := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "event":
			kind = value
		case field == "data" && kind == "unauthorized":
			return errUnauthorized
		case field == "data" && kind == "cycle":
			var e Event
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return fmt.Errorf("/v1/events: %w", err)
			}
			if err := seen(e); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return &brokenStream{err}
	}
	return nil
}
