package measure

import (
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
)

// move is the floor of a cold cycle in milliseconds: a plain loop reads as many bytes as the input tables have, and
// writes as many as the decision tables have, into fresh memory. The rest of a cycle's time is computing.
func (m *run) move(out *decision.Cycle) float64 {
	in := m.inputBytes()
	decided := outputBytes(out)
	m.result.FloorBytes = in + decided
	from := make([]uint64, in/8+1)
	for i := range from { // the input is in memory before a cycle begins
		from[i] = uint64(i)
	}
	begin := time.Now()
	to := make([]uint64, decided/8+1)
	var sum uint64
	for _, word := range from {
		sum += word
	}
	for i := range to {
		to[i] = sum + uint64(i)
	}
	took := since(begin)
	if to[len(to)-1] == 1 { // never: the loops must not be left out by the compiler
		panic("BUG: the floor's sum is a constant")
	}
	return took
}

// inputBytes is the size of the columns of hosts and demand: 8 bytes a number, 4 a code, the texts themselves left out.
func (m *run) inputBytes() (n int64) {
	h, d := m.o.Hosts, m.o.Demand
	n = 4 * int64(len(h.Attr)*h.Rows)
	for _, s := range []column.Schema{h.Schema(m.o.Policy.Dimensions), d.Schema(m.o.Policy.Dimensions)} {
		for _, l := range s.Lines {
			size := 8
			if _, text := l.Of.(*cluster.TextColumn); text {
				size = 4
			}
			n += int64(size * l.Of.Len())
		}
	}
	return n
}

// outputBytes is the size of the columns of all decision tables, counted likewise.
func outputBytes(out *decision.Cycle) (n int64) {
	for _, t := range out.Tables() {
		for i := range t.Columns {
			c := &t.Columns[i]
			n += 8*int64(len(c.Int)+len(c.Float)) + 4*int64(len(c.Code)) + int64(len(c.Null))
		}
	}
	return n
}
