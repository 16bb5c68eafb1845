package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled is the schema, ready to validate.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance is a policy file as a validator sees it.
func instance(text []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
}

// TestSchemaTakes validates all policy files of the tests that the parser takes.
func TestSchemaTakes(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("../../testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	plans := 0
	try := func(where string, text []byte) {
		if _, err := Parse(where, text); err != nil {
			return
		}
		plans++
		v, err := instance(text)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: the parser takes the file, the schema does not: %v", where, err)
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, doc := range strings.Split(string(text), "\n---\n") {
			var one struct {
				Plan  yaml.RawMessage
				Steps []struct{ Plan yaml.RawMessage }
			}
			if err := yaml.Unmarshal([]byte(doc), &one); err != nil {
				t.Fatalf("%s, scenario %d: %v", file, i, err)
			}
			try(fmt.Sprintf("%s, scenario %d", file, i), one.Plan)
			for _, step := range one.Steps {
				try(fmt.Sprintf("%s, scenario %d, a step", file, i), step.Plan)
			}
		}
	}
	whole, err := filepath.Glob("../../cmd/stint/init/*/plan.yaml")
	if err != nil || len(whole) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range append(whole, "testdata/spec.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		try(file, text)
	}
	if plans < 400 {
		t.Errorf("only %d policy files were tried", plans)
	}
}

// only are faults that the file as a whole has, or that go beyond what a schema says.
var only = regexp.MustCompile(`unknown time zone|must be at least 1ms|column of stint's tables|^the dimension is listed twice|` +
	`is defined a second time|must be select\(…\) alone|is missing\n|is needed\n|there is no such|overlaps the dated|must be a date|must be after from|has no such consumer|` +
	`goes with|already a plan|in plan \S+ already|names no consumer|does not name its parent|needs a policy|` +
	`own \d+|owns|own [\d.]+%|the limit of|reserve|means nothing under|is no leaf|is under policy|no window is open|` +
	`window \S+ overlaps|already a window|at most three decimals|none of the plan's|lists host|gives no slots|system service|` +
	`is in no division|already a division|in division \S+ already|there are no divisions|` +
	`only leaves have budgets|holds in all windows|here: per, units_hours|a half-life is at |a ratio is at most|takes nothing back to make room|a device holds what it has`)

// TestSchemaRefuses holds that the schema names the place of every fault of testdata/faults.txt that a schema can tell.
func TestSchemaRefuses(t *testing.T) {
	s := compiled(t)
	file, err := os.ReadFile("testdata/faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	told, untold := 0, 0
	for _, one := range strings.Split(string(file), "\n## ")[1:] {
		what, body, _ := strings.Cut(one, "\n")
		text, _, _ := strings.Cut("\n"+body, "\n----\n")
		v, err := instance([]byte(text))
		if err != nil {
			continue // no YAML at all
		}
		places := map[string]bool{}
		var invalid *jsonschema.ValidationError
		if err := s.Validate(v); errors.As(err, &invalid) {
			gather(invalid, places)
		}
		_, err = Parse("p", []byte(text))
		var faults Faults
		if !errors.As(err, &faults) {
			t.Fatalf("%s: %v", what, err)
		}
		for _, f := range faults {
			switch {
			case places[f.Path] || places[strings.TrimSuffix(f.Path, "."+lastKey(f.Path))] ||
				f.Path != "" && places[above(f.Path)]:
				told++
			case only.MatchString(f.Reason):
				untold++
			default:
				t.Errorf("%s: the schema has nothing against %s: %s", what, f.Path, f.Reason)
			}
		}
	}
	t.Logf("the schema tells %d faults, %d are for the parser alone", told, untold)
	if told < 60 {
		t.Errorf("the schema tells %d faults only", told)
	}
}

// gather notes the places that a validator complains of, as the parser names them.
func gather(e *jsonschema.ValidationError, places map[string]bool) {
	if len(e.Causes) == 0 {
		var path strings.Builder
		for _, step := range e.InstanceLocation {
			if strings.Trim(step, "0123456789") == "" {
				path.WriteString("[" + step + "]")
			} else {
				if path.Len() > 0 {
					path.WriteByte('.')
				}
				path.WriteString(step)
			}
		}
		places[path.String()] = true
	}
	for _, c := range e.Causes {
		gather(c, places)
	}
}

func lastKey(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// above is the place that holds a place.
func above(path string) string {
	i := strings.LastIndexAny(path, ".[")
	return path[:max(0, i)]
}
