package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// dump writes a table's columns as text, a row a line, so that tables compare whatever their codes are.
func dump(columns ...any) string {
	var b strings.Builder
	for _, c := range columns {
		switch c := c.(type) {
		case cluster.TextColumn:
			for _, code := range c.Code {
				if code == cluster.Null {
					b.WriteString("- ")
				} else {
					fmt.Fprintf(&b, "%q ", c.Names.Bytes(code))
				}
			}
		case [][]int64:
			for _, v := range c {
				fmt.Fprint(&b, v, " ")
			}
		default:
			fmt.Fprint(&b, c)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func dumpDemand(t *cluster.DemandTable) string {
	return dump(t.Rows, t.Consumer, t.Allocation, t.Sub, t.Plan, t.Requirement, t.Units, t.Size, t.MaxPerHost,
		t.MinUnits)
}

func dumpHosts(t *cluster.HostTable) string {
	s := dump(t.Rows, t.Host, t.State, t.Size)
	for _, a := range t.Attr {
		s += a.Name + dump(int(a.Kind), a.Valid, a.Number, a.Bool, a.Text)
		if a.Keep != nil {
			s += dump("keep", a.Keep)
		}
	}
	return s
}

// TestDemandFormats gives one table in every text format: all must read the same (chapter 7).
func TestDemandFormats(t *testing.T) {
	inputs := map[string]string{
		"a.csv": "\ufeffunits,consumer,allocation,sub,maxmem,ncpus,max_per_host,min_units,requirement,plan\r\n" +
			"5,/A,\"a,1\",,1024,2,,5,\"select(\"\"x\"\")\",\r\n" +
			"\r\n" +
			"0,/A,é,s,0,9007199254740992,1,,,gpu",
		"a.ndjson": `{"units":5,"consumer":"/A","allocation":"a,1","maxmem":1024,"ncpus":2,"min_units":5,"requirement":"select(\"x\")"}` + "\n \r\n" +
			`{ "ncpus" : 9007199254740992, "allocation":"\u00e9","sub":"s","plan":"gpu","requirement":null,"consumer":"\/A","units":0,"max_per_host":1,"maxmem":0}`,
		"a.json": `[{"units":5,"consumer":"/A","allocation":"a,1","sub":"","maxmem":1024,"ncpus":2,"min_units":5,"requirement":"select(\"x\")"} ,
			{"consumer":"/A","units":0,"allocation":"é","sub":"s","ncpus":9007199254740992,"plan":"gpu","max_per_host":1}]
			`,
		"b.json": `{"units": [5, 0], "consumer":["/A","/A"],"allocation" : ["a,1","é"],"sub":["","s"],
			"maxmem":[1024,0],"ncpus":[2,9007199254740992],"max_per_host":[null,1],"min_units":[5,null],"requirement":["select(\"x\")",""],"plan":[null,"gpu"]}`,
	}
	want := "2\n\"/A\" \"/A\" \n\"a,1\" \"é\" \n- \"s\" \n- \"gpu\" \n\"select(\\\"x\\\")\" - \n[5 0]\n" +
		"[2 9007199254740992] [1024 0] [] \n[-1 1]\n[5 1]\n"
	for name, text := range inputs {
		for _, told := range []string{name, ""} {
			o := Options{Name: told, Dimensions: []string{"ncpus", "maxmem", "gpus"}}
			got, err := ReadDemand(strings.NewReader(text), o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if dumpDemand(got) != want {
				t.Errorf("%s:\n%s\nexpected\n%s", name, dumpDemand(got), want)
			}
		}
	}
}

// TestHosts reads hosts with attributes of each kind, which are told from all of a column's values.
func TestHosts(t *testing.T) {
	inputs := []string{
		"host,state,ncpus,mem,gpu,model,none,mixed\nh1,,4,1.5,true,\"x\ny\",,1\n" +
			"h2,closed,,-2e3,,,,true\nh3,unavail,0,,false,007,,\n",
		`{"host":"h1","state":null,"ncpus":4,"mem":1.5,"gpu":true,"model":"x\ny","none":null,"mixed":1}
		{"host":"h2","state":"closed","ncpus":null,"mem":-2e3,"gpu":null,"model":null,"none":null,"mixed":true}
		{"host":"h3","state":"unavail","ncpus":0,"mem":null,"gpu":false,"model":"007","none":"","mixed":null}`,
		`{"host":["h1","h2","h3"],"state":[null,"closed","unavail"],"ncpus":[4,null,0],"mem":[1.5,-2e3,null],
		"gpu":[true,null,false],"model":["x\ny","","007"],"none":[null,null,null],"mixed":[1,true,null]}`,
	}
	want := "3\n\"h1\" \"h2\" \"h3\" \n[0 1 3]\n[4 0 0] [] \n" +
		"mem0\n[true true false]\n[1.5 -2000 0]\n[]\n\n" +
		"gpu2\n[true false true]\n[]\n[true false false]\n\n" +
		"model1\n[true false true]\n[]\n[]\n\"x\\ny\" - \"007\" \n" +
		"none1\n[false false false]\n[]\n[]\n- - - \n" +
		"mixed1\n[true true false]\n[]\n[]\n\"1\" \"true\" - \n"
	for i, text := range inputs {
		got, err := ReadHosts(strings.NewReader(text), Options{Dimensions: []string{"ncpus", "gpus"}})
		if err != nil {
			t.Errorf("input %d: %v", i, err)
		} else if dumpHosts(got) != want {
			t.Errorf("input %d:\n%s\nexpected\n%s", i, dumpHosts(got), want)
		}
	}
	numbers, err := ReadHosts(strings.NewReader("host,a,b,c\nh1,1,+.5,inf\nh2,007,1e400,1_0\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range []plan.Kind{plan.Number, plan.Text, plan.Text} {
		if a := numbers.Attr[i]; a.Kind != kind {
			t.Errorf("attribute %s is of kind %d, expected %d", a.Name, a.Kind, kind)
		}
	}
}

// TestHostsAbsent: a row object that lacks a key which another has says nothing of that column; null says no value.
func TestHostsAbsent(t *testing.T) {
	rows := []string{`{"host":"h1"}`, `{"host":"h2","state":"closed","ncpus":7,"mem":1.5,"model":"x"}`,
		`{"host":"h3","ncpus":null,"state":null,"mem":null,"model":null}`,
		`{"host":"h4","gpu":true}`, `{"host":"h5"}`}
	want := "5\n\"h1\" \"h2\" \"h3\" \"h4\" \"h5\" \n[4 1 0 4 4]\n[-1 7 0 -1 -1] [] \n" +
		"mem0\n[false true false false false]\n[0 1.5 0 0 0]\n[]\n\nkeep\n[true false false true true]\n" +
		"model1\n[false true false false false]\n[]\n[]\n- \"x\" - - - \nkeep\n[true false false true true]\n" +
		"gpu2\n[false false false true false]\n[]\n[false false false true false]\n\nkeep\n[true true true " +
		"false true]\n"
	for name, text := range map[string]string{"h.ndjson": strings.Join(rows, "\n"),
		"h.json": "[" + strings.Join(rows, ",") + "]"} {
		got, err := ReadHosts(strings.NewReader(text), Options{Name: name, Dimensions: []string{"ncpus", "gpus"}})
		if err != nil {
			t.Fatal(err)
		}
		if s := dumpHosts(got); s != want {
			t.Errorf("%s:\n%s\nexpected\n%s", name, s, want)
		}
	}
}

func TestHoldings(t *testing.T) {
	text := "consumer,allocation,host,units,done\n/A,a,h1,3,true\n/A,a,h2,1,\n/A,a,h2,1,false\n"
	got, err := ReadHoldings(strings.NewReader(text), Options{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if s := dump(got.Rows, got.Host, got.Sub, got.Units,
		got.Done); s != "3\n\"h1\" \"h2\" \"h2\" \n\n[3 1 1]\n[true false false]\n" {
		t.Error(s)
	}
	_, err = ReadHoldings(strings.NewReader(text), Options{Name: "r.csv"}, false)
	if fmt.Sprint(err) != "r.csv, column done: unknown column" {
		t.Errorf("done in running: %v", err)
	}
}

// TestEmpty: a header or brackets without rows are a table, nothing at all is none.
func TestEmpty(t *testing.T) {
	for _, text := range []string{"consumer,allocation,units", "[]", " [ ]\n",
		`{"consumer":[],"allocation":[],"units":[]}`} {
		if got, err := ReadDemand(strings.NewReader(text), Options{}); err != nil || got.Rows != 0 ||
			got.Consumer.Names == nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// malformed are inputs of demand (dimension ncpus), by what is wrong with them.
var malformed = []struct{ name, text, want string }{
	{"x", "", "x: the input is empty"},
	{"x.csv", "\n\r\n", "x.csv: the input is empty"},
	{"x.csv", "\ufeff", "x.csv: the input is empty"},
	{"x.csv", "consumer,units\n/A,1\n", "x.csv, column allocation: required column is missing"},
	{"x.csv", "consumer,allocation,units,colour\n", `x.csv, column colour: unknown column`},
	{"x.csv", "consumer,allocation,units,\n", `x.csv: unknown column`},
	{"x.csv", "consumer,allocation,units,units\n", "x.csv, column units: stands in the header twice"},
	{"x.csv", "consumer;allocation;units\n",
		"x.csv: the header has semicolons and no comma: separate values by commas"},
	{"x.csv", "H\n/A,a,-1\n", `x.csv: row 1, column units, value "-1": not a whole number from 0 to 9007199254740992`},
	{"x.csv", "H\n/A,a,1.5\n",
		`x.csv: row 1, column units, value "1.5": not a whole number from 0 to 9007199254740992`},
	{"x.csv", "H\n/A,a,5.5\n",
		`x.csv: row 1, column units, value "5.5": not a whole number from 0 to 9007199254740992`},
	{"x.csv", "H\n/A,a,1e99\n",
		`x.csv: row 1, column units, value "1e99": not a whole number from 0 to 9007199254740992`},
	{"x.csv", "H\n/A,a,NaN\n",
		`x.csv: row 1, column units, value "NaN": not a whole number from 0 to 9007199254740992`},
	{"x.csv", "H\n/A,a, 1\n", `x.csv: row 1, column units, value " 1": not a whole number from 0 to 9007199254740992`},
	{"x.csv", "H\n/A,a,9007199254740993\n",
		`x.csv: row 1, column units, value "9007199254740993": not a whole number from 0 to 9007199254740992`},
	{"x.csv", "H\n/A,a,99999999999999999999999999\n",
		`x.csv: row 1, column units, value "99999999999999999999999999": not a whole number from 0 to 9007199254740992`},
	{"x.csv", "H\n/A,a,\n", "x.csv: row 1, column units: is missing"},
	{"x.csv", "H\n/A,a,1\n,a,1\n", "x.csv: row 2, column consumer: is missing"},
	{"x.csv", "H\n/A,a,1\n/A,,1\n", "x.csv: row 2, column allocation: is missing"},
	{"x.csv", "H\n/A,a\x00b,1\n", `x.csv: row 1, column allocation, value "a\x00b": has a control character`},
	{"x.csv", "H\n/A,a\x7fb,1\n", `x.csv: row 1, column allocation, value "a\x7fb": has a control character`},
	{"x.csv", "H\n/A,a\u0085b,1\n", `x.csv: row 1, column allocation, value "a\u0085b": has a control character`},
	{"x.csv", "H\n/A,\"a\nb\",1\n", `x.csv: row 1, column allocation, value "a\nb": has a control character`},
	{"x.csv", "H\n/A,a\xffb,1\n", `x.csv: row 1, column allocation, value "a\xffb": not valid UTF-8`},
	{"x.csv", "H\n/A," + strings.Repeat("a", 257) + ",1\n",
		`x.csv: row 1, column allocation, value "` + strings.Repeat("a", 64) + `…": longer than 256 bytes`},
	{"x.csv", "H\n/A,a\n", "x.csv: row 1: 2 fields, where the header has 3"},
	{"x.csv", "H\n/A,a,1,2\n/A,a,x\n",
		"x.csv: row 1: 4 fields, where the header has 3 (a comma at the end of the line, or in a number?)\n" +
			`x.csv: row 2, column units, value "x": not a whole number from 0 to 9007199254740992`},
	{"x.csv", "H\n/A,a,1\n/A,a\"b,1\n", "x.csv: row 2: a quote within a field that does not begin with one, at byte " +
		"offset 37"},
	{"x.csv", "H\n/A,\"a\"b,1\n", "x.csv: row 1: text behind the closing quote of a field, at byte offset 32"},
	{"x.csv", "H\n/A,\"a,1\n", "x.csv: row 1: a quote is opened and never closed, at byte offset 29"},
	{"x.csv", "consumer,allocation,units,max_per_host\n/A,a,1,0\n",
		`x.csv: row 1, column max_per_host, value "0": not a whole number from 1 to 9007199254740992`},
	{"x.csv", "consumer,allocation,units,min_units\n/A,a,1,0\n",
		`x.csv: row 1, column min_units, value "0": not a whole number from 1 to 9007199254740992`},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":3,"min_units":1.5}`,
		`x.ndjson: row 1, column min_units, value "1.5": not a whole number from 1 to 9007199254740992`},
	{"x.csv", "consumer,allocation,units,requirement\n/A,a,1," + strings.Repeat("r", 4097),
		`x.csv: row 1, column requirement, value "` + strings.Repeat("r", 64) + `…": longer than 4096 bytes`},
	{"x.csv", `[{"consumer":"/A"}]`, "x.csv: told to be csv, but the content looks like json"},
	{"x.csv", "PAR1....", "x.csv: told to be csv, but the content looks like parquet"},
	{"x.json", "PAR1....", "x.json: told to be json, but the content looks like parquet"},
	{"x.csv", "\xff\xff\xff\xff\x00\x00\x00\x00", "x.csv: told to be csv, but the content looks like arrow"},
	{"x.parquet", "consumer,units\n",
		"x.parquet: told to be parquet, but the content is not (it begins with 63 6f 6e 73)"},
	{"x.arrow", "[]", "x.arrow: told to be arrow, but the content looks like json"},
	{"x.arrow", "ARROW1\x00\x00", "x.arrow: the content is an Arrow file; an Arrow IPC stream is expected"},
	{"x.csv.gz", "consumer,units\n", "x.csv.gz: told to be gzip, but the content is not (it begins with 63 6f 6e 73)"},
	{"x.csv.zst", "\x1f\x8b\x08\x00",
		"x.csv.zst: told to be zstd, but the content is not (it begins with 1f 8b 08 00)"},
	{"x.gz", "\x1f\x8b\x08\x00", "x.gz: gzip: unexpected EOF"},
	{"x.zst", "\x28\xb5\x2f\xfd", "x.zst: zstd: unexpected EOF"},
	{"x.ndjson", "\n\n", "x.ndjson: the input is empty"},
	{"x.ndjson", "[]", "x.ndjson: told to be ndjson, but the content looks like json"},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":1`,
		"x.ndjson: row 1: ends within a value, at byte offset 43"},
	{"x.ndjson", "{\"consumer\":\"/A\",\n\"allocation\":\"a\"}",
		"x.ndjson: row 1: ends within a value, at byte offset 18"},
	{"x.ndjson", `{"units":1}`,
		"x.ndjson: row 1, column consumer: is missing\nx.ndjson: row 1, column allocation: is missing"},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":1} x`,
		"x.ndjson: row 1: text behind the row object of a line, at byte offset 45"},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":1}{}`,
		"x.ndjson: row 1: text behind the row object of a line, at byte offset 44"},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":1,"units":2}`,
		"x.ndjson: row 1, column units: stands in the row twice"},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":1,"x\ty":2}`,
		"x.ndjson: row 1, column x\ty: unknown column"},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":"1"}`,
		`x.ndjson: row 1, column units, value "1": not a whole number from 0 to 9007199254740992`},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":1.25}`,
		`x.ndjson: row 1, column units, value "1.25": not a whole number from 0 to 9007199254740992`},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":-0}`,
		`x.ndjson: row 1, column units, value "-0": not a whole number from 0 to 9007199254740992`},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":null}`, "x.ndjson: row 1, column units: is missing"},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":01}`,
		"x.ndjson: row 1: a malformed number, at byte offset 42"},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":1e}`,
		"x.ndjson: row 1: a malformed number, at byte offset 42"},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":NaN}`, "x.ndjson: row 1: no value, at byte offset 42"},
	{"x.ndjson", `{"consumer":"/A","allocation":"a","units":nul}`, "x.ndjson: row 1: no value, at byte offset 42"},
	{"x.ndjson", `{"consumer":7,"allocation":"a","units":1}`,
		`x.ndjson: row 1, column consumer, value "7": not a text`},
	{"x.ndjson", `{"consumer":"","allocation":"a","units":1}`, "x.ndjson: row 1, column consumer: is missing"},
	{"x.ndjson", `{"consumer":["/A"],"allocation":"a","units":1}`,
		"x.ndjson: row 1: an object or array where a plain value is expected, at byte offset 12"},
	{"x.ndjson", `{"consumer":"\ud800","allocation":"a","units":1}`,
		"x.ndjson: row 1: half of a surrogate pair in a string, at byte offset 13"},
	{"x.ndjson", `{"consumer":"\ud800\u0041","allocation":"a","units":1}`,
		"x.ndjson: row 1: half of a surrogate pair in a string, at byte offset 13"},
	{"x.ndjson", `{"consumer":"\udc00\ud800","allocation":"a","units":1}`,
		"x.ndjson: row 1: half of a surrogate pair in a string, at byte offset 13"},
	{"x.ndjson", `{"consumer":"\u00zz","allocation":"a","units":1}`,
		`x.ndjson: row 1: a malformed \u escape in a string, at byte offset 13`},
	{"x.ndjson", `{"consumer":"\x","allocation":"a","units":1}`,
		"x.ndjson: row 1: an unknown escape in a string, at byte offset 13"},
	{"x.ndjson", "{\"consumer\":\"\xff\",\"allocation\":\"a\",\"units\":1}",
		`x.ndjson: row 1, column consumer, value "\xff": not valid UTF-8`},
	{"x.ndjson", "{\"consumer\":\"a\tb\",\"allocation\":\"a\",\"units\":1}",
		"x.ndjson: row 1: a control character in a string, at byte offset 14"},
	{"x.ndjson", `{"consumer":"a\tb","allocation":"a","units":1}`,
		`x.ndjson: row 1, column consumer, value "a\tb": has a control character`},
	{"x.ndjson", `{consumer:"a"}`, "x.ndjson: row 1: a key in quotes is expected, at byte offset 1"},
	{"x.ndjson", `{"consumer" "a"}`, "x.ndjson: row 1: a colon is expected, at byte offset 12"},
	{"x.ndjson", `{"consumer":"a",}`, "x.ndjson: row 1: a key in quotes is expected, at byte offset 16"},
	{"x.ndjson", `{"consumer":"a";}`, "x.ndjson: row 1: a comma or the end of the row is expected, at byte offset 15"},
	{"x.ndjson", "7", "x.ndjson: row 1: a row object is expected, at byte offset 0"},
	{"x.json", "7", "x.json: an array of row objects or an object of columns is expected, at byte offset 0"},
	{"x.json", " \n", "x.json: ends within a value, at byte offset 2"},
	{"x.json", "[", "x.json: ends within a value, at byte offset 1"},
	{"x.json", "[7]", "x.json: row 1: a row object is expected, at byte offset 1"},
	{"x.json", "[] x", "x.json: text behind the end of the table, at byte offset 3"},
	{"x.json", `[{"consumer":"/A","allocation":"a","units":1},]`,
		"x.json: row 2: a row object is expected, at byte offset 46"},
	{"x.json", `[{"consumer":"/A","allocation":"a","units":1} {}]`,
		"x.json: row 1: a comma or the closing bracket is expected, at byte offset 46"},
	{"x.json", `[{"consumer":"/A","allocation":"a","units":1},{"units":[1]}]`,
		"x.json: row 2: an object or array where a plain value is expected, at byte offset 55"},
	{"x.json", `{"consumer":"/A","allocation":"a","units":1}`,
		"x.json: a column is an array of values, at byte offset 12"},
	{"x.json", `{}`, "x.json, column consumer: required column is missing\nx.json, column allocation: required " +
		"column is missing\nx.json, column units: required column is missing"},
	{"x.json", `{"consumer":["/A"],"allocation":["a","b"],"units":[1]}`,
		"x.json, column allocation: 2 values, where the columns before it have 1"},
	{"x.json", `{"consumer":["/A"],"consumer":["/A"],"units":[1]}`,
		"x.json, column consumer: stands in the table twice"},
	{"x.json", `{"consumer":["/A","/B"],"allocation":["a","b"],"units":[1,-2]}`,
		`x.json: row 2, column units, value "-2": not a whole number from 0 to 9007199254740992`},
	{"x.json", `{"consumer":["/A",["/B"]]}`,
		"x.json: row 2: an object or array where a plain value is expected, at byte offset 18"},
	{"x.json", `{"colour":["red"]}`, "x.json, column colour: unknown column"},
}

func TestMalformed(t *testing.T) {
	for _, c := range malformed {
		text := strings.Replace(c.text, "H\n", "consumer,allocation,units\n", 1)
		o := Options{Name: c.name, Dimensions: []string{"ncpus"}}
		got, err := ReadDemand(strings.NewReader(text), o)
		if fmt.Sprint(err) != c.want {
			t.Errorf("%s %.80q:\n%v\nexpected\n%s", c.name, c.text, err, c.want)
		}
		var faults *cluster.Faults
		if got != nil || !errors.As(err, &faults) {
			t.Errorf("%s %.80q: gave %v and no faults", c.name, c.text, got)
		}
	}
}

func TestMalformedHosts(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"state\nok\n", "h.csv, column host: required column is missing"},
		{"host,state\nh1,open\n",
			`h.csv: row 1, column state, value "open": no state of a host: ok, closed, draining or unavail is expected`},
		{"host\nh1\nh2\nh1\n", `h.csv: row 3, column host, value "h1": stands in the table twice`},
		{"host\nh1\nh1\n", `h.csv: row 2, column host, value "h1": stands in the table twice`},
		{"host,\nh1,\n", "h.csv: column name: a column without a name"},
		{"host,a\x01\nh1,\n", `h.csv, value "a\x01": column name: has a control character`},
		{"host,\xff\nh1,\n", `h.csv, value "\xff": column name: not valid UTF-8`},
		{"host,a,a\nh1,,\n", "h.csv, column a: stands in the header twice"},
		{"host,a\nh1,\xff\n", `h.csv: row 1, column a, value "\xff": not valid UTF-8`},
		{"host,ncpus\nh1,x\n", `h.csv: row 1, column ncpus, value "x": not a whole number from 0 to 9007199254740992`},
	} {
		_, err := ReadHosts(strings.NewReader(c.text), Options{Name: "h.csv", Dimensions: []string{"ncpus"}})
		if fmt.Sprint(err) != c.want {
			t.Errorf("%q: %v\nexpected %s", c.text, err, c.want)
		}
	}
}

// TestFaultsAreCounted: all bad rows are counted, a hundred are listed.
func TestFaultsAreCounted(t *testing.T) {
	text := "consumer,allocation,units\n" + strings.Repeat("/A,a,x\n", 250)
	_, err := ReadDemand(strings.NewReader(text), Options{})
	var faults *cluster.Faults
	if !errors.As(err, &faults) || faults.Count != 250 || len(faults.Rows) != 100 || faults.Rows[99].Row != 100 {
		t.Errorf("%v", err)
	}
}

func TestLimits(t *testing.T) {
	wide := "host"
	for i := range 20 {
		wide += fmt.Sprintf(",a%d", i)
	}
	for _, c := range []struct {
		limits     Limits
		text, want string
	}{
		{Limits{RowsMax: 2}, "host\na\nb\nc\n", "hosts: over a limit: more than 2 rows"},
		{Limits{RowsMax: 2}, `[{"host":"a"},{"host":"b"},{"host":"c"}]`, "hosts: over a limit: more than 2 rows"},
		{Limits{RowsMax: 2}, `{"host":["a","b","c"]}`, "hosts: over a limit: more than 2 rows"},
		{Limits{BytesMax: 5}, "host\na\nb\n", "hosts: over a limit: more than 5 bytes"},
		{Limits{DecodedBytesMax: 5}, "host\na\nb\n", "hosts: over a limit: more than 5 bytes after decompression"},
		{Limits{ColumnsMax: 20}, wide, "hosts: over a limit: more than 20 columns"},
		{Limits{ColumnsMax: 3}, `{"host":"a","b":1,"c":2,"d":3}`, "hosts: over a limit: more than 3 columns"},
		{Limits{ColumnsMax: 4}, "{\"host\":\"a\",\"b\":1}\n{\"host\":\"a\",\"c\":1}\n{\"host\":\"a\",\"d\":1}",
			"hosts: over a limit: more than 4 columns"},
		{Limits{FieldBytesMax: 3}, "host,a\nh,abcd\n", `hosts: row 1, column a, value "abcd": longer than 3 bytes`},
		{Limits{}, "host,a\nh,\"" + strings.Repeat("x", rowBytesMax),
			"hosts: over a limit: a row of more than 16777216 bytes (is a quote left open?)"},
	} {
		_, err := ReadHosts(strings.NewReader(c.text), Options{Limits: c.limits})
		if fmt.Sprint(err) != c.want || errors.Is(err, ErrLimit) != strings.Contains(c.want, "over a limit") {
			t.Errorf("%.40q: %v\nexpected %s", c.text, err, c.want)
		}
	}
}

// TestAttributeCells: rows that hardly take a byte must not make columns of nothing.
func TestAttributeCells(t *testing.T) {
	b := newBuilder()
	b.limits = DefaultLimits
	b.fixed, b.columns = 1, slices.Repeat([]*column{new(column)}, 1001)
	if err := b.room(attributeCellsMax / 1000); err != nil {
		t.Error(err)
	}
	if err := b.room(attributeCellsMax/1000 + 1); !errors.Is(err, ErrLimit) {
		t.Errorf("%v", err)
	}
}

// TestBrokenSource: what the source says goes through, and is no fault of the table.
func TestBrokenSource(t *testing.T) {
	broken := errors.New("connection lost")
	for _, text := range []string{"", "host\na\n", "[{", "\x1f\x8b\x08\x00\x00"} {
		_, err := ReadHosts(io.MultiReader(strings.NewReader(text), failing{broken}), Options{Name: "x"})
		var faults *cluster.Faults
		if !errors.Is(err, broken) || errors.As(err, &faults) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestNoAllocationPerRow reads into a table that has seen the rows before.
func TestNoAllocationPerRow(t *testing.T) {
	allocs := func(f Format, rows int) float64 {
		src := rateInput(t, f, rateTable(rows))
		var table cluster.DemandTable
		r := bytes.NewReader(nil)
		return testing.AllocsPerRun(5, func() {
			r.Reset(src)
			if err := ReadDemandInto(&table, r, Options{Format: f, Dimensions: rateDimensions}); err != nil {
				t.Fatal(err)
			}
			if table.Rows != rows {
				t.Fatalf("%d rows of %d", table.Rows, rows)
			}
		})
	}
	// A pool may be emptied now and then: a few more are none per row. The header of a Parquet page costs some.
	for f, more := range map[Format]float64{CSV: 15, NDJSON: 15, JSON: 15, Arrow: 30, Parquet: 300} {
		if few, many := allocs(f, 1_000), allocs(f, 30_000); many > few+more {
			t.Errorf("%s: %v allocations for 1,000 rows, %v for 30,000", f, few, many)
		}
	}
}

// TestReadDemandIntoReuse: nothing of what the table held before shows.
func TestReadDemandIntoReuse(t *testing.T) {
	var table cluster.DemandTable
	o := Options{Dimensions: []string{"ncpus", "gpus"}}
	first := "consumer,allocation,units,sub,ncpus,gpus,max_per_host,min_units\n/A,a,1,s,1,2,3,1\n/B,b,2,t,4,5,6,2\n"
	second := "consumer,allocation,units,gpus\n/C,c,7,8\n"
	for _, text := range []string{first, second, "x", second} {
		err := ReadDemandInto(&table, strings.NewReader(text), o)
		if text == "x" {
			if err == nil || table.Rows != 0 {
				t.Errorf("%v after %v", table, err)
			}
			continue
		}
		fresh, err2 := ReadDemand(strings.NewReader(text), o)
		if err != nil || err2 != nil || dumpDemand(&table) != dumpDemand(fresh) {
			t.Errorf("%q: %v %v\n%s\nexpected\n%s", text, err, err2, dumpDemand(&table), dumpDemand(fresh))
		}
	}
	if n := table.Consumer.Names.Len(); n != 1 {
		t.Errorf("the dictionary keeps %d names", n)
	}
}

// inSteps decodes a text through a window so small that rows and values are begun again and again.
func inSteps(text []byte, size int, decode func(b *builder, w *window) error) (*builder, string) {
	b := newBuilder()
	b.limits, b.open = DefaultLimits, true
	b.name("host", true)
	b.counts("ncpus", false, 0, 0)
	b.fixed = len(b.columns)
	w := window{r: bytes.NewReader(text), buf: make([]byte, size)}
	err := decode(b, &w)
	s := fmt.Sprint(err, b.faults.Rows, b.faults.Count, b.rows)
	for _, c := range b.columns {
		c.pad(b.rows)
		s += dump(c.name, c.texts(), c.ints)
	}
	return b, s
}

func checkSteps(t *testing.T, text []byte, decode func(b *builder, w *window) error) {
	_, whole := inSteps(text, 1<<12, decode)
	for _, size := range []int{1, 2, 7, 64} {
		if _, s := inSteps(text, size, decode); s != whole {
			t.Errorf("%q in steps of %d:\n%s\nexpected\n%s", text, size, s, whole)
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("host,ncpus,a\r\nh1,1,\"x\"\"y\"\r\n\r\nh2,,\"a\nb,c\"\n"))
	f.Add([]byte("host\n\"h\"\r"))
	f.Add([]byte("\"host\",\"a\"\nh,x\ry\n"))
	for _, c := range malformed {
		f.Add([]byte(strings.Replace(c.text, "H\n", "host,ncpus,units\n", 1)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		bounded(t, text, CSV)
		checkSteps(t, text, (*builder).decodeCSV)
		// encoding/csv makes \n of \r\n within quotes too, and refuses a lone quote in other words.
		oracle := csv.NewReader(bytes.NewReader(text))
		oracle.FieldsPerRecord = -1
		want, wantErr := oracle.ReadAll()
		var got [][]string
		d := csvDecoder{w: &window{r: bytes.NewReader(text), buf: make([]byte, 16)}, fieldsMax: len(text) + 1}
		ok, err := d.next(1)
		for ; ok; ok, err = d.next(1) {
			row := []string{}
			for i := range d.count {
				row = append(row, strings.ReplaceAll(string(d.field(i)), "\r\n", "\n"))
			}
			got = append(got, row)
		}
		if (err == nil) != (wantErr == nil) || err == nil && len(want)+len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n%q, %v\nencoding/csv:\n%q, %v", text, got, err, want, wantErr)
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, c := range malformed {
		f.Add([]byte(c.text))
	}
	f.Add([]byte(`[{"host":"h1","ncpus":1,"a":"\ud83d\ude00"},{"host":"h2","a":true,"b":-1.5e+3}]`))
	f.Add([]byte(`{"host":["h1","h2"],"ncpus":[1,null],"a":["\n",true]}`))
	f.Add([]byte(`[{"host":"h1","ncpus":1,"a":null},{"host": "h2", "ncpus": 10, "a": "x"}, {"host":"h3"}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		sameRows(t, text, bounded(t, text, JSON))
		checkSteps(t, text, (*builder).decodeJSON)
	})
}

// FuzzNDJSON holds each row object against encoding/json: what it says is the content is the content.
func FuzzNDJSON(f *testing.F) {
	for _, c := range malformed {
		f.Add([]byte(c.text))
	}
	f.Add([]byte(`{"host":"h1","ncpus":1,"a":"\ud83d\ude00"}` + "\n" + `{"host":"h1","a":true,"b":-1.5e+3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		bounded(t, text, NDJSON)
		checkSteps(t, text, (*builder).decodeNDJSON)
		line, _, _ := bytes.Cut(text, []byte("\n"))
		b := newBuilder()
		b.limits = DefaultLimits
		d := jsonDecoder{b: b, x: lexer{p: line, last: true}}
		err := d.line()
		want, flat := flatObject(line)
		if err != nil {
			// encoding/json takes halves of surrogate pairs, as U+FFFD.
			if flat && len(want) <= b.limits.ColumnsMax && !strings.Contains(err.Error(), "surrogate") {
				t.Errorf("%q: %v", line, err)
			}
			return
		}
		var got []string
		for _, c := range d.cells {
			got = append(got, string(c.key), fmt.Sprint(c.kind), string(c.raw))
		}
		if utf8.Valid(line) && (!flat || !reflect.DeepEqual(got, want)) {
			t.Errorf("%q:\n%q\nencoding/json:\n%q", line, got, want)
		}
	})
}

// flatObject gives keys, kinds and values of an object of plain values; ok is false when the text is none.
func flatObject(text []byte) (cells []string, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if open, err := d.Token(); err != nil || open != json.Delim('{') || !json.Valid(text) {
		return nil, false
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, false
		}
		v, err := d.Token()
		if err != nil {
			return nil, false
		}
		kind := valueNull
		switch v := v.(type) {
		case json.Delim:
			return nil, false
		case bool:
			kind = valueBool
		case json.Number:
			kind = valueNumber
		case string:
			kind = valueString
		default:
			cells = append(cells, key.(string), fmt.Sprint(kind), "null")
			_ = v
			continue
		}
		cells = append(cells, key.(string), fmt.Sprint(kind), fmt.Sprint(v))
	}
	return cells, true
}
