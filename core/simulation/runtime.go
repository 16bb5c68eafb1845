package simulation

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/cluster"
)

// partsWhole is how many parts a probability has.
const partsWhole = 1_000_000

// quantile is how long at most that part of all units runs.
type quantile struct{ part, us int64 }

// Runtimes are how long units run, by the path of a consumer; it holds for those below it that have none of their own.
type Runtimes map[string][]quantile

// runtimeMaxUS bounds a run time: ten years.
const runtimeMaxUS = 10 * 366 * 24 * 3600 * 1_000_000

// Add takes what is said of a consumer: percentiles with how long so many of a hundred units run at most, such as 50
// with 10m and 99.9 with 2h. Between two the run time grows evenly, from 0 on; beyond the last nothing runs longer.
func (r Runtimes) Add(consumer string, percentiles map[string]string) error {
	fault := func(format string, args ...any) error {
		return fmt.Errorf("run time of %s: %s", consumer, fmt.Sprintf(format, args...))
	}
	switch {
	case !strings.HasPrefix(consumer, "/"):
		return fault("a consumer's path begins with a slash")
	case r[consumer] != nil:
		return fault("is given twice")
	case len(percentiles) == 0:
		return fault("has no percentile")
	}
	var list []quantile
	for name, text := range percentiles {
		p, err := strconv.ParseFloat(strings.TrimPrefix(name, "p"), 64)
		if err != nil || !(p > 0 && p <= 100) {
			return fault("percentile %q: must be above 0 and at most 100, such as p50 or p99.9", name)
		}
		us, err := Duration(text)
		if err != nil {
			return fault("%s, %v", name, err)
		}
		list = append(list, quantile{int64(p*partsWhole/100 + 0.5), us})
	}
	slices.SortFunc(list, func(a, b quantile) int { return cmp.Compare(a.part, b.part) })
	for i := 1; i < len(list); i++ {
		if list[i].part == list[i-1].part || list[i].us < list[i-1].us {
			return fault("a higher percentile must have a longer run time")
		}
	}
	if len(list) == 1 && list[0].part != partsWhole { // it says nothing of how they are spread
		list[0].part = partsWhole
	}
	r[consumer] = list
	return nil
}

// Duration reads how long a unit runs, in µs.
func Duration(text string) (us int64, err error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d.Microseconds() > runtimeMaxUS {
		return 0, fmt.Errorf("value %q: %s", text, durationForm)
	}
	return max(1, d.Microseconds()), nil
}

// RuntimesUS reads the column of a demand table that tells how long units run; 0: not said. The error is
// *cluster.Faults with every bad value.
func RuntimesUS(t *cluster.DemandTable, column cluster.TextColumn) ([]int64, error) {
	f := cluster.Faults{Table: t.Name}
	list := make([]int64, t.Rows)
	for row := range list {
		code := column.At(row)
		if code == cluster.Null {
			continue
		}
		text := column.Names.String(code)
		us, err := Duration(text)
		if err != nil {
			f.Add(row+1, "runtime", text, durationForm)
		}
		list[row] = us
	}
	return list, f.Err()
}

const durationForm = "must be a duration above 0 such as 90s or 2h"

// of is what is said of a consumer, or of the nearest above it.
func (r Runtimes) of(path string) []quantile {
	for path != "" {
		if list := r[path]; list != nil {
			return list
		}
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return r["/"]
}

// longer is how long a unit runs in all that has run for so long: of those that would still run, the one that so many
// parts of them do not outlast. One that has outlasted all that is known ends now.
func longer(list []quantile, age, part int64) int64 {
	if len(list) == 1 {
		return max(age, list[0].us)
	}
	gone := partWithin(list, age)
	return max(age, within(list, gone+part*(partsWhole-gone)/partsWhole))
}

// within is how long the given part of units runs at most.
func within(list []quantile, part int64) int64 {
	var from quantile
	for _, to := range list {
		if part <= to.part {
			return from.us + scaled(to.us-from.us, part-from.part, to.part-from.part)
		}
		from = to
	}
	return from.us
}

// partWithin is the part of units that do not run longer.
func partWithin(list []quantile, us int64) int64 {
	var from quantile
	for _, to := range list {
		if us < to.us {
			return from.part + scaled(to.part-from.part, us-from.us, to.us-from.us)
		}
		from = to
	}
	return partsWhole
}

// scaled is a × b ÷ c, rounded down.
func scaled(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(high, low, uint64(c))
	return int64(q)
}
