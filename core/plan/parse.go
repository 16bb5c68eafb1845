package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a zone named in the policy is known on every machine
)

// DimensionsMax is how many dimensions a policy may have.
const DimensionsMax = 16

// Limits of what a policy file may hold.
const (
	groupsMax     = 10_000
	hostsMax      = 1_000_000 // of all groups
	consumersMax  = 1_000_000
	peopleMax     = 1000 // admins or users of one consumer
	plansMax      = 256  // of either kind
	planGroupsMax = 64   // of one MD plan
	windowsMax    = 64   // of one plan
	ownRulesMax   = 64   // of one consumer
	peersMax      = 1000 // of one lend.to or borrow.from
	cellsMax      = 4 << 20
)

// Parse reads, checks and compiles a policy file (SPEC chapter 6). The file's
// name is only used in messages. The error is of type Faults and lists all that
// is wrong, save that text which is no YAML at all gives the first fault only.
// Parsing takes time and memory in proportion to the text, nearly all in the YAML library: some 30 µs
// and 8 KB for each entry of a list of consumers. A panic of the parser becomes the last fault: see Faults.Bug.
func Parse(file string, text []byte) (*Policy, error) { return parsePolicy(file, text, false) }

// ParseAccepted is Parse of a policy file that was in force once: it may have been taken before some of today's faults
// were known, and what was acknowledged must start again. Such faults are passed over: children that own more than
// their parent (MD-2), system services without a slot of their own (PLAN-6), and dimensions that are called as a newer
// column.
func ParseAccepted(file string, text []byte) (*Policy, error) { return parsePolicy(file, text, true) }

func parsePolicy(file string, text []byte, accepted bool) (p *Policy, err error) {
	r := &reader{collector: collector{file: file}, accepted: accepted}
	defer func() {
		if v := recover(); v != nil {
			p, err = nil, r.bug(v)
		}
	}()
	root, ok := r.document(text)
	if !ok {
		return nil, r.faults()
	}
	p = r.policy(root)
	if faults := r.faults(); faults != nil {
		return nil, faults
	}
	if p.Division != "" {
		p.keepDivision()
	}
	digest := sha256.Sum256(text)
	p.Digest = hex.EncodeToString(digest[:])
	return p, nil
}

// policy reads the whole file.
func (r *reader) policy(root value) *Policy {
	p := &Policy{File: r.file, Location: time.UTC, IntervalUS: time.Minute.Microseconds()}
	p.grow([]string{"/"})
	f, ok := r.fields(root, fileObject.names...)
	if !ok {
		return p
	}
	if v, ok := r.need(root, f, "stint"); ok {
		r.version(v)
	}
	if v, ok := f.get("cluster"); ok {
		p.Cluster, _ = r.name(v)
	}
	if v, ok := f.get("timezone"); ok {
		p.Location = r.location(v)
	}
	if v, ok := f.get("interval"); ok {
		if us, ok := r.duration(v); ok && us < 1000 {
			r.fault(v, "must be at least 1ms")
		} else if ok {
			p.IntervalUS = us
		}
	}
	if v, ok := r.need(root, f, "dimensions"); ok {
		r.dimensions(p, v)
	}
	if v, ok := f.get("resource_groups"); ok {
		r.groups(p, v)
	}
	if v, ok := r.need(root, f, "consumers"); ok {
		r.consumers(p, v)
	}
	r.plans(p, f)
	r.divisions(p, f)
	return p
}

// need gets a field that must be there.
func (r *reader) need(v value, f fields, key string) (value, bool) {
	got, ok := f.get(key)
	if !ok {
		r.fault(v, "%s is missing", key)
	}
	return got, ok
}

func (r *reader) version(v value) {
	if n, ok := r.whole(v); ok && n != 1 {
		r.fault(v, "this version of stint reads policy files of version 1")
	}
}

func (r *reader) location(v value) *time.Location {
	if s, ok := r.name(v); ok {
		if at, err := time.LoadLocation(s); err == nil && s != "Local" {
			return at
		}
		r.fault(v, "unknown time zone; it must be UTC or a name such as Europe/London")
	}
	return time.UTC
}

// ReservedName tells whether a name is a column of stint's tables or a word of requirements, so that no dimension may
// have it.
func ReservedName(name string) bool {
	return slices.Contains(reserved, name) || slices.Contains(reservedSince, name)
}

var dimensionName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

// reserved are names that a dimension may not have: the columns of the tables
// of SPEC chapters 7 and 8, and the words that a requirement understands (REQ-1).
var reserved = strings.Fields(`
host state
consumer allocation sub units plan requirement max_per_host done
cycle now started finished revision rules_version window hosts consumers sub_allocations units_wanted units_held
units_granted units_reclaimed units_released units_short settle_us own_us entitle_us grant_us reclaim_us explain_us
emit_us inputs decisions_digest consumers_cycle shares_cycle shortfalls_cycle
source origin pool lender
reclaim action reason for_consumer for_allocation for_sub issued deadline
cause
policy rank demand held short owned_configured owned reserved limit static_quota quota held_owned held_shared
held_borrowed lent free
dimension configured
ratio priority usage usage_demand usage_quota
blocker detail until
amounts capacity used granted
author message digest kind format bytes rows
name type model`)

// reservedSince are names that columns have since tables came that had not been there: a policy that was accepted
// before may have a dimension of such a name.
var reservedSince = strings.Fields("borrower under_recall first_seen wanted attribute value min_units standing_cycle " +
	"together device")

func (r *reader) dimensions(p *Policy, v value) {
	list, _ := r.list(v, DimensionsMax)
	for _, one := range list {
		s, ok := r.name(one)
		switch {
		case !ok:
		case !dimensionName.MatchString(s):
			r.fault(one, "a dimension's name is a small letter and at most 30 small letters, digits and _ after it")
		case slices.Contains(reserved, s) || !r.accepted && slices.Contains(reservedSince, s):
			r.fault(one, "is no name for a dimension: a column of stint's tables has it")
		case slices.Contains(p.Dimensions, s):
			r.fault(one, "the dimension is listed twice")
		default:
			p.Dimensions = append(p.Dimensions, s)
		}
	}
	if list != nil && len(list) == 0 {
		r.fault(v, "there must be at least one dimension")
	}
}

func (r *reader) groups(p *Policy, v value) {
	list, _ := r.list(v, groupsMax)
	hosts := 0
	for _, one := range list {
		g, ok := r.group(one)
		if !ok {
			continue
		}
		if at := p.group(g.Name); at >= 0 {
			r.fault(one, "resource group %s is defined a second time, first on line %d", g.Name, p.Groups[at].Line)
			continue
		}
		if hosts += len(g.Hosts); hosts > hostsMax {
			r.fault(one, "the groups list more than %d hosts", hostsMax)
			return
		}
		if p.groups == nil {
			p.groups = make(map[string]int, len(list))
		}
		p.groups[g.Name] = len(p.Groups)
		p.Groups = append(p.Groups, g)
	}
}

// group gives the index of a resource group, -1 when there is none of that name.
func (p *Policy) group(name string) int {
	if g, ok := p.groups[name]; ok {
		return g
	}
	return -1
}

// group reads a resource group; ok is false when it has not even a name.
func (r *reader) group(v value) (g Group, ok bool) {
	f, ok := r.fields(v, groupObject.names...)
	if !ok {
		return g, false
	}
	g.Line = v.line()
	name, ok := r.need(v, f, "name")
	if ok {
		g.Name, ok = r.name(name)
	}
	hosts, listed := f.get("hosts")
	sel, selected := f.get("select")
	switch {
	case listed && selected:
		r.fault(sel, "a group has hosts or select, not both")
	case listed:
		if g.Hosts, _ = r.names(hosts, hostsMax); g.Hosts == nil {
			g.Hosts = []string{}
		}
	case selected:
		g.Select = r.selection(sel)
	default:
		r.fault(v, "a group needs hosts or select")
	}
	if slots, given := f.get("slots"); given {
		g.Slots = r.slots(slots)
	}
	return g, ok
}

// selection reads a group's select.
func (r *reader) selection(v value) *Requirement {
	s, ok := r.text(v, textBytesMax)
	if !ok {
		return nil
	}
	q, err := ParseRequirement(s)
	switch {
	case err != nil:
		r.fault(v, "%v", err)
		return nil
	case !q.Selects() || q.Ordered():
		r.fault(v, "must be select(…) alone; the hosts of a group stand in the order of the hosts table")
		return nil
	}
	return q
}

// slots reads a group's slot expression: a number or a numeric expression.
func (r *reader) slots(v value) *Requirement {
	s, ok := "", false
	if kindName(v.node) == "a number" {
		s, _ = scalar(v.node)
		_, ok = r.whole(v)
	} else {
		s, ok = r.text(v, textBytesMax)
	}
	if !ok {
		return nil
	}
	q, err := ParseExpression(s)
	if err != nil {
		r.fault(v, "%v", err)
		return nil
	}
	return q
}

// plans reads both kinds of plans.
func (r *reader) plans(p *Policy, f fields) {
	taken := planned{names: map[string]int32{}, groups: map[int]string{}, hosts: map[string]string{}}
	if v, ok := f.get("slot_plans"); ok {
		list, _ := r.list(v, plansMax)
		for _, one := range list {
			r.slotPlan(p, one, &taken)
		}
	}
	if v, ok := f.get("md_plans"); ok {
		list, _ := r.list(v, plansMax)
		for _, one := range list {
			r.mdPlan(p, one, &taken)
		}
	}
	if !r.accepted {
		r.services(p, &taken)
	}
}

// planned is what the plans read so far have taken: a host belongs to at most one plan.
type planned struct {
	names  map[string]int32  // plan → line
	groups map[int]string    // group → plan
	hosts  map[string]string // listed host → plan
	cells  int               // consumers × windows
	lacks  []lack            // where system services are without a slot of their own
}

// takeName takes a plan's name.
func (r *reader) takeName(t *planned, v value, name string) {
	if line, twice := t.names[name]; twice {
		r.fault(v, "there is already a plan of this name, on line %d", line)
		return
	}
	t.names[name] = v.line()
}

// takeGroup takes a group and the hosts it lists for a plan.
func (r *reader) takeGroup(p *Policy, t *planned, v value, g int, plan string) {
	if other, twice := t.groups[g]; twice {
		r.fault(v, "the group is in plan %s already; a host belongs to at most one plan", other)
		return
	}
	t.groups[g] = plan
	for _, host := range p.Groups[g].Hosts {
		if other, twice := t.hosts[host]; twice && other != plan {
			r.fault(v, "host %s of the group is in plan %s already; a host belongs to at most one plan", host, other)
			return
		}
		t.hosts[host] = plan
	}
}

// takeCells counts the settings that a plan will hold.
func (r *reader) takeCells(t *planned, v value, consumers, windows int) bool {
	t.cells = t.cells + consumers*windows
	if t.cells > cellsMax {
		r.fault(v, "consumers × windows of the plans are more than %d", cellsMax)
		return false
	}
	return true
}

// planGroup reads the name of a group.
func (r *reader) planGroup(p *Policy, v value) (g int, ok bool) {
	s, ok := r.name(v)
	if !ok {
		return 0, false
	}
	if g = p.group(s); g < 0 {
		r.fault(v, "there is no such resource group%s", listed(p.groupNames()))
		return 0, false
	}
	return g, true
}

// groupNames gives the first few groups' names, for a message.
func (p *Policy) groupNames() []string {
	names := make([]string, min(len(p.Groups), listedMax+1))
	for i := range names {
		names[i] = p.Groups[i].Name
	}
	return names
}

const listedMax = 5

// listed names what there is, for a message that something is not among it.
func listed(names []string) string {
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > listedMax {
		names, more = names[:listedMax], ", …"
	}
	return "; there are " + strings.Join(names, ", ") + more
}
