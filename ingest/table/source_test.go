package table

import (
	"bytes"
	stdgzip "compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/stintd/stint/core/cluster"
)

func gzipped(t testing.TB, text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Name = "demand.csv"
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t testing.TB, text []byte, options ...zstd.EOption) []byte {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, options...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var packers = []struct {
	ending string
	pack   func(testing.TB, []byte) []byte
}{
	{".gz", gzipped},
	{".zst", func(t testing.TB, text []byte) []byte { return zstandard(t, text) }},
}

// TestCompressed reads what two writers packed one behind the other, told and
// guessed, whole and byte by byte.
func TestCompressed(t *testing.T) {
	text := demandText(CSV, 500)
	want, err := ReadDemand(bytes.NewReader(text), Options{Dimensions: demandDimensions})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packers {
		packed := append(p.pack(t, text[:1000]), p.pack(t, text[1000:])...)
		for _, name := range []string{"", "x", "x.csv", "x.csv" + p.ending, "x" + p.ending} {
			for _, r := range []io.Reader{bytes.NewReader(packed), iotest.OneByteReader(bytes.NewReader(packed)),
				iotest.DataErrReader(bytes.NewBuffer(packed))} {
				got, err := ReadDemand(r, Options{Name: name, Dimensions: demandDimensions})
				if err != nil || dumpDemand(got) != dumpDemand(want) {
					t.Errorf("%s named %q: %v", p.ending, name, err)
				}
			}
		}
	}
}

// TestCompressedDamaged: a packed input that is cut off or has something behind it is refused.
func TestCompressedDamaged(t *testing.T) {
	text := demandText(CSV, 20)
	for _, p := range packers {
		first, second := p.pack(t, text[:300]), p.pack(t, text[300:])
		packed := append(bytes.Clone(first), second...)
		read := func(b []byte) error {
			_, err := ReadDemand(bytes.NewReader(b), Options{Name: "x.csv" + p.ending, Dimensions: demandDimensions})
			return err
		}
		for n := range packed {
			// Cut between the two the first is still whole, but for its last row.
			if err := read(packed[:n]); err == nil || n != len(first) && strings.Contains(err.Error(), "row") {
				t.Errorf("%s cut to %d of %d and %d bytes: %v", p.ending, n, len(first), len(second), err)
			}
		}
		for _, tail := range []string{"\x00", "x", "\r\n", "garbage behind it", string(first[:3])} {
			if err := read(append(bytes.Clone(packed), tail...)); err == nil {
				t.Errorf("%s with %q behind it: no error", p.ending, tail)
			}
		}
		packed[len(first)-1] ^= 1
		if err := read(packed); err == nil {
			t.Errorf("%s with a false checksum: no error", p.ending)
		}
		if err := read(p.pack(t, packed)); err == nil || !strings.Contains(err.Error(), "compressed") {
			t.Errorf("%s packed twice: %v", p.ending, err)
		}
	}
}

// TestBomb: a little input that unpacks to a lot stops at the limit, and takes no memory before.
func TestBomb(t *testing.T) {
	for _, p := range packers {
		packed := p.pack(t, append([]byte("host\n"), make([]byte, 64<<20)...))
		_, err := ReadHosts(bytes.NewReader(packed), Options{Limits: Limits{DecodedBytesMax: 10 << 20}})
		if !errors.Is(err, ErrLimit) || len(packed) > 1<<20 {
			t.Errorf("%s of %d bytes: %v", p.ending, len(packed), err)
		}
	}
	// The frame's head asks for a window of 512 MiB; there is no block in it.
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 19 << 3, 0x01, 0x00, 0x00}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		if _, err := ReadHosts(bytes.NewReader(frame), Options{}); err == nil {
			t.Error("a wide window: no error")
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("ten wide windows took %d bytes", n)
	}
	wide := zstandard(t, []byte("host\nh1\n"), zstd.WithWindowSize(8<<20))
	if _, err := ReadHosts(bytes.NewReader(wide), Options{}); err != nil {
		t.Errorf("a window of 8 MiB: %v", err)
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name, head string
		format     Format
		packed     Compression
	}{
		{"a.csv", "x", CSV, Plain},
		{"A.CSV.GZ", "x", CSV, Gzip},
		{"a.ndjson", "{", NDJSON, Plain},
		{"a.jsonl.zst", "{", NDJSON, Zstd},
		{"a.json", "[", JSON, Plain},
		{"a.json", "{", JSON, Plain},
		{"a.parquet", "PAR1", Parquet, Plain},
		{"a.arrow", "\xff\xff\xff\xff", Arrow, Plain},
		{"a.arrows", "\xff\xff\xff\xff", Arrow, Plain},
		{"csv", "[", JSON, Plain},
		{"a.csv/b", "{\"a\":1", NDJSON, Plain},
		{"", " \n{ \"a\" : [", JSON, Plain},
		{"", "{", NDJSON, Plain},
		{"a.txt", "host", CSV, Plain},
		{"", "PAR1", Parquet, Plain},
		{"", "\xff\xff\xff\xff", Arrow, Plain},
	} {
		o := Options{Name: c.name}.resolve()
		f, err := o.formatOf([]byte(c.head))
		if err != nil || f != c.format || o.Compression != AutoCompression && o.Compression != c.packed {
			t.Errorf("%s %q: %v %v %v", c.name, c.head, f, o.Compression, err)
		}
	}
	for f := Auto; f <= Parquet; f++ {
		if got, err := ParseFormat(f.String()); got != f || err != nil {
			t.Errorf("%v: %v, %v", f, got, err)
		}
	}
	if _, err := ParseFormat("xml"); fmt.Sprint(err) != `unknown format "xml": expected one of auto, csv, ndjson, json, arrow, parquet` {
		t.Error(err)
	}
}

// TestWindow reads an input of many windows, whose rows lie across their bounds.
func TestWindow(t *testing.T) {
	for _, f := range []Format{CSV, NDJSON} {
		for pad := range 3 {
			text := demandText(f, 12_000)
			if f == CSV {
				text = append(bytes.Repeat([]byte("\n"), pad*7), text...)
			}
			var got cluster.DemandTable
			if err := ReadDemandInto(&got, bytes.NewReader(text),
				Options{Format: f, Dimensions: demandDimensions}); err != nil {
				t.Fatal(err)
			}
			for i := range got.Rows {
				if got.Units[i] != int64(1+i*7%200) ||
					got.Allocation.Names.String(got.Allocation.Code[i]) != fmt.Sprintf("job-%d", 5_000_000+i/2) {
					t.Fatalf("%s: row %d is %d units of %s", f, i+1, got.Units[i],
						got.Allocation.Names.String(got.Allocation.Code[i]))
				}
			}
			if got.Rows != 12_000 {
				t.Errorf("%s: %d rows", f, got.Rows)
			}
		}
	}
}

// TestWords holds the eight-byte searches against plain loops.
func TestWords(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const bytesOfNote = ",\n\"\\\x00\x1f\x20\x7e\x7f\x80\xff\x2b\x2d\x21\x23ab"
	for range 20_000 {
		p := make([]byte, random.IntN(30))
		for i := range p {
			p[i] = bytesOfNote[random.IntN(len(bytesOfNote))]
			if random.IntN(3) > 0 {
				p[i] = 'a'
			}
		}
		separator, end, plain := len(p), len(p), true
		for i := len(p) - 1; i >= 0; i-- {
			if strings.IndexByte(",\n\"", p[i]) >= 0 {
				separator = i
			}
			if p[i] == '"' || p[i] == '\\' || p[i] < ' ' {
				end = i
			}
			plain = plain && p[i] >= ' ' && p[i] < 0x7f
		}
		if got := indexSeparator(p, 0); got != separator {
			t.Fatalf("indexSeparator(%q) = %d, expected %d", p, got, separator)
		}
		if got := indexStringEnd(p, 0); got != end {
			t.Fatalf("indexStringEnd(%q) = %d, expected %d", p, got, end)
		}
		if got := plainASCII(p); got != plain {
			t.Fatalf("plainASCII(%q) = %v", p, got)
		}
	}
}

// FuzzCompressed holds what compress/gzip can unpack against the same text given plain.
func FuzzCompressed(f *testing.F) {
	text := []byte("host,ncpus\nh1,1\nh2,2\n")
	f.Add(gzipped(f, text))
	f.Add(append(gzipped(f, text), gzipped(f, []byte("h3,x\n"))...))
	f.Add(zstandard(f, text))
	f.Add(append(zstandard(f, text), 0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, packed []byte) {
		bounded(t, packed, CSV)
		o := Options{Compression: Gzip, Format: CSV, Limits: Limits{DecodedBytesMax: 1 << 20}}
		got, err := ReadHosts(bytes.NewReader(packed), o)
		z, broken := stdgzip.NewReader(bytes.NewReader(packed))
		if broken != nil || err != nil && strings.Contains(err.Error(), "invalid header") {
			return // compress/gzip passes over flags that are reserved, of which RFC 1952 (2.3.1.2) wants an error
		}
		plain, broken := io.ReadAll(io.LimitReader(z, 1<<20+1))
		if broken != nil || len(plain) > 1<<20 {
			return
		}
		o.Compression = Plain
		want, wantErr := ReadHosts(bytes.NewReader(plain), o)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && dumpHosts(got) != dumpHosts(want) {
			t.Errorf("%q: %v, as text %v", plain, err, wantErr)
		}
	})
}
