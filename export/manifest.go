package export

import (
	"math"
	"path/filepath"
	"strings"
)

// File is a file of a log that holds rows of a cycle, with what its metadata say.
type File struct {
	Table       string
	Path        string
	Date        string // of its folder
	First, Last int64  // cycles that it may hold
	Named       string // the seal that the file of cycles names for it, which readers hold it to; "" when it names none
	Rules       string
	Revision    string // of the policy; "" in compacted files
	Decisions   string // digest of the cycle's decisions; "" in compacted files
	Content     string // digest of a set of state tables; "" in compacted files and of other tables
}

// Manifest gives the files of the range of a cycle that readers look at, and those of the same range that they do
// not, because the file of cycles does not name them. Only files are read of which nothing was read before.
func (r *Reader) Manifest(cycle int64) ([]File, error) {
	s, ok := r.rangeOf(cycle)
	if !ok {
		return nil, r.known(cyclesTable, cycle)
	}
	h, err := r.head(cycle)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, name := range r.Tables() {
		path, ok := r.files[name][[2]int64{s.first, s.last}]
		if !ok {
			continue
		}
		f := File{Table: name, Path: path, Date: strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "date="),
			First: s.first, Last: s.last, Named: h.files[name]}
		if f.Named != "" || name == cyclesTable {
			if r.metas[path] == nil {
				if _, err := r.read(path, f.Named); err != nil {
					return nil, err
				}
			}
			meta := r.metas[path]
			f.Rules, f.Revision = meta[metaRules], meta[metaRevision]
			f.Decisions, f.Content = meta[metaDecisions], meta[metaContent]
		}
		files = append(files, f)
	}
	return files, nil
}

// Leftovers are the files that no reader looks at: of cycles that were never published, or that compaction replaced.
func (r *Reader) Leftovers() []string { return r.leftovers(math.MaxInt64) }

// leftovers are those of cycles up to one.
func (r *Reader) leftovers(last int64) (paths []string) {
	for _, name := range r.Tables() {
		for at, path := range r.files[name] {
			s, ok := r.rangeOf(at[0])
			if at[1] > last {
				continue
			}
			if !ok || s.first != at[0] || s.last != at[1] {
				paths = append(paths, path)
			}
		}
	}
	return append(paths, r.strayStates(last)...)
}
