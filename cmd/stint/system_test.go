package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// servicesText is a policy with a branch of system services in a slot plan and in a multidimensional one.
const servicesText = `stint: 1
dimensions: [slots, ncpus]
resource_groups: [{name: G, hosts: [h1]}, {name: I, hosts: [h2]}]
consumers:
  - {path: /S, system: true}
  - {path: /S/a}
  - {path: /S/b}
  - {path: /B}
slot_plans:
  - resource_group: G
    consumers:
      - {path: /S, policy: ownership, owns: 3}
      - {path: /S/a, owns: 1}
      - {path: /S/b, owns: 2, lend: {limit: 1}}
      - {path: /B, policy: ownership, owns: 4}
    windows:
      - {name: day, hours: "08:00-20:00"}
      - {name: night, hours: "20:00-08:00", consumers: [{path: /S/b, owns: 2}]}
md_plans:
  - name: p
    resource_groups: [{name: I}]
    consumers: [{path: /S}, {path: /S/a}, {path: /B}]
`

// lossesOfService are all ways in which a policy file could take a service that keeps the cluster alive away (PLAN-6):
// what is edited in servicesText, and what is said of it.
var lossesOfService = []struct {
	what string
	edit []string // old, new, old, new …
	want string
}{
	{"the branch is removed", []string{"  - {path: /S, system: true}\n  - {path: /S/a}\n  - {path: /S/b}\n", "",
		"      - {path: /S, policy: ownership, owns: 3}\n      - {path: /S/a, owns: 1}\n" +
			"      - {path: /S/b, owns: 2, lend: {limit: 1}}\n", "",
		"{path: /S}, {path: /S/a}, ", "", ", consumers: [{path: /S/b, owns: 2}]", ""},
		"consumer /S belongs to a system branch and must not be removed"},
	{"a leaf is removed", []string{"  - {path: /S/a}\n", "", "      - {path: /S/a, owns: 1}\n", "", "{path: /S/a}, ",
		""}, "consumer /S/a belongs to a system branch and must not be removed"},
	{"its entry in the slot plan is removed", []string{"      - {path: /S/a, owns: 1}\n", ""},
		"the system service /S/a is in no slot plan, where /S is; it must own a slot that is not lent"},
	{"its entry in the other plan is removed", []string{", {path: /S/a}", ""},
		"consumer /S/a belongs to a system branch and must not leave plan p"},
	{"all entries of the branch in a plan are removed", []string{"{path: /S}, {path: /S/a}, ", ""},
		"consumer /S belongs to a system branch and must not leave plan p"},
	{"a plan is removed", []string{servicesText[strings.Index(servicesText, "md_plans"):], ""},
		"must not leave plan p"},
	{"it owns nothing", []string{"/S/a, owns: 1", "/S/a, owns: 0"},
		"the system service /S/a owns no slot; it must own one that is not lent"},
	{"it owns nothing in a window", []string{"consumers: [{path: /S/b, owns: 2}]",
		"consumers: [{path: /S/b, owns: 0, lend: {limit: 0}}]"},
		"in window night the system service /S/b owns no slot"},
	{"it owns nothing in a dated window", []string{"    windows:\n",
		"    windows:\n      - {name: move, from: 2026-12-24T00:00, until: 2026-12-26T00:00, consumers: [{path: " +
			"/S/a, owns: 0}]}\n"}, "in window move the system service /S/a owns no slot"},
	{"it lends its last slot", []string{"/S/a, owns: 1", "/S/a, owns: 1, lend: {limit: 1}"},
		"the system service /S/a may lend all its slots, 1 of 1; one must not be lent"},
	{"it lends its last slot in a window", []string{"consumers: [{path: /S/b, owns: 2}]",
		"consumers: [{path: /S/b, owns: 1}]"},
		"in window night the system service /S/b may lend all its slots, 1 of 1"},
	{"others may hold all its slots", []string{"/S, policy: ownership, owns: 3", "/S, policy: hybrid, owns: 3",
		"/S/b, owns: 2, lend: {limit: 1}", "/S/b, owns: 2, reserves: 1"},
		"the system service /S/a reserves none of its slots"},
	{"nobody owns any more", []string{"/S, policy: ownership, owns: 3", "/S, policy: share_ratio", "/S/a, owns: 1",
		"/S/a", "/S/b, owns: 2, lend: {limit: 1}", "/S/b", ", consumers: [{path: /S/b, owns: 2}]", ""},
		"owns no slot, as nobody does under share_ratio"},
	{"it may hold nothing", []string{"/S/a, owns: 1", "/S/a, owns: 1, share: {max: 0}"},
		"the system service /S/a may hold nothing: share.max of /S/a is 0"},
	{"its branch may hold nothing", []string{"/S, policy: ownership, owns: 3",
		"/S, policy: ownership, owns: 3, share: {max: 0}"}, "may hold nothing: share.max of /S is 0"},
	{"it is renamed out of the branch", []string{"  - {path: /S/a}\n", "", "  - {path: /B}\n",
		"  - {path: /B}\n  - {path: /A, renamed_from: /S/a}\n",
		"      - {path: /S/a, owns: 1}\n", "      - {path: /A, policy: ownership, owns: 1}\n", "{path: /S/a}",
		"{path: /A}"},
		"consumer /S/a belongs to a system branch and must not be renamed out of it, to /A"},
	{"its branch is renamed without the mark", []string{"  - {path: /S, system: true}\n  - {path: /S/a}\n" +
		"  - {path: /S/b}",
		"  - {path: /T, renamed_from: /S}\n  - {path: /T/a, renamed_from: /S/a}\n  - {path: /T/b, renamed_from: /S/b}",
		"      - {path: /S, ", "      - {path: /T, ", "      - {path: /S/a", "      - {path: /T/a",
		"      - {path: /S/b, owns: 2, l", "      - {path: /T/b, owns: 2, l",
		"{path: /S}, {path: /S/a}", "{path: /T}, {path: /T/a}", "[{path: /S/b", "[{path: /T/b"},
		"must not be renamed out of it, to /T"},
	{"it becomes a branch whose leaf owns nothing",
		[]string{"  - {path: /S/a}\n", "  - {path: /S/a}\n  - {path: /S/a/x}\n"},
		"the system service /S/a/x is in no slot plan, where /S is"},
	{"the mark is taken off with another change", []string{", system: true", "", "/B, policy: ownership, owns: 4",
		"/B, policy: ownership, owns: 5"},
		"a revision that takes `system: true` off consumer /S must change nothing else"},
}

// TestLossOfService tries every way to lose a service, with force, in `check`, in `run` and in the service: each is
// refused, for its reason, and nothing changes.
func TestLossOfService(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	base := write("plan.yaml", servicesText)
	hosts := write("hosts.csv", "host,slots,ncpus\nh1,8,0\nh2,0,8\n")
	demand := write("demand.csv", "consumer,allocation,units,plan,slots\n/S/a,a,1,G,1\n/B,b,4,G,1\n")
	log := filepath.Join(dir, "log")
	command(t, 0, "run", "--plan", base, "--hosts", hosts, "--demand", demand, "--at", "2026-01-05T08:00:00Z", "--out",
		log)
	r := startServe(t, filepath.Join(dir, "service"), nil)
	command(t, 0, "push", "--server", r.base, "--plan", base, "--hosts", hosts, "--demand", demand, "--cycle")
	for _, c := range lossesOfService {
		text := servicesText
		for i := 0; i < len(c.edit); i += 2 {
			if !strings.Contains(text, c.edit[i]) {
				t.Fatalf("%s: no %q in the policy", c.what, c.edit[i])
			}
			text = strings.Replace(text, c.edit[i], c.edit[i+1], 1)
		}
		edited := write("new.yaml", text)
		for where, got := range map[string]string{
			"check":                   command(t, 2, "check", edited, "--was", base, "--force"),
			"run":                     command(t, 2, "run", "--append", "--plan", edited, "--force", "--out", log),
			"PUT /v1/plan":            command(t, 2, "push", "--server", r.base, "--plan", edited, "--force"),
			"POST /v1/plan/check":     serviceCheck(t, r, text),
			"whatif":                  command(t, 2, "whatif", "--log", log, "--plan", edited, "--force"),
			"whatif asked of service": command(t, 2, "whatif", "--server", r.base, "--plan", edited, "--force"),
		} {
			if !strings.Contains(got, c.want) {
				t.Errorf("%s, by %s: %s\nexpected %q", c.what, where, got, c.want)
			}
		}
	}
	if got := command(t, 0, "query", "--log", log, "cycles", "--output", "csv", "--cycle", "all"); strings.Count(got,
		"\n") != 2 {
		t.Errorf("cycles were added:\n%s", got)
	}
	if got := command(t, 0, "query", "--server", r.base, "cycles", "--output", "ndjson"); !strings.Contains(got,
		`"revision":1,`) {
		t.Errorf("another revision is in force: %s", got)
	}
	// What is right stays right: the same file, and the mark alone taken off with force.
	command(t, 0, "check", base, "--was", base)
	off := write("off.yaml", strings.Replace(servicesText, ", system: true", "", 1))
	command(t, 2, "check", off, "--was", base)
	command(t, 0, "check", off, "--was", base, "--force")
	if got := command(t, 2, "check", base, "--force"); !strings.Contains(got, "--force is for --was") {
		t.Error(got)
	}
}

// serviceCheck is the answer of the service's check of a policy file with force: it must not be taken.
func serviceCheck(t *testing.T, r *running, text string) string {
	t.Helper()
	resp, err := http.Post(r.base+"/v1/plan/check?force=true", "application/yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == 200 && !strings.Contains(string(body), `"ok":false`) || resp.StatusCode != 200 &&
		resp.StatusCode != 422 {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	return string(body)
}
