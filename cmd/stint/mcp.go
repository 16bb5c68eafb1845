package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/export"
)

// Limits of a call of an assistant.
const (
	mcpLineBytesMax = 16 << 20
	mcpCallMax      = time.Minute
	mcpRows         = 200 // of a table, where nothing else is asked for
	mcpRowsMax      = 5_000
	mcpWidth        = 100
)

func newMCP() *cobra.Command {
	var from place
	c := &cobra.Command{
		Use:   "mcp --log LOG|--server URL",
		Short: "Answers the questions of an assistant (Model Context Protocol), for reading alone",
		Long: `Answers the questions of an assistant that speaks the Model Context Protocol, over stdin and stdout: why somebody has
what he has, what another policy would change, what more demand would get and when, what a table says, and
whether a policy file is good. Nothing that it can be asked changes anything. With --server it may read what the
token may.`,
		Example: `  stint mcp --log demo/log
  stint mcp --server http://grid:7468 --token-file token`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := from.check(); err != nil {
				return err
			}
			t := lineTransport{c.InOrStdin(), c.OutOrStdout()}
			err := newAssistant(from, c.ErrOrStderr()).Run(c.Context(), t)
			if errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
	}
	from.flags(c.Flags())
	return c
}

// assistant answers by a log or a service.
type assistant struct {
	from   place
	stderr io.Writer
}

// newAssistant makes the server with its tools.
func newAssistant(from place, stderr io.Writer) *mcp.Server {
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "stint", Title: "stint: who may put how much work on a shared cluster",
		Version: version}, &mcp.ServerOptions{Instructions: mcpInstructions})
	a := &assistant{from, stderr}
	addTool(a, s, "explain", "Why a consumer, or one of its allocations, has what it has after a cycle: what is short "+
		"and why, what is being taken back, what would change it. Figures come with the rules that they follow from.",
		a.explain)
	addTool(a, s, "query", "A table of what was decided, as CSV. consumers: who wants, holds, owns, lends "+
		"what; shortfalls: what is short and why; holdings, grants, reclaims, releases, loans, shares, hosts, "+
		"sub_allocations (what is asked for), attributes, plans, inputs, cycles.", a.query)
	addTool(a, s, "whatif_policy", "What the next cycle would be under another policy file: who gains, who loses, "+
		"what would be reclaimed, and what comes of it. Nothing is put in force.", a.whatifPolicy)
	addTool(a, s, "whatif_demand", "What demand and hosts that are not there would get: at once, from whom, what "+
		"would stop for it, and when it would have all. Nothing is asked for in earnest.", a.whatifDemand)
	addTool(a, s, "check", "Whether a policy file is good: all faults with line and column, then warnings, then what "+
		"each consumer is guaranteed.", a.check)
	return s
}

const mcpInstructions = `stint divides a shared cluster among a tree of consumers, cycle after cycle. Begin with query on consumers or shortfalls, then
explain one of them. Paths of consumers begin with a slash; /A:job is an allocation of /A. All tools only read.`

// addTool adds a tool that answers with a text, within its time. A bug costs one call and not the session.
func addTool[In any](
	a *assistant, s *mcp.Server, name, about string, answer func(context.Context, In) (string, error),
) {
	closed := false
	tool := &mcp.Tool{Name: name, Description: about,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed}}
	mcp.AddTool(s, tool, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		ctx, cancel := context.WithTimeout(ctx, mcpCallMax)
		defer cancel()
		text, err := guarded(a.stderr, name, func() (string, error) { return answer(ctx, in) })
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
}

// guarded gives an answer, or an error in place of a panic, of which stderr gets the stack.
func guarded(stderr io.Writer, tool string, answer func() (string, error)) (text string, err error) {
	defer func() {
		if v := recover(); v != nil {
			fmt.Fprintf(stderr, "stint mcp: a bug in %s: %v\n%s", tool, v, debug.Stack())
			text, err = "", fmt.Errorf("%s: a bug of stint (%v): ask otherwise, and report what stderr has of it",
				tool, v)
		}
	}()
	return answer()
}

type explainQuestion struct {
	Consumer   string `json:"consumer" jsonschema:"path of the consumer, such as /Risk/Day"`
	Allocation string `json:"allocation,omitempty" jsonschema:"one of its allocations"`
	Cycle      int64  `json:"cycle,omitempty" jsonschema:"number of a cycle; the last one without"`
}

func (a *assistant) explain(ctx context.Context, q explainQuestion) (string, error) {
	name := q.Consumer
	if q.Allocation != "" {
		name += ":" + q.Allocation
	}
	e, err := a.from.explanation(ctx, name, cycleOf(q.Cycle))
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = e.Write(&b, explain.Style{Width: mcpWidth})
	return b.String(), err
}

func cycleOf(n int64) string {
	if n == 0 {
		return "last"
	}
	return strconv.FormatInt(n, 10)
}

type tableQuestion struct {
	Table string   `json:"table" jsonschema:"name of the table"`
	Cycle int64    `json:"cycle,omitempty" jsonschema:"number of a cycle; the last one without"`
	Where []string `json:"where,omitempty" jsonschema:"conditions that rows must meet, such as consumer=/Risk/Day"`
	Rows  int      `json:"rows,omitempty" jsonschema:"how many rows at most (200, at most 5000)"`
}

func (a *assistant) query(ctx context.Context, q tableQuestion) (string, error) {
	o := export.PrintOptions{RowsMax: q.Rows}
	switch {
	case q.Rows < 0 || q.Rows > mcpRowsMax:
		return "", fmt.Errorf("rows %d: must be at most %d", q.Rows, mcpRowsMax)
	case q.Rows == 0:
		o.RowsMax = mcpRows
	}
	for _, text := range q.Where {
		w, err := export.ParseWhere(text)
		if err != nil {
			return "", fmt.Errorf("where: %w", err)
		}
		o.Where = append(o.Where, w)
	}
	t, err := a.from.table(ctx, q.Table, cycleOf(q.Cycle))
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := export.Print(&b, t, "csv", o); err != nil {
		return "", err
	}
	if n := bytes.Count(b.Bytes(), []byte{'\n'}) - 1; n >= o.RowsMax && t.Rows > n {
		fmt.Fprintf(&b, "… the first %d rows that match; ask with where, or for more rows\n", o.RowsMax)
	}
	return b.String(), nil
}

type policyQuestion struct {
	Plan   string `json:"plan" jsonschema:"the whole other policy file, YAML"`
	Settle *int   `json:"settle,omitempty" jsonschema:"how many cycles to look ahead at most (100)"`
	Force  bool   `json:"force,omitempty" jsonschema:"it may leave out consumers that hold something"`
}

func (a *assistant) whatifPolicy(ctx context.Context, q policyQuestion) (string, error) {
	o := whatifOptions{place: a.from, cycle: "last", settle: 100, force: q.Force}
	if q.Settle != nil {
		o.settle = *q.Settle
	}
	if o.settle < 0 || o.settle > settleMax {
		return "", fmt.Errorf("settle %d: must be from 0 to %d", o.settle, settleMax)
	}
	p, err := plan.Parse("plan", []byte(q.Plan))
	if err != nil {
		return "", err
	}
	c, err := o.comparison(ctx, []byte(q.Plan), p, a.stderr)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = c.Write(&b, "the policy given", explain.Style{Width: mcpWidth})
	return b.String(), err
}

type demandQuestion struct {
	Demand   []map[string]any `json:"demand" jsonschema:"rows: consumer, allocation, units, a key for each dimension of a unit's size, runtime such as 90s; requirement, max_per_host, min_units (a gang), together, sub, plan where needed"`
	Hosts    []map[string]any `json:"hosts,omitempty" jsonschema:"rows of hosts that are not there: host, dimensions, attributes"`
	Runtimes []string         `json:"runtimes,omitempty" jsonschema:"how long units of a consumer run: /Risk=10m or /Risk=p50:10m,p90:1h"`
	Horizon  string           `json:"horizon,omitempty" jsonschema:"how far to look ahead, such as 24h, which is the default"`
}

func (a *assistant) whatifDemand(ctx context.Context, q demandQuestion) (string, error) {
	o := whatifOptions{place: a.from, cycle: "last"}
	o.runtimes, o.horizon, o.within, o.plays = q.Runtimes, 24*time.Hour, 10*time.Second, 20
	if q.Horizon != "" {
		d, err := time.ParseDuration(q.Horizon)
		if err != nil || d < 0 {
			return "", fmt.Errorf("horizon %q: must be a duration such as 24h", q.Horizon)
		}
		o.horizon = d
	}
	rows := func(kind string, list []map[string]any) (*given, error) {
		text, err := json.Marshal(list)
		return &given{kind: kind, name: kind, format: "json", content: text}, err
	}
	demand, err := rows(kindDemand, q.Demand)
	if err != nil {
		return "", err
	}
	var hosts *given
	if len(q.Hosts) > 0 {
		if hosts, err = rows(kindHosts, q.Hosts); err != nil {
			return "", err
		}
	}
	answer, err := o.simulation(ctx, demand, hosts, a.stderr)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = printSimulation(&b, answer)
	return b.String(), err
}

type checkQuestion struct {
	Plan string `json:"plan" jsonschema:"the whole policy file, YAML"`
}

// check gives faults as its answer, not as an error.
func (a *assistant) check(_ context.Context, q checkQuestion) (string, error) {
	k := checked{File: "plan"}
	err := k.content(&checkOptions{}, []byte(q.Plan), mcpWidth)
	var b bytes.Buffer
	if err != nil {
		fmt.Fprintln(&b, err)
	}
	var faults plan.Faults
	if errors.As(err, &faults) && faults.Bug() != "" {
		fmt.Fprintf(a.stderr, "stint mcp: a bug in check: %s", faults.Bug())
	}
	for _, w := range k.Warnings {
		fmt.Fprintln(&b, "warning:", w)
	}
	b.WriteString(k.text)
	return b.String(), nil
}
