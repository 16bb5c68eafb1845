package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// The names that other systems allow and that mean something here, or to a parser on the way: columns of tables, words
// of requirements and of YAML, names of other importers' attributes, quotes, signs, scripts, lengths.
var oddNames = []string{
	"host", "state", "units", "consumer", "allocation", "sub", "plan", "requirement", "max_per_host", "done", "name",
	"type", "model", "together", "min_units", "device", "runtime", "cycle", "now", "pool", "lender", "source", "reason",
	"gpu", "cpus", "memory_mb", "memory", "vcores", "cpu_milli", "memory_mib", "ncpus", "maxmem", "slots", "rack",
	"node_label", "flavor", "partition", "weight", "partition_a", "gpu_type", "feature_gpu", "mg", "all", "default",
	"root", "jobs", "everything", "public_pool", "select", "order", "true", "false", "null", "yes", "no", "on", "~",
	"1", "0", "007", "0x10", "1e3", ".5", "-1", "-", "--", "---", "...", "_", "a.b", "a-b", "a_b", "A", "a", "a-B",
	"ä", "ß", "İ", "日本", "🦆", "e\u0301", "\u200bzero", "\u202eright", "a b", "a  b", "a'b", "'a'", `a"b`, `"`,
	"a\\b", "a#b", "#", "a: b", "a:", "a, b", "[a]", "{a}", "&a", "*a", "!a", "%a", "@a", "`a`", "|", ">", "?", "= 1",
	"a=b", "%s", "%d", "<a>", "&amp;", "${a}", "$(a)", "..", "nvidia.com/gpu", "a/b", "select(x)", "order(x)",
	"prefer x", "NaN", "Inf", "2026-01-05", "12:30", "__proto__", "CON", "x\u2028y", "\ufeffbom",
	strings.Repeat("n", 31), strings.Repeat("n", 32), strings.Repeat("m", 63), strings.Repeat("k", 200),
	strings.Repeat("日", 60),
}

// wildNames are those that every system refuses.
var wildNames = []string{"", " ", "/", "a/", "//", "a\tb", "a\nb", "a\rb", "\x01", "\x7f", "x\u0085y",
	strings.Repeat("w", 201), strings.Repeat("w", 5000)}

// oddNumbers are amounts as systems write them; wildNumbers those that none takes.
var (
	oddNumbers  = []string{"0", "1", "2", "3", "7", "10", "64", "100", "1000", "4096", "99999", "1048576"}
	wildNumbers = []string{"-1", "-0", "0.5", "1e3", "1E", "1000m", "100Gi", "9007199254740992", "9007199254740993",
		"9223372036854775807", "18446744073709551616", "1e308", "1e999", "NaN", "Inf", "0x10", "1,000", "١", "100%",
		"33.333333", "1n", "00", "+5", "", " ", "lots", "1e-9", "0.0000000001", "1_000"}
)

// name returns a name that the case has not had, without the characters that the system cannot have in it; in a wild
// case sometimes any.
func (g *hostile) name(without string) string {
	for range 20 {
		n := oddNames[g.IntN(len(oddNames))]
		if g.IntN(3) == 0 {
			n = fmt.Sprintf("%s%d", n, g.IntN(50))
		}
		if g.wild && g.IntN(6) == 0 {
			n = wildNames[g.IntN(len(wildNames))]
		}
		if !g.wild && (strings.ContainsAny(n, without+"/") || g.names[strings.ToLower(n)] || len(n) > 200) {
			continue
		}
		g.names[strings.ToLower(n)] = true
		return n
	}
	n := fmt.Sprintf("q%d", len(g.names))
	g.names[n] = true
	return n
}

// resource returns the name of a resource: those may have a slash and may be there twice.
func (g *hostile) resource() string {
	common := []string{"cpu", "memory", "nvidia.com/gpu", "ephemeral-storage", "pods", "hugepages-2Mi"}
	if g.IntN(3) > 0 {
		return common[g.IntN(len(common))]
	}
	for {
		if n := oddNames[g.IntN(len(oddNames))]; !strings.ContainsAny(n, "\n\r\t \"'") {
			return n
		}
	}
}

// number returns an amount; in a wild case sometimes one that nobody takes.
func (g *hostile) number() string {
	if g.wild && g.IntN(5) == 0 {
		return wildNumbers[g.IntN(len(wildNumbers))]
	}
	return oddNumbers[g.IntN(len(oddNumbers))]
}

// upTo returns a whole number as text, from 0.
func (g *hostile) upTo(n int) string {
	if g.wild && g.IntN(5) == 0 {
		return g.number()
	}
	return strconv.Itoa(g.IntN(n + 1))
}

// from returns one of some texts.
func (g *hostile) from(list ...string) string { return list[g.IntN(len(list))] }

// some tells of one in n that it is there.
func (g *hostile) some(n int) bool { return g.IntN(n) == 0 }

// inYAML is a text within quotes of YAML. Its escapes are those of JSON.
func inYAML(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// inXML is a text between tags or in an attribute.
func inXML(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err)
	}
	return b.String()
}

// percents are n whole numbers that are 100 in all.
func (g *hostile) percents(n int) []int {
	list := make([]int, n)
	left := 100
	for i := range list {
		list[i] = left
		if i+1 < n {
			list[i] = g.IntN(left + 1)
		}
		left -= list[i]
	}
	return list
}
