package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const mcpPolicy = `stint: 1
interval: 1m
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /B}]
md_plans: [{name: grid, resource_groups: [{name: All}], consumers: [{path: /A}, {path: /B}]}]
`

// mcpLog is a log of a cycle in which /A has all there is.
func mcpLog(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"plan.yaml": mcpPolicy, "hosts.csv": "host,ncpus\nh1,4\n",
		"demand.csv": "consumer,allocation,units,ncpus\n/A,a,6,1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	c := newRoot()
	c.SetOut(new(bytes.Buffer))
	c.SetErr(new(bytes.Buffer))
	c.SetArgs([]string{"run", "--plan", at("plan.yaml"), "--hosts", at("hosts.csv"), "--demand", at("demand.csv"),
		"--at", "2026-01-05T08:00:00Z", "--out", at("log")})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	return at("log")
}

// TestMCP asks each tool by the protocol's own client.
func TestMCP(t *testing.T) {
	log := mcpLog(t)
	here, there := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = newAssistant(place{log: log}, os.Stderr).Run(ctx, there) }()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tools, err := s.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 5 {
		t.Fatal(tools, err)
	}
	for _, tool := range tools.Tools {
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s does not say that it only reads", tool.Name)
		}
	}
	type args = map[string]any
	for _, c := range []struct {
		tool    string
		args    args
		refused bool
		want    []string
	}{
		{"explain", args{"consumer": "/A"}, false, []string{"/A is short of 2 units", "pool_exhausted"}},
		{"explain", args{"consumer": "/A", "allocation": "a", "cycle": 1}, false, []string{"/A:a after cycle 1"}},
		{"explain", args{"consumer": "/C"}, true, []string{"no consumer /C"}},
		{"explain", args{}, true, []string{"consumer"}},
		{"query", args{"table": "shortfalls"}, false, []string{"units_short", "/A,a,,2,pool_exhausted"}},
		{"query", args{"table": "consumers", "where": []string{"consumer=/B"}, "rows": 1}, false, []string{"/B"}},
		{"query", args{"table": "consumers", "rows": 1}, false, []string{"the first 1 rows"}},
		{"query", args{"table": "nothing"}, true, []string{`no table "nothing"`}},
		{"query", args{"table": "consumers", "cycle": 7}, true, []string{"no cycle 7"}},
		{"query", args{"table": "consumers", "rows": 9999}, true, []string{"must be at most 5000"}},
		{"query", args{"table": "consumers", "where": []string{"x"}}, true, []string{"where"}},
		{"whatif_policy", args{"plan": strings.Replace(mcpPolicy, "[{path: /A}, {path: /B}]}]",
			"[{path: /A, share: {limit: {ncpus: 1}}}, {path: /B}]}]", 1)},
			false, []string{"under the policy given in place of revision 1", "lose  /A"}},
		{"whatif_policy", args{"plan": "stint: 2"}, true, []string{"plan:1:"}},
		{"whatif_demand", args{"demand": []args{{"consumer": "/B", "allocation": "b", "units": 2, "ncpus": 1}},
			"runtimes": []string{"/A=5m"}}, false, []string{"/B:b, 2 units", "would stop for it"}},
		{"whatif_demand", args{"demand": []args{{"consumer": "/B", "allocation": "b", "units": 2, "ncpus": 1}},
			"hosts": []args{{"host": "h2", "ncpus": 9}}, "horizon": "0s"}, false, []string{"at once  2 on 1 host"}},
		{"whatif_demand", args{"demand": []args{{"consumer": "/C", "allocation": "b", "units": 2, "ncpus": 1}}}, true,
			[]string{"/C"}},
		{"whatif_demand", args{"demand": []args{}, "horizon": "soon"}, true, []string{"must be a duration"}},
		{"check", args{"plan": mcpPolicy}, false, []string{"no faults"}},
		{"check", args{"plan": mcpPolicy + "colour: red\n"}, false, []string{"colour: unknown key"}},
	} {
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
		var text string
		if err != nil {
			text = err.Error()
		} else if len(r.Content) == 1 {
			text = r.Content[0].(*mcp.TextContent).Text
		}
		if refused := err != nil || r.IsError; refused != c.refused {
			t.Errorf("%s %v: refused: %v, %s", c.tool, c.args, refused, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %v has no %q:\n%s", c.tool, c.args, want, text)
			}
		}
	}
}

// TestMCPProcess speaks to the command as an assistant does, over stdin and stdout of a process.
func TestMCPProcess(t *testing.T) {
	log := mcpLog(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "mcp", "--log", log)
	c.Env = append(os.Environ(), mainArgs+"=1")
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&mcp.CommandTransport{Command: c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if name := s.InitializeResult().ServerInfo.Name; name != "stint" {
		t.Error(name)
	}
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "query",
		Arguments: map[string]any{"table": "shortfalls"}})
	if err != nil || r.IsError {
		t.Error(r, err)
	}
	if err := s.Close(); err != nil {
		t.Error("the process does not end when its input does:", err)
	}
}

// TestMCPSurvives sends lines that are no messages and a call that fails between two questions.
func TestMCPSurvives(t *testing.T) {
	log := mcpLog(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "mcp", "--log", log)
	c.Env = append(os.Environ(), mainArgs+"=1")
	misspelt := "stint: 1\ndimensions: [slots]\nresource_groups: [{name: G, hosts: [a]}]\nconsumers: [{path: /A}]\n" +
		"slot_plans: [{resource_group: GG, consumers: [{path: /A, policy: share_ratio}]}]\n" +
		"divisions: [{name: east, plans: [G]}]\n"
	call := func(id int, tool string, args map[string]any) string {
		text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call",
			"params": map[string]any{"name": tool, "arguments": args}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
			`"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		"debug: about to ask", "{", "[]", "[1, {}]", "null", "7", `{"jsonrpc":"1.0","id":9,"method":"ping"}`, `{} {}`,
		`"` + strings.Repeat("x", mcpLineBytesMax) + `"`, "\xff\xfe", "", "  ",
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"query","arguments":7}}`,
		call(3, "check", map[string]any{"plan": misspelt}),
		`[{"jsonrpc":"2.0","id":4,"method":"ping"},` + call(5, "query", map[string]any{"table": "shortfalls"}) + `]`,
		call(6, "query", map[string]any{"table": "shortfalls"}),
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(in, strings.Join(lines, "\n")+"\n") }()
	answers, refused := map[float64]string{}, 0
	for lines := bufio.NewScanner(out); len(answers) < 6 && lines.Scan(); { // calls are answered side by side
		line := lines.Text()
		var m struct {
			ID    any
			Error *struct{ Message string }
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(line, err)
		}
		if id, ok := m.ID.(float64); ok {
			answers[id] = line
		} else if refused++; m.Error == nil || !strings.HasPrefix(m.Error.Message, "a line ") {
			t.Error(line)
		}
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Error("the process does not end when its input does:", err)
	}
	if refused != 11 { // [1, {}] has two
		t.Errorf("%d lines are refused", refused)
	}
	for id, want := range map[float64]string{1: "serverInfo", 2: "7", 3: "resource_group: \\\"GG\\\"", 4: "result",
		5: "pool_exhausted", 6: "pool_exhausted"} {
		if !strings.Contains(answers[id], want) {
			t.Errorf("call %v has no %q: %s", id, want, answers[id])
		}
	}
}

// TestMCPGuarded holds that a bug in a tool is an error of the call, and that its stack is written down.
func TestMCPGuarded(t *testing.T) {
	var stderr bytes.Buffer
	_, err := guarded(&stderr, "query", func() (string, error) { panic("BUG: no table") })
	if err == nil || !strings.HasPrefix(err.Error(), "query: a bug of stint (BUG: no table): ") ||
		!strings.Contains(stderr.String(), "TestMCPGuarded") {
		t.Error(err, stderr.String())
	}
}
