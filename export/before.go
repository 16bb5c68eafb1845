package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// beforeName is the file that tells the inputs in force before the first cycle of a log whose first cycles were dropped.
const beforeName = "before.json"

// before is its content: the inputs, in the order in which they are to be applied, and the first cycle that is kept. Earlier
// ones count for nothing from the moment that it is there.
type before struct {
	Cycle  int64   `json:"cycle"`
	Inputs []Input `json:"inputs"`
}

// Before are the inputs that were in force before the log's first cycle, where retention dropped those that brought
// them, in the order in which they are to be applied: the policy, the hosts with their changes since, and what each
// source wants. Of what ran at the start, and of releases, the cycles kept tell.
func (r *Reader) Before() ([]Input, error) {
	b, err := readBefore(r.dir)
	return b.Inputs, err
}

func readBefore(dir string) (b before, err error) {
	data, err := os.ReadFile(filepath.Join(dir, inputsTable, beforeName))
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		if err = json.Unmarshal(data, &b); err != nil {
			err = fmt.Errorf("log %s: %s: %w", dir, beforeName, err)
		}
	}
	return b, err
}

// keepInputs writes down the inputs that are in force before a cycle.
func (w *Writer) keepInputs(r *Reader, cycle int64) error {
	b, err := readBefore(w.dir)
	if err != nil {
		return err
	}
	for _, c := range r.cycles {
		if c >= cycle {
			break
		}
		inputs, err := r.Inputs(c)
		if err != nil {
			return err
		}
		b.Inputs = append(b.Inputs, inputs...)
	}
	b.Cycle, b.Inputs = cycle, inForceOf(b.Inputs)
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(w.dir, inputsTable, beforeName)
	if err := w.disk.write(path, func(f *os.File) error { _, err := f.Write(data); return err }); err != nil {
		return err
	}
	if err := w.disk.rename(path); err != nil {
		return err
	}
	return w.disk.syncDir(filepath.Dir(path))
}

// inForceOf leaves out the inputs that later ones replace.
func inForceOf(all []Input) []Input {
	var out []Input
	plan, hosts := -1, -1
	demand := map[string]int{}
	for i, in := range all {
		switch in.Kind {
		case "plan":
			plan = i
		case "hosts":
			hosts = i
		case "demand":
			demand[in.Source] = i
		}
	}
	for i, in := range all {
		last, snapshot := demand[in.Source]
		if i == plan || i == hosts || in.Kind == "hosts_change" && i > hosts || in.Kind == "demand" && last == i ||
			in.Kind == "demand_change" && (!snapshot || i > last) {
			out = append(out, in)
		}
	}
	slices.SortStableFunc(out, func(a, b Input) int { return orderOf(a.Kind) - orderOf(b.Kind) })
	return out
}

// orderOf puts the policy first, by which all others are read, then the hosts.
func orderOf(kind string) int {
	return slices.Index([]string{"plan", "hosts", "hosts_change", "demand"}, kind)
}

// dropInputs removes inputs that no cycle names any more.
func (w *Writer) dropInputs(r *Reader, c *Compacted) error {
	b, err := readBefore(w.dir)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	note := func(list []Input) {
		for _, in := range list {
			used[inputPath(w.dir, in.Kind, in.Digest)] = true
		}
	}
	note(b.Inputs)
	t, err := r.Rows(inputsTable, r.cycles[0], r.cycles[len(r.cycles)-1])
	if err != nil {
		return err
	}
	kind, digest := t.Column("kind"), t.Column("digest")
	for row := range t.Rows {
		note([]Input{{Kind: textAt(kind, row), Digest: textAt(digest, row)}})
	}
	paths, err := filepath.Glob(filepath.Join(w.dir, inputsTable, "*", "*.zst"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if used[path] || strings.HasPrefix(filepath.Base(filepath.Dir(path)), "date=") {
			continue
		}
		if err := w.disk.remove(path); err != nil {
			return err
		}
		c.Removed++
	}
	return nil
}
