package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/ingest/foreign"
)

// kubeNodes are the flags that say what nodes there are.
type kubeNodes struct {
	files []string
	size  string
	nodes foreign.Nodes
}

func (k *kubeNodes) flags(c *cobra.Command, example string) {
	f := c.Flags()
	f.StringArrayVar(&k.files, "nodes", nil, "Node objects (kubectl get nodes -o yaml); may be given several times")
	f.Int64Var(&k.nodes.Hosts, "hosts", 0, "how many equal nodes there are")
	f.StringVar(&k.size, "size", "", "what each of them has, such as "+example)
}

// given tells whether the flags say anything of nodes.
func (k *kubeNodes) given() bool { return len(k.files) > 0 || k.nodes.Hosts != 0 || k.size != "" }

// open opens the files of nodes and reads the size. The caller calls closeAll.
func (k *kubeNodes) open() (nodes foreign.Nodes, closeAll func(), err error) {
	closeAll = func() {}
	switch {
	case len(k.files) > 0 && (k.nodes.Hosts != 0 || k.size != ""):
		return nodes, closeAll, errors.New("--nodes tells of all nodes; --hosts and --size do not go with it")
	case len(k.files) > 0:
		nodes.Files, closeAll, err = openAll(k.files...)
		return nodes, closeAll, err
	case k.nodes.Hosts == 0 || k.size == "":
		return nodes, closeAll, errors.New("what nodes there are must be given: --nodes, or --hosts and --size")
	}
	nodes.Hosts, nodes.Size = k.nodes.Hosts, map[string]string{}
	for part := range strings.SplitSeq(k.size, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" || value == "" {
			return nodes, closeAll, fmt.Errorf("--size: %q must be such as memory=64Gi", part)
		}
		nodes.Size[key] = value
	}
	return nodes, closeAll, nil
}

func newImportYuniKorn() *cobra.Command {
	var queues string
	var nodes kubeNodes
	var out outForeign
	c := &cobra.Command{
		Use:   "yunikorn --queues F (--nodes F | --hosts N --size S) --out DIR",
		Short: "Queues of Apache YuniKorn: queues.yaml",
		Long: `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR from YuniKorn's queues.yaml, as it is or within
the ConfigMap or the Helm values that have it. A queue becomes a consumer. What it is guaranteed it owns, and
lends while it is idle; max becomes a limit, priority.offset a priority. What nobody is guaranteed is divided
in proportion to the guarantees, as YuniKorn does. Every partition has a plan of its own.

Nodes are Node objects, or as many equal ones as --hosts says:
  kubectl get nodes -o yaml > nodes.yaml

The file tells no demand: in demand.FORMAT every leaf asks for all there is, so that a run shows what each
gets then. What is not carried over is listed by line, with the reason, in ` + foreign.ReportFile + `.`,
		Example: `  stint import yunikorn --queues queues.yaml --nodes nodes.yaml --out queues
  stint import yunikorn --queues queues.yaml --hosts 10 --size vcore=16,memory=64Gi --out equal
  stint check queues/plan.yaml --hosts queues/hosts.parquet`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			files, closeAll, err := openAll(queues)
			if err != nil {
				return err
			}
			defer closeAll()
			n, closeNodes, err := nodes.open()
			if err != nil {
				return err
			}
			defer closeNodes()
			r, err := foreign.YuniKorn(files[0], n)
			if err != nil {
				return err
			}
			return out.write(c, r)
		},
	}
	c.Flags().StringVar(&queues, "queues", "", "queues.yaml, or the ConfigMap or Helm values that have it")
	required(c, "queues")
	nodes.flags(c, "vcore=16,memory=64Gi")
	out.flags(c)
	return c
}

func newImportVolcano() *cobra.Command {
	var manifests []string
	var nodes kubeNodes
	var out outForeign
	c := &cobra.Command{
		Use:     "volcano --manifests F (--nodes F | --hosts N --size S) --out DIR",
		Aliases: []string{"kai"},
		Short:   "Queues of Volcano or KAI (NVIDIA's scheduler): Queue objects",
		Long: `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR from Queue objects of Volcano
(scheduling.volcano.sh) or of KAI (scheduling.run.ai), as their apiVersion tells. A queue becomes a consumer.
What it deserves (Volcano) or its quota (KAI) it owns, and lends while it is idle; a guarantee is never lent.
Capabilities and limits become limits, weights ratios, priorities priorities.

Nodes are Node objects, among the manifests or in --nodes, or as many equal ones as --hosts says:
  kubectl get queues,nodes -o yaml > queues.yaml

The files tell no demand: in demand.FORMAT every leaf asks for all there is, so that a run shows what each
gets then. What is not carried over is listed by line, with the reason, in ` + foreign.ReportFile + `.`,
		Example: `  stint import volcano --manifests queues.yaml --nodes nodes.yaml --out queues
  stint import kai --manifests queues.yaml --hosts 10 --size cpu=16,memory=64Gi,nvidia.com/gpu=2 --out kai
  stint check queues/plan.yaml --hosts queues/hosts.parquet`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			files, closeAll, err := openAll(manifests...)
			if err != nil {
				return err
			}
			defer closeAll()
			var n foreign.Nodes
			if nodes.given() {
				given, closeNodes, err := nodes.open()
				if err != nil {
					return err
				}
				defer closeNodes()
				n = given
			}
			r, err := foreign.Queues(files, n)
			if err != nil {
				return err
			}
			return out.write(c, r)
		},
	}
	c.Flags().StringArrayVar(&manifests, "manifests", nil, "a file of manifests; may be given several times")
	required(c, "manifests")
	nodes.flags(c, "cpu=16,memory=64Gi,nvidia.com/gpu=8")
	out.flags(c)
	return c
}
