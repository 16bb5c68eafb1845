package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// MarshalJSON writes a row so that whole numbers and shares can be told apart: a share has a decimal point or an
// exponent.
func (r Row) MarshalJSON() ([]byte, error) {
	values := make([]json.RawMessage, len(r.Values))
	for i, v := range r.Values {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if _, share := v.(float64); share && !bytes.ContainsAny(text, ".e") {
			text = append(text, ".0"...)
		}
		values[i] = text
	}
	return json.Marshal(struct {
		Name   string            `json:"name"`
		Values []json.RawMessage `json:"values"`
	}{r.Name, values})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Row) UnmarshalJSON(text []byte) error {
	var of struct {
		Name   string `json:"name"`
		Values []any  `json:"values"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&of); err != nil {
		return err
	}
	r.Name, r.Values = of.Name, []any{}
	for _, v := range of.Values {
		n, ok := v.(json.Number)
		if !ok && v != nil {
			return fmt.Errorf("row %s: a value is no number", of.Name)
		}
		if !ok {
			r.Values = append(r.Values, nil)
			continue
		}
		if whole, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
			r.Values = append(r.Values, whole)
			continue
		}
		share, err := n.Float64()
		if err != nil {
			return err
		}
		r.Values = append(r.Values, share)
	}
	return nil
}
