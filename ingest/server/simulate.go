package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/simulation"
	"github.com/stintd/stint/ingest/table"
)

// What one simulation may take.
const (
	simulatedBytesMax  = 64 << 20
	simulatedRowsMax   = 10_000 // of demand
	simulatedHostsMax  = 200_000
	simulatedCyclesMax = 10_000
	horizonMax         = 30 * 24 * time.Hour
	playsMax           = 200
	withinDefault      = 10 * time.Second
)

// simulated is the body of a call: rows of tables as JSON.
type simulated struct {
	Demand   json.RawMessage     `json:"demand"`
	Hosts    json.RawMessage     `json:"hosts"`
	Runtimes []map[string]string `json:"runtimes"`
}

// postSimulate tells what demand that is not there would get. As a what-if it is decided on a copy of the state, and
// there is one at a time.
func (s *Server) postSimulate(q *request) error {
	if err := q.known("horizon", "every", "plays", "within", "limit", "after"); err != nil {
		return err
	}
	o, within, err := q.simulationOptions()
	if err != nil {
		return err
	}
	w, err := q.window()
	if err != nil {
		return err
	}
	if media, err := q.media(); err != nil || media != "application/json" && media != "" {
		return unsupported("a simulation is asked for by a JSON object (application/json)")
	}
	if packed, err := q.packing(); err != nil || packed != table.AutoCompression && packed != table.Plain {
		return unsupported("a simulation is asked for by JSON that is not packed")
	}
	memory := s.checks.account(q.caller, "what is asked to be simulated")
	defer memory.close()
	body, _, err := q.readBody(memory, min(simulatedBytesMax, s.o.Limits.BodyBytesMax))
	if err != nil {
		return err
	}
	leave, err := s.whatifs.enter(q.caller, s.closing)
	if err != nil {
		return err
	}
	defer leave()
	state, err := q.engine.Clone()
	if err != nil {
		return err
	}
	asked, err := q.asked(body, state.Policy.Dimensions, memory)
	if err != nil {
		return err
	}
	ctx, cancel := s.within(within)
	defer cancel()
	answer, err := simulation.Run(ctx, state, time.Now().UnixMicro(), asked, o)
	switch {
	case errors.Is(err, simulation.ErrStopped):
		return s.stoppedWhatif("parameter within: the next cycle with what is asked for takes", within)
	case err != nil:
		return badTable(err)
	}
	q.who.cutSimulation(answer)
	w.cutSimulation(answer)
	q.Response.Header.Set("Stint-Cycle", strconv.FormatInt(answer.Cycle, 10))
	return q.json(200, answer)
}

// simulationOptions are the parameters of the call.
func (q *request) simulationOptions() (o simulation.Options, within time.Duration, err error) {
	duration := func(name string, without, least, most time.Duration) (d time.Duration) {
		v := q.query(name)
		if v == "" || err != nil {
			return without
		}
		var bad error
		if d, bad = time.ParseDuration(v); bad != nil || d < least || d > most {
			err = badRequest(fmt.Sprintf("parameter %s=%s: must be a duration from %v to %v", name, v, least, most))
		}
		return d
	}
	o.HorizonUS = duration("horizon", 24*time.Hour, 0, horizonMax).Microseconds()
	o.EveryUS = duration("every", 0, time.Second, horizonMax).Microseconds()
	within = duration("within", withinDefault, time.Millisecond, whatifTimeMax)
	if err != nil {
		return o, 0, err
	}
	plays, err := q.number("plays", 1, 20)
	if err == nil && plays > playsMax {
		err = badRequest(fmt.Sprintf("parameter plays=%d: must be at most %d", plays, playsMax))
	}
	o.Plays, o.CyclesMax = int(plays), simulatedCyclesMax
	return o, within, err
}

// asked reads the body of a simulation.
func (q *request) asked(body []byte, dimensions []string, memory *account) (*simulation.Asked, error) {
	var of simulated
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(&of)
	if err == nil && d.More() {
		err = errors.New("there is something behind the object")
	}
	if err == nil && of.Demand == nil {
		err = errors.New("demand: is missing")
	}
	if err != nil {
		return nil, badRequest("the body cannot be read: " + err.Error())
	}
	options := func(name string, rows int) table.Options {
		l := table.Limits{BytesMax: int64(len(body)), DecodedBytesMax: int64(len(body)), RowsMax: rows}
		return table.Options{Name: name, Format: table.JSON, Compression: table.Plain, Dimensions: dimensions,
			Limits: l, Spend: q.s.spender(memory)}
	}
	refused := func(err error) error {
		var p problem
		switch {
		case errors.As(err, &p):
			return p
		case errors.Is(err, table.ErrLimit):
			return overLimit(err.Error())
		}
		return badTable(err)
	}
	a := &simulation.Asked{Runtimes: simulation.Runtimes{}}
	var column cluster.TextColumn
	if a.Demand, column, err = table.ReadAsked(bytes.NewReader(of.Demand),
		options("demand", simulatedRowsMax)); err != nil {
		return nil, refused(err)
	}
	if a.RuntimeUS, err = simulation.RuntimesUS(a.Demand, column); err != nil {
		return nil, refused(err)
	}
	for row := range a.Demand.Rows {
		if path := string(a.Demand.Consumer.Names.Bytes(a.Demand.Consumer.At(row))); !q.who.owns(path) {
			return nil, q.who.limited("demand of " + path + " is not of it")
		}
	}
	if of.Hosts != nil {
		if a.Hosts, err = table.ReadHosts(bytes.NewReader(of.Hosts), options("hosts", simulatedHostsMax)); err != nil {
			return nil, refused(err)
		}
	}
	for _, row := range of.Runtimes {
		consumer := row["consumer"]
		delete(row, "consumer")
		if err := a.Runtimes.Add(consumer, row); err != nil {
			return nil, badRequest("runtimes: " + err.Error())
		}
	}
	return a, nil
}
