package export

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Files are the files of a log, wherever they lie. Their names begin with that of the log, and go on as in a folder:
// LOG/cycles/date=2026-01-05/cycles-000000000001-000000000001.parquet. What is not there is fs.ErrNotExist.
type Files interface {
	// Refresh looks anew what there is. Until it is called again, ReadDir tells of the same files.
	Refresh() error
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	Open(name string) (io.ReadCloser, error)
}

// folder is the files of this machine.
type folder struct{}

// Refresh does nothing: what a folder has is asked each time.
func (folder) Refresh() error { return nil }

// ReadDir lists a folder.
func (folder) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// Stat tells of a file.
func (folder) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Open opens a file.
func (folder) Open(name string) (io.ReadCloser, error) { return os.Open(name) }

// within is the name of a file of a log. That of a log elsewhere, such as s3://bucket, is kept as it is.
func within(log string, names ...string) string {
	if strings.Contains(log, "://") {
		return log + "/" + path.Join(names...)
	}
	return filepath.Join(append([]string{log}, names...)...)
}

// readFile reads a file whole.
func readFile(from Files, name string) ([]byte, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	if of, ok := f.(fs.File); ok {
		if info, err := of.Stat(); err == nil && info.Size() <= fileBytesMax {
			content.Grow(int(info.Size()) + bytes.MinRead)
		}
	}
	_, err = content.ReadFrom(f)
	return content.Bytes(), errors.Join(err, f.Close())
}
