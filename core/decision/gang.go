package decision

import (
	"strconv"
	"strings"
)

// GangDetail is the detail of a shortfall with the reason gang (REQ-3): of the least number of units so many would fit
// now, and the next one has a reason, which may have a detail of its own. It reads "3 of 8 units would fit, the next
// one: fragmented: DETAIL", and where all must be together tells where: "3 of 8 units would fit in rack r7, the next
// one: …".
func GangDetail(fit, least int64, where string, reason int32, detail string) string {
	text := strconv.FormatInt(fit, 10) + " of " + strconv.FormatInt(least, 10) + gangWords
	if where != "" {
		text += " " + where
	}
	text += nextWords + Reasons[reason]
	if detail != "" {
		text += ": " + detail
	}
	return text
}

const (
	gangWords = " units would fit"
	nextWords = ", the next one: "
)

// Gang is what a detail of a gang tells.
type Gang struct {
	Fit, Least     int64
	Where          string // "in rack r7"; "": on any hosts
	Reason, Detail string // of the next unit
}

// ReadGangDetail is what GangDetail was told; ok is false of any other text.
func ReadGangDetail(text string) (g Gang, ok bool) {
	figures, rest, found := strings.Cut(text, gangWords)
	low, high, both := strings.Cut(figures, " of ")
	fit, err1 := strconv.ParseInt(low, 10, 64)
	least, err2 := strconv.ParseInt(high, 10, 64)
	where, next, more := strings.Cut(rest, nextWords)
	reason, detail, _ := strings.Cut(next, ": ")
	return Gang{fit, least, strings.TrimPrefix(where, " "), reason, detail},
		found && both && more && err1 == nil && err2 == nil
}
