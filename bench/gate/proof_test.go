//go:build proof

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPlanted builds gates with a slowdown each, by overlay, and one without: each must tell of its own, and the one
// without of none. STINT_PROOF is how often: 1 is the default, twice as often without.
func TestPlanted(t *testing.T) {
	times := 1
	if s := os.Getenv("STINT_PROOF"); s != "" {
		var err error
		if times, err = strconv.Atoi(s); err != nil || times < 1 {
			t.Fatalf("STINT_PROOF %q: must be a number from 1", s)
		}
	}
	clean := build(t, nil)
	for range 2 * times {
		failed, out := gates(t, clean)
		if failed {
			t.Errorf("without a slowdown one is told of:\n%s", out)
		}
		t.Logf("without a slowdown:\n%s", verdictOf(out))
	}
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			path, slow := p.plant(t)
			binary := build(t, map[string]string{path: slow})
			for range times {
				failed, out := gates(t, binary)
				if !failed {
					t.Errorf("a slowdown of %s is not told of:\n%s", p.name, out)
				}
				t.Logf("%s:\n%s", p.name, verdictOf(out))
				for _, f := range p.slower {
					if !regexp.MustCompile(f + ` .*slower`).MatchString(out) {
						t.Errorf("%s is not told as slower:\n%s", f, out)
					}
				}
			}
		})
	}
}

// verdictOf is the lines of a gate's output before its table, and the last two.
func verdictOf(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return !strings.ContainsAny(l, ":;") }), "\n")
}

// build makes a gate in which files have other texts.
func build(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range files {
		other := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(other, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[path] = other
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o666); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "gate")
	out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".").
		CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// gates runs a gate and tells whether it found anything slower.
func gates(t *testing.T, binary string) (bool, string) {
	t.Helper()
	out, err := exec.Command(binary, "-ratios", "ratios.json").CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return true, string(out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false, string(out)
}
