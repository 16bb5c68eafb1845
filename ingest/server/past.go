package server

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/export"
)

// history reads cycles from the decision log. A reader sees the log as it was when it was listed, so it is listed anew
// when a later cycle is asked for, and where a log is shown alone once a while.
type history struct {
	dir  string       // "": there is no log
	from export.Files // of a log that lies elsewhere than in dir; nil: it does not
	name string       // of that log
	mu   sync.Mutex
	r    *export.Reader
	at   time.Time // when it was listed last
	kept kept
}

// listedMax is after what time the log is listed anew for who asks for the newest cycle of a log that is shown alone.
const listedMax = time.Second

// keptMax is how many tables are kept for those who ask for them again.
const keptMax = 32

// kept are tables made last, so that who asks for one again shares it.
type kept struct {
	bytesMax, bytes int64
	order           []string // the one used last at the end
	of              map[string]*decision.Table
}

// find is a table that is kept, nil when it is not.
func (k *kept) find(name string) *decision.Table {
	t := k.of[name]
	if t != nil {
		i := slices.Index(k.order, name)
		k.order = append(slices.Delete(k.order, i, i+1), name)
	}
	return t
}

// keep keeps a table, if it is not too large, and drops those used longest ago.
func (k *kept) keep(name string, t *decision.Table) {
	if k.of == nil {
		k.of = map[string]*decision.Table{}
	}
	size := tableBytes(t)
	if size > k.bytesMax || k.of[name] != nil {
		return
	}
	for len(k.order) >= keptMax || k.bytes+size > k.bytesMax {
		old := k.order[0]
		k.bytes -= tableBytes(k.of[old])
		delete(k.of, old)
		k.order = k.order[1:]
	}
	k.bytes += size
	k.order, k.of[name] = append(k.order, name), t
}

// reading runs f on a reader that sees a cycle, and says what is wrong in words for those who asked: nobody else has
// the reader meanwhile.
func (h *history) reading(n int64, f func(*export.Reader) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, err := h.reader(n)
	if err != nil {
		return err
	}
	return unread(f(r))
}

// unread tells of an error of the log that it is the log's: a file that is damaged, or gone since it was listed.
func unread(err error) error {
	var p problem
	if err == nil || errors.As(err, &p) {
		return err
	}
	if errors.Is(err, export.ErrNotWritten) {
		return problem{Type: "not-found", Status: 404, Detail: err.Error()}
	}
	if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "was dropped") {
		return problem{Type: "compacted", Status: 410, Detail: "the decision log does not have this any more: " +
			err.Error()}
	}
	return err
}

// reader is a reader that sees a cycle.
func (h *history) reader(n int64) (*export.Reader, error) {
	if h.dir == "" {
		return nil, problem{Type: "not-found", Status: 404,
			Detail: "no decision log is written: only the last cycle can be read"}
	}
	behind := problem{Type: "not-logged", Status: 503, RetryAfter: 1,
		Detail: fmt.Sprintf("cycle %d is not in the decision log yet", n)}
	if h.r == nil || len(h.r.Cycles()) == 0 || h.r.Cycles()[len(h.r.Cycles())-1] < n {
		if err := h.list(); err != nil {
			return nil, behind
		}
	}
	cycles := h.r.Cycles()
	if _, ok := slices.BinarySearch(cycles, n); !ok {
		if len(cycles) == 0 || n > cycles[len(cycles)-1] {
			return nil, behind
		}
		if n < cycles[0] {
			return nil, problem{Type: "compacted", Status: 410, Detail: fmt.Sprintf(
				"cycle %d is not in the decision log any more, which begins with cycle %d", n, cycles[0])}
		}
		return nil, problem{Type: "not-found", Status: 404,
			Detail: fmt.Sprintf("cycle %d is not in the decision log", n)}
	}
	return h.r, nil
}

// list lists the log anew.
func (h *history) list() (err error) {
	if h.r == nil && h.from != nil {
		h.r, err = export.OpenFiles(h.from, h.name)
	} else if h.r == nil {
		h.r, err = export.OpenLog(h.dir)
	} else {
		err = h.r.Refresh()
	}
	if err != nil {
		h.r = nil
	}
	h.at = time.Now()
	return err
}

// begin has a log elsewhere be read from now on. make makes what there is of it here: nobody reads meanwhile.
func (h *history) begin(from export.Files, name string, make func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.r, h.from, h.name = nil, from, name
	return make()
}

// bounds are the first and the last cycle of a log that is shown alone; 0 when it has none.
func (h *history) bounds() (first, last int64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.r == nil || time.Since(h.at) > listedMax {
		if err := h.list(); errors.Is(err, fs.ErrNotExist) {
			return 0, 0, nil // nothing was written to it yet
		} else if err != nil {
			return 0, 0, problem{Type: "not-logged", Status: 503, RetryAfter: 2,
				Detail: "the decision log cannot be read: " + err.Error()}
		}
	}
	if cycles := h.r.Cycles(); len(cycles) > 0 {
		return cycles[0], cycles[len(cycles)-1], nil
	}
	return 0, 0, nil
}

// table reads a table as it is in a cycle, of consumers with the figures of amounts as columns.
func (h *history) table(name string, n int64) (*decision.Table, error) {
	return h.made(n, name, func(r *export.Reader) (*decision.Table, error) {
		if !slices.Contains(r.Tables(), name) {
			return nil, problem{Type: "not-found", Status: 404,
				Detail: fmt.Sprintf("no table %q; there are %s", name, strings.Join(r.Tables(), ", "))}
		}
		t, err := r.Table(name, n)
		if err != nil || name != "consumers" {
			return t, err
		}
		amounts, err := r.Table("amounts", n)
		if err != nil {
			return nil, err
		}
		wide := decision.Wide(t, amounts)
		return &wide, nil
	})
}

// made is a table of a cycle that is made of the log, or one that was made before and is kept under the same name.
func (h *history) made(
	n int64, name string, f func(*export.Reader) (*decision.Table, error),
) (t *decision.Table, err error) {
	name = fmt.Sprintf("%d %s", n, name)
	err = h.reading(n, func(r *export.Reader) (err error) {
		if t = h.kept.find(name); t != nil {
			return nil
		}
		if t, err = f(r); err == nil {
			h.kept.keep(name, t)
		}
		return err
	})
	return t, err
}

// facts reads from the decision log what an explanation of a cycle goes by.
func (h *history) facts(n int64) (f *explain.Facts, err error) {
	err = h.reading(n, func(r *export.Reader) error {
		f, err = explain.Read(r, n, planName)
		return err
	})
	return f, err
}

// cycles are the rows of the table cycles before a cycle, at most so many, the oldest first.
func (h *history) cycles(before int64, limit int) (t *decision.Table, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.r == nil {
		if err := h.list(); errors.Is(err, fs.ErrNotExist) {
			return nil, nil // nothing was written to it yet
		} else if err != nil {
			return nil, unread(err)
		}
	} else if all := h.r.Cycles(); len(all) == 0 || all[len(all)-1] < before-1 {
		if err := h.list(); err != nil {
			return nil, unread(err)
		}
	}
	all := h.r.Cycles()
	end, _ := slices.BinarySearch(all, before)
	if end == 0 {
		return nil, nil
	}
	t, err = h.r.Rows("cycles", all[max(0, end-limit)], all[end-1])
	return t, unread(err)
}
