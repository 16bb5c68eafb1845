package datasets

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// The dimensions of openb. GPUs are counted in thousandths and summed over a host: the trace's shares of single GPUs
// become shares of all GPUs of the host, or with OnDevices of one of them.
const (
	cpuMilli = iota
	memoryMiB
	gpuMilli
	openbDimensions
)

var openbNames = [openbDimensions]string{"cpu_milli", "memory_mib", "gpu_milli"}

// Bounds of a trace's file.
const (
	traceRowsMax        = 20_000_000
	traceBytesMax int64 = 1 << 30
)

// gpuMilliMax is a whole GPU: a pod's gpu_milli is of each of its num_gpu.
const gpuMilliMax = 1000

// qosUnknown is the consumer of pods that have no qos: of the published pod lists some lack the column, and some
// gpu_spec.
const qosUnknown = "pods"

// OpenB reads Alibaba's public GPU cluster trace of 2023 ("openb"): its node list
// and a pod list, CSV with a header. Hosts get the attribute `model` of their GPUs;
// a pod is an allocation of one unit of the consumer that its qos names, /pods where there is none; a pod that
// accepts some GPU models only gets a requirement. Everything is in one public
// plan of equal shares. Faults of both files name row, column, value and reason.
func OpenB(nodes, pods io.Reader) (*Dataset, error) {
	d := &Dataset{Dimensions: openbNames[:]}
	var inNodes, inPods error
	d.Hosts, inNodes = openbHosts(nodes)
	d.Demand, inPods = openbDemand(pods)
	if err := errors.Join(inNodes, inPods); err != nil {
		return nil, err
	}
	if d.Demand.Requirement.Code != nil && !slices.Contains(d.Hosts.Attr[0].Valid, true) {
		return nil, errors.New("pods, column gpu_spec: pods ask for GPU models, and no node has one")
	}
	d.Plan = openbPlan(d.Demand.Consumer.Names)
	return d, nil
}

// trace reads rows of a CSV file by column name.
type trace struct {
	csv    *csv.Reader
	left   *io.LimitedReader // of traceBytesMax
	at     map[string]int
	record []string
	row    int
	faults cluster.Faults
}

func openTrace(name string, r io.Reader, columns ...string) (*trace, error) {
	t := &trace{left: &io.LimitedReader{R: r, N: traceBytesMax}, at: map[string]int{},
		faults: cluster.Faults{Table: name}}
	t.csv = csv.NewReader(t.left)
	t.csv.ReuseRecord = true
	header, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: empty, a header is expected", name)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, c := range header {
		c = strings.TrimPrefix(c, "\ufeff")
		if _, ok := t.at[c]; ok {
			t.faults.Add(0, c, "", "the column stands in the header twice")
		}
		t.at[c] = i
	}
	for _, c := range columns {
		if _, ok := t.at[c]; !ok {
			t.faults.Add(0, c, "", "the column is missing")
		}
	}
	return t, t.faults.Err()
}

// next reads a row; it is false at the end and on an error, which is then among the faults.
func (t *trace) next() bool {
	var err error
	t.record, err = t.csv.Read()
	t.row++
	switch {
	case t.left.N <= 0:
		t.faults.Add(t.row, "", "", fmt.Sprintf("the file has more than %d bytes", traceBytesMax-1))
	case err == nil && t.row <= traceRowsMax:
		return true
	case err == nil:
		t.faults.Add(t.row, "", "", fmt.Sprintf("more than %d rows", traceRowsMax))
	case !errors.Is(err, io.EOF):
		t.faults.Add(t.row, "", "", err.Error())
	case t.row == 1:
		t.faults.Add(0, "", "", "there are no rows")
	}
	return false
}

// text is a column's value; nothing where the file has no such column.
func (t *trace) text(column string) string {
	if at, ok := t.at[column]; ok {
		return t.record[at]
	}
	return ""
}

// amount reads a whole number from 0 to most.
func (t *trace) amount(column string, most int64) int64 {
	text := t.text(column)
	v, err := strconv.ParseInt(text, 10, 64)
	if text == "" {
		t.faults.Add(t.row, column, "", "is empty")
	} else if err != nil || v < 0 || v > most {
		t.faults.Add(t.row, column, text, fmt.Sprintf("not a whole number from 0 to %d", most))
		return 0
	}
	return v
}

// name interns what no other row of the file may be called.
func (t *trace) name(column string, names *cluster.Names) int32 {
	text, known := t.text(column), names.Len()
	code := names.InternString(text)
	switch {
	case text == "":
		t.faults.Add(t.row, column, "", "is empty")
	case len(text) > cluster.NameBytesMax || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		t.faults.Add(t.row, column, text,
			fmt.Sprintf("not a name: UTF-8 without control characters, %d bytes at most", cluster.NameBytesMax))
	case int(code) < known:
		t.faults.Add(t.row, column, text, "an earlier row has the same name")
	}
	return code
}

// wordForm begins with a letter: a column of models that are all numbers would not be read as text.
var wordForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// word checks a text that becomes part of a policy or a requirement.
func (t *trace) word(column, text string) bool {
	if !wordForm.MatchString(text) {
		t.faults.Add(t.row, column, t.text(column), "not a word: a letter, then up to 63 letters, digits, - _ and .")
		return false
	}
	return true
}

func openbHosts(r io.Reader) (*cluster.HostTable, error) {
	t, err := openTrace("nodes", r, "sn", "cpu_milli", "memory_mib", "gpu", "model")
	if err != nil {
		return nil, err
	}
	model := cluster.AttrColumn{Name: "model", Kind: plan.Text, Text: newText(0).TextColumn}
	h := &cluster.HostTable{Name: "nodes", Host: newText(0).TextColumn, Size: make([][]int64, openbDimensions)}
	for t.next() {
		h.Rows++
		h.Host.Code = append(h.Host.Code, t.name("sn", h.Host.Names))
		h.Size[cpuMilli] = append(h.Size[cpuMilli], t.amount("cpu_milli", cluster.NumberMax))
		h.Size[memoryMiB] = append(h.Size[memoryMiB], t.amount("memory_mib", cluster.NumberMax))
		h.Size[gpuMilli] = append(h.Size[gpuMilli], gpuMilliMax*t.amount("gpu", cluster.NumberMax/gpuMilliMax))
		name := t.text("model")
		model.Valid = append(model.Valid, name != "" && t.word("model", name))
		model.Text.Code = append(model.Text.Code, model.Text.Names.InternString(name))
	}
	h.Attr = []cluster.AttrColumn{model}
	return h, t.faults.Err()
}

func openbDemand(r io.Reader) (*cluster.DemandTable, error) {
	t, err := openTrace("pods", r, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
	if err != nil {
		return nil, err
	}
	d := &cluster.DemandTable{Name: "pods", Consumer: newText(0).TextColumn, Allocation: newText(0).TextColumn,
		Sub: newText(0).TextColumn, Plan: newText(0).TextColumn, Requirement: newText(0).TextColumn,
		Size: make([][]int64, openbDimensions)}
	for t.next() {
		before := t.faults.Count
		d.Rows++
		qos := t.text("qos")
		if qos == "" {
			qos = qosUnknown
		} else {
			t.word("qos", qos)
		}
		d.Consumer.Code = append(d.Consumer.Code, d.Consumer.Names.InternString("/"+qos))
		d.Allocation.Code = append(d.Allocation.Code, t.name("name", d.Allocation.Names))
		d.Units = append(d.Units, 1)
		size := [openbDimensions]int64{
			cpuMilli:  t.amount("cpu_milli", cluster.NumberMax),
			memoryMiB: t.amount("memory_mib", cluster.NumberMax),
			gpuMilli:  t.amount("num_gpu", cluster.NumberMax/gpuMilliMax) * t.amount("gpu_milli", gpuMilliMax),
		}
		if size == [openbDimensions]int64{} && t.faults.Count == before {
			t.faults.Add(t.row, "", "", "asks for nothing: cpu_milli, memory_mib and num_gpu × gpu_milli are 0")
		}
		for i, v := range size {
			d.Size[i] = append(d.Size[i], v)
		}
		d.Requirement.Code = append(d.Requirement.Code, t.requirement(d.Requirement.Names))
	}
	if d.Requirement.Names.Len() == 0 {
		d.Requirement.Code = nil
	}
	return d, t.faults.Err()
}

// requirement turns gpu_spec, the models that a pod accepts with | between, into a requirement; cluster.Null
// when it accepts all. Models are compared, not named as bare words: then a model that no node has leaves
// the pod short and does not make the table bad.
func (t *trace) requirement(names *cluster.Names) int32 {
	if t.text("gpu_spec") == "" {
		return cluster.Null
	}
	var terms []string
	for model := range strings.SplitSeq(t.text("gpu_spec"), "|") {
		if !t.word("gpu_spec", model) {
			return cluster.Null
		}
		terms = append(terms, "model == '"+model+"'")
	}
	return names.InternString("select(" + strings.Join(terms, " || ") + ")")
}

// openbPlan is a policy for the trace: every qos a consumer, all in one pool.
func openbPlan(consumers *cluster.Names) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Alibaba's openb GPU cluster trace of 2023: every qos is a consumer, all share one pool.\n"+
		"stint: 1\ncluster: openb\ndimensions: [%s]\n"+
		"resource_groups:\n  - {name: all, select: \"select(%s > 0)\"}\nconsumers:\n",
		strings.Join(openbNames[:], ", "), openbNames[cpuMilli])
	var paths []string
	for c := range int32(consumers.Len()) {
		paths = append(paths, consumers.String(c))
	}
	slices.Sort(paths)
	for _, p := range paths {
		fmt.Fprintf(&b, "  - {path: %s}\n", p)
	}
	b.WriteString("md_plans:\n  - name: openb\n    resource_groups: [{name: all}]\n    consumers:\n")
	for _, p := range paths {
		fmt.Fprintf(&b, "      - {path: %s}\n", p)
	}
	return []byte(b.String())
}

// OnDevices makes the GPUs of openb's hosts devices of their plan, which then takes nothing back for fair shares. It
// refuses pods with parts of several GPUs: a unit has a part of one device or whole ones.
func (d *Dataset) OnDevices() error {
	faults := cluster.Faults{Table: "pods"}
	for i, n := range d.Demand.Size[gpuMilli] {
		if n > gpuMilliMax && n%gpuMilliMax != 0 {
			faults.Add(i+1, "gpu_milli", fmt.Sprintf("%d in all", n), "is a part of several GPUs: with --devices a "+
				"pod has a part of one GPU or whole ones")
		}
	}
	d.Plan = bytes.Replace(d.Plan, []byte("    resource_groups: [{name: all}]\n"),
		fmt.Appendf(nil, "    resource_groups: [{name: all}]\n    share_reclaim: false\n    devices: {%s: {per: %d}}\n",
			openbNames[gpuMilli], gpuMilliMax), 1)
	return faults.Err()
}
