package foreign

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// NotTold is what a History has where the table has no row.
const NotTold int32 = -1

// History is what a reporting table tells of what was asked and what was given: a line for each leaf and plan.
type History struct {
	AtUS   []int64 // instants, ascending
	StepUS int64   // the usual time between two
	Lines  []HistoryLine
}

// HistoryLine is a leaf in a plan. Columns are in slots, by instant, NotTold where there is no row.
type HistoryLine struct {
	Plan, Consumer             string
	Demand, Own, Share, Borrow []int32
	Lent                       []int32
	setting                    []uint16 // number of the setting in settings; noSetting where there is no row
	settings                   []egoSetting
	lastKey                    []byte // of the last row
	last                       uint16
	byKey                      map[string]uint16
	everShared, everLent       bool
	everBorrowed               bool
	leaf                       bool
}

// history orders what was read by time, and tells leaves from branches.
func (t *egoTable) history() (*History, error) {
	switch {
	case len(t.lines) == 0 && t.groupRows > 0:
		return nil, fmt.Errorf("%s: has rows of RESOURCE_GROUP all only, which are sums; export those of the groups",
			t.file)
	case len(t.lines) == 0:
		return nil, fmt.Errorf("%s: has no rows", t.file)
	}
	order := make([]int, len(t.minutes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(t.minutes[a] - t.minutes[b]) })
	h := &History{Lines: t.lines}
	for _, i := range order {
		h.AtUS = append(h.AtUS, t.minutes[i]*60_000_000)
	}
	sorted := slices.IsSorted(t.minutes)
	for i := range h.Lines {
		l := &h.Lines[i]
		l.byKey, l.lastKey = nil, nil
		for _, c := range []*[]int32{&l.Demand, &l.Own, &l.Share, &l.Borrow, &l.Lent} {
			*c = inTime(*c, order, sorted, NotTold)
		}
		l.setting = inTime(l.setting, order, sorted, noSetting)
	}
	branch := map[string]bool{}
	for i := range h.Lines {
		for up := parentOf(h.Lines[i].Consumer); up != ""; up = parentOf(up) {
			branch[up] = true
		}
	}
	for i := range h.Lines {
		h.Lines[i].leaf = !branch[h.Lines[i].Consumer]
	}
	h.StepUS = usualStep(h.AtUS)
	t.gaps(h)
	return h, nil
}

// inTime is a column by time, of all instants.
func inTime[T any](c []T, order []int, sorted bool, null T) []T {
	for len(c) < len(order) {
		c = append(c, null)
	}
	if sorted {
		return c
	}
	out := make([]T, len(order))
	for i, from := range order {
		out[i] = c[from]
	}
	return out
}

// parentOf is the path above a path, "" above the first level.
func parentOf(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// usualStep is the most frequent time between two instants, the smaller of two that are as frequent; 15 minutes where
// there is one instant.
func usualStep(at []int64) int64 {
	often := map[int64]int{}
	for i := 1; i < len(at); i++ {
		often[at[i]-at[i-1]]++
	}
	step := int64(0)
	for d, n := range often {
		if step == 0 || n > often[step] || n == often[step] && d < step {
			step = d
		}
	}
	if step == 0 {
		return 15 * 60_000_000
	}
	return step
}

// gaps tells of times without rows, and of leaves that have none while others have.
func (t *egoTable) gaps(h *History) {
	gaps, first := 0, 0
	for i := 1; i < len(h.AtUS); i++ {
		if h.AtUS[i]-h.AtUS[i-1] < 2*h.StepUS {
			continue
		}
		if gaps++; gaps == 1 {
			first = i
		}
	}
	if gaps > 0 {
		d := time.Duration(h.AtUS[first]-h.AtUS[first-1]) * time.Microsecond
		t.report.Add(t.file, 0, count(gaps, "time without rows", "times without rows"), fmt.Sprintf(
			"what was asked before is taken to go on; the first is %s long, from %s UTC on", d,
			time.UnixMicro(h.AtUS[first-1]).UTC().Format("2006-01-02 15:04")))
	}
	missing := 0
	for i := range h.Lines {
		for _, v := range h.Lines[i].Demand {
			if v == NotTold && h.Lines[i].leaf {
				missing++
			}
		}
	}
	if missing > 0 {
		t.report.Add(t.file, 0, count(missing, "row of a leaf that is not there", "rows of leaves that are not there"),
			"at that time nothing was asked, and nothing is compared")
	}
}

// count is a number of things.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
