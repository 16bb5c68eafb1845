package export

import (
	"bytes"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go"

	"github.com/stintd/stint/core/decision"
)

// ReadAnswer reads a table that Stream wrote as Parquet, without the column cycle. Errors: it is damaged, or has more
// rows than a reader takes.
func ReadAnswer(name string, data []byte) (t *decision.Table, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("table %s: %w", name, err)
		}
	}()
	defer catch(&err)
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	b := builder{name: name}
	if err := b.add(f, span{last: math.MaxInt64}, 0, math.MaxInt64); err != nil {
		return nil, err
	}
	b.table.Name, b.table.Columns = name, b.table.Columns[1:]
	return &b.table, nil
}
