package ownership

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

var rewrite = flag.Bool("rewrite", false, "write what comes out into the scripts of testdata")

// TestScripts plays the scripts of testdata. A case begins with ## and what it shows. Its lines:
//
//	hosts GROUP: a=4,100 b=4,100   adds hosts to a group, or changes their capacity
//	lost a b                       takes their capacity
//	table c=4,100                  what the hosts table says of hosts that are not the plan's
//	PATH rank: 1, own: […]         a consumer's entry, as in a policy file; again: in place of the one before
//	use a PATH 2,10                what is held on the parcel of a with that owner; again: in place of it
//	pass                           a pass; lines with > after it are what must come out
//
// Of a pass each consumer's pieces are shown as host#number amount, with .rule after the number when the
// consumer has several rules; then what is unmet, configured when that is more than owned, and reserved.
func TestScripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		head, rest, _ := strings.Cut(string(text), "\n## ")
		out := head
		for _, one := range strings.Split(rest, "\n## ") {
			title, body, _ := strings.Cut(one, "\n")
			got, err := play(body)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, title, err)
			}
			if strings.TrimSpace(got) != strings.TrimSpace(body) && !*rewrite {
				t.Errorf("%s: %s: got\n%s\nwant\n%s", name, title, got, body)
			}
			out += "\n## " + title + "\n" + got
		}
		if *rewrite {
			if err := os.WriteFile(name, []byte(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// play gives the text of a case with what comes out in place of its lines with >.
func play(body string) (string, error) {
	s := scene{own: map[string]string{}, known: map[string][]int64{}}
	var out strings.Builder
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, ">") {
			continue
		}
		fmt.Fprintln(&out, line)
		if err := s.do(line, &out); err != nil {
			return "", fmt.Errorf("%s: %w", line, err)
		}
	}
	return out.String(), nil
}

// scene is what a script has said so far.
type scene struct {
	group  []string
	member [][]string // by group
	host   []string
	cap    [][]int64 // by host
	known  map[string][]int64
	path   []string
	own    map[string]string // by path: the rest of the entry
	use    []struct {
		host, owner string
		amount      []int64
	}
	policy *plan.Policy // as the lines say; nil when they changed
	last   *plan.Policy // of the last pass
	a      Assigner
	deeds  *Deeds
}

func (s *scene) do(line string, out *strings.Builder) error {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case word == "" || word == "#":
	case word == "hosts":
		group, list, _ := strings.Cut(rest, ":")
		for _, one := range strings.Fields(list) {
			s.addHost(group, one)
		}
	case word == "lost":
		for _, name := range strings.Fields(rest) {
			clear(s.cap[slices.Index(s.host, name)])
		}
	case word == "table":
		for _, one := range strings.Fields(rest) {
			name, v, _ := strings.Cut(one, "=")
			s.known[name] = amountsIn(v)
		}
	case word == "use":
		f := strings.Fields(rest)
		s.hold(f[0], f[1], amountsIn(f[2]))
	case word[0] == '/':
		if _, known := s.own[word]; !known {
			s.path = append(s.path, word)
		}
		s.own[word] = rest
		s.policy = nil
	case word == "pass":
		return s.pass(out)
	default:
		return fmt.Errorf("what is %s?", word)
	}
	return nil
}

func amountsIn(s string) (v []int64) {
	for _, one := range strings.Split(s, ",") {
		n, err := strconv.ParseInt(one, 10, 64)
		if err != nil {
			panic(err)
		}
		v = append(v, n)
	}
	return v
}

func (s *scene) addHost(group, text string) {
	name, amount, _ := strings.Cut(text, "=")
	g := slices.Index(s.group, group)
	if g < 0 {
		g = len(s.group)
		s.group, s.member = append(s.group, group), append(s.member, nil)
		s.policy = nil
	}
	h := slices.Index(s.host, name)
	if h < 0 {
		h = len(s.host)
		s.host, s.cap = append(s.host, name), append(s.cap, nil)
	}
	s.cap[h] = amountsIn(amount)
	if !slices.Contains(s.member[g], name) {
		s.member[g] = append(s.member[g], name)
	}
}

func (s *scene) hold(host, owner string, amount []int64) {
	for i, u := range s.use {
		if u.host == host && u.owner == owner {
			s.use[i].amount = amount
			return
		}
	}
	s.use = append(s.use, struct {
		host, owner string
		amount      []int64
	}{host, owner, amount})
}

// compile makes the policy that the script's lines say.
func (s *scene) compile() error {
	if s.policy != nil {
		return nil
	}
	dims := []string{"ncpus", "maxmem", "gpus"}[:len(s.cap[0])]
	var b strings.Builder
	fmt.Fprintf(&b, "stint: 1\ndimensions: [%s]\nresource_groups:\n", strings.Join(dims, ", "))
	for _, g := range s.group {
		fmt.Fprintf(&b, "  - {name: %s, select: \"select(%s > 0)\"}\n", g, dims[0])
	}
	b.WriteString("consumers:\n")
	for _, path := range s.path {
		fmt.Fprintf(&b, "  - {path: %s}\n", path)
	}
	fmt.Fprintf(&b, "md_plans:\n  - name: p\n    resource_groups: [{name: %s}]\n    consumers:\n",
		strings.Join(s.group, "}, {name: "))
	for _, path := range s.path {
		entry := "path: " + path
		if s.own[path] != "" {
			entry += ", " + s.own[path]
		}
		fmt.Fprintf(&b, "      - {%s}\n", entry)
	}
	p, err := plan.Parse("p", []byte(b.String()))
	s.policy = p
	return err
}

func (s *scene) ground() *Ground {
	p := s.policy
	g := &Ground{Tree: &p.Tree, Plan: &p.MDPlans[0], Window: &p.MDPlans[0].Windows[0]}
	g.Rank = rankOrder(g.Tree, g.Window.Rank)
	g.Cap = make([][]int64, len(p.Dimensions))
	for _, v := range s.cap {
		for d, x := range v {
			g.Cap[d] = append(g.Cap[d], x)
		}
	}
	g.Closed = make([]uint64, (len(s.host)+63)/64)
	for _, member := range s.member {
		set := make([]uint64, (len(s.host)+63)/64)
		for _, name := range member {
			h := slices.Index(s.host, name)
			set[h>>6] |= 1 << (h & 63)
		}
		g.Group = append(g.Group, set)
	}
	g.Listed = func(name string) int32 { return int32(slices.Index(s.host, name)) }
	g.Known = func(name string, d int) int64 {
		if v, ok := s.known[name]; ok {
			return v[d]
		}
		return 0
	}
	for _, u := range s.use {
		n, ok := p.Find(u.owner)
		if !ok {
			panic(u.owner)
		}
		g.Use = append(g.Use, Use{int32(slices.Index(s.host, u.host)), n, u.amount})
	}
	return g
}

func (s *scene) pass(out *strings.Builder) error {
	was := s.policy
	if s.last != nil {
		was = s.last
	}
	if err := s.compile(); err != nil {
		return err
	}
	had := &Deeds{Amount: make([][]int64, len(s.cap[0])), Next: 1}
	if s.deeds != nil {
		had = carried(s.deeds, was.MDPlans[0].Windows[0].Own, s.policy.MDPlans[0].Windows[0].Own)
	}
	s.last = s.policy
	g := s.ground()
	s.deeds = s.a.Pass(g, had)
	for n := plan.Node(1); int(n) < g.Tree.Len(); n++ {
		s.show(g, n, out)
	}
	return nil
}

// carried are the deeds as the next pass has them: pieces of no claim where a list of rules is not what it was.
func carried(deeds *Deeds, was, now [][]plan.OwnRule) *Deeds {
	had := *deeds
	had.Rule = slices.Clone(deeds.Rule)
	for i, n := range had.Node {
		if !slices.EqualFunc(was[n], now[n], func(a, b plan.OwnRule) bool {
			a.Line, b.Line = 0, 0
			return reflect.DeepEqual(a, b)
		}) {
			had.Rule[i] = None
		}
	}
	return &had
}

// show prints what a consumer owns, and what is unmet, configured and reserved.
func (s *scene) show(g *Ground, n plan.Node, out *strings.Builder) {
	fmt.Fprintf(out, "> %s", g.Tree.Path[n])
	owned := make([]int64, len(g.Cap))
	for i := range s.deeds.Node {
		if s.deeds.Node[i] != n {
			continue
		}
		v := column(s.deeds.Amount, i)
		add(owned, v)
		fmt.Fprintf(out, " %s#%d", s.host[s.deeds.Host[i]], s.deeds.Number[i])
		if len(g.Window.Own[n]) > 1 {
			fmt.Fprintf(out, ".%d", s.deeds.Rule[i])
		}
		fmt.Fprintf(out, " %s", joined(v))
	}
	configured := make([]int64, len(g.Cap))
	for d := range configured {
		configured[d] = s.a.Configured(n, d)
	}
	if rule := s.a.Unmet(n); rule != None {
		fmt.Fprintf(out, "; unmet %d", rule)
	}
	if !slices.Equal(configured, owned) {
		fmt.Fprintf(out, "; configured %s", joined(configured))
	}
	if host, amount := s.a.Reserved(n); len(host) > 0 {
		out.WriteString("; reserved")
		for i, h := range host {
			fmt.Fprintf(out, " %s %s", s.host[h], joined(column(amount, i)))
		}
	}
	out.WriteString("\n")
}

func column(amount [][]int64, i int) (v []int64) {
	for d := range amount {
		v = append(v, amount[d][i])
	}
	return v
}

func joined(v []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]")
}

// rankOrder is every consumer's place when they are sorted by rank, level by level, ties in tree order.
func rankOrder(t *plan.Tree, rank []int32) []int32 {
	order, place := make([]int32, t.Len()), int32(0)
	var visit func(n plan.Node)
	visit = func(n plan.Node) {
		order[n] = place
		place++
		var children []plan.Node
		for c := t.First[n]; c != plan.None; c = t.Next[c] {
			children = append(children, c)
		}
		slices.SortStableFunc(children, func(a, b plan.Node) int { return cmp.Compare(rank[a], rank[b]) })
		for _, c := range children {
			visit(c)
		}
	}
	visit(plan.Root)
	return order
}
