package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLogUnits writes times as milliseconds, under keys that say so, in both formats.
func TestLogUnits(t *testing.T) {
	for format, want := range map[string]string{
		"text": ` msg=m took_ms=1234.567 bytes=5 now=2026-01-05T08:00:00.000Z`,
		"json": `,"msg":"m","took_ms":1234.567,"bytes":5,"now":"2026-01-05T08:00:00Z"}`,
	} {
		var b bytes.Buffer
		newLogger(&b, "info", format).Info("m", "took", 1234567*time.Microsecond, "bytes", 5,
			"now", time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC))
		if !strings.HasSuffix(b.String(), want+"\n") {
			t.Errorf("%s: %s, expected it to end in %s", format, b.String(), want)
		}
	}
}

// TestCycleLogged reads what the log says of a cycle.
func TestCycleLogged(t *testing.T) {
	r := startServe(t, t.TempDir(), func(c *serveConfig) { c.Log.Level = "debug" })
	tracedCycles(t, r.base)
	r.stop()
	for _, want := range []string{
		"units_granted=16 units_released=0 units_reclaimed=0 units_held=16 units_short=6 units_overdue=0 took_ms=",
		"memory_max_bytes=", "msg=request method=POST path=/v1/cycles status=200 took_ms=",
	} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("no %s in\n%s", want, r.log)
		}
	}
}

var logKey = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// TestLogKeys reads the source of the service for keys of the log: lower case with underscores, no unit of time, which
// newLogger adds, and those that are a size in bytes say so.
func TestLogKeys(t *testing.T) {
	keys := 0
	for _, dir := range []string{"core/engine", "ingest/server", "ingest/bucket", "cmd/stint"} {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				for _, key := range loggedKeys(n) {
					keys++
					if why := badKey(key); why != "" {
						t.Errorf("%s: key %q: %s", set.Position(n.Pos()), key, why)
					}
				}
				return true
			})
		}
	}
	if keys < 60 {
		t.Errorf("%d keys: are the calls found?", keys)
	}
	for _, key := range []string{"took_ms", "after cycle", "memory", "Bytes", "journal_size"} {
		if badKey(key) == "" {
			t.Errorf("%q passes", key)
		}
	}
}

func badKey(key string) string {
	switch {
	case !logKey.MatchString(key):
		return "must be of lower case, with underscores"
	case strings.HasSuffix(key, "_ms"), strings.HasSuffix(key, "_seconds"):
		return "give a time.Duration; newLogger adds the unit"
	case strings.Contains(key, "memory") && !strings.HasSuffix(key, "_bytes"), strings.HasSuffix(key, "size"):
		return "a size must end in _bytes"
	}
	return ""
}

// loggedKeys are the keys of a call of a logger, or of a list that one is given ("args", "ready").
func loggedKeys(n ast.Node) (keys []string) {
	var list []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		of, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, of.Sel.Name) || len(n.Args) < 3 {
			return nil
		}
		if owner := strings.ToLower(ownerOf(of.X)); owner != "log" {
			return nil
		}
		list = n.Args[1:]
	case *ast.CompositeLit:
		of, ok := n.Type.(*ast.ArrayType)
		if !ok || fmt.Sprint(of.Elt) != "any" || len(n.Elts)%2 != 0 {
			return nil
		}
		list = n.Elts
	}
	for i := 0; i < len(list); i += 2 {
		if lit, ok := list[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			key, _ := strconv.Unquote(lit.Value)
			keys = append(keys, key)
		}
	}
	return keys
}

// ownerOf is the last name of what a method is called of.
func ownerOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
