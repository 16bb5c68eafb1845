package decision

import (
	"fmt"
	"strconv"
	"strings"
)

// togetherDetail ends the detail of a shortfall of units for which hosts have room in sum only.
const togetherDetail = ", and %d in all"

// TogetherDetail ends such a detail with the amount that hosts have free in all.
func TogetherDetail(free int64) string { return fmt.Sprintf(togetherDetail, free) }

// ReadTogetherDetail reads the amount that TogetherDetail wrote; ok is false where it wrote none.
func ReadTogetherDetail(detail string) (free int64, ok bool) {
	_, text, ok := strings.Cut(detail, ", and ")
	if !ok {
		return 0, false
	}
	free, err := strconv.ParseInt(strings.TrimSuffix(text, " in all"), 10, 64)
	return free, err == nil
}
