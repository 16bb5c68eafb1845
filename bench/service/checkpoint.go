package main

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/stintd/stint/core/engine"
)

// checkpoints measures checkpoints, each after a cycle in which one row of a hundred changed: the time that the engine
// loses, the time until a checkpoint is on the disk, and the time of the next start.
func (b *bench) checkpoints(n int) {
	s := b.start(engine.Options{CheckpointBytes: 1})
	s.do("PUT", "/v1/demand/feed?format=arrow&allow_shrink=true", b.body)
	var held, took, cycles []time.Duration
	var bytes int64
	for nth := range n {
		if nth > 0 {
			s.do("PUT", "/v1/demand/feed?format=arrow&allow_shrink=true", b.snapshot(nth))
		}
		s.do("POST", "/v1/cycles", nil)
		summary := &s.engine.View().Last.Summary
		cycles = append(cycles, time.Duration(summary.FinishedUS-summary.StartedUS)*time.Microsecond)
		for s.engine.Stats().Checkpoint.Cycle != summary.Cycle {
			time.Sleep(time.Millisecond)
		}
		c := s.engine.Stats().Checkpoint
		if c.Why != "" {
			log.Fatal(c.Why)
		}
		held, took, bytes = append(held, c.Held), append(took, c.Took), c.Bytes
	}
	s.end()
	if err := <-s.ended; err != nil {
		log.Fatal(err)
	}
	begin := time.Now()
	again := startIn(s.dir, engine.Options{})
	ready := time.Since(begin)
	fmt.Printf("\n%-46s %9s %9s %9s\n", fmt.Sprintf("checkpoint of %.0f MB", float64(bytes)/1e6), "min ms", "median",
		"max")
	printTimes("a cycle, for comparison", cycles)
	printTimes("input and cycles kept waiting", held)
	printTimes("on the disk, the log waited for", took)
	printTimes("start from it", []time.Duration{ready})
	again.end()
	if err := <-again.ended; err != nil {
		log.Fatal(err)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		log.Print(err)
	}
}
