package foreign

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// beside opens files that a file of testdata includes.
func beside(dir string) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		return os.Open(filepath.Join("testdata", dir, filepath.Base(name)))
	}
}

func TestSlurm(t *testing.T) {
	gres, accounts, qos := open(t, "slurm/gres.conf"), open(t, "slurm/accounts.cfg"), open(t, "slurm/qos.txt")
	r, err := Slurm(open(t, "slurm/slurm.conf"),
		SlurmOptions{Gres: &gres, Accounts: &accounts, QOS: &qos, Open: beside("slurm")})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("plan.yaml", r.Dataset.Plan)
	if err != nil {
		t.Fatal(err)
	}
	w := &p.MDPlans[0].Windows[0]
	for path, want := range map[string][4]int64{ // ratio, limits of CPUs, memory, GPUs
		"/physics":            {50, plan.Unlimited, plan.Unlimited, plan.Unlimited},
		"/physics/experiment": {3, plan.Unlimited, plan.Unlimited, plan.Unlimited},
		"/ml":                 {30, 1024, plan.Unlimited, 16}, // the QOS that it alone has: 16, below its own 24
		"/ml/alan":            {2, plan.Unlimited, plan.Unlimited, 8}, "/guests": {19, 256, 1 << 20, plan.Unlimited},
		"/physics/theory/ada": {1, plan.Unlimited, plan.Unlimited, plan.Unlimited},
		"/root":               {1, plan.Unlimited, plan.Unlimited, plan.Unlimited},
	} {
		n, ok := p.Find(path)
		if got := [4]int64{w.Ratio[n], w.Limit[0][n], w.Limit[1][n], w.Limit[2][n]}; !ok || got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	h := r.Dataset.Hosts
	if h.Rows != 138 || h.Size[0][0] != 32 || h.Size[1][0] != 191000 || h.Size[2][128] != 4 || h.State[136] != 1 ||
		h.Host.Names.String(h.Host.Code[127]) != "n128" {
		t.Errorf("%d hosts, the first has %d and %d, the 129th %d GPUs, the 137th is %d", h.Rows, h.Size[0][0],
			h.Size[1][0], h.Size[2][128], h.State[136])
	}
	for name, row := range map[string]int{"partition_batch": 127, "partition_gpu": 128, "partition_all": 0,
		"skylake": 0} {
		i := slices.IndexFunc(h.Attr, func(a cluster.AttrColumn) bool { return a.Name == name })
		if i < 0 || !h.Attr[i].Bool[row] {
			t.Errorf("host %d has not the attribute %s", row, name)
		}
	}
	wantLines(t, reportOf(t, r), "slurm.conf:14: PriorityType: ", "slurm.conf:28: PartitionName AllowAccounts: ",
		"nodes.conf:5: Reason: ", "slurm.conf:3: SlurmctldHost: ",
		"gres.conf:3: 8 gpu of node g08: slurm.conf says 4 (line 4), which counts",
		"accounts.cfg:20: Fairshare=parent: ", "accounts.cfg:12: GrpTRES of node: ",
		"qos.txt:2: limits of QOS normal: some who have it have other qualities of service too",
		"accounts.cfg:10: Description (5 times): ")
}

func TestSlurmAlone(t *testing.T) {
	r, err := Slurm(File{"s.conf",
		strings.NewReader("NodeName=a CPUs=2\nNodeName=b CPUs=2\nPartitionName=p Nodes=a\n")}, SlurmOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Dataset.Hosts; h.State[0] != 0 || h.State[1] != 1 {
		t.Errorf("states %v: a node in no partition must be closed", h.State)
	}
	if !strings.Contains(string(r.Dataset.Plan), `- {path: "/jobs"}`) {
		t.Errorf("no consumer /jobs in\n%s", r.Dataset.Plan)
	}
	wantLines(t, reportOf(t, r), "s.conf:2: nodes in no partition: ")
}

func TestHostList(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", "n[001-003]": "n001 n002 n003", "n[1,3-4],m": "n1 n3 n4 m",
		"r[0-1]n[08-09]-x": "r0n08-x r0n09-x r1n08-x r1n09-x",
	} {
		if names, err := hostList(text, 100); err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %v, %v, want %s", text, names, err, want)
		}
	}
	for _, text := range []string{"n[1-", "n]1[", "n[3-1]", "n[a-b]", "n[1-1000]", "n[0-9]m[0-9]k[0-9]", "n[-1]",
		"n[0-4294967295]"} {
		if names, err := hostList(text, 100); err == nil {
			t.Errorf("%s: %d names, want an error", text, len(names))
		}
	}
}

func TestSlurmRefused(t *testing.T) {
	node := "NodeName=a CPUs=2\n"
	dump := "Cluster - 'c'\nParent - 'root'\n"
	for _, c := range []struct{ name, conf, gres, accounts, qos, want string }{
		{"empty", "", "", "", "", "s.conf: no NodeName in it"},
		{"no value", "NodeName\n", "", "", "", `s.conf:1: "NodeName": must be Key=Value`},
		{"range", node + "NodeName=n[5-2]\n", "", "", "", `s.conf:2: NodeName: "5-2" in "n[5-2]" is no range`},
		{"too many", "NodeName=n[0-99999999]\n", "", "", "", "there are more names than are allowed"},
		{"twice", node + node, "", "", "", "s.conf:2: node a is there twice, first on line 1"},
		{"key twice", "NodeName=a CPUs=2 CPUs=3\n", "", "", "", "s.conf:1: CPUs is there twice"},
		{"cpus", "NodeName=a CPUs=two\n", "", "", "", `s.conf:1: cpus "two": must be a whole number`},
		{"gres", "NodeName=a Gres=gpu:a:b:c\n", "", "", "", `s.conf:1: Gres "gpu:a:b:c": must be such as gpu:4`},
		{"partition", node + "PartitionName=p Nodes=b\n", "", "", "",
			"s.conf:2: partition p has node b, and no NodeName is of it"},
		{"include", node + "Include other.conf\n", "", "", "", "s.conf:2: Include other.conf: "},
		{"circle", node + "include s.conf\n", "", "", "", "s.conf:2: Include s.conf: the file includes itself"},
		{"cut off", "NodeName=a \\", "", "", "", `s.conf:1: the file ends within a line that \ continues`},
		{"not utf-8", "#\xe9\n", "", "", "", "s.conf:1: is not valid UTF-8"},
		{"gres range", node, "NodeName=n[1- Name=gpu\n", "", "", "gres.conf:1: NodeName: "},
		{"dump", node, "", "hello\n", "", `acc:1: "hello": must be such as Account - 'name':Fairshare=1`},
		{"no parent line", node, "", "Account - 'a'\n", "", "acc:1: a has no line Parent before it"},
		{"unknown parent", node, "", dump + "Parent - 'b'\n", "",
			"acc:3: Parent - 'b': no line before is of an account of that name"},
		{"share", node, "", dump + "Account - 'a':Fairshare=lots\n", "",
			`acc:3: Fairshare "lots": must be a whole number from 0 on, or parent`},
		{"limit", node, "", dump + "Account - 'a':GrpTRES=cpu=many\n", "",
			`acc:3: GrpTRES "cpu=many": "cpu=many" must be such as cpu=100`},
		{"account twice", node, "", dump + "Account - 'a'\nAccount - 'a'\n", "", "acc:4: account a is there twice"},
		{"user twice", node, "", dump + "User - 'a'\nUser - 'a'\nUser - 'a'\n", "", "acc:5: /user a is there twice"},
		{"slash", node, "", dump + "Account - 'a/b'\n", "", `acc:3: name "a/b" has a / in it`},
		{"no account", node, "", "# nothing\n", "", "acc: no account in it"},
		{"qos", node, "", "", "a|b\n", "qos:1: has no column Name"},
		{"qos fields", node, "", "", "Name|Priority\na|1|2\n", "qos:2: wrong number of fields"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := SlurmOptions{Open: func(string) (io.ReadCloser, error) { return nil, errors.New("there is none") }}
			for _, of := range []struct {
				name, text string
				into       **File
			}{{"gres.conf", c.gres, &o.Gres}, {"acc", c.accounts, &o.Accounts}, {"qos", c.qos, &o.QOS}} {
				if of.text != "" {
					*of.into = &File{of.name, strings.NewReader(of.text)}
				}
			}
			_, err := Slurm(File{"s.conf", strings.NewReader(c.conf)}, o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzSlurm: whatever the files say, the policy that comes of them is one that stint accepts.
func FuzzSlurm(f *testing.F) {
	var texts [4]string
	for i, name := range []string{"nodes.conf", "gres.conf", "accounts.cfg", "qos.txt"} {
		text, err := os.ReadFile("testdata/slurm/" + name)
		if err != nil {
			f.Fatal(err)
		}
		texts[i] = string(text)
	}
	f.Add(texts[0]+"PartitionName=x Nodes=n[001-010]\n", texts[1], texts[2], texts[3])
	f.Fuzz(func(t *testing.T, conf, gres, accounts, qos string) {
		r, err := Slurm(File{"s.conf", strings.NewReader(conf)}, SlurmOptions{
			Gres: &File{"gres.conf", strings.NewReader(gres)}, Accounts: &File{"acc", strings.NewReader(accounts)},
			QOS: &File{"qos", strings.NewReader(qos)},
		})
		if err != nil {
			mustBeTheirs(t, err)
			return
		}
		if _, err := plan.Parse("plan.yaml", r.Dataset.Plan); err != nil {
			t.Fatal(err)
		}
	})
}
