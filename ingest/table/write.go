package table

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"

	columns "github.com/stintd/stint/core/column"
)

// Write writes rows of an input table as CSV, with the columns that it has, which the reader of its schema reads again.
// Errors are those of the writer. O(rows).
func Write(to io.Writer, s columns.Schema, rows []int32) error {
	buffer := bufio.NewWriterSize(to, 64<<10)
	out := csv.NewWriter(buffer)
	lines := s.Given()
	line := make([]string, len(lines))
	for i, l := range lines {
		line[i] = l.Name
	}
	err := out.Write(line)
	for n := 0; n < len(rows) && err == nil; n++ {
		for i, l := range lines {
			line[i] = ""
			if v := l.Value(int(rows[n])); v != nil {
				line[i] = fmt.Sprint(v)
			}
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
