package decision

import (
	"fmt"
	"strings"
)

// togetherDetail ends the detail of a shortfall of units for which hosts have room in sum only.
const togetherDetail = ", and %d in all"

// TogetherDetail ends such a detail with the amount that hosts have free in all.
func TogetherDetail(free int64) string { return fmt.Sprintf(togetherDetail, free) }

// ReadTogetherDetail reads the amount that TogetherDetail wrote, and gives what is before it; ok is false where it
// wrote none.
func ReadTogetherDetail(detail string) (free int64, before string, ok bool) {
	at := strings.LastIndex(detail, ", and ")
	if at < 0 {
		return 0, detail, false
	}
	_, err := fmt.Sscanf(detail[at:], togetherDetail, &free)
	return free, detail[:at], err == nil
}
