package server

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// pagedService has 23 hosts and a source with 40 allocations, a third of which wait, of which a token reads one branch.
func pagedService(t *testing.T) *service {
	s := start(t, func(o *ServiceOptions) {
		o.Server.Tokens = []Token{
			{Name: "root", SHA256: HashToken("root"), Role: RoleAdmin},
			{Name: "day", SHA256: HashToken("day"), Role: RoleReader, Branch: "/Risk/Day"},
		}
	})
	s.token = "root"
	hosts, demand := "host,ncpus\n", "consumer,allocation,units,ncpus\n"
	for i := range 23 {
		hosts += fmt.Sprintf("h%d,4\n", i)
	}
	for i := range 40 {
		demand += fmt.Sprintf("%s,a%d,3,1\n", []string{"/Risk/Day", "/Research"}[i%2], i)
	}
	s.must(200, "PUT", "/v1/plan", policyText)
	s.must(200, "PUT", "/v1/hosts", hosts, "Content-Type", "text/csv")
	s.must(200, "PUT", "/v1/demand/feed", demand, "Content-Type", "text/csv")
	s.cycle()
	return s
}

// pages reads a list by pages of so many rows, and gives the rows, a line each.
func (s *service) pages(path string, limit int) (rows []string) {
	s.t.Helper()
	join := "?"
	if strings.Contains(path, "?") {
		join = "&"
	}
	for cursor := ""; ; {
		of := path + join + fmt.Sprintf("format=ndjson&limit=%d&cursor=%s", limit, url.QueryEscape(cursor))
		if cursor == "" {
			of = strings.TrimSuffix(of, "&cursor=")
		}
		a := s.must(200, "GET", of, "")
		page := slices.Collect(strings.Lines(a.body))
		rows = append(rows, page...)
		cursor = a.header.Get("Stint-Next")
		if len(page) > limit || cursor != "" && len(page) < limit || cursor == "" && len(page) == 0 && len(rows) > 0 {
			s.t.Fatalf("GET %s gives %d rows, and the cursor %q", of, len(page), cursor)
		}
		if a.header.Get("ETag") != "" || a.header.Get("Cache-Control") == "private, max-age=31536000, immutable" {
			s.t.Errorf("GET %s: a page that may be kept: %v", of, a.header)
		}
		if cursor == "" {
			return rows
		}
	}
}

// TestListPages reads every list by pages: together they have the rows of the whole list, in its order.
func TestListPages(t *testing.T) {
	s := pagedService(t)
	lists := []string{
		"/v1/holdings", "/v1/holdings?by=host", "/v1/holdings?source=feed&consumer=/Research", "/v1/hosts",
		"/v1/hosts?by=plan", "/v1/loans", "/v1/consumers", "/v1/consumers/Risk", "/v1/demand/feed", "/v1/sources",
		"/v1/cycles/latest/grants", "/v1/cycles/latest/sub_allocations", "/v1/cycles/latest/shortfalls",
		"/v1/cycles/latest/consumers", "/v1/cycles/1/grants?consumer=/Risk",
	}
	compare := func(path string) {
		t.Helper()
		join := map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]
		whole := slices.Collect(strings.Lines(s.must(200, "GET", path+join+"format=ndjson", "").body))
		for _, limit := range []int{1, 7, len(whole), len(whole) + 1} {
			if got := s.pages(path, max(limit, 1)); !slices.Equal(got, whole) {
				t.Errorf("%s by %d: %d rows, and %d at once", path, limit, len(got), len(whole))
			}
		}
	}
	for _, path := range lists {
		compare(path)
	}
	s.token = "day" // pages count the rows that a token sees
	for _, path := range lists[:2] {
		compare(path)
	}
	s.token = "root"
	s.cycle()
	s.logged()
	for _, path := range []string{"/v1/holdings?cycle=1", "/v1/hosts?cycle=1", "/v1/cycles/1/grants"} {
		compare(path) // out of the log
	}
}

// TestCursors refuses cursors of other cycles, and what no cursor is.
func TestCursors(t *testing.T) {
	s := pagedService(t)
	old := map[string]string{}
	for _, path := range []string{"/v1/holdings?", "/v1/hosts?", "/v1/holdings?cycle=1&",
		"/v1/cycles/latest/sub_allocations?", "/v1/demand/feed?"} {
		old[path] = s.must(200, "GET", path+"limit=5", "").header.Get("Stint-Next")
		s.must(200, "GET", path+"cursor="+old[path], "")
	}
	s.cycle()
	s.logged()
	for path, cursor := range old {
		want := "the page before is of cycle 1, and this list is of cycle 2: begin again without cursor"
		if strings.Contains(path, "cycle=") { // the log may have the rows in another order
			want = "this list is of cycle 1 of the decision log: begin again"
		}
		detail := s.refused(410, "cursor", "GET", path+"limit=5&cursor="+cursor, "")
		if !strings.Contains(detail, want) {
			t.Errorf("%s: %s", path, detail)
		}
	}
	for _, bad := range []string{"limit=0", "limit=10001", "limit=x", "cursor=x", "cursor=NQ", "cursor=LTUgMQ"} {
		s.refused(400, "bad-request", "GET", "/v1/holdings?"+bad, "")
	}
	s.refused(400, "bad-request", "GET", "/v1/changes?since=0&cursor=NSAx", "")
}

// TestBooleans holds that JSON has truth values as such. Other forms have them as the log does.
func TestBooleans(t *testing.T) {
	s := pagedService(t)
	s.cycle()
	s.logged()
	for _, path := range []string{"/v1/consumers", "/v1/cycles/1/consumers", "/v1/consumers?format=ndjson"} {
		text := s.must(200, "GET", path, "").body
		if strings.Contains(path, "ndjson") {
			text = "[" + strings.Join(strings.Split(strings.TrimSpace(text), "\n"), ",") + "]"
		}
		var rows []struct {
			Consumer string `json:"consumer"`
			Leaf     *bool  `json:"leaf"`
		}
		if err := json.Unmarshal([]byte(text), &rows); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, row := range rows {
			if row.Leaf == nil || *row.Leaf == (row.Consumer == "/" || row.Consumer == "/Risk") {
				t.Errorf("%s: of %s leaf is %v", path, row.Consumer, row.Leaf)
			}
		}
	}
	if text := s.must(200, "GET", "/v1/sources", "").body; !strings.Contains(text, `"silent":false`) {
		t.Error(text)
	}
	for path, want := range map[string]string{"/v1/sources": ",false,", "/v1/consumers": ",1,"} {
		if text := s.must(200, "GET", path+"?format=csv", "").body; !strings.Contains(text, want) {
			t.Errorf("%s: %s", path, text)
		}
	}
}
