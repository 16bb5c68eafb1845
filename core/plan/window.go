package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const (
	dayMinutes  = 24 * 60
	weekMinutes = 7 * dayMinutes
	everyDay    = 1<<7 - 1
)

var dayNames = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// Holds tells whether a window that recurs is open at an instant of a wall clock (PLAN-1).
func (w *Window) Holds(at time.Time) bool {
	day := (int(at.Weekday()) + 6) % 7 // Monday is 0
	return w.holds(day, int32(at.Hour()*60+at.Minute()))
}

func (w *Window) holds(day int, minute int32) bool {
	today, yesterday := w.Days>>day&1 != 0, w.Days>>((day+6)%7)&1 != 0
	if w.From < w.To {
		return today && minute >= w.From && minute < w.To
	}
	return today && minute >= w.From || yesterday && minute < w.To
}

// Opens is when a dated window opens, by the wall clock of a time zone.
func (w *Window) Opens(at *time.Location) string { return wallClock(w.SinceUS, at) }

// Closes is when a dated window closes, by the wall clock of a time zone.
func (w *Window) Closes(at *time.Location) string { return wallClock(w.UntilUS, at) }

func wallClock(us int64, at *time.Location) string {
	return time.UnixMicro(us).In(at).Format(dateForms[0])
}

// openAt gives the index of the window that is open at an instant (µs since 1970). A dated one comes before those that
// recur (PLAN-8).
func openAt(n int, window func(int) *Window, nowUS int64, at *time.Location) int {
	for i := range n {
		if w := window(i); nowUS >= w.SinceUS && nowUS < w.UntilUS {
			return i
		}
	}
	t := time.UnixMicro(nowUS).In(at)
	for i := range n {
		if w := window(i); !w.Dated() && w.Holds(t) {
			return i
		}
	}
	panic("BUG: windows do not cover the week")
}

// WindowAt gives the index of the window of the plan that is open at an instant
// (µs since 1970), by the wall clock of a time zone. One always is.
func (m *MDPlan) WindowAt(nowUS int64, at *time.Location) int {
	return openAt(len(m.Windows), func(i int) *Window { return &m.Windows[i].Window }, nowUS, at)
}

// WindowAt gives the index of the window of the plan that is open at an instant
// (µs since 1970), by the wall clock of a time zone. One always is.
func (s *SlotPlan) WindowAt(nowUS int64, at *time.Location) int {
	return openAt(len(s.Windows), func(i int) *Window { return &s.Windows[i].Window }, nowUS, at)
}

// windowEntry is a window of the file before its settings are merged.
type windowEntry struct {
	value
	Window
	consumers []entry
}

// windows reads a plan's windows. A plan without any that recurs has one without a name that holds always.
func (r *reader) windows(p *Policy, f fields, consumerKeys []string) []windowEntry {
	always := windowEntry{Window: Window{Days: everyDay}}
	v, ok := f.get("windows")
	if !ok {
		return []windowEntry{always}
	}
	list, ok := r.list(v, windowsMax)
	if !ok {
		return nil
	}
	if len(list) == 0 {
		r.fault(v, "there must be at least one window; leave the key out when there are none")
	}
	var out []windowEntry
	first := map[string]int32{}
	whole := true
	for _, one := range list {
		w, ok := r.window(p, one, consumerKeys)
		whole = whole && ok
		if line, twice := first[w.Name]; ok && twice {
			r.fault(one, "there is already a window %s, on line %d", w.Name, line)
			whole = false
			continue
		}
		first[w.Name] = w.Line
		out = append(out, w)
	}
	recurs := slices.DeleteFunc(slices.Clone(out), func(w windowEntry) bool { return w.Dated() })
	if whole && len(recurs) > 0 {
		r.cover(v, recurs)
	}
	r.apart(out)
	if len(recurs) == 0 && len(out) > 0 {
		out = append(out, always)
	}
	return out
}

// apart checks that no two dated windows are open at one time.
func (r *reader) apart(windows []windowEntry) {
	for i := range windows {
		for k := range i {
			if a, b := &windows[k], &windows[i]; a.SinceUS < b.UntilUS && b.SinceUS < a.UntilUS {
				r.fault(b.value, "window %s overlaps the dated window %s", b.Name, a.Name)
			}
		}
	}
}

func (r *reader) window(p *Policy, v value, consumerKeys []string) (w windowEntry, ok bool) {
	w.value, w.Line, w.Days = v, v.line(), everyDay
	f, ok := r.fields(v, windowObject.names...)
	if !ok {
		return w, false
	}
	name, ok := r.need(v, f, "name")
	if ok {
		w.Name, ok = r.name(name)
	}
	ok = r.when(p, &w, v, f) && ok
	if list, given := f.get("consumers"); given {
		w.consumers = r.entries(list, consumerKeys...)
	}
	return w, ok
}

// when reads the hours and days of a window that recurs, or the dates of one that is open once.
func (r *reader) when(p *Policy, w *windowEntry, v value, f fields) (ok bool) {
	from, begins := f.get("from")
	until, ends := f.get("until")
	hours, recurs := f.get("hours")
	days, chosen := f.get("days")
	switch {
	case begins != ends:
		r.fault(v, "a dated window needs from and until")
		return false
	case begins && (recurs || chosen):
		r.fault(v, "a window has hours, which recur, or from and until, not both")
		return false
	case begins:
		w.Days = 0
		since, ok1 := r.date(p, from)
		to, ok2 := r.date(p, until)
		if ok1 && ok2 && to <= since {
			r.fault(until, "must be after from")
			return false
		}
		w.SinceUS, w.UntilUS = since, to
		return ok1 && ok2
	case !recurs:
		r.fault(v, "hours is missing, or from and until")
		return false
	}
	w.From, w.To, ok = r.hours(hours)
	if chosen {
		set, good := r.days(days)
		w.Days, ok = set, ok && good
	}
	return ok
}

// dateForms are how a date with or without a time of day is written.
var dateForms = []string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"}

// date reads a date of the policy's wall clock, with or without a time of day, in µs since 1970. A date alone is its
// first instant.
func (r *reader) date(p *Policy, v value) (us int64, ok bool) {
	s, ok := r.text(v, nameBytesMax)
	if !ok {
		return 0, false
	}
	for _, form := range dateForms {
		if at, err := time.ParseInLocation(form, s, p.Location); err == nil && at.Year() > 1970 {
			return firstOf(at).UnixMicro(), true
		}
	}
	r.fault(v, `must be a date after 1970 such as 2026-12-24, or "2026-12-24 18:00"`)
	return 0, false
}

// firstOf is the first instant at which a wall clock shows what it shows at an instant: where clocks go back, it shows
// the same twice.
func firstOf(at time.Time) time.Time {
	_, offset := at.Zone()
	_, before := at.Add(-24 * time.Hour).Zone()
	earlier := at.Add(time.Duration(offset-before) * time.Second)
	if before > offset && earlier.Format(time.DateTime) == at.Format(time.DateTime) {
		return earlier
	}
	return at
}

var hoursPattern = regexp.MustCompile(`^(\d\d):(\d\d)-(\d\d):(\d\d)$`)

// hours reads "08:00-20:00" in minutes of the day; 24:00 is given as 0, so that to ≤ from passes midnight.
func (r *reader) hours(v value) (from, to int32, ok bool) {
	s, ok := r.text(v, nameBytesMax)
	if !ok {
		return 0, 0, false
	}
	m := hoursPattern.FindStringSubmatch(s)
	if m == nil {
		r.fault(v, `must be hours such as "08:00-20:00"`)
		return 0, 0, false
	}
	var part [4]int32
	for i := range part {
		n, _ := strconv.Atoi(m[i+1])
		part[i] = int32(n)
	}
	from, to = part[0]*60+part[1], part[2]*60+part[3]
	if from >= dayMinutes || to > dayMinutes || part[1] >= 60 || part[3] >= 60 {
		r.fault(v, "there is no such time of day")
		return 0, 0, false
	}
	return from, to % dayMinutes, true
}

func (r *reader) days(v value) (days uint8, ok bool) {
	list, ok := r.list(v, len(dayNames))
	if ok && len(list) == 0 {
		r.fault(v, "there must be at least one day; leave the key out for every day")
		return 0, false
	}
	for _, one := range list {
		d, good := r.word(one, dayNames...)
		if good && days>>d&1 != 0 {
			r.fault(one, "the day is listed twice")
		}
		ok = ok && good
		days |= 1 << d
	}
	return days, ok
}

// cover checks that at each minute of the week exactly one window is open (PLAN-1).
func (r *reader) cover(v value, windows []windowEntry) {
	gap, gaps := -1, 0
	overlap := make(map[int]bool) // windows reported
	for m := range weekMinutes {
		day, minute := m/dayMinutes, int32(m%dayMinutes)
		open := -1
		for i := range windows {
			switch {
			case !windows[i].holds(day, minute):
			case open < 0:
				open = i
			case !overlap[i]:
				overlap[i] = true
				r.fault(windows[i].value, "window %s overlaps window %s on %s at %s", windows[i].Name,
					windows[open].Name, dayNames[day], clock(minute))
			}
		}
		if open < 0 {
			if gaps++; gap < 0 {
				gap = m
			}
		}
	}
	if gaps > 0 {
		r.fault(v, "no window is open on %s at %s; %d minutes of the week are without a window",
			dayNames[gap/dayMinutes], clock(int32(gap%dayMinutes)), gaps)
	}
}

func clock(minute int32) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }
