package table

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// TestUnpackGrowth holds that a small compressed file of blank lines is refused before it fills the memory, and that a
// long table is not.
func TestUnpackGrowth(t *testing.T) {
	var bomb bytes.Buffer
	z, err := zstd.NewWriter(&bomb)
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte("\n"), 1<<20)
	for range 1 << 10 { // 1 GiB
		if _, err := z.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if bomb.Len() > 200<<10 {
		t.Fatalf("the file has %d bytes, it is to be small", bomb.Len())
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err = Unpack(&bomb, Options{Name: "demand.csv.zst"})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "unpack to more than 1000 times as many") {
		t.Errorf("got %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 512<<20 {
		t.Errorf("%d bytes were allocated on the way to the refusal", took)
	}
	var plain, packed bytes.Buffer
	plain.WriteString("consumer,allocation,units,ncpus\n")
	for i := 0; plain.Len() < growthFreeMax+1<<20; i++ {
		fmt.Fprintf(&plain, "/Risk/Intraday/Desk,%d,1,1\n", i)
	}
	small, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := small.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := small.Close(); err != nil {
		t.Fatal(err)
	}
	got, _, err := Unpack(&packed, Options{Name: "demand.csv.zst"})
	if err != nil || len(got) != plain.Len() {
		t.Errorf("%d of %d bytes: %v", len(got), plain.Len(), err)
	}
}

// TestNoText holds that a file of zeros, such as /dev/zero, is refused by its first bytes.
func TestNoText(t *testing.T) {
	_, _, err := Unpack(bytes.NewReader(make([]byte, 1<<20)), Options{Name: "zero"})
	if err == nil || !strings.Contains(err.Error(), "zero: the content begins with a byte of 0") {
		t.Errorf("got %v", err)
	}
}

// TestPageGrowth holds that a small page of Parquet and a small buffer of Arrow are refused before they are unpacked,
// where that would make them too many times as large.
func TestPageGrowth(t *testing.T) {
	schema := fieldsOf(nullable("a", arrow.BinaryTypes.String))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	b.Field(0).(*array.StringBuilder).Append(strings.Repeat(" ", growthFreeMax+1))
	stream := arrowStream(t, schema, []arrow.RecordBatch{b.NewRecordBatch()}, ipc.WithZstd())
	page := packed(format.Zstd, growthFreeMax+8, zstandard(t, make([]byte, growthFreeMax+8)))
	for name, decode := range map[string]func(o *Options) error{
		"arrow":   func(o *Options) error { return decodeArrow(bytes.NewReader(stream), o, new(gathered).emit) },
		"parquet": func(o *Options) error { return decodeParquet(page, o, new(gathered).emit) },
	} {
		var err error
		took := allocated(func() { err = decode(testOptions(Limits{})) })
		if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "more than 1000 times as many") {
			t.Errorf("%s: got %v", name, err)
		}
		if took > growthFreeMax/2 {
			t.Errorf("%s: %d bytes were allocated on the way to the refusal", name, took)
		}
	}
}
