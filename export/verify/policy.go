package verify

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// none stands for a limit, grace or budget that is not set.
const none int64 = -1

// policy is what a policy file says, as far as figures of a log follow from it. Whether it is right was checked when
// it was taken.
type policy struct {
	zone       *time.Location
	interval   int64 // µs
	dimensions []string
	groups     map[string]*group
	paths      []string       // consumers in tree order: parents before children, siblings as listed
	place      map[string]int // of each in that order; the root is before all
	children   map[string][]string
	rank       map[string]int64
	grace      map[string]int64 // reclaim_grace in µs
	runtime    map[string]int64 // min_runtime in µs, of those who have one or inherit it
	renamed    map[string]string
	plans      []*plan // MD plans, then slot plans, as listed
	byName     map[string]*plan
}

type group struct {
	hosts  []string
	cond   *expr // nil: listed
	slots  *expr // nil: the dimension slots
	listed map[string]bool
}

// plan is an MD plan or a slot plan.
type plan struct {
	name        string
	md          bool
	groups      []string
	overcommit  map[string]int64 // thousandths
	placement   string
	exclusive   string // by allocation or consumer, "" when not exclusive
	configured  int64
	budget      int64
	confirmed   bool
	overdue     int64
	lead        int64
	static      bool // share_quota: static
	share       bool // share_reclaim
	recallFirst bool // recall: before_borrow
	even, keep  bool // distribute_evenly, disable_reclaim_on_shrink
	windows     []*window
	member      map[string]bool
	owners      bool // MD: some consumer owns something, in some window
	pubGrace    int64
	rebalance   int64            // ownership_rebalance
	band        int64            // MD: fair_band in thousandths
	halfLife    int64            // MD: share.half_life in µs, 0: none
	weight      int64            // MD: share.weight in thousandths
	device      string           // MD: the dimension that lies on devices, "" none
	per         int64            // what each of them has
	preference  map[string]int64 // MD: of its groups
	preferring  bool             // MD: reclaim_for_preference
	allowances  map[string]allowance
}

// window is the settings of a plan that hold at some time of the day, with the plan's own beneath.
type window struct {
	name     string
	from, to int   // minutes
	since    int64 // of a dated window, µs since 1970
	until    int64 // 0: it recurs
	days     [7]bool
	entry    map[string]*entry
}

// entry is a consumer's settings in a window of a plan.
type entry struct {
	rank       int64
	kind       string // ownership, share_ratio, hybrid, of the first-level branch; md
	owns       int64
	reserves   int64
	most       int64 // hybrid: limit; else share.max
	lend       int64
	lendTo     []string // nil: any
	borrow     int64    // none: without limit
	borrowFrom []string
	ratio      int64
	priority   int64
	limit      map[string]int64 // MD: share limit
	takes      bool             // MD: share_reclaim
	lendGrace  int64            // MD
	poolGrace  int64
	own        []ownRule        // MD
	reserve    reserve          // MD
	preference map[string]int64 // MD: of groups, its own and inherited ones
}

func (p *policy) dimension(name string) (int, bool) {
	for d, n := range p.dimensions {
		if n == name {
			return d, true
		}
	}
	return 0, false
}

// leaf tells whether a consumer has no children.
func (p *policy) leaf(path string) bool { return len(p.children[path]) == 0 }

// object is a mapping of the file.
type object map[string]any

func (o object) list(name string) []any {
	list, _ := o[name].([]any)
	return list
}

func (o object) objects(name string) (all []object) {
	for _, v := range o.list(name) {
		all = append(all, asObject(v))
	}
	return all
}

func asObject(v any) object {
	m, _ := v.(map[string]any)
	return m
}

func (o object) text(name, otherwise string) string {
	if v, ok := o[name]; ok && v != nil {
		return fmt.Sprint(v)
	}
	return otherwise
}

func (o object) whole(name string, otherwise int64) int64 {
	switch v := o[name].(type) {
	case uint64:
		return int64(v)
	case int64:
		return v
	case int:
		return int64(v)
	case float64:
		return int64(v)
	}
	return otherwise
}

func (o object) yes(name string, otherwise bool) bool {
	if v, ok := o[name].(bool); ok {
		return v
	}
	return otherwise
}

// duration is µs.
func (o object) duration(name string, otherwise int64) int64 {
	if v, ok := o[name]; ok {
		if d, err := time.ParseDuration(fmt.Sprint(v)); err == nil {
			return d.Microseconds()
		}
		return o.whole(name, otherwise)
	}
	return otherwise
}

func (o object) texts(name string) []string {
	switch v := o[name].(type) {
	case nil:
		return nil
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, fmt.Sprint(one))
		}
		return all
	default:
		return []string{fmt.Sprint(v)}
	}
}

// policyBytesMax bounds a policy file.
const policyBytesMax = 64 << 20

// parsePolicy reads a policy file.
func parsePolicy(text []byte) (*policy, error) {
	if len(text) > policyBytesMax {
		return nil, fmt.Errorf("more than %d bytes", policyBytesMax)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	var v aliases
	for _, d := range file.Docs {
		if ast.Walk(&v, d.Body); v.found {
			return nil, errors.New("anchors and aliases are no part of a policy file")
		}
	}
	var root map[string]any
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	o := object(root)
	p := &policy{groups: map[string]*group{}, children: map[string][]string{}, rank: map[string]int64{},
		grace: map[string]int64{}, runtime: map[string]int64{}, renamed: map[string]string{},
		byName:   map[string]*plan{},
		interval: o.duration("interval", 60e6), dimensions: o.texts("dimensions")}
	if p.zone, err = time.LoadLocation(o.text("timezone", "UTC")); err != nil {
		return nil, err
	}
	for _, g := range o.objects("resource_groups") {
		if err := p.group(g); err != nil {
			return nil, err
		}
	}
	p.consumers(o.objects("consumers"))
	here := o.decided()
	for _, m := range o.objects("md_plans") {
		if here(m.text("name", "")) {
			p.add(p.mdPlan(m))
		}
	}
	for _, s := range o.objects("slot_plans") {
		if here(s.text("resource_group", "")) {
			p.add(p.slotPlan(s))
		}
	}
	return p, nil
}

// decided tells of a plan whether the log of this policy file decides it: those of other divisions have logs of their
// own.
func (o object) decided() func(plan string) bool {
	division := o.text("division", "")
	for _, d := range o.objects("divisions") {
		if d.text("name", "") == division {
			plans := d.texts("plans")
			return func(plan string) bool { return slices.Contains(plans, plan) }
		}
	}
	return func(string) bool { return true }
}

// aliases finds what could make a small file a large one.
type aliases struct{ found bool }

// Visit looks at a node.
func (a *aliases) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		a.found = true
	}
	return a
}

func (p *policy) add(one *plan) {
	p.plans = append(p.plans, one)
	p.byName[one.name] = one
}

func (p *policy) group(o object) (err error) {
	g := &group{hosts: o.texts("hosts"), listed: map[string]bool{}}
	if text := o.text("select", ""); text != "" {
		if g.cond, err = parseSelect(text); err != nil {
			return fmt.Errorf("group %s: %w", o.text("name", ""), err)
		}
	}
	if text := o.text("slots", ""); text != "" {
		if g.slots, err = parseNumber(text); err != nil {
			return fmt.Errorf("group %s: %w", o.text("name", ""), err)
		}
	}
	p.groups[o.text("name", "")] = g
	return nil
}

// consumers lays out the tree.
func (p *policy) consumers(list []object) {
	for _, c := range list {
		path := c.text("path", "")
		p.children[parentOf(path)] = append(p.children[parentOf(path)], path)
		p.rank[path] = c.whole("rank", 0)
		p.grace[path] = c.duration("reclaim_grace", none)
		if us := c.duration("min_runtime", p.runtime[parentOf(path)]); us > 0 { // its parent comes before it
			p.runtime[path] = us
		}
		if old := c.text("renamed_from", ""); old != "" {
			p.renamed[old] = path
		}
	}
	var walk func(path string)
	walk = func(path string) {
		p.paths = append(p.paths, path)
		if p.grace[path] == none {
			p.grace[path] = p.grace[parentOf(path)] // the root's is 0
		}
		for _, c := range p.children[path] {
			walk(c)
		}
	}
	for _, c := range p.children["/"] {
		walk(c)
	}
	p.place = map[string]int{"/": -1}
	for i, path := range p.paths {
		p.place[path] = i
	}
}

// parentOf is the path above one, "" above the root.
func parentOf(path string) string {
	switch i := strings.LastIndexByte(path, '/'); {
	case path == "/":
		return ""
	case i <= 0:
		return "/"
	default:
		return path[:i]
	}
}

// under tells whether a path is another or below it.
func under(path, of string) bool {
	return path == of || of == "/" || strings.HasPrefix(path, of+"/")
}

// pace reads what both kinds of plans have.
func (p *policy) pace(t *plan, o object) *plan {
	t.budget, t.overdue = o.whole("reclaim_budget", none), o.duration("overdue_after", none)
	t.confirmed, t.lead = o.text("release", "assumed") == "confirmed", o.duration("lead", 0)
	t.share = o.yes("share_reclaim", true)
	t.member = map[string]bool{}
	base := map[string]object{}
	for _, c := range o.objects("consumers") {
		base[c.text("path", "")] = c
		if a, ok := allowanceOf(c); ok {
			if t.allowances == nil {
				t.allowances = map[string]allowance{}
			}
			t.allowances[c.text("path", "")] = a
		}
	}
	list := o.objects("windows")
	if !slices.ContainsFunc(list, func(w object) bool { return w["hours"] != nil }) {
		list = append(slices.Clone(list), object{"hours": "00:00-24:00"}) // what holds outside of dated windows
	}
	for _, w := range list {
		over := map[string]object{}
		for _, c := range w.objects("consumers") {
			over[c.text("path", "")] = c
		}
		t.windows = append(t.windows, p.window(t, w, base, over))
	}
	return t
}

var weekdays = map[string]int{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}

// window reads a window: of each consumer the plan's keys, replaced by the window's.
func (p *policy) window(t *plan, o object, base, over map[string]object) *window {
	w := &window{name: o.text("name", ""), entry: map[string]*entry{}}
	from, to, _ := strings.Cut(o.text("hours", ""), "-")
	w.from, w.to = minuteOf(from), minuteOf(to)%(24*60)
	w.since, w.until = p.dated(o.text("from", "")), p.dated(o.text("until", ""))
	for _, d := range o.texts("days") {
		w.days[weekdays[d]] = true
	}
	if o["days"] == nil && w.until == 0 {
		w.days = [7]bool{true, true, true, true, true, true, true}
	}
	for _, path := range p.paths {
		merged := object{}
		for _, from := range []object{base[path], over[path]} {
			for k, v := range from {
				merged[k] = v
			}
		}
		if base[path] != nil || over[path] != nil {
			t.member[path] = true
		}
		e := p.entry(t, path, merged)
		if up := w.entry[parentOf(path)]; up != nil && !t.md {
			e.kind = up.kind
			if e.kind == "hybrid" {
				e.most = merged.whole("limit", none)
			} else {
				e.most = asObject(merged["share"]).whole("max", none)
			}
		}
		if w.entry[path] = e; !t.md {
			e.forget()
			continue
		}
		for _, g := range t.groups { // inherited from the parent, then from the plan
			if _, ok := e.preference[g]; ok {
				continue
			}
			e.preference[g] = t.preference[g]
			if up := w.entry[parentOf(path)]; up != nil {
				e.preference[g] = up.preference[g]
			}
		}
	}
	return w
}

// forget leaves out what is said for another policy: where windows change a branch's policy, entries have the keys of
// both.
func (e *entry) forget() {
	if e.kind == "share_ratio" {
		e.owns = 0
	}
	if e.kind != "hybrid" {
		e.reserves = 0
	} else {
		e.ratio = 1
	}
	if e.kind != "ownership" {
		e.lend, e.lendTo, e.borrow, e.borrowFrom = 0, nil, 0, nil
	}
}

// dated is an instant that a policy file names by its wall clock, in µs since 1970; 0: it names none.
func (p *policy) dated(text string) int64 {
	if text == "" {
		return 0
	}
	day, clock, _ := strings.Cut(strings.Replace(text, "T", " ", 1), " ")
	at, err := time.ParseInLocation(time.DateOnly, day, p.zone)
	if err != nil {
		return 0
	}
	minute := minuteOf(clock)
	at = time.Date(at.Year(), at.Month(), at.Day(), minute/60, minute%60, 0, 0, p.zone)
	// clocks that go back show it twice
	for _, back := range []time.Duration{2 * time.Hour, time.Hour, 30 * time.Minute} {
		if first := at.Add(-back); first.Format(time.DateTime) == at.Format(time.DateTime) {
			return first.UnixMicro()
		}
	}
	return at.UnixMicro()
}

func minuteOf(text string) int {
	h, m, _ := strings.Cut(text, ":")
	hours, _ := strconv.Atoi(h)
	minutes, _ := strconv.Atoi(m)
	return hours*60 + minutes
}

func (p *policy) entry(t *plan, path string, o object) *entry {
	share := asObject(o["share"])
	e := &entry{rank: o.whole("rank", p.rank[path]), kind: o.text("policy", "ownership"), owns: o.whole("owns", 0),
		reserves: o.whole("reserves", 0), most: share.whole("max", none), ratio: share.whole("ratio", 1),
		priority: share.whole("priority", 0), takes: t.share && o.yes("share_reclaim", true),
		lendGrace: o.duration("lend_grace", none), poolGrace: o.duration("private_pool_grace", none),
		limit: map[string]int64{}}
	if t.md {
		e.kind = "md"
		for d, v := range asObject(share["limit"]) {
			e.limit[d] = object{"v": v}.whole("v", none)
		}
		e.own, e.reserve = p.own(o), p.reserveOf(o)
		e.preference = map[string]int64{}
		for g, v := range asObject(o["preference"]) {
			e.preference[g] = object{"v": v}.whole("v", 5)
		}
		t.owners = t.owners || len(e.own) > 0
	} else if e.kind == "hybrid" {
		e.most = o.whole("limit", none)
	}
	if lend, ok := o["lend"]; ok {
		e.lend, e.lendTo = asObject(lend).whole("limit", 0), asObject(lend).texts("to")
	}
	if borrow, ok := o["borrow"]; ok {
		e.borrow, e.borrowFrom = asObject(borrow).whole("limit", none), asObject(borrow).texts("from")
	}
	return e
}

func (p *policy) mdPlan(o object) *plan {
	t := &plan{name: o.text("name", ""), md: true, placement: o.text("placement", "best_fit"),
		overcommit: map[string]int64{},
		pubGrace:   asObject(o["public_pool"]).duration("grace", none), rebalance: o.whole("ownership_rebalance", 10),
		band: 10, preference: map[string]int64{}, preferring: o.yes("reclaim_for_preference", false)}
	if v, ok := o["fair_band"]; ok {
		if f, err := strconv.ParseFloat(fmt.Sprint(v), 64); err == nil {
			t.band = int64(math.Round(f * 1000))
		}
	}
	t.halfLifeOf(o)
	t.devicesOf(o)
	for _, g := range o.objects("resource_groups") {
		t.groups = append(t.groups, g.text("name", ""))
		t.preference[g.text("name", "")] = g.whole("preference", 5)
	}
	for d, v := range asObject(o["overcommit"]) {
		f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
		if err == nil {
			t.overcommit[d] = int64(math.Round(f * 1000))
		}
	}
	return p.pace(t, o)
}

func (p *policy) slotPlan(o object) *plan {
	name := o.text("resource_group", "")
	t := &plan{name: name, groups: []string{name}, placement: o.text("placement", "stacked"),
		configured: o.whole("configured_slots", none), static: o.text("share_quota", "") == "static",
		recallFirst: o.text("recall", "") == "before_borrow",
		even:        o.yes("distribute_evenly", false), keep: o.yes("disable_reclaim_on_shrink", false)}
	if t.placement == "exclusive" {
		t.exclusive = o.text("exclusive", "allocation")
	}
	return p.pace(t, o)
}

// at is the window of a plan that holds at an instant.
func (t *plan) at(us int64, zone *time.Location) *window {
	for _, w := range t.windows {
		if us >= w.since && us < w.until {
			return w
		}
	}
	now := time.UnixMicro(us).In(zone)
	minute, day := now.Hour()*60+now.Minute(), int(now.Weekday())
	for _, w := range t.windows {
		today, yesterday := w.days[day], w.days[(day+6)%7]
		if w.from < w.to && today && minute >= w.from && minute < w.to ||
			w.from >= w.to && (today && minute >= w.from || yesterday && minute < w.to) {
			return w
		}
	}
	return t.windows[0]
}

// windowsAt names the windows in force: one by its name, several with their plans'.
func (p *policy) windowsAt(us int64) string {
	var names, plain []string
	for _, t := range p.plans {
		if w := t.at(us, p.zone); w.name != "" {
			names, plain = append(names, t.name+":"+w.name), append(plain, w.name)
		}
	}
	if len(names) == 1 {
		return plain[0]
	}
	return strings.Join(names, " ")
}

// leaves are the leaves of a plan in tree order.
func (p *policy) leaves(t *plan) (all []string) {
	for _, path := range p.paths {
		if t.member[path] && p.leaf(path) {
			all = append(all, path)
		}
	}
	return all
}

// sorted are children of a consumer that take part in a plan, in the order of rank, ties in tree order.
func (p *policy) sorted(t *plan, w *window, path string) (all []string) {
	for _, c := range p.children[path] {
		if t.member[c] {
			all = append(all, c)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return w.entry[all[i]].rank < w.entry[all[j]].rank })
	return all
}
