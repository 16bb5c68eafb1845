package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
)

// repository is the root of the tree, for files beside the code.
const repository = "../.."

func fileOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alertRule is a rule of dist/prometheus/alerts.yaml.
type alertRule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alertRules(t *testing.T) []alertRule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string      `yaml:"name"`
			Rules []alertRule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.UnmarshalWithOptions([]byte(fileOf(t, "dist/prometheus/alerts.yaml")), &file,
		yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	var rules []alertRule
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

// dashboardQueries are the expressions of the dashboard, in the order of the file.
func dashboardQueries(t *testing.T) (list []string) {
	t.Helper()
	var file any
	if err := json.Unmarshal([]byte(fileOf(t, "dist/grafana/stint.json")), &file); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				text, isText := v[key].(string)
				if isText && (key == "expr" || key == "query" && strings.HasPrefix(text, "label_values(")) {
					list = append(list, text)
				}
				walk(v[key])
			}
		}
	}
	walk(file)
	return list
}

var (
	metricWord = regexp.MustCompile(`\b(stint|process|go)_[a-z0-9_]+\b`)
	matcherOf  = regexp.MustCompile(`\b([a-z_]+)(?:=~|!~|!=|=)"`)
	groupedBy  = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
)

// TestWatchedMetricsExist holds every metric and label that the alerts and the dashboard name against a scrape.
func TestWatchedMetricsExist(t *testing.T) {
	families, _ := scraped(t, watched(t, 1))
	ofTLS(t, families)
	// of Prometheus
	labels := map[string]bool{"job": true, "instance": true, "namespace": true, "pod": true, "le": true}
	// The label of divisions comes with a service that has some (TestDivided of cmd/stint).
	labels["division"] = true
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
	}
	check := func(where, expr string) {
		for _, name := range metricWord.FindAllString(expr, -1) {
			if !exported(families, name) {
				t.Errorf("%s: /metrics does not have %s", where, name)
			}
		}
		var used []string
		for _, m := range matcherOf.FindAllStringSubmatch(expr, -1) {
			used = append(used, m[1])
		}
		for _, m := range groupedBy.FindAllStringSubmatch(expr, -1) {
			used = append(used, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })...)
		}
		for _, name := range used {
			if !labels[name] {
				t.Errorf("%s: no metric has the label %s", where, name)
			}
		}
	}
	rules, queries := alertRules(t), dashboardQueries(t)
	for _, r := range rules {
		check("alert "+r.Alert, r.Expr)
	}
	for _, q := range queries {
		check("dashboard: "+q, q)
	}
	if len(rules) < 10 || len(queries) < 30 {
		t.Errorf("%d rules, %d queries: are they read?", len(rules), len(queries))
	}
	if exported(families, "stint_units") || !exported(families, "stint_cycle_duration_seconds_bucket") {
		t.Error("this test cannot tell what is there")
	}
}

// exported tells whether a scrape has a metric, a series of a histogram too.
func exported(families map[string]*dto.MetricFamily, name string) bool {
	if families[name] != nil {
		return true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		of, is := strings.CutSuffix(name, suffix)
		if is && families[of].GetType() == dto.MetricType_HISTOGRAM {
			return true
		}
	}
	return false
}

// TestAlertsAreDocumented has a heading for each alert with its severity and time, a test of promtool, and no others.
func TestAlertsAreDocumented(t *testing.T) {
	page, played := fileOf(t, "docs/alerts.md"), fileOf(t, "dist/prometheus/alerts_test.yaml")
	sections := map[string]string{}
	for _, part := range strings.Split(page, "\n## ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		sections[name] = text
	}
	for _, r := range alertRules(t) {
		text := sections[r.Alert]
		delete(sections, r.Alert)
		if !strings.HasPrefix(strings.TrimSpace(text), "`"+r.Labels["severity"]+"`, ") ||
			!strings.Contains(text, "\n1. ") {
			t.Errorf("docs/alerts.md: %s: must begin with its severity %q, and say what to do", r.Alert,
				r.Labels["severity"])
		}
		if want := "alerts.md#" + strings.ToLower(r.Alert); !strings.HasSuffix(r.Annotations["runbook_url"], want) {
			t.Errorf("%s: runbook_url: %s, expected …/%s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if !strings.Contains(played, "alertname: "+r.Alert+"\n        exp_alerts:") {
			t.Errorf("%s: alerts_test.yaml never expects it", r.Alert)
		}
	}
	for name := range sections {
		t.Errorf("docs/alerts.md: there is no alert %s", name)
	}
}

// TestKeepForPromtool keeps a scrape, and the dashboard's queries as rules, in a folder where promtool finds them: make
// test-alerts. Variables of the dashboard are filled in.
func TestKeepForPromtool(t *testing.T) {
	dir := os.Getenv("STINT_WATCHING")
	if dir == "" {
		t.Skip("for promtool: make test-alerts")
	}
	_, text := scraped(t, watched(t, 2))
	filled := strings.NewReplacer("$__rate_interval", "5m", "$job", "stint", "$plan", ".*", "$consumer", ".*")
	rules := "groups:\n  - name: dashboard\n    rules:\n"
	for i, q := range dashboardQueries(t) {
		if !strings.HasPrefix(q, "label_values(") {
			rules += fmt.Sprintf("      - {record: 'query:%d', expr: %q}\n", i, filled.Replace(q))
		}
	}
	for name, text := range map[string]string{"scrape.txt": text, "dashboard.yaml": rules} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
