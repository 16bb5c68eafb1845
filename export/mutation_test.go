package export_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/scenario"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/export/verify"
)

// mutationsMin is how many changes of a log an ordinary test run tries, each with digests left alone and made anew.
const mutationsMin = 40

// TestMutations changes rows of logs and holds verify to finding it: at least 99 of 100 changes of a figure, when
// whoever changed it made every digest and seal agree.
func TestMutations(t *testing.T) {
	n := mutationsMin
	if text := os.Getenv("STINT_MUTATIONS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("STINT_MUTATIONS=%q: want a number", text)
		}
	}
	files, err := filepath.Glob("testdata/mutation/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	if more := os.Getenv("STINT_MUTATED"); more != "" { // further scenarios
		files = append(files, strings.Fields(more)...)
	}
	seed := uint64(7) // the same in every run of make test
	if os.Getenv("STINT_SOAK") != "" {
		seed = rand.Uint64()
	}
	if text := os.Getenv("STINT_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STINT_SEED=%q: want a number", text)
		}
	}
	t.Log("STINT_SEED =", seed)
	m := mutator{T: t, rng: rand.New(rand.NewPCG(seed, 7)), tried: map[string]int{}, missed: map[string][]string{}}
	for i, file := range files {
		m.open(file)
		for k := i; k < n; k += len(files) {
			m.mutate()
		}
	}
	m.report()
}

// mutator changes logs at random.
type mutator struct {
	*testing.T
	rng    *rand.Rand
	name   string
	dir    string
	log    *export.Reader
	forger *export.Forger
	hosts  []string
	paths  []string // of consumers

	tried  map[string]int
	missed map[string][]string
}

// recorder writes a scenario's cycles as stint simulate does.
type recorder struct {
	log    *export.Writer
	inputs []export.Input
	nowUS  int64
}

func (r *recorder) Input(in scenario.Input) error {
	logged, err := r.log.Input(in.Kind, in.Source, in.Format, in.Content)
	logged.Rows = in.Rows
	r.inputs = append(r.inputs, logged)
	return err
}

func (r *recorder) Cycle(out *decision.Cycle, keyframe func(state bool), last bool) error {
	if s := &out.Summary; last || s.KeyframeDue(r.nowUS) {
		keyframe(s.StateDue(r.nowUS))
	}
	err := r.log.Cycle(out, r.inputs)
	r.inputs, r.nowUS = nil, out.Summary.NowUS
	return err
}

// open makes the log of a scenario.
func (m *mutator) open(file string) {
	m.Helper()
	scenarios, err := scenario.Load(file)
	if err != nil {
		m.Fatal(err)
	}
	m.name, m.dir = filepath.Base(file), filepath.Join(m.TempDir(), "log")
	w, err := export.Open(m.dir, export.Options{Lazy: true})
	if err != nil {
		m.Fatal(err)
	}
	if _, err := scenarios[0].Record(&recorder{log: w}); err != nil {
		m.Fatal(err)
	}
	if err := w.Close(); err != nil {
		m.Fatal(err)
	}
	m.forger = export.NewForger(m.dir)
	m.reopen()
	if r := m.verify(); !r.OK() {
		m.Fatalf("%s: the log as it was written: %v", file, r.Faults)
	}
	m.hosts, m.paths = m.words("hosts", "host"), m.words("consumers", "consumer")
}

func (m *mutator) reopen() {
	m.Helper()
	var err error
	if m.log, err = export.OpenLog(m.dir); err != nil {
		m.Fatal(err)
	}
}

// words are the distinct texts of a column in the first cycle.
func (m *mutator) words(table, column string) []string {
	t, err := m.log.Table(table, m.log.Cycles()[0])
	if err != nil {
		m.Fatal(err)
	}
	found := map[string]bool{}
	c := t.Column(column)
	for _, code := range c.Code {
		found[string(c.Dict.Bytes(code))] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// verify verifies the log as it is now.
func (m *mutator) verify() *verify.Report {
	m.Helper()
	r, err := export.OpenLog(m.dir)
	if err != nil {
		return &verify.Report{Count: 1} // it cannot even be opened
	}
	report, err := verify.Log(r, verify.Options{})
	if err != nil {
		return &verify.Report{Count: 1}
	}
	return report
}

// figures are the columns of whole numbers that say something of what was decided.
var figures = map[string][]string{
	"grants": {"units"}, "reclaims": {"units", "reclaim"}, "releases": {"units", "reclaim"},
	"consumers": {"rank", "demand", "held", "short", "owned_configured", "owned", "reserved", "slot_limit",
		"static_quota", "quota", "held_owned",
		"held_shared", "held_borrowed", "lent", "free"},
	"amounts":    {"configured", "owned", "reserved", "held", "lent", "static_quota", "share_limit"},
	"shares":     {"ratio", "priority", "units_held", "units_wanted"},
	"shortfalls": {"units_short"}, "holdings": {"units", "granted"}, "hosts": {"capacity", "used"},
	"owners": {"rule", "part", "since", "amount"},
	"cycles": {"revision", "hosts", "consumers", "sub_allocations", "units_wanted", "units_held", "units_granted",
		"units_reclaimed",
		"units_released", "units_short", "consumers_cycle", "shares_cycle", "shortfalls_cycle", "standing_cycle"},
	"loans":           {"units", "under_recall"},
	"sub_allocations": {"wanted", "held", "first_seen", "max_per_host", "min_units"}, "inputs": {"bytes", "rows"},
	"plans": {"revision"}, "ownership": {"amount"},
}

// kinds are the kinds of changes. Each gives what it changed, "" when there was nothing to change.
var kinds = []struct {
	name   string
	change func(m *mutator, name string, t *decision.Table) string
}{
	{"a unit more or less", (*mutator).unit},
	{"host swapped", func(m *mutator, name string, t *decision.Table) string { return m.word(t, "host", m.hosts) }},
	{"row dropped", (*mutator).drop},
	{"row doubled", (*mutator).double},
	{"origin changed", func(m *mutator, name string, t *decision.Table) string {
		return m.word(t, "origin", decision.Origins)
	}},
	{"pool changed", func(m *mutator, name string, t *decision.Table) string {
		return m.word(t, "pool", append([]string{"", "/"}, m.paths...))
	}},
	{"lender changed", func(m *mutator, name string, t *decision.Table) string {
		return m.word(t, "lender", append([]string{""}, m.paths...))
	}},
	{"consumer changed", func(m *mutator, name string, t *decision.Table) string {
		column := map[string]string{"ownership": "consumer", "reclaims": "for_consumer", "loans": "borrower",
			"sub_allocations": "consumer"}[name]
		if column == "" {
			return ""
		}
		return m.word(t, column, m.paths)
	}},
	{"reason changed", func(m *mutator, name string, t *decision.Table) string {
		switch name {
		case "reclaims":
			return m.word(t, "reason", decision.ReclaimReasons)
		case "shortfalls":
			return m.word(t, "reason", decision.Reasons)
		case "releases":
			return m.word(t, "cause", decision.Causes)
		case "ownership":
			return m.word(t, "action", decision.OwnerActions)
		}
		return ""
	}},
	{"share changed", (*mutator).share},
	{"device changed", func(m *mutator, name string, t *decision.Table) string {
		if m.name != "devices.yaml" {
			return ""
		}
		return m.word(t, "device", []string{"", "0", "1", "2", "3", "0+1", "2+3"})
	}},
}

// mutate makes one change, of a kind at random, in a row at random.
func (m *mutator) mutate() {
	m.Helper()
	if m.rng.IntN(len(kinds)+1) == 0 {
		m.flip()
		return
	}
	kind := kinds[m.rng.IntN(len(kinds))]
	for tries := 0; ; tries++ {
		if tries == 1000 { // the log has nothing of what it changes
			kind, tries = kinds[m.rng.IntN(len(kinds))], 0
		}
		cycles := m.log.Cycles()
		cycle := cycles[m.rng.IntN(len(cycles))]
		tables, err := m.forger.Tables(m.log, cycle)
		if err != nil {
			m.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(tables))
		name := names[m.rng.IntN(len(names))]
		if tables[name].Rows == 0 || name == "cycles" && strings.HasPrefix(kind.name, "row ") {
			continue
		}
		what := kind.change(m, name, tables[name])
		if what == "" {
			continue // few tables have what some kinds change
		}
		what = fmt.Sprintf("%s: cycle %d, %s: %s", m.name, cycle, name, what)
		for _, digests := range []bool{false, true} {
			mode := ", digests as they were"
			if digests {
				mode = ", digests made anew"
			}
			if err := m.forger.Forge(m.log, cycle, name, tables, digests); err != nil {
				m.Fatalf("%s: %v", what, err)
			}
			m.judge(kind.name+mode, what)
		}
		return
	}
}

// judge verifies the changed log and puts it back.
func (m *mutator) judge(kind, what string) {
	m.Helper()
	m.tried[kind]++
	if m.verify().OK() {
		m.missed[kind] = append(m.missed[kind], what)
	}
	if err := m.forger.Restore(); err != nil {
		m.Fatal(err)
	}
}

// unit adds or takes one.
func (m *mutator) unit(name string, t *decision.Table) string {
	columns := figures[name]
	if len(columns) == 0 {
		return ""
	}
	c, row := t.Column(columns[m.rng.IntN(len(columns))]), m.rng.IntN(t.Rows)
	if c.Null != nil && c.Null[row] {
		return ""
	}
	was := c.Int[row]
	c.Int = slices.Clone(c.Int)
	c.Int[row] += int64(1 - 2*m.rng.IntN(2))
	return fmt.Sprintf("row %d, %s %d → %d", row, c.Name, was, c.Int[row])
}

// share changes a share by a ten-thousandth or more.
func (m *mutator) share(name string, t *decision.Table) string {
	if name != "shares" {
		return ""
	}
	c, row := t.Column([]string{"usage", "usage_demand", "usage_quota"}[m.rng.IntN(3)]), m.rng.IntN(t.Rows)
	was := c.Float[row]
	c.Float = slices.Clone(c.Float)
	c.Float[row] += 0.0001 + m.rng.Float64()/10
	return fmt.Sprintf("row %d, %s %v → %v", row, c.Name, was, c.Float[row])
}

// word puts another text into a column.
func (m *mutator) word(t *decision.Table, column string, choice []string) string {
	c := t.Column(column)
	if c == nil || c.Type != decision.Text {
		return ""
	}
	row := m.rng.IntN(t.Rows)
	was, now := "", choice[m.rng.IntN(len(choice))]
	if c.Code[row] >= 0 {
		was = string(c.Dict.Bytes(c.Code[row]))
	}
	if was == now {
		return ""
	}
	var words decision.Words
	if c.Dict != nil {
		for code := range int32(c.Dict.Len()) {
			words = append(words, string(c.Dict.Bytes(code)))
		}
	}
	at := slices.Index(words, now)
	if at < 0 {
		at, words = len(words), append(words, now)
	}
	if now == "" {
		at = int(decision.Null)
	}
	c.Dict, c.Code = words, slices.Clone(c.Code)
	c.Code[row] = int32(at)
	return fmt.Sprintf("row %d, %s %q → %q", row, column, was, now)
}

func (m *mutator) drop(_ string, t *decision.Table) string {
	row := m.rng.IntN(t.Rows)
	m.pick(t, func(k int) bool { return k != row }, -1)
	return fmt.Sprintf("row %d of %d dropped", row, t.Rows+1)
}

func (m *mutator) double(_ string, t *decision.Table) string {
	row := m.rng.IntN(t.Rows)
	m.pick(t, func(int) bool { return true }, row)
	return fmt.Sprintf("row %d of %d doubled", row, t.Rows-1)
}

// pick keeps some rows, one of them twice.
func (m *mutator) pick(t *decision.Table, keep func(row int) bool, twice int) {
	var rows []int
	for row := range t.Rows {
		if keep(row) {
			rows = append(rows, row)
		}
		if row == twice {
			rows = append(rows, row)
		}
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		c.Int, c.Float, c.Code = take(c.Int, rows), take(c.Float, rows), take(c.Code, rows)
		c.Lists, c.Null = take(c.Lists, rows), take(c.Null, rows)
	}
	t.Rows = len(rows)
}

func take[T any](list []T, rows []int) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = list[row]
	}
	return out
}

// flip flips a bit of any file of the log but the views, which are the same for every log and are written anew by
// whoever writes to it.
func (m *mutator) flip() {
	m.Helper()
	var paths []string
	err := filepath.WalkDir(m.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != ".lock" && d.Name() != "views.sql" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		m.Fatal(err)
	}
	path := paths[m.rng.IntN(len(paths))]
	info, err := os.Stat(path)
	if err != nil {
		m.Fatal(err)
	}
	at, bit := m.rng.Int64N(info.Size()), m.rng.IntN(8)
	if err := m.forger.Flip(path, at, bit); err != nil {
		m.Fatal(err)
	}
	m.judge("byte flipped", fmt.Sprintf("%s: byte %d, bit %d", strings.TrimPrefix(path, m.dir), at, bit))
}

// report prints what was tried and missed, and fails when too much was.
func (m *mutator) report() {
	tried, missed, anew, anewMissed := 0, 0, 0, 0
	for _, kind := range slices.Sorted(maps.Keys(m.tried)) {
		m.Logf("%-45s %5d tried, %d missed", kind, m.tried[kind], len(m.missed[kind]))
		for _, what := range m.missed[kind] {
			m.Logf("    missed: %s", what)
		}
		tried, missed = tried+m.tried[kind], missed+len(m.missed[kind])
		if strings.HasSuffix(kind, "anew") {
			anew, anewMissed = anew+m.tried[kind], anewMissed+len(m.missed[kind])
		}
	}
	m.Logf("%d changes, %d missed; of %d with digests made anew %d missed", tried, missed, anew, anewMissed)
	// of few changes one may be of those that no log can tell (docs/verify.md)
	if anewMissed > max(1, anew/100) || missed > anewMissed {
		m.Errorf("too many were missed")
	}
}
