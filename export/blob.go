package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// The folder of all that is no table. Logs of the first schema have inputs in the folder of the table inputs, saved
// states in one beside it.
const (
	blobsFolder     = "blobs"
	packsName       = "packs"  // in it: packs of inputs
	statesName      = "states" // in it: saved states
	packsFolder     = blobsFolder + "/" + packsName
	oldBlobsFolder  = inputsTable
	oldStatesFolder = statesName
)

var kindName = regexp.MustCompile(`^[a-z_]{1,32}$`)

// isKind tells whether a word may be the kind of an input, and so the name of a folder of inputs.
func isKind(word string) bool {
	return kindName.MatchString(word) && word != packsName && word != statesName
}

// blobPath is where an input's bytes are kept until they are packed.
func blobPath(dir, kind, digest string) string {
	return within(dir, blobsFolder, kind, digest+".zst")
}

// blobPaths are where an input's bytes may be, the second in logs of the first schema.
func blobPaths(dir, kind, digest string) [2]string {
	return [2]string{blobPath(dir, kind, digest), within(dir, oldBlobsFolder, kind, digest+".zst")}
}

// hasBlob tells whether an input has a file of its own.
func hasBlob(dir, kind, digest string) (err error) {
	for _, path := range blobPaths(dir, kind, digest) {
		if _, err = os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", blobPath(dir, kind, digest), fs.ErrNotExist)
}

// eachBlob visits the files of inputs that are not packed.
func eachBlob(dir string, visit func(path, kind, name string) error) error {
	onDisk := folder{}
	for _, old := range []string{blobsFolder, oldBlobsFolder} {
		kinds, err := onDisk.ReadDir(filepath.Join(dir, old))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, k := range kinds {
			if !k.IsDir() || !isKind(k.Name()) {
				continue
			}
			err := eachName(onDisk, filepath.Join(dir, old, k.Name()), func(path, name string) error {
				return visit(path, k.Name(), name)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// blobKey names an input among others.
func blobKey(kind, digest string) string { return kind + "/" + digest }

// Input keeps the bytes of an input, compressed, unless the log has them already. They are on the
// disk when it returns. The result is the input's row for Cycle, its Rows and Author for the caller to
// set. An input that no published cycle names does no harm.
func (w *Writer) Input(kind, source, format string, content []byte) (Input, error) {
	if w.broken != nil {
		return Input{}, fmt.Errorf("log %s: %w", w.dir, w.broken)
	}
	if !isKind(kind) {
		return Input{}, fmt.Errorf("log %s: %q is no kind of input", w.dir, kind)
	}
	sum := sha256.Sum256(content)
	in := Input{Kind: kind, Source: source, Format: format, Digest: hex.EncodeToString(sum[:]),
		Bytes: int64(len(content))}
	w.mu.Lock()
	w.waiting[blobKey(kind, in.Digest)] = true // from here on compaction lets its file be
	there := hasBlob(w.dir, kind, in.Digest) == nil
	w.mu.Unlock()
	if there {
		return in, nil
	}
	if err := w.disk.keep(w.dir, blobPath(w.dir, kind, in.Digest), bytes.NewReader(content)); err != nil {
		return Input{}, err
	}
	return in, nil
}

// keep writes a file of an input, compressed.
func (d *disk) keep(dir, path string, content io.Reader) error {
	if err := d.mkdir(dir, filepath.Dir(path)); err != nil {
		return err
	}
	err := d.write(path, func(to *os.File) error {
		z, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(inputWindowBytes))
		if err != nil {
			return err
		}
		_, err = io.Copy(z, content)
		return errors.Join(err, z.Close())
	})
	if err == nil {
		err = d.rename(path)
	}
	if err == nil {
		err = d.syncDir(filepath.Dir(path))
	}
	if err != nil {
		return errors.Join(err, d.remove(path+tmpSuffix))
	}
	return nil
}

// InputContent gives the bytes of an input as they were given, checked against the digest: from its own file, or from
// the pack of the cycles that named it. It is fastest after Inputs has told of a cycle that names it, and in the order
// of the cycles. Inputs beyond 4 GiB are an error.
func (r *Reader) InputContent(kind, digest string) ([]byte, error) {
	if sum, err := hex.DecodeString(digest); !isKind(kind) || err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("log %s: %q is no input", r.dir, blobKey(kind, digest))
	}
	var content []byte
	var where string
	var err error
	for range agains {
		content, where, err = r.blob(kind, digest)
		had := r.packs
		if !errors.Is(err, fs.ErrNotExist) || r.listPacks() != nil || slices.Equal(had, r.packs) {
			break // else compaction has packed it meanwhile, or packed it anew
		}
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%s: damaged: the content of %s has another digest", where, blobKey(kind, digest))
	}
	return content, nil
}

// blob finds an input's bytes; where says in which file.
func (r *Reader) blob(kind, digest string) (content []byte, where string, err error) {
	for _, path := range blobPaths(r.dir, kind, digest) {
		content, err := unpackFile(r.from, path)
		if !errors.Is(err, fs.ErrNotExist) {
			return content, path, err
		}
	}
	return r.packed(kind, digest)
}

func unpackFile(from Files, path string) ([]byte, error) {
	f, err := from.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := unpack(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

func unpack(from io.Reader) ([]byte, error) {
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(inputWindowBytes))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return readAll(z)
}

func readAll(from io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, inputBytesMax+1))
	if err == nil && len(content) > inputBytesMax {
		err = fmt.Errorf("more than %d bytes", inputBytesMax)
	}
	return content, err
}

// dropUnfinished removes the files of inputs that were begun and not finished.
func (w *Writer) dropUnfinished() error {
	err := eachBlob(w.dir, func(path, _, name string) error {
		if strings.HasSuffix(name, tmpSuffix) {
			return w.disk.remove(path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachFile(folder{}, w.dir, packsFolder, func(path, name string) error {
		if strings.HasSuffix(name, tmpSuffix) {
			return w.disk.remove(path)
		}
		return nil
	})
}
