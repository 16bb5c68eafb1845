package column

import (
	buffers "bytes"
	"encoding/binary"
	"math"
	"testing"
)

// TestDigestLong checks that batches and buffer join without gaps, at widths and lengths around them.
func TestDigestLong(t *testing.T) {
	for _, rows := range []int{0, 1, 7, 8, 9, digestBatchRows - 1, digestBatchRows, digestBatchRows + 1,
		3 * digestBatchRows} {
		for _, limit := range []int64{math.MaxInt8, math.MaxInt8 + 1, math.MaxInt16, math.MinInt16, math.MaxInt32,
			math.MinInt32 - 1, math.MaxInt64} {
			values := make([]int64, rows)
			var want buffers.Buffer
			for i := range values {
				values[i] = limit >> (i % 9)
			}
			width := 1
			for width < 8 && (limit > 1<<(8*width-1)-1 || limit < -1<<(8*width-1)) && rows > 0 {
				width *= 2
			}
			for _, v := range values {
				want.Write(binary.LittleEndian.AppendUint64(nil, uint64(v))[:width])
			}
			var got recorder
			d := digester{hash: &got, buf: make([]byte, 0, digestBufferBytes)}
			d.pack(values, nil)
			d.flush()
			if !buffers.Equal(got.Bytes(), append([]byte{byte(width)}, want.Bytes()...)) {
				t.Errorf("%d rows from %d: packed wrongly", rows, limit)
			}
		}
	}
}

// recorder is a hash that keeps what it is given.
type recorder struct{ buffers.Buffer }

func (*recorder) Sum(b []byte) []byte { return b }
func (*recorder) Size() int           { return 0 }
func (*recorder) BlockSize() int      { return 1 }
