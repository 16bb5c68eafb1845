package browser

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-rod/rod/lib/input"
)

var dayLog struct {
	once sync.Once
	dir  string
}

// day is the log of a bank's day: 144 cycles in which owners lend, want back, and hosts go.
func day(t testing.TB) string {
	t.Helper()
	dayLog.once.Do(func() {
		dayLog.dir = filepath.Join(filepath.Dir(stint), "day")
		run(t, "simulate", "--scenario", "testdata/day.yaml", "--out", dayLog.dir)
	})
	return dayLog.dir
}

// TestNow reads the figures of a cycle, goes through the tree, and has a shortfall explained (UI-1, UI-3).
func TestNow(t *testing.T) {
	need(t)
	s := serve(t, "--log", day(t))
	b := open(t, s, "#/now?cycle=49&plan=grid")
	b.matches(".sums", `wanted\s+5,263\s`)
	b.matches(".sums", `short\s+484\s+9\.2 % of what is wanted`)
	b.matches(".sums", `2026-01-05 14:00:00 UTC \(\d+ months ago\)`)
	for _, row := range []string{`Intraday\s.*1,195\s+1,195\s+0\s+\d\d\.\d %`, `Train\s.*426\s+138\s+288\s+\d\d\.\d %`,
		`Research\s.*1,326`} {
		b.see(".row", row)
	}
	b.see(".bar", `wants 426, holds 138, \d+ shared, \d+ borrowed, short of 288, 37 under reclaim units`)
	b.matches(".legend", `(?s)owned.*private pool.*shared.*borrowed.*lent.*under reclaim`)
	b.see(".reasons tr", `room enough in sum, but on no single host\s+ncpus`)
	b.see("section.card", `Capacity.*ncpus\s+8,\d+\s+8,\d+\s+9\d\.\d %`)
	b.see(".treemap svg", `Treemap of ncpus by consumer: 9\d\.\d % used`)

	b.click(".f-short a", `/Research/Train, short 288`)
	b.see(".panel .answer", `/Research/Train is short of 288 units; for 281 of them: /Research/Train has its share`)
	b.see(".panel .rule", `^MD-14`)
	b.press(input.Escape)
	b.gone(".panel", ``)

	b.click(".f-short a", `/Treasury/ALM, short 98`)
	b.see(".panel .answer", `/Treasury/ALM is short of 98 units; for 72 of them`)
	b.see(".panel .points", `in the way: /Research/Train`)
	b.see(".panel .rule", `^CYC-6`)
	b.see(".panel time", `2026-01-05 14:20:00 UTC \(in 20 min\)`)
	b.see(".row.blocked", `Train`)
	b.see(".treemap .blocked", `Train`)
	if got := b.js(`() => location.hash`); !strings.Contains(got, "why=%2FTreasury%2FALM") ||
		!strings.Contains(got, "figure=short") {
		t.Error(got)
	}
	b.click(".panel a", `^/Research/Train`)
	b.see(".panel .answer", `^/Research/Train is short of`)
	b.press(input.Escape)
	b.gone(".panel", ``)

	b.write("input[type=search]", "liqui")
	b.see(".row", `Liquidity`)
	b.gone(".row", `Intraday`)
	b.click(".row a", `^Treasury`)
	b.matches(".sums", `wanted\s+363`)
	b.click("a.button", `all of plan grid`)
	b.write("input[type=search]", "")
	b.click("label.check", "short only")
	b.gone(".row", `Equities`)
	b.click("label.check", "short only")
	b.click(".row.head button", "lends")
	b.see(".row.head [aria-sort=descending]", "lends")
	b.choose(".treemap, .card header select", "host group")
	b.see(".treemap svg", `by host group`)
	b.see(".treemap .t-head", `^grid$`)
	b.choose(".pick select", "GPU")
	b.see(".row", `Stress\s.*8\s+8\s+0\s+8\s+22`)
}

// TestTime goes from the first cycle to the last by the slider, and all views follow (UI-2).
func TestTime(t *testing.T) {
	need(t)
	s := serve(t, "--log", day(t))
	b := open(t, s, "#/time")
	b.matches(".at", `cycle 144 of 1 to 144 · 2026-01-06 05:50:00 UTC .*follows the newest`)
	b.see(".chart canvas", ``)
	b.click("button[aria-label='first cycle']", ``)
	b.matches(".at", `cycle 1 of 1 to 144 · 2026-01-05 06:00:00 UTC`)
	b.see(".notice", `This is cycle 1, .* the newest one is 144`)
	b.ok(b.see("input[type=range]", ``).Focus())
	b.press(input.ArrowRight, input.ArrowRight)
	b.matches(".at", `cycle 3 of`)
	b.press(input.End)
	b.matches(".at", `cycle 144 of .*follows the newest`)
	b.press(input.Home)
	b.matches(".at", `cycle 1 of`)
	b.choose(".pick select", "GPU")
	b.write("input[type=search]", "stress")
	b.press(input.Enter)
	b.see("#h-curve", `/Risk/Stress`)
	b.see(".figures", `wanted\s+40.*owned\s+20.*lent\s+0`)
	b.click("button[aria-label='cycle behind']", ``)
	b.matches(".at", `cycle 2 of`)
	b.js(`() => { const e = document.querySelector("input[type=range]"); e.value = 39; e.dispatchEvent(new Event("input", {bubbles: true})); }`)
	b.see(".figures", `wanted\s+4\s+held\s+4.*lent\s+26.*deserved\s+4`)
	b.see(".chart", `Stacked curves, in slots: wanted 4, held 4`)
	b.click("a", `all figures of this cycle`)
	b.matches(".cycle", `cycle 40`)
	b.click(".notice a", `Show the newest cycle`)
	b.matches(".cycle", `cycle 144$`)
}

// TestLoans finds who lends (UI-5).
func TestLoans(t *testing.T) {
	need(t)
	s := serve(t, "--log", day(t))
	b := open(t, s, "#/loans?cycle=40&plan=grid")
	b.see("p", `724 units lent by 7 owners to 7 borrowers, 11 of them under reclaim`)
	b.click(".loan", `/Treasury/Liquidity lends /Research/Train 18, 2 under reclaim`)
	b.see("h3", `/Treasury/Liquidity lends /Research/Train`)
	b.see("table tr",
		`/Treasury/Liquidity\s+/Research/Train\s+18\s+2\.5 %\s+the pool of all\s+2\s+2026-01-05 12:40:00 UTC \(in 10 min\)`)
	b.write("input[type=search]", "intraday")
	b.see("p", `lent by \d+ owners to \d+ borrower`)
	b.gone(".matrix tbody th", `/Markets/Rates`)
	b.click("td a", `^/Treasury`)
	b.see(".panel h2", `Why: /Treasury`)
	b.write("input[type=search]", "nobody")
	b.see(".empty", `Nobody of that name`)
	b.write("input[type=search]", "")
	b.choose(".loans header select", "1")
	b.see(".loan", `^113|lends`)
}

// TestHosts goes from the map to one host and what runs on it (UI-5).
func TestHosts(t *testing.T) {
	need(t)
	s := serve(t, "--log", day(t))
	b := open(t, s, "#/hosts?cycle=49&plan=grid")
	b.see(".legend", `closed\s+1\s+draining\s+1\s+unavail\s+2`)
	b.write("input[type=search]", "c001")
	b.press(input.Enter)
	b.see("#h-host", `c001`)
	b.see("table tr", `ncpus\s+\d+\s+\d+\s+\d+\.\d %`)
	b.see("table tr", `/\w+/\w+\s+\w+\s+\d+\s+(owned|private pool|shared|borrowed)`)
	b.write("input[type=search]", "nothing")
	b.press(input.Enter)
	b.see(".fault", `No host of plan grid is called nothing`)
	b.ok(b.see("canvas", ``).Focus())
	b.press(input.ArrowRight, input.ArrowRight)
	b.see("[role=status]", `c003: ok, \d+\.\d % used`)
	b.press(input.Enter)
	b.see("#h-host", `c003`)
	b.click("td a", `/`)
	b.see(".panel .answer", ``)
}

// editing is a service with the bank's policy, hosts and demand, which runs cycles on request.
func editing(t testing.TB, config string) *service {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "stint.yaml")
	write(t, file, "data: "+filepath.Join(dir, "data")+"\nmanual: true\n"+config)
	return serve(t, "--config", file)
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func abs(t testing.TB, file string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// wants is demand on the bank's cluster.
const wants = `consumer,allocation,units,plan,ncpus,maxmem
/Risk/Intraday,var,1300,grid,2,8
/Risk/Overnight,revaluation,1700,grid,2,12
/Markets/Rates,pricing,900,grid,2,6
/Markets/Equities,backtest,700,grid,2,16
/Research/Sweep,grid,900,grid,1,10
/Risk/Intraday,xva,36,GPU,,
/Research/Train,net,60,GPU,,
/Research/Sweep,hyper,90,GPU,,
`

// fill gives a service what it needs, and runs cycles.
func (s *service) fill(cycles int, header ...string) {
	s.t.Helper()
	csv := append([]string{"Content-Type", "text/csv"}, header...)
	s.do("PUT", "/v1/plan?message=the+first+one", read(s.t, "testdata/plan.yaml"),
		append([]string{"Content-Type", "application/yaml"}, header...)...)
	s.do("PUT", "/v1/hosts", read(s.t, "testdata/hosts.csv"), csv...)
	s.do("PUT", "/v1/demand/feed", []byte(wants), csv...)
	for range cycles {
		s.do("POST", "/v1/cycles", nil, header...)
	}
}

// edit replaces words of the policy in the editor, as if they were typed.
func (b *tab) edit(old, now string) {
	b.t.Helper()
	b.see("textarea", ``)
	if b.js(`(old) => { const e = document.querySelector("textarea"); const i = e.value.indexOf(old); if (i < 0) return ""; e.focus(); e.setSelectionRange(i, i + old.length); return "yes" }`, old) == "" {
		b.t.Fatalf("the editor has no %q", old)
	}
	b.ok(b.page.InsertText(now))
}

// typed is what is in the editor.
func (b *tab) typed() string { return b.js(`() => document.querySelector("textarea").value`) }

// TestPlan changes the policy: a fault is at its line, what it would do is asked, it is put in force with a message,
// and taken back (UI-4).
func TestPlan(t *testing.T) {
	need(t)
	s := editing(t, "")
	s.fill(3)
	b := open(t, s, "#/plan")
	b.see("#h-policy", `revision 1`)
	b.see(".faults", `no faults`)
	b.edit("rank: 2}", "rnk: 2}")
	b.see(".faults li", `line 15, column 26: unknown key; did you mean rank\? known here: path, rank`)
	b.see(".numbers .bad", `15`)
	if b.js(`() => document.querySelector("button.main").disabled ? "yes" : ""`) == "" {
		t.Error("a policy with a fault may be put in force")
	}
	b.click(".faults button", `line 15`)
	b.until("the cursor is at the fault",
		`() => { const e = document.querySelector("textarea"); return e.value.slice(e.selectionStart).startsWith("rnk") }`)
	b.edit("rnk: 2}", "rank: 2}")
	b.see(".faults", `no faults`)
	b.edit("{path: /Research, share: {ratio: 2, limit: {maxmem: 20000}}}", "{path: /Research, share: {ratio: 9}}")
	b.edit("owns: 40, lend: {limit: 20}", "owns: 40, lend: {limit: 40}")
	b.edit("{path: /Research/Sweep, borrow: {limit: 30}", "{path: /Research/Sweep, borrow: {limit: 60}")
	b.see(".diff .come", `/Research, share: {ratio: 9}`)
	b.see(".faults", `no faults`)
	b.until("it may be asked",
		`() => ![...document.querySelectorAll(".put button")].some((e) => e.disabled && e.innerText === "what if?")`)
	b.click("button", `what if`)
	b.see(".side-by-side th", `/Research/Sweep gains \d+`)
	b.see(".side-by-side", `held in the end`)
	b.write(".put input", "more for research")
	b.click("button.main", `put in force`)
	b.see(".good", `Revision 2 is accepted, and in force from cycle 4 on`)
	s.do("POST", "/v1/cycles", nil)
	b.matches(".cycle", `cycle 4$`)

	b.click("[role=tab]", `By time window`)
	b.choose(".windows select", "GPU")
	b.see(".srow", `/Risk/Stress\s.*30`)
	b.click(".windows button", `night`)
	b.see(".srow .other", `^20$`)

	b.click("[role=tab]", `Revisions`)
	b.see("tr", `2\s+in force\s+4\s.*everybody\s+more for research`)
	b.click("tr a", `Revision 1`)
	b.see(".diff .gone", `limit: {maxmem: 20000}`)
	b.click("button", `restore: take revision 1 into the editor`)
	b.see(".faults", `no faults`)
	if got := b.js(`() => document.querySelector(".put input").value`); got != "back to revision 1" {
		t.Error(got)
	}
	b.click("button.main", `put in force`)
	b.see(".good", `Revision 3 is accepted`)
	s.do("POST", "/v1/cycles", nil)
	b.see("tr", `3\s+in force\s.*back to revision 1`)
	if got := s.do("GET", "/v1/plan", nil); got != string(read(t, "testdata/plan.yaml")) {
		t.Error("the first policy is not in force again")
	}
}

// TestPlanMeanwhile has somebody else put a policy: nothing typed is lost, and nothing put over it.
func TestPlanMeanwhile(t *testing.T) {
	need(t)
	s := editing(t, "")
	s.fill(1)
	b := open(t, s, "#/plan")
	b.edit("cluster: bank", "cluster: mine")
	other := strings.Replace(string(read(t, "testdata/plan.yaml")), "interval: 10m", "interval: 5m", 1)
	s.do("PUT", "/v1/plan", []byte(other), "Content-Type", "application/yaml")
	b.write(".put input", "mine")
	b.see(".faults", `no faults`)
	b.click("button.main", `put in force`)
	b.see(".fault", `It was not put in force: .*revision.* What you typed is still here`)
	s.do("POST", "/v1/cycles", nil)
	b.see(".notice", `Revision 2 came meanwhile`)
	b.click(".notice button", `Compare with revision 2`)
	b.see(".diff .gone", `interval: 5m`)
	if !strings.Contains(b.typed(), "cluster: mine") {
		t.Error("what was typed is lost")
	}
}

// TestToken asks for a token, keeps it in memory alone, offers what its role may, and loses nothing when it ends
// (UI-6).
func TestToken(t *testing.T) {
	need(t)
	tokens := func(names ...string) string {
		text := "tokens:\n"
		for _, name := range names {
			role, _, _ := strings.Cut(name, "-")
			text += "  - {name: " + name + ", role: " + role + ", sha256: " +
				fmt.Sprintf("%x", sha256.Sum256([]byte(name+"-secret"))) + "}\n"
		}
		return text
	}
	s := editing(t, tokens("admin-1", "admin-2", "reader-1"))
	file := s.args[1]
	s.fill(2, "Authorization", "Bearer admin-1-secret")
	b := open(t, s, "#/plan")
	sign := func(token string) {
		b.see("dialog[open]", `Sign in`)
		b.write("dialog input", token)
		b.press(input.Enter)
	}
	sign("wrong")
	b.see("dialog[open]", `The token is not known`)
	sign("reader-1-secret")
	b.see(".who", `reader-1\s+reader`)
	b.see(".tag", `role reader: may not change it`)
	b.gone("button", `put in force`)
	b.click("button", `sign out`)
	sign("admin-1-secret")
	b.see(".who", `admin-1\s+admin`)
	b.see("button", `put in force`)
	b.edit("cluster: bank", "cluster: typed")
	b.write(".put input", "a message")
	kept := b.js(`() => location.href + JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + document.cookie + performance.getEntriesByType("resource").map((e) => e.name).join()`)
	if strings.Contains(kept, "secret") {
		t.Errorf("the token is kept: %s", kept)
	}
	config := string(read(t, file))
	write(t, file, config[:strings.Index(config, "tokens:")]+tokens("admin-2", "reader-1"))
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	b.see("dialog[open]", `The token is not known any more.*Nothing of what you typed is lost`)
	if !strings.Contains(b.typed(), "cluster: typed") {
		t.Error("what was typed is lost")
	}
	sign("admin-2-secret")
	b.gone("dialog[open]", ``)
	b.see(".who", `admin-2`)
	b.see(".faults", `no faults`)
	b.click("button.main", `put in force`)
	b.see(".good", `Revision 2 is accepted`)
}

// TestConsumerAdmin has somebody who administers a branch change it, and nothing else: what is not his to change is not
// offered, and refused by the service all the same (UI-4).
func TestConsumerAdmin(t *testing.T) {
	need(t)
	hash := func(name string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(name+"-secret"))) }
	s := editing(t, "tokens:\n  - {name: root, role: admin, sha256: "+hash("root")+"}\n"+
		"  - {name: markets-desk, role: consumer_admin, sha256: "+hash("markets-desk")+"}\n")
	s.fill(2, "Authorization", "Bearer root-secret")
	b := open(t, s, "#/plan")
	b.write("dialog input", "markets-desk-secret")
	b.press(input.Enter)
	b.see(".who", `markets-desk\s+consumer_admin`)
	offered := func() bool {
		return b.js(`() => [...document.querySelectorAll(".put button")].some((e) => !e.disabled) ? "yes" : ""`) != ""
	}
	b.edit("{path: /Research, share: {ratio: 2,", "{path: /Research, share: {ratio: 9,")
	b.write(".put input", "more for others")
	b.see(".edit", `would be refused: .*/Research.* is not below a consumer that this token administers`)
	b.gone("label", `force`) // which would not help
	if offered() {
		t.Error("what is not his to change may be put in force")
	}
	stranger := strings.Replace(string(read(t, "testdata/plan.yaml")), "/Research, share: {ratio: 2,",
		"/Research, share: {ratio: 9,", 1)
	r, err := http.NewRequest("PUT", "http://"+s.addr+"/v1/plan?message=mine", strings.NewReader(stranger))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer markets-desk-secret")
	r.Header.Set("Content-Type", "application/yaml")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusForbidden {
		t.Errorf("the service answers %s", answer.Status)
	}
	b.click("button", `undo all changes`)
	b.edit("{path: /Markets/Rates, own: [{group: Compute, hosts: 20}], reserve: {hosts: 4}",
		"{path: /Markets/Rates, own: [{group: Compute, hosts: 20}], reserve: {hosts: 6}")
	b.see(".faults", `no faults`)
	b.write(".put input", "keep more for rates")
	b.click("button.main", `put in force`)
	b.see(".good", `Revision 2 is accepted`)
}

// TestRestart has the service end and come again while somebody types.
func TestRestart(t *testing.T) {
	need(t)
	s := editing(t, "")
	s.fill(2)
	b := open(t, s, "#/plan")
	b.edit("cluster: bank", "cluster: typed")
	b.see(".cycle", `cycle 2`)
	s.stop()
	b.see(".notice", `No connection to the service.*what is shown is\s+cycle 2`)
	s.start()
	b.gone(".notice", `No connection`)
	s.do("POST", "/v1/cycles", nil)
	b.see(".cycle", `cycle 3`)
	if !strings.Contains(b.typed(), "cluster: typed") {
		t.Error("what was typed is lost")
	}
}

// TestEmpty says what is missing before the first cycle, of a service and of a log, and shows the first one.
func TestEmpty(t *testing.T) {
	need(t)
	l := serve(t, "--log", t.TempDir())
	b := open(t, l, "")
	b.see(".empty", `The log is empty`)
	b.click("nav a", `Plan`)
	b.see(".edit", `none yet`)
	s := editing(t, "")
	b = open(t, s, "")
	b.see(".empty", `No cycle has run yet`)
	s.fill(1)
	b.see(".row", `Risk`)
	b.matches(".cycle", `cycle 1`)
}

// TestCompacted asks for a cycle that is not in the log any more.
func TestCompacted(t *testing.T) {
	need(t)
	log := filepath.Join(t.TempDir(), "log")
	file := filepath.Join(filepath.Dir(log), "days.yaml")
	scenario := "name: three days\nplan_file: " + abs(t, "testdata/plan.yaml") + "\nhosts_file: " +
		abs(t, "testdata/hosts.csv") + "\nsteps:\n"
	for day := 5; day < 9; day++ {
		scenario += fmt.Sprintf("  - at: 2026-01-%02dT08:00:00Z\n    cycles: 10\n    demand: [{consumer: "+
			"/Research/Sweep, allocation: a, plan: grid, ncpus: 1, units: %d}]\n", day, day)
	}
	write(t, file, scenario)
	run(t, "simulate", "--scenario", file, "--out", log)
	s := serve(t, "--log", log)
	b := open(t, s, "#/now?cycle=3")
	b.matches(".cycle", `cycle 3`)
	run(t, "compact", "--log", log, "--keep", "1d")
	b.js(`() => { location.hash = "#/now?cycle=7"; }`)
	b.see(".notice", `Cycle 7 cannot be shown: .*What is shown is cycle 3`)
	b.click(".notice a", `Show the newest cycle`)
	b.matches(".cycle", `cycle 40$`)
	b.gone(".notice", ``)
	b.click("nav a", `Time`)
	b.matches(".at", `cycle 40 of (21|31) to 40`)
}

// hostile are names that are not what they look like.
var hostile = []string{"<img src=x onerror=alert(1)>", "constructor", "__proto__", "\u202eevil\u202c",
	strings.Repeat("n", 255), "${alert(1)}", `"'&lt;`, "اسم عربي"}

// TestHostile shows names as text, whatever they are.
func TestHostile(t *testing.T) {
	need(t)
	s := editing(t, "")
	plan := "stint: 1\ndimensions: [slots]\nresource_groups: [{name: G, select: \"select(slots > 0)\"}]\nconsumers:\n"
	entries, demand := "", "consumer,allocation,units\n"
	for _, name := range hostile {
		path, _ := json.Marshal("/" + name)
		plan += "  - {path: " + string(path) + "}\n"
		entries += "      - {path: " + string(path) + ", policy: ownership, owns: 1, borrow: {}, lend: {limit: 1}}\n"
		demand += `"/` + strings.ReplaceAll(name, `"`, `""`) + `","<b>` + "bold" + `</b>",2` + "\n"
	}
	plan += "slot_plans:\n  - resource_group: G\n    consumers:\n" + entries
	s.do("PUT", "/v1/plan?message=%3Cscript%3Ealert(1)%3C%2Fscript%3E", []byte(plan), "Content-Type",
		"application/yaml")
	s.do("PUT", "/v1/hosts", []byte("host,slots\n<svg onload=alert(1)>,9\n"), "Content-Type", "text/csv")
	s.do("PUT", "/v1/demand/x", []byte(demand), "Content-Type", "text/csv")
	s.do("POST", "/v1/cycles", nil)
	b := open(t, s, "")
	for _, name := range hostile {
		if got := b.js(`(name) => [...document.querySelectorAll(".row bdi")].some((e) => e.textContent === name) ? "yes" : document.body.innerText`, name); got != "yes" {
			b.see(".row", "evil")
			if got = b.js(`(name) => [...document.querySelectorAll(".row bdi")].some((e) => e.textContent === name) ? "yes" : document.body.innerText`, name); got != "yes" {
				t.Errorf("%q is not shown: %s", name, got)
			}
		}
	}
	b.click(".f-short a, .f-demand a", `constructor`)
	b.see(".panel .answer", `/constructor`)
	for _, view := range []string{"Time", "Loans", "Hosts", "Plan"} {
		b.click("nav a", view)
		Settle(b.page, 3*time.Second)
	}
	b.click("[role=tab]", `Revisions`)
	b.see("td", `<script>alert\(1\)</script>`)
	b.click("nav a", "Hosts")
	b.write("input[type=search]", "<svg onload=alert(1)>")
	b.press(input.Enter)
	b.see("#h-host", `<svg onload=alert\(1\)>`)
	if n := b.js(`() => String(document.querySelectorAll("img, main svg[onload], script:not([src])").length)`); n != "0" {
		t.Error("a name became a part of the page")
	}
}

// TestForeign lets nothing out to a page of another origin, and nothing in from elsewhere.
func TestForeign(t *testing.T) {
	need(t)
	s, other := editing(t, ""), serve(t, "--log", day(t))
	s.fill(1)
	b := open(t, s, "")
	b.see(".row", `Risk`)
	b.trespass()
	got := b.js(`async () => {
		const said = [];
		document.addEventListener("securitypolicyviolation", (e) => said.push(e.effectiveDirective));
		const s = document.createElement("script");
		s.textContent = "window.ran = 1";
		document.body.append(s);
		await fetch("https://example.invalid/").catch(() => {});
		const i = document.createElement("div");
		i.setAttribute("style", "color: red");
		document.body.append(i);
		await new Promise((r) => setTimeout(r, 200));
		return [...new Set(said)].sort().join() + " " + window.ran;
	}`)
	if got != "connect-src,script-src-elem,style-src-attr undefined" {
		t.Errorf("the policy refused %q", got)
	}
	e := open(t, other, "")
	e.see(".row", `Risk`)
	e.trespass()
	for _, call := range []string{"/v1/consumers", "/v1/events", "/v1/plan"} {
		code := e.js(`async (url) => fetch(url, {mode: "cors"}).then((r) => String(r.status), () => "nothing")`,
			"http://"+s.addr+call)
		if code != "nothing" {
			t.Errorf("%s gave %s to another origin", call, code)
		}
	}
}

// TestActors shows an actor that does what is decided, one in drift, one that fell silent, and a source without one.
func TestActors(t *testing.T) {
	need(t)
	s := editing(t, "")
	s.fill(1)
	b := open(t, s, "#/actors")
	b.see("p", `No actor has reported since the service began: who starts and stops the work of 1 source is not known`)
	text, err := b.see("tbody tr", `feed\s+no report\s+[0-9,]+\s+–\s+–\s+–\s+–\s+–\s+–\s+never\s+–`).Text()
	b.ok(err)
	granted := regexp.MustCompile(`[0-9,]+`).FindString(text) // it differs between the plan's windows, day and night
	now := time.Now().UTC()
	report := func(source, fields string, listed time.Time) {
		t.Helper()
		s.do("PUT", "/v1/actors/"+source, fmt.Appendf(nil, `{%s,"began":%q,"listed":%q}`, fields,
			now.Add(-time.Hour).Format(time.RFC3339), listed.Format(time.RFC3339)), "Content-Type", "application/json")
	}
	const good = `"running":60,"held_not_running":0,"running_not_held":0,"lag_p50":0.3,"lag_p99":1.25,"effects":812,"late":0`
	report("feed", strings.Replace(good, "60", strings.ReplaceAll(granted, ",", ""), 1), now)
	report("gone", good, now.Add(-time.Hour))
	report("night", strings.Replace(good, `"running_not_held":0`, `"running_not_held":2`, 1), now)
	report("new", `"running":0,"held_not_running":0,"running_not_held":0,"lag_p50":null,"lag_p99":null,"effects":0,"late":0`, now)
	b.see("p", `4 actors: 2 units in drift\.`)
	b.see("tbody tr", `feed\s+in force\s+`+granted+`\s+`+granted+
		`\s+0\s+0\s+0\.30 s\s+1\.25 s\s+0\s+(now|\d+ s ago)`)
	b.see("tbody tr", `gone\s+no list\s+0`)
	b.see("tbody tr", `new\s+in force\s+0\s+0\s+0\s+0\s+–\s+–\s+0`)
	b.see("tbody tr .tag.bad", `drift`)
	for _, look := range []Look{{Width: 1280, Height: 900}, {Width: 1280, Height: 900, Dark: true},
		{Width: 400, Height: 800}, {Width: 400, Height: 800, Dark: true}} {
		b.as(look)
		b.accessible(fmt.Sprintf("%+v", look))
		if wide := b.js(`() => document.documentElement.scrollWidth > innerWidth ? "wide" : ""`); wide != "" {
			t.Errorf("%+v: wider than the page", look)
		}
		if dir := os.Getenv("STINT_LOOKS"); dir != "" {
			write(t, filepath.Join(dir, fmt.Sprintf("actors-%d-%v.png", look.Width, look.Dark)), string(b.picture()))
		}
	}
	b = open(t, serve(t, "--log", day(t)), "")
	b.see("nav a", `Loans`)
	b.gone("nav a", `Actors`)
}
