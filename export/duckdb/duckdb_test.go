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
	if err := json.Unmarshal(run(b.T, b.stint, "query", "--log", b.dir, "--output", "json", "--cycle", cycle, name),
		&rows); err != nil {
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
		leaves := slices.DeleteFunc(b.table("consumers", "last"), func(r row) bool { return number(r["leaf"]) == 0 })
		return group(leaves, []string{"plan", "consumer"}, "demand", "held", "short")
	},
	"short": func(b *book) [][]any {
		cycles := b.table("cycles", "all")
		most := slices.MaxFunc(cycles, func(x, y row) int {
			return cmp.Or(cmp.Compare(number(x["units_short"]), number(y["units_short"])),
				cmp.Compare(number(y["cycle"]), number(x["cycle"])))
		})
		return group(b.table("shortfalls", fmt.Sprint(number(most["cycle"]))), []string{"reason", "dimension"},
			"units_short")
	},
	"busy": func(b *book) (out [][]any) {
		cycles := b.table("cycles", "all")
		slices.SortStableFunc(cycles, func(x, y row) int {
			return cmp.Compare(number(y["units_granted"]), number(x["units_granted"]))
		})
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
			out[i][2] = max(number(out[i][2]), number(r["usage"]))
			out[i][3] = max(number(out[i][3]), number(r["units_held"]))
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
	"lent": func(b *book) [][]any {
		return group(b.table("loans", "last"), []string{"plan", "lender", "borrower"}, "units", "under_recall")
	},
	"waiting": func(b *book) (out [][]any) {
		rows := slices.DeleteFunc(b.table("sub_allocations", "last"), func(r row) bool {
			return number(r["wanted"]) <= number(r["held"])
		})
		lacking := func(r row) float64 { return number(r["wanted"]) - number(r["held"]) }
		key := func(r row) string { return fmt.Sprintf("%s\x00%s\x00%s", r["consumer"], r["allocation"], r["sub"]) }
		slices.SortFunc(rows, func(x, y row) int {
			return cmp.Or(cmp.Compare(lacking(y), lacking(x)), cmp.Compare(key(x), key(y)))
		})
		for _, r := range rows[:min(5, len(rows))] {
			out = append(out, []any{r["consumer"], r["allocation"], r["sub"], lacking(r), r["requirement"],
				r["first_seen"]})
		}
		return out
	},
	"lost": func(b *book) [][]any {
		rows := slices.DeleteFunc(b.table("releases", "all"), func(r row) bool {
			return number(r["unit_seconds_lost"]) == 0
		})
		return group(rows, []string{"consumer"}, "unit_seconds_lost", "units")
	},
	"gangs": func(b *book) (out [][]any) {
		for _, r := range b.table("shortfalls", "last") {
			if r["reason"] != "gang" {
				continue
			}
			var fit, needed float64
			var next string
			if _, err := fmt.Sscanf(r["detail"].(string), "%g of %g units would fit, the next one: %s", &fit, &needed,
				&next); err != nil {
				b.Fatal(err)
			}
			out = append(out, []any{r["consumer"], r["allocation"], r["sub"], r["units_short"], fit, needed,
				strings.TrimSuffix(next, ":")})
		}
		return out
	},
	"inputs": func(b *book) [][]any {
		return group(b.table("inputs", "all"), []string{"kind", "author"}, "*", "rows", "bytes")
	},
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

// ask gives DuckDB's answer.
func ask(t *testing.T, db *sql.DB, query string) (out [][]any) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
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

// build makes the stint to be asked.
func build(t *testing.T, dir string) string {
	t.Helper()
	stint := filepath.Join(dir, "stint")
	c := exec.Command("go", "build", "-o", stint, "./cmd/stint")
	c.Dir = filepath.Join("..", "..")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return stint
}

// open gives a database with the views of a log, as the log brings them along.
func open(t *testing.T, log string) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1) // settings are a connection's
	views, err := os.ReadFile(filepath.Join(log, "views.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"SET file_search_path = '" + log + "'", string(views)} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// old is a copy of a log of the first schema, with views: cycles were appended to it.
func old(t *testing.T, stint, dir string) string {
	t.Helper()
	log := filepath.Join(dir, "old")
	if err := os.CopyFS(log, os.DirFS(filepath.Join("..", "testdata", "schema1", "log"))); err != nil {
		t.Fatal(err)
	}
	from := filepath.Join("..", "testdata", "schema1")
	run(t, stint, "run", "--plan", filepath.Join(from, "plan.yaml"), "--hosts", filepath.Join(from, "hosts.csv"),
		"--demand", filepath.Join(from, "demand.csv"), "--cycles", "2", "--out", log, "--append")
	return log
}

// TestViews holds every view in every cycle against stint query: of a log of single cycles, of one to which compaction
// comes while old files are still there, and of one that was begun with the first schema.
func TestViews(t *testing.T) {
	dir := t.TempDir()
	stint := build(t, dir)
	single := filepath.Join(dir, "single")
	run(t, stint, "simulate", "--scenario", filepath.Join("..", "testdata", "mutation", "shared.yaml"), "--out", single)
	days, from := filepath.Join(dir, "days"), filepath.Join("..", "testdata", "schema1")
	run(t, stint, "run", "--plan", filepath.Join(from, "plan.yaml"), "--hosts", filepath.Join(from, "hosts.csv"),
		"--demand", filepath.Join(from, "demand.csv"), "--cycles", "9", "--at", "2026-01-05T23:55:00Z", "--out", days)
	both := filepath.Join(dir, "both")
	if err := os.CopyFS(both, os.DirFS(days)); err != nil {
		t.Fatal(err)
	}
	run(t, stint, "compact", "--log", days)
	err := filepath.WalkDir(days, func(path string, d fs.DirEntry, err error) error {
		to := filepath.Join(both, strings.TrimPrefix(path, days))
		if _, there := os.Stat(to); err != nil || d.IsDir() || there == nil {
			return err
		}
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Link(path, to))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range []string{single, both, old(t, stint, dir)} {
		db, b := open(t, log), &book{t, stint, log}
		cycles := b.table("cycles", "all")
		if got := ask(t, db,
			"SELECT count(*), count(DISTINCT cycle) FROM cycles"); fmt.Sprint(got) != fmt.Sprintf("[[%d %d]]",
			len(cycles), len(cycles)) {
			t.Errorf("%s: %v cycles, of %d", log, got, len(cycles))
		}
		for name, sum := range map[string]string{
			"grants": "units", "releases": "units", "reclaims": "units", "ownership": "amount", "plans": "revision",
			"inputs": "bytes", "consumers": "held", "amounts": "held", "shares": "units_held",
			"shortfalls": "units_short", "loans": "units", "sub_allocations": "wanted", "attributes": "length(value)",
		} {
			for i := 0; i < len(cycles); i += 1 + len(cycles)/5 {
				if slices.Contains([]string{"loans", "sub_allocations", "attributes"}, name) &&
					number(cycles[i]["standing_cycle"]) == 0 {
					continue // of an earlier schema
				}
				n := fmt.Sprint(number(cycles[i]["cycle"]))
				rows := b.table(name, n)
				want := []any{float64(len(rows)), 0.0}
				for _, r := range rows {
					if value, is := r["value"].(string); is {
						want[1] = number(want[1]) + float64(len(value))
						continue
					}
					want[1] = number(want[1]) + number(r[sum])
				}
				got := ask(t, db, fmt.Sprintf("SELECT count(*), coalesce(sum(%s), 0)::BIGINT FROM %s WHERE cycle = %s",
					sum, name, n))
				if fmt.Sprint(got) != fmt.Sprint([][]any{want}) {
					t.Errorf("%s, %s of cycle %s: DuckDB says %v, stint query %v", log, name, n, got, want)
				}
			}
		}
		got := lines(ask(t, db,
			"SELECT cycle, consumer, coalesce(parent, ''), depth, leaf, coalesce(slot_limit, -1) FROM consumers"))
		var want [][]any
		for _, c := range cycles {
			for _, r := range b.table("consumers", fmt.Sprint(number(c["cycle"]))) {
				limit := -1.0
				if r["slot_limit"] != nil {
					limit = number(r["slot_limit"])
				}
				parent, _ := r["parent"].(string)
				want = append(want, []any{c["cycle"], r["consumer"], parent, r["depth"], number(r["leaf"]) == 1, limit})
			}
		}
		if got != lines(want) {
			t.Errorf("%s: consumers by DuckDB\n%.2000s\nand by stint query\n%.2000s", log, got, lines(want))
		}
	}
}

// TestQueries asks both, of logs of single cycles and of one that is compacted.
func TestQueries(t *testing.T) {
	dir := t.TempDir()
	stint := build(t, dir)
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
	if len(all) != 14 || len(answers) != 14 {
		t.Fatalf("%d questions, %d answers", len(all), len(answers))
	}
	gangs := filepath.Join(dir, "gangs")
	run(t, stint, "simulate", "--scenario", filepath.Join("testdata", "gangs.yaml"), "--out", gangs)
	if got := ask(t, open(t, gangs), all["gangs"]); len(got) != 2 {
		t.Errorf("of two gangs that wait DuckDB tells %v", got)
	}
	for _, log := range append(logs, gangs) {
		asked, db := 0, open(t, log)
		for name, text := range all {
			answer, ok := answers[name]
			if !ok {
				t.Fatalf("no answer to %s", name)
			}
			want := lines(answer(&book{t, stint, log}))
			got := lines(ask(t, db, text))
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
