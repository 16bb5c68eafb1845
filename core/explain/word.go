package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count is a number and what it counts, in the plural where that is due.
func count(n int64, what string) string {
	if n != 1 && n != -1 {
		what += "s"
	}
	return grouped(n) + " " + what
}

// percent writes a share.
func percent(f float64) string { return fmt.Sprintf("%.1f %%", 100*f) }

// instant writes microseconds since 1970.
func instant(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339Nano) }

// is is "is" or "are".
func is(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// listed joins words as in "a, b and c"; of more than most it names the first and says how many more there are.
func listed(words []string, most int) string {
	if n := len(words) - most; n > 0 {
		return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", n)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
