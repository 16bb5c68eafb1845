package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
)

// TestChart draws two curves: the picture is well-formed, and each point is where it belongs.
func TestChart(t *testing.T) {
	c := &chart{title: "T", xName: "x", yName: "y", x: []float64{10, 100, 1000}, lines: []line{
		{"a", "#111", []float64{1, 10, 100}}, {"b", "#222", []float64{100, 10, 1}},
	}}
	var out bytes.Buffer
	if err := c.write(&out); err != nil {
		t.Fatal(err)
	}
	var got []string
	d := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, &out)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			got = append(got, e.Attr[0].Value+" "+e.Attr[1].Value)
		}
	}
	at := func(x, y float64) string {
		return strconv.FormatFloat(x, 'f', 1, 64) + " " + strconv.FormatFloat(y, 'f', 1, 64)
	}
	middle := at((left+right)/2, (top+bottom)/2)
	want := []string{at(left, bottom), middle, at(right, top), at(left, top), middle, at(right, bottom)}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("points at %v, want %v", got, want)
	}
}

// TestAxis spans powers of ten, also where all values are one.
func TestAxis(t *testing.T) {
	if a := axisOf(0, 1, []float64{3, 400}); a.low != 0 || a.high != 3 {
		t.Errorf("%+v", a)
	}
	if a := axisOf(0, 1, []float64{10}); a.low != 1 || a.high != 2 || a.at(10) != 0 {
		t.Errorf("%+v", a)
	}
}
