package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
)

// branchPolicy has consumers of which a token reads /Risk/Day; what is of others is called "secret".
const branchPolicy = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers:
  - {path: /Risk, admins: [day], users: [day]}
  - {path: /Risk/Day, reclaim_grace: 5m}
  - {path: /Risk/Night, reclaim_grace: 5m}
  - {path: /Research, reclaim_grace: 5m}
md_plans:
  - name: grid
    resource_groups: [{name: All}]
    consumers: [{path: /Risk, own: [{group: All, hosts: 1}]}, {path: /Risk/Day, own: [{group: All, hosts: 1}]}, {path: /Risk/Night}, {path: /Research}]
`

// TestReadings holds that it is decided for every route what a token that reads one branch is told, and for every
// table.
func TestReadings(t *testing.T) {
	known := map[string]bool{}
	for _, r := range routes {
		key := r.method + " " + r.name
		known[key] = true
		if readings[key] == undecided {
			t.Errorf("%s: nobody decided what a token that reads one branch is told", key)
		}
		if readings[key] == change != (r.method != "GET" && r.needs != RoleReader) {
			t.Errorf("%s: is it a change?", key)
		}
		if readings[key] == change != r.writes() {
			t.Errorf("%s: is it for the process that leads?", key)
		}
	}
	for key := range readings {
		if !known[key] {
			t.Errorf("%s: there is no such route", key)
		}
	}
	var c decision.Cycle
	for _, table := range c.Tables() {
		if _, ok := cuts[table.Name]; !ok {
			t.Errorf("table %s: nobody decided what a token that reads one branch sees of it", table.Name)
		}
	}
}

// branchService is a service in which others hold what the branch /Risk/Day owns, and each has names of its own.
func branchService(t *testing.T) *service {
	s := start(t, func(o *ServiceOptions) {
		o.Server.Tokens = []Token{
			{Name: "root", SHA256: HashToken("root"), Role: RoleAdmin},
			{Name: "day", SHA256: HashToken("day"), Role: RoleSubmitter, Branch: "/Risk/Day"},
			{Name: "chief", SHA256: HashToken("chief"), Role: RoleConsumerAdmin, Groups: []string{"day"},
				Branch: "/Risk/Day"},
		}
	})
	s.token = "root"
	s.must(200, "PUT", "/v1/plan", branchPolicy)
	s.must(200, "PUT", "/v1/hosts", "host,ncpus\nh1,4\nh2,4\n")
	s.must(200, "PUT", "/v1/demand/secret-feed",
		"consumer,allocation,sub,units,ncpus\n/Research,secret-sweep,secret-part,6,1\n"+
			"/Risk/Night,secret-night,secret-part,2,1\n")
	s.cycle()
	s.must(200, "PUT", "/v1/demand/day-feed", "consumer,allocation,units,ncpus\n/Risk/Day,mine-var,3,1\n")
	s.cycle()
	s.cycle()
	s.logged()
	return s
}

// TestBranch asks every call that reads with a token that reads one branch: nothing of others' allocations is in any
// answer, in whatever format, and what is of the branch is there.
func TestBranch(t *testing.T) {
	s := branchService(t)
	for path, mine := range map[string]string{
		"/v1/cycles/latest/consumers":            "/Risk/Day",
		"/v1/cycles/2/consumers":                 "/Risk/Day",
		"/v1/cycles/2/amounts":                   "/Risk/Day",
		"/v1/cycles/2/shares":                    "",
		"/v1/cycles/2/shortfalls":                "mine-var",
		"/v1/cycles/latest/shortfalls":           "mine-var",
		"/v1/cycles/1/grants":                    "",
		"/v1/cycles/2/reclaims":                  "mine-var",
		"/v1/cycles/2/releases":                  "",
		"/v1/cycles/1/ownership":                 "/Risk/Day",
		"/v1/cycles/1/holdings":                  "",
		"/v1/cycles/1/owners":                    "/Risk/Day",
		"/v1/cycles/latest/sub_allocations":      "mine-var",
		"/v1/cycles/2/loans":                     "",
		"/v1/cycles/1/attributes":                "h1",
		"/v1/cycles/1/hosts":                     "h1",
		"/v1/cycles/1/plans":                     "",
		"/v1/cycles/latest/cycles":               "",
		"/v1/changes?source=secret-feed&since=0": "",
		"/v1/changes?source=day-feed&since=0":    "",
		"/v1/holdings":                           "",
		"/v1/holdings?source=secret-feed":        "",
		"/v1/holdings?by=host":                   "",
		"/v1/holdings?by=consumer":               "",
		"/v1/holdings?host=h1":                   "",
		"/v1/holdings?cycle=1":                   "",
		"/v1/loans":                              "",
		"/v1/loans?cycle=1":                      "",
		"/v1/hosts":                              "h2",
		"/v1/demand/secret-feed":                 "",
		"/v1/demand/day-feed":                    "mine-var",
		"/v1/sources":                            "day-feed",
		"/v1/actors":                             "",
		"/v1/consumers":                          "/Risk/Day",
		"/v1/consumers/Risk":                     "/Risk",
		"/v1/consumers/Risk/Day":                 "/Risk/Day",
		"/v1/consumers/Risk/Day?last=5":          "held",
		"/v1/consumers/Risk?last=5":              "held",
		"/v1/cycles":                             "",
	} {
		for _, format := range []string{"json", "ndjson", "csv"} {
			glue := "?"
			if strings.Contains(path, "?") {
				glue = "&"
			}
			s.token = "day"
			a := s.must(200, "GET", path+glue+"format="+format, "")
			if strings.Contains(a.body, "secret") {
				t.Errorf("%s as %s tells of others: %s", path, format, a.body)
			}
			if mine != "" && !strings.Contains(a.body, mine) {
				t.Errorf("%s as %s does not tell of %s: %s", path, format, mine, a.body)
			}
		}
	}
	for _, path := range []string{"/v1/explain/Risk/Day", "/v1/explain/Risk/Day?allocation=mine-var",
		"/v1/explain/Risk", "/v1/explain/Risk/Day?cycle=2", "/v1/explain/Risk/Day?format=text"} {
		if a := s.must(200, "GET", path, ""); strings.Contains(a.body, "secret") ||
			!strings.Contains(a.body, "/Risk/Day") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	for _, path := range []string{
		"/v1/consumers/Research", "/v1/consumers/Risk/Night", "/v1/consumers/Risk/Night?last=5", "/v1/explain/Research",
		"/v1/explain/Risk/Night", "/metrics",
		"/v1/cycles/1/inputs",
	} {
		s.refused(403, "forbidden", "GET", path, "")
	}
	s.refused(404, "not-found", "GET", "/v1/explain/Risk/Day?allocation=secret-sweep", "")
	s.must(200, "GET", "/v1/plan", "")
	s.must(200, "GET", "/v1/plan/revisions", "")
	if ids, data := s.listen(1); len(ids) != 1 || strings.Contains(fmt.Sprint(data), "secret") {
		t.Error(ids, data)
	}
}

// TestBranchRows holds which consumers' rows a token sees: those of its branch and of those above it.
func TestBranchRows(t *testing.T) {
	s := branchService(t)
	s.token = "day"
	consumers := func(path, column string) (list []string) {
		var rows []map[string]any
		if err := json.Unmarshal([]byte(s.must(200, "GET", path, "").body), &rows); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			list = append(list, fmt.Sprint(r[column]))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	for path, want := range map[string][]string{
		"/v1/cycles/latest/consumers": {"/Risk", "/Risk/Day"}, "/v1/consumers": {"/Risk", "/Risk/Day"},
		"/v1/cycles/2/amounts":    {"/Risk", "/Risk/Day"},
		"/v1/cycles/2/shortfalls": {"/Risk/Day"},
	} {
		if got := consumers(path, "consumer"); !slices.Equal(got, want) {
			t.Errorf("%s: rows of %v, expected %v", path, got, want)
		}
	}
	// What others have of the branch is told, with who has it; not what it is called.
	if got := consumers("/v1/loans", "lender"); len(got) != 1 || got[0] != "/Risk/Day" {
		t.Errorf("loans of %v", got)
	}
	for _, column := range []string{"allocation", "sub"} {
		if got := consumers("/v1/cycles/2/reclaims", column); !slices.Equal(got, []string{"<nil>"}) {
			t.Errorf("%s of what is taken back for the branch: %v", column, got)
		}
	}
	if got := s.must(200, "GET", "/v1/explain/Risk/Day?format=text", "").body; !strings.Contains(got, "gives back") &&
		!strings.Contains(got, "give back") {
		t.Errorf("who gives back what it waits for is not told: %s", got)
	}
}

// TestBranchPolicy holds what such a token is told of another policy: of its own changes all, of others' that they are
// not its to make, and not what others hold.
func TestBranchPolicy(t *testing.T) {
	s := branchService(t)
	s.token = "chief"
	own := strings.Replace(branchPolicy, "{path: /Risk/Day, own:", "{path: /Risk/Day, share: {ratio: 2}, own:", 1)
	if a := s.must(200, "POST", "/v1/plan/check", own); !strings.Contains(a.body, `"ok":true`) {
		t.Error(a.body)
	}
	gone := strings.NewReplacer("  - {path: /Research, reclaim_grace: 5m}\n", "", ", {path: /Research}",
		"").Replace(branchPolicy)
	if a := s.must(200, "POST", "/v1/plan/check", gone); !strings.Contains(a.body, `"ok":false`) ||
		strings.Contains(a.body, "holds") {
		t.Error(a.body)
	}
	if a := s.must(200, "POST", "/v1/whatif?settle=0", own); strings.Contains(a.body, "/Research") &&
		strings.Contains(a.body, `"consumer":"/Research"`) {
		t.Error(a.body)
	}
	s.refused(403, "forbidden", "POST", "/v1/whatif", gone)
}

// TestBranchOfToken refuses branches that are none.
func TestBranchOfToken(t *testing.T) {
	for branch, want := range map[string]string{
		"Risk": "must be the path of a consumer", "/": "must be the path of a consumer",
		"/Risk/": "must be the path of a consumer", "/A//B": "must be the path of a consumer", "/Risk": "", "": "",
	} {
		err := CheckTokens([]Token{{Name: "t", SHA256: HashToken("x"), Role: RoleReader, Branch: branch}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("branch %q: %v", branch, err)
		}
	}
	if err := CheckTokens([]Token{{Name: "t", SHA256: HashToken("x"), Role: RoleAdmin, Branch: "/Risk"}}); err == nil {
		t.Error("an administrator of one branch")
	}
}
