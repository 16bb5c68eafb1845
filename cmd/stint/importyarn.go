package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/ingest/foreign"
)

func newImportYARN() *cobra.Command {
	var queues, nodes, size string
	var o foreign.YARNOptions
	var out outForeign
	c := &cobra.Command{
		Use:   "yarn --queues F (--nodes F | --hosts N --size S) --out DIR",
		Short: "Queues of Hadoop YARN: capacity-scheduler.xml or fair-scheduler.xml",
		Long: `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR from YARN's file of queues: capacity-scheduler.xml
or fair-scheduler.xml, as its root element tells. A queue becomes a consumer, its capacity or weight a
ratio, its maximum a limit; capacities in amounts are owned. Every node label has a plan of its own.

Nodes are those that the resource manager tells of, or as many equal ones as --hosts says:
  curl http://RM:8088/ws/v1/cluster/nodes > nodes.json

The files tell no demand: in demand.FORMAT every leaf asks for all there is, so that a run shows what each
gets then. What is not carried over is listed by line, with the reason, in ` + foreign.ReportFile + `.`,
		Example: `  stint import yarn --queues capacity-scheduler.xml --nodes nodes.json --out site
  stint import yarn --queues fair-scheduler.xml --hosts 40 --size memory-mb=65536,vcores=16 --out fair
  stint import yarn --queues capacity-scheduler.xml --nodes nodes.json --out again --output json
  stint check site/plan.yaml --hosts site/hosts.parquet`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			files, closeAll, err := openAll(queues, nodes)
			if err != nil {
				return err
			}
			defer closeAll()
			switch {
			case nodes != "" && (o.Hosts != 0 || size != ""):
				return errors.New("--nodes tells of all nodes; --hosts and --size do not go with it")
			case nodes != "":
				o.Nodes = &files[1]
			case o.Hosts == 0 || size == "":
				return errors.New("what nodes there are must be given: --nodes, or --hosts and --size")
			default:
				if o.Size, err = sizes(size); err != nil {
					return err
				}
			}
			r, err := foreign.YARN(files[0], o)
			if err != nil {
				return err
			}
			return out.write(c, r)
		},
	}
	f := c.Flags()
	f.StringVar(&queues, "queues", "", "capacity-scheduler.xml or fair-scheduler.xml")
	f.StringVar(&nodes, "nodes", "", "nodes as the resource manager tells them (/ws/v1/cluster/nodes, JSON)")
	f.Int64Var(&o.Hosts, "hosts", 0, "how many equal nodes there are")
	f.StringVar(&size, "size", "", "what each of them has, such as memory-mb=65536,vcores=16")
	required(c, "queues")
	out.flags(c)
	return c
}

// sizes reads amounts such as memory-mb=65536,vcores=16.
func sizes(text string) (map[string]int64, error) {
	size := map[string]int64{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || n > 1<<53 || key == "" {
			return nil, fmt.Errorf("--size: %q must be such as memory-mb=65536", part)
		}
		size[key] = n
	}
	return size, nil
}

// openAll opens files in the order of their names; an empty name is left as a file without content.
func openAll(names ...string) (files []foreign.File, closeAll func(), err error) {
	var open []*os.File
	closeAll = func() {
		for _, f := range open {
			f.Close()
		}
	}
	for _, name := range names {
		if name == "" {
			files = append(files, foreign.File{})
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		open, files = append(open, f), append(files, foreign.File{Name: name, R: f})
	}
	return files, closeAll, nil
}
