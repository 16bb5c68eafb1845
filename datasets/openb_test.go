package datasets

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

const (
	nodesHead = "sn,cpu_milli,memory_mib,gpu,model\n"
	podsHead  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase\n"
	nodesText = nodesHead + "n1,32000,262144,0,\nn2,96000,393216,2,T4\n\"n3\",96000,393216,8,V100M32\n"
	podsText  = podsHead +
		"p1,12000,16384,1,460,,LS,Running\np2,4000,1024,0,0,,BE,Pending\n" +
		"p3,8000,2048,2,1000,T4|V100M32,LS,Running\np4,1,1,1,1000,A10,BE,Running\n"
)

// openbRows shows a dataset as lines, to compare.
func openbRows(d *Dataset) (hosts, pods []string) {
	h, t := d.Hosts, d.Demand
	for i := range h.Rows {
		model := "-"
		if a := h.Attr[0]; a.Valid[i] {
			model = a.Text.Names.String(a.Text.Code[i])
		}
		hosts = append(hosts, fmt.Sprint(h.Host.Names.String(h.Host.Code[i]), " ", h.Size[0][i], " ", h.Size[1][i], " ",
			h.Size[2][i], " ", model))
	}
	for i := range t.Rows {
		need := "-"
		if code := t.Requirement.At(i); code != cluster.Null {
			need = t.Requirement.Names.String(code)
		}
		pods = append(pods, fmt.Sprint(t.Consumer.Names.String(t.Consumer.Code[i]), " ",
			t.Allocation.Names.String(t.Allocation.Code[i]), " ",
			t.Units[i], " ", t.Size[0][i], " ", t.Size[1][i], " ", t.Size[2][i], " ", need))
	}
	return hosts, pods
}

// TestOpenB reads a small trace, as it is, with line ends of CR LF, with a byte order mark, and with columns in another
// order.
func TestOpenB(t *testing.T) {
	wantHosts := []string{"n1 32000 262144 0 -", "n2 96000 393216 2000 T4", "n3 96000 393216 8000 V100M32"}
	wantPods := []string{
		"/LS p1 1 12000 16384 460 -", "/BE p2 1 4000 1024 0 -",
		"/LS p3 1 8000 2048 2000 select(model == 'T4' || model == 'V100M32')",
		"/BE p4 1 1 1 1000 select(model == 'A10')",
	}
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	for name, c := range map[string][2]string{
		"plain":        {nodesText, podsText},
		"CR LF":        {crlf(nodesText), strings.TrimSuffix(crlf(podsText), "\n")},
		"mark":         {"\ufeff" + nodesText, "\ufeff" + podsText},
		"no last line": {strings.TrimSuffix(nodesText, "\n"), strings.TrimSuffix(podsText, "\n")},
		"other order": {"model,gpu,sn,memory_mib,cpu_milli,zone\n,0,n1,262144,32000,z\nT4,2,n2,393216,96000,z\n" +
			"V100M32,8,n3,393216,96000,z\n", podsText},
	} {
		d, err := OpenB(strings.NewReader(c[0]), strings.NewReader(c[1]))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		hosts, pods := openbRows(d)
		if !slices.Equal(hosts, wantHosts) || !slices.Equal(pods, wantPods) {
			t.Errorf("%s:\ngot  %q\n     %q\nwant %q\n     %q", name, hosts, pods, wantHosts, wantPods)
		}
		p, err := plan.Parse("plan.yaml", d.Plan)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, ok := p.Find("/LS"); p.Tree.Len() != 3 || !ok || !slices.Equal(p.Dimensions, d.Dimensions) {
			t.Errorf("%s: the policy is\n%s", name, d.Plan)
		}
	}
}

// TestOpenBAccepted checks that the imported tables go into the engine's state, from the files that Write makes too.
func TestOpenBAccepted(t *testing.T) {
	d, err := OpenB(strings.NewReader(nodesText), strings.NewReader(podsText))
	if err != nil {
		t.Fatal(err)
	}
	accept(t, d, d.Hosts, d.Demand)
	for _, format := range Formats {
		dir := filepath.Join(t.TempDir(), format)
		if err := d.Write(dir, format); err != nil {
			t.Fatal(err)
		}
		hosts, demand := readBack(t, dir, format, d.Dimensions)
		accept(t, d, hosts, demand)
		back := &Dataset{Hosts: hosts, Demand: demand}
		wantHosts, wantPods := openbRows(d)
		if gotHosts, gotPods := openbRows(back); !slices.Equal(gotHosts, wantHosts) ||
			!slices.Equal(gotPods, wantPods) {
			t.Errorf("%s: got %q %q", format, gotHosts, gotPods)
		}
	}
}

// accept brings a dataset into a new state.
func accept(t *testing.T, d *Dataset, hosts *cluster.HostTable, demand *cluster.DemandTable) *cluster.State {
	t.Helper()
	p, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err == nil {
		err = s.SetHosts(hosts, true)
	}
	if err == nil {
		err = s.SetDemand("default", demand)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOpenBRefused checks the message of each thing that can be wrong in a trace.
func TestOpenBRefused(t *testing.T) {
	node := func(row string) [2]string { return [2]string{nodesHead + row + "\n", podsText} }
	pod := func(row string) [2]string { return [2]string{nodesText, podsHead + row + "\n"} }
	for _, c := range []struct {
		in   [2]string
		want string
	}{
		{[2]string{"", podsText}, "nodes: empty, a header is expected"},
		{[2]string{nodesText, ""}, "pods: empty, a header is expected"},
		{[2]string{nodesHead, podsText}, "nodes: there are no rows"},
		{[2]string{nodesText, podsHead}, "pods: there are no rows"},
		{[2]string{"sn,cpu_milli\nn1,1\n", podsText},
			"nodes, column memory_mib: the column is missing\nnodes, column gpu: the column is missing\nnodes, " +
				"column model: the column is missing"},
		{[2]string{nodesText, "name,qos,num_gpu,gpu_milli\n"},
			"pods, column cpu_milli: the column is missing\npods, column memory_mib: the column is missing"},
		{[2]string{"sn,gpu,cpu_milli,memory_mib,gpu,model\n", podsText},
			"nodes, column gpu: the column stands in the header twice"},
		{[2]string{"\"sn\n", podsText}, "nodes: parse error on line 1, column 5: extraneous or missing \" in " +
			"quoted-field"},
		{node("n1,32000,1,0"), "nodes: row 1: record on line 2: wrong number of fields"},
		{node("n1,32000,1,0,\nn2,1,\"x"), "nodes: row 2: parse error on line 3, column 9: extraneous or missing \" " +
			"in quoted-field"},
		{node("n1,32k,1,0,"),
			`nodes: row 1, column cpu_milli, value "32k": not a whole number from 0 to 9007199254740992`},
		{node("n1,-1,1.5,9007199254741,"),
			`nodes: row 1, column cpu_milli, value "-1": not a whole number from 0 to 9007199254740992
nodes: row 1, column memory_mib, value "1.5": not a whole number from 0 to 9007199254740992
nodes: row 1, column gpu, value "9007199254741": not a whole number from 0 to 9007199254740`},
		{node("n1,,1,99999999999999999999,"), `nodes: row 1, column cpu_milli: is empty
nodes: row 1, column gpu, value "99999999999999999999": not a whole number from 0 to 9007199254740`},
		{node("n1,1,1,1,T4\nn1,1,1,1,T4"), `nodes: row 2, column sn, value "n1": an earlier row has the same name`},
		{node(",1,1,1,T4"), "nodes: row 1, column sn: is empty"},
		{node("a\x01b,1,1,1,T4"),
			`nodes: row 1, column sn, value "a\x01b": not a name: UTF-8 without control characters, 256 bytes at most`},
		{node("\xff,1,1,1,T4"),
			`nodes: row 1, column sn, value "\xff": not a name: UTF-8 without control characters, 256 bytes at most`},
		{node("n1,1,1,1,T4'x"),
			`nodes: row 1, column model, value "T4'x": not a word: a letter, then up to 63 letters, digits, - _ and .`},
		{pod("p1,1,1,x,1000,,LS,R"),
			`pods: row 1, column num_gpu, value "x": not a whole number from 0 to 9007199254740`},
		{pod("p1,1,1,1,1001,,LS,R"), `pods: row 1, column gpu_milli, value "1001": not a whole number from 0 to 1000`},
		{pod("p1,1,1,1,,,LS,R"), "pods: row 1, column gpu_milli: is empty"},
		{pod("p1,0,0,1,0,,LS,R"), "pods: row 1: asks for nothing: cpu_milli, memory_mib and num_gpu × gpu_milli are 0"},
		{pod("p1,1,1,0,0,,/LS,R"),
			`pods: row 1, column qos, value "/LS": not a word: a letter, then up to 63 letters, digits, - _ and .`},
		{pod("p1,1,1,1,500,T4|,LS,R"),
			`pods: row 1, column gpu_spec, value "T4|": not a word: a letter, then up to 63 letters, digits, - _ and .`},
		{pod("p1,1,1,1,500,T4') || select('x,LS,R"),
			`pods: row 1, column gpu_spec, value "T4') || select('x": not a word: a letter, then up to 63 letters, digits, - _ and .`},
		{[2]string{nodesHead + "n1,1,1,1,\n", podsText},
			"pods, column gpu_spec: pods ask for GPU models, and no node has one"},
		{node("n1,1,1,1,3090"),
			`nodes: row 1, column model, value "3090": not a word: a letter, then up to 63 letters, digits, - _ and .`},
		{pod("p1,1,1,0,0,,LS,R\np1,1,1,0,0,,BE,R"),
			`pods: row 2, column name, value "p1": an earlier row has the same name`},
		{[2]string{nodesHead + "n1,x,1,0,\n", podsHead + "p1,y,1,0,0,,LS,R\n"},
			`nodes: row 1, column cpu_milli, value "x": not a whole number from 0 to 9007199254740992
pods: row 1, column cpu_milli, value "y": not a whole number from 0 to 9007199254740992`},
		{pod(strings.TrimSuffix(strings.Repeat("p,?,1,0,0,,LS,R\n", 120), "\n")),
			"pods: 239 faults in all, the first 100 are shown"},
	} {
		d, err := OpenB(strings.NewReader(c.in[0]), strings.NewReader(c.in[1]))
		if err == nil || d != nil || err.Error() != c.want && !strings.HasSuffix(err.Error(), "\n"+c.want) {
			t.Errorf("%q\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}

// TestTraceLimit checks that a file is read no further than its limit.
func TestTraceLimit(t *testing.T) {
	tr, err := openTrace("nodes", strings.NewReader("sn\n"+strings.Repeat("n\n", 10_000)), "sn")
	if err != nil {
		t.Fatal(err)
	}
	tr.left.N = 10
	for tr.next() {
	}
	if err := tr.faults.Err(); err == nil ||
		!strings.HasSuffix(err.Error(), "the file has more than 1073741823 bytes") {
		t.Errorf("got %v", err)
	}
}

// FuzzOpenB checks that whatever is accepted makes a policy, hosts and demand that go together.
// TestOpenBColumns reads pod lists without qos, or without gpu_spec.
func TestOpenBColumns(t *testing.T) {
	d, err := OpenB(strings.NewReader(nodesText),
		strings.NewReader("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1,2,1,500\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Demand.Consumer.Names.String(d.Demand.Consumer.Code[0]); got != "/pods" ||
		d.Demand.Requirement.Code != nil || d.Demand.Size[gpuMilli][0] != 500 {
		t.Errorf("consumer %s, requirements %v, size %v", got, d.Demand.Requirement.Code, d.Demand.Size)
	}
	if _, err := plan.Parse("plan.yaml", d.Plan); err != nil {
		t.Error(err)
	}
	d, err = OpenB(strings.NewReader(nodesText), strings.NewReader(podsHead+"p1,1,1,0,0,,,R\np2,1,1,0,0,,LS,R\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := []int32{d.Demand.Consumer.Code[0], d.Demand.Consumer.Code[1]}; got[0] == got[1] ||
		d.Demand.Consumer.Names.String(got[0]) != "/pods" {
		t.Errorf("consumers %v of %v", got, d.Demand.Consumer.Names)
	}
}

func FuzzOpenB(f *testing.F) {
	f.Add(nodesText, podsText)
	f.Add("\ufeffsn,cpu_milli,memory_mib,gpu,model\r\nn1,1,1,1,T4\r\n",
		"name,qos,gpu_spec,cpu_milli,memory_mib,num_gpu,gpu_milli\n\"p\"\"1\",BE,T4|A10,0,1,1,1\n")
	f.Fuzz(func(t *testing.T, nodes, pods string) {
		d, err := OpenB(strings.NewReader(nodes), strings.NewReader(pods))
		if err != nil {
			if d != nil || !strings.HasPrefix(err.Error(), "nodes") && !strings.HasPrefix(err.Error(), "pods") {
				t.Errorf("an error without a place: %v", err)
			}
			return
		}
		accept(t, d, d.Hosts, d.Demand)
	})
}
