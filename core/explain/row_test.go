package explain

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestRow writes rows as JSON and reads them back: shares that are whole stay shares.
func TestRow(t *testing.T) {
	for want, r := range map[string]Row{
		`{"name":"/A","values":[null,3,0.0,1.0,0.25,0.000001]}`: {"/A", []any{nil, int64(3), 0.0, 1.0, 0.25, 1e-6}},
		`{"name":"held","values":[]}`:                           {"held", []any{}},
		`{"name":"x","values":[9007199254740993,1e-7]}`:         {"x", []any{int64(1<<53 + 1), 1e-7}},
	} {
		text, err := json.Marshal(r)
		if err != nil || string(text) != want {
			t.Errorf("%s, expected %s: %v", text, want, err)
		}
		var back Row
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, r) {
			t.Errorf("%s reads as %+v: %v", text, back, err)
		}
	}
	for _, text := range []string{`{"values":["3"]}`, `{"values":3}`, `{"values":[1e999]}`} {
		if err := json.Unmarshal([]byte(text), &Row{}); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
