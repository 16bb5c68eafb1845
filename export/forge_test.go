package export

import (
	"errors"
	"io"
	"os"
	"strconv"

	"github.com/stintd/stint/core/decision"
)

// Forger changes the files of a log as somebody would who can write to it, and takes the changes back.
type Forger struct {
	dir    string
	backup map[string][]byte // by path
}

// NewForger is a forger of a log of single cycles.
func NewForger(dir string) *Forger { return &Forger{dir, map[string][]byte{}} }

// Restore takes back all changes.
func (f *Forger) Restore() (err error) {
	for path, data := range f.backup {
		err = errors.Join(err, os.WriteFile(path, data, 0o644))
	}
	clear(f.backup)
	return err
}

// keep remembers a file before it is changed.
func (f *Forger) keep(path string) error {
	if _, ok := f.backup[path]; ok {
		return nil
	}
	data, err := os.ReadFile(path)
	f.backup[path] = data
	return err
}

// Flip flips a bit of a file.
func (f *Forger) Flip(path string, at int64, bit int) error {
	if err := f.keep(path); err != nil {
		return err
	}
	data := append([]byte(nil), f.backup[path]...)
	data[at] ^= 1 << bit
	return os.WriteFile(path, data, 0o644)
}

// Tables are the tables that have a file in a cycle, with the column cycle left out.
func (f *Forger) Tables(r *Reader, cycle int64) (map[string]*decision.Table, error) {
	all := map[string]*decision.Table{}
	for _, name := range r.Tables() {
		path, ok := r.files[name][[2]int64{cycle, cycle}]
		if !ok {
			continue
		}
		t, err := r.load(name, span{cycle, cycle, path}, "", cycle, cycle)
		if err != nil {
			return nil, err
		}
		t.Columns = t.Columns[1:]
		all[name] = t
	}
	return all, nil
}

// Forge puts tables in the place of those of a cycle. With digests, everything that vouches for them is made to agree:
// content digests, the digest of the cycle and of all that the same tables hold in, the seals, the manifest. Without,
// only the changed table's own seal is right.
func (f *Forger) Forge(r *Reader, cycle int64, changed string, tables map[string]*decision.Table, digests bool) error {
	if !digests {
		path := r.files[changed][[2]int64{cycle, cycle}]
		return f.write(path, tables[changed], cycle, f.metas(r, path))
	}
	if err := f.cycle(r, cycle, tables, nil); err != nil {
		return err
	}
	if _, state := setOf[changed]; !state {
		return nil
	}
	r, err := OpenLog(f.dir) // with the seals as they are now
	if err != nil {
		return err
	}
	for _, c := range r.Cycles() {
		holder, err := r.Holder(changed, c)
		if err != nil {
			return err
		}
		if c <= cycle || holder != cycle {
			continue
		}
		own, err := f.Tables(r, c)
		if err != nil {
			return err
		}
		if err := f.cycle(r, c, own, map[string]*decision.Table{changed: tables[changed]}); err != nil {
			return err
		}
		clear(r.heads)
	}
	return nil
}

// metas are a file's metadata.
func (f *Forger) metas(r *Reader, path string) (list []meta) {
	for k, v := range r.metas[path] {
		if k != metaSeal {
			list = append(list, meta{k, v})
		}
	}
	return list
}

// cycle writes all files of a cycle anew; held are tables of an earlier cycle that hold in it.
func (f *Forger) cycle(r *Reader, cycle int64, tables, held map[string]*decision.Table) error {
	var decided []decision.Table
	var members [sets][]decision.Table
	for _, name := range r.Decided() {
		t := tables[name]
		if t == nil {
			t = held[name]
		}
		if t == nil {
			var err error
			if t, err = r.Table(name, cycle); err != nil {
				return err
			}
		}
		decided = append(decided, *t)
		if s, ok := setOf[name]; ok {
			members[s] = append(members[s], *t)
		}
	}
	head := tables[cyclesTable]
	digest := decision.Digest(decided)
	*head.Column("decisions_digest") = decision.Column{Name: "decisions_digest", Type: decision.Text, Code: []int32{0},
		Dict: decision.Words{digest}}
	rules := head.Column("rules_version")
	metas := []meta{{metaSchema, SchemaVersion}, {metaRules, string(rules.Dict.Bytes(rules.Code[0]))},
		{metaRevision, strconv.FormatInt(head.Column("revision").Int[0], 10)}, {metaDecisions, digest}}
	var files []meta
	for _, name := range r.Tables() {
		path, ok := r.files[name][[2]int64{cycle, cycle}]
		if !ok || name == cyclesTable {
			continue
		}
		own := metas
		if s, ok := setOf[name]; ok {
			own = append(append([]meta(nil), metas...), meta{metaContent, decision.Content(members[s])})
		}
		seal, err := f.sealed(path, tables[name], cycle, own)
		if err != nil {
			return err
		}
		files = append(files, meta{metaFile + name, seal})
	}
	return f.write(r.files[cyclesTable][[2]int64{cycle, cycle}], head, cycle,
		append(append([]meta(nil), metas...), files...))
}

func (f *Forger) write(path string, t *decision.Table, cycle int64, metas []meta) error {
	_, err := f.sealed(path, t, cycle, metas)
	return err
}

func (f *Forger) sealed(path string, t *decision.Table, cycle int64, metas []meta) (digest string, err error) {
	if err := f.keep(path); err != nil {
		return "", err
	}
	to, err := os.OpenFile(path, os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return "", err
	}
	digest, err = seal(to, func(w io.Writer) error { return encode(w, t, cycle, metas) })
	return digest, errors.Join(err, to.Close())
}
