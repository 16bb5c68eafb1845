package server

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

// dividedKinds are the inputs whose rows go to their plan's division, by call.
var dividedKinds = map[string]string{
	"PUT /v1/demand/{source}": engine.InputDemand, "PATCH /v1/demand/{source}": engine.InputDemandChanges,
	"PUT /v1/running/{source}": engine.InputRunning, "POST /v1/releases": engine.InputReleases,
}

// divideRows gives each division those rows of a table that are of its plans, as an input of its own: it is whole in
// each, and acknowledged when all have theirs. What replaces all that a source said goes to each division, though it
// has no rows there.
func (s *Server) divideRows(q *request, r *route) error {
	if err := q.known("format", "allow_shrink"); err != nil {
		return err
	}
	if !validSource(q.rest) {
		return badSource()
	}
	p, err := s.needWhole()
	if err != nil {
		return err
	}
	format, packing, err := q.format()
	if err != nil {
		return err
	}
	bodies := s.bodies.account(q.caller, "bodies")
	defer bodies.close()
	body, _, err := q.readBody(bodies, s.o.Limits.BodyBytesMax)
	if err != nil {
		return err
	}
	in := &engine.Input{Kind: dividedKinds[r.method+" "+r.name], Body: body, Format: format.String(),
		Packing: packing.String()}
	decoded := s.decoded.account(q.caller, "decoded tables")
	defer decoded.close()
	if err := s.decode(q, in, p.Dimensions, new(cluster.DemandTable), decoded); err != nil {
		return err
	}
	parts, err := s.rowParts(in, p)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := bodies.take(int64(len(p.body))); err != nil {
			return err
		}
	}
	args := q.args()
	args.Del("format")
	if err := askTwice(q, r, parts, string(q.URI().PathOriginal()), args); err != nil {
		return err
	}
	a, err := acknowledgedBy(parts, in.Rows)
	if err != nil {
		return err
	}
	if a.Beyond != nil && a.Released != nil { // who is in plans of several divisions gives back in one of them
		*a.Beyond = max(0, unitsOf(in)-*a.Released)
	}
	return q.json(200, a)
}

// unitsOf adds the units of a table of holdings up.
func unitsOf(in *engine.Input) (n int64) {
	for _, units := range in.Table.(*cluster.HoldingTable).Units {
		n = min(n+units, cluster.NumberMax)
	}
	return n
}

// rowParts are the parts of a table. Rows that nobody would take go to the first division, which says why.
func (s *Server) rowParts(in *engine.Input, p *plan.Policy) (parts []*portion, err error) {
	f := cluster.Faults{Table: in.Kind}
	rows := make([][]int32, len(p.Divisions))
	var schema column.Schema
	switch t := in.Table.(type) {
	case *cluster.DemandTable:
		demandRows(p, t, rows, &f)
		schema = t.Schema(p.Dimensions)
	case *cluster.HoldingTable:
		holdingRows(p, t, in.Kind == engine.InputRunning, rows, &f)
		schema = t.Releases() // of running units without their columns
	}
	if err := f.Err(); err != nil {
		return nil, badTable(err)
	}
	changes := in.Kind == engine.InputDemandChanges || in.Kind == engine.InputReleases
	for i, mine := range rows {
		d := s.division(p.Divisions[i].Name)
		if d == nil {
			return nil, fmt.Errorf("the policy has a division %s that the service has not", p.Divisions[i].Name)
		}
		if changes && len(mine) == 0 && (in.Rows > 0 || i > 0) {
			continue
		}
		body, err := packed(func(to io.Writer) error { return table.Write(to, schema, mine) })
		if err != nil {
			return nil, err
		}
		headers := map[string]string{"Content-Type": "text/csv", "Content-Encoding": "zstd"}
		parts = append(parts, &portion{d: d, body: body, rows: mine, headers: headers})
	}
	return parts, nil
}

// packed is what a function writes, packed.
func packed(write func(io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	if err := write(z); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// consumerDivisions are the divisions that each consumer of a table takes part in, by its code; none: it is in no plan.
func consumerDivisions(p *plan.Policy, names *cluster.Names) [][]int {
	of := make([][]int, names.Len())
	for code := range of {
		if node, ok := p.Find(names.String(int32(code))); ok {
			of[code] = divisionsOf(p, node)
		}
	}
	return of
}

// demandRows tells for each division which rows are its.
func demandRows(p *plan.Policy, t *cluster.DemandTable, rows [][]int32, f *cluster.Faults) {
	in := consumerDivisions(p, t.Consumer.Names)
	named := make([]int, t.Plan.Names.Len())
	for code := range named {
		named[code] = p.DivisionOf(t.Plan.Names.String(int32(code)))
	}
	for row := range t.Rows {
		code, to := t.Consumer.At(row), 0
		var of []int
		if code != cluster.Null {
			of = in[code]
		}
		name := t.Plan.At(row)
		switch {
		case name != cluster.Null && len(t.Plan.Names.Bytes(name)) > 0:
			if to = named[name]; to < 0 {
				f.Add(row+1, "plan", t.Plan.Names.String(name),
					"no such plan; there are "+strings.Join(p.PlanNames(), ", "))
				continue
			}
		case len(of) > 1:
			path := t.Consumer.Names.String(code)
			f.Add(row+1, "plan", "", fmt.Sprintf("%s takes part in several plans, name one of %s", path,
				plansOf(p, path)))
			continue
		case len(of) == 1:
			to = of[0]
		}
		rows[to] = append(rows[to], int32(row))
	}
}

// plansOf names the plans that a consumer takes part in.
func plansOf(p *plan.Policy, path string) string {
	node, _ := p.Find(path)
	var names []string
	for i := range p.MDPlans {
		if p.MDPlans[i].Member[node] {
			names = append(names, p.MDPlans[i].Name)
		}
	}
	for i := range p.SlotPlans {
		if p.SlotPlans[i].Member[node] {
			names = append(names, p.Groups[p.SlotPlans[i].Group].Name)
		}
	}
	return strings.Join(names, ", ")
}

// holdingRows tells for each division which rows are its. Rows name no plan, but a host: of units given back each
// division of the consumer takes what it has there. What runs must be on a host of the division, which is not known
// here, so that who is in several divisions must say it to each.
func holdingRows(p *plan.Policy, t *cluster.HoldingTable, running bool, rows [][]int32, f *cluster.Faults) {
	in := consumerDivisions(p, t.Consumer.Names)
	for row := range t.Rows {
		code, to := t.Consumer.At(row), []int{0}
		if code != cluster.Null && len(in[code]) > 0 {
			to = in[code]
		}
		if running && len(to) > 1 {
			var names []string
			for _, d := range to {
				names = append(names, p.Divisions[d].Name)
			}
			f.Add(row+1, "consumer", t.Consumer.Names.String(code), "takes part in plans of "+strings.Join(names, ", ")+
				": give what runs to each division by itself (?division=)")
			continue
		}
		for _, d := range to {
			rows[d] = append(rows[d], int32(row))
		}
	}
}

// original are the faults of a part by the rows of the call.
func (p *portion) original(list []problemRow) (faults []cluster.RowFault) {
	for _, f := range list {
		if p.rows != nil && f.Row >= 1 && f.Row <= len(p.rows) {
			f.Row = int(p.rows[f.Row-1]) + 1
		}
		faults = append(faults, cluster.RowFault{Row: f.Row, Column: f.Column, Value: f.Value, Reason: f.Reason})
	}
	return slices.Clip(faults)
}
