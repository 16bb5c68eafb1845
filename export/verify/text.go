package verify

import "strconv"

// grouped writes a number; it is apart so that all figures of faults are written alike.
func grouped(n int64) string { return strconv.FormatInt(n, 10) }

// decimal writes a share with all digits that it has.
func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
