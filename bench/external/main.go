// Command external plays workloads that others published, and prints their figures, or the ideal ones, beside stint's.
// The files are not part of the project: their folders are given on the command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("external: ")
	binary := flag.String("stint", "bin/stint", "the program to measure")
	dir := flag.String("kueue", "", "folder with Kueue's performance tests: NAME-generator.yaml and NAME-rangespec.yaml")
	name := flag.String("name", "baseline", "which of them: baseline, large-scale")
	flag.Parse()
	if *dir == "" {
		log.Fatal("nothing to play: -kueue DIR")
	}
	missed, err := playKueue(context.Background(), *binary, *dir, *name)
	if errors.Is(err, os.ErrNotExist) {
		log.Fatalf("%v: the workload is not there", err)
	}
	if err != nil {
		log.Fatal(err)
	}
	if missed > 0 {
		fmt.Printf("%d of the ranges of %s are missed\n", missed, filepath.Join(*dir, *name+"-rangespec.yaml"))
		os.Exit(1)
	}
}
