package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

// mixedCSV is a table of hosts with all that rows can be, in columns of each kind; bad of a thousand fields are bad.
func mixedCSV(rows, bad int) []byte {
	random := rand.New(rand.NewPCG(7, uint64(bad)))
	var b bytes.Buffer
	b.WriteString("ncpus,host,group,state,a,mem\n")
	for i := range rows {
		fields := []string{
			fmt.Sprint(random.IntN(1000)), fmt.Sprint("host-", i), fmt.Sprint("group-", random.IntN(i/10+1)),
			[]string{"ok", "closed", ""}[random.IntN(3)],
			[]string{"", "x y", "é\r\nz", strings.Repeat("long", 100)}[random.IntN(4)], fmt.Sprint(i % 9),
		}
		for f := range fields {
			if random.IntN(1000) < bad {
				fields[f] = []string{"-1", "host-0", "\xff", "?", "", strings.Repeat("w", 300)}[random.IntN(6)]
			}
			if strings.ContainsAny(fields[f], "\r\n") || random.IntN(10) == 0 {
				fields[f] = `"` + fields[f] + `"`
			}
		}
		if random.IntN(1000) < bad {
			fields = fields[:random.IntN(6)]
		}
		b.WriteString(strings.Join(fields, ",") + []string{"\n", "\r\n", "\n\n"}[random.IntN(3)])
	}
	return b.Bytes()
}

// decodedCSV tells all that comes out of a table, codes and dictionaries too, when it is read through a window of a
// size.
func decodedCSV(r io.Reader, size, rowsMax int) (all string, err error) {
	b := newBuilder()
	b.limits, b.open = Limits{RowsMax: rowsMax}.withDefaults(), true
	b.counts("ncpus", true, 0, 0)
	b.name("host", true).unique = true
	b.name("group", true)
	b.add(column{name: "state", kind: kindState})
	b.fixed = len(b.columns)
	w := window{r: r, buf: make([]byte, size)}
	err = b.decodeCSV(&w)
	all = fmt.Sprint(err, b.rows, b.faults.Count, b.faults.Rows)
	for _, c := range b.columns {
		if c.pad(b.rows); c.names != nil {
			t := c.texts()
			for i := range t.Names.Len() {
				all += fmt.Sprintf("%q ", t.Names.Bytes(int32(i)))
			}
		}
		all += fmt.Sprintln(c.name, c.code, c.ints, c.states)
	}
	return all, err
}

// TestCSVSecondGoroutine: an input that ends in the first window is taken by one goroutine, a longer one by two; nobody
// can tell.
func TestCSVSecondGoroutine(t *testing.T) {
	for _, bad := range []int{0, 2, 100} {
		text := mixedCSV(2_000, bad)
		for _, c := range []struct {
			name, tail string
			rowsMax    int
		}{{"whole", "", 0}, {"limited", "", 1_900}, {"broken", "1,h,\"g\"x\n", 0}, {"cut", `1,"h`, 0}} {
			text := append(bytes.Clone(text), c.tail...)
			want, _ := decodedCSV(bytes.NewReader(text), len(text)+1, c.rowsMax)
			for _, size := range []int{64, 4 << 10, 60 << 10} {
				if got, _ := decodedCSV(bytes.NewReader(text), size, c.rowsMax); got != want {
					t.Errorf("%s with %d bad, through %d bytes:\n%.2000s\nexpected\n%.2000s", c.name, bad, size, got,
						want)
				}
			}
		}
	}
}

// TestCSVFaultsInOrder: counts and texts are told together, by row and as the header has them.
func TestCSVFaultsInOrder(t *testing.T) {
	text := "units,consumer,ncpus,allocation\n" + strings.Repeat("x,,y,\x01\n1,/A,1\n", 20_000)
	_, err := ReadDemand(strings.NewReader(text), Options{Name: "d.csv", Dimensions: []string{"ncpus"}})
	var want strings.Builder
	for row := 1; row <= 40; row += 2 {
		fmt.Fprintf(&want, "d.csv: row %d, column units, value \"x\": not a whole number from 0 to 9007199254740992\n",
			row)
		fmt.Fprintf(&want, "d.csv: row %d, column consumer: is missing\n", row)
		fmt.Fprintf(&want, "d.csv: row %d, column ncpus, value \"y\": not a whole number from 0 to 9007199254740992\n",
			row)
		fmt.Fprintf(&want, "d.csv: row %d, column allocation, value \"\\x01\": has a control character\n", row)
		fmt.Fprintf(&want, "d.csv: row %d: 3 fields, where the header has 4\n", row+1)
	}
	want.WriteString("d.csv: 100000 faults in all, the first 100 are shown")
	if fmt.Sprint(err) != want.String() {
		t.Errorf("%v\nexpected\n%s", err, want.String())
	}
}

// panicking is a source whose panic goes through to who reads the table.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("source") }

// TestCSVGoroutineEnds: however the reading ends, the second goroutine has ended too.
func TestCSVGoroutineEnds(t *testing.T) {
	text := mixedCSV(5_000, 0)
	broken := errors.New("connection lost")
	for _, tail := range []io.Reader{strings.NewReader("1,\"h"), failing{broken}, panicking{}, strings.NewReader("")} {
		for _, rowsMax := range []int{0, 4_000} {
			before := runtime.NumGoroutine()
			func() {
				defer func() { _ = recover() }()
				_, err := decodedCSV(io.MultiReader(bytes.NewReader(text), tail), 4<<10, rowsMax)
				if is := errors.Is(err, broken); is != (tail == io.Reader(failing{broken}) && rowsMax == 0) {
					t.Errorf("%T, at most %d rows: %v", tail, rowsMax, err)
				}
			}()
			for wait := 0; runtime.NumGoroutine() > before; wait++ {
				if wait == 1_000 {
					t.Fatalf("%T, at most %d rows: the second goroutine goes on", tail, rowsMax)
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
}
