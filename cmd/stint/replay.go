package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/export"
)

func newReplayCommand() *cobra.Command {
	var log, from, to, output string
	c := &cobra.Command{
		Use:   "replay --log LOG",
		Short: "Decides logged cycles again and compares digests",
		Long: `Decides the cycles of a log again, from the inputs that the log kept, and compares the digest of
what each decides with the digest that the log names and with that of the log's files. Of a cycle that is otherwise
it names the tables that differ.

What a cycle decides depends on all that came before it. So the log has, with the first cycle of a UTC day and with
every 60th, the whole state after it. With --from, replay begins with the last one before that cycle: what lies between is
decided, and not compared. Without, it begins with the first cycle; where compact dropped that,
with the first state that is left, and compares the cycles after it.

Cycles that another version of the rules decided are not decided again: replay names the version and compares the
digests of their files. It goes on after the first state saved since then.

Exit codes: 0 all are the same, 1 a cycle decides otherwise, 2 the log cannot be read.`,
		Example: `  stint replay --log demo/log
  stint replay --log demo/log --from 60 --to 120
  stint replay --log demo/log --output json
  stint replay --log s3://allocator/prod`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q: must be table or json", output)
			}
			r, err := openLog(log)
			if err != nil {
				return err
			}
			first, last, err := cycleRange(r, from, to)
			if err != nil {
				return err
			}
			if from == "" {
				if first, err = decidable(r, log); err != nil {
					return err
				}
			}
			if first > last {
				return fmt.Errorf("cycle %d cannot be decided again: the first saved state is that after cycle %d, "+
					"and earlier cycles are gone", last, first-1)
			}
			p := replaying{r: r, log: log, first: first, last: last, rules: decision.RulesVersion,
				asJSON: output == "json"}
			return p.run(c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&log, "log", "", logHelp)
	f.StringVar(&from, "from", "", "the first cycle that is compared (the first that can be)")
	f.StringVar(&to, "to", "", "the last cycle that is compared (the log's last)")
	f.StringVar(&output, "output", "table", "table or json")
	required(c, "log")
	return c
}

// cycleRange reads --from and --to; without them it is the whole log.
func cycleRange(r *export.Reader, from, to string) (first, last int64, err error) {
	cycles := r.Cycles()
	if len(cycles) == 0 {
		return 0, 0, fmt.Errorf("the log has no cycle yet")
	}
	first, last = cycles[0], cycles[len(cycles)-1]
	for _, f := range []struct {
		name, text string
		into       *int64
	}{{"from", from, &first}, {"to", to, &last}} {
		if f.text == "" {
			continue
		}
		n, err := strconv.ParseInt(f.text, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("--%s %q: must be the number of a cycle", f.name, f.text)
		}
		if _, ok := slices.BinarySearch(cycles, n); !ok {
			return 0, 0, fmt.Errorf("--%s %d: there are the cycles %d to %d", f.name, n, cycles[0],
				cycles[len(cycles)-1])
		}
		*f.into = n
	}
	if first > last {
		return 0, 0, fmt.Errorf("--from %d is after --to %d", first, last)
	}
	return first, last, nil
}

// decidable is the first cycle of a log that can be decided again: 1, or where cycles were dropped the one after the
// first saved state.
func decidable(r *export.Reader, log string) (int64, error) {
	cycles, states := r.Cycles(), r.States()
	switch {
	case cycles[0] == 1:
		return 1, nil
	case len(states) > 0:
		return states[0] + 1, nil
	}
	return 0, fmt.Errorf("%s: its first cycle is %d, and it has no saved state; without the cycles before it nothing "+
		"can be decided again", log, cycles[0])
}

// otherwise is a cycle whose decisions differ from the log.
type otherwise struct {
	Cycle   int64  `json:"cycle"`
	What    string `json:"what"`
	Logged  string `json:"logged"`
	Decided string `json:"decided"`
	// Tables are the tables in which decisions and files differ, with their rows.
	Tables []string `json:"tables,omitempty"`

	misnamed bool // the logged digest alone is wrong: the tables are the same
}

func (o *otherwise) Error() string {
	text := fmt.Sprintf("cycle %d: %s (digest %s, logged %s)", o.Cycle, o.What, o.Decided, o.Logged)
	if len(o.Tables) > 0 {
		text += ", in " + strings.Join(o.Tables, ", ")
	}
	return text
}

// replaying is a call of replay.
type replaying struct {
	r           *export.Reader
	log         string
	first, last int64
	rules       string // the version of the rules that this stint decides by
	asJSON      bool
}

// replayReport is the result of a replay.
type replayReport struct {
	Log      string       `json:"log"`
	From     int64        `json:"from"`
	To       int64        `json:"to"`
	Compared int64        `json:"compared"`
	State    int64        `json:"state"`                 // after which cycle the state was that it began with; 0: none
	Other    []otherRules `json:"other_rules,omitempty"` // cycles of other versions of the rules
	Faults   []*otherwise `json:"faults"`
}

// run compares cycles and prints how it went.
func (p *replaying) run(stdout, stderr io.Writer) error {
	start := time.Now()
	within, err := rangeByRules(p.r, p.first, p.last, p.rules)
	if err != nil {
		return err
	}
	result := replayReport{Log: p.log, From: p.first, To: p.last, Other: within.other, Faults: []*otherwise{}}
	err = intact(p.r, within.other, func(o *otherwise) { result.Faults = append(result.Faults, o) })
	if err != nil {
		return err
	}
	if within.first <= within.last {
		err := p.compare(within, &result, stderr)
		if err != nil {
			return err
		}
	}
	if p.asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(result)
	} else {
		err = result.print(stdout, p.rules, time.Since(start))
	}
	if err == nil && len(result.Faults) > 0 {
		return errFound
	}
	return err
}

// compare decides a range again and adds what differs.
func (p *replaying) compare(within replayRange, result *replayReport, stderr io.Writer) error {
	b := newReplay()
	err := b.restore(p.r, p.log, within.first)
	if err != nil {
		return err
	}
	if b.state != nil {
		result.State = b.state.Cycle
	}
	return b.run(p.r, p.log, within.last, stderr, func(o *otherwise, cycle int64) error {
		if cycle < within.first {
			return nil
		}
		if result.Compared++; o != nil {
			result.Faults = append(result.Faults, o)
		}
		return nil
	})
}

func (r *replayReport) print(w io.Writer, rules string, took time.Duration) error {
	p := painter(w)
	for _, o := range r.Faults[:min(len(r.Faults), warningsMax)] {
		if _, err := fmt.Fprintf(w, "%s cycle %d: %s\n  logged   %s\n  decided  %s\n", p.bad("FAIL"), o.Cycle, o.What,
			o.Logged, o.Decided); err != nil {
			return err
		}
		for _, table := range o.Tables {
			if _, err := fmt.Fprintf(w, "  in       %s\n", table); err != nil {
				return err
			}
		}
	}
	word, from := p.good("ok  "), ""
	if len(r.Faults) > 0 {
		word = p.bad("FAIL")
	}
	if r.State > 0 {
		from = fmt.Sprintf("from the state after cycle %d, ", r.State)
	}
	for _, o := range r.Other {
		if _, err := fmt.Fprintf(w, "%s %s\n", p.faint("left"), o.line(rules)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s cycles %d to %d: %s compared, %s otherwise (%s%s)\n", word, r.From, r.To,
		grouped(r.Compared), grouped(int64(len(r.Faults))), from, took.Round(time.Millisecond))
	return err
}

// newReplay is a batch that takes every input of a log: a log has no input that was refused.
func newReplay() *batch { return &batch{reportUnknown: true, force: true, accepted: true} }

// restore begins a replay that is to compare from a cycle on: with the last state saved before it, or with none when it
// shall begin with the first cycle. Errors: the state is damaged; there is none, and the first cycles are gone.
func (b *batch) restore(r *export.Reader, log string, first int64) error {
	states := r.States()
	i := sort.Search(len(states), func(i int) bool { return states[i] >= first })
	if i == 0 {
		if n := r.Cycles()[0]; n != 1 {
			return fmt.Errorf("%s: cycle %d cannot be decided again: cycles before %d are gone, and no state was "+
				"saved before it", log, first, n)
		}
		return nil
	}
	from := states[i-1]
	saved, err := r.State(from)
	if err != nil {
		return fmt.Errorf("%w\n%s: the state after cycle %d is of no use; without its file replay begins with one "+
			"before it", err, log, from)
	}
	b.state, err = cluster.LoadFrame(saved, func(digest string) (*plan.Policy, error) {
		content, in, err := r.Policy(from)
		if err == nil && in != digest {
			content, err = r.InputContent(kindPlan, digest)
		}
		if err != nil {
			return nil, err
		}
		return plan.ParseAccepted(log+"/"+kindPlan+"/"+digest, content)
	})
	if err == nil && b.state.Cycle != from {
		err = fmt.Errorf("it is that after cycle %d", b.state.Cycle)
	}
	if err != nil {
		return fmt.Errorf("%s: the state after cycle %d: %w", log, from, err)
	}
	return nil
}

// replay rebuilds the state at the end of a log from the inputs of its cycles, and checks that each cycle
// decides again what the log says, and that its files still say so. It takes as long as the cycles took, and
// as reading the whole log takes. Where the first cycles are gone it begins with the first saved state.
func (b *batch) replay(log string, stderr io.Writer) error {
	r, err := export.OpenLog(log)
	if err != nil {
		return err
	}
	cycles := r.Cycles()
	if len(cycles) == 0 {
		return nil
	}
	first, err := decidable(r, log)
	if err == nil {
		err = b.restore(r, log, first)
	}
	if err != nil {
		return err
	}
	return b.run(r, log, cycles[len(cycles)-1], stderr, func(o *otherwise, _ int64) error {
		return acceptable(o, log, stderr)
	})
}

// acceptable is the error of a cycle that differs from the log, where later cycles would not follow from the log's. A
// digest that alone is wrong is warned of: every table is as decided.
func acceptable(o *otherwise, log string, stderr io.Writer) error {
	switch {
	case o == nil:
		return nil
	case o.misnamed:
		warn(stderr, []string{fmt.Sprintf("%s: %v", log, o)})
		return nil
	}
	return fmt.Errorf("%s: %w: the log is damaged, or of another version", log, o)
}

// run decides the cycles of a log up to last, from the first or those that follow what restore brought back, and shows
// each to a function: with the difference, nil when there is none. The difference of a cycle behind another difference
// tells nothing, but is told too.
func (b *batch) run(r *export.Reader, log string, last int64, stderr io.Writer,
	seen func(o *otherwise, cycle int64) error) error {
	cycles := r.Cycles()
	if b.state != nil {
		cycles = cycles[sort.Search(len(cycles), func(i int) bool { return cycles[i] > b.state.Cycle }):]
	}
	status := progress(stderr)
	defer status("")
	for i, n := range cycles {
		if n > last {
			break
		}
		if err := b.inputs(r, log, n); err != nil {
			return err
		}
		t, err := r.Table("cycles", n)
		if err != nil {
			return err
		}
		b.cycle(t.Column("now").Int[0])
		digest := t.Column("decisions_digest")
		logged := string(digest.Dict.Bytes(digest.Code[0]))
		found, err := b.compare(r, n, logged)
		if err != nil {
			return err
		}
		if err := seen(found, n); err != nil {
			return err
		}
		status(bar("replay", i+1, len(cycles)))
	}
	return nil
}

// byRules tells by which version of the rules a logged cycle was decided, where that is another than today's.
func byRules(cycles *decision.Table) string {
	c := cycles.Column("rules_version")
	was := string(c.Dict.Bytes(c.Code[0]))
	if was == decision.RulesVersion {
		return ""
	}
	return fmt.Sprintf(": it was decided by rules version %s, and this is version %s (CHANGELOG.md)", was,
		decision.RulesVersion)
}

// compare holds the cycle that was decided last against cycle n of a log: its digest, and its files. It gives nil when
// all is the same.
func (b *batch) compare(r *export.Reader, n int64, logged string) (*otherwise, error) {
	decided := b.out.Summary.Digest
	files, err := r.Digest(n)
	if err != nil {
		return nil, err
	}
	if decided == logged && files == logged && b.out.Summary.Cycle == n {
		return nil, nil
	}
	t, err := r.Table("cycles", n)
	if err != nil {
		return nil, err
	}
	o := &otherwise{Cycle: n, What: "it decides otherwise" + byRules(t), Logged: logged, Decided: decided}
	switch {
	case b.out.Summary.Cycle != n:
		o.What = fmt.Sprintf("it is decided as cycle %d", b.out.Summary.Cycle)
		return o, nil
	case decided == files:
		o.What, o.misnamed = "its tables are as decided, and the logged digest is not theirs", true
		return o, nil
	case decided == logged:
		o.What, o.Decided = "its files say otherwise", files
	}
	for _, is := range b.out.Tables() {
		was, err := r.Table(is.Name, n)
		if err != nil {
			return nil, err
		}
		if decision.Digest([]decision.Table{is}) != decision.Digest([]decision.Table{*was}) {
			text := fmt.Sprintf("%s (%d rows decided, %d in its files)", is.Name, is.Rows, was.Rows)
			o.Tables = append(o.Tables, text)
		}
	}
	return o, nil
}

// inputs applies a cycle's inputs.
func (b *batch) inputs(r *export.Reader, log string, cycle int64) error {
	inputs, err := r.Inputs(cycle)
	if err != nil {
		return err
	}
	for _, in := range inputs {
		content, err := r.InputContent(in.Kind, in.Digest)
		if err != nil {
			return err
		}
		name := log + "/" + in.Kind + "/" + in.Digest
		if err := b.apply(&given{kind: in.Kind, source: in.Source, format: in.Format, name: name,
			content: content}); err != nil {
			return fmt.Errorf("%w\n%s: cycle %d cannot be replayReport", err, log, cycle)
		}
	}
	if b.state == nil {
		return fmt.Errorf("%s: cycle %d has no policy among its inputs", log, cycle)
	}
	return nil
}
