package foreign

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// open opens a file of testdata.
func open(t testing.TB, path string) File {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return File{Name: filepath.Base(path), R: f}
}

// wantLines are lines that a text must have, in any order.
func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line) {
			t.Errorf("no line that begins with %q in:\n%s", line, text)
		}
	}
}

// reportOf is a report as it is written.
func reportOf(t *testing.T, r *Result) string {
	t.Helper()
	var b strings.Builder
	if err := r.Report.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var sixNodes = YARNOptions{Hosts: 6, Size: map[string]int64{"memory-mb": 131072, "vcores": 32}}

func TestYARNCapacity(t *testing.T) {
	nodes := open(t, "yarn/nodes.json")
	r, err := YARN(open(t, "yarn/capacity-scheduler.xml"), YARNOptions{Nodes: &nodes})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("plan.yaml", r.Dataset.Plan)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		plan, path string
		ratio      int64
		priority   int32
		limit      [2]int64
	}{
		{"default", "/prod", 3, 0, [2]int64{plan.Unlimited, plan.Unlimited}},
		{"default", "/prod/etl", 3, 0, [2]int64{458752, 112}}, // 50 % of what prod may have, 7 nodes
		{"default", "/prod/serving", 5, 0, [2]int64{plan.Unlimited, plan.Unlimited}},
		{"default", "/dev", 2, 0, [2]int64{688128, 168}},
		{"default", "/adhoc", 1, -1, [2]int64{plan.Unlimited, plan.Unlimited}}, // capacity 0: what is left
		{"gpu", "/prod", 7, 0, [2]int64{plan.Unlimited, plan.Unlimited}},
		{"gpu", "/dev", 3, 0, [2]int64{131072, 32}},
	} {
		m := &p.MDPlans[0]
		if want.plan != m.Name {
			m = &p.MDPlans[1]
		}
		n, ok := p.Find(want.path)
		w := &m.Windows[0]
		if !ok || m.Name != want.plan || w.Ratio[n] != want.ratio || w.Priority[n] != want.priority ||
			w.Limit[0][n] != want.limit[0] || w.Limit[1][n] != want.limit[1] {
			t.Errorf("%d: %s of plan %s: ratio %d, priority %d, limit %d %d, want %+v", i, want.path, m.Name,
				w.Ratio[n], w.Priority[n], w.Limit[0][n], w.Limit[1][n], want)
		}
	}
	if n, _ := p.Find("/prod/etl"); p.MDPlans[1].Member[n] {
		t.Error("a queue without a capacity of a label is in the label's plan")
	}
	wantLines(t, reportOf(t, r),
		"capacity-scheduler.xml:56: user-limit-factor: ", "capacity-scheduler.xml:88: minimum-user-limit-percent: ",
		"capacity-scheduler.xml:84: ordering-policy: ", "capacity-scheduler.xml:64: state: ",
		"capacity-scheduler.xml:68: acl_submit_applications: ", "capacity-scheduler.xml:72: disable_preemption: ",
		"capacity-scheduler.xml:141: root.old.capacity: the queue is in no list of queues",
		"nodes.json: a node: its state is LOST")
	if h := r.Dataset.Hosts; h.Rows != 10 || h.State[7] != 1 || h.Size[0][0] != 131072 || h.Size[1][0] != 32 {
		t.Errorf("hosts %d, state of the eighth %d, sizes %d %d", h.Rows, h.State[7], h.Size[0][0], h.Size[1][0])
	}
}

// TestYARNNothingDropped holds every property that is used nowhere in the report.
func TestYARNNothingDropped(t *testing.T) {
	text := `<configuration>
<property><name>yarn.scheduler.capacity.root.queues</name><value>a</value></property>
<property><name>yarn.scheduler.capacity.root.a.capacity</name><value>100</value></property>
<property><name>yarn.scheduler.capacity.root.a.capacity</name><value>100</value></property>
<property><name>yarn.scheduler.capacity.root.a.wholly-new</name><value>7</value></property>
<property><name>yarn.scheduler.capacity.root.a.leaf-queue-template.capacity</name><value>7</value></property>
<property><name>yarn.scheduler.capacity.root.a.accessible-node-labels.ssd.capacity</name><value>7</value></property>
<property><name>hadoop.tmp.dir</name><value>/tmp</value></property>
<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="other.xml"/>
</configuration>`
	r, err := YARN(File{"c.xml", strings.NewReader(text)}, sixNodes)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, reportOf(t, r), "c.xml:3: yarn.scheduler.capacity.root.a.capacity: line 4 gives it again",
		"c.xml:5: wholly-new: has no counterpart",
		"c.xml:6: leaf-queue-template.capacity: ", "c.xml:7: node label ssd: no node has it",
		"c.xml:8: hadoop.tmp.dir: ", "c.xml:9: <include>: ",
		"c.xml: virtual cores, and what else nodes have beside memory: ")
}

func TestYARNFair(t *testing.T) {
	r, err := YARN(open(t, "yarn/fair-scheduler.xml"), sixNodes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("plan.yaml", r.Dataset.Plan)
	if err != nil {
		t.Fatal(err)
	}
	w := &p.MDPlans[0].Windows[0]
	for path, want := range map[string][2]int64{
		"/science": {2, 707788}, "/science/physics": {1, 1048576}, "/science/biology": {3, 1048576},
		"/trading": {3, 1048576}, // its minimum is half of the cluster, its weight gives a quarter
		"/adhoc":   {1, 131072},
	} {
		n, ok := p.Find(path)
		if !ok || w.Ratio[n] != want[0] || w.Limit[0][n] != want[1] {
			t.Errorf("%s: ratio %d, limit %d, want %v", path, w.Ratio[n], w.Limit[0][n], want)
		}
	}
	wantLines(t, reportOf(t, r), "fair-scheduler.xml:6: <maxRunningApps>: ", "fair-scheduler.xml:30: <user>: ",
		"fair-scheduler.xml:34: <queuePlacementPolicy>: ")
}

// TestYARNFairMinimums: minimums that are more than there is divide it; who has none gets what is left.
func TestYARNFairMinimums(t *testing.T) {
	text := `<allocations><queue name="a"><minResources>600000 mb</minResources></queue>
<queue name="b"><minResources>300000 mb</minResources></queue><queue name="c"/></allocations>`
	r, err := YARN(File{"f.xml", strings.NewReader(text)}, sixNodes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("plan.yaml", r.Dataset.Plan)
	if err != nil {
		t.Fatal(err)
	}
	w := &p.MDPlans[0].Windows[0]
	a, _ := p.Find("/a")
	b, _ := p.Find("/b")
	c, _ := p.Find("/c")
	if d := w.Ratio[a] - 2*w.Ratio[b]; d < -1 || d > 1 || w.Priority[c] != -1 {
		t.Errorf("ratios %d and %d, want 2 to 1; priority of c %d, want -1", w.Ratio[a], w.Ratio[b], w.Priority[c])
	}
	wantLines(t, reportOf(t, r), "f.xml: minimums below root: they are more memory_mb than there is")
}

func TestYARNRefused(t *testing.T) {
	queues := func(more string) string {
		return "<configuration>\n<property><name>yarn.scheduler.capacity.root.queues</name><value>a,b</value>" +
			"</property>\n" + more + "\n</configuration>"
	}
	set := func(key, value string) string {
		return "<property><name>yarn.scheduler.capacity." + key + "</name><value>" + value + "</value></property>"
	}
	for _, c := range []struct{ name, text, want string }{
		{"bomb", "<?xml version=\"1.0\"?>\n<!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY l2 " +
			"\"&lol;&lol;\">]>\n<configuration>&l2;</configuration>",
			"q.xml:2: a document type declaration (<!DOCTYPE …) is not read; take it out"},
		{"external entity", "<configuration>\n&xxe;</configuration>", "q.xml:2: invalid character entity &xxe;"},
		{"encoding", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<configuration/>",
			"q.xml:1: is in ISO-8859-1; convert it to UTF-8 first"},
		{"utf-16", "\xff\xfe<\x00", "q.xml:1: is in UTF-16; convert it"},
		{"not utf-8", "<configuration>\n\n\xe9</configuration>", "q.xml:3: is not valid UTF-8"},
		{"half", queues("")[:60], "q.xml:2: unexpected EOF"},
		{"empty", "", "q.xml: no XML element in it"},
		{"two", "<configuration/>\n<configuration/>", "q.xml:2: <configuration> is a second root element"},
		{"deep", strings.Repeat("<a>\n", 100), "q.xml:65: is nested more than 64 elements deep"},
		{"another file", "<hosts/>", "q.xml:1: <hosts> is the root element; <configuration> of capacity-scheduler.xml"},
		{"no queues", "<configuration/>", "q.xml: yarn.scheduler.capacity.root.queues names no queue"},
		{"no name", "<configuration>\n<property/></configuration>", "q.xml:2: a property without a <name>"},
		{"more than all", queues(set("root.a.capacity", "60") + "\n" + set("root.b.capacity", "50")),
			"q.xml:3: the capacities of the queues below root are 110 % in all: YARN refuses more than 100"},
		{"mixed", queues(set("root.a.capacity", "60") + "\n" + set("root.b.capacity", "2w")),
			"q.xml:4: queue root.b: its capacity is given in another way than that of root.a (line 3)"},
		{"wild", queues(set("root.a.capacity", "${a}")),
			`q.xml:3: capacity "${a}": must be a percentage from 0 to 100, a weight`},
		{"nan", queues(set("root.a.capacity", "NaN")), `capacity "NaN"`},
		{"amount", queues(set("root.a.capacity", "[memory=50%]")),
			`q.xml:3: capacity "[memory=50%]": "memory=50%" must be an amount`},
		{"twice", strings.Replace(queues(""), "a,b", "a,a", 1), `q.xml:2: queue "root.a" is there twice`},
		{"children own more",
			queues(set("root.a.capacity", "[memory=1000]") + set("root.b.capacity", "[memory=1000]") +
				set("root.a.queues", "c") + set("root.a.c.capacity", "[memory=2000]")),
			"the files contradict each other:\n\"/a\" line 3: md_plans[0].consumers[0].own: the children of /a own"},
		{"fair weight", "<allocations>\n<queue name=\"a\">\n<weight>heavy</weight></queue></allocations>",
			`q.xml:3: queue root.a: weight "heavy": must be a number from 0 on`},
		{"fair amount", "<allocations>\n<queue name=\"a\"><minResources>lots</minResources></queue></allocations>",
			`q.xml:2: <minResources> "lots": "lots" must be such as 8192 mb`},
		{"fair name", "<allocations><queue/></allocations>", `q.xml:1: queue "root." is empty`},
		{"fair slash", "<allocations><queue name=\"a/b\"/></allocations>", `queue "root.a/b" has a / in it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := YARN(File{"q.xml", strings.NewReader(c.text)}, sixNodes)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestYARNNodesRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"half", `{"nodes": {"node": [`, "n.json:1: unexpected end of JSON input"},
		{"kind", "{\"nodes\":\n{\"node\": [{\"availMemoryMB\": \"much\"}]}}", "n.json:2: cannot unmarshal string"},
		{"none", `{"nodes": null}`, "n.json: has 0 nodes"},
		{"twice",
			`{"nodes": {"node": [{"nodeHostName": "a", "state": "RUNNING"}, {"nodeHostName": "a", "state": "RUNNING"}]}}`, `nodeHostName "a" is empty or there twice`},
		{"below 0", `{"nodes": {"node": [{"nodeHostName": "a", "state": "RUNNING", "availMemoryMB": -5}]}}`,
			"n.json: node a: memory_mb -5 is below 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := File{"n.json", strings.NewReader(c.text)}
			_, err := YARN(open(t, "yarn/weights.xml"), YARNOptions{Nodes: &nodes})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzYARN: whatever the file says, the policy that comes of it is one that stint accepts.
func FuzzYARN(f *testing.F) {
	for _, name := range []string{"capacity-scheduler.xml", "fair-scheduler.xml", "absolute.xml", "weights.xml"} {
		text, err := os.ReadFile("testdata/yarn/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := YARN(File{"q.xml", strings.NewReader(string(text))}, sixNodes)
		if err != nil {
			mustBeTheirs(t, err)
			return
		}
		if _, err := plan.Parse("plan.yaml", r.Dataset.Plan); err != nil {
			t.Fatal(err)
		}
	})
}
