// Package duckdb asks DuckDB the questions of docs/queries.sql and holds its answers against those of stint query. It
// is a module of its own: DuckDB is large and needs cgo, which stint does not.
package duckdb

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
)

// row is a row of a table as stint query prints it.
type row map[string]any

// book is a log, and the stint that reads it.
type book struct {
	*testing.T
	stint, dir string
}

// run runs stint, which must be fine.
func run(t *testing.T, stint string, args ...string) []byte {
	t.Helper()
	var stderr strings.Builder
	c := exec.Command(stint, args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("stint %v: %v\n%s", args, err, stderr.String())
	}
	return out
}

// table is a table by stint query.
func (b *book) table(name, cycle string) (rows []row) {
	b.Helper()
	if err := json.Unmarshal(run(b.T, b.stint, "query", "--log", b.dir, "--output", "json", "--cycle", cycle, name), &rows); err != nil {
		b.Fatal(err)
	}
	return rows
}

func number(v any) float64 {
	f, _ := v.(float64)
	return f
}

// group sums columns of rows by the values of others.
func group(rows []row, by []string, sums ...string) (out [][]any) {
	at := map[string]int{}
	for _, r := range rows {
		var key []any
		for _, c := range by {
			key = append(key, r[c])
		}
		id := fmt.Sprint(key...)
		i, ok := at[id]
		if !ok {
			i = len(out)
			at[id], out = i, append(out, append(key, make([]any, len(sums))...))
			for k := range sums {
				out[i][len(by)+k] = 0.0
			}
		}
		for k, c := range sums {
			if c == "*" {
				out[i][len(by)+k] = number(out[i][len(by)+k]) + 1
			} else {
				out[i][len(by)+k] = number(out[i][len(by)+k]) + number(r[c])
			}
		}
	}
	return out
}

// distinct counts the values of a column by those of others.
func distinct(rows []row, by []string, column string) map[string]float64 {
	seen := map[string]map[any]bool{}
	for _, r := range rows {
		var key []any
		for _, c := range by {
			key = append(key, r[c])
		}
		id := fmt.Sprint(key...)
		if seen[id] == nil {
			seen[id] = map[any]bool{}
		}
		seen[id][r[column]] = true
	}
	out := map[string]float64{}
	for id, values := range seen {
		out[id] = float64(len(values))
	}
	return out
}

// withDistinct appends counts of values to grouped rows.
func withDistinct(out [][]any, n int, counts map[string]float64) [][]any {
	for i := range out {
		out[i] = append(out[i], counts[fmt.Sprint(out[i][:n]...)])
	}
	return out
}

// answers are what stint query says to each question.
var answers = map[string]func(b *book) [][]any{
	"granted":  func(b *book) [][]any { return group(b.table("grants", "all"), []string{"consumer"}, "units") },
	"released": func(b *book) [][]any { return group(b.table("releases", "all"), []string{"cause"}, "units", "*") },
	"held": func(b *book) [][]any {
		return group(b.table("consumers", "last"), []string{"plan", "consumer"}, "demand", "held", "short")
	},
	"short": func(b *book) [][]any {
		cycles := b.table("cycles", "all")
		most := slices.MaxFunc(cycles, func(x, y row) int {
			return cmp.Or(cmp.Compare(number(x["units_short"]), number(y["units_short"])), cmp.Compare(number(y["cycle"]), number(x["cycle"])))
		})
		return group(b.table("shortfalls", fmt.Sprint(number(most["cycle"]))), []string{"reason", "dimension"}, "units_short")
	},
	"busy": func(b *book) (out [][]any) {
		cycles := b.table("cycles", "all")
		slices.SortStableFunc(cycles, func(x, y row) int { return cmp.Compare(number(y["units_granted"]), number(x["units_granted"])) })
		for _, c := range cycles[:min(5, len(cycles))] {
			out = append(out, []any{c["cycle"], c["units_granted"], c["units_released"], c["units_held"]})
		}
		return out
	},
	"full": func(b *book) [][]any {
		return group(b.table("hosts", "last"), []string{"plan", "dimension"}, "used", "capacity")
	},
	"usage": func(b *book) (out [][]any) {
		at := map[string]int{}
		for _, r := range b.table("shares", "all") {
			id := fmt.Sprint(r["consumer"], r["pool"])
			i, ok := at[id]
			if !ok {
				i = len(out)
				at[id], out = i, append(out, []any{r["consumer"], r["pool"], 0.0, 0.0})
			}
			out[i][2], out[i][3] = max(number(out[i][2]), number(r["usage"])), max(number(out[i][3]), number(r["units_held"]))
		}
		return out
	},
	"reclaimed": func(b *book) [][]any {
		rows, by := b.table("reclaims", "all"), []string{"reason", "action"}
		return withDistinct(group(rows, by, "units"), 2, distinct(rows, by, "reclaim"))
	},
	"where": func(b *book) [][]any {
		rows, by := b.table("holdings", "last"), []string{"consumer", "origin"}
		return withDistinct(group(rows, by, "units"), 2, distinct(rows, by, "host"))
	},
	"inputs": func(b *book) [][]any { return group(b.table("inputs", "all"), []string{"kind"}, "*", "rows", "bytes") },
}

var question = regexp.MustCompile(`(?m)^-- (\d+) (\w+): `)

// questions are the statements of docs/queries.sql, by name.
func questions(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "queries.sql"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	places := question.FindAllStringSubmatchIndex(string(text), -1)
	for i, p := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		all[string(text[p[4]:p[5]])] = string(text[p[0]:end])
	}
	return all
}

// ask gives DuckDB's answer, nothing where a table has no file.
func ask(t *testing.T, db *sql.DB, query string) (out [][]any) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		if strings.Contains(err.Error(), "No files found") {
			return nil
		}
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			switch v := v.(type) {
			case int64:
				values[i] = float64(v)
			case int32:
				values[i] = float64(v)
			}
		}
		out = append(out, values)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// lines writes rows, sorted, as both sides are compared.
func lines(rows [][]any) string {
	var all []string
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%v", r))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// openb is a day of the public GPU trace as a log, or "" where the trace is not there.
func openb(t *testing.T, stint, dir string) string {
	t.Helper()
	from, given := os.LookupEnv("STINT_OPENB")
	if !given {
		from = filepath.Join("..", "..", "..", "shared", "data", "openb")
	}
	nodes := filepath.Join(from, "openb_node_list_all_node.csv")
	if _, err := os.Stat(nodes); errors.Is(err, fs.ErrNotExist) && !given {
		return ""
	}
	to := filepath.Join(dir, "openb")
	run(t, stint, "import", "openb", "--nodes", nodes, "--pods", filepath.Join(from, "openb_pod_list_default.csv"),
		"--scenario", "--speed", "150", "--out", to)
	run(t, stint, "simulate", "--scenario", filepath.Join(to, "scenario.yaml"), "--out", filepath.Join(to, "log"))
	return filepath.Join(to, "log")
}

// TestQueries asks both, of logs of single cycles and of one that is compacted.
func TestQueries(t *testing.T) {
	dir := t.TempDir()
	stint := filepath.Join(dir, "stint")
	build := exec.Command("go", "build", "-o", stint, "./cmd/stint")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	logs := []string{}
	for _, name := range []string{"shared", "owned"} {
		log := filepath.Join(dir, name)
		run(t, stint, "simulate", "--scenario", filepath.Join("..", "testdata", "mutation", name+".yaml"), "--out", log)
		logs = append(logs, log)
	}
	days := filepath.Join(dir, "days")
	run(t, stint, "simulate", "--scenario", filepath.Join("..", "..", "testdata", "week", "week.yaml"), "--out", days)
	run(t, stint, "compact", "--log", days)
	logs = append(logs, days)
	if log := openb(t, stint, dir); log != "" {
		logs = append(logs, log)
	}
	all := questions(t)
	if len(all) != 10 || len(answers) != 10 {
		t.Fatalf("%d questions, %d answers", len(all), len(answers))
	}
	for _, log := range logs {
		asked := 0
		for name, text := range all {
			answer, ok := answers[name]
			if !ok {
				t.Fatalf("no answer to %s", name)
			}
			want := lines(answer(&book{t, stint, log}))
			got := lines(ask(t, db, strings.ReplaceAll(text, "'log/", "'"+log+"/")))
			if got != want {
				t.Errorf("%s, %s: DuckDB says\n%s\nand stint query\n%s", log, name, got, want)
			}
			if got != "" {
				asked++
			}
		}
		t.Logf("%s: %d of %d questions have an answer", filepath.Base(log), asked, len(all))
		if asked < 8 {
			t.Errorf("%s: only %d questions have an answer", log, asked)
		}
	}
}
