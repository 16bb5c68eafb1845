package table

import (
	"bufio"
	"encoding/csv"
	"io"
	"strconv"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// textWriter writes rows of a table as CSV, by columns of texts.
type textWriter struct {
	names []string
	of    []func(row int) string
}

func (w *textWriter) text(name string, c *cluster.TextColumn) {
	if c.Code == nil {
		return
	}
	w.add(name, func(row int) string {
		if code := c.At(row); code != cluster.Null {
			return c.Names.String(code)
		}
		return ""
	})
}

// counts writes numbers; unset ones are left empty.
func (w *textWriter) counts(name string, values []int64, unset int64) {
	if values == nil {
		return
	}
	w.add(name, func(row int) string {
		if values[row] == unset {
			return ""
		}
		return strconv.FormatInt(values[row], 10)
	})
}

func (w *textWriter) add(name string, of func(row int) string) {
	w.names, w.of = append(w.names, name), append(w.of, of)
}

// write writes a line of names, and the rows. Errors are those of the writer.
func (w *textWriter) write(to io.Writer, rows []int32) error {
	buffer := bufio.NewWriterSize(to, 64<<10)
	out := csv.NewWriter(buffer)
	line := make([]string, len(w.names))
	err := out.Write(w.names)
	for n := 0; n < len(rows) && err == nil; n++ {
		for i, of := range w.of {
			line[i] = of(int(rows[n]))
		}
		err = out.Write(line)
	}
	if err != nil {
		return err
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return err
	}
	return buffer.Flush()
}

// WriteDemand writes rows of a demand table as CSV that ReadDemand reads again. O(rows).
func WriteDemand(to io.Writer, t *cluster.DemandTable, dimensions []string, rows []int32) error {
	var w textWriter
	w.text("consumer", &t.Consumer)
	w.text("allocation", &t.Allocation)
	w.text("sub", &t.Sub)
	w.counts("units", t.Units, -1)
	w.text("plan", &t.Plan)
	w.text("requirement", &t.Requirement)
	w.counts("max_per_host", t.MaxPerHost, plan.Unlimited)
	w.counts("min_units", t.MinUnits, 1)
	w.text("together", &t.Together)
	for d, name := range dimensions {
		w.counts(name, t.Size[d], -1)
	}
	return w.write(to, rows)
}

// WriteHoldings writes rows of a table of running or released units as CSV that ReadHoldings reads again. O(rows).
func WriteHoldings(to io.Writer, t *cluster.HoldingTable, rows []int32) error {
	var w textWriter
	w.text("consumer", &t.Consumer)
	w.text("allocation", &t.Allocation)
	w.text("sub", &t.Sub)
	w.text("host", &t.Host)
	w.counts("units", t.Units, -1)
	if t.Done != nil {
		w.add("done", func(row int) string { return strconv.FormatBool(t.Done[row]) })
	}
	w.text("device", &t.Device)
	return w.write(to, rows)
}
