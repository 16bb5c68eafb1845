package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/goccy/go-yaml"

	"github.com/stintd/stint/core/plan"
)

const chartDir = "../../dist/chart"

// rendered renders the chart with values on top of its own, as Helm would: text/template with those of Helm's functions
// that the chart uses, made anew here. That Helm itself takes the chart is for make test-chart.
func rendered(t *testing.T, values string) (objects []map[string]any, notes string, err error) {
	t.Helper()
	var chart struct {
		Name       string `yaml:"name"`
		Version    string `yaml:"version"`
		AppVersion string `yaml:"appVersion"`
	}
	readYAML(t, filepath.Join(chartDir, "Chart.yaml"), &chart)
	own, given := map[string]any{}, map[string]any{}
	readYAML(t, filepath.Join(chartDir, "values.yaml"), &own)
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	data := map[string]any{
		"Values": overlaid(own, given), "Chart": map[string]any{"Name": chart.Name, "Version": chart.Version,
			"AppVersion": chart.AppVersion},
		"Release": map[string]any{"Name": "grid", "Namespace": "sched", "Service": "Helm"}, "Files": chartFiles{},
	}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(chartFuncs(all))
	files, err := filepath.Glob(filepath.Join(chartDir, "templates", "*"))
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.New(filepath.Base(file)).Parse(string(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var out bytes.Buffer
		if err := all.ExecuteTemplate(&out, name, data); err != nil {
			return nil, "", err
		}
		if name == "NOTES.txt" {
			notes = out.String()
			continue
		}
		for d := yaml.NewDecoder(&out); ; {
			object := map[string]any{}
			err := d.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(object) > 0 {
				objects = append(objects, object)
			}
		}
	}
	return objects, notes, nil
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(name, err)
	}
}

// overlaid are values with others on top, map by map.
func overlaid(own, given map[string]any) map[string]any {
	for key, v := range given {
		below, isMap := v.(map[string]any)
		if was, both := own[key].(map[string]any); both && isMap {
			own[key] = overlaid(was, below)
			continue
		}
		own[key] = v
	}
	return own
}

// chartFiles are the chart's files, for .Files.Get.
type chartFiles struct{}

// Get is the text of a file, "" where there is none, as in Helm.
func (chartFiles) Get(name string) string {
	text, _ := os.ReadFile(filepath.Join(chartDir, name))
	return string(text)
}

func chartFuncs(all *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := all.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"nindent": func(n int, s string) string {
			pad := "\n" + strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(s, "\n", pad)
		},
		"quote":      func(v any) string { return strconv.Quote(fmt.Sprint(v)) },
		"default":    func(or, v string) string { return cmp.Or(v, or) },
		"int":        func(v any) (int, error) { return strconv.Atoi(fmt.Sprint(v)) },
		"lower":      strings.ToLower,
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"trunc":      func(n int, s string) string { return s[:min(n, len(s))] },
		"sha256sum":  func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) },
		"dict":       func(key string, v any) map[string]any { return map[string]any{key: v} },
		"fail":       func(why string) (string, error) { return "", errors.New(why) },
		"required": func(why, v string) (string, error) {
			if v == "" {
				return "", errors.New(why)
			}
			return v, nil
		},
	}
}

// at is what stands at a path of keys and numbers in an object, nil where there is nothing.
func at(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch of := v.(type) {
		case map[string]any:
			v = of[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(of) {
				return nil
			}
			v = of[i]
		default:
			return nil
		}
	}
	return v
}

// TestChart renders the chart's two examples: the objects that there are, what they hold together by, and a
// configuration and a policy that the service takes.
func TestChart(t *testing.T) {
	for _, c := range []struct {
		values, kinds string
		want          map[string]any
	}{
		{"one.yaml", "ConfigMap ServiceMonitor PrometheusRule ConfigMap Service Service StatefulSet", map[string]any{
			"spec.replicas": 1, "spec.template.spec.containers.0.args.4": "0.0.0.0:7468",
			"spec.template.spec.containers.0.image":                      "ghcr.io/stintd/stint:0.1.0",
			"spec.template.spec.containers.0.volumeMounts.2.mountPath":   "/run/stint/tls",
			"spec.template.spec.containers.0.livenessProbe.httpGet.path": "/healthz",
			"spec.volumeClaimTemplates.0.spec.storageClassName":          "fast",
			"spec.template.spec.terminationGracePeriodSeconds":           40,
		}},
		{"cluster.yaml", "ConfigMap Service Service StatefulSet PodDisruptionBudget", map[string]any{
			"spec.replicas": 3, "spec.template.spec.containers.0.args.4": "$(POD_IP):7468",
			"spec.template.spec.containers.0.envFrom.0.secretRef.name": "stint-bucket",
			"spec.template.spec.containers.0.volumeMounts.2":           nil,
		}},
	} {
		t.Run(c.values, func(t *testing.T) {
			values, err := os.ReadFile(filepath.Join(chartDir, "ci", c.values))
			if err != nil {
				t.Fatal(err)
			}
			objects, notes, err := rendered(t, string(values))
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			of := map[string]map[string]any{}
			for _, o := range objects {
				kind := fmt.Sprint(o["kind"])
				kinds = append(kinds, kind)
				if of[kind] == nil {
					of[kind] = o
				}
				if o["apiVersion"] == nil || !strings.HasPrefix(fmt.Sprint(at(o, "metadata.name")), "grid") ||
					at(o, "metadata.labels") == nil {
					t.Errorf("an object without version, name or labels: %v", o)
				}
			}
			if got := strings.Join(kinds, " "); got != c.kinds {
				t.Errorf("%s, expected %s", got, c.kinds)
			}
			set := of["StatefulSet"]
			for path, want := range c.want {
				if got := at(set, path); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: %v, expected %v", path, got, want)
				}
			}
			for _, from := range []string{"spec.selector.matchLabels", "spec.template.metadata.labels"} {
				for key, v := range at(of["Service"], "spec.selector").(map[string]any) {
					labels := at(set, from).(map[string]any)
					if labels[key] != v {
						t.Errorf("the service selects %s=%v; %s has %v", key, v, from, labels[key])
					}
				}
			}
			checkChartConfig(t, of["ConfigMap"])
			if !strings.Contains(notes, "http://grid.sched:7468") {
				t.Error(notes)
			}
		})
	}
}

// checkChartConfig has the service read the configuration and policy of a chart.
func checkChartConfig(t *testing.T, o map[string]any) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "serve.yaml")
	if err := os.WriteFile(name, []byte(fmt.Sprint(at(o, "data").(map[string]any)["serve.yaml"])), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := loadServeConfig(name)
	if err != nil {
		t.Fatal(err)
	}
	if conf.Data != "/var/lib/stint" || len(conf.Tokens) == 0 {
		t.Errorf("data %s, %d tokens", conf.Data, len(conf.Tokens))
	}
	policy := at(o, "data").(map[string]any)["plan.yaml"]
	if (policy != nil) != (conf.Plan == "/etc/stint/plan.yaml") {
		t.Errorf("the configuration begins with the policy %q", conf.Plan)
	}
	if policy != nil {
		if _, err := plan.Parse("plan.yaml", []byte(fmt.Sprint(policy))); err != nil {
			t.Error(err)
		}
	}
}

// TestChartRefuses says what is missing, or not for the chart's user to say.
func TestChartRefuses(t *testing.T) {
	const bare = `tokens: [{name: a, role: admin, sha256: "00"}]`
	const token = bare + ", insecure: true"
	for values, want := range map[string]string{
		"": "config.tokens: must not be empty",
		"{config: {" + bare + "}}": "config.tls: must name a certificate and a key, or config.insecure " +
			"must be true",
		"{config: {" + token + "}, replicas: 2}":           "replicas: more than 1 needs config.cluster.bucket",
		"{config: {" + token + ", listen: 'localhost:1'}}": "config.listen: is the chart's to say",
		"{config: {" + token + ", data: /tmp}}":            "config.data: is the chart's to say",
		"{config: {" + token + "}, monitoring: {scrape: true}}": "monitoring.tokenSecret.name: /metrics takes a " +
			"token",
		"{config: {" + token + ", cluster: {name: a}}, replicas: 2}": "replicas: more than 1 needs " +
			"config.cluster.bucket",
	} {
		_, _, err := rendered(t, values)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %s", values, err, want)
		}
	}
	if _, _, err := rendered(t, "{config: {"+bare+", tls: {certificate: /run/stint/tls/tls.crt}}}"); err != nil {
		t.Error(err)
	}
}

// TestChartTLS has probes ask by the scheme that the configuration says.
func TestChartTLS(t *testing.T) {
	for tls, want := range map[string]string{", insecure: true": "HTTP",
		", tls: {certificate: /run/stint/tls/tls.crt}": "HTTPS"} {
		objects, _, err := rendered(t, `{config: {tokens: [{name: a, role: admin, sha256: "00"}]`+tls+"}}")
		if err != nil {
			t.Fatal(err)
		}
		set := objects[slices.IndexFunc(objects, func(o map[string]any) bool { return o["kind"] == "StatefulSet" })]
		for _, probe := range []string{"livenessProbe", "readinessProbe"} {
			if got := at(set, "spec.template.spec.containers.0."+probe+".httpGet.scheme"); got != want {
				t.Errorf("%s: %s asks by %v, expected %s", tls, probe, got, want)
			}
		}
	}
}

// TestChartFiles has the chart's copies of alerts and dashboard be what dist has.
func TestChartFiles(t *testing.T) {
	for copied, from := range map[string]string{"files/alerts.yaml": "prometheus/alerts.yaml",
		"files/stint.json": "grafana/stint.json"} {
		a, err := os.ReadFile(filepath.Join(chartDir, copied))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(chartDir, "..", from))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("dist/chart/%s is another than dist/%s: copy it", copied, from)
		}
	}
}
