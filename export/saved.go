package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// statesFolder has the saved states (D-40): of some cycles all that the next one is decided from. To the log they are
// bytes; the file of cycles that holds the cycle names their digest, and one that it does not name is a leftover.
const statesFolder = blobsFolder + "/" + statesName

var stateName = regexp.MustCompile(`^cycle-(\d{12})\.zst$`)

func statePath(dir string, cycle, us int64) string {
	return filepath.Join(datePath(dir, statesFolder, us), fmt.Sprintf("cycle-%012d.zst", cycle))
}

func stateKey(cycle int64) string { return metaState + strconv.FormatInt(cycle, 10) }

// saved writes the state after the cycle and gives its file its name.
func (p *publication) saved(state io.WriterTo) error {
	path := statePath(p.w.dir, p.cycle, p.now)
	if err := p.w.disk.mkdir(p.w.dir, filepath.Dir(path)); err != nil {
		return err
	}
	p.paths = append(p.paths, path)
	sum := sha256.New()
	err := p.w.disk.write(path, func(to *os.File) error {
		z, err := zstd.NewWriter(io.MultiWriter(to, sum), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(inputWindowBytes), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			return err
		}
		_, err = state.WriteTo(z)
		return errors.Join(err, z.Close())
	})
	if err != nil {
		return err
	}
	p.files = append(p.files, meta{stateKey(p.cycle), hex.EncodeToString(sum.Sum(nil))})
	return p.w.disk.rename(path)
}

// eachState visits the files of saved states, those of the first schema too.
func eachState(from Files, dir string, visit func(path, name string) error) error {
	return errors.Join(eachFile(from, dir, statesFolder, visit), eachFile(from, dir, oldStatesFolder, visit))
}

// listStates finds the saved states, by cycle.
func listStates(from Files, dir string) (map[int64]string, error) {
	states := map[int64]string{}
	err := eachState(from, dir, func(path, name string) error {
		m := stateName.FindStringSubmatch(name)
		if m == nil {
			return nil
		}
		cycle, _ := strconv.ParseInt(m[1], 10, 64) // twelve digits
		if was, twice := states[cycle]; twice {
			return fmt.Errorf("%s: cycle %d is in %s too", path, cycle, was)
		}
		states[cycle] = path
		return nil
	})
	return states, err
}

// stateDigest is what the file of cycles says of the state after a cycle; "" when it names none.
func (r *Reader) stateDigest(cycle int64) (string, error) {
	s, ok := r.rangeOf(cycle)
	if !ok {
		return "", r.known(cyclesTable, cycle)
	}
	if r.metas[s.path] == nil {
		if _, err := r.read(s.path, ""); err != nil {
			return "", err
		}
	}
	return r.metas[s.path][stateKey(cycle)], nil
}

// States are the cycles after which the state was saved, in rising order, as far as the files are there.
func (r *Reader) States() (cycles []int64) {
	for _, cycle := range slices.Sorted(maps.Keys(r.states)) {
		if r.stateCounts(cycle) {
			cycles = append(cycles, cycle)
		}
	}
	return cycles
}

// stateCounts tells whether a saved state is of a cycle that was published and, where it is known what its file of
// cycles names, named by that: of files of several cycles, which leave out most, it is known from the start.
func (r *Reader) stateCounts(cycle int64) bool {
	s, ok := r.rangeOf(cycle)
	_, published := slices.BinarySearch(r.cycles, cycle)
	return ok && published && (r.metas[s.path] == nil || r.metas[s.path][stateKey(cycle)] != "")
}

// HasState tells whether the log has the state after a cycle, and reads it to see. The error is of one that should be
// there and is not, or not as it was written.
func (r *Reader) HasState(cycle int64) (bool, error) {
	packed, err := again(r, func() ([]byte, error) { return r.packedState(cycle) })
	return packed != nil, err
}

// State is the state after a cycle, as it was given to the writer, checked against the digest that the file of cycles
// names. Errors: there is none, it is damaged, it has more than 4 GiB.
func (r *Reader) State(cycle int64) ([]byte, error) {
	packed, err := again(r, func() ([]byte, error) { return r.packedState(cycle) })
	if err == nil && packed == nil {
		err = fmt.Errorf("log %s: the state after cycle %d was not saved", r.dir, cycle)
	}
	if err != nil {
		return nil, err
	}
	state, err := unpack(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.states[cycle], err)
	}
	return state, nil
}

// packedState reads the file of a saved state, nil when the cycle names none. Nothing of it is parsed before its digest
// is known to be right.
func (r *Reader) packedState(cycle int64) ([]byte, error) {
	want, err := r.stateDigest(cycle)
	if err != nil || want == "" {
		return nil, err
	}
	path, ok := r.states[cycle]
	if !ok {
		return nil, &missingError{r.dir, "the saved state", cycle}
	}
	info, err := r.from.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > fileBytesMax {
		return nil, fmt.Errorf("%s: %d bytes, more than %d", path, info.Size(), fileBytesMax)
	}
	packed, err := readFile(r.from, path)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != want {
		return nil, fmt.Errorf("%s: damaged: its digest is %x, the file of cycles names %s", path, sum, want)
	}
	return packed, nil
}

// strayStates are the files of saved states of cycles up to one that count for nothing.
func (r *Reader) strayStates(last int64) (paths []string) {
	for cycle, path := range r.states {
		if cycle <= last && !r.stateCounts(cycle) {
			paths = append(paths, path)
		}
	}
	return paths
}

// mergeStates names the first saved state of some ranges, which stays when they become one: a day needs no more than
// one to begin with. It gives the files of the others.
func (r *Reader) mergeStates(ranges []span) (kept []meta, others []string, err error) {
	for _, s := range ranges {
		if r.metas[s.path] == nil {
			if _, err := r.read(s.path, ""); err != nil {
				return nil, nil, err
			}
		}
		for cycle := s.first; cycle <= s.last; cycle++ {
			digest, path := r.metas[s.path][stateKey(cycle)], r.states[cycle]
			switch {
			case digest == "":
			case len(kept) == 0:
				kept = append(kept, meta{stateKey(cycle), digest})
			case path != "":
				others = append(others, path)
			}
		}
	}
	return kept, others, nil
}

// dropStates removes states of cycles after the last one, and those that were not finished.
func (w *Writer) dropStates() error {
	return eachState(folder{}, w.dir, func(path, name string) error {
		m := stateName.FindStringSubmatch(strings.TrimSuffix(name, tmpSuffix))
		if m == nil {
			return nil
		}
		if cycle, _ := strconv.ParseInt(m[1], 10, 64); cycle > w.last || strings.HasSuffix(name, tmpSuffix) {
			return w.disk.remove(path)
		}
		return nil
	})
}
