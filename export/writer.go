package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stintd/stint/core/decision"
)

// Options say how a log is opened for writing.
type Options struct {
	Append bool // continue a log; without it the folder must be empty or missing
	Lazy   bool // leave it to the system when files reach the disk: for logs that can be made again

	// After is the log with whose last cycle this one goes on, which begins with the next: as a tail, which is not
	// whole without the other. nil: it is a log of its own.
	After *Reader
}

// Input is one input of a cycle, a row of the table inputs (D-13).
type Input struct {
	Kind   string // plan, hosts, demand, …
	Source string // of demand, running and releases; else ""
	Format string // how the bytes are to be read
	Digest string // SHA-256 of the bytes, in hex
	Bytes  int64
	Rows   int64
	Author string // who gave it; "" when nobody is known to have

	Message string // of a policy: what it changes, in the words of who gave it; it stands in the table plans alone
}

// Writer writes a decision log. It is for one goroutine, save of Compact and Tend, which another one may call
// meanwhile; a log has one Writer at a time.
type Writer struct {
	dir      string
	disk     disk
	lock     *os.File
	state    [sets]written
	standing int64 // the cycle that wrote what stands whole, since the log was opened; 0: none did
	// whether every table has a file, so that none is missing for those who read files without a Reader
	complete bool
	views    bool          // whether views.sql has been written
	full     chan struct{} // told when many cycles are loose

	mu      sync.Mutex      // for what compaction sees too
	last    int64           // the last published cycle, 0 when there is none
	nowUS   int64           // of it
	broken  error           // why the log must be opened anew
	waiting map[string]bool // inputs that were kept for a cycle that is not published yet
	since   map[string]bool // inputs named by cycles published since the compaction under way began; nil: there is none
	loose   int             // cycles published since the last compaction began
}

// written is what was last written of a set of state tables.
type written struct {
	cycle   int64
	content string
}

// Open opens a log for writing, making its folder if need be. What a cycle that was never
// published left behind is removed. Errors: the folder is not empty (without Append),
// another writer has it, its last cycle cannot be read.
func Open(dir string, o Options) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if !o.Append {
		if err := checkEmpty(dir); err != nil { // before a lock file is put into a stranger's folder
			return nil, err
		}
	}
	held, err := lock(dir)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, lock: held, full: make(chan struct{}, 1), waiting: map[string]bool{}}
	w.disk.lazy = o.Lazy
	if o.Append {
		err = w.resume()
	} else {
		err = checkEmpty(dir)
	}
	if err == nil && o.After != nil {
		err = w.goOn(o.After)
	}
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return w, nil
}

func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != lockName {
			return fmt.Errorf("log %s: not empty (it has %s); only --append continues a log", dir, e.Name())
		}
	}
	return nil
}

// Close lets another writer have the log.
func (w *Writer) Close() error {
	_ = w.fail(errors.New("it is closed"))
	return w.lock.Close()
}

// Last is the last published cycle, 0 when there is none. Any goroutine may ask.
func (w *Writer) Last() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// resume finds where a log ends, and removes what is newer.
func (w *Writer) resume() error {
	r, err := openLog(w.dir)
	if err != nil {
		return err
	}
	if n := len(r.cycles); n > 0 {
		w.last = r.cycles[n-1]
	}
	w.complete = true
	for name := range r.shape {
		w.complete = w.complete && len(r.files[name]) > 0
	}
	for _, t := range shapes() {
		err := eachFile(folder{}, w.dir, t.Name, func(path, name string) error {
			m := fileName.FindStringSubmatch(strings.TrimSuffix(name, tmpSuffix))
			if m == nil {
				return nil
			}
			first, _ := strconv.ParseInt(m[1], 10, 64)
			if first > w.last || strings.HasSuffix(name, tmpSuffix) {
				return w.disk.remove(path)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := errors.Join(w.dropStates(), w.dropUnfinished()); err != nil || w.last == 0 {
		return err
	}
	_, err = w.read(r)
	return err
}

// goOn goes on with the last cycle of another log.
func (w *Writer) goOn(r *Reader) error {
	if len(r.cycles) == 0 {
		return nil
	}
	w.last, w.complete = r.cycles[len(r.cycles)-1], true
	head, err := again(r, func() (head, error) { return w.read(r) })
	w.standing = head.standing
	return err
}

// read notes what the last cycle has of the tables that are written where they change.
func (w *Writer) read(r *Reader) (head, error) {
	last, err := r.head(w.last)
	if err != nil {
		return last, err
	}
	t, err := r.Table(cyclesTable, w.last)
	if err != nil {
		return last, err
	}
	w.nowUS = t.Column("now").Int[0]
	for s := range sets {
		content, err := r.content(s, last.state[s])
		if err != nil {
			return last, err
		}
		w.state[s] = written{last.state[s], content}
	}
	return last, nil
}

// inputTable is the table inputs of a cycle.
func inputTable(inputs []Input) decision.Table {
	var bytes, rows []int64
	text := func(name string, of func(*Input) string) decision.Column {
		c := decision.Column{Name: name, Type: decision.Text}
		var words decision.Words
		place := map[string]int32{}
		for i := range inputs {
			word := of(&inputs[i])
			if word == "" && name == "author" {
				c.Code = append(c.Code, decision.Null)
				continue
			}
			if _, ok := place[word]; !ok {
				place[word] = int32(len(words))
				words = append(words, word)
			}
			c.Code = append(c.Code, place[word])
		}
		c.Dict = words
		return c
	}
	for i := range inputs {
		bytes, rows = append(bytes, inputs[i].Bytes), append(rows, inputs[i].Rows)
	}
	return decision.Table{Name: inputsTable, Rows: len(inputs), Columns: []decision.Column{
		text("kind", func(in *Input) string { return in.Kind }),
		text("source", func(in *Input) string { return in.Source }),
		text("format", func(in *Input) string { return in.Format }),
		text("digest", func(in *Input) string { return in.Digest }),
		{Name: "bytes", Type: decision.Int, Int: bytes},
		{Name: "rows", Type: decision.Int, Int: rows},
		text("author", func(in *Input) string { return in.Author }),
	}}
}

// Cycle publishes a cycle: whole, or not at all. inputs are those applied in it, in order,
// kept by Input before. It sets Inputs and the *_cycle figures of c.Summary, and Digest
// when that is empty. Cycles come in rising order. After an error the log is as it was and the
// cycle may be tried again, unless cleaning up failed too: then every call fails until the log is
// opened anew. It costs about 0.8 µs a row and holds one row group in memory.
func (w *Writer) Cycle(c *decision.Cycle, inputs []Input) error {
	s := &c.Summary
	if w.broken != nil {
		return fmt.Errorf("log %s: %w", w.dir, w.broken)
	}
	if s.Cycle <= w.last || s.Cycle > cycleMax {
		return fmt.Errorf("log %s: cycle %d cannot follow cycle %d", w.dir, s.Cycle, w.last)
	}
	s.Inputs = nil
	for _, in := range inputs {
		if err := hasBlob(w.dir, in.Kind, in.Digest); err != nil {
			return fmt.Errorf("log %s: cycle %d: an input that was not kept: %w", w.dir, s.Cycle, err)
		}
		s.Inputs = append(s.Inputs, blobKey(in.Kind, in.Digest))
	}
	if err := w.writeViews(); err != nil {
		return fmt.Errorf("log %s: cycle %d: %w", w.dir, s.Cycle, err)
	}
	if s.Digest == "" {
		s.Digest = decision.Digest(c.Tables())
	}
	p := publication{w: w, cycle: s.Cycle, now: s.NowUS, state: w.state, standing: w.standing, metas: []meta{
		{metaSchema, SchemaVersion}, {metaRules, decision.RulesVersion},
		{metaRevision, strconv.FormatInt(s.Revision, 10)}, {metaDecisions, s.Digest},
	}}
	if err := p.tables(c, inputs); err != nil {
		return p.undo(err)
	}
	s.ConsumersCycle, s.SharesCycle = p.state[consumersSet].cycle, p.state[sharesSet].cycle
	s.ShortfallsCycle, s.StandingCycle = p.state[shortfallsSet].cycle, p.standing
	cycles := s.Schema().Table()
	if err := p.file(&cycles, append(p.files, meta{metaRows, strconv.Itoa(p.rows)})...); err != nil {
		return p.undo(err)
	}
	w.published(s)
	w.state, w.standing, w.complete = p.state, p.standing, w.complete || p.all
	if err := w.disk.syncDir(datePath(w.dir, cyclesTable, s.NowUS)); err != nil {
		return fmt.Errorf("log %s: %w", w.dir,
			w.fail(fmt.Errorf("cycle %d is published, but perhaps not on the disk: %w", s.Cycle, err)))
	}
	return nil
}

// published notes that the log ends with a cycle now.
func (w *Writer) published(s *decision.Summary) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.nowUS = s.Cycle, s.NowUS
	for _, key := range s.Inputs {
		delete(w.waiting, key)
		if w.since != nil {
			w.since[key] = true
		}
	}
	if w.loose++; w.loose >= looseMax {
		select {
		case w.full <- struct{}{}:
		default:
		}
	}
}

// fail notes why nothing more can be written.
func (w *Writer) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = err
	return err
}

// publication is a cycle on its way to the disk.
type publication struct {
	w          *Writer
	cycle, now int64
	state      [sets]written // once published
	standing   int64         // likewise
	metas      []meta        // of every file
	all        bool          // whether every table gets a file, with rows or not
	rows       int           // the most that a table has
	files      []meta        // digests of the files written, for the file of cycles
	paths      []string      // of the files written or begun
}

// tables writes all files but that of cycles, and flushes their folders.
func (p *publication) tables(c *decision.Cycle, inputs []Input) error {
	p.all = !p.w.complete || p.newDay()
	tables := append(logged(c.Tables(), inputs), inputTable(inputs))
	if c.Keyframe {
		tables = append(tables, c.KeyframeTables()...)
	}
	tables = append(tables, p.stands(c.Standing)...)
	if p.newDay() {
		p.state = [sets]written{} // so that the days before may be dropped
	}
	content := p.changed(tables)
	for i := range tables {
		t := &tables[i]
		var err error
		if s, ok := setOf[t.Name]; ok {
			if content[s] != "" {
				err = p.file(t, meta{metaContent, content[s]})
			}
		} else if t.Rows > 0 || isKeyframe(t.Name) || p.all || decision.IsStanding(t.Name) && p.standing == p.cycle {
			err = p.file(t)
		}
		if err != nil {
			return err
		}
	}
	if c.State != nil {
		if err := p.saved(c.State); err != nil {
			return err
		}
	}
	for _, path := range p.paths {
		if err := p.w.disk.syncDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	return nil
}

// stands notes since when the rows of what stands count, and gives those of the cycle. Where a cycle has none, those of
// later ones say nothing until they are whole.
func (p *publication) stands(s *decision.Standing) []decision.Table {
	switch {
	case s == nil:
		p.standing = 0
		return new(decision.Standing).Tables()
	case s.Whole:
		p.standing = p.cycle
	case p.standing == 0:
		panic("BUG: the log does not know what changed of what stands")
	}
	return s.Tables()
}

// logged are a cycle's tables as the log has them: with where each consumer stands, who gave a policy, and why.
func logged(tables []decision.Table, inputs []Input) []decision.Table {
	for i := range tables {
		switch t := &tables[i]; {
		case t.Name == "consumers":
			*t = decision.Tree(t)
		case t.Name == "plans" && t.Rows > 0:
			for _, in := range inputs {
				if in.Kind == "plan" && in.Author != "" {
					setText(t.Column("author"), t.Rows, in.Author)
				}
				if in.Kind == "plan" && in.Message != "" {
					setText(t.Column("message"), t.Rows, in.Message)
				}
			}
		}
	}
	return tables
}

// setText gives every row of a text column one word.
func setText(c *decision.Column, rows int, word string) {
	c.Code, c.Dict = make([]int32, rows), decision.Words{word}
}

// newDay tells whether the cycle is the first of a UTC day.
func (p *publication) newDay() bool { return p.now/dayUS != p.w.nowUS/dayUS }

const dayUS = 24 * 60 * 60 * 1_000_000

// changed gives the content digest of each set of state tables that differs from what was
// last written, and notes it in state; "" for the others.
func (p *publication) changed(tables []decision.Table) (content [sets]string) {
	var members [sets][]decision.Table
	for _, t := range tables {
		if s, ok := setOf[t.Name]; ok {
			members[s] = append(members[s], t)
		}
	}
	for s := range sets {
		digest := decision.Content(members[s])
		if digest != p.state[s].content {
			content[s], p.state[s] = digest, written{p.cycle, digest}
		}
	}
	return content
}

// file writes one table and gives the file its name.
func (p *publication) file(t *decision.Table, more ...meta) error {
	if err := t.Check(); err != nil {
		panic("BUG: " + err.Error())
	}
	folder := datePath(p.w.dir, t.Name, p.now)
	if err := p.w.disk.mkdir(p.w.dir, folder); err != nil {
		return err
	}
	p.rows = max(p.rows, t.Rows)
	path := filepath.Join(folder, cycleName(p.cycle))
	p.paths = append(p.paths, path)
	err := p.w.disk.write(path, func(to *os.File) error {
		digest, err := seal(to, func(to io.Writer) error {
			return encode(to, t, p.cycle, slices.Concat(p.metas, more))
		})
		p.files = append(p.files, meta{metaFile + t.Name, digest})
		return err
	})
	if err != nil {
		return err
	}
	return p.w.disk.rename(path)
}

// undo removes what was written, the cycles file first, since the others must not be
// missing while that is there.
func (p *publication) undo(cause error) error {
	for i := len(p.paths) - 1; i >= 0; i-- {
		err := errors.Join(p.w.disk.remove(p.paths[i]), p.w.disk.remove(p.paths[i]+tmpSuffix))
		if err != nil {
			cause = errors.Join(cause, p.w.fail(fmt.Errorf("leftovers of cycle %d: %w", p.cycle, err)))
			break
		}
	}
	return fmt.Errorf("log %s: cycle %d: %w", p.w.dir, p.cycle, cause)
}
