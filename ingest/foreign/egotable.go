package foreign

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The columns of the reporting table CONSUMER_RESOURCE_ALLOCATION, in its own order.
const (
	egoCluster = iota
	egoConsumer
	egoGroup
	egoLocal
	egoGMT
	egoOwn
	egoShare
	egoBorrow
	egoLend
	egoUsed
	egoPlannedOwn
	egoLendLimit
	egoLendTo
	egoBorrowLimit
	egoBorrowFrom
	egoRatio
	egoShareLimit
	egoShareQuota
	egoHybridOwn
	egoHybridReserve
	egoPlannedQuota
	egoDemand
	egoUnsatisfied
	egoSeq
	egoColumns
)

var egoColumnNames = [egoColumns]string{
	"CLUSTER_NAME", "CONSUMER_NAME", "RESOURCE_GROUP", "TIME_STAMP", "TIME_STAMP_GMT", "ALLOCATED_OWN",
	"ALLOCATED_SHARE", "ALLOCATED_BORROW", "ALLOCATED_LEND", "USED", "PLANNED_OWN", "LENDING_LIMIT", "LEND_TO",
	"BORROW_LIMIT", "BORROW_FROM", "SHARE_RATIO", "SHARE_LIMIT", "SHARE_QUOTA", "PLANNED_HOWN", "PLANNED_HRESERVE",
	"PLANNED_QUOTA", "TOTAL_DEMAND", "UNSATISFIED_DEMAND", "INSERT_SEQ",
}

// egoNeeded are the columns without which a table tells neither a plan nor what was asked and given.
var egoNeeded = []int{egoConsumer, egoGroup, egoOwn, egoShare, egoBorrow, egoPlannedOwn, egoDemand}

// egoSettingColumns are those of the plan that somebody wrote; the quotas are computed from them.
var egoSettingColumns = []int{egoPlannedOwn, egoLendLimit, egoLendTo, egoBorrowLimit, egoBorrowFrom, egoRatio,
	egoShareLimit, egoHybridOwn, egoHybridReserve}

// Bounds of a reporting table. A row takes some 22 bytes of memory.
const (
	egoLineBytesMax = 1 << 20
	egoRowsMax      = 100_000_000
	egoLinesMax     = 20_000    // pairs of a consumer and a resource group
	egoInstantsMax  = 2_000_000 // 57 years of quarters of an hour
	egoSettingsMax  = 1<<16 - 1 // different settings of one pair
	egoSlotsMax     = 1<<31 - 1 // a figure
)

const noSetting = 1<<16 - 1

// egoSetting is what a consumer has in a plan for some time.
type egoSetting struct {
	own, lendLimit, borrowLimit, shareLimit, hybridOwn, hybridReserve int64
	ratio                                                             float64
	lendTo, borrowFrom                                                string
	line                                                              int // of the table, the first row with it
}

// egoTable is a reporting table while it is read.
type egoTable struct {
	file    string
	faults  *faults
	report  *Report
	zone    *time.Location // nil: as the table tells
	number  int            // of the line
	at      [egoColumns]int
	width   int
	field   [][]byte
	unquote []byte
	key     []byte

	cluster    string
	instant    map[int64]int // by minutes since 1970
	minutes    []int64       // by instant in order of first sight
	lastStamp  []byte
	lastAt     int
	offset     int64 // local time less GMT, in minutes, of the first row
	offsetLine int   // where it was another, first
	line       map[string]int
	lines      []HistoryLine
	lineKey    []byte
	rows       int
	groupRows  int // rows of all groups together
}

// read reads the whole table, row by row.
func (t *egoTable) read(r io.Reader) error {
	t.instant, t.line, t.lastAt = map[int64]int{}, map[string]int{}, -1
	b := bufio.NewReaderSize(r, egoLineBytesMax)
	for {
		text, err := b.ReadSlice('\n')
		if err != nil && err != io.EOF {
			if err == bufio.ErrBufferFull {
				return fmt.Errorf("%s:%d: is longer than %d bytes", t.file, t.number+1, egoLineBytesMax)
			}
			return fmt.Errorf("%s: %w", t.file, err)
		}
		if t.number++; len(text) > 0 {
			if fatal := t.text(bytes.TrimRight(text, "\r\n")); fatal != nil {
				return fatal
			}
		}
		if err == io.EOF {
			break
		}
	}
	if t.width == 0 {
		return fmt.Errorf("%s: is empty; a header with the names of columns is expected", t.file)
	}
	return nil
}

// text takes a line of the file: the first is the header.
func (t *egoTable) text(text []byte) error {
	if t.width == 0 {
		return t.header(text)
	}
	if len(text) == 0 {
		return nil
	}
	if !t.split(text) {
		t.fault("has a quote that does not end on the line")
		return t.enough()
	}
	if len(t.field) != t.width {
		t.fault("has %d fields, the header has %d columns; is the file cut off?", len(t.field), t.width)
		return t.enough()
	}
	if t.rows++; t.rows > egoRowsMax {
		return fmt.Errorf("%s:%d: there are more than %d rows", t.file, t.number, egoRowsMax)
	}
	t.row()
	return t.enough()
}

// enough ends the reading of a file that is not what it seems to be.
func (t *egoTable) enough() error {
	if t.faults.count <= faultsMax {
		return nil
	}
	return t.faults.err()
}

func (t *egoTable) fault(format string, args ...any) { t.faults.add(t.file, t.number, format, args...) }

// header finds the columns.
func (t *egoTable) header(text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		return fmt.Errorf("%s:1: is in UTF-16; convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)", t.file)
	case !utf8.Valid(text):
		return fmt.Errorf("%s:1: is not valid UTF-8", t.file)
	}
	if !t.split(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		return fmt.Errorf("%s:1: has a quote that does not end on the line", t.file)
	}
	t.width = len(t.field)
	for i := range t.at {
		t.at[i] = -1
	}
	for i, name := range t.field {
		c := slices.Index(egoColumnNames[:], strings.ToUpper(strings.TrimSpace(string(name))))
		switch {
		case c < 0:
			t.report.Add(t.file, 1, "column "+oneLine(string(name)), "is none of CONSUMER_RESOURCE_ALLOCATION")
		case t.at[c] >= 0:
			return fmt.Errorf("%s:1: column %s is there twice", t.file, egoColumnNames[c])
		default:
			t.at[c] = i
		}
	}
	var missing []string
	for _, c := range egoNeeded {
		if t.at[c] < 0 {
			missing = append(missing, egoColumnNames[c])
		}
	}
	if t.at[egoGMT] < 0 && t.at[egoLocal] < 0 {
		missing = append(missing, egoColumnNames[egoGMT])
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s:1: columns of CONSUMER_RESOURCE_ALLOCATION are missing: %s", t.file,
			strings.Join(missing, ", "))
	}
	return nil
}

// split cuts a line into its fields. It is false where a quote does not end.
func (t *egoTable) split(text []byte) bool {
	t.field = t.field[:0]
	if bytes.IndexByte(text, '"') < 0 {
		for {
			i := bytes.IndexByte(text, ',')
			if i < 0 {
				t.field = append(t.field, text)
				return true
			}
			t.field, text = append(t.field, text[:i]), text[i+1:]
		}
	}
	t.unquote = t.unquote[:0]
	for {
		if len(text) == 0 || text[0] != '"' {
			i := bytes.IndexByte(text, ',')
			if i < 0 {
				t.field = append(t.field, text)
				return true
			}
			t.field, text = append(t.field, text[:i]), text[i+1:]
			continue
		}
		from := len(t.unquote)
		for text = text[1:]; ; {
			i := bytes.IndexByte(text, '"')
			if i < 0 {
				return false
			}
			t.unquote, text = append(t.unquote, text[:i]...), text[i+1:]
			if len(text) == 0 || text[0] != '"' {
				break
			}
			t.unquote, text = append(t.unquote, '"'), text[1:]
		}
		t.field = append(t.field, t.unquote[from:len(t.unquote):len(t.unquote)])
		if len(text) == 0 {
			return true
		}
		if text[0] != ',' {
			return false
		}
		text = text[1:]
	}
}

// cell is a column's field, empty where the table does not have the column or the field is null.
func (t *egoTable) cell(c int) []byte {
	if t.at[c] < 0 {
		return nil
	}
	f := t.field[t.at[c]]
	if len(f) == 4 && strings.EqualFold(string(f), "null") {
		return nil
	}
	return f
}

// amount is a whole number of slots; null is 0.
func (t *egoTable) amount(c int) int64 {
	f := bytes.TrimSuffix(t.cell(c), []byte(".0"))
	if len(f) == 0 {
		return 0
	}
	var n int64
	for _, d := range f {
		if d < '0' || d > '9' || n > egoSlotsMax/10 {
			n = -1
			break
		}
		n = n*10 + int64(d-'0')
	}
	if n < 0 || n > egoSlotsMax {
		t.fault("%s %q: must be a whole number from 0 to %d", egoColumnNames[c], t.cell(c), egoSlotsMax)
		return 0
	}
	return n
}

// row takes a row.
func (t *egoTable) row() {
	at := t.when()
	if at < 0 {
		return
	}
	if cluster := t.cell(egoCluster); t.cluster == "" {
		t.cluster = string(cluster)
	} else if string(cluster) != t.cluster {
		t.fault("CLUSTER_NAME %q: the rows before are of %q; import one cluster at a time", cluster, t.cluster)
		return
	}
	if string(t.cell(egoGroup)) == "all" {
		t.groupRows++
		t.report.Add(t.file, t.number, "a row of RESOURCE_GROUP all",
			"it is the sum of the groups, which have rows of their own")
		return
	}
	l := t.lineOf()
	if l == nil {
		return
	}
	for len(l.Demand) <= at {
		l.Demand, l.Own, l.Share = append(l.Demand, NotTold), append(l.Own, NotTold), append(l.Share, NotTold)
		l.Borrow, l.Lent, l.setting = append(l.Borrow, NotTold), append(l.Lent, NotTold), append(l.setting, noSetting)
	}
	own, share, borrow := t.amount(egoOwn), t.amount(egoShare), t.amount(egoBorrow)
	lent, demand := t.amount(egoLend), t.amount(egoDemand)
	if l.Demand[at] != NotTold {
		if int64(l.Demand[at]) == demand && int64(l.Own[at]) == own && int64(l.Share[at]) == share &&
			int64(l.Borrow[at]) == borrow {
			t.report.Add(t.file, t.number, "a row that is there twice", "with the same figures")
			return
		}
		t.fault("%s has a row for that time and resource group already, with other figures", l.Consumer)
		return
	}
	l.Demand[at], l.Own[at], l.Share[at] = int32(demand), int32(own), int32(share)
	l.Borrow[at], l.Lent[at] = int32(borrow), int32(lent)
	l.everShared, l.everLent = l.everShared || share > 0, l.everLent || lent > 0
	l.everBorrowed = l.everBorrowed || borrow > 0
	if unmet := t.amount(egoUnsatisfied); unmet > demand {
		t.report.Add(t.file, t.number, "UNSATISFIED_DEMAND above TOTAL_DEMAND",
			"the row contradicts itself; TOTAL_DEMAND is what was asked")
	}
	l.setting[at] = t.settingOf(l)
}

// lineOf is the line of a row's consumer and group; nil where the row has none.
func (t *egoTable) lineOf() *HistoryLine {
	path, plan := t.cell(egoConsumer), t.cell(egoGroup)
	t.lineKey = append(append(append(t.lineKey[:0], plan...), 0), path...)
	if i, ok := t.line[string(t.lineKey)]; ok {
		return &t.lines[i]
	}
	why := ""
	consumer := "/" + strings.Trim(string(path), "/")
	for name := range strings.SplitSeq(consumer[1:], "/") {
		if why == "" {
			why = nameFault(name)
		}
	}
	switch {
	case why != "":
		why = fmt.Sprintf("CONSUMER_NAME %q: a name in it %s", path, why)
	case !utf8.Valid(path) || !utf8.Valid(plan):
		why = fmt.Sprintf("%q is not valid UTF-8", t.lineKey)
	case nameFault(strings.ReplaceAll(string(plan), "/", "")) != "":
		why = fmt.Sprintf("RESOURCE_GROUP %q %s", plan, nameFault(string(plan)))
	case strings.Count(consumer, "/") > 32:
		why = fmt.Sprintf("CONSUMER_NAME %q is nested more than 32 levels deep", path)
	case len(t.lines) >= egoLinesMax:
		why = fmt.Sprintf("there are more than %d pairs of a consumer and a resource group", egoLinesMax)
	}
	if why != "" {
		t.fault("%s", why)
		return nil
	}
	t.line[string(t.lineKey)] = len(t.lines)
	t.lines = append(t.lines, HistoryLine{Plan: string(plan), Consumer: consumer, byKey: map[string]uint16{}})
	return &t.lines[len(t.lines)-1]
}

// settingOf is the number of a row's settings among those of its line.
func (t *egoTable) settingOf(l *HistoryLine) uint16 {
	t.key = t.key[:0]
	for _, c := range egoSettingColumns {
		t.key = append(append(t.key, t.cell(c)...), 0)
	}
	if len(l.settings) > 0 && bytes.Equal(t.key, l.lastKey) {
		return l.last
	}
	l.lastKey = append(l.lastKey[:0], t.key...)
	n, ok := l.byKey[string(t.key)]
	if !ok {
		if len(l.settings) >= egoSettingsMax {
			t.fault("%s has more than %d different plans", l.Consumer, egoSettingsMax)
			return 0
		}
		s := egoSetting{
			own: t.amount(egoPlannedOwn), lendLimit: t.amount(egoLendLimit), borrowLimit: t.amount(egoBorrowLimit),
			shareLimit: t.amount(egoShareLimit), hybridOwn: t.amount(egoHybridOwn),
			hybridReserve: t.amount(egoHybridReserve), ratio: t.fraction(egoRatio), lendTo: t.words(egoLendTo),
			borrowFrom: t.words(egoBorrowFrom), line: t.number,
		}
		n = uint16(len(l.settings))
		l.settings, l.byKey[string(t.key)] = append(l.settings, s), n
	}
	l.last = n
	return n
}

// fraction is a number with or without a point; null is 0.
func (t *egoTable) fraction(c int) float64 {
	f := t.cell(c)
	if len(f) == 0 {
		return 0
	}
	v, err := strconv.ParseFloat(string(f), 64)
	if err != nil || v != v || v < 0 || v > 1e9 {
		t.fault("%s %q: must be a number from 0 to 1000000000", egoColumnNames[c], f)
		return 0
	}
	return v
}

// words is a text without line breaks.
func (t *egoTable) words(c int) string {
	f := t.cell(c)
	if !utf8.Valid(f) {
		t.fault("%s %q is not valid UTF-8", egoColumnNames[c], f)
		return ""
	}
	return oneLine(string(f))
}

// when is the number of a row's instant, -1 where it has none. Seconds do not count.
func (t *egoTable) when() int {
	stamp := t.cell(egoGMT)
	if t.at[egoGMT] < 0 {
		stamp = t.cell(egoLocal)
	}
	if t.lastAt >= 0 && bytes.Equal(stamp, t.lastStamp) {
		return t.lastAt
	}
	minute, ok := t.minute()
	if !ok {
		return -1
	}
	i, known := t.instant[minute]
	if !known {
		if len(t.minutes) >= egoInstantsMax {
			t.fault("there are more than %d times", egoInstantsMax)
			return -1
		}
		i = len(t.minutes)
		t.instant[minute], t.minutes = i, append(t.minutes, minute)
	}
	t.lastStamp, t.lastAt = append(t.lastStamp[:0], stamp...), i
	return i
}

// minute is a row's instant in minutes since 1970, by the one column or the other; where both are there they must
// agree.
func (t *egoTable) minute() (minute int64, ok bool) {
	var local time.Time
	if f := t.cell(egoLocal); t.at[egoLocal] >= 0 {
		zone := t.zone
		if zone == nil {
			zone = time.UTC
		}
		var err error
		if local, err = time.ParseInLocation(time.DateTime, string(f), zone); err != nil {
			if t.at[egoGMT] < 0 {
				t.fault("TIME_STAMP %q: must be a time such as 2026-01-05 08:15:00", f)
				return 0, false
			}
			t.report.Add(t.file, t.number, "TIME_STAMP",
				"is no time such as 2026-01-05 08:15:00; TIME_STAMP_GMT is used")
			local = time.Time{}
		}
	}
	if t.at[egoGMT] < 0 {
		return local.Unix() / 60, true
	}
	ms, err := strconv.ParseInt(string(t.cell(egoGMT)), 10, 64)
	if err != nil || ms < 1 || ms > 1<<42 {
		t.fault("TIME_STAMP_GMT %q: must be milliseconds since 1970", t.cell(egoGMT))
		return 0, false
	}
	minute = ms / 60_000
	if !local.IsZero() {
		t.compareClocks(local.Unix()/60-minute, local)
	}
	return minute, true
}

// compareClocks holds what the clock on the wall showed, in minutes beyond what the time zone says, against the rows
// before.
func (t *egoTable) compareClocks(offset int64, local time.Time) {
	switch {
	case t.zone != nil && offset != 0:
		t.fault("TIME_STAMP %s is %d minutes beside TIME_STAMP_GMT in time zone %s", local.Format(time.DateTime),
			offset, t.zone)
	case t.zone == nil && len(t.minutes) == 0:
		t.offset = offset
	case t.zone == nil && offset != t.offset && t.offsetLine == 0:
		t.offsetLine = t.number
	}
}

// timezone is the time zone of the plan's windows.
func (t *egoTable) timezone() (*time.Location, error) {
	switch {
	case t.zone != nil:
		return t.zone, nil
	case t.offsetLine != 0:
		return nil, fmt.Errorf("%s:%d: TIME_STAMP is no longer %d minutes ahead of TIME_STAMP_GMT as in the rows "+
			"before: clocks were changed; the time zone must be given (such as --timezone Europe/London)", t.file,
			t.offsetLine, t.offset)
	case t.offset == 0:
		return time.UTC, nil
	case t.offset%60 != 0 || t.offset < -12*60 || t.offset > 14*60:
		return nil, fmt.Errorf("%s: TIME_STAMP is %d minutes ahead of TIME_STAMP_GMT; the time zone must be given "+
			"(such as --timezone Asia/Kolkata)", t.file, t.offset)
	}
	return time.LoadLocation(fmt.Sprintf("Etc/GMT%+d", -t.offset/60))
}
