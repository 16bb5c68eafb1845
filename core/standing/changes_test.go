package standing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/standing"
	"github.com/stintd/stint/ingest/table"
)

const policy = `
stint: 1
dimensions: [slots, ncpus]
resource_groups: [{name: Grid, select: "select(slots > 0)"}, {name: Odd, select: "select(odd)"}, {name: Farm, hosts: [h1, h3]}]
consumers: [{path: /A}, {path: /B, rank: 1}]
slot_plans:
  - resource_group: Grid
    consumers:
      - {path: /A, policy: ownership, owns: 12, lend: {limit: 12}, borrow: {}}
      - {path: /B, policy: ownership, owns: 4, lend: {limit: 4}, borrow: {}}
`

// texts are the rows of a table as texts, sorted.
func texts(t *decision.Table) (rows []string) {
	for row := range t.Rows {
		var cells []string
		for i := range t.Columns {
			c := &t.Columns[i]
			switch {
			case c.Name == "cycle":
			case c.Type == decision.Text && c.Code[row] == decision.Null, c.Null != nil && c.Null[row]:
				cells = append(cells, c.Name+"=-")
			case c.Type == decision.Text:
				cells = append(cells, c.Name+"="+string(c.Dict.Bytes(c.Code[row])))
			default:
				cells = append(cells, fmt.Sprintf("%s=%d", c.Name, c.Int[row]))
			}
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	slices.Sort(rows)
	return rows
}

// appended is a table, with the column cycle, and behind it rows of another one.
func appended(to, rows *decision.Table, cycle int64) *decision.Table {
	out := &decision.Table{Name: rows.Name, Columns: []decision.Column{{Name: "cycle"}}}
	for _, c := range rows.Columns {
		out.Columns = append(out.Columns,
			decision.Column{Name: c.Name, Type: c.Type, Optional: c.Optional, Dict: &cluster.Names{}})
	}
	for _, from := range []*decision.Table{to, rows} {
		if from == nil {
			continue
		}
		for row := range from.Rows {
			out.Rows++
			for i := range out.Columns {
				to, c := &out.Columns[i], from.Column(out.Columns[i].Name)
				switch {
				case c == nil:
					to.Int, to.Null = append(to.Int, cycle), append(to.Null, false)
				case c.Type == decision.Text:
					code := decision.Null
					if c.Code[row] != decision.Null {
						code = to.Dict.(*cluster.Names).Intern(c.Dict.Bytes(c.Code[row]))
					}
					to.Code = append(to.Code, code)
				default:
					to.Int, to.Null = append(to.Int, c.Int[row]), append(to.Null, c.Null != nil && c.Null[row])
				}
			}
		}
	}
	return out
}

// TestSince changes demand and hosts at random, and holds what changed, put together from cycle to cycle, against all
// that stands.
func TestSince(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p, err := plan.Parse("policy", []byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	var runner cycle.Runner
	var out decision.Cycle
	var recorder standing.Recorder
	var log [3]*decision.Table
	changed, quiet, hosts := 0, 0, int64(0)
	for n := int64(1); n <= 400; n++ {
		if rng.IntN(3) == 0 {
			hosts := "host,slots,odd,model\n"
			for h := range 6 {
				if rng.IntN(8) > 0 {
					hosts += fmt.Sprintf("h%d,%d,%v,%s\n", h, 4, h%2 == 1, []string{"X", "Y", ""}[rng.IntN(10)/4])
				}
			}
			rows, err := table.ReadHosts(strings.NewReader(hosts),
				table.Options{Format: table.CSV, Dimensions: p.Dimensions})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SetHosts(rows, true); err != nil {
				t.Fatal(err)
			}
		}
		if rng.IntN(2) == 0 {
			demand := "consumer,allocation,sub,units,slots,requirement,max_per_host\n"
			for a := range 5 {
				if rng.IntN(4) > 0 {
					demand += fmt.Sprintf("/%c,a%d,,%d,%d,%s,%s\n", 'A'+rune(a%2), a, rng.IntN(9), 1+rng.IntN(10)/9,
						[]string{"", "select(X)"}[rng.IntN(5)/4], []string{"", "3"}[rng.IntN(5)/4])
				}
			}
			rows, err := table.ReadDemand(strings.NewReader(demand),
				table.Options{Format: table.CSV, Dimensions: p.Dimensions})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SetDemand("s", rows); err != nil {
				t.Fatal(err)
			}
		}
		if n%50 == 0 {
			s.Forget(nil) // names have other codes
		}
		runner.Run(s, n*60e6, &out)
		if n == 200 {
			recorder.Record(s, true) // it is of no use to the log
			log = [3]*decision.Table{}
			recorder = standing.Recorder{}
		}
		of := recorder.Record(s, false)
		if of.Whole != (n == 1 || n == 200) {
			t.Fatalf("cycle %d: whole: %v", n, of.Whole)
		}
		kept := standing.Keep(s, nil, standing.Frozen())
		hosts += checkSums(t, kept)
		all := kept.Whole().Tables()
		for i, rows := range of.Tables() {
			if log[i] = appended(log[i], &rows, n); rows.Rows == 0 {
				quiet++
			} else {
				changed++
			}
			got, want := texts(decision.Latest(log[i])), texts(&all[i])
			if !slices.Equal(got, want) {
				t.Fatalf("cycle %d, %s:\n%s\nexpected\n%s", n, rows.Name, strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
		}
	}
	if changed < 300 || quiet < 300 || hosts < 300 {
		t.Errorf("%d tables changed, %d did not, %d hosts: the inputs show too little", changed, quiet, hosts)
	}
}
