package decision

import (
	"strconv"
	"strings"
)

// GangDetail is the detail of a shortfall with the reason gang (REQ-3): of the least number of units so many would fit now, and the
// next one has a reason, which may have a detail of its own. It reads "3 of 8 units would fit, the next one: fragmented: DETAIL".
func GangDetail(fit, least int64, reason int32, detail string) string {
	text := strconv.FormatInt(fit, 10) + " of " + strconv.FormatInt(least, 10) + gangWords + Reasons[reason]
	if detail != "" {
		text += ": " + detail
	}
	return text
}

const gangWords = " units would fit, the next one: "

// ReadGangDetail is what GangDetail was told; ok is false of any other text.
func ReadGangDetail(text string) (fit, least int64, reason, detail string, ok bool) {
	figures, rest, found := strings.Cut(text, gangWords)
	low, high, both := strings.Cut(figures, " of ")
	fit, err1 := strconv.ParseInt(low, 10, 64)
	least, err2 := strconv.ParseInt(high, 10, 64)
	reason, detail, _ = strings.Cut(rest, ": ")
	return fit, least, reason, detail, found && both && err1 == nil && err2 == nil
}
