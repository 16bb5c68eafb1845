package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Keys of the decision log below the prefix.
const (
	logName    = "log"
	partPrefix = logName + "/parts/"
	dayPrefix  = logName + "/days/"
)

func partKey(n uint64) string { return fmt.Sprintf("%s%020d", partPrefix, n) }
func dayKey(n uint64) string  { return fmt.Sprintf("%s%020d", dayPrefix, n) }

// ErrNoLog is in the chain of errors of OpenLog where no decision log is.
var ErrNoLog = errors.New("there is no decision log")

// Log is the decision log of a cluster (HA-4): parts, numbered from 1 on, each of which is a manifest of files that
// have the cycles behind those of the part before it. A manifest is written only where none is, when its files are
// there: so no cycle is missing and none comes twice, whoever writes. A day that is over becomes a manifest of its own,
// of fewer files, and its parts go. Files are named by their content, so that whoever writes one again changes nothing.
// Those of a process that came second stay where they are, and nobody reads them.
//
// It is a log's files, by the names that they have in a folder (export.Files). Any goroutine may read; looking and
// writing are one at a time.
type Log struct {
	objects Objects
	id      string // of the cluster
	mu      sync.Mutex
	view    atomic.Pointer[LogView]
}

// chapter is the manifest of a part or of a day.
type chapter struct {
	Cluster string    `json:"cluster"`
	Number  uint64    `json:"number"`
	Part    uint64    `json:"part"` // the last part of a day; of a part its number
	Date    string    `json:"date"` // such as 2026-01-05, in UTC
	First   int64     `json:"first"`
	Last    int64     `json:"last"`
	Files   []logFile `json:"files"`
}

// logFile is a file of a log, and the object that has its content.
type logFile struct {
	File   string `json:"file"` // such as grants/date=2026-01-05/cycles-000000000001-000000000010.parquet
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// OpenLog opens the decision log of the cluster whose journal is at a prefix, and looks what it has. Errors: no cluster
// is there, the credentials are refused, no such bucket, a manifest is damaged. A cluster that has written none has an
// empty one.
func OpenLog(ctx context.Context, objects Objects) (*Log, error) {
	l := &Log{objects: objects}
	l.view.Store(&LogView{log: l})
	var is identity
	content, err := l.get(ctx, clusterKey, 0)
	switch {
	case errors.Is(err, ErrMissing):
		err = fmt.Errorf("%w: no cluster keeps its journal there (it has no %s)", ErrNoLog, clusterKey)
	case err == nil:
		if err = json.Unmarshal(content, &is); err != nil || is.ID == "" {
			err = fmt.Errorf("%s is damaged, or not of stint", clusterKey)
		} else if is.Format > Format {
			err = fmt.Errorf("it has format %d, of a newer stint; this one reads format %d", is.Format, Format)
		}
	}
	if err == nil {
		l.id = is.ID
		err = l.Look(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", objects.Name(), err)
	}
	return l, nil
}

// Name is what messages call the log, and how the names of its files begin.
func (l *Log) Name() string { return strings.TrimSuffix(l.objects.Name(), "/") + "/" + logName }

// View is what was there when the log was looked at last.
func (l *Log) View() *LogView { return l.view.Load() }

// How requests are tried again, which change nothing or the same.
const (
	logTries   = 5
	logTime    = 10 * time.Second // of one, besides a second a megabyte
	logPause   = 100 * time.Millisecond
	logTimeAll = time.Minute // of looking, for who has no context
)

// largeBytes is how long a file is that is never in memory whole.
const largeBytes = 32 << 20

// tried makes a request until it is answered.
func (l *Log) tried(ctx context.Context, bytes int64, do func(ctx context.Context) error) (err error) {
	wait := logPause
	for range logTries {
		timed, cancel := context.WithTimeout(ctx, logTime+time.Duration(bytes)*time.Second/bytesPerSecond)
		err = do(timed)
		cancel()
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrMissing) || errors.Is(err, ErrExists) ||
			errors.Is(err, ErrDenied) {
			return err
		}
		pause(ctx, wait)
		wait *= 2
	}
	return err
}

func (l *Log) get(ctx context.Context, key string, bytes int64) (content []byte, err error) {
	err = l.tried(ctx, bytes, func(ctx context.Context) (err error) {
		content, err = l.objects.Get(ctx, key)
		return err
	})
	return content, err
}

// chapter reads a manifest that follows one with a last cycle; 0: it is the first.
func (l *Log) chapter(ctx context.Context, key string, n uint64, after int64) (c chapter, err error) {
	content, err := l.get(ctx, key, 0)
	if err == nil {
		err = unseal(content, &c)
	}
	if err == nil && (c.Cluster != l.id || c.Number != n || c.First > c.Last || after > 0 && c.First != after+1) {
		err = fmt.Errorf("damaged: it is of another place: number %d, cycles %d to %d after cycle %d", c.Number,
			c.First, c.Last, after)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return c, err
}

// Look looks what was written since. It asks for the next part, and for the next day, whose parts may be gone.
func (l *Log) Look(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.look(ctx)
}

func (l *Log) look(ctx context.Context) error {
	v := l.View()
	for {
		c, err := l.chapter(ctx, partKey(v.next()), v.next(), v.Last())
		if err == nil {
			v = v.with(v.days, append(v.parts[:len(v.parts):len(v.parts)], c))
			continue
		}
		if !errors.Is(err, ErrMissing) {
			return err
		}
		n, after := uint64(len(v.days))+1, int64(0)
		if len(v.days) > 0 {
			after = v.days[n-2].Last
		}
		day, err := l.chapter(ctx, dayKey(n), n, after)
		if errors.Is(err, ErrMissing) {
			break
		}
		if err != nil {
			return err
		}
		v = v.sealed(day)
	}
	if v != l.View() {
		v.index()
		l.view.Store(v)
	}
	return nil
}

// ErrBehind is in the chain of errors of Append and Seal where another process has gone on with the log.
var ErrBehind = errors.New("another process has gone on with the decision log")

// Append writes the next part: the files of a folder, which have the cycles from the one behind the last on up to one.
func (l *Log) Append(ctx context.Context, dir string, first, last int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.View()
	if end := v.Last(); end > 0 && first != end+1 || first > last {
		return fmt.Errorf("%w: it ends with cycle %d, and cycle %d does not follow", ErrBehind, end, first)
	}
	c := chapter{Cluster: l.id, Number: v.next(), Part: v.next(), First: first, Last: last}
	if err := l.upload(ctx, &c, dir); err != nil {
		return err
	}
	if err := l.publish(ctx, partKey(c.Number), c); err != nil {
		return err
	}
	v = v.with(v.days, append(v.parts[:len(v.parts):len(v.parts)], c))
	v.index()
	l.view.Store(v)
	return nil
}

// Over is the first day that is over and has parts still: its cycles. ok is false when there is none.
func (l *Log) Over() (first, last int64, ok bool) {
	day := l.View().over()
	if len(day) == 0 {
		return 0, 0, false
	}
	return day[0].First, day[len(day)-1].Last, true
}

// Seal writes the manifest of the day that Over tells of: folders have its files. Drop removes its parts then.
func (l *Log) Seal(ctx context.Context, dirs ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.View()
	day := v.over()
	if len(day) == 0 {
		return fmt.Errorf("%w: no day is over whose parts it has", ErrBehind)
	}
	end := day[len(day)-1]
	c := chapter{Cluster: l.id, Number: uint64(len(v.days)) + 1, Part: end.Number, First: day[0].First, Last: end.Last}
	for _, dir := range dirs {
		if err := l.upload(ctx, &c, dir); err != nil {
			return err
		}
	}
	if err := l.publish(ctx, dayKey(c.Number), c); err != nil {
		return err
	}
	v = v.sealed(c)
	v.index()
	l.view.Store(v)
	return nil
}

// upload puts the files of a folder, and names them in a manifest.
func (l *Log) upload(ctx context.Context, c *chapter, dir string) error {
	return filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		f, err := l.put(ctx, at, filepath.ToSlash(name))
		if err != nil {
			return err
		}
		if _, date, ok := strings.Cut(path.Dir(f.File), "date="); ok {
			c.Date = date
		}
		c.Files = append(c.Files, f)
		return nil
	})
}

// put writes the object of a file, and names it.
func (l *Log) put(ctx context.Context, at, name string) (f logFile, err error) {
	from, err := os.Open(at)
	if err != nil {
		return f, err
	}
	defer from.Close()
	sum := sha256.New()
	f.File = name
	if f.Bytes, err = io.Copy(sum, from); err != nil {
		return f, err
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	base, ext, _ := strings.Cut(path.Base(name), ".")
	f.Key = fmt.Sprintf("%s/%s/%s-%.16s.%s", logName, path.Dir(name), base, f.SHA256, ext)
	err = l.tried(ctx, f.Bytes, func(ctx context.Context) error {
		if _, err := from.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if f.Bytes > largeBytes {
			_, err := l.objects.Upload(ctx, f.Key, from)
			return err
		}
		content, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		return l.objects.Put(ctx, f.Key, content)
	})
	if err != nil {
		return f, fmt.Errorf("writing %s: %w", f.Key, err)
	}
	return f, nil
}

// publish writes a manifest where none is. One that stands there already is this one, whose answer was lost, or
// another process's.
func (l *Log) publish(ctx context.Context, key string, c chapter) error {
	content := seal(c)
	err := l.tried(ctx, int64(len(content)), func(ctx context.Context) error {
		return l.objects.Create(ctx, key, content)
	})
	if err == nil {
		return nil
	}
	is, read := l.get(ctx, key, int64(len(content)))
	switch {
	case read == nil && bytes.Equal(is, content):
		return nil
	case read == nil:
		return errors.Join(fmt.Errorf("%w: %s is another's", ErrBehind, key), l.look(ctx))
	}
	return fmt.Errorf("writing %s: %w", key, err)
}

// Drop removes the parts that days stand for, with the files that these do not name.
func (l *Log) Drop(ctx context.Context) error {
	v := l.View()
	if len(v.days) == 0 {
		return nil
	}
	named := map[string]bool{}
	for _, c := range v.days {
		for _, f := range c.Files {
			named[f.Key] = true
		}
	}
	return l.objects.List(ctx, partPrefix, func(key string) error {
		var n uint64
		_, err := fmt.Sscanf(strings.TrimPrefix(key, partPrefix), "%d", &n)
		if err != nil || n > v.days[len(v.days)-1].Part {
			return nil
		}
		var c chapter
		content, err := l.get(ctx, key, 0)
		if errors.Is(err, ErrMissing) {
			return nil
		}
		if err == nil {
			err = unseal(content, &c)
		}
		for _, f := range c.Files { // the manifest last: it tells what is left to remove
			if err == nil && !named[f.Key] {
				err = l.objects.Delete(ctx, f.Key)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return l.objects.Delete(ctx, key)
	})
}

// LogView is what a log has at some time.
type LogView struct {
	log   *Log
	days  []chapter
	parts []chapter // behind them
	of    map[string]logFile
	names map[string][]fs.DirEntry // of folders
}

func (v *LogView) with(days, parts []chapter) *LogView {
	return &LogView{log: v.log, days: days, parts: parts}
}

// sealed is the view where a day stands for its parts.
func (v *LogView) sealed(day chapter) *LogView {
	parts := v.parts
	for len(parts) > 0 && parts[0].Number <= day.Part {
		parts = parts[1:]
	}
	return v.with(append(v.days[:len(v.days):len(v.days)], day), parts)
}

// over are the parts of the first day, once it is over: a later one has parts too.
func (v *LogView) over() []chapter {
	for n, c := range v.parts {
		if c.Date != v.parts[0].Date {
			return v.parts[:n]
		}
	}
	return nil
}

// next is the number of the next part.
func (v *LogView) next() uint64 {
	switch {
	case len(v.parts) > 0:
		return v.parts[len(v.parts)-1].Number + 1
	case len(v.days) > 0:
		return v.days[len(v.days)-1].Part + 1
	}
	return 1
}

// Last is the last cycle, 0 when there is none.
func (v *LogView) Last() int64 {
	switch {
	case len(v.parts) > 0:
		return v.parts[len(v.parts)-1].Last
	case len(v.days) > 0:
		return v.days[len(v.days)-1].Last
	}
	return 0
}

// index finds out which folders there are.
func (v *LogView) index() {
	v.of, v.names = map[string]logFile{}, map[string][]fs.DirEntry{}
	var add func(name string, bytes int64, folder bool)
	add = func(name string, bytes int64, folder bool) {
		above := path.Dir(name)
		if _, known := v.names[above]; !known && above != "." {
			v.names[above] = nil
			add(above, 0, true)
		}
		v.names[above] = append(v.names[above], fs.FileInfoToDirEntry(entry{path.Base(name), bytes, folder}))
	}
	for _, list := range [][]chapter{v.days, v.parts} {
		for _, c := range list {
			for _, f := range c.Files {
				v.of[f.File] = f
				add(f.File, f.Bytes, false)
			}
		}
	}
}

// Refresh does nothing: a view stays as it is.
func (v *LogView) Refresh() error { return nil }

func (v *LogView) within(name string) string { return strings.TrimPrefix(name, v.log.Name()+"/") }

// ReadDir lists a folder.
func (v *LogView) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, ok := v.names[v.within(name)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return entries, nil
}

// Stat tells of a file.
func (v *LogView) Stat(name string) (fs.FileInfo, error) {
	f, ok := v.of[v.within(name)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return entry{path.Base(name), f.Bytes, false}, nil
}

// Open reads a file, which must be as its manifest says.
func (v *LogView) Open(name string) (io.ReadCloser, error) {
	f, ok := v.of[v.within(name)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if f.Bytes > largeBytes {
		return v.log.large(f)
	}
	content, err := v.log.get(context.Background(), f.Key, f.Bytes)
	if errors.Is(err, ErrMissing) {
		return nil, fmt.Errorf("%s: %w: %s", f.Key, fs.ErrNotExist, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Key, err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, fmt.Errorf("%s: damaged: it is not as its manifest says", f.Key)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// large reads a large file part by part. That it is not as its manifest says is told at its end.
func (l *Log) large(f logFile) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r, _, err := l.objects.Open(ctx, f.Key)
	if err != nil {
		cancel()
		if errors.Is(err, ErrMissing) {
			err = fs.ErrNotExist
		}
		return nil, fmt.Errorf("%s: %w", f.Key, err)
	}
	return &largeFile{r: r, f: f, sum: sha256.New(), end: cancel}, nil
}

// largeFile is a file that is read part by part.
type largeFile struct {
	r   io.ReadCloser
	f   logFile
	sum hash.Hash
	end func()
}

// Read reads what comes next.
func (r *largeFile) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.sum.Write(p[:n])
	switch {
	case err == io.EOF && hex.EncodeToString(r.sum.Sum(nil)) != r.f.SHA256:
		err = fmt.Errorf("%s: damaged: it is not as its manifest says", r.f.Key)
	case err != nil && err != io.EOF:
		err = fmt.Errorf("%s: %w", r.f.Key, err)
	}
	return n, err
}

// Close ends the reading.
func (r *largeFile) Close() error {
	defer r.end()
	return r.r.Close()
}

// Refresh looks what was written since: see Look.
func (l *Log) Refresh() error {
	ctx, cancel := context.WithTimeout(context.Background(), logTimeAll)
	defer cancel()
	return l.Look(ctx)
}

// ReadDir lists a folder.
func (l *Log) ReadDir(name string) ([]fs.DirEntry, error) { return l.View().ReadDir(name) }

// Stat tells of a file.
func (l *Log) Stat(name string) (fs.FileInfo, error) { return l.View().Stat(name) }

// Open reads a file.
func (l *Log) Open(name string) (io.ReadCloser, error) { return l.View().Open(name) }

// entry is what is known of a file or a folder.
type entry struct {
	name   string
	bytes  int64
	folder bool
}

// Name is its name within its folder.
func (e entry) Name() string { return e.name }

// Size is its length.
func (e entry) Size() int64 { return e.bytes }

// Mode tells whether it is a folder.
func (e entry) Mode() fs.FileMode {
	if e.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// ModTime is not known.
func (e entry) ModTime() time.Time { return time.Time{} }

// IsDir tells whether it is a folder.
func (e entry) IsDir() bool { return e.folder }

// Sys is nothing.
func (e entry) Sys() any { return nil }
