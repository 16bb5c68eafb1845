package table

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
)

// rowsOfTable are the values of each field of a table, by row. A field without values is a fault: what is written would
// not have it.
func rowsOfTable(t *testing.T, table any) map[string]any {
	t.Helper()
	fields := map[string]any{}
	v := reflect.ValueOf(table).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name == "Name" {
			continue
		}
		if v.Field(i).IsZero() {
			t.Errorf("%s: the test has no values of %s, so it does not tell whether they are written", v.Type(), name)
		}
		fields[name] = v.Field(i).Interface()
		if c, ok := fields[name].(cluster.TextColumn); ok {
			var texts []string
			for row := range c.Code {
				text := "" // as none
				if code := c.At(row); code != cluster.Null {
					text = c.Names.String(code)
				}
				texts = append(texts, text)
			}
			fields[name] = texts
		}
	}
	return fields
}

// TestWriteDemand writes a demand table with all columns and reads it again.
func TestWriteDemand(t *testing.T) {
	text := "consumer,allocation,sub,units,plan,requirement,max_per_host,min_units,ncpus,maxmem\n" +
		"/A,\"a,1\",,3,grid,\"select(zone == \"\"x\"\")\",2,3,1,\n" +
		"/B/ü,a,s,0,,,,,0,9007199254740992\n"
	o := Options{Dimensions: []string{"ncpus", "maxmem"}}
	want, err := ReadDemand(strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, want.Schema(o.Dimensions), []int32{0, 1}); err != nil {
		t.Fatal(err)
	}
	got, err := ReadDemand(&b, o)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := rowsOfTable(t, want), rowsOfTable(t, got); !reflect.DeepEqual(a, b) {
		t.Errorf("got  %v\nwant %v", b, a)
	}
	b.Reset()
	if err := Write(&b, want.Schema(o.Dimensions), nil); err != nil {
		t.Fatal(err)
	}
	if got, err = ReadDemand(&b, o); err != nil || got.Rows != 0 {
		t.Errorf("a table without rows: %v", err)
	}
	b.Reset()
	if err := Write(&b, want.Schema(o.Dimensions), []int32{1}); err != nil {
		t.Fatal(err)
	}
	if got, err = ReadDemand(&b, o); err != nil || got.Rows != 1 || got.Size[1][0] != 1<<53 {
		t.Errorf("the second row alone: %v, %v", got, err)
	}
}

// TestWriteHoldings does the same with released units.
func TestWriteHoldings(t *testing.T) {
	text := "consumer,allocation,sub,host,units,done\n/A,a,,h1,3,true\n/A,a,s,\"h\"\"2\",1,\n"
	want, err := ReadHoldings(strings.NewReader(text), Options{}, true)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, want.Releases(), []int32{0, 1}); err != nil {
		t.Fatal(err)
	}
	got, err := ReadHoldings(&b, Options{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := rowsOfTable(t, want), rowsOfTable(t, got); !reflect.DeepEqual(a, b) {
		t.Errorf("got  %v\nwant %v", b, a)
	}
}
