package export

import (
	"archive/tar"
	"cmp"
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

	"github.com/klauspost/compress/zstd"

	"github.com/stintd/stint/core/decision"
)

// A pack has the inputs that some cycles named, each once, in the order in which they were named: a tar archive in one
// zstd frame, whose header tells how many bytes the archive has. Packs are named by their cycles and replace each
// other as files of tables do.

const (
	packBytesMax    = 64 << 20 // of the archive, unless one cycle has more
	smallPackMax    = packBytesMax / smallPacks
	smallPacks      = 16 // so many small neighbours of the day that goes on become one
	tarBlockBytes   = 512
	archiveBytesMax = 1 << 40
)

var packFile = regexp.MustCompile(`^cycles-(\d{12})-(\d{12})\.tar\.zst$`)

func packName(first, last int64) string {
	return fmt.Sprintf("cycles-%012d-%012d.tar.zst", first, last)
}

// blobRef is an input that a pack shall have.
type blobRef struct {
	kind, digest string
	bytes        int64
	cycle        int64 // the first of the pack's cycles that names it
}

// archiveBytes is the length of a tar archive with these inputs.
func archiveBytes(list []blobRef) int64 {
	n := int64(2 * tarBlockBytes)
	for _, b := range list {
		n += entryBytes(b.bytes)
	}
	return n
}

func entryBytes(n int64) int64 {
	return tarBlockBytes + (n+tarBlockBytes-1)/tarBlockBytes*tarBlockBytes
}

// allPacks finds the packs of a log, replaced ones included.
func allPacks(from Files, dir string) (packs []span, err error) {
	err = eachFile(from, dir, packsFolder, func(path, name string) error {
		if m := packFile.FindStringSubmatch(name); m != nil {
			first, _ := strconv.ParseInt(m[1], 10, 64) // twelve digits
			last, _ := strconv.ParseInt(m[2], 10, 64)
			packs = append(packs, span{first, last, path})
		}
		return nil
	})
	slices.SortFunc(packs, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last))
	})
	return packs, err
}

// listPacks finds the packs that there are now.
func (r *Reader) listPacks() error {
	packs, err := allPacks(r.from, r.dir)
	if err == nil {
		packs, err = inForce(packs)
	}
	if err != nil {
		return fmt.Errorf("log %s: %w", r.dir, err)
	}
	r.packs = packs
	return nil
}

// packAt is the pack of a cycle.
func packAt(packs []span, cycle int64) (span, bool) {
	i, _ := slices.BinarySearchFunc(packs, cycle, func(s span, c int64) int { return cmp.Compare(s.last, c) })
	if i == len(packs) || packs[i].first > cycle {
		return span{}, false
	}
	return packs[i], true
}

// packedAll tells whether every cycle from first to last has a pack.
func packedAll(packs []span, first, last int64) bool {
	for first <= last {
		p, ok := packAt(packs, first)
		if !ok {
			return false
		}
		first = p.last + 1
	}
	return true
}

// unpacked is a pack that a reader has in memory.
type unpacked struct {
	path string
	blob map[string][]byte // nil: it is too large, and is read each time
}

// packed finds an input's bytes in the packs: in that of the cycle that was last seen to name it, else in any, the
// newest first.
func (r *Reader) packed(kind, digest string) (content []byte, where string, err error) {
	key := blobKey(kind, digest)
	missing := fmt.Errorf("%s: %w", blobPath(r.dir, kind, digest), fs.ErrNotExist)
	look := func(p span) bool {
		content, err = r.inPack(p.path, key)
		where = p.path
		return content != nil || err != nil
	}
	if cycle, ok := r.packOf[key]; ok {
		if p, ok := packAt(r.packs, cycle); ok && look(p) {
			return content, where, err
		}
	}
	for _, p := range slices.Backward(r.packs) {
		if look(p) {
			return content, where, err
		}
	}
	return nil, "", missing
}

// inPack gives an input's bytes from a pack, nil when it has none of that name.
func (r *Reader) inPack(path, key string) (content []byte, err error) {
	if r.open.path != path {
		r.open = unpacked{}
		all, err := loadPack(r.from, path)
		if err != nil {
			return nil, err
		}
		r.open = unpacked{path, all}
	}
	if r.open.blob != nil {
		return r.open.blob[key], nil
	}
	err = eachPacked(r.from, path, func(h *tar.Header, from io.Reader) error {
		if h.Name == key {
			content, err = readAll(from)
			return cmp.Or(err, errFound)
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return content, err
}

var errFound = errors.New("found")

// loadPack reads a pack into memory; nil when it is larger than packs of several cycles are.
func loadPack(files Files, path string) (map[string][]byte, error) {
	n, err := packSize(files, path)
	if err != nil || n > packBytesMax {
		return nil, err
	}
	all := map[string][]byte{}
	err = eachPacked(files, path, func(h *tar.Header, from io.Reader) error {
		content, err := io.ReadAll(io.LimitReader(from, packBytesMax))
		all[h.Name] = content
		return err
	})
	return all, err
}

// packSize is the length of a pack's archive, as the zstd frame says.
func packSize(from Files, path string) (int64, error) {
	f, err := from.Open(path)
	if err != nil {
		return 0, err
	}
	head := make([]byte, zstd.HeaderMaxSize)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	var h zstd.Header
	if err = errors.Join(err, f.Close()); err == nil {
		if err = h.Decode(head[:n]); err == nil && (!h.HasFCS || h.FrameContentSize > archiveBytesMax) {
			err = errors.New("it does not tell its size")
		}
	}
	if err != nil {
		return 0, fmt.Errorf("%s: damaged: %w", path, err)
	}
	return int64(h.FrameContentSize), nil
}

// eachPacked visits the inputs of a pack, in its order.
func eachPacked(files Files, path string, visit func(h *tar.Header, from io.Reader) error) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(inputWindowBytes))
	if err != nil {
		return err
	}
	defer z.Close()
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(h, t)
		}
		if err != nil {
			return fmt.Errorf("%s: damaged: %w", path, err)
		}
	}
}

// pack packs the inputs of ranges of several cycles that no pack has yet: also where they named none, so that packs
// leave no cycle out that stands between two of them. What is missing is left out: verify tells of it.
func (c *compaction) pack() error {
	r, err := openLog(c.w.dir)
	if err != nil {
		return err
	}
	for _, s := range r.ranges {
		if s.first == s.last || s.last > c.last || packedAll(r.packs, s.first, s.last) {
			continue
		}
		if c.stopped() {
			return errStopped
		}
		list, err := r.named(s.first, s.last)
		if err != nil {
			return err
		}
		first := s.first
		for from := 0; first <= s.last; {
			n, last := cutPack(list[from:]), s.last
			if from += n; from < len(list) {
				last = list[from].cycle - 1
			}
			if err := c.writePack(r, span{first, last, s.path}, list[from-n:from]); err != nil {
				return err
			}
			first = last + 1
		}
	}
	return c.joinPacks()
}

// named are the inputs that cycles name, each once, in order.
func (r *Reader) named(first, last int64) (list []blobRef, err error) {
	t, err := again(r, func() (*decision.Table, error) { return r.rows(inputsTable, first, last) })
	if err != nil {
		return nil, err
	}
	cycle, kind, digest, bytes := t.Column("cycle"), t.Column("kind"), t.Column("digest"), t.Column("bytes")
	seen := map[string]bool{}
	for row := range t.Rows {
		b := blobRef{textAt(kind, row), textAt(digest, row), bytes.Int[row], cycle.Int[row]}
		if key := blobKey(b.kind, b.digest); !seen[key] {
			seen[key] = true
			list = append(list, b)
		}
	}
	return list, nil
}

// cutPack is how many inputs go into a pack: those of whole cycles, as long as they are not too much.
func cutPack(list []blobRef) (n int) {
	total := int64(2 * tarBlockBytes)
	for i, b := range list {
		if i > 0 && b.cycle != list[i-1].cycle {
			n = i // whole cycles so far
		}
		if total += entryBytes(b.bytes); total > packBytesMax && n > 0 {
			return n
		}
	}
	return len(list)
}

// writePack publishes a pack of a range of cycles.
func (c *compaction) writePack(r *Reader, s span, list []blobRef) error {
	blob, bytes := map[string][]byte{}, int64(0) // as far as a pack may be large; what is beyond is read once more
	there := list[:0:0]
	for _, b := range list {
		key := blobKey(b.kind, b.digest)
		r.packOf[key] = b.cycle
		content, err := r.InputContent(b.kind, b.digest)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		b.bytes = int64(len(content))
		there = append(there, b)
		if bytes += b.bytes; bytes <= packBytesMax {
			blob[key] = content
		}
	}
	return c.archive(s, there, func(b blobRef) ([]byte, error) {
		if content, ok := blob[blobKey(b.kind, b.digest)]; ok {
			return content, nil
		}
		return r.InputContent(b.kind, b.digest)
	})
}

// archive writes a pack; s has a path in the folder of its day.
func (c *compaction) archive(s span, list []blobRef, content func(blobRef) ([]byte, error)) error {
	folder := filepath.Join(c.w.dir, packsFolder, filepath.Base(filepath.Dir(s.path)))
	if err := c.disk.mkdir(c.w.dir, folder); err != nil {
		return err
	}
	path := filepath.Join(folder, packName(s.first, s.last))
	err := c.disk.write(path, func(to *os.File) error {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(inputWindowBytes))
		if err != nil {
			return err
		}
		z.ResetContentSize(to, archiveBytes(list))
		t := tar.NewWriter(z)
		for _, b := range list {
			data, err := content(b)
			if err != nil {
				return err
			}
			h := tar.Header{Name: blobKey(b.kind, b.digest), Size: int64(len(data)), Mode: 0o644, Typeflag: tar.TypeReg,
				Format: tar.FormatUSTAR}
			if err := t.WriteHeader(&h); err != nil {
				return err
			}
			if _, err := t.Write(data); err != nil {
				return err
			}
		}
		return errors.Join(t.Close(), z.Close())
	})
	if err == nil {
		err = c.disk.rename(path)
	}
	if err != nil {
		return errors.Join(err, c.disk.remove(path+tmpSuffix))
	}
	c.out.After++
	return c.disk.syncDir(folder)
}

// joinPacks makes one pack of several neighbours of a day: as few as may be of a day that is over, of the day that
// goes on many small ones.
func (c *compaction) joinPacks() error {
	all, err := allPacks(folder{}, c.w.dir)
	if err != nil {
		return err
	}
	packs, err := inForce(all)
	if err != nil {
		return err
	}
	for from := 0; from < len(packs); {
		to, total := from, int64(0)
		day := filepath.Base(filepath.Dir(packs[from].path))
		over := day != c.today
		for ; to < len(packs) && filepath.Base(filepath.Dir(packs[to].path)) == day; to++ {
			n, err := packSize(folder{}, packs[to].path)
			if err != nil {
				return err
			}
			if total+n > packBytesMax || !over && n > smallPackMax ||
				to > from && packs[to].first != packs[to-1].last+1 {
				break
			}
			total += n
		}
		if n := to - from; over && n > 1 || n >= smallPacks {
			if c.stopped() {
				return errStopped
			}
			if err := c.join(packs[from:to]); err != nil {
				return err
			}
		}
		from = max(to, from+1)
	}
	return nil
}

// join makes one pack of several.
func (c *compaction) join(packs []span) error {
	blob := map[string][]byte{}
	var list []blobRef
	for _, p := range packs {
		err := eachPacked(folder{}, p.path, func(h *tar.Header, from io.Reader) error {
			if _, there := blob[h.Name]; there {
				return nil
			}
			content, err := io.ReadAll(io.LimitReader(from, packBytesMax))
			kind, digest, ok := strings.Cut(h.Name, "/")
			if err != nil || !ok {
				return cmp.Or(err, fmt.Errorf("an entry %q", h.Name))
			}
			blob[h.Name] = content
			list = append(list, blobRef{kind: kind, digest: digest, bytes: int64(len(content))})
			return nil
		})
		if err != nil {
			return err
		}
	}
	whole := span{packs[0].first, packs[len(packs)-1].last, packs[0].path}
	if err := c.archive(whole, list, func(b blobRef) ([]byte,
		error) {
		return blob[blobKey(b.kind, b.digest)], nil
	}); err != nil {
		return err
	}
	for _, p := range packs {
		c.replaced(p.path)
	}
	return c.dropReplaced(false)
}

// dropPacks removes packs that others have replaced, and those of cycles that were dropped.
func (c *compaction) dropPacks(kept int64) error {
	all, err := allPacks(folder{}, c.w.dir)
	if err != nil {
		return err
	}
	in, err := inForce(all)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.last < kept || !slices.Contains(in, p) {
			if err := c.remove(p.path); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropBlobs removes the files of inputs that are packed, or that nothing names any more.
func (c *compaction) dropBlobs() error {
	r, err := openLog(c.w.dir)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	b, err := readBefore(folder{}, c.w.dir)
	if err != nil {
		return err
	}
	for _, in := range b.Inputs {
		keep[blobKey(in.Kind, in.Digest)] = true
	}
	for _, s := range r.ranges {
		if _, names := r.files[inputsTable][[2]int64{s.first, s.last}]; !names || packedAll(r.packs, s.first, s.last) {
			continue
		}
		list, err := r.named(s.first, s.last)
		if err != nil {
			return err
		}
		for _, b := range list {
			keep[blobKey(b.kind, b.digest)] = true
		}
	}
	return eachBlob(c.w.dir, func(path, kind, name string) error {
		digest, ok := strings.CutSuffix(name, ".zst")
		key := blobKey(kind, digest)
		if !ok || keep[key] {
			return nil
		}
		return c.w.unlessNamed(key, func() error { return c.remove(path) })
	})
}

// unlessNamed does something to an input's file unless a cycle names it that the compaction under way does not know
// of, or will.
func (w *Writer) unlessNamed(key string, do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[key] || w.since[key] {
		return nil
	}
	return do()
}
