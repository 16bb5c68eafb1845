package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestVendored holds what others wrote to what vendored.json says of it, and has a licence for each.
func TestVendored(t *testing.T) {
	text, err := os.ReadFile("vendored.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ File, Package, Version, Licence, SHA256, Integrity string }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	licences := string(Find(Prefix + "LICENCES.txt").Body)
	known := []string{"LICENCES.txt"}
	for _, v := range list {
		known = append(known, v.File)
		a := Find(Prefix + v.File)
		if a == nil {
			t.Errorf("%s is not there", v.File)
			continue
		}
		if sum := sha256.Sum256(a.Body); hex.EncodeToString(sum[:]) != v.SHA256 {
			t.Errorf("%s is not %s %s", v.File, v.Package, v.Version)
		}
		if !strings.Contains(v.File, v.Version) || !strings.HasPrefix(v.Integrity, "sha512-") || v.Licence == "" {
			t.Errorf("%s: %+v", v.File, v)
		}
		if !strings.Contains(licences, "==== "+v.Package+" "+v.Version+" ====") {
			t.Errorf("LICENCES.txt has nothing of %s %s", v.Package, v.Version)
		}
	}
	files, err := assets.ReadDir("assets/vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(known, f.Name()) {
			t.Errorf("vendored.json says nothing of %s", f.Name())
		}
	}
}

// own are the files of the page that were written here.
func own(t *testing.T) map[string]string {
	t.Helper()
	of := map[string]string{}
	files, err := assets.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !f.IsDir() {
			body, err := assets.ReadFile("assets/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			of[f.Name()] = string(body)
		}
	}
	return of
}

// TestOwnFiles finds nothing in the page that its policy would refuse, or that leads elsewhere, and every file that one
// names. The browser's tests see that nothing is refused.
func TestOwnFiles(t *testing.T) {
	bans := map[string]*regexp.Regexp{
		"an address elsewhere":    regexp.MustCompile(`https?://|"//`),
		"a script in the text":    regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|javascript:`),
		"a handler in the text":   regexp.MustCompile(`(?i)\son[a-z]+="`),
		"a style in the text":     regexp.MustCompile(`(?i)<style|\sstyle="`),
		"text that becomes code":  regexp.MustCompile(`\beval\(|new Function|dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|document\.write`),
		"something that is kept":  regexp.MustCompile(`localStorage|sessionStorage|indexedDB|document\.cookie`),
		"a request of its own":    regexp.MustCompile(`XMLHttpRequest|sendBeacon|WebSocket|new EventSource`),
		"a token that is in URLs": regexp.MustCompile(`[?&]token=`),
	}
	names := regexp.MustCompile(`(?:from |import\()"\./([^"]+)"|"/console/([^"]+)"`)
	for file, text := range own(t) {
		for what, ban := range bans {
			if file == "icon.svg" && what == "an address elsewhere" {
				continue // the name space
			}
			if at := ban.FindString(text); at != "" {
				t.Errorf("%s has %s: %q", file, what, at)
			}
		}
		for _, m := range names.FindAllStringSubmatch(text, -1) {
			if name := m[1] + m[2]; Find(Prefix+name) == nil {
				t.Errorf("%s names %s, which is not there", file, name)
			}
		}
		for i, line := range strings.Split(text, "\n") {
			if strings.HasSuffix(line, " ") || strings.Contains(line, "\t") {
				t.Errorf("%s:%d: white space", file, i+1)
			}
		}
		if n := strings.Count(text, "\n"); n > 600 {
			t.Errorf("%s has %d lines", file, n)
		}
	}
}

// pageBytesMax is what all files may have together as they are sent, those too that only some views load.
const pageBytesMax = 116 << 10

// TestAssets gives each file as what it is, packed and not; all together stay small.
func TestAssets(t *testing.T) {
	size := 0
	for _, p := range Paths() {
		a := Find(p)
		if a.Type == "" || a.Tag == "" {
			t.Errorf("%s: %q %q", p, a.Type, a.Tag)
		}
		z, err := gzip.NewReader(bytes.NewReader(a.Packed))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, a.Body) {
			t.Errorf("%s: %v", p, err)
		}
		if path.Base(p) != "LICENCES.txt" {
			size += len(a.Packed)
		}
	}
	if size > pageBytesMax {
		t.Errorf("the page has %d bytes as it is sent, at most %d are wanted", size, pageBytesMax)
	}
	t.Log("bytes as sent:", size)
	if Find("/console/nothing") != nil || Find("/console/../index.html") != nil || Find("") != nil {
		t.Error("a file that there is not")
	}
}
