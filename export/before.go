package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// beforeName is the file that tells the inputs in force before the first cycle of a log whose first cycles were
// dropped.
const beforeName = "before.json"

// before is its content: the inputs, in the order in which they are to be applied, and the first cycle that is kept.
// Earlier ones count for nothing from the moment that it is there.
type before struct {
	Cycle  int64   `json:"cycle"`
	Inputs []Input `json:"inputs"`
}

// Before are the inputs that were in force before the log's first cycle, where retention dropped those that brought
// them, in the order in which they are to be applied: the policy, the hosts with their changes since, and what each
// source wants. Of what ran at the start, and of releases, the cycles kept tell.
func (r *Reader) Before() ([]Input, error) {
	b, err := readBefore(r.from, r.dir)
	return b.Inputs, err
}

func readBefore(from Files, dir string) (b before, err error) {
	data, err := readFile(from, within(dir, blobsFolder, beforeName))
	if errors.Is(err, fs.ErrNotExist) {
		data, err = readFile(from, within(dir, oldBlobsFolder, beforeName))
	}
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

// keepInputs writes down the inputs that are in force before a cycle, and gives each a file of its own: their packs go.
func (c *compaction) keepInputs(r *Reader, cycle int64) error {
	dir := c.w.dir
	b, err := readBefore(folder{}, dir)
	if err != nil {
		return err
	}
	for _, n := range r.cycles {
		if n >= cycle {
			break
		}
		inputs, err := r.Inputs(n)
		if err != nil {
			return err
		}
		if len(inputs) > 0 {
			b.Inputs = inForceOf(append(b.Inputs, inputs...))
		}
	}
	b.Cycle = cycle
	for _, in := range b.Inputs {
		if hasBlob(dir, in.Kind, in.Digest) == nil {
			continue
		}
		content, err := r.InputContent(in.Kind, in.Digest)
		if errors.Is(err, fs.ErrNotExist) {
			continue // verify tells of it
		}
		if err == nil {
			err = c.disk.keep(dir, blobPath(dir, in.Kind, in.Digest), bytes.NewReader(content))
		}
		if err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, blobsFolder, beforeName)
	if err := c.disk.mkdir(dir, filepath.Dir(path)); err != nil {
		return err
	}
	if err := c.disk.write(path, func(f *os.File) error { _, err := f.Write(data); return err }); err != nil {
		return err
	}
	if err := c.disk.rename(path); err != nil {
		return err
	}
	return c.disk.syncDir(filepath.Dir(path))
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
