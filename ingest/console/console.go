// Package console is the page for people that the service has at `/` (SPEC chapter 13): its files, as they are sent.
// They are what a browser runs; nothing builds them, and nothing is loaded from elsewhere. What others wrote is in
// assets/vendor, as vendored.json says it.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"path"
	"sync"
)

//go:embed assets
var assets embed.FS

// Policy is the content security policy of the page: what is not of the service is not loaded, nothing in the page's
// text is run or applied as a style, and no other page may have it in a frame.
const Policy = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Prefix is where the page's files are, save the page itself, which is at `/`.
const Prefix = "/console/"

// Asset is a file of the page.
type Asset struct {
	Body, Packed []byte // as it is, and packed with gzip
	Type         string // the media type
	Tag          string // for the header ETag
}

var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".txt": "text/plain; charset=utf-8", ".svg": "image/svg+xml",
}

// all are all files, packed when the first is asked for: that takes as long as all else that a command begins with.
var all = sync.OnceValue(load)

// load reads and packs all files.
func load() map[string]*Asset {
	of := map[string]*Asset{}
	err := fs.WalkDir(assets, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := assets.ReadFile(name)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // a level that there is
		_, _ = z.Write(body)
		_ = z.Close() // into memory
		sum := sha256.Sum256(body)
		at := Prefix + path.Base(name)
		if name == "assets/index.html" {
			at = "/"
		}
		of[at] = &Asset{Body: body, Packed: packed.Bytes(), Type: types[path.Ext(name)],
			Tag: `"` + hex.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return of
}

// Find is the file at a path of the service, nil when there is none.
func Find(path string) *Asset { return all()[path] }

// Paths are the paths of all files.
func Paths() (paths []string) {
	for p := range all() {
		paths = append(paths, p)
	}
	return paths
}
