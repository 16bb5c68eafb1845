package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stintd/stint/bench/page"
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// The published experiments: pods arrive until 130 % of all GPUs are asked for, in steps of a hundredth of them; ten
// seeds.
const (
	fgdSteps = 131
	fgdRatio = 1.3
	fgdSeed  = 42
	fgdSeeds = 10
)

// fgdShown are the arrivals that are told, in hundredths of the GPUs.
var fgdShown = []int{60, 80, 90, 100, 110, 130}

// curve is the part of all GPUs that is allocated, in hundredths, by how many of them are asked for.
type curve [fgdSteps]float64

// fgdPolicy is the policy: one consumer, no shares, hosts with GPUs alone.
const fgdPolicy = `stint: 1
cluster: openb
dimensions: [cpu_milli, memory_mib, gpu_milli]
resource_groups:
  - {name: gpus, select: "select(gpu_milli > 0)"}
consumers:
  - {path: /pods}
md_plans:
  - name: fgd
    resource_groups: [{name: gpus}]
    share_reclaim: false
    consumers:
      - {path: /pods}
`

// fgdDevices is the policy with the GPUs of a host as its devices.
var fgdDevices = strings.Replace(fgdPolicy, "    share_reclaim: false\n",
	"    share_reclaim: false\n    devices: {gpu_milli: {per: 1000}}\n", 1)

// publishedCurves are the curves of the file: by workload, policy and seed.
type publishedCurves map[string]map[string]map[int]curve

// readCurves reads analysis_allo_discrete.csv.
func readCurves(path string) (publishedCurves, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	head := []string{"workload", "sc_policy", "tune", "seed", "total_gpus"}
	for k := range fgdSteps {
		head = append(head, strconv.Itoa(k))
	}
	if len(rows) < 2 || !slices.Equal(rows[0], head) {
		return nil, fmt.Errorf("%s: its columns are not %s, 0 … %d, or it has no row", path,
			strings.Join(head[:5], ", "), fgdSteps-1)
	}
	all := publishedCurves{}
	for i, row := range rows[1:] {
		if row[2] != "1.3" {
			continue // of another inflation
		}
		seed, err := strconv.Atoi(row[3])
		if err != nil {
			return nil, fmt.Errorf("%s: row %d, column seed, value %q: must be a whole number", path, i+1, row[3])
		}
		var c curve
		for k, text := range row[5:] {
			if c[k], err = strconv.ParseFloat(text, 64); err != nil {
				return nil, fmt.Errorf("%s: row %d, column %d, value %q: must be a number", path, i+1, k, text)
			}
		}
		if all[row[0]] == nil {
			all[row[0]] = map[string]map[int]curve{}
		}
		if all[row[0]][row[1]] == nil {
			all[row[0]][row[1]] = map[int]curve{}
		}
		all[row[0]][row[1]][seed] = c
	}
	return all, nil
}

// pod is a row of a pod list.
type pod struct {
	row          int   // of the list
	devices, per int64 // GPUs, thousandths of each
}

func (p pod) milli() int64 { return p.devices * p.per }

// fgdCluster is a node list and a pod list.
type fgdCluster struct {
	set   *datasets.Dataset
	pods  []pod // in order of their names
	total int64 // thousandths of GPUs
}

// readPods reads both lists.
func readPods(nodes, pods string) (*fgdCluster, error) {
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
	c := &fgdCluster{}
	if c.set, err = datasets.OpenB(n, p); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", nodes, pods, err)
	}
	for _, milli := range c.set.Hosts.Size[2] {
		c.total += milli
	}
	if c.total == 0 {
		return nil, fmt.Errorf("%s: no GPU in it", nodes)
	}
	if _, err := p.Seek(0, 0); err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(p).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pods, err)
	}
	number, milli := slices.Index(rows[0], "num_gpu"), slices.Index(rows[0],
		"gpu_milli") // both are there: OpenB wants them
	for i, r := range rows[1:] {
		one := pod{row: i}
		one.devices, _ = strconv.ParseInt(r[number], 10, 64)
		one.per, _ = strconv.ParseInt(r[milli], 10, 64)
		if one.devices > 1 && one.per != 1000 {
			return nil, fmt.Errorf("%s: row %d: parts of several GPUs", pods, i+1)
		}
		c.pods = append(c.pods, one)
	}
	names := c.set.Demand.Allocation
	slices.SortFunc(c.pods, func(a, b pod) int {
		return strings.Compare(names.Names.String(names.Code[a.row]), names.Names.String(names.Code[b.row]))
	})
	return c, nil
}

// arrivals are the pods of one seed in the order in which the published experiment submits them: shuffled, then taken
// off or drawn again at random until they ask for 130 % of all GPUs. The generator is the one that the experiment
// uses, drawn from in the same order.
func (c *fgdCluster) arrivals(seed int64) []pod {
	random := rand.New(rand.NewSource(seed))
	random.Int() // the experiment writes one into its log
	pods := slices.Clone(c.pods)
	random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	var asked int64
	for _, p := range pods {
		asked += p.milli()
	}
	most := fgdRatio * float64(c.total)
	if float64(asked) < most {
		for {
			p := c.pods[random.Intn(len(c.pods))]
			if float64(asked+p.per) > most { // of one GPU, whatever the pod has of them
				return pods
			}
			asked += p.milli()
			pods = append(pods, p)
		}
	}
	for float64(asked) > most {
		i := random.Intn(len(pods))
		asked -= pods[i].milli()
		pods = slices.Delete(pods, i, i+1)
	}
	return pods
}

// stepOf is the step in which each pod arrives: what is asked for by then, in hundredths of the GPUs, rounded.
func (c *fgdCluster) stepOf(pods []pod) []int {
	var asked int64
	steps := make([]int, len(pods))
	for i, p := range pods {
		asked += p.milli()
		steps[i] = int(math.RoundToEven(100 * float64(asked) / float64(c.total)))
	}
	return steps
}

// asPublished tells whether pods arrive as in the experiment: as long as all find room, what is allocated is what is
// asked for, and the published figure of a step is its mean.
func (c *fgdCluster) asPublished(pods []pod, theirs curve) error {
	var asked int64
	var sum, n [fgdSteps]float64
	for i, k := range c.stepOf(pods) {
		asked += pods[i].milli()
		if k < fgdSteps {
			sum[k] += 100 * float64(asked) / float64(c.total)
			n[k]++
		}
	}
	for k := range 21 {
		if ours := sum[k] / n[k]; !(math.Abs(ours-theirs[k]) < 0.011) {
			return fmt.Errorf("at %d %% pods ask for %.2f %%, in the published run for %.2f %%: "+
				"the lists or the order are not the published ones",
				k, ours, theirs[k])
		}
	}
	return nil
}

// play lets pods arrive under a policy, a cycle a step. Where the policy has devices, what is granted is held to them.
func (c *fgdCluster) play(pods []pod, file string) (allocated curve, err error) {
	policy, err := plan.Parse("fgd.yaml", []byte(file))
	if err != nil {
		return allocated, err
	}
	s, err := cluster.New(policy)
	if err == nil {
		err = s.SetHosts(c.set.Hosts, true)
	}
	if err != nil {
		return allocated, err
	}
	var runner cycle.Runner
	var out decision.Cycle
	steps, next := c.stepOf(pods), 0
	var lies devices
	if policy.MDPlans[0].HasDevices() {
		lies = newDevices(c.set.Hosts)
	}
	var granted, before int64
	for k := range fgdSteps {
		d := newDemand(3)
		for ; next < len(pods) && steps[next] <= k; next++ {
			row := pods[next].row
			d.add("/pods", strconv.Itoa(next), "", 1, c.set.Demand.Size[0][row], c.set.Demand.Size[1][row],
				c.set.Demand.Size[2][row])
		}
		if err := s.ChangeDemand(source, &d.DemandTable); err != nil {
			return allocated, err
		}
		runner.Run(s, int64(k+1)*policy.IntervalUS, &out)
		g := &out.Grants
		for i := range g.Units {
			n, _ := strconv.Atoi(g.Allocation.At(i)) // as it was named above
			granted += pods[n].milli()
			if err := lies.put(g.Host.At(i), g.Device.At(i), pods[n]); err != nil {
				return allocated, err
			}
		}
		// the published figure is a mean over the step
		allocated[k] = 100 * float64(before+granted) / 2 / float64(c.total)
		before = granted
	}
	return allocated, nil
}

// devices are the GPUs of hosts, by host: thousandths free of each. A nil map checks no grant.
type devices map[string][]int64

func newDevices(h *cluster.HostTable) devices {
	all := devices{}
	for i := range h.Rows {
		all[h.Host.Names.String(h.Host.Code[i])] = slices.Repeat([]int64{1000}, int(h.Size[2][i]/1000))
	}
	return all
}

// put takes a pod's devices of a host, as the grant names them.
func (d devices) put(host, on string, p pod) error {
	set, ok := decision.ReadDevices(on)
	if d == nil {
		return nil
	}
	if !ok || p.per > 0 && int64(bits.OnesCount64(set)) != p.devices || p.per == 0 && set != 0 {
		return fmt.Errorf("a pod of %d devices was granted those called %q", p.devices, on)
	}
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if i >= len(d[host]) || d[host][i] < p.per {
			return fmt.Errorf("a pod was granted %d of device %d of %s, which has not so much free", p.per, i, host)
		}
		d[host][i] -= p.per
	}
	return nil
}

// playFGD plays all pod lists of which there are curves, and prints means over the seeds.
func playFGD(dir, nodes string, seeds int) (*page.Section, error) {
	if seeds < 1 || seeds > fgdSeeds {
		return nil, fmt.Errorf("-seeds %d: must be from 1 to %d", seeds, fgdSeeds)
	}
	theirs, err := readCurves(filepath.Join(dir, "analysis_allo_discrete.csv"))
	if err != nil {
		return nil, err
	}
	lists, err := podLists(dir, nodes)
	if err != nil {
		return nil, err
	}
	s := &page.Section{
		Title: "FGD's curves on openb",
		About: fmt.Sprintf("The part of all GPUs that is allocated, in %%, when pods have arrived that ask for so "+
			"many %% of them: means of %d of the published seeds. Pods arrive in the published order, in steps of 1 "+
			"%%, and none leaves (hkust-adsl/kubernetes-scheduler-simulator, USENIX ATC 2023).", seeds),
		After: "`stint, on devices` is a plan with `devices: {gpu_milli: {per: 1000}}` (docs/shares.md, " +
			"\"Devices\"): what such a plan grants is checked against the devices that each grant names. Not " +
			"comparable is `stint, GPUs summed`, a plan without devices: it counts the GPUs of a host as one sum, so " +
			"that a part of a GPU may be made of two, which the published policies do not allow. In both rows the " +
			"host of a pod is chosen by the rule of every plan (docs/decisions.md, D-2). That rule goes by sums, and " +
			"begins hosts of eight GPUs for pods of one GPU while hosts of two GPUs with many processors lie idle. " +
			"So at 90 % the first pods of eight GPUs find no such host idle, where BestFit has some. At 100 % and " +
			"more the rule places more than BestFit all the same.",
	}
	for _, list := range lists {
		name := strings.TrimSuffix(filepath.Base(list), ".csv")
		t, err := fgdTable(nodes, list, theirs[name], seeds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t.Head[0] = strings.TrimPrefix(name, "openb_pod_list_")
		s.Tables = append(s.Tables, *t)
	}
	return s, nil
}

// podLists are the pod lists of which there may be curves: the default one beside the nodes, and all of the folder.
func podLists(dir, nodes string) ([]string, error) {
	all := []string{filepath.Join(filepath.Dir(nodes), "openb_pod_list_default.csv")}
	more, err := filepath.Glob(filepath.Join(dir, "openb_pod_list_*.csv"))
	if err != nil {
		return nil, err
	}
	return append(all, more...), nil
}

// fgdTable plays a pod list with each seed.
func fgdTable(nodes, list string, theirs map[string]map[int]curve, seeds int) (*page.Table, error) {
	if len(theirs) == 0 {
		return nil, errors.New("no published curve of it")
	}
	c, err := readPods(nodes, list)
	if err != nil {
		return nil, err
	}
	var summed, placed []curve
	for i := range seeds {
		seed := fgdSeed + i
		pods := c.arrivals(int64(seed))
		for _, policy := range sortedKeys(theirs) {
			published, ok := theirs[policy][seed]
			if !ok {
				return nil, fmt.Errorf("%s, seed %d: no published curve", policy, seed)
			}
			if err := c.asPublished(pods, published); err != nil {
				return nil, fmt.Errorf("%s, seed %d: %w", policy, seed, err)
			}
		}
		for file, all := range map[string]*[]curve{fgdPolicy: &summed, fgdDevices: &placed} {
			one, err := c.play(pods, file)
			if err != nil {
				return nil, fmt.Errorf("seed %d: %w", seed, err)
			}
			*all = append(*all, one)
		}
	}
	t := &page.Table{Head: []string{""}}
	for _, k := range fgdShown {
		t.Head = append(t.Head, strconv.Itoa(k)+" %")
	}
	for _, policy := range sortedKeys(theirs) {
		var all []curve
		for i := range seeds {
			all = append(all, theirs[policy][fgdSeed+i])
		}
		_, name, _ := strings.Cut(policy, "-")
		t.Add(meanRow(name, all)...)
	}
	t.Add(meanRow("stint, on devices", placed)...)
	t.Add(meanRow("stint, GPUs summed", summed)...)
	return t, nil
}

// meanRow is a row of the means of curves.
func meanRow(name string, all []curve) []string {
	row := []string{name}
	for _, k := range fgdShown {
		var sum float64
		for i := range all {
			sum += all[i][k]
		}
		row = append(row, fmt.Sprintf("%.2f", sum/float64(len(all))))
	}
	return row
}
