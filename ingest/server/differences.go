package server

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/stintd/stint/core/engine"
)

// differencesName is the file, beside the folders of journal and log, of what recovery decided otherwise than was
// recorded.
const differencesName = "replay.ndjson"

// differencesBytesMax is how long the file grows before it is moved aside, in place of the one that was moved before.
const differencesBytesMax = 16 << 20

// differences is the name of such a file.
type differences string

// keep appends a difference, a line in JSON, and returns when it is on the disk.
func (name differences) keep(d engine.Difference) error {
	path := string(name)
	if info, err := os.Stat(path); err == nil && info.Size() > differencesBytesMax {
		if err := os.Rename(path, path+".old"); err != nil {
			return err
		}
	}
	line, err := json.Marshal(struct {
		At time.Time `json:"at"`
		engine.Difference
	}{time.Now().UTC(), d})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
