package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// unsealed stands for the seal while a file is written and hashed.
var unsealed = strings.Repeat("0", 2*sha256.Size)

// sealKey is how the seal stands in a footer: the key, the header of the field
// `value` (Thrift's compact protocol: next field, binary) and the length of the seal.
var sealKey = append([]byte(metaSeal), 0x18, 2*sha256.Size)

// seal lets fill write a Parquet file with the seal unsealed, and puts the SHA-256 of
// those bytes in its place.
func seal(f *os.File, fill func(io.Writer) error) (digest string, err error) {
	sum := sha256.New()
	if err := fill(io.MultiWriter(f, sum)); err != nil {
		return "", err
	}
	end, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return "", err
	}
	var tail [4]byte // the footer's length stands before the magic bytes at the end
	if _, err := f.ReadAt(tail[:], end-8); err != nil {
		return "", err
	}
	footer := make([]byte, binary.LittleEndian.Uint32(tail[:]))
	from := end - 8 - int64(len(footer))
	if _, err := f.ReadAt(footer, from); err != nil {
		return "", err
	}
	at := bytes.LastIndex(footer, sealKey)
	if at < 0 {
		return "", errors.New("BUG: a footer without a seal")
	}
	digest = hex.EncodeToString(sum.Sum(nil))
	_, err = f.WriteAt([]byte(digest), from+int64(at+len(sealKey)))
	return digest, err
}

// unseal checks a file's bytes against its seal, and that against want unless that is "".
// It leaves data as it was before it was sealed.
func unseal(data []byte, want string) error {
	at := bytes.LastIndex(data, sealKey) + len(sealKey)
	if at < len(sealKey) || at+len(unsealed) > len(data) {
		return errors.New("damaged: it has no seal")
	}
	place := data[at : at+len(unsealed)]
	has := string(place)
	copy(place, unsealed)
	sum := sha256.Sum256(data)
	if hex.EncodeToString(sum[:]) != has {
		return errors.New("damaged: its bytes are not those that were written")
	}
	if want != "" && has != want {
		return fmt.Errorf("it is not the file that its cycle was published with (its seal is %.12s…, not %.12s…)", has,
			want)
	}
	return nil
}
