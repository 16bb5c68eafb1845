package browser

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-rod/rod/lib/input"
	"github.com/go-rod/rod/lib/proto"
)

// views are all views, with what is seen once they are there.
var views = map[string]string{
	"#/now?cycle=49&plan=grid&why=/Research/Train&figure=short": ".panel .answer", "#/now?plan=GPU": ".row .bar",
	"#/time?cycle=40": ".figures", "#/loans?cycle=40": ".matrix", "#/hosts?cycle=49&host=c001": "#h-host",
	"#/plan": ".faults .good",
}

// TestLooks holds each view, wide and narrow, dark and light, against the rules of accessibility; nothing is wider than
// the page (UI-6).
func TestLooks(t *testing.T) {
	need(t)
	s := serve(t, "--log", day(t))
	for place, seen := range views {
		b := open(t, s, place)
		b.see(seen, ``)
		backs := map[string]bool{}
		for _, look := range []Look{{Width: 1280, Height: 900}, {Width: 1280, Height: 900, Dark: true},
			{Width: 400, Height: 800}, {Width: 400, Height: 800, Dark: true}} {
			b.as(look)
			b.see(seen, ``)
			b.accessible(fmt.Sprintf("%s %+v", place, look))
			if wide := b.js(`() => document.documentElement.scrollWidth > innerWidth ? String(document.documentElement.scrollWidth) : ""`); wide != "" {
				t.Errorf("%s: %s pixels wide at %d", place, wide, look.Width)
			}
			backs[b.js(`() => getComputedStyle(document.documentElement).backgroundColor`)] = true
		}
		if len(backs) != 2 {
			t.Errorf("%s: backgrounds %v", place, backs)
		}
	}
	b := open(t, s, "")
	b.see(".row", ``)
	b.choose(".colours select", "dark")
	if got := b.js(`() => getComputedStyle(document.documentElement).colorScheme`); got != "dark" {
		t.Error(got)
	}
}

// TestKeyboard explains a shortfall without a mouse, and finds its way back.
func TestKeyboard(t *testing.T) {
	need(t)
	s := serve(t, "--log", day(t))
	b := open(t, s, "#/now?cycle=49&plan=grid")
	b.see(".row", `Research`)
	focused := func() string {
		return b.js(`() => { const e = document.activeElement; return e.tagName + " " + (e.getAttribute("role") || "") + " " + (e.innerText || e.getAttribute("aria-label") || "").slice(0, 40) }`)
	}
	tabTo := func(want string) {
		t.Helper()
		for range 60 {
			b.press(input.Tab)
			if strings.Contains(focused(), want) {
				return
			}
		}
		t.Fatalf("Tab does not come to %q", want)
	}
	tabTo("treegrid")
	b.press(input.End)
	b.see(".row.active", `Sweep`)
	b.press(input.ArrowUp, input.Enter)
	b.see(".panel .answer", `/Research/Train is short`)
	if got := focused(); !strings.Contains(got, "Why: /Research/Train") {
		t.Errorf("the focus is on %q", got)
	}
	b.press(input.Escape)
	b.gone(".panel", ``)
	tabTo("treegrid")
	b.press(input.Home, input.ArrowLeft)
	b.gone(".row", `Intraday`)
	b.press(input.ArrowRight)
	b.see(".row", `Intraday`)
	b.press(input.ArrowDown)
	b.see(".row.active", `Intraday`)
	if got := b.js(`() => { const g = document.querySelector("[role=treegrid]"); return document.getElementById(g.getAttribute("aria-activedescendant")).innerText }`); !strings.Contains(got, "Intraday") {
		t.Errorf("a screen reader is told of %q", got)
	}
	b.ok(b.page.Reload())
	b.see(".row", `Research`)
	tabTo("to the content")
	b.press(input.Enter)
	if got := b.js(`() => document.activeElement.id`); got != "main" {
		t.Error(got)
	}
	b.js(`() => { location.hash = "#/plan"; }`)
	b.see("textarea", ``)
	tabTo("TEXTAREA")
	b.press(input.Tab)
	if got := focused(); strings.Contains(got, "TEXTAREA") {
		t.Error("the editor keeps the keyboard")
	}
}

// TestPrint has all rows on paper, not only those that were seen.
func TestPrint(t *testing.T) {
	need(t)
	s := serve(t, "--log", day(t))
	b := open(t, s, "#/now?cycle=49&plan=grid")
	b.see(".row", `Research`)
	b.as(Look{Width: 1280, Height: 300})
	b.js(`() => dispatchEvent(new Event("beforeprint"))`)
	b.as(Look{Width: 800, Height: 300, Print: true})
	for _, row := range []string{"Risk", "Sweep"} {
		b.see(".row", row)
	}
	if got := b.js(`() => getComputedStyle(document.querySelector("nav")).display`); got != "none" {
		t.Error("the navigation is printed")
	}
}

// TestLongPlan edits a policy of ten thousand lines.
func TestLongPlan(t *testing.T) {
	need(t)
	s := editing(t, "")
	var plan strings.Builder
	plan.WriteString("stint: 1\ndimensions: [ncpus]\nresource_groups: [{name: G, select: \"select(ncpus > " +
		"0)\"}]\nconsumers:\n")
	for i := range 5000 {
		fmt.Fprintf(&plan, "  - {path: /c%d}\n", i)
	}
	plan.WriteString("md_plans:\n  - name: p\n    resource_groups: [{name: G}]\n    consumers:\n")
	for i := range 5000 {
		fmt.Fprintf(&plan, "      - {path: /c%d, share: {ratio: 2}}\n", i)
	}
	s.do("PUT", "/v1/plan", []byte(plan.String()), "Content-Type", "application/yaml")
	b := open(t, s, "#/plan")
	b.see(".faults", `no faults`)
	b.edit("{path: /c4999, share: {ratio: 2}}", "{path: /c4999, share: {ratio: two}}")
	b.see(".faults li", `line 10,008, column \d+`)
	b.click(".faults button", `line 10,008`)
	b.see(".numbers .bad", `10008`)
	b.until("the cursor is at the fault",
		`() => { const e = document.querySelector("textarea"); return e.value.slice(e.selectionStart).startsWith("two") }`)
	b.edit("{ratio: two}", "{ratio: 3}")
	b.see(".faults", `no faults`)
	b.see(".diff .come", `/c4999, share: {ratio: 3}`)
	b.click("[role=tab]", `By time window`)
	b.see(".settings", `/c0\s+2`)
	if n := b.js(`() => String(document.querySelectorAll(".numbers div").length + document.querySelectorAll(".srow").length)`); len(n) > 3 {
		t.Errorf("%s lines are in the page", n)
	}
}

// TestPictures makes the pictures of docs/console.md, in the folder that STINT_PICTURES names.
func TestPictures(t *testing.T) {
	dir := os.Getenv("STINT_PICTURES")
	if dir == "" {
		t.Skip("STINT_PICTURES names no folder: make pictures does")
	}
	need(t)
	demo := filepath.Join(t.TempDir(), "demo")
	run(t, "gen", "grid", "--hosts", "2000", "--consumers", "300", "--units", "50000", "--shapes", "6", "--seed", "1",
		"--out", demo)
	run(t, "run", "--at", "2026-01-05T08:00:00Z", "--plan", demo+"/plan.yaml", "--hosts", demo+"/hosts.parquet",
		"--demand", demo+"/demand.parquet", "--cycles", "3", "--out", demo+"/log")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	grid, bank, live := serve(t, "--log", demo+"/log"), serve(t, "--log", day(t)), editing(t, "")
	live.fill(3)
	for _, p := range []struct {
		name, place, seen string
		of                *service
		look              Look
		do                func(b *tab)
	}{
		{"now", "#/now", ".treemap .cell", grid, Look{Width: 1280, Height: 880}, nil},
		{"now-dark", "#/now?cycle=49&plan=grid", ".treemap .cell", bank, Look{Width: 1280, Height: 760, Dark: true},
			nil},
		{"why", "#/now?cycle=49&plan=grid&why=/Research/Train&figure=short", ".panel .answer", bank,
			Look{Width: 1280, Height: 880}, nil},
		{"time", "#/time?cycle=40&plan=GPU&focus=/Risk/Stress", ".figures", bank, Look{Width: 1280, Height: 820}, nil},
		{"loans", "#/loans?cycle=40&plan=grid", ".matrix", bank, Look{Width: 1280, Height: 760}, nil},
		{"hosts", "#/hosts?host=s000001", "#h-host", grid, Look{Width: 1280, Height: 760}, nil},
		{"plan-fault", "#/plan", ".faults .good", live, Look{Width: 1280, Height: 760}, func(b *tab) {
			b.edit("rank: 2}", "rnk: 2}")
			b.see(".faults li", "line 15")
			b.see(".diff .come", "")
		}},
		{"plan-whatif", "#/plan", ".faults .good", live, Look{Width: 1280, Height: 820}, func(b *tab) {
			b.edit("owns: 40, lend: {limit: 20}", "owns: 40, lend: {limit: 40}")
			b.edit("{path: /Research/Sweep, borrow: {limit: 30}", "{path: /Research/Sweep, borrow: {limit: 60}")
			b.edit("{path: /Risk/Intraday, own: [{group: Compute, hosts: 40}]",
				"{path: /Risk/Intraday, own: [{group: Compute, hosts: 15}]")
			b.see(".diff .come", "hosts: 15")
			b.see(".faults .good", "")
			b.write(".put input", "Rates lends all that it owns")
			b.click("button", "what if")
			b.see(".side-by-side", "gains")
		}},
		{"narrow", "#/now?cycle=40&plan=GPU", ".treemap .cell", bank, Look{Width: 400, Height: 1100}, nil},
	} {
		b := open(t, p.of, p.place)
		b.as(p.look)
		b.see(p.seen, "")
		if p.do != nil {
			p.do(b)
		}
		// what is another tomorrow
		b.js(`() => { for (const e of document.querySelectorAll("time .dim")) e.remove(); document.activeElement.blur(); for (const e of document.querySelectorAll("textarea")) e.scrollLeft = 0; }`)
		Settle(b.page, 3*time.Second)
		picture := small(t, b.picture())
		if len(picture) > 150_000 {
			t.Errorf("%s has %d bytes", p.name, len(picture))
		}
		if err := os.WriteFile(filepath.Join(dir, p.name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPicturesOf makes pictures of all views of any log, to be looked at: STINT_PICTURES_OF names the log, and with
// @CYCLE behind it a cycle, STINT_PICTURES the folder.
func TestPicturesOf(t *testing.T) {
	log, cycle, _ := strings.Cut(os.Getenv("STINT_PICTURES_OF"), "@")
	dir := os.Getenv("STINT_PICTURES")
	if log == "" || dir == "" {
		t.Skip("STINT_PICTURES_OF names no log: make pictures-of does")
	}
	need(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "--log", log)
	for _, p := range []struct {
		name, place, seen string
		look              Look
		do                func(b *tab)
	}{
		{"now", "#/now", ".treemap .cell", Look{Width: 1280, Height: 880}, nil},
		{"now-groups", "#/now", ".treemap .cell", Look{Width: 1280, Height: 880}, func(b *tab) {
			b.choose(".treemap, .card header select", "host group")
			b.see(".treemap svg", "by host group")
		}},
		{"now-dark", "#/now", ".treemap .cell", Look{Width: 1280, Height: 880, Dark: true}, nil},
		{"time", "#/time", ".figures", Look{Width: 1280, Height: 820}, nil},
		{"loans", "#/loans", ".loans", Look{Width: 1280, Height: 760}, nil},
		{"hosts", "#/hosts", "#h-hosts", Look{Width: 1280, Height: 760}, nil},
		{"narrow", "#/now", ".treemap .cell", Look{Width: 400, Height: 1100}, nil},
	} {
		place := p.place
		if cycle != "" {
			place += "?cycle=" + cycle
		}
		b := open(t, s, place)
		b.as(p.look)
		b.patient(time.Minute).see(p.seen, "")
		if p.do != nil {
			p.do(b)
		}
		Settle(b.page, 5*time.Second)
		if err := os.WriteFile(filepath.Join(dir, p.name+".png"), small(t, b.picture()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// small makes a picture of the 256 colours that it has most of, so that it takes little room; others become the nearest
// of those.
func small(t *testing.T, of []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(of))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		r, g, b, _ := from.At(x, y).RGBA()
		return color.RGBA{uint8(r>>8) &^ 3, uint8(g>>8) &^ 3, uint8(b>>8) &^ 3, 255}
	}
	box := from.Bounds()
	for y := range box.Dy() {
		for x := range box.Dx() {
			count[at(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a],
			cmp.Compare(uint32(a.R)<<16|uint32(a.G)<<8|uint32(a.B), uint32(b.R)<<16|uint32(b.G)<<8|uint32(b.B)))
	})
	var palette color.Palette
	for _, c := range colors[:min(256, len(colors))] {
		palette = append(palette, c)
	}
	to, index := image.NewPaletted(box, palette), map[color.RGBA]uint8{}
	for y := range box.Dy() {
		for x := range box.Dx() {
			c := at(x, y)
			i, ok := index[c]
			if !ok {
				i = uint8(palette.Index(c))
				index[c] = i
			}
			to.SetColorIndex(x, y, i)
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bytesMax and framesMin are those of UI-6: what a cycle may take of the network, and frames in a second while the map
// is moved. What the page shows first must not wait for data.
const (
	bytesMax  = 2_000_000
	framesMin = 30

	elementsMax = 6_000 // of a page, so that what changes in it is drawn in time
)

// TestLarge opens a cluster of 10,000 consumers and, in a soak (STINT_SOAK), 100,000 hosts (UI-6); else of a fifth of
// those. How long things take is for a machine that does nothing else: STINT_CONSOLE_TIMES has them held, with all
// hosts.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("a large cluster, left out in short runs")
	}
	need(t)
	dir, hosts, units := t.TempDir(), "20000", "200000"
	if os.Getenv("STINT_SOAK") != "" || os.Getenv("STINT_CONSOLE_TIMES") != "" {
		hosts, units = "100000", "1000000"
	}
	run(t, "gen", "grid", "--hosts", hosts, "--consumers", "10000", "--units", units, "--shapes", "20", "--seed", "3",
		"--out", dir)
	run(t, "run", "--at", "2026-01-05T08:00:00Z", "--plan", dir+"/plan.yaml", "--hosts", dir+"/hosts.parquet",
		"--demand", dir+"/demand.parquet", "--cycles", "1", "--out", dir+"/log")
	s := serve(t, "--log", dir+"/log")
	b := open(t, s, "")
	b.patient(time.Minute).see(".treemap .cell", ``)
	measured := func(name, f string) float64 {
		v, err := strconv.ParseFloat(b.js(f), 64)
		b.ok(err)
		t.Logf("%s: %.0f", name, v)
		return v
	}
	paint := measured("first paint, ms",
		`() => String(performance.getEntriesByName("first-contentful-paint")[0].startTime)`)
	bytes := measured("bytes of the cycle",
		`() => String(performance.getEntriesByType("resource").filter((e) => e.name.includes("/v1/")).reduce((n, e) => n + e.transferSize, 0))`)
	if bytes > bytesMax {
		t.Errorf("a cycle takes %.0f bytes", bytes)
	}
	if elements := measured("elements in the page",
		`() => String(document.querySelectorAll("*").length)`); elements > elementsMax {
		t.Errorf("%.0f elements are in the page", elements)
	}
	rows := measured("rows in the page", `() => String(document.querySelectorAll(".row").length)`)
	if rows > 100 {
		t.Errorf("%.0f rows are in the page", rows)
	}
	b.write("input[type=search]", "pricing")
	b.see(".card header [role=status]", `\d,\d\d\d rows`)
	busy := b.busyMS()
	scroll := measured("frames a second, tree", frames(`document.querySelector(".rows").scrollTop += 400`))
	t.Logf("processor time of a frame, tree: %.1f ms", (b.busyMS()-busy)/(scroll*framesMS/1000))
	b.click("nav a", `Hosts`)
	b.see("#h-hosts", strings.TrimSuffix(hosts, "000")+`,000 hosts`)
	pan := measured("frames a second, map",
		frames(`const c = document.querySelector("canvas"), at = (i, n) => c.dispatchEvent(new PointerEvent(n, {pointerId: 1, clientX: 300 + 5 * (i % 60), clientY: 400 + i % 30, bubbles: true}));
		if (i === 0) { c.setPointerCapture = () => {}; c.dispatchEvent(new WheelEvent("wheel", {deltaY: -700, clientX: 400, clientY: 400, cancelable: true})); at(0, "pointerdown"); } at(i, "pointermove")`))
	if os.Getenv("STINT_CONSOLE_TIMES") != "" && (paint > 300 || pan < framesMin || scroll < framesMin) {
		t.Error("slower than wanted")
	}
}

// framesMS is how long frames are counted.
const framesMS = 1500

// busyMS is the processor time that the page's main thread has taken, in milliseconds: on a busy machine it tells more
// than frames do.
func (b *tab) busyMS() float64 {
	b.t.Helper()
	b.ok(proto.PerformanceEnable{TimeDomain: proto.PerformanceEnableTimeDomainThreadTicks}.Call(b.page))
	all, err := proto.PerformanceGetMetrics{}.Call(b.page)
	b.ok(err)
	for _, m := range all.Metrics {
		if m.Name == "ThreadTime" {
			return 1000 * m.Value
		}
	}
	b.t.Fatal("the Chromium does not tell the processor time of a page")
	return 0
}

// frames counts frames in a second in which something is done before each.
func frames(do string) string {
	return `() => new Promise((done) => { const begun = performance.now(); let i = 0;
		const frame = () => { const t = performance.now() - begun; if (t > ` + strconv.Itoa(framesMS) + `) return done(String(1000 * i / t)); ` + do + `; i++; requestAnimationFrame(frame); };
		requestAnimationFrame(frame); })`
}
