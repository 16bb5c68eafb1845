package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/datasets"
)

func newImport() *cobra.Command {
	c := &cobra.Command{
		Use:   "import SOURCE",
		Short: "Makes a policy file, hosts and demand from another system's data",
		Example: `  stint import yarn --queues capacity-scheduler.xml --nodes nodes.json --out site
  stint import openb --nodes openb_node_list_all_node.csv --pods openb_pod_list_default.csv --out openb`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var names []string
			for _, sub := range c.Commands() {
				names = append(names, sub.Name())
			}
			return fmt.Errorf("import needs a source: %s", strings.Join(names, ", "))
		},
	}
	c.AddCommand(newImportOpenB(), newImportSWF(), newImportYARN(), newImportKueue(), newImportYuniKorn(),
		newImportVolcano(), newImportSlurm(), newImportEGO())
	return c
}

func newImportOpenB() *cobra.Command {
	var nodes, pods, out, format string
	var asScenario, devices bool
	var o datasets.ScenarioOptions
	c := &cobra.Command{
		Use:   "openb --nodes F --pods F --out DIR",
		Short: "Alibaba's public GPU cluster trace of 2023",
		Long: `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR from a node list and a pod list of
Alibaba's public GPU cluster trace of 2023 (openb: alibaba/clusterdata, cluster-trace-gpu-v2023).

Nodes become hosts with cpu_milli, memory_mib and gpu_milli (1000 a GPU), and the attribute model where they
have GPUs. A pod becomes an allocation of one unit of the consumer that its qos names, /pods where the list has no
qos; one whose gpu_spec lists GPU models gets a requirement. All consumers share one public pool equally.

Shares of single GPUs are summed per host: a pod that takes 460 thousandths of a GPU takes 460 of all
the gpu_milli of its host, so that two pods may fill a host's last 1000 from parts of two GPUs. With
--devices each lies on one GPU, as the plan then has devices and takes nothing back for fair shares.
Times in the trace are not used.

With --scenario there is a scenario.yaml too, for stint simulate: every pod comes with the first one-minute
cycle after its creation and ends when it has run as long as it did in the trace (from scheduling, else
from creation, to deletion). Each cycle's arrivals are a source of their own. --start and --length cut out a
part of the trace (what is there at its start comes with the first cycle); --speed plays it faster.`,
		Example: `  stint import openb --nodes openb_node_list_all_node.csv --pods openb_pod_list_default.csv --out openb
  stint import openb --nodes nodes.csv --pods pods.csv --format csv --out openb
  stint import openb --nodes nodes.csv --pods pods.csv --devices --out openb
  stint import openb --nodes nodes.csv --pods pods.csv --scenario --start 3552h --length 24h --out day
  stint import openb --nodes nodes.csv --pods pods.csv --scenario --speed 150 --out all`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !asScenario {
				for _, name := range []string{"start", "length", "speed"} {
					if c.Flags().Changed(name) {
						return fmt.Errorf("--%s needs --scenario", name)
					}
				}
				return importOpenB(c, nodes, pods, out, format, devices)
			}
			return importOpenBScenario(c, nodes, pods, out, format, devices, o)
		},
	}
	c.Flags().BoolVar(&devices, "devices", false, "a share of a GPU lies on one GPU of its host")
	c.Flags().BoolVar(&asScenario, "scenario", false, "makes scenario.yaml too")
	c.Flags().DurationVar(&o.Start, "start", 0, "where in the trace the scenario starts")
	c.Flags().DurationVar(&o.Length, "length", 0, "how much of the trace it plays (0: all)")
	c.Flags().Int64Var(&o.Speed, "speed", 1, "seconds of the trace in one of the scenario")
	c.Flags().StringVar(&nodes, "nodes", "", "node list, CSV")
	c.Flags().StringVar(&pods, "pods", "", "pod list, CSV")
	required(c, "nodes", "pods")
	outFlags(c, &out, &format)
	return c
}

// importOpenBScenario writes a scenario beside what importOpenB writes.
func importOpenBScenario(
	c *cobra.Command, nodes, pods, out, format string, devices bool, o datasets.ScenarioOptions,
) error {
	if err := o.Validate(); err != nil {
		return err
	}
	d, err := readOpenB(nodes, pods, devices)
	if err != nil {
		return err
	}
	p, err := os.Open(pods)
	if err != nil {
		return err
	}
	defer p.Close()
	lives, err := datasets.OpenBLives(p)
	if err != nil {
		return err
	}
	path := filepath.Join(out, "scenario.yaml")
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: is already there", path)
	}
	if err := d.Write(out, format); err != nil {
		return err
	}
	cycles, rows, err := d.WriteScenario(path, "openb", format, lives, o)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%[1]s: %[2]s hosts, %[3]s of %[4]s pods in %[5]s one-minute cycles\n"+
		"next: stint simulate --scenario %[6]s --out %[1]s/log\n",
		out, grouped(int64(d.Hosts.Rows)), grouped(rows), grouped(int64(d.Demand.Rows)), grouped(cycles), path)
	return err
}

func readOpenB(nodes, pods string, devices bool) (*datasets.Dataset, error) {
	n, err := os.Open(nodes)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	p, err := os.Open(pods)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	d, err := datasets.OpenB(n, p)
	if err == nil && devices {
		err = d.OnDevices()
	}
	return d, err
}

func importOpenB(c *cobra.Command, nodes, pods, out, format string, devices bool) error {
	d, err := readOpenB(nodes, pods, devices)
	if err != nil {
		return err
	}
	restricted := 0
	for row := range d.Demand.Requirement.Code {
		if d.Demand.Requirement.Code[row] >= 0 {
			restricted++
		}
	}
	shares := "are summed per host"
	if devices {
		shares = "lie on one each"
	}
	what := fmt.Sprintf("%s hosts, %s pods of %d consumers, %s of them for some GPU models only; shares of "+
		"single GPUs %s",
		grouped(int64(d.Hosts.Rows)), grouped(int64(d.Demand.Rows)), d.Demand.Consumer.Names.Len(),
		grouped(int64(restricted)), shares)
	for i, name := range d.Dimensions {
		what += fmt.Sprintf("\n%-12s %15s of hosts %15s of pods", name, grouped(sum(d.Hosts.Size[i])),
			grouped(sum(d.Demand.Size[i])))
	}
	return writeDataset(c, d, out, format, what)
}

// sum adds up amounts; past the largest one it stays there.
func sum(values []int64) (total int64) {
	for _, v := range values {
		if total += v; total < 0 {
			return 1<<63 - 1
		}
	}
	return total
}
