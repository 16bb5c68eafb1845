package datasets

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// The dimensions of openb. GPUs are counted in thousandths and summed over a host:
// the trace's shares of single GPUs become shares of all GPUs of the host.
const (
	cpuMilli = iota
	memoryMiB
	gpuMilli
	openbDimensions
)

var openbNames = [openbDimensions]string{"cpu_milli", "memory_mib", "gpu_milli"}

// openbRowsMax bounds what a trace's file may hold.
const openbRowsMax = 20_000_000

// OpenB reads Alibaba's public GPU cluster trace of 2023 ("openb"): its node list
// and a pod list, CSV with a header. Hosts get the attribute `model` of their GPUs;
// a pod is an allocation of one unit of the consumer that its qos names; a pod that
// accepts some GPU models only gets a requirement. Everything is in one public
// plan of equal shares. Faults name row, column, value and reason.
func OpenB(nodes, pods io.Reader) (*Dataset, error) {
	d := &Dataset{Dimensions: openbNames[:]}
	var err error
	if d.Hosts, err = openbHosts(nodes); err != nil {
		return nil, err
	}
	if d.Demand, err = openbDemand(pods); err != nil {
		return nil, err
	}
	d.Plan = openbPlan(d.Demand.Consumer.Names)
	return d, nil
}

// trace reads rows of a CSV file by column name.
type trace struct {
	csv    *csv.Reader
	at     map[string]int
	record []string
	row    int
	faults cluster.Faults
}

func openTrace(name string, r io.Reader, columns ...string) (*trace, error) {
	t := &trace{csv: csv.NewReader(r), at: map[string]int{}, faults: cluster.Faults{Table: name}}
	t.csv.ReuseRecord = true
	header, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: empty, a header is expected", name)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, c := range header {
		t.at[strings.TrimPrefix(c, "\ufeff")] = i
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
	case err == nil && t.row <= openbRowsMax:
		return true
	case err == nil:
		t.faults.Add(t.row, "", "", fmt.Sprintf("more than %d rows", openbRowsMax))
	case !errors.Is(err, io.EOF):
		t.faults.Add(t.row, "", "", err.Error())
	}
	return false
}

func (t *trace) text(column string) string {
	if i, ok := t.at[column]; ok {
		return t.record[i]
	}
	return ""
}

// amount reads a whole number; an empty field is 0.
func (t *trace) amount(column string) int64 {
	text := t.text(column)
	if text == "" {
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 || v > cluster.NumberMax/1000 {
		t.faults.Add(t.row, column, text, "not a whole number from 0 to 2^53/1000")
		return 0
	}
	return v
}

func openbHosts(r io.Reader) (*cluster.HostTable, error) {
	t, err := openTrace("nodes", r, "sn", "cpu_milli", "memory_mib", "gpu", "model")
	if err != nil {
		return nil, err
	}
	model := cluster.AttrColumn{Name: "model", Kind: plan.Text, Text: cluster.TextColumn{Names: &cluster.Names{}}}
	h := &cluster.HostTable{Name: "nodes", Host: cluster.TextColumn{Names: &cluster.Names{}}, Size: make([][]int64, openbDimensions)}
	for t.next() {
		h.Rows++
		h.Host.Code = append(h.Host.Code, h.Host.Names.InternString(t.text("sn")))
		for d, v := range []int64{t.amount("cpu_milli"), t.amount("memory_mib"), 1000 * t.amount("gpu")} {
			h.Size[d] = append(h.Size[d], v)
		}
		model.Valid = append(model.Valid, t.text("model") != "")
		model.Text.Code = append(model.Text.Code, model.Text.Names.InternString(t.text("model")))
	}
	h.Attr = []cluster.AttrColumn{model}
	return h, t.faults.Err()
}

func openbDemand(r io.Reader) (*cluster.DemandTable, error) {
	t, err := openTrace("pods", r, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos")
	if err != nil {
		return nil, err
	}
	text := func() cluster.TextColumn { return cluster.TextColumn{Names: &cluster.Names{}} }
	d := &cluster.DemandTable{Name: "pods", Consumer: text(), Allocation: text(), Sub: text(), Plan: text(), Requirement: text(), Size: make([][]int64, openbDimensions)}
	for t.next() {
		qos := t.text("qos")
		if !openbName(qos) {
			t.faults.Add(t.row, "qos", qos, "not the name of a consumer: letters and digits are expected")
			continue
		}
		d.Rows++
		d.Consumer.Code = append(d.Consumer.Code, d.Consumer.Names.InternString("/"+qos))
		d.Allocation.Code = append(d.Allocation.Code, d.Allocation.Names.InternString(t.text("name")))
		d.Units = append(d.Units, 1)
		for i, v := range []int64{t.amount("cpu_milli"), t.amount("memory_mib"), t.amount("num_gpu") * t.amount("gpu_milli")} {
			d.Size[i] = append(d.Size[i], v)
		}
		requirement := cluster.Null
		if spec := t.text("gpu_spec"); spec != "" {
			requirement = d.Requirement.Names.InternString("select(" + strings.ReplaceAll(spec, "|", " || ") + ")")
		}
		d.Requirement.Code = append(d.Requirement.Code, requirement)
	}
	return d, t.faults.Err()
}

func openbName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	})
}

// openbPlan is a policy for the trace: every qos a consumer, all in one pool.
func openbPlan(consumers *cluster.Names) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Alibaba's openb GPU cluster trace of 2023: every qos is a consumer, all share one pool.\n"+
		"stint: 1\ncluster: openb\ndimensions: [%s]\n"+
		"resource_groups:\n  - {name: all, select: \"select(%s > 0)\"}\nconsumers:\n", strings.Join(openbNames[:], ", "), openbNames[cpuMilli])
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
