package stint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/stintd/stint/"

// mayImport is the import table of the layout (docs/architecture.md): what each
// package may import besides the standard library. "*" is everything.
var mayImport = map[string][]string{
	"vecpack":   {"golang.org/x/sys/cpu", "github.com/bits-and-blooms/bitset"},
	"core/plan": {"github.com/goccy/go-yaml"},
	"core/cluster": {"vecpack", "core/column", "core/plan", "core/decision", "core/pack",
		"github.com/bits-and-blooms/bitset"},
	"core/view": {"core/cluster", "core/column", "core/plan", "vecpack"},
	"core/room": {"core/column", "vecpack"},
	"core/pool": {"core/cluster", "core/column", "core/plan", "core/share", "core/view", "vecpack"},
	"core/emit": {"core/cluster", "core/decision", "core/owner", "core/plan", "core/pool", "core/reason",
		"core/share"},
	"core/grant": {"core/cluster", "core/column", "core/plan", "core/pool", "core/room", "core/share", "vecpack"},
	"core/reason": {"core/cluster", "core/column", "core/decision", "core/ownership", "core/plan", "core/pool",
		"core/room", "core/share", "core/view"},
	"core/reclaim": {"core/cluster", "core/column", "core/decision", "core/plan", "core/pool", "core/room",
		"core/share"},
	"core/share":     {},
	"core/column":    {"core/pack", "github.com/apache/arrow", "github.com/bits-and-blooms/bitset"},
	"core/ownership": {"core/plan", "core/share", "vecpack"},
	"core/owner":     {"core/cluster", "core/column", "core/ownership", "core/plan"},
	"core/place":     {"core/cluster", "core/plan"},
	"core/slot":      {"core/plan", "core/cluster", "core/column", "core/share", "core/place", "core/decision"},
	"core/decision":  {"core/column", "core/pack"},
	"core/cycle": {
		"core/cluster", "core/share", "core/decision", "core/emit", "core/grant", "core/owner", "core/plan",
		"core/pool", "core/reason", "core/reclaim", "core/slot",
		"core/view",
	},
	"core/standing": {"core/plan", "core/cluster", "core/decision"},
	"core/explain":  {"core/plan", "core/decision"},
	"core/oracle":   {"core/plan"},
	"core/scenario": {"core/cycle", "core/standing", "core/cluster", "core/plan", "core/decision", "ingest/table",
		"github.com/goccy/go-yaml"},
	"ingest/table": {"core/cluster", "core/column", "core/plan", "github.com/apache/arrow",
		"github.com/parquet-go/parquet-go", "github.com/klauspost/compress"},
	"export": {"core/decision", "github.com/parquet-go/parquet-go", "github.com/apache/arrow",
		"github.com/klauspost/compress", "github.com/jedib0t/go-pretty"},
	// Shares no code with the engine: of core only the types of columns.
	"export/verify": {"export", "core/column", "core/decision", "github.com/parquet-go/parquet-go",
		"github.com/goccy/go-yaml"},
	"datasets": {"core/cluster", "core/column", "core/plan", "ingest/table", "github.com/parquet-go/parquet-go",
		"github.com/goccy/go-yaml"},
	"ingest/foreign": {"core/cluster", "core/cycle", "core/decision", "core/plan", "datasets",
		"github.com/goccy/go-yaml"},
	"ingest/compare": {"ingest/foreign", "core/cycle", "core/cluster", "core/decision", "core/plan"},
	"bench":          {"*"},
	"bench/results":  {"bench/measure", "bench/page"},
	"bench/page":     {"github.com/jedib0t/go-pretty"},
	"bench/exact": {
		"bench/bound", "bench/measure", "bench/page", "core/cycle", "core/cluster", "core/plan", "core/decision",
		"datasets",
	},
	"bench/peers": {"*"}, // a module of its own
	"bench/external": {
		"bench/measure", "bench/page", "core/cycle", "core/cluster", "core/plan", "core/decision", "core/simulation",
		"datasets", "export", "export/verify", "ingest/client", "ingest/foreign", "ingest/table",
		"github.com/goccy/go-yaml",
	},
	"examples/kueue":               {"*"}, // a module of its own
	"examples/kueue/bed/apiserver": {"*"}, // likewise, for its tests
	"examples/kueue/bed/etcd":      {"*"},
	"bench/bound":                  {},
	"bench/gate": {
		"bench/measure", "core/cycle", "core/cluster", "core/plan", "core/decision", "datasets", "ingest/table",
		"github.com/jedib0t/go-pretty",
	},
	"bench/measure": {"bench/bound", "core/cycle", "core/cluster", "core/column", "core/plan", "core/decision"},
	"cmd/stint":     {"*"},

	// The service.
	"core/heap":       {"github.com/KimMachineGun/automemlimit"},
	"core/simulation": {"core/cycle", "core/cluster", "core/plan", "core/decision"},
	"core/engine": {"core/cycle", "core/cluster", "core/plan", "core/decision", "core/pack",
		"core/standing"},
	"core/journal":  {},
	"core/pack":     {},
	"ingest/client": {"core/explain", "core/simulation"},
	"ingest/act": {"core/journal", "ingest/client", "github.com/cenkalti/backoff/v5",
		"github.com/prometheus/client_golang"},
	"ingest/act/conform":     {"ingest/act", "ingest/client"},
	"ingest/client/example":  {"ingest/client"},
	"ingest/console":         {},
	"ingest/console/browser": {"github.com/go-rod/rod"},
	"ingest/server": {
		"core/engine", "core/journal", "core/cluster", "core/column", "core/plan", "core/decision", "core/explain",
		"core/simulation", "ingest/table", "ingest/console", "export", "github.com/valyala/fasthttp",
		"github.com/prometheus/client_golang", "github.com/klauspost/compress", "golang.org/x/sys/unix",
	},
	"bench/service": {"*"},
	"bench/hour":    {"bench/measure", "ingest/client"},
	"ingest/bucket": {"core/journal", "github.com/minio/minio-go/v7"},
}

// pure are the packages of the pure function: no clock, no randomness, no
// threads, no files, no network.
var pure = []string{"core/share", "core/ownership", "core/place", "core/slot", "core/owner", "core/cycle",
	"core/column", "core/view", "core/room", "core/pool", "core/grant", "core/reclaim", "core/reason", "core/emit"}

var impure = []string{"time", "math/rand", "math/rand/v2", "sync", "sync/atomic", "os", "log", "log/slog", "net",
	"net/http"}

// sequential are the packages below core/cycle that decide anything, and the state: they start nothing that runs beside
// them. core/cycle alone does, and says how (cluster.State.Both).
var sequential = append([]string{"core/cluster", "core/plan", "core/decision", "vecpack"},
	slices.DeleteFunc(slices.Clone(pure),
		func(dir string) bool { return dir == "core/cycle" })...)

// TestSequential holds that there is no go statement, channel or lock in these.
func TestSequential(t *testing.T) {
	for _, dir := range sequential {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range f.Imports {
				if spec.Path.Value == `"sync"` || spec.Path.Value == `"sync/atomic"` {
					t.Errorf("%s imports %s", file, spec.Path.Value)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n.(type) {
				case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
					t.Errorf("%s: %T", set.Position(n.Pos()), n)
				}
				return true
			})
		}
	}
}

// TestImports holds every package against the table. Test files may import what they need.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && file != "." &&
			(strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		dir := path.Dir(filepath.ToSlash(file))
		seen[dir] = true
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if why := forbidden(dir, name); why != "" {
				t.Errorf("%s imports %s: %s", file, name, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range mayImport {
		if !seen[dir] {
			t.Errorf("the import table names %s, which does not exist", dir)
		}
	}
}

// forbidden tells why a package may not import another, "" when it may.
func forbidden(dir, name string) string {
	allowed, known := mayImport[dir]
	if !known {
		return "the package stands not in the import table"
	}
	if slices.Contains(pure, dir) && slices.Contains(impure, name) {
		return "the package is part of the pure function"
	}
	if name == "unsafe" && dir != "vecpack" && dir != "core/column" {
		return "unsafe is for vecpack and core/column alone"
	}
	own := strings.HasPrefix(name, module)
	if !own && !strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
		return "" // standard library
	}
	name = strings.TrimPrefix(name, module)
	for _, a := range allowed {
		if a == "*" || name == a || !own && strings.HasPrefix(name, a) {
			return ""
		}
	}
	return "not in the import table"
}

// TestLayout holds the table of folders in CONTRIBUTING complete, and the import table to what packages there are.
func TestLayout(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for dir := range mayImport {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the import table has %s: %v", dir, err)
		}
		if !strings.Contains(string(text), "`"+dir+"`") && !strings.HasSuffix(dir, "/example") {
			t.Errorf("CONTRIBUTING says nothing of %s", dir)
		}
	}
}
