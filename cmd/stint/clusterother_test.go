package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// edit is a change of a source file.
type edit struct{ file, from, to string }

// wrongGrant has a process say of thirteen units on a host that they are fourteen.
var wrongGrant = edit{
	"core/emit/grants.go", "\t\tt.Units[at] = h.Units[q]\n", "\t\tt.Units[at] = h.Units[q]\n" +
		"\t\tif h.Units[q] == 13 {\n\t\t\tt.Units[at]++\n\t\t}\n",
}

// newerRules has it be of another version of the rules.
var newerRules = edit{"core/decision/summary.go", `const RulesVersion = "4"`, `const RulesVersion = "5"`}

// apply is the path of the file and its text with the edit.
func (e *edit) apply(t *testing.T) (path, text string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../..", e.file))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || strings.Count(string(b), e.from) != 1 {
		t.Fatalf("%s does not have %q once (%v)", e.file, e.from, err)
	}
	return path, strings.Replace(string(b), e.from, e.to, 1)
}

// TestEditsApply holds the edits that make test-cluster builds with to the code of today.
func TestEditsApply(t *testing.T) {
	for _, e := range []edit{wrongGrant, newerRules} {
		e.apply(t)
	}
}

// buildOther builds a stint of source files that are otherwise, by an overlay.
func buildOther(t *testing.T, edits ...edit) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, e := range edits {
		path, text := e.apply(t)
		other := filepath.Join(dir, fmt.Sprint(i, ".go"))
		if err := os.WriteFile(other, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[path] = other
	}
	list, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "stint")
	if out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program,
		".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestWrongProcess has a process of a cluster decide otherwise than the source says: it is named in that cycle, never
// answers with it, stays up, and does not lead when both others are gone.
func TestWrongProcess(t *testing.T) {
	s := newSite(t)
	wrong := s.follower()
	s.ends(wrong)
	s.program[wrong] = buildOther(t, wrongGrant)
	s.start(wrong)
	s.settle()
	good := s.wants(5)
	s.settle()
	bad := s.wants(18) // thirteen more
	s.asks(wrong, "/readyz", 503, "decides otherwise than the leader")
	s.asks(wrong, "/healthz", 200, "")
	if text := s.asks(wrong, "/v1/cycles?format=ndjson", 200, ""); strings.Contains(text,
		fmt.Sprintf(`"cycle":%d,`, bad)) || !strings.Contains(text, fmt.Sprintf(`"cycle":%d,`, good)) {
		t.Errorf("it answers with the cycles\n%s", text)
	}
	log := s.child[wrong].log.String()
	if want := fmt.Sprintf("cycle %d has the digest ", bad); !strings.Contains(log, want) {
		t.Errorf("no %q in\n%s", want, log)
	}
	kept, err := os.ReadFile(filepath.Join(s.data[wrong], "replay.ndjson"))
	if err != nil || !strings.Contains(string(kept), fmt.Sprintf(`"cycle":%d,`, bad)) {
		t.Errorf("kept is %s (%v)", kept, err)
	}
	for i := range s.child {
		if i != wrong {
			kill(s.child[i])
		}
	}
	time.Sleep(5 * clusterLease)
	s.asks(wrong, "/readyz", 503, "")
	if log := s.child[wrong].log.String(); strings.Contains(log, "this process leads") {
		t.Errorf("it leads:\n%s", log)
	}
	s.start((wrong + 1) % 3)
	s.leader()
	last := s.wants(19)
	s.ends((wrong + 1) % 3)
	s.logged(&clusterHistory{digests: map[int64]string{}}, last)
}

// TestUpgrade has two processes be of a newer version of the rules, which decides otherwise: they wait and say so, and
// one goes on where the old leader ended.
func TestUpgrade(t *testing.T) {
	s := newSite(t)
	old := s.leader()
	s.wants(18)
	newer := buildOther(t, newerRules, wrongGrant)
	for _, i := range []int{(old + 1) % 3, (old + 2) % 3} {
		s.ends(i)
		s.program[i] = newer
		s.spawn(i)
	}
	before := s.wants(5)
	s.wants(18)
	for _, i := range []int{(old + 1) % 3, (old + 2) % 3} {
		text := s.asks(i, "/readyz", 503, "was decided by rules version 2, and this process decides by version 3")
		if !strings.Contains(text, "waits for a checkpoint") {
			t.Error(text)
		}
		s.asks(i, "/healthz", 200, "")
	}
	last := s.wants(5)
	s.ends(old)
	s.program[old] = newer
	s.spawn(old)
	if next := s.wants(18); next != last+1 || before >= last {
		t.Errorf("cycle %d comes after cycle %d", next, last)
	}
	s.settle()
	s.asks(old, "/readyz", 200, "")
	for i := range s.child {
		s.ends(i)
	}
	t.Setenv("AWS_ENDPOINT_URL", s.store)
	t.Setenv("AWS_REGION", "us-east-1")
	text := command(t, 0, "query", "--log", "s3://alloc/prod", "cycles", "--cycle", "all", "--where", "rules_version=3",
		"--output", "csv")
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != 2 ||
		!strings.HasPrefix(lines[1], fmt.Sprint(last+1, ",")) {
		t.Errorf("by the newer version were decided\n%s", text)
	}
}
