package plan

import (
	"strings"
	"testing"
)

// sysText is a policy with a system branch; words of it are replaced to make the one that follows.
const sysText = `
stint: 1
dimensions: [slots]
resource_groups: [{name: G, hosts: [h1]}, {name: I, hosts: [h2]}]
consumers:
  - {path: /S, system: true}
  - {path: /S/a}
  - {path: /S/b}
  - {path: /B}
slot_plans:
  - resource_group: G
    consumers:
      - {path: /S, policy: ownership, owns: 2}
      - {path: /S/a, owns: 1}
      - {path: /S/b, owns: 1}
      - {path: /B, policy: ownership, owns: 4}
md_plans:
  - name: p
    resource_groups: [{name: I}]
    consumers: [{path: /S}, {path: /S/a}, {path: /B}]
`

func TestFollows(t *testing.T) {
	was := parsed(t, sysText)
	for _, c := range []struct {
		what  string
		edit  []string // old, new, old, new …
		force bool
		want  string // part of the error, "" for none
	}{
		{"nothing", nil, false, ""},
		{"another consumer goes", []string{"  - {path: /B}\n", "", "      - {path: /B, policy: ownership, owns: 4}\n",
			"", ", {path: /B}", ""}, false, ""},
		{"a slot more", []string{"/S, policy: ownership, owns: 2", "/S, policy: ownership, owns: 3", "/S/b, owns: 1",
			"/S/b, owns: 2"}, false, ""},
		{"a leaf goes", []string{"  - {path: /S/b}\n", "", "      - {path: /S/b, owns: 1}\n", ""}, true,
			"consumer /S/b belongs to a system branch and must not be removed"},
		{"the branch goes, and system with it",
			[]string{"  - {path: /S, system: true}\n  - {path: /S/a}\n  - {path: /S/b}\n", "",
				"      - {path: /S, policy: ownership, owns: 2}\n      - {path: /S/a, owns: 1}\n      - {path: /S/b, " +
					"owns: 1}\n", "", "{path: /S}, {path: /S/a}, ", ""}, true,
			"consumer /S/a belongs to a system branch and must not be removed"},
		{"a leaf's place in a plan", []string{", {path: /S/a}", ""}, true,
			"p:7:1: consumer /S/a belongs to a system branch and must not leave plan p"},
		{"a whole plan", []string{sysText[strings.Index(sysText, "md_plans"):], ""}, true, "must not leave plan p"},
		{"a leaf is renamed within the branch",
			[]string{"  - {path: /S/b}", "  - {path: /S/c, renamed_from: /S/b}", "      - {path: /S/b, owns",
				"      - {path: /S/c, owns"}, false, ""},
		{"the branch is renamed", []string{"/S", "/T", "path: /T, system", "path: /T, renamed_from: /S, system",
			"  - {path: /T/a}", "  - {path: /T/a, renamed_from: /S/a}",
			"  - {path: /T/b}", "  - {path: /T/b, renamed_from: /S/b}"}, false, ""},
		{"a leaf is renamed out of the branch",
			[]string{"  - {path: /S/b}\n  - {path: /B}", "  - {path: /B}\n  - {path: /C, renamed_from: /S/b}",
				"      - {path: /S/b, owns: 1}", "      - {path: /C, policy: ownership, owns: 1}"}, true,
			"must not be renamed out of it, to /C"},
		{"system off", []string{", system: true", ""}, false,
			"by a cluster administrator alone, with force, in a revision of its own"},
		{"system off with force", []string{", system: true", ""}, true, ""},
		{"system: false with force", []string{"system: true", "system: false"}, true, ""},
		{"system off with force, and lines moved",
			[]string{", system: true", "", "consumers:\n  -", "consumers: # none of them is vital\n\n  -"}, true, ""},
		{"system off with force, and a slot more",
			[]string{", system: true", "", "/B, policy: ownership, owns: 4", "/B, policy: ownership, owns: 5"}, true,
			"must change nothing else"},
		{"system goes down to the leaves",
			[]string{", system: true", "", "{path: /S/a}\n", "{path: /S/a, system: true}\n", "{path: /S/b}\n",
				"{path: /S/b, system: true}\n"}, false,
			"consumer /S by a cluster administrator"},
	} {
		text := sysText
		for i := 0; i < len(c.edit); i += 2 {
			if !strings.Contains(text, c.edit[i]) {
				t.Fatalf("%s: no %q in the policy", c.what, c.edit[i])
			}
			text = strings.ReplaceAll(text, c.edit[i], c.edit[i+1])
		}
		err := parsed(t, text).Follows(was, c.force)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
	later := parsed(t, strings.ReplaceAll(sysText, ", system: true", ""))
	if err := parsed(t, strings.ReplaceAll(sysText, ", {path: /S/a}", "")).Follows(later, false); err != nil {
		t.Errorf("what was no system service any more: %v", err)
	}
}
