package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/stintd/stint/ingest/foreign"
)

// swf reads a workload log as `stint import swf` does.
func swf(path string) (*trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := foreign.SWF(filepath.Base(path), f, foreign.SWFOptions{})
	if err != nil {
		return nil, err
	}
	return &trace{
		name: filepath.Base(path), amount: "processors", bounds: []int64{1, 8, 32, 64, 128}, set: r.Dataset,
		lives: r.Lives,
		about: fmt.Sprintf("%s jobs (Standard Workload Format) on %s hosts, one consumer.",
			grouped(int64(r.Dataset.Demand.Rows)),
			grouped(int64(r.Dataset.Hosts.Rows))),
		remarks: []string{"the processors of a job are units that may start one after the other"},
	}, nil
}
