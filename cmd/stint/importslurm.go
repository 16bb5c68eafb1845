package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/ingest/foreign"
)

func newImportSlurm() *cobra.Command {
	var conf, gres, accounts, qos string
	var out outForeign
	c := &cobra.Command{
		Use:   "slurm --conf F --out DIR",
		Short: "A cluster of Slurm: slurm.conf, gres.conf, sacctmgr dump",
		Long: `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR from slurm.conf (with the files that it includes): its
nodes are the hosts, and its partitions attributes of them. With --accounts the accounts and users become
consumers, their fair shares ratios, their GrpTRES limits; without it one consumer has all. A QOS limits
those who have it and no other.
  sacctmgr dump CLUSTER file=accounts.cfg
  sacctmgr --parsable2 show qos > qos.txt

PriorityDecayHalfLife becomes the half_life of the plan's shares. The files tell no demand: in demand.FORMAT
every leaf asks for all there is, so that a run shows what each gets then. What is not carried over is listed
by line, with the reason, in ` + foreign.ReportFile + `.`,
		Example: `  stint import slurm --conf slurm.conf --accounts accounts.cfg --out site
  stint import slurm --conf slurm.conf --gres gres.conf --accounts accounts.cfg --qos qos.txt --out full --format csv
  stint import slurm --conf slurm.conf --out again --output json
  stint check site/plan.yaml --hosts site/hosts.parquet`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			files, closeAll, err := openAll(conf, gres, accounts, qos)
			if err != nil {
				return err
			}
			defer closeAll()
			o := foreign.SlurmOptions{Open: func(name string) (io.ReadCloser, error) { return os.Open(name) }}
			for i, into := range []**foreign.File{&o.Gres, &o.Accounts, &o.QOS} {
				if files[i+1].R != nil {
					*into = &files[i+1]
				}
			}
			r, err := foreign.Slurm(files[0], o)
			if err != nil {
				return err
			}
			return out.write(c, r)
		},
	}
	f := c.Flags()
	f.StringVar(&conf, "conf", "", "slurm.conf")
	f.StringVar(&gres, "gres", "", "gres.conf, which is compared with slurm.conf")
	f.StringVar(&accounts, "accounts", "", "what sacctmgr dump wrote")
	f.StringVar(&qos, "qos", "", "what sacctmgr --parsable2 show qos wrote")
	required(c, "conf")
	out.flags(c)
	return c
}
