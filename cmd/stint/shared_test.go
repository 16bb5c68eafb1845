package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/scenario"
)

// sharedAt is a folder of cases beside the checkout. They are no part of the project.
const sharedAt = "../../../shared"

// pendingAt lists the cases of sharedAt that do not pass yet, a line each: CASE -- REASON.
const pendingAt = "../../.ci/pending"

// TestShared plays the scenarios and policies of STINT_SHARED, or of a folder beside the checkout. A case of
// .ci/pending must still fail, and every other must pass, so the list only shrinks. make test-shared lists what is
// pending.
func TestShared(t *testing.T) {
	dir := os.Getenv("STINT_SHARED")
	if dir == "" {
		dir = sharedAt
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("there is no folder %s: make test-shared SHARED=DIR names another", dir)
	}
	pending := readPending(t)
	seen := map[string]bool{}
	result := func(name string, err error) {
		reason, waits := pending[name]
		seen[name] = true
		switch {
		case waits && err == nil:
			t.Errorf("%s passes, and .ci/pending has it (%s): remove its line", name, reason)
		case waits:
			t.Logf("pending: %s: %s", name, reason)
		case err != nil:
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, pattern := range []string{"cases/*.yaml", "cases/logs/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, files, err)
		}
		for _, file := range files {
			playShared(t, file, result)
		}
	}
	seeds, err := filepath.Glob(filepath.Join(dir, "attack", "*", "FuzzParse-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range seeds {
		result(filepath.Base(file), parseSeed(t, file))
	}
	for name := range pending {
		if !seen[name] {
			t.Errorf(".ci/pending has %q, which is no case of %s", name, dir)
		}
	}
}

// readPending reads pendingAt: reasons by case.
func readPending(t *testing.T) map[string]string {
	text, err := os.ReadFile(pendingAt)
	if err != nil {
		t.Fatal(err)
	}
	pending := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, " -- ")
		if !ok || reason == "" {
			t.Fatalf(".ci/pending:%d: %q: must be CASE -- REASON", i+1, line)
		}
		pending[name] = reason
	}
	return pending
}

// playShared plays the scenarios of a file one by one, as a file may have keys that only some of them wait for.
func playShared(t *testing.T, file string, result func(name string, err error)) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split("\n"+string(text), "\n---\n") {
		name := filepath.Base(file) + ": " + scenarioName(document)
		result(name, playDocument(file, document))
	}
}

// scenarioName is the text of the key name of a scenario.
func scenarioName(document string) string {
	for _, line := range strings.Split(document, "\n") {
		if name, ok := strings.CutPrefix(line, "name: "); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return "no name"
}

// playDocument plays one scenario. A panic is an error of it.
func playDocument(file, document string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	scenarios, err := scenario.Parse(file, []byte(document))
	if err != nil {
		return err
	}
	for _, s := range scenarios {
		r, err := s.Play()
		if err != nil {
			return err
		}
		if !r.OK() {
			var text strings.Builder
			if err := r.Print(&text); err != nil {
				return err
			}
			return fmt.Errorf("it misses what it expects\n%s", text.String())
		}
	}
	return nil
}

// parseSeed parses a policy that a fuzz target found. It may be refused; a panic is an error.
func parseSeed(t *testing.T, file string) (err error) {
	text, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	lines := strings.SplitN(string(text), "\n", 3)
	quoted, ok := strings.CutPrefix(lines[slices.Index(lines, "go test fuzz v1")+1], "[]byte(")
	policy, unquoteErr := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(quoted), ")"))
	if !ok || unquoteErr != nil {
		t.Fatal(file, unquoteErr)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	_, _ = plan.Parse(file, []byte(policy))
	return nil
}
