package export

import (
	"bufio"
	"errors"
	"io"

	"github.com/stintd/stint/core/decision"
)

// StreamFormats are the formats of Stream.
var StreamFormats = []string{"arrow", "parquet", "ndjson", "json", "csv"}

// Stream writes a table whole: an Arrow IPC stream, a Parquet file, or text as Print does. In Parquet the column
// `cycle` comes first; where the table has none it says cycle. Errors: an unknown format, a table too large for it, w's
// own.
func Stream(w io.Writer, t *decision.Table, format string, cycle int64) error {
	out := bufio.NewWriterSize(w, 1<<16)
	p, err := NewParts(out, format, cycle)
	if err != nil {
		return err
	}
	return errors.Join(p.Write(t), p.Close(), out.Flush())
}
