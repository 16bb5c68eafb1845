package ownership

import (
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// hundred is 100 %, in thousandths of a percent.
const hundred = 100_000

func zero(v []int64) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

// add adds to a vector, saturating.
func add(to, v []int64) {
	for i, x := range v {
		to[i] = share.Add(to[i], x)
	}
}

// least writes the lesser of two vectors, dimension by dimension.
func least(out, a, b []int64) []int64 {
	for i, x := range b {
		out[i] = min(a[i], x)
	}
	return out
}

// owing tells whether something of a named dimension is missing.
func owing(short []int64) bool {
	return slices.ContainsFunc(short, func(v int64) bool { return v > 0 })
}

// fits tells whether all of v may be taken for what is missing (Unlimited: not named): it has
// something of it, and of no named dimension too much.
func fits(v, short []int64) bool {
	some := false
	for d, want := range short {
		if want == plan.Unlimited {
			continue
		}
		if v[d] > want {
			return false
		}
		some = some || v[d] > 0
	}
	return some
}

// pay takes off what is missing what was taken.
func pay(short, v []int64) {
	for d := range short {
		if short[d] != plan.Unlimited {
			short[d] -= v[d]
		}
	}
}

// cut writes what is taken of v for at most so much of named dimensions: of these what there is, of the others
// the largest named fraction, rounded down. Nothing when no named dimension gives any.
func cut(out, most, v []int64) []int64 {
	part, whole := int64(0), int64(1)
	for d, want := range most {
		if want == plan.Unlimited {
			continue
		}
		out[d] = min(want, v[d])
		if out[d] > 0 && share.Less(part, whole, out[d], v[d]) {
			part, whole = out[d], v[d]
		}
	}
	for d, want := range most {
		if want == plan.Unlimited {
			out[d], _ = share.Scale(v[d], part, whole)
		}
	}
	return out
}

// asked writes what `per_host` asks of a cell: of named dimensions the amount or the percentage, at most what
// there is, the others as in cut.
func asked(out []int64, rule []plan.Part, cell []int64) []int64 {
	for d, r := range rule {
		out[d] = r.Amount
		if r.Percent != plan.Unlimited {
			out[d], _ = share.Scale(cell[d], r.Percent, hundred)
		}
	}
	return cut(out, out, cell)
}
