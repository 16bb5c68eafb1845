package table

// vectorKind is the type of a vector's values.
type vectorKind uint8

const (
	vectorInt   vectorKind = iota // ints
	vectorFloat                   // floats
	vectorBool                    // bools
	vectorText                    // offsets, data
	vectorCoded                   // codes into offsets, data
)

// vector is one column of a batch of rows as the columnar formats (Arrow,
// Parquet, JSON columns) deliver it: verified, but not yet checked against the
// table's schema. Slices are borrowed until the next batch.
type vector struct {
	name   string
	kind   vectorKind
	rows   int
	valid  []byte    // Arrow validity bitmap, least significant bit first; nil: all valid
	ints   []int64   // vectorInt
	floats []float64 // vectorFloat
	bools  []byte    // vectorBool, a bitmap
	// vectorText: row i is data[offsets[i]:offsets[i+1]]. vectorCoded: row i is
	// text codes[i] of that; codes of valid rows are within range.
	offsets []int32
	data    []byte
	codes   []int32
	// vectorCoded: as long as a column's generation stays the same from batch to
	// batch, so do its offsets and data, and what was looked up for them holds.
	generation uint32
}

// batchFunc takes one batch of equal-length columns; an error ends the decoding.
type batchFunc func(rows int, columns []vector) error
