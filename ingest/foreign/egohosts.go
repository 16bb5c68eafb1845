package foreign

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stintd/stint/core/plan"
)

// egoGroup is a resource group of ResourceGroups.xml.
type egoGroupDef struct {
	name, slots, choose, plugin string
	hosts                       []string
	line, chooseLine            int
}

// groups reads ResourceGroups.xml.
func (g *ego) groups(f *File) error {
	root, err := readXML(f.Name, f.R)
	if err != nil {
		return err
	}
	if root.name != "ResourceGroupConfiguration" {
		return fmt.Errorf("%s:%d: <%s> is the root element; <ResourceGroupConfiguration> is expected", f.Name,
			root.line, root.name)
	}
	for _, e := range root.children {
		switch e.name {
		case "Version":
		case "ResourceGroup":
			g.group(f.Name, e)
		default:
			g.unknown(f.Name, e, "ResourceGroupConfiguration")
		}
	}
	g.result.Report.Carry("resource group", len(g.defs))
	return nil
}

// group reads a resource group.
func (g *ego) group(file string, e *element) {
	d := egoGroupDef{name: e.attrs["ResourceGroupName"], slots: e.attrs["availableSlots"], line: e.line}
	g.attrs(file, e, "ResourceGroupName", "availableSlots")
	if why := nameFault(strings.ReplaceAll(d.name, "/", "")); why != "" {
		g.faults.add(file, e.line, "ResourceGroupName %q %s", d.name, why)
		return
	}
	if slices.ContainsFunc(g.defs, func(o egoGroupDef) bool { return o.name == d.name }) {
		g.faults.add(file, e.line, "resource group %s is there twice", d.name)
		return
	}
	for _, c := range e.children {
		switch c.name {
		case "Description":
		case "ResourcePlugins":
			for _, p := range c.children {
				d.plugin = p.attrs["Name"]
			}
		case "SchedulerPluginName":
			if c.text != "" && c.text != "md" {
				g.result.Report.Add(file, c.line, "SchedulerPluginName "+oneLine(c.text),
					"is not known; md is, of multidimensional groups")
			}
		case "ResourceRequirement":
			d.choose, d.chooseLine = oneLine(c.text), c.line
		case "ResourceList":
			for _, r := range c.children {
				switch id := r.attrs["ResourceID"]; {
				case r.name != "ResourceEntry":
					g.unknown(file, r, "ResourceList")
				case id == "" || slices.Contains(d.hosts, id):
					g.result.Report.Add(file, r.line, "ResourceEntry "+quoted(id), "is empty, or there twice")
				default:
					d.hosts = append(d.hosts, id)
				}
			}
		default:
			g.unknown(file, c, "ResourceGroup")
		}
	}
	if d.choose != "" && len(d.hosts) > 0 {
		g.result.Report.Add(file, d.chooseLine, "ResourceRequirement of "+d.name,
			"the group has a list of hosts, which counts")
		d.choose = ""
	}
	g.defs = append(g.defs, d)
}

// unknown lists an element that is not read, with all in it.
func (g *ego) unknown(file string, e *element, in string) {
	g.result.Report.Add(file, e.line, "<"+e.name+"> in <"+in+">", "what it means is not known for certain")
}

// attrs lists attributes of an element beside those that are read.
func (g *ego) attrs(file string, e *element, known ...string) {
	var others []string
	for name := range e.attrs {
		if !slices.Contains(known, name) && name != "schemaLocation" {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		g.result.Report.Add(file, e.line, name+" of <"+e.name+">", "what it means is not known for certain")
	}
}

// egoLoads are the columns of `egosh resource list` that tell how busy a host is: they change by the second.
var egoLoads = []string{"mem", "swp", "tmp", "ut", "it", "pg", "r1m", "r15s", "r15m", "ls", "io"}

// egoSizes are those that tell how large it is, and the dimension of each; memory is in MiB.
var egoSizes = map[string]string{"ncpus": "ncpus", "nprocs": "nprocs", "ncores": "ncores", "nthreads": "nthreads",
	"ndisks": "ndisks",
	"maxmem": "maxmem", "maxswp": "maxswp", "maxtmp": "maxtmp", "ngpus": "gpus"}

// resources reads what `egosh resource list -ll` prints, with or without further columns (-o).
func (g *ego) resources(f *File) error {
	text, err := readWhole(f.Name, f.R)
	if err != nil {
		return err
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	header, err := r.Read()
	if err != nil || !slices.Contains(header, "NAME") {
		return fmt.Errorf(`%s:1: a first line such as "NAME","status","mem",… is expected: the output of egosh resource list -ll`, f.Name)
	}
	header = slices.Clone(header)
	var loads []string
	for i, name := range header {
		switch {
		case name == "NAME" || name == "status" || egoSizes[name] != "" || name == "type" || name == "model":
		case slices.Contains(egoLoads, name):
			loads = append(loads, name)
		default:
			g.result.Report.Add(f.Name, 1, "column "+oneLine(name), "is not known")
		}
		if slices.Index(header, name) != i {
			return fmt.Errorf("%s:1: column %s is there twice", f.Name, name)
		}
	}
	if len(loads) > 0 {
		g.result.Report.Add(f.Name, 1, "columns "+strings.Join(loads, ", "),
			"they tell how busy hosts were, not how large they are")
	}
	for {
		row, err := r.Read()
		if err == io.EOF {
			break
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			return fmt.Errorf("%s:%d: %w", f.Name, bad.Line, bad.Err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		line, _ := r.FieldPos(0)
		if len(row) != len(header) {
			g.faults.add(f.Name, line, "has %d fields, the header has %d columns; is the file cut off?", len(row),
				len(header))
			continue
		}
		if len(g.hosts) >= hostsMax {
			return fmt.Errorf("%s:%d: there are more than %d hosts", f.Name, line, hostsMax)
		}
		g.host(f.Name, line, header, row)
	}
	g.result.Report.Carry("host", len(g.hosts))
	return nil
}

// host reads a host's row.
func (g *ego) host(file string, line int, header, row []string) {
	h := hostRow{size: map[string]int64{}, text: map[string]string{}, line: line}
	for i, name := range header {
		value := strings.TrimSpace(row[i])
		switch {
		case name == "NAME":
			h.name = strings.Clone(value)
		case name == "status":
			h.closed, h.gone = strings.HasPrefix(value, "closed"), strings.HasPrefix(value, "unavail") ||
				value == "unreach" || value == "removed"
			if value != "ok" && !h.closed && !h.gone {
				g.result.Report.Add(file, line, "status "+quoted(value), "is not known: the host is closed")
				h.closed = true
			}
		case (name == "type" || name == "model") && value != "" && value != "-":
			h.text[name] = strings.Clone(value)
		case egoSizes[name] != "":
			n, ok := egoSize(value, name)
			if !ok {
				g.faults.add(file, line, "%s %q: must be a number, such as 8 or 18G", name, value)
			}
			h.size[egoSizes[name]] = n
			g.p.dim(egoSizes[name])
		}
	}
	if why := nameFault(h.name); why != "" {
		g.faults.add(file, line, "NAME %q %s", h.name, why)
		return
	}
	if first, twice := g.hostAt[h.name]; twice {
		g.faults.add(file, line, "host %s is there already, on line %d", h.name, g.hosts[first].line)
		return
	}
	g.hostAt[h.name] = len(g.hosts)
	g.hosts = append(g.hosts, h)
}

// egoSize reads a size; memory has a suffix, and is in MiB. A host that is not up has - there.
func egoSize(text, column string) (n int64, ok bool) {
	if text == "-" || text == "" {
		return 0, true
	}
	scale := 1.0
	if strings.HasPrefix(column, "max") {
		if i := strings.IndexByte("KMGTP", text[len(text)-1]); i >= 0 {
			text = text[:len(text)-1]
			scale = [...]float64{1. / 1024, 1, 1 << 10, 1 << 20, 1 << 30}[i]
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if v *= scale; err != nil || v != v || v < 0 || v > 1<<53 {
		return 0, false
	}
	return int64(v), true
}

// makeGroups makes the policy's resource groups of those of the XML file. They need the hosts.
func (g *ego) makeGroups(file string) {
	if len(g.hosts) > 0 && len(g.p.dims) == 0 {
		g.p.dims = []string{"slots"}
	}
	for i := range g.defs {
		d := &g.defs[i]
		made := group{name: d.name, slots: g.slotsOf(file, d)}
		switch {
		case d.choose != "":
			made.choose = g.chooses(file, d)
		case len(d.hosts) > 0:
			for _, h := range d.hosts {
				if _, ok := g.hostAt[h]; !ok {
					g.result.Report.Add(file, d.line, "host "+h+" of "+d.name, "the list of hosts does not have it")
					continue
				}
				made.hosts = append(made.hosts, h)
			}
		default:
			made.choose = "select(" + g.p.dims[0] + " >= 0)"
			g.result.Report.Add(file, d.line, "a group without a list or a requirement: "+d.name,
				"it has all hosts here")
		}
		if made.choose == "" && len(made.hosts) == 0 {
			g.result.Report.Add(file, d.line, "resource group "+d.name, "it has no host")
			continue
		}
		g.p.groups = append(g.p.groups, made)
	}
}

// slotsOf is the slots that a host of a group has: a number or an expression.
func (g *ego) slotsOf(file string, d *egoGroupDef) string {
	switch {
	case d.slots == "" && slices.Contains(g.p.dims, "ncpus"):
		g.result.Report.Add(file, d.line, "availableSlots of "+d.name+", which is empty",
			"a slot for each of a host's ncpus")
		return "ncpus"
	case d.slots == "":
		g.faults.add(file, d.line,
			`availableSlots of %s is empty, and the list of hosts has no column ncpus: how many slots has a host? Write it there (availableSlots="12")`, d.name)
		return ""
	}
	q, err := plan.ParseExpression(d.slots)
	if err != nil {
		g.faults.add(file, d.line, "availableSlots of %s: %v", d.name, err)
		return ""
	}
	if unknown := g.unknownNames(q); len(unknown) > 0 {
		g.faults.add(file, d.line, "availableSlots %q of %s: the list of hosts has no column %s (egosh resource "+
			"list -ll -o)", d.slots, d.name, strings.Join(unknown, ", "))
	}
	return d.slots
}

// chooses is the select expression of a group. A name in it that the list of hosts does not have is an attribute that
// is true on no host, but for mg, which the hosts of ManagementHosts have.
func (g *ego) chooses(file string, d *egoGroupDef) string {
	q, err := plan.ParseRequirement(d.choose)
	if err != nil {
		g.faults.add(file, d.chooseLine, "ResourceRequirement of %s: %v", d.name, err)
		return ""
	}
	for _, name := range g.unknownNames(q) {
		if identifier(name) != name || plan.ReservedName(name) {
			g.faults.add(file, d.chooseLine, "ResourceRequirement of %s: %s is no column of the list of hosts", d.name,
				name)
			continue
		}
		g.tags = append(g.tags, name)
		which := "no host has it here: no file tells which do"
		if i := slices.IndexFunc(g.defs,
			func(o egoGroupDef) bool { return o.name == "ManagementHosts" && len(o.hosts) > 0 }); name == "mg" &&
			i >= 0 {
			which = "the hosts listed in ManagementHosts have it here"
			for _, h := range g.defs[i].hosts {
				if at, ok := g.hostAt[h]; ok {
					g.hosts[at].flag = append(g.hosts[at].flag, name)
				}
			}
		}
		g.result.Report.Add(file, d.chooseLine, "resource "+name+" in the requirement of "+d.name, which)
	}
	return d.choose
}

// unknownNames are names in a requirement that the list of hosts does not have.
func (g *ego) unknownNames(q *plan.Requirement) []string {
	k := knownNames{g: g}
	for range 100 { // Bind stops at the first that is unknown
		before := len(k.missing)
		if _, err := q.Bind(&k); err == nil || len(k.missing) == before {
			break
		}
	}
	return k.missing
}

// knownNames is what names a requirement may use; the others are noted, and known from then on.
type knownNames struct {
	g       *ego
	missing []string
}

func (k *knownNames) Column(name string) (col int, kind plan.Kind, ok bool) {
	switch {
	case slices.Contains(k.g.p.dims, name):
		return 0, plan.Number, true
	case name == "host" || name == "state" || name == "type" || name == "model":
		return 0, plan.Text, true
	case slices.Contains(k.g.tags, name) || slices.Contains(k.missing, name):
		return 0, plan.Boolean, true
	}
	if !k.HasWord(name) {
		k.missing = append(k.missing, name)
	}
	return 0, 0, false
}

func (k *knownNames) HasWord(word string) bool {
	_, ok := k.g.hostAt[word]
	return ok || slices.ContainsFunc(k.g.hosts, func(h hostRow) bool {
		return h.text["type"] == word || h.text["model"] == word
	})
}

func (k *knownNames) NumberAt(int, int) (float64, bool) { return 0, false }
func (k *knownNames) TextAt(int, int) ([]byte, bool)    { return nil, false }
func (k *knownNames) BoolAt(int, int) (v, ok bool)      { return false, false }
func (k *knownNames) WordAt(string, int) bool           { return false }
