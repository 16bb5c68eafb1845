package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// describedOperation is an operation of the document.
type describedOperation struct {
	OperationID string `json:"operationId"`
	Parameters  []struct{ Name, In string }
	RequestBody struct{ Content map[string]any } `json:"requestBody"`
	Responses   map[string]struct{ Content map[string]any }
}

func described(t *testing.T) (paths map[string]map[string]describedOperation) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]describedOperation
	}
	if err := json.Unmarshal(OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Paths
}

// TestOpenAPIRoutes holds that the description has every route of the server and none more, and says nothing of what is
// not there.
func TestOpenAPIRoutes(t *testing.T) {
	paths := described(t)
	left := map[string]bool{}
	ids := map[string]string{}
	for path, ops := range paths {
		for method, op := range ops {
			at := strings.ToUpper(method) + " " + path
			left[at] = true
			if ids[op.OperationID] != "" || op.OperationID == "" {
				t.Errorf("%s and %s have the operation id %q", at, ids[op.OperationID], op.OperationID)
			}
			ids[op.OperationID] = at
		}
	}
	for _, r := range routes {
		at := []string{r.method + " " + r.name}
		if strings.Contains(r.name, "{table}") {
			at = nil
			for _, table := range decisionTables {
				at = append(at, r.method+" "+strings.Replace(r.name, "{table}", table, 1))
			}
		}
		for _, at := range at {
			if !left[at] {
				t.Errorf("the description has no %s", at)
			}
			delete(left, at)
		}
		delete(callsLeft, r.method+" "+r.name)
	}
	for at := range left {
		t.Errorf("the description has %s, which the server does not", at)
	}
	for at := range callsLeft {
		t.Errorf("%s is described, and no route", at)
	}
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation(),
		openapi3.EnableSchemaDefaultsValidation()); err != nil {
		t.Error(err)
	}
	known := func(what string, keys []string) {
		for _, key := range keys {
			name, field, _ := strings.Cut(key, ".")
			if s := doc.Components.Schemas[name]; s == nil || s.Value.Properties[field] == nil {
				t.Errorf("%s says something of %s, which the description does not have", what, key)
			}
		}
	}
	known("fieldsAbout", slices.Collect(maps.Keys(fieldsAbout)))
	known("wordsOf", slices.Collect(maps.Keys(wordsOf)))
}

var callsLeft = maps.Clone(calls)

var thereAre = regexp.MustCompile(`no parameter zz here; there are ([a-z_, ]*)`)

// TestOpenAPIParameters holds that each call knows the parameters that are described, and no others.
func TestOpenAPIParameters(t *testing.T) {
	s := ready(t, nil)
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,1,1\n")
	s.cycle()
	s.logged()
	fill := strings.NewReplacer("{source}", "feed", "{cycle}", "latest", "{path}", "Risk", "{n}", "1", "{file}", "x")
	for path, ops := range described(t) {
		for method, op := range ops {
			var names []string
			for _, p := range op.Parameters {
				if p.In == "query" {
					names = append(names, p.Name)
				}
			}
			a := s.do(strings.ToUpper(method), fill.Replace(path)+"?zz=1", "")
			if len(names) == 0 && a.status != 400 {
				continue // the call has none, and does not look
			}
			m := thereAre.FindStringSubmatch(a.body)
			if m == nil {
				t.Errorf("%s %s: status %d, expected to be told of the parameters: %s", method, path, a.status, a.body)
				continue
			}
			has := strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })
			slices.Sort(has)
			slices.Sort(names)
			if !slices.Equal(has, names) {
				t.Errorf("%s %s knows %v, described are %v", method, path, has, names)
			}
		}
	}
}

const examplePolicy = `stint: 1
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /Risk}, {path: /Risk/Day}, {path: /Risk/Night}, {path: /Research, reclaim_grace: 5m}]
md_plans:
  - name: grid
    resource_groups: [{name: All}]
    consumers:
      - {path: /Risk, own: [{group: All, hosts: 2}]}
      - {path: /Risk/Day}
      - {path: /Risk/Night}
      - {path: /Research}
`

// exampleCalls are calls of every operation that takes or gives JSON, in an order that makes sense.
var exampleCalls = []struct{ id, method, path, body string }{
	{"putPlan", "PUT", "/v1/plan?message=the+first", examplePolicy},
	{"putHosts", "PUT", "/v1/hosts",
		`[{"host":"h1","ncpus":8,"model":"A100"},{"host":"h2","ncpus":8,"state":"ok"},{"host":"h3","ncpus":8}]`},
	{"putDemand", "PUT", "/v1/demand/feed", `[{"consumer":"/Research","allocation":"sweep","units":12,"ncpus":2},` +
		`{"consumer":"/Risk/Night","allocation":"stress","sub":"a","units":1,"ncpus":4,"requirement":"select(model == 'V100')","max_per_host":2}]`},
	{"runCycle", "POST", "/v1/cycles", ""},
	{"changeHosts", "PATCH", "/v1/hosts", `[{"host":"h3","state":"closed"}]`},
	{"changeDemand", "PATCH", "/v1/demand/feed", `[{"consumer":"/Risk/Day","allocation":"var","units":4,"ncpus":2}]`},
	{"putRunning", "PUT", "/v1/running/feed", `[{"consumer":"/Research","allocation":"sweep","host":"h1","units":4},` +
		`{"consumer":"/Research","allocation":"sweep","host":"h2","units":4},{"consumer":"/Research","allocation":"sweep","host":"h3","units":4}]`},
	{"", "POST", "/v1/cycles", ""},
	{"getChanges", "GET", "/v1/changes?source=feed&since=0", ""},
	{"getHoldings", "GET", "/v1/holdings?source=feed", ""},
	{"getCycles", "GET", "/v1/cycles?limit=1", ""},
	{"getConsumers", "GET", "/v1/consumers", ""},
	{"getConsumer", "GET", "/v1/consumers/Risk/Day?last=2", ""},
	{"explain", "GET", "/v1/explain/Risk/Day", ""},
	{"checkPlan", "POST", "/v1/plan/check", strings.Replace(examplePolicy, "hosts: 2", "hosts: 1", 1)},
	{"whatif", "POST", "/v1/whatif", strings.Replace(examplePolicy, "hosts: 2", "hosts: 1", 1)},
	{"simulate", "POST", "/v1/simulate?horizon=1h",
		`{"demand":[{"consumer":"/Risk/Night","allocation":"stress-2","units":4,"ncpus":2,"runtime":"20m"}],` +
			`"hosts":[{"host":"h4","ncpus":4}],"runtimes":[{"consumer":"/Research","p50":"10m","p90":"40m","p100":"2h"}]}`},
	{"getHosts", "GET", "/v1/hosts", ""},
	{"getLoans", "GET", "/v1/loans", ""},
	{"getDemand", "GET", "/v1/demand/feed", ""},
	{"getSources", "GET", "/v1/sources", ""},
	{"putActor", "PUT", "/v1/actors/feed", `{"running":10,"held_not_running":1,"running_not_held":0,"lag_p50":0.4,` +
		`"lag_p99":1.5,"effects":128,"late":0,"began":"2026-01-05T08:00:00Z","listed":"2026-01-05T08:00:00Z"}`},
	{"getActors", "GET", "/v1/actors", ""},
	{"getRevisions", "GET", "/v1/plan/revisions", ""},
	{"getHealth", "GET", "/healthz", ""},
	{"getReady", "GET", "/readyz", ""},
	{"getGrantTable", "GET", "/v1/cycles/1/grants", ""},
	{"getReclaimTable", "GET", "/v1/cycles/2/reclaims", ""},
	{"getReleaseTable", "GET", "/v1/cycles/3/releases", ""},
	{"getConsumerTable", "GET", "/v1/cycles/latest/consumers", ""},
	{"getAmountTable", "GET", "/v1/cycles/latest/amounts", ""},
	{"getPoolShareTable", "GET", "/v1/cycles/latest/shares", ""},
	{"getShortfallTable", "GET", "/v1/cycles/latest/shortfalls", ""},
	{"getOwnershipChangeTable", "GET", "/v1/cycles/1/ownership", ""},
	{"getPolicyRevisionTable", "GET", "/v1/cycles/1/plans", ""},
	{"getInputTable", "GET", "/v1/cycles/1/inputs", ""},
	{"getHoldingTable", "GET", "/v1/cycles/1/holdings", ""},
	{"getHostCapacityTable", "GET", "/v1/cycles/1/hosts", ""},
	{"getOwnerTable", "GET", "/v1/cycles/1/owners", ""},
	{"getCycleTable", "GET", "/v1/cycles/latest/cycles", ""},
	{"getLoanTable", "GET", "/v1/cycles/latest/loans", ""},
	{"getSubAllocationTable", "GET", "/v1/cycles/latest/sub_allocations", ""},
	{"getAttributeTable", "GET", "/v1/cycles/latest/attributes", ""},
	{"release", "POST", "/v1/releases",
		`[{"consumer":"/Research","allocation":"sweep","host":"h1","units":1,"done":true}]`},
	{"deleteDemand", "DELETE", "/v1/demand/feed?allow_shrink=true", ""},
}

// unsteady is what differs from run to run, and what stands for it in examples.
var unsteady = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "2026-01-05T08:00:00Z"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`), "2026-01-05 08:00:00 UTC"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d UTC`), "08:00:00 UTC"},
	{regexp.MustCompile(`"[0-9a-f]{64}"`), `"` + strings.Repeat("5d3a", 16) + `"`},
	{regexp.MustCompile(`"instance":"[0-9a-f]+"`), `"instance":"41e8c96bf0a2"`},
	{regexp.MustCompile(`_us":\d+`), `_us":120`},
	{regexp.MustCompile(`(held|released) (\d+[a-zµ.]*)+ ago`), "$1 1s ago"},
}

func steady(text string) string {
	for _, u := range unsteady {
		text = u.is.ReplaceAllString(text, u.as)
	}
	return text
}

// TestOpenAPIExamples makes the calls that the examples are of, and holds the examples against the answers.
// STINT_EXAMPLES=write writes them down.
func TestOpenAPIExamples(t *testing.T) {
	s := start(t, nil)
	got := map[string]example{}
	for _, c := range exampleCalls {
		if strings.HasPrefix(c.path, "/v1/cycles/") ||
			slices.Contains([]string{"getConsumer", "getRevisions", "getReady"}, c.id) {
			s.logged()
		}
		if c.id == "getReleaseTable" { // something has come back by then
			s.must(200, "POST", "/v1/releases", `[{"consumer":"/Research","allocation":"sweep","host":"h1","units":1}]`,
				"Content-Type", "application/json")
			s.cycle()
			s.logged()
		}
		media := "application/json"
		if strings.HasPrefix(c.body, "stint:") {
			media = "application/yaml"
		}
		a := s.must(200, c.method, c.path, c.body, "Content-Type", media)
		if c.id == "" {
			continue
		}
		e := example{Answer: json.RawMessage(steady(strings.TrimSpace(a.body)))}
		if c.body != "" {
			e.Body = json.RawMessage(c.body)
			if media == "application/yaml" {
				e.Body, _ = json.Marshal(c.body)
			}
		}
		got[c.id] = e
	}
	for path, ops := range described(t) {
		for method, op := range ops {
			_, gives := op.Responses["200"].Content["application/json"]
			if _, ok := got[op.OperationID]; gives && !ok && op.OperationID != "getOpenAPI" {
				t.Errorf("no example of %s %s (%s)", method, path, op.OperationID)
			}
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(got); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("STINT_EXAMPLES") == "write" {
		if err := os.WriteFile("examples.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(b.Bytes(), examplesText) {
		t.Errorf("the examples are not what a service answers (make openapi writes them anew):\n%s",
			firstDifference(b.String(), string(examplesText)))
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is\n%s\nexpected\n%s", i+1, strings.Join(a[max(0, i-3):i+1], "\n"), b[i])
		}
	}
	return fmt.Sprintf("%d lines, expected %d", len(a), len(b))
}

// TestEventDescribed holds the data of an event against its schema.
func TestEventDescribed(t *testing.T) {
	s := ready(t, nil)
	s.cycle()
	resp, err := s.client.Get(s.base + "/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text []byte
	for !bytes.Contains(text, []byte("\n\nid:")) || !bytes.HasSuffix(text, []byte("\n\n")) {
		more := make([]byte, 4096)
		n, err := resp.Body.Read(more)
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		text = append(text, more[:n]...)
	}
	_, data, _ := strings.Cut(string(text), "data: ")
	data, _, _ = strings.Cut(data, "\n")
	var value any
	if err := json.Unmarshal([]byte(data), &value); err != nil {
		t.Fatal(err, string(text))
	}
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Components.Schemas["Event"].Value.VisitJSON(value); err != nil {
		t.Error(err)
	}
}
