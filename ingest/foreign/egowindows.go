package foreign

import (
	"fmt"
	"slices"
	"time"
)

const (
	dayMinutes  = 24 * 60
	weekMinutes = 7 * dayMinutes
)

var dayNames = [...]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// egoClass is the settings of all lines of a plan that hold together, by their place among the plan's lines.
type egoClass []uint16

// egoWindow is when a class holds.
type egoWindow struct {
	name     string
	class    int
	from, to int // minutes of the day; to ≤ from passes midnight
	days     uint8
}

func (w *egoWindow) hours() string {
	to := w.to
	if to == 0 && w.from < dayMinutes {
		to = dayMinutes
	}
	return fmt.Sprintf("%02d:%02d-%02d:%02d", w.from/60, w.from%60, to/60, to%60)
}

func (w *egoWindow) dayList() (list []string) {
	for d, name := range dayNames {
		if w.days>>d&1 != 0 {
			list = append(list, name)
		}
	}
	return list
}

// egoPlan is a plan of a reporting table: the lines of a resource group, and which settings hold when.
type egoPlan struct {
	name    string
	lines   []int // of the history
	classes []egoClass
	windows []egoWindow // none: one class holds always
	base    int         // the class that holds longest
}

// egoPlans finds the plans of a history and their time windows.
func egoPlans(h *History, zone *time.Location, file string, report *Report) (plans []*egoPlan) {
	at := map[string]*egoPlan{}
	for i := range h.Lines {
		p := at[h.Lines[i].Plan]
		if p == nil {
			p = &egoPlan{name: h.Lines[i].Plan}
			at[p.name], plans = p, append(plans, p)
		}
		p.lines = append(p.lines, i)
	}
	for _, p := range plans {
		p.find(h, zone, file, report)
	}
	return plans
}

// week is what holds in a week: by slot, the class and the last instant that told it.
type week struct {
	step  int // minutes of a slot
	class []int
	last  []int // instant, -1: none
}

// find finds the classes of all instants, and from them the week of the plan that held last.
func (p *egoPlan) find(h *History, zone *time.Location, file string, report *Report) {
	of := p.classify(h)
	w := week{step: slotMinutes(h.StepUS)}
	w.class, w.last = make([]int, weekMinutes/w.step), make([]int, weekMinutes/w.step)
	for i := range w.last {
		w.last[i] = -1
	}
	slot := make([]int, len(of))
	for i, us := range h.AtUS {
		local := time.UnixMicro(us).In(zone)
		slot[i] = ((int(local.Weekday())+6)%7*dayMinutes + local.Hour()*60 + local.Minute()) / w.step
		w.class[slot[i]], w.last[slot[i]] = of[i], i
	}
	since, changed := w.revised(h, of, slot)
	if changed > 0 {
		report.Add(file, 0,
			"the plan of "+p.name+" before "+time.UnixMicro(h.AtUS[since]).In(zone).Format("2006-01-02 15:04"),
			fmt.Sprintf(
				"it was another at %s of the week; the last one is carried over, and compared with all the time",
				count(changed*w.step, "minute", "minutes")))
	}
	if old := w.fill(since); old > 0 && len(p.classes) > 1 {
		report.Add(file, 0, fmt.Sprintf("%d of %d minutes of the week, in the plan of %s", old*w.step, weekMinutes,
			p.name),
			"the table does not show them since the plan was last changed; they are as the same minutes of other "+
				"days, or as they were")
	}
	p.windows = w.windows()
	held := make([]int, len(p.classes))
	for _, c := range w.class {
		held[c]++
	}
	for c, n := range held {
		if n > held[p.base] {
			p.base = c
		}
	}
}

// revised is the first instant of the plan that held last, and at how many slots of the week it is another than the
// plan before it.
func (w *week) revised(h *History, of, slot []int) (since, changed int) {
	other := make([]int, len(w.class)) // by slot, the last instant at which it had another class than it has now
	last := -1
	for i := range of {
		if of[i] != w.class[slot[i]] {
			other[slot[i]], last = i+1, i
		}
	}
	if last < 0 {
		return 0, 0
	}
	fresh := map[int]bool{} // classes of slots that changed within a week
	for s, i := range other {
		if i > 0 && h.AtUS[last]-h.AtUS[i-1] < weekMinutes*60_000_000 {
			fresh[w.class[s]] = true
			changed++
		}
	}
	for since = last + 1; !fresh[of[since]]; since++ {
	}
	return since, changed
}

// classify gives every instant its class. A line without a row has what it had before, or first.
func (p *egoPlan) classify(h *History) (of []int) {
	of = make([]int, len(h.AtUS))
	now := make(egoClass, len(p.lines)) // the first setting is number 0
	known := map[string]int{}
	key := make([]byte, 2*len(p.lines))
	for i := range of {
		same := i > 0
		for k, n := range p.lines {
			if s := h.Lines[n].setting[i]; s != noSetting && s != now[k] {
				now[k], same = s, false
			}
		}
		if same {
			of[i] = of[i-1]
			continue
		}
		for k, s := range now {
			key[2*k], key[2*k+1] = byte(s), byte(s>>8)
		}
		c, ok := known[string(key)]
		if !ok {
			c = len(p.classes)
			known[string(key)], p.classes = c, append(p.classes, slices.Clone(now))
		}
		of[i] = c
	}
	return of
}

// slotMinutes is how long a slot of the week is: the usual time between two instants, at most an hour, where that
// divides the day.
func slotMinutes(stepUS int64) int {
	if m := int(stepUS / 60_000_000); m >= 1 && m <= 60 && dayMinutes%m == 0 {
		return m
	}
	return 15
}

// fill gives slots that were not seen since an instant what the same time of another day has that was: a day of its
// kind (Monday to Friday, weekend) if there is any, the nearest before it first. A slot for which there is none keeps
// what it had; one that never was seen gets what the slot before it has. It tells how many slots were not seen.
func (w *week) fill(since int) (old int) {
	day := dayMinutes / w.step
	seen := func(s int) bool { return w.last[s] >= since }
	class := slices.Clone(w.class)
	blank := -1
	for s := range w.class {
		if seen(s) {
			continue
		}
		old++
		from := -1
		for _, kind := range []bool{true, false} {
			for back := 1; back < 7 && from < 0; back++ {
				o := (s + (7-back)*day) % len(w.class)
				if seen(o) && (!kind || (s/day < 5) == (o/day < 5)) {
					from = o
				}
			}
		}
		switch {
		case from >= 0:
			class[s] = w.class[from]
		case w.last[s] < 0:
			class[s], blank = -1, s
		}
	}
	for s := blank; s >= 0 && s < blank+2*len(class); s++ { // once around, from what is known
		if i := s % len(class); class[i] < 0 {
			class[i] = class[(i+len(class)-1)%len(class)]
		}
	}
	w.class = class
	return old
}

// windows are the times at which one class after the other holds, those that recur on several days together; none where
// one holds always. A time longer than a day is cut into days.
func (w *week) windows() (list []egoWindow) {
	n := len(w.class)
	start := slices.IndexFunc(w.class, func(c int) bool { return c != w.class[n-1] })
	if start < 0 {
		return nil
	}
	day := dayMinutes / w.step
	for s := start; s < start+n; {
		end := s + 1
		for end < start+n && w.class[end%n] == w.class[s%n] && end-s < day {
			end++
		}
		one := egoWindow{class: w.class[s%n], from: s % day * w.step, to: end % day * w.step}
		bit := uint8(1) << (s % n / day)
		i := slices.IndexFunc(list, func(o egoWindow) bool {
			return o.class == one.class && o.from == one.from && o.to == one.to
		})
		if i < 0 {
			i, list = len(list), append(list, one)
		}
		list[i].days |= bit
		s = end
	}
	slices.SortStableFunc(list, func(a, b egoWindow) int { return a.from - b.from })
	names, times := map[int]string{}, map[int]int{}
	for i := range list {
		c := list[i].class
		if names[c] == "" {
			names[c] = letters(len(names))
		}
		if times[c]++; times[c] == 1 {
			list[i].name = names[c]
		} else {
			list[i].name = fmt.Sprint(names[c], times[c])
		}
	}
	return list
}

// letters is A, B, … Z, AA, AB, …
func letters(n int) string {
	name := string(rune('A' + n%26))
	if n >= 26 {
		name = letters(n/26-1) + name
	}
	return name
}
