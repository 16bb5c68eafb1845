package journal

import (
	"errors"
	"os"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE: blocks are set aside, the file's length stays.
const keepSize = 1

// reserve sets blocks of the disk aside, so that writing there later does not fail for want of room. Where the file
// system cannot, nothing is set aside, and a full disk may stop cycles too.
func reserve(f *os.File, from, bytes int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), keepSize, from, bytes)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
			return nil
		}
		return err
	}
}
