package table

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// codecs unpacks the pages of one file. Its decompressors come from the pools of
// the package and go back with close; memory grows with what comes out, since
// neither a claimed length nor the size of the packed bytes bounds it.
type codecs struct {
	zstd *zstd.Decoder
	gzip *gzip.Reader
}

func (c *codecs) close() {
	if c.zstd != nil {
		closeZstd(c.zstd)
	}
	if c.gzip != nil {
		gzipPool.Put(c.gzip)
	}
}

// closeZstd puts a decoder back into its pool, without what it last read.
func closeZstd(z *zstd.Decoder) {
	if z.Reset(nil) == nil {
		zstdPool.Put(z)
	}
}

// inflate unpacks src, which must give n bytes, into dst.
func (c *codecs) inflate(codec format.CompressionCodec, dst, src []byte, n int) ([]byte, error) {
	switch codec {
	case format.Snappy:
		return inflateSnappy(dst, src, n)
	case format.Zstd:
		if c.zstd == nil {
			c.zstd = zstdPool.Get().(*zstd.Decoder)
		}
		return inflateZstd(c.zstd, dst, src, n)
	case format.Gzip:
		if c.gzip == nil {
			c.gzip = gzipPool.Get().(*gzip.Reader)
		}
		if err := c.gzip.Reset(bytes.NewReader(src)); err != nil {
			return dst, err
		}
		return inflateAll(c.gzip, dst, n)
	}
	return dst, fmt.Errorf("compression %s is not supported (snappy, gzip and zstd are)", codec)
}

func inflateZstd(z *zstd.Decoder, dst, src []byte, n int) ([]byte, error) {
	if err := z.Reset(bytes.NewReader(src)); err != nil {
		return dst, err
	}
	return inflateAll(z, dst, n)
}

// inflateAll reads n bytes of r and its end.
func inflateAll(r io.Reader, dst []byte, n int) ([]byte, error) {
	dst, err := readGrowing(r, dst[:0], n, nil)
	if err == io.EOF {
		return dst, fmt.Errorf("unpacks to %d bytes, where %d are told", len(dst), n)
	}
	if err != nil {
		return dst, err
	}
	var more [1]byte
	if _, err = io.ReadFull(r, more[:]); err == nil {
		return dst, fmt.Errorf("unpacks to more than the %d bytes told", n)
	}
	if err != io.EOF {
		return dst, err
	}
	return dst, nil
}

// snappyRatioMax is more than snappy can gain: a copy of 64 bytes takes 3.
const snappyRatioMax = 22

func inflateSnappy(dst, src []byte, n int) ([]byte, error) {
	told, err := snappy.DecodedLen(src)
	if err != nil {
		return dst, err
	}
	if told != n || n > snappyRatioMax*len(src) {
		return dst, fmt.Errorf("%d bytes of snappy unpack to %d bytes, where %d are told", len(src), told, n)
	}
	return snappy.Decode(sized(dst, n), src)
}
