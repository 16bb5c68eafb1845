package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintd/stint/core/journal"
	"github.com/stintd/stint/export"
)

// SharedLog is the decision log that the processes of a cluster have in common. It goes on in parts, each behind the
// last, whoever writes them.
type SharedLog interface {
	Name() string
	// Look looks what others have written since; View is what was there then.
	Look(ctx context.Context) error
	View() LogView
	// Append writes a folder's files as the next part. Where another process came first it is an error, and the view is
	// that process's.
	Append(ctx context.Context, dir string, first, last int64) error
	// Over is the first day that is over and whose parts were not put together; Seal puts the files of folders in their
	// place, and Drop removes what was replaced.
	Over() (first, last int64, ok bool)
	Seal(ctx context.Context, dirs ...string) error
	Drop(ctx context.Context) error
}

// LogView is what a shared log has at some time.
type LogView interface {
	export.Files
	Last() int64
}

// Folders of a process of a cluster.
const (
	tailFolder = "tail"  // the decision log from where the shared one ended when the process joined
	partFolder = "parts" // of the shared log, while they are made
)

// How often a tail looks at the shared log, and for how long parts stay when a day has taken their place.
const (
	tailLook  = 10 * time.Second
	partGrace = 30 * time.Second
	lookMax   = 5 * time.Second // for who reads
	moveMax   = 5 * time.Minute // for who takes a checkpoint
)

// tail is the end of a decision log, as far as this process has decided it and the shared log may lack it. Who leads
// moves it there: before each checkpoint, since whoever restores that one goes on behind it.
type tail struct {
	s      *Server
	log    SharedLog
	dir    string // has the tail and the parts
	w      *export.Writer
	leads  atomic.Bool
	moving sync.Mutex
	sealed time.Time // when parts were replaced that are there still
	cut    int64     // the last cycle that was removed
}

// openTail begins a tail behind what the shared log has.
func (s *Server) openTail(log SharedLog, dir string) (*tail, error) {
	t := &tail{s: s, log: log, dir: dir, sealed: time.Now()} // a leader before may have left parts
	return t, s.history.begin(&tailFiles{t: t}, log.Name(), func() error {
		if err := errors.Join(os.RemoveAll(t.folder(tailFolder)), os.RemoveAll(t.folder(partFolder))); err != nil {
			return err
		}
		r, err := export.OpenFiles(log.View(), log.Name())
		if err == nil {
			t.w, err = export.Open(t.folder(tailFolder), export.Options{Lazy: true, After: r})
		}
		return err
	})
}

func (t *tail) folder(name string) string { return filepath.Join(t.dir, name) }

// move gives the shared log all cycles that it lacks.
func (t *tail) move(ctx context.Context) error {
	t.moving.Lock()
	defer t.moving.Unlock()
	part := t.folder(partFolder)
	r, err := export.OpenLog(t.folder(tailFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was decided yet
	}
	if err == nil {
		err = t.log.Look(ctx) // who led before may have gone on with it
	}
	if err != nil {
		return fmt.Errorf("the decision log in the bucket: %w", err)
	}
	for {
		cycles, had := r.Cycles(), t.log.View().Last()
		if len(cycles) == 0 || cycles[len(cycles)-1] <= had {
			return nil
		}
		first := had + 1
		if had == 0 {
			first = cycles[0]
		}
		last, err := r.Extract(part, first, cycles[len(cycles)-1])
		if err == nil {
			err = t.log.Append(ctx, part, first, last)
		}
		err = errors.Join(err, os.RemoveAll(part))
		if err != nil && t.log.View().Last() == had {
			return fmt.Errorf("the decision log in the bucket: %w", err)
		}
	}
}

// tend keeps the tail short, and who leads puts the parts of days that are over together, until ctx is done.
func (t *tail) tend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(tailLook):
		}
		if err := t.tidy(ctx); err != nil && ctx.Err() == nil {
			t.s.o.Log.Warn("the decision log in the bucket is not tended; it is tried again", "error", err)
		}
	}
}

func (t *tail) tidy(ctx context.Context) error {
	if err := t.log.Look(ctx); err != nil {
		return err
	}
	if last := t.log.View().Last(); last > t.cut {
		if err := t.w.Trim(last); err != nil {
			return err
		}
		t.cut = last
	}
	if !t.leads.Load() {
		return nil
	}
	if !t.sealed.IsZero() && time.Since(t.sealed) > partGrace {
		if err := t.log.Drop(ctx); err != nil {
			return err
		}
		t.sealed = time.Time{}
	}
	return t.seal(ctx)
}

// seal puts the parts of a day that is over together, as few files as they become.
func (t *tail) seal(ctx context.Context) error {
	first, last, over := t.log.Over()
	if !over {
		return nil
	}
	t.moving.Lock()
	defer t.moving.Unlock()
	start, part := time.Now(), t.folder(partFolder)
	r, err := export.OpenFiles(t.log.View(), t.log.Name())
	var dirs []string
	for next := first; err == nil && next <= last; next++ {
		dirs = append(dirs, filepath.Join(part, strconv.Itoa(len(dirs))))
		next, err = r.Extract(dirs[len(dirs)-1], next, last)
	}
	if err == nil {
		err = t.log.Seal(ctx, dirs...)
	}
	if err = errors.Join(err, os.RemoveAll(part)); err != nil {
		return err
	}
	t.sealed = time.Now()
	t.s.o.Log.Info("a day of the decision log is sealed", "cycles", fmt.Sprintf("%d to %d", first, last), "ranges",
		len(dirs),
		"took", time.Since(start))
	return nil
}

// loggedJournal is a journal whose checkpoints come behind what the shared log has.
type loggedJournal struct {
	journal.Shared
	t *tail
}

// Checkpoint gives the shared log what it lacks, and then keeps the checkpoint. It does when the service ends, too.
func (j loggedJournal) Checkpoint(seq uint64, write func(io.Writer) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), moveMax)
	defer cancel()
	if err := j.t.move(ctx); err != nil {
		return err
	}
	return j.Shared.Checkpoint(seq, write)
}

// tailFiles are the files of a shared log, and behind it those of the tail. They are for one goroutine.
type tailFiles struct {
	t    *tail
	view LogView // nil: not looked at yet
	gone bool    // an object was: a day has taken its place
}

// Refresh looks what there is: without a request, unless an object was gone.
func (f *tailFiles) Refresh() (err error) {
	if f.gone {
		ctx, cancel := context.WithTimeout(context.Background(), lookMax)
		defer cancel()
		err = f.t.log.Look(ctx)
		f.gone = err != nil
	}
	f.view = f.t.log.View()
	return err
}

// own is the name of a file in the tail.
func (f *tailFiles) own(name string) string {
	return filepath.Join(f.t.folder(tailFolder), strings.TrimPrefix(name, f.t.log.Name()))
}

var ofCycle = regexp.MustCompile(`^cycles?-(\d{12})`)

// ReadDir lists a folder: of the tail the files of cycles that the shared log lacks.
func (f *tailFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := f.view.ReadDir(name)
	own, none := os.ReadDir(f.own(name))
	if err != nil && (none != nil || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	there := map[string]bool{}
	for _, e := range all {
		there[e.Name()] = true
	}
	all = all[:len(all):len(all)]
	for _, e := range own {
		if m := ofCycle.FindStringSubmatch(e.Name()); m != nil {
			if cycle, err := strconv.ParseInt(m[1], 10, 64); err != nil || cycle <= f.view.Last() {
				continue
			}
		}
		if !there[e.Name()] {
			all = append(all, e)
		}
	}
	return all, nil
}

// Stat tells of a file.
func (f *tailFiles) Stat(name string) (fs.FileInfo, error) {
	info, err := f.view.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Stat(f.own(name))
	}
	return info, err
}

// Open opens a file.
func (f *tailFiles) Open(name string) (io.ReadCloser, error) {
	if _, err := f.view.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return os.Open(f.own(name))
	}
	content, err := f.view.Open(name)
	f.gone = f.gone || errors.Is(err, fs.ErrNotExist)
	return content, err
}
