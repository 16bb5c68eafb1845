package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestVerifyFormats verifies logs whose inputs came in every format: verify has readers of its own for them.
func TestVerifyFormats(t *testing.T) {
	base := t.TempDir()
	for _, format := range []string{"csv", "json", "ndjson", "parquet"} {
		stint(t, "gen", "gpu", "--hosts", "40", "--consumers", "8", "--units", "600", "--format", format, "--out",
			filepath.Join(base, format))
	}
	from, to := filepath.Join(base, "csv"), filepath.Join(base, "arrow")
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hosts", "demand"} {
		toArrow(t, filepath.Join(from, name+".csv"), filepath.Join(to, name+".arrow"))
	}
	plan, err := os.ReadFile(filepath.Join(from, "plan.yaml"))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "plan.yaml"), plan, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"csv", "json", "ndjson", "parquet", "arrow"} {
		dir := filepath.Join(base, format)
		stint(t, "run", "--plan", filepath.Join(dir, "plan.yaml"), "--hosts", filepath.Join(dir, "hosts."+format),
			"--demand", filepath.Join(dir, "demand."+format), "--at", "2026-01-05T08:00:00Z", "--cycles", "3", "--out",
			filepath.Join(dir, "log"))
		r := checkLog(t, format, filepath.Join(dir, "log"))
		if r.Checks["D-7"] == 0 || r.Checks["REQ-1"] == 0 {
			t.Errorf("%s: little was checked: %v", format, r.Checks)
		}
	}
}

// stint runs a command line that must be fine.
func stint(t *testing.T, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := execute(args, &stdout, &stderr); code != exitFine {
		t.Fatalf("stint %v: exit code %d\n%s", args, code, stderr.String())
	}
}

// toArrow writes a CSV file as an Arrow stream: a column of numbers where all values are, else of texts.
func toArrow(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var fields []arrow.Field
	var columns []arrow.Array
	for c, name := range records[0] {
		whole := true
		for _, r := range records[1:] {
			_, err := strconv.ParseInt(r[c], 10, 64)
			whole = whole && (err == nil || r[c] == "")
		}
		ints, texts := array.NewInt64Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
		for _, r := range records[1:] {
			switch v, _ := strconv.ParseInt(r[c], 10, 64); {
			case r[c] == "":
				ints.AppendNull()
				texts.AppendNull()
			default:
				ints.Append(v)
				texts.Append(r[c])
			}
		}
		if whole {
			fields, columns = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true}),
				append(columns, ints.NewArray())
		} else {
			fields, columns = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}),
				append(columns, texts.NewArray())
		}
	}
	schema := arrow.NewSchema(fields, nil)
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema))
	err = w.Write(array.NewRecordBatch(schema, columns, int64(len(records)-1)))
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = os.WriteFile(to, b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
