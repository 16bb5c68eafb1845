package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/simulation"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/ingest/client"
	"github.com/stintd/stint/ingest/table"
)

// askedOptions are the demand and hosts that are asked about.
type askedOptions struct {
	demand, hosts string
	runtimes      []string
	horizon       time.Duration
	within        time.Duration
	plays         int
}

// simulatedCyclesMax bounds the cycles of a future.
const simulatedCyclesMax = 10_000

// whatifDemand tells the grants that demand would get which is not there.
func whatifDemand(ctx context.Context, o *whatifOptions, stdout io.Writer, stderr io.Writer) error {
	if o.horizon < 0 || o.within <= 0 || o.plays < 1 {
		return fmt.Errorf("--horizon must not be negative, --within and --plays must be above 0")
	}
	demand, err := readInput(kindDemand, o.demand)
	if err != nil {
		return err
	}
	var hosts *given
	if o.hosts != "" {
		if hosts, err = readInput(kindHosts, o.hosts); err != nil {
			return err
		}
	}
	a, err := o.simulation(ctx, demand, hosts, stderr)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return encode(stdout, a)
	}
	return printSimulation(stdout, a)
}

// simulation asks the service, or plays by the log.
func (o *whatifOptions) simulation(ctx context.Context, demand, hosts *given, stderr io.Writer) (*simulation.Answer,
	error) {
	if o.server != "" {
		return o.simulateServed(ctx, demand, hosts)
	}
	r, err := export.OpenLog(o.log)
	if err != nil {
		return nil, err
	}
	n, err := oneCycle(r, o.log, o.cycle)
	if err != nil {
		return nil, err
	}
	b := newReplay()
	if err := b.restore(r, o.log, n+1); err != nil {
		return nil, err
	}
	if err := b.run(r, o.log, n, stderr, func(at *otherwise,
		_ int64) error {
		return acceptable(at, o.log, stderr)
	}); err != nil {
		return nil, err
	}
	asked, err := o.asked(b.state.Policy, demand, hosts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.within)
	defer cancel()
	return simulation.Run(ctx, b.state, b.state.NowUS+b.state.Policy.IntervalUS, asked,
		simulation.Options{HorizonUS: o.horizon.Microseconds(), Plays: o.plays, CyclesMax: simulatedCyclesMax})
}

// asked reads the demand that is asked about, under a policy.
func (o *whatifOptions) asked(p *plan.Policy, demand, hosts *given) (*simulation.Asked, error) {
	a := &simulation.Asked{Runtimes: simulation.Runtimes{}}
	options := func(g *given) (table.Options, error) {
		format, err := table.ParseFormat(g.format)
		return table.Options{Name: g.name, Format: format, Compression: table.Plain, Dimensions: p.Dimensions}, err
	}
	to, err := options(demand)
	if err != nil {
		return nil, err
	}
	t, column, err := table.ReadAsked(bytes.NewReader(demand.content), to)
	if err != nil {
		return nil, err
	}
	a.Demand = t
	if a.RuntimeUS, err = simulation.RuntimesUS(t, column); err != nil {
		return nil, err
	}
	if hosts != nil {
		if to, err = options(hosts); err == nil {
			a.Hosts, err = table.ReadHosts(bytes.NewReader(hosts.content), to)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, text := range o.runtimes {
		consumer, percentiles, err := parseRuntime(text)
		if err == nil {
			err = a.Runtimes.Add(consumer, percentiles)
		}
		if err != nil {
			return nil, fmt.Errorf("--runtime %s: %w", text, err)
		}
	}
	return a, nil
}

// parseRuntime reads CONSUMER=10m, or CONSUMER=p50:10m,p90:1h.
func parseRuntime(text string) (consumer string, percentiles map[string]string, err error) {
	i := strings.LastIndexByte(text, '=')
	if i < 0 {
		return "", nil, fmt.Errorf("must be CONSUMER=10m, or CONSUMER=p50:10m,p90:1h")
	}
	percentiles = map[string]string{}
	for part := range strings.SplitSeq(text[i+1:], ",") {
		name, value, spread := strings.Cut(part, ":")
		if !spread {
			name, value = "p50", part
		}
		if _, twice := percentiles[name]; twice {
			return "", nil, fmt.Errorf("%s is given twice", name)
		}
		percentiles[name] = value
	}
	return text[:i], percentiles, nil
}

// simulateServed asks the service. Files are read first, by the policy that it has, so that errors name their rows.
func (o *whatifOptions) simulateServed(ctx context.Context, demand, hosts *given) (*simulation.Answer, error) {
	c, err := clientOf(o.server, &o.as)
	if err != nil {
		return nil, err
	}
	text, err := c.Get(ctx, "/v1/plan", url.Values{}, "application/yaml")
	if err != nil {
		return nil, err
	}
	p, err := plan.ParseAccepted(o.server+"/v1/plan", text)
	if err != nil {
		return nil, err
	}
	asked, err := o.asked(p, demand, hosts)
	if err != nil {
		return nil, err
	}
	d := decode(asked.Demand.Rows, asked.Demand.Schema(p.Dimensions))
	d.column("runtime", func(row int) any {
		if us := asked.RuntimeUS[row]; us > 0 {
			return (time.Duration(us) * time.Microsecond).String()
		}
		return nil
	})
	body := map[string]any{"demand": d.objects()}
	if asked.Hosts != nil {
		body["hosts"] = decodeHosts(asked.Hosts, p.Dimensions).objects()
	}
	runtimes := []map[string]string{}
	for _, text := range o.runtimes {
		consumer, percentiles, err := parseRuntime(text)
		if err != nil {
			return nil, err
		}
		percentiles["consumer"] = consumer
		runtimes = append(runtimes, percentiles)
	}
	body["runtimes"] = runtimes
	packed, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	q := url.Values{"horizon": {o.horizon.String()}, "within": {o.within.String()}, "plays": {strconv.Itoa(o.plays)}}
	return c.SimulateBody(ctx, client.Bytes(packed, "application/json"), q)
}

// objects are the rows as JSON objects, without keys that have no value.
func (c *decoded) objects() []map[string]any {
	rows := make([]map[string]any, len(c.rows))
	for i, row := range c.rows {
		rows[i] = map[string]any{}
		for n, v := range row {
			if v != nil {
				rows[i][c.names[n]] = v
			}
		}
	}
	return rows
}

// shownMax bounds the rows that are shown to people.
const shownMax = 20

// printSimulation tells people the grants that demand would get.
func printSimulation(w io.Writer, a *simulation.Answer) error {
	var b strings.Builder
	p := painter(w)
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("were it asked for in cycle %s at %s, under revision %d", grouped(a.Cycle), readable(a.Now), a.Revision)
	for i := range a.Rows[:min(len(a.Rows), shownMax)] {
		r := &a.Rows[i]
		name := r.Consumer + ":" + r.Allocation
		if r.Sub != "" {
			name += ":" + r.Sub
		}
		say("\n%s", p.bold(fmt.Sprintf("%s, %s %s", name, grouped(r.Units), unitsOf(r.Units))))
		if r.Now > 0 {
			say("  at once  %s on %s %s", grouped(r.Now), grouped(r.Hosts), counted(r.Hosts, "host"))
		} else {
			say("  at once  none")
		}
		for _, s := range r.Short {
			why := s.Reason
			if s.Dimension != nil {
				why += " (" + *s.Dimension + ")"
			}
			if s.Blocker != nil {
				why += ", " + *s.Blocker
			}
			say("  short    %s, %s", p.bad(grouped(s.Units)), why)
		}
		say("  all      %s", timesOf(&r.All, a))
		if r.Most < r.Units {
			say("           %s of them by %s", grouped(r.Most), readable(a.Until))
		}
		for n, f := range r.From {
			label := "from"
			if n > 0 {
				label = ""
			}
			from := f.Origin
			if f.Lender != nil {
				from += ", lent by " + *f.Lender
			} else if f.Pool != nil && *f.Pool != "/" {
				from += " of " + *f.Pool
			}
			say("  %-7s  %s, %s", label, grouped(f.Units), from)
		}
	}
	if n := len(a.Rows) - shownMax; n > 0 {
		say("\nand %s more; all by --output json", grouped(int64(n)))
	}
	if len(a.Stops) > 0 {
		say("\n%s", p.bold("would stop for it"))
		for _, s := range a.Stops[:min(len(a.Stops), shownMax)] {
			name := s.Consumer
			if s.Allocation != nil {
				name += ":" + *s.Allocation
			}
			say("  %s of %s by %s (%s)", grouped(s.Units), name, readable(s.Latest), s.Reason)
		}
		if n := len(a.Stops) + a.More - shownMax; n > 0 {
			say("  and %s more; by --output json", grouped(int64(n)))
		}
	}
	say("")
	for _, note := range notesOf(a) {
		say("%s", p.faint(note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// timesOf tells when something would be.
func timesOf(t *simulation.Times, a *simulation.Answer) string {
	at := func(text *string) string {
		if text == nil {
			return "not by " + readable(a.Until)
		}
		return readable(*text)
	}
	if !a.Drawn {
		return at(t.P50)
	}
	return fmt.Sprintf("%s in half of %d futures\n           10 %%: %s; 90 %%: %s", at(t.P50), a.Plays, at(t.P10),
		at(t.P90))
}

// notesOf tells the sources of the times.
func notesOf(a *simulation.Answer) (notes []string) {
	if a.Unknown > 0 {
		notes = append(notes, fmt.Sprintf("%s %s run of which nobody said how long: taken to go on (--runtime)",
			grouped(a.Unknown), unitsOf(a.Unknown)))
	}
	if a.Drawn {
		notes = append(notes, fmt.Sprintf("run times are spread: %d futures were drawn", a.Plays))
	}
	if !a.Whole {
		notes = append(notes, "time ran out before the horizon: see --within")
	}
	return append(notes, fmt.Sprintf("played up to %s, a cycle each %s", readable(a.Until), a.Every),
		"what others may yet ask for is not in it")
}

// readable is an instant as people read it.
func readable(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func unitsOf(n int64) string { return counted(n, "unit") }

// counted is a word after a number.
func counted(n int64, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}
