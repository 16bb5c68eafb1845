package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/datasets"
)

// readOpenB reads openb's node list and default pod list, and gives so many times the cluster with so many times the
// pods.
func readOpenB(dir string, times int) (*datasets.Dataset, error) {
	nodes, err := os.Open(filepath.Join(dir, "openb_node_list_all_node.csv"))
	if err != nil {
		return nil, err
	}
	defer nodes.Close()
	pods, err := os.Open(filepath.Join(dir, "openb_pod_list_default.csv"))
	if err != nil {
		return nil, err
	}
	defer pods.Close()
	d, err := datasets.OpenB(nodes, pods)
	if err != nil {
		return nil, err
	}
	h, all := d.Hosts, d.Demand
	h.Host, all.Allocation = numbered(h.Host, times), numbered(all.Allocation, times)
	for i := range h.Size {
		h.Size[i] = repeated(h.Size[i], times)
	}
	for i := range h.Attr {
		a := &h.Attr[i]
		a.Valid, a.Text.Code = repeated(a.Valid, times), repeated(a.Text.Code, times)
	}
	for i := range all.Size {
		all.Size[i] = repeated(all.Size[i], times)
	}
	all.Consumer.Code, all.Requirement.Code = repeated(all.Consumer.Code, times), repeated(all.Requirement.Code, times)
	all.Units = repeated(all.Units, times)
	h.Rows, all.Rows = h.Rows*times, all.Rows*times
	return d, nil
}

// repeated has each value so many times in a row.
func repeated[T any](values []T, times int) []T {
	if values == nil {
		return nil
	}
	out := make([]T, 0, len(values)*times)
	for _, v := range values {
		for range times {
			out = append(out, v)
		}
	}
	return out
}

// numbered has each name so many times in a row, with a number behind it.
func numbered(c cluster.TextColumn, times int) cluster.TextColumn {
	out := cluster.TextColumn{Names: new(cluster.Names)}
	for _, code := range c.Code {
		for i := range times {
			out.Code = append(out.Code, out.Names.InternString(fmt.Sprintf("%s-%d", c.Names.String(code), i)))
		}
	}
	return out
}
