package main

import (
	"github.com/spf13/cobra"

	"github.com/stintd/stint/ingest/foreign"
)

func newImportKueue() *cobra.Command {
	var manifests []string
	var out outForeign
	c := &cobra.Command{
		Use:   "kueue --manifests F --out DIR",
		Short: "Queues of Kueue: manifests of cluster queues, cohorts and flavors",
		Long: `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR from manifests of Kueue (YAML or JSON, several
documents, lists of kubectl): ClusterQueue, Cohort, ResourceFlavor, LocalQueue, Topology. A nominal quota is
owned, what of it is lent and borrowed is limited as there, weights are ratios, and a cohort with all below it
is a branch that shares with nobody outside of it. Hosts have their place at each level of a topology, and a
gang whose level is required or preferred asks for it (column together).

Where Node objects are among them, hosts are made of them; else each flavor has one host with all quotas
of it. Where Workload objects are among them they are the demand; else every leaf asks for all there is of
what it has quotas of.
  kubectl get clusterqueues,cohorts,resourceflavors,topologies,nodes -o yaml > cluster.yaml
  kubectl get localqueues,workloads -A -o yaml > work.yaml

What is not carried over is listed by line, with the reason, in ` + foreign.ReportFile + `.`,
		Example: `  stint import kueue --manifests queues.yaml --out quotas
  stint import kueue --manifests queues.yaml --manifests cluster.yaml --out site --format csv
  stint import kueue --manifests queues.yaml --out again --output json
  stint check quotas/plan.yaml --hosts quotas/hosts.parquet`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			files, closeAll, err := openAll(manifests...)
			if err != nil {
				return err
			}
			defer closeAll()
			r, err := foreign.Kueue(files)
			if err != nil {
				return err
			}
			return out.write(c, r)
		},
	}
	c.Flags().StringArrayVar(&manifests, "manifests", nil, "a file of manifests; may be given several times")
	required(c, "manifests")
	out.flags(c)
	return c
}
