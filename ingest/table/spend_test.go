package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/stintd/stint/core/cluster"
)

// purse is an allowance of memory, as a service gives one to an input.
type purse struct {
	most  int64
	spent atomic.Int64
	asked atomic.Int64 // how often
	until int64        // times that it may be asked; 0: any
}

var errPurse = errors.New("no memory is left")

func (p *purse) spend(bytes int64) error {
	if n := p.asked.Add(1); p.until > 0 && n > p.until {
		return errPurse
	}
	if p.spent.Add(bytes) > p.most {
		p.spent.Add(-bytes)
		return errPurse
	}
	return nil
}

// hungry are tables that cost far more memory than they have bytes, of the kinds that a reader of each format might
// overlook. Each takes more than 8 MiB.
func hungry(t *testing.T) map[string][]byte {
	long := strings.Repeat("x", 1<<20-1)
	var names, hosts strings.Builder
	names.WriteString("consumer,allocation,units\n")
	for i := range 200_000 {
		fmt.Fprintf(&names, "/A,an-allocation-%d,1\n", i)
	}
	rows := bytes.Repeat([]byte("{\"consumer\":\"/A\",\"allocation\":\"a\",\"units\":1}\n"), 1_500_000)
	hosts.WriteString("host,note\n")
	for i := range 30 {
		fmt.Fprintf(&hosts, "h%d,%d%s\n", i, i, long[:1<<20-10])
	}
	type note struct {
		Host string `parquet:"host,dict"`
		Note string `parquet:"note,dict"`
	}
	notes := make([]note, 30)
	for i := range notes {
		notes[i] = note{fmt.Sprint("h", i), fmt.Sprint(i, long[:1<<20-10])}
	}
	return map[string][]byte{
		"names.csv":         zstandard(t, []byte(names.String())),
		"rows.ndjson":       zstandard(t, rows),
		"notes.csv":         zstandard(t, []byte(hosts.String())),
		"page.parquet":      packed(format.Zstd, 48<<20, zstandard(t, make([]byte, 48<<20))),
		"dict.parquet":      parquetFile(t, notes, parquet.Compression(&parquet.Zstd)),
		"nulls.parquet":     nullParquet(1_500_000),
		"buffer.arrow":      zstdArrow(t, 48<<20),
		"dictionary.arrow":  dictionaryArrow(t, 30, long),
		"nulls.arrow":       nullArrow(t, 1_500_000),
		"window.json":       zstandard(t, []byte(`[{"host":"`+strings.Repeat("y", 15<<20)+`"}]`)),
		"whole.parquet.zst": zstandard(t, append([]byte("PAR1"), make([]byte, 48<<20)...)),
	}
}

// nullParquet has rows that are all null, as one run.
func nullParquet(rows int) []byte {
	level := []byte{0, 0, 0, 0}
	run := append(uvarint(uint64(rows)<<1), 0)
	level[0] = byte(len(run))
	f := parquetOf(format.ByteArray, rows, pageOf(rows, format.Plain, append(level, run...)...))
	f.meta.Schema[1].Name = "host"
	f.meta.Schema[1].RepetitionType.V = format.Optional
	return f.file()
}

func uvarint(n uint64) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func zstdArrow(t *testing.T, n int) []byte {
	schema := fieldsOf(nullable("host", arrow.BinaryTypes.String))
	offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, int32(n)}))
	data := array.NewData(arrow.BinaryTypes.String, 1,
		[]*memory.Buffer{nil, offsets, memory.NewBufferBytes(make([]byte, n))}, nil, 0, 0)
	record := array.NewRecordBatch(schema, []arrow.Array{array.NewStringData(data)}, 1)
	return arrowStream(t, schema, []arrow.RecordBatch{record}, ipc.WithZstd())
}

func dictionaryArrow(t *testing.T, words int, long string) []byte {
	schema := fieldsOf(nullable("host", dictionaryOf(arrow.PrimitiveTypes.Int32)))
	b := array.NewBuilder(memory.DefaultAllocator, schema.Field(0).Type).(*array.BinaryDictionaryBuilder)
	defer b.Release()
	for i := range words {
		if err := b.AppendString(fmt.Sprint(i, long[:1<<20-10])); err != nil {
			t.Fatal(err)
		}
	}
	return arrowStream(t, schema,
		[]arrow.RecordBatch{array.NewRecordBatch(schema, []arrow.Array{b.NewArray()}, int64(words))}, ipc.WithZstd())
}

func nullArrow(t *testing.T, rows int) []byte {
	schema := fieldsOf(nullable("host", arrow.Null))
	return arrowStream(t, schema,
		[]arrow.RecordBatch{array.NewRecordBatch(schema, []arrow.Array{array.NewNull(rows)}, int64(rows))})
}

// TestSpend gives tables that are hungry less memory than they need: each is refused with what the purse says, and has
// taken little more by then.
func TestSpend(t *testing.T) {
	const allowance = 6 << 20
	read := map[string]func(r io.Reader, o Options) error{
		"names.csv":   func(r io.Reader, o Options) error { _, err := ReadDemand(r, o); return err },
		"rows.ndjson": func(r io.Reader, o Options) error { _, err := ReadDemand(r, o); return err },
	}
	hosts := func(r io.Reader, o Options) error { _, err := ReadHosts(r, o); return err }
	for name, src := range hungry(t) {
		decode := read[name]
		if decode == nil {
			decode = hosts
		}
		p := &purse{most: allowance}
		var err error
		heap := allocated(func() { err = decode(bytes.NewReader(src), Options{Name: name, Spend: p.spend}) })
		var faults *cluster.Faults
		if !errors.Is(err, errPurse) || errors.As(err, &faults) {
			t.Errorf("%s of %d bytes: %.200v; %d bytes were asked for", name, len(src), err, p.spent.Load())
		}
		if heap > 4*allowance+(24<<20) { // in all, what was let go as columns grew included
			t.Errorf("%s of %d bytes takes %d MiB of the %d MiB that it may", name, len(src), heap>>20, allowance>>20)
		}
	}
}

// TestSpendEnough has tables that are hungry and good be read when there is memory enough, and ask for what they hold.
func TestSpendEnough(t *testing.T) {
	src := hungry(t)
	for name, least := range map[string]int64{"names.csv": 200_000 * 24, "rows.ndjson": 1_500_000 * 16} {
		p := &purse{most: 4 << 30}
		if _, err := ReadDemand(bytes.NewReader(src[name]), Options{Name: name, Spend: p.spend}); err != nil ||
			p.spent.Load() < least || p.spent.Load() > 8*least {
			t.Errorf("%s: %v; %d bytes were asked for, at least %d are held", name, err, p.spent.Load(), least)
		}
	}
	for name, least := range map[string]int64{"notes.csv": 30 << 20, "dict.parquet": 30 << 20,
		"dictionary.arrow": 30 << 20} {
		p := &purse{most: 4 << 30}
		if _, err := ReadHosts(bytes.NewReader(src[name]),
			Options{Name: name, Spend: p.spend}); p.spent.Load() < least || p.spent.Load() > 8*least {
			t.Errorf("%s: %.100v; %d bytes were asked for, at least %d are held", name, err, p.spent.Load(), least)
		}
	}
}

// TestSpendEnds has decoding be ended while nothing comes of what is read: blank lines, white space, rows of nothing.
func TestSpendEnds(t *testing.T) {
	for name, src := range map[string]string{
		"blank.csv": "host\n" + strings.Repeat("\n", 64<<20), "blank.ndjson": strings.Repeat("\n", 64<<20),
		"spaces.ndjson": strings.Repeat(" \n", 32<<20), "list.json": "[" + strings.Repeat(" ", 1<<20),
	} {
		packed := zstandard(t, []byte(src), zstd.WithEncoderLevel(zstd.SpeedFastest))
		p := &purse{most: 1 << 30, until: 3}
		if _, err := ReadHosts(bytes.NewReader(packed),
			Options{Name: name, Compression: Zstd, Spend: p.spend}); !errors.Is(err, errPurse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := &purse{most: 1 << 30, until: 30}
	if _, err := ReadHosts(bytes.NewReader(nullParquet(1_500_000)),
		Options{Name: "x.parquet", Spend: p.spend}); !errors.Is(err, errPurse) {
		t.Error(err)
	}
}
