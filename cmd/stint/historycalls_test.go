package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/stintd/stint/core/scenario"
)

// demandRow is a row of demand by column.
type demandRow map[string]any

// mediaOf are the content types of the formats in which scenarios have their tables.
var mediaOf = map[string]string{"json": "application/json", "ndjson": "application/x-ndjson", "csv": "text/csv",
	"yaml":    "application/yaml",
	"parquet": "application/vnd.apache.parquet", "arrow": "application/vnd.apache.arrow.stream"}

// tell passes an input of the scenario on to the service.
func (h *history) tell(in scenario.Input) {
	media, body := mediaOf[in.Format], string(in.Content)
	switch in.Kind {
	case scenario.InputPlan:
		h.put(body)
	case scenario.InputHosts, scenario.InputHostChanges:
		method := map[string]string{scenario.InputHosts: "PUT", scenario.InputHostChanges: "PATCH"}[in.Kind]
		if _, ok := h.send(method, "/v1/hosts?allow_shrink=true", media, body); ok {
			for _, row := range rowsOf(in.Content) {
				h.host(row)
			}
		}
	case scenario.InputReleases:
		h.send("POST", "/v1/releases", media, body)
	case scenario.InputDemand:
		if _, ok := h.send("PUT", "/v1/demand/"+in.Source+"?allow_shrink=true", media, body); ok {
			h.rows[in.Source] = rowsOf(in.Content)
		}
	case scenario.InputRunning:
		h.send("PUT", "/v1/running/"+in.Source, media, body)
	}
}

// put puts a policy in force.
func (h *history) put(text string) bool {
	_, ok := h.send("PUT", "/v1/plan?force=true", "application/yaml", text)
	if ok && !slices.Contains(h.plans, text) {
		h.plans = append(h.plans, text)
	}
	return ok
}

// host notes what was told of a host.
func (h *history) host(row demandRow) {
	name := fmt.Sprint(row["host"])
	if h.hosts[name] == nil {
		h.hosts[name] = map[string]any{}
	}
	maps.Copy(h.hosts[name], row)
}

// rowsOf reads rows of JSON, none of another format.
func rowsOf(content []byte) (rows []demandRow) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if d.Decode(&rows) != nil {
		return nil
	}
	return rows
}

// historyCall is something that may be said to a service at any time; it tells whether that was taken.
type historyCall struct {
	name string
	call func(h *history) bool
}

var historyCalls = []historyCall{
	{"demand, some of it otherwise", (*history).otherDemand}, {"demand, some of it otherwise", (*history).otherDemand},
	{"demand, a change", (*history).changeDemand}, {"demand, a change", (*history).changeDemand},
	{"another size and back", (*history).sizeAndBack},
	{"releases", (*history).release}, {"releases, done", (*history).releaseDone},
	{"releases, done, with another size", (*history).otherSizeDone},
	{"running, as it is", (*history).runAsIs}, {"running, otherwise", (*history).runOtherwise},
	{"running, otherwise", (*history).runOtherwise},
	{"hosts, a state", (*history).hostState}, {"hosts, a size", (*history).hostSize},
	{"hosts, all", (*history).allHosts},
	{"plan, an earlier one", (*history).earlierPlan}, {"plan, another policy", (*history).otherPolicy},
	{"plan, another figure", (*history).otherFigure},
	{"cycle", func(h *history) bool { h.cycle(); return true }},
}

// call makes a call.
func (h *history) call(c historyCall) {
	if c.call(h) {
		h.counts[c.name+" taken"]++
	}
}

func (h *history) body(rows any) string {
	b, err := json.Marshal(rows)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// source draws a source that has said something.
func (h *history) source() (name string, ok bool) {
	names := slices.Sorted(maps.Keys(h.rows))
	names = slices.DeleteFunc(names, func(n string) bool { return len(h.rows[n]) == 0 })
	if len(names) == 0 {
		return "", false
	}
	return names[h.rng.IntN(len(names))], true
}

// units draws how many are wanted.
func (h *history) units() int64 { return []int64{0, 1, 2, 3, 4, 5, 8, 12, 20}[h.rng.IntN(9)] }

// alter changes a row: its units, its size, or what else it asks for.
func (h *history) alter(row demandRow) demandRow {
	row = maps.Clone(row)
	switch h.rng.IntN(6) {
	case 0:
		h.resize(row)
	case 1:
		if row["max_per_host"] = 1 + h.rng.IntN(3); h.rng.IntN(2) == 0 {
			delete(row, "max_per_host")
		}
	case 2:
		if row["sub"] = "other"; h.rng.IntN(2) == 0 {
			delete(row, "sub")
		}
	default:
		row["units"] = h.units()
	}
	return row
}

// resize gives a row another unit size, in a dimension that it names.
func (h *history) resize(row demandRow) {
	for _, name := range slices.Sorted(maps.Keys(row)) {
		switch name {
		case "plan", "consumer", "allocation", "sub", "units", "max_per_host", "min_units", "requirement":
		default:
			if _, number := row[name].(json.Number); number || row[name] != nil {
				row[name] = 1 + h.rng.IntN(3)
			}
			return
		}
	}
	row["slots"] = 1 + h.rng.IntN(3) // of a slot plan; in another it is refused
}

func (h *history) otherDemand() bool {
	source, ok := h.source()
	if !ok {
		return false
	}
	var rows []demandRow
	for _, row := range h.rows[source] {
		switch h.rng.IntN(5) {
		case 0:
		case 1, 2:
			rows = append(rows, h.alter(row))
		default:
			rows = append(rows, row)
		}
	}
	if _, ok = h.send("PUT", "/v1/demand/"+source+"?allow_shrink=true", "application/json",
		h.body(slices.Concat(rows, []demandRow{}))); ok && len(rows) > 0 {
		h.rows[source] = rows
	}
	return ok
}

func (h *history) changeDemand() bool {
	source, ok := h.source()
	if !ok {
		return false
	}
	at := h.rng.IntN(len(h.rows[source]))
	row := h.alter(h.rows[source][at])
	path := "/v1/demand/" + source + "?allow_shrink=true"
	if _, ok = h.send("PATCH", path, "application/json", h.body([]demandRow{row})); ok {
		h.rows[source] = slices.Concat(h.rows[source][:at], []demandRow{row}, h.rows[source][at+1:])
	}
	return ok
}

// sizeAndBack gives a sub-allocation another unit size, and its old one again within the same cycle.
func (h *history) sizeAndBack() bool {
	source, ok := h.source()
	if !ok {
		return false
	}
	row := h.rows[source][h.rng.IntN(len(h.rows[source]))]
	other := maps.Clone(row)
	h.resize(other)
	path := "/v1/demand/" + source + "?allow_shrink=true"
	_, there := h.send("PATCH", path, "application/json", h.body([]demandRow{other}))
	_, back := h.send("PATCH", path, "application/json", h.body([]demandRow{row}))
	return there && back
}

// heldUnits is a row of /v1/holdings.
type heldUnits struct {
	Source string
	heldRow
}

// holding draws something that is held.
func (h *history) holding() (u heldUnits, ok bool) {
	list := h.holdings("")
	if len(list) == 0 {
		return u, false
	}
	return list[h.rng.IntN(len(list))], true
}

// holdings are those of a source, or of all.
func (h *history) holdings(source string) (list []heldUnits) {
	path := "/v1/holdings?format=ndjson"
	if source != "" {
		path += "&source=" + source
	}
	text, ok := h.send("GET", path, "", "")
	if !ok {
		return nil
	}
	for line := range bytes.Lines(text) {
		var u heldUnits
		if json.Unmarshal(line, &u) == nil {
			list = append(list, u)
		}
	}
	return list
}

// heldRow is a row of running units or releases.
type heldRow struct {
	Consumer   string `json:"consumer"`
	Allocation string `json:"allocation"`
	Sub        string `json:"sub"`
	Host       string `json:"host"`
	Units      int64  `json:"units"`
	Done       *bool  `json:"done,omitempty"`
}

func (h *history) release() bool     { return h.giveBack(false) }
func (h *history) releaseDone() bool { return h.giveBack(true) }

func (h *history) giveBack(done bool) bool {
	u, ok := h.holding()
	if !ok {
		return false
	}
	row := heldRow{u.Consumer, u.Allocation, u.Sub, u.Host, 1 + h.rng.Int64N(u.Units+1), &done}
	_, ok = h.send("POST", "/v1/releases", "application/json", h.body([]heldRow{row}))
	return ok
}

// otherSizeDone has units of a sub-allocation end that has another unit size since.
func (h *history) otherSizeDone() bool {
	u, ok := h.holding()
	if !ok {
		return false
	}
	for _, row := range h.rows[u.Source] {
		if fmt.Sprint(row["consumer"], row["allocation"]) != fmt.Sprint(u.Consumer, u.Allocation) {
			continue
		}
		other := maps.Clone(row)
		h.resize(other)
		h.send("PATCH", "/v1/demand/"+u.Source+"?allow_shrink=true", "application/json", h.body([]demandRow{other}))
		done := h.rng.IntN(3) > 0
		_, ok := h.send("POST", "/v1/releases", "application/json", h.body([]heldRow{{u.Consumer, u.Allocation, u.Sub,
			u.Host, 1 + h.rng.Int64N(u.Units), &done}}))
		return ok
	}
	return false
}

// runs is what a source runs, as it will say.
func (h *history) runs(source string) (rows []heldRow) {
	for _, u := range h.holdings(source) {
		rows = append(rows, u.heldRow)
	}
	return rows
}

func (h *history) runAsIs() bool {
	source, ok := h.source()
	if !ok {
		return false
	}
	_, ok = h.send("PUT", "/v1/running/"+source+"?allow_shrink=true", "application/json", h.body(h.runs(source)))
	return ok
}

// runOtherwise says that a source runs more, less, or elsewhere than is known.
func (h *history) runOtherwise() bool {
	source, ok := h.source()
	if !ok {
		return false
	}
	var rows []heldRow
	for _, row := range h.runs(source) {
		switch h.rng.IntN(4) {
		case 0:
			continue
		case 1:
			row.Units = max(1, row.Units+h.rng.Int64N(7)-3)
		}
		rows = append(rows, row)
	}
	names := slices.Sorted(maps.Keys(h.hosts))
	for range h.rng.IntN(3) {
		if len(names) == 0 {
			break
		}
		row := h.rows[source][h.rng.IntN(len(h.rows[source]))]
		sub := ""
		if row["sub"] != nil {
			sub = fmt.Sprint(row["sub"])
		}
		one := heldRow{fmt.Sprint(row["consumer"]), fmt.Sprint(row["allocation"]), sub, names[h.rng.IntN(len(names))],
			1 + h.rng.Int64N(6), nil}
		if !slices.ContainsFunc(rows, func(o heldRow) bool { o.Units = one.Units; return o == one }) {
			rows = append(rows, one)
		}
	}
	if len(rows) == 0 {
		rows = []heldRow{}
	}
	_, ok = h.send("PUT", "/v1/running/"+source+"?allow_shrink=true", "application/json", h.body(rows))
	return ok
}

// aHost draws a host.
func (h *history) aHost() (row demandRow, ok bool) {
	names := slices.Sorted(maps.Keys(h.hosts))
	if len(names) == 0 {
		return nil, false
	}
	return demandRow{"host": names[h.rng.IntN(len(names))]}, true
}

func (h *history) hostState() bool {
	row, ok := h.aHost()
	if !ok {
		return false
	}
	row["state"] = []string{"ok", "ok", "ok", "closed", "draining", "unavail"}[h.rng.IntN(6)]
	return h.patchHost(row)
}

// hostSize changes a figure of a host, or an attribute by which it is in its group.
func (h *history) hostSize() bool {
	row, ok := h.aHost()
	if !ok {
		return false
	}
	had := h.hosts[fmt.Sprint(row["host"])]
	columns := slices.DeleteFunc(slices.Sorted(maps.Keys(had)),
		func(c string) bool { return c == "host" || c == "state" })
	if len(columns) == 0 {
		return false
	}
	column := columns[h.rng.IntN(len(columns))]
	switch was := had[column].(type) {
	case bool:
		row[column] = !was
	case json.Number:
		n, _ := was.Float64()
		row[column] = max(0, int64(n)+h.rng.Int64N(7)-3)
	case int64:
		row[column] = max(0, was+h.rng.Int64N(7)-3)
	default:
		return false
	}
	return h.patchHost(row)
}

func (h *history) patchHost(row demandRow) bool {
	_, ok := h.send("PATCH", "/v1/hosts?allow_shrink=true", "application/json", h.body([]demandRow{row}))
	if ok {
		h.host(row)
	}
	return ok
}

// allHosts says all hosts again, now and then without one of them.
func (h *history) allHosts() bool {
	var rows []map[string]any
	names := slices.Sorted(maps.Keys(h.hosts))
	for _, name := range names {
		if len(names) == 1 || h.rng.IntN(6) > 0 {
			rows = append(rows, h.hosts[name])
		}
	}
	if len(rows) == 0 {
		return false
	}
	_, ok := h.send("PUT", "/v1/hosts?allow_shrink=true", "application/json", h.body(rows))
	return ok
}

func (h *history) earlierPlan() bool {
	return len(h.plans) > 0 && h.put(h.plans[h.rng.IntN(len(h.plans))])
}

var (
	policyWord = regexp.MustCompile(`policy: \{?"?(ownership|hybrid|share_ratio)`)
	figure     = regexp.MustCompile(`\b(owns|reserves|limit|max|ratio|priority|hosts|percent|rank|configured_slots|reclaim_budget): (\d+)\b`)
)

// otherPolicy writes another policy for one branch, where the file bears that.
func (h *history) otherPolicy() bool {
	return h.rewrite(policyWord, func(string) string {
		return "policy: " + []string{"ownership", "hybrid", "share_ratio"}[h.rng.IntN(3)]
	})
}

// otherFigure changes one figure of the policy.
func (h *history) otherFigure() bool {
	return h.rewrite(figure, func(was string) string {
		m := figure.FindStringSubmatch(was)
		n, _ := strconv.ParseInt(m[2], 10, 64)
		return m[1] + ": " + strconv.FormatInt(max(0, n+h.rng.Int64N(7)-3), 10)
	})
}

// rewrite puts a policy file in force in which one place is another.
func (h *history) rewrite(what *regexp.Regexp, by func(was string) string) bool {
	if len(h.plans) == 0 {
		return false
	}
	text := h.plans[h.rng.IntN(len(h.plans))]
	places := what.FindAllStringIndex(text, -1)
	if len(places) == 0 {
		return false
	}
	at := places[h.rng.IntN(len(places))]
	return h.put(text[:at[0]] + by(text[at[0]:at[1]]) + text[at[1]:])
}
