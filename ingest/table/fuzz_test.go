package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
)

// fuzzHeap is what an input of at most 1 MiB may allocate in all.
const fuzzHeap = 256 << 20

// bounded reads an input as each of the tables. None may panic or take much memory; an error
// leaves no table, and a table without an error is whole. It gives the hosts, nil after an error.
func bounded(t *testing.T, text []byte, f Format) (hosts *cluster.HostTable) {
	t.Helper()
	if len(text) > 1<<20 {
		return nil
	}
	o := Options{Format: f, Dimensions: []string{"ncpus"}}
	read := func(name string, read func() error, rows func() int, columns func() []int) {
		var err error
		heap := allocated(func() { err = read() })
		if heap > fuzzHeap {
			t.Errorf("%s: %d bytes allocated for %d", name, heap, len(text))
		}
		if err != nil {
			return
		}
		for i, n := range columns() {
			if n != rows() {
				t.Errorf("%s: column %d has %d rows of %d", name, i, n, rows())
			}
		}
	}
	var demand *cluster.DemandTable
	var releases *cluster.HoldingTable
	read("hosts", func() (err error) { hosts, err = ReadHosts(bytes.NewReader(text), o); return err },
		func() int { return hosts.Rows }, func() []int {
			n := []int{len(hosts.Host.Code)}
			for i := range hosts.Attr {
				n = append(n, len(hosts.Attr[i].Valid))
			}
			return n
		})
	read("demand", func() (err error) { demand, err = ReadDemand(bytes.NewReader(text), o); return err },
		func() int { return demand.Rows },
		func() []int { return []int{len(demand.Consumer.Code), len(demand.Allocation.Code), len(demand.Units)} })
	read("releases", func() (err error) { releases, err = ReadHoldings(bytes.NewReader(text), o, true); return err },
		func() int { return releases.Rows },
		func() []int { return []int{len(releases.Consumer.Code), len(releases.Host.Code), len(releases.Units)} })
	return hosts
}

// rowsOf makes NDJSON of a JSON table by encoding/json; ok is false when the text is no table of plain values.
func rowsOf(text []byte) (lines []byte, ok bool) {
	var rows []json.RawMessage
	if json.Unmarshal(text, &rows) == nil {
		for _, row := range rows {
			if _, flat := flatObject(row); !flat {
				return nil, false
			}
			var line bytes.Buffer
			if json.Compact(&line, row) != nil {
				return nil, false
			}
			lines = append(append(lines, line.Bytes()...), '\n')
		}
		return lines, true
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') || !json.Valid(text) {
		return nil, false
	}
	var out []string
	for first := true; d.More(); first = false {
		key, err := d.Token()
		var values []json.RawMessage
		if err != nil || d.Decode(&values) != nil || !first && len(values) != len(out) {
			return nil, false
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, false
		}
		for i, v := range values {
			if first {
				out = append(out, "{")
			} else {
				out[i] += ","
			}
			out[i] += string(name) + ":" + string(v)
		}
	}
	return []byte(strings.Join(append(out, ""), "}\n")), true
}

// sameRows holds a JSON table against the NDJSON of the same rows.
func sameRows(t *testing.T, text []byte, hosts *cluster.HostTable) {
	lines, ok := rowsOf(text)
	if !ok || len(lines) == 0 || hosts == nil {
		return
	}
	want, err := ReadHosts(bytes.NewReader(lines), Options{Format: NDJSON, Dimensions: []string{"ncpus"}})
	if err != nil {
		t.Errorf("%q is refused as NDJSON: %v", text, err)
	} else if got, want := fmt.Sprint(dumpHosts(hosts)), fmt.Sprint(dumpHosts(want)); got != want {
		t.Errorf("%q:\n%s\nas NDJSON:\n%s", text, got, want)
	}
}
