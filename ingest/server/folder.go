package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// folderFormat is the format of a service's folder that is written: of the journal, its records and checkpoints, and of
// the decision log, together. It grows when a stint writes what the ones before would misread. Earlier ones are read.
const folderFormat = 1

// folderName names the file that has the format. A folder without one is of format 1.
const folderName = "folder.json"

// folder is what a service's folder says of itself.
type folder struct {
	Format int    `json:"format"`
	Stint  string `json:"stint"` // the version that wrote to it last
}

// ErrNewer is in the chain of errors of a folder that a newer stint wrote.
var ErrNewer = errors.New("a newer stint wrote this folder")

// CheckFolder tells whether this stint can read a service's folder, so far as its format tells. Nothing is written.
func CheckFolder(dir string) error {
	_, err := readFolder(dir)
	return err
}

// CheckDivisions tells whether a service's folder has the divisions of a configuration; none: its plans are decided
// together.
func CheckDivisions(dir string, names []string) error {
	entries, err := os.ReadDir(filepath.Join(dir, divisionsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			return fmt.Errorf("%s has a division %s, which the configuration does not name (divisions.names)", dir,
				e.Name())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "journal")); err == nil && len(names) > 0 {
		return fmt.Errorf("%s has a journal of all plans together, which cannot be divided: give another folder", dir)
	}
	return nil
}

func readFolder(dir string) (f folder, err error) {
	name := filepath.Join(dir, folderName)
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return folder{Format: folderFormat}, nil
	case err != nil:
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil || f.Format < 1 {
		return f, fmt.Errorf("%s: damaged: it must say which format the folder has, such as {\"format\": %d}",
			name, folderFormat)
	}
	if f.Format > folderFormat {
		return f, fmt.Errorf("%s: format %d, by stint %s; this stint reads up to format %d: %w; "+
			"start that version, or restore a backup from before the upgrade", name, f.Format, f.Stint, folderFormat,
			ErrNewer)
	}
	return f, nil
}

// markFolder has a folder say which format it has from now on. It is called by who has its lock.
func markFolder(dir, version string) error {
	f, err := readFolder(dir)
	if err != nil {
		return err
	}
	now := folder{folderFormat, version}
	name := filepath.Join(dir, folderName)
	if _, err := os.Stat(name); err == nil && f == now {
		return nil
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(name+".tmp", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	err = errors.Join(err, out.Sync(), out.Close())
	if err == nil {
		err = os.Rename(name+".tmp", name)
	}
	return err
}
