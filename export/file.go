package export

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	lockName  = ".lock"
	tmpSuffix = ".tmp"
	filesMax  = 1 << 22               // of one table: about eight years of a cycle a minute
	cycleMax  = 1_000_000_000_000 - 1 // twelve digits
)

var fileName = regexp.MustCompile(`^cycles-(\d{12})-(\d{12})\.parquet$`)

// span is a file of a table and the cycles it may hold.
type span struct {
	first, last int64
	path        string
}

// datePath is the folder of a table's rows of an instant's UTC day.
func datePath(dir, table string, us int64) string {
	return filepath.Join(dir, table, "date="+time.UnixMicro(us).UTC().Format(time.DateOnly))
}

func cycleName(cycle int64) string { return rangeName(cycle, cycle) }

func rangeName(first, last int64) string {
	return fmt.Sprintf("cycles-%012d-%012d.parquet", first, last)
}

// list finds the files of a table, those with lower first cycles first, of these the longest first. Names of another
// form than the log's are passed over: they are temporary or not the log's.
func list(from Files, dir, table string) ([]span, error) {
	var spans []span
	err := eachFile(from, dir, table, func(path, name string) error {
		m := fileName.FindStringSubmatch(name)
		if m == nil {
			return nil
		}
		first, _ := strconv.ParseInt(m[1], 10, 64) // twelve digits
		last, _ := strconv.ParseInt(m[2], 10, 64)
		if first > last {
			return fmt.Errorf("%s: its first cycle is after its last", path)
		}
		if len(spans) == filesMax {
			return fmt.Errorf("%s: more than %d files", within(dir, table), filesMax)
		}
		spans = append(spans, span{first, last, path})
		return nil
	})
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last))
	})
	return spans, err
}

// inForce leaves out the files of cycles that a longer one has replaced: compaction removes them after it has
// published that one. Files that claim the same cycle in any other way are an error.
func inForce(spans []span) ([]span, error) {
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && s.first <= out[n-1].last {
			was := out[n-1]
			if s.last > was.last || s.first == was.first && s.last == was.last {
				return nil, fmt.Errorf("%s: cycle %d is in %s too", s.path, s.first, was.path)
			}
			continue
		}
		out = append(out, s)
	}
	return out, nil
}

// eachFile visits the files in a table's date folders. A table without a folder has none.
func eachFile(from Files, dir, table string, visit func(path, name string) error) error {
	dates, err := from.ReadDir(within(dir, table))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, date := range dates {
		if err != nil {
			break
		}
		if date.IsDir() && strings.HasPrefix(date.Name(), "date=") {
			err = eachName(from, within(dir, table, date.Name()), visit)
		}
	}
	return err
}

func eachName(from Files, dir string, visit func(path, name string) error) error {
	entries, err := from.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if err := visit(within(dir, e.Name()), e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// disk is the writer's way to files. Each change of the disk goes through step first,
// which tests set to make it fail.
type disk struct {
	step func(op, path string) error
	lazy bool            // nothing is flushed
	made map[string]bool // folders whose names this writer has flushed
}

const madeMax = 1024 // folders remembered; forgetting one costs a flush

func (d *disk) before(op, path string) error {
	if d.step == nil {
		return nil
	}
	return d.step(op, path)
}

// write fills path.tmp and flushes it to the disk. It becomes path by rename. When it
// fails, path.tmp may be left.
func (d *disk) write(path string, fill func(*os.File) error) error {
	if err := d.before("write", path); err != nil {
		return err
	}
	f, err := os.OpenFile(path+tmpSuffix, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	if err = fill(f); err == nil {
		err = d.before("sync", path)
	}
	if err == nil {
		err = d.flush(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// rename gives a written file its name.
func (d *disk) rename(path string) error {
	if err := d.before("rename", path); err != nil {
		return err
	}
	return os.Rename(path+tmpSuffix, path)
}

// mkdir makes a folder and those above it up to dir, and flushes their names: also of folders
// that are there already, which a writer may have left unflushed.
func (d *disk) mkdir(dir, path string) error {
	if d.made[path] {
		return nil
	}
	if err := d.before("mkdir", path); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	for above := path; above != dir; {
		above = filepath.Dir(above)
		if err := d.syncDir(above); err != nil {
			return err
		}
	}
	if d.made == nil || len(d.made) == madeMax {
		d.made = map[string]bool{}
	}
	d.made[path] = true
	return nil
}

// syncDir flushes a folder's names to the disk.
func (d *disk) syncDir(path string) error {
	if err := d.before("syncdir", path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.flush(f), f.Close())
}

func (d *disk) flush(f *os.File) error {
	if d.lazy {
		return nil
	}
	return f.Sync()
}

// remove takes a file away; one that is not there is fine.
func (d *disk) remove(path string) error {
	if err := d.before("remove", path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lock keeps a second writer out of a log for as long as the file is open: the
// system releases it when the process ends, however it ends.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("log %s: another writer has it (%w)", dir, err), f.Close())
	}
	return f, nil
}
