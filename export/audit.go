package export

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/decision"
)

// The table audit stands beside the tables of cycles: LOG/audit/date=YYYY-MM-DD/batches-<first>-<last>.parquet, twelve
// digits each. A batch is what was written at once. Longer files take the place of those of their batches.
const (
	auditTable     = "audit"
	auditViewName  = "audit.sql"
	auditLooseMax  = 60      // files of single batches of a day, before they become one
	auditMergeRows = 4 << 20 // rows of files that become one
)

var auditFileName = regexp.MustCompile(`^batches-(\d{12})-(\d{12})\.parquet$`)

// auditViewSQL makes a view of the table in DuckDB.
//
//go:embed audit.sql
var auditViewSQL []byte

// AuditWriter writes the table audit of a log. It is for one goroutine of the process that has the log's Writer.
type AuditWriter struct {
	dir   string
	disk  disk
	next  int64 // number of the next batch
	loose int   // files of single batches since the last merge
	view  bool  // whether audit.sql was written
}

// OpenAudit goes on with the table of a log. What a crash left unfinished is removed.
func OpenAudit(dir string) (*AuditWriter, error) {
	a := &AuditWriter{dir: dir, next: 1}
	spans, unfinished, err := listAudit(folder{}, dir)
	if err != nil {
		return nil, err
	}
	for _, path := range unfinished {
		if err := a.disk.remove(path); err != nil {
			return nil, err
		}
	}
	for _, s := range spans {
		a.next = max(a.next, s.last+1)
		if s.first == s.last {
			a.loose++
		}
	}
	return a, nil
}

// listAudit finds the files of the table, as list does.
func listAudit(from Files, dir string) (spans []span, unfinished []string, err error) {
	err = eachFile(from, dir, auditTable, func(path, name string) error {
		if strings.HasSuffix(name, tmpSuffix) {
			unfinished = append(unfinished, path)
			return nil
		}
		m := auditFileName.FindStringSubmatch(name)
		if m == nil {
			return nil
		}
		first, _ := strconv.ParseInt(m[1], 10, 64) // twelve digits
		last, _ := strconv.ParseInt(m[2], 10, 64)
		if first > last || first < 1 {
			return fmt.Errorf("%s: no range of batches", path)
		}
		if len(spans) == filesMax {
			return fmt.Errorf("%s: more than %d files", filepath.Join(dir, auditTable), filesMax)
		}
		spans = append(spans, span{first, last, path})
		return nil
	})
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last))
	})
	return spans, unfinished, err
}

func batchesName(first, last int64) string {
	return fmt.Sprintf("batches-%012d-%012d.parquet", first, last)
}

// Write writes rows as one batch, whose number it gives them; they stand in the folder of an instant's day. After an
// error nothing is written, and they may be written again.
func (a *AuditWriter) Write(rows *decision.Audit, us int64) error {
	if len(rows.Calls) == 0 {
		return nil
	}
	rows.Batch = slices.Repeat([]int64{a.next}, len(rows.Calls))
	t := rows.Schema().Table()
	if err := t.Check(); err != nil {
		panic("BUG: " + err.Error())
	}
	folder := datePath(a.dir, auditTable, us)
	if err := a.disk.mkdir(a.dir, folder); err != nil {
		return err
	}
	if err := a.publish(filepath.Join(folder, batchesName(a.next, a.next)), &t); err != nil {
		return err
	}
	a.next++
	a.loose++
	return a.writeView()
}

// publish writes a file, which has the column cycle first.
func (a *AuditWriter) publish(path string, t *decision.Table) error {
	cycles := t.Columns[0].Int
	body := decision.Table{Name: t.Name, Rows: t.Rows, Columns: t.Columns[1:]}
	err := a.disk.write(path, func(to *os.File) error {
		_, err := seal(to, func(to io.Writer) error {
			return encodeRows(to, &body, cycles, []meta{{metaSchema, SchemaVersion}})
		})
		return err
	})
	if err == nil {
		err = a.disk.rename(path)
	}
	if err != nil {
		return errors.Join(err, a.disk.remove(path+tmpSuffix))
	}
	return a.disk.syncDir(filepath.Dir(path))
}

func (a *AuditWriter) writeView() error {
	if a.view {
		return nil
	}
	path := filepath.Join(a.dir, auditViewName)
	if err := a.disk.write(path, func(to *os.File) error { _, err := to.Write(auditViewSQL); return err }); err != nil {
		return err
	}
	if err := a.disk.rename(path); err != nil {
		return err
	}
	a.view = true
	return nil
}

// Tidy makes one file of those of each day that is over, and of the day of an instant when they are many, and drops
// days that are more than keepDays before it (0: none). It may be stopped at any point, by a crash too.
func (a *AuditWriter) Tidy(us int64, keepDays int) error {
	spans, _, err := listAudit(folder{}, a.dir)
	if err != nil {
		return err
	}
	day := func(us int64) string { return filepath.Base(datePath("", "", us)) }
	today, oldest := day(us), ""
	if keepDays > 0 {
		oldest = day(us - int64(keepDays)*dayUS)
	}
	byDay := map[string][]span{}
	for _, s := range spans {
		d := filepath.Base(filepath.Dir(s.path))
		byDay[d] = append(byDay[d], s)
	}
	a.loose = 0
	for d, of := range byDay {
		if d < oldest {
			for _, s := range of {
				if err := a.disk.remove(s.path); err != nil {
					return err
				}
			}
			if err := a.disk.remove(filepath.Join(a.dir, auditTable, d)); err != nil {
				return err
			}
			continue
		}
		if err := a.tidyDay(of, d == today); err != nil {
			return err
		}
	}
	return nil
}

// tidyDay puts the files of a day together.
func (a *AuditWriter) tidyDay(of []span, today bool) error {
	kept, err := inForce(of)
	if err != nil {
		return err
	}
	for _, s := range of { // what a merge that was stopped has replaced
		if !slices.Contains(kept, s) {
			if err := a.disk.remove(s.path); err != nil {
				return err
			}
		}
	}
	merge := kept
	if today {
		merge = slices.DeleteFunc(slices.Clone(kept), func(s span) bool { return s.first != s.last })
		if len(merge) < auditLooseMax {
			a.loose += len(merge)
			return nil
		}
	}
	if len(merge) < 2 || merge[len(merge)-1].last-merge[0].first+1 != batchesOf(merge) {
		return nil // of what has a gap each file stays, so that the gap does
	}
	t, err := readAudit(folder{}, merge, 0, cycleMax)
	if err != nil || t.Rows > auditMergeRows {
		return err
	}
	path := filepath.Join(filepath.Dir(merge[0].path), batchesName(merge[0].first, merge[len(merge)-1].last))
	if err := a.publish(path, t); err != nil {
		return err
	}
	for _, s := range merge {
		if err := a.disk.remove(s.path); err != nil {
			return err
		}
	}
	return nil
}

// batchesOf is how many batches some files have.
func batchesOf(spans []span) (n int64) {
	for _, s := range spans {
		n += s.last - s.first + 1
	}
	return n
}

// Crowded tells whether there are many files of single batches.
func (a *AuditWriter) Crowded() bool { return a.loose >= auditLooseMax }

// readAudit reads the rows of files whose cycle is first … last, the column cycle first.
func readAudit(from Files, spans []span, first, last int64) (*decision.Table, error) {
	b := builder{name: auditTable}
	for _, s := range spans {
		f, err := read(from, s.path, "")
		if err != nil {
			return nil, err
		}
		if err := b.add(f, span{0, cycleMax, s.path}, first, last); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	b.table.Name = auditTable
	if b.table.Columns == nil {
		t := new(decision.Audit).Schema().Table()
		return &t, nil
	}
	return &b.table, nil
}

// AuditDay is a day of the table audit.
type AuditDay struct {
	Day   string // YYYY-MM-DD
	Files []AuditFile
}

// AuditFile is a file of the table audit.
type AuditFile struct {
	Path        string
	First, Last int64 // batches

	from Files
}

// Audit lists the days of a log's table audit, in order. Files that a longer one has replaced are left out. A log that
// no service wrote has none.
func Audit(dir string) ([]AuditDay, error) { return auditDays(folder{}, dir) }

func auditDays(from Files, dir string) (days []AuditDay, err error) {
	spans, _, err := listAudit(from, dir)
	if err == nil {
		spans, err = inForce(spans)
	}
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", dir, err)
	}
	byDay := map[string][]AuditFile{}
	for _, s := range spans {
		d := strings.TrimPrefix(filepath.Base(filepath.Dir(s.path)), "date=")
		byDay[d] = append(byDay[d], AuditFile{s.path, s.first, s.last, from})
	}
	for d, files := range byDay {
		if _, err := time.Parse(time.DateOnly, d); err != nil {
			return nil, fmt.Errorf("log %s: audit/date=%s: is no day", dir, d)
		}
		days = append(days, AuditDay{d, files})
	}
	slices.SortFunc(days, func(a, b AuditDay) int { return cmp.Compare(a.Day, b.Day) })
	return days, nil
}

// Audit lists the days of the log's table audit.
func (r *Reader) Audit() ([]AuditDay, error) { return auditDays(r.from, r.dir) }

// TidyAudit puts the files of a log's table audit together that a service has left, and drops days that are more than
// keepDays before the last (0: none).
func TidyAudit(dir string, keepDays int) error {
	days, err := Audit(dir)
	if err != nil || len(days) == 0 {
		return err
	}
	last, err := time.Parse(time.DateOnly, days[len(days)-1].Day)
	if err != nil {
		return err
	}
	a, err := OpenAudit(dir)
	if err != nil {
		return err
	}
	return a.Tidy(last.UnixMicro(), keepDays)
}

// Rows are the rows of a file.
func (f AuditFile) Rows() (*decision.Table, error) {
	return readAudit(f.from, []span{{f.First, f.Last, f.Path}}, 0, cycleMax)
}

// AuditRows are the rows of a log's table audit of the calls that began when one of the cycles first … last had ended
// last, of the days since from (YYYY-MM-DD; "": all), with the column cycle. More than 2²⁷ rows are an error.
func AuditRows(dir, from string, first, last int64) (*decision.Table, error) {
	var t *decision.Table
	for try := 0; ; try++ {
		days, err := Audit(dir)
		if err != nil {
			return nil, err
		}
		var spans []span
		for _, d := range days {
			for _, f := range d.Files {
				if d.Day >= from {
					spans = append(spans, span{f.First, f.Last, f.Path})
				}
			}
		}
		if t, err = readAudit(folder{}, spans, first, last); !errors.Is(err, fs.ErrNotExist) || try == agains {
			return t, err // else a longer file has come in the place of one that was listed
		}
	}
}
