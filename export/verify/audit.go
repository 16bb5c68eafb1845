package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
)

const minuteUS = 60 * 1_000_000

// judge counts a condition by its rule, and adds a fault when it does not hold.
type judge func(ok bool, rule, format string, args ...any)

// audit checks the table of calls, as far as it can be held against anything: its files are whole and follow each
// other, its rows make sense, and whoever put a policy by it is the author of that revision.
func (v *verifier) audit() {
	say := func(ok bool, rule, format string, args ...any) {
		if v.report.Checks[rule]++; !ok {
			v.fault(Fault{Rule: rule, Table: "audit", What: fmt.Sprintf(format, args...)})
		}
	}
	days, err := v.log.Audit()
	if err != nil {
		say(false, "audit", "%v", err)
		return
	}
	if len(days) == 0 {
		return
	}
	authors := v.authors()
	next := days[0].Files[0].First
	for _, day := range days {
		for _, f := range day.Files {
			say(f.First == next, "audit", "batches %d to %d are missing: %s follows", next, f.First-1, f.Path)
			next = f.Last + 1
			v.auditFile(day.Day, f, authors, say)
		}
	}
}

// auditFile checks the rows of one file.
func (v *verifier) auditFile(day string, f export.AuditFile, authors map[int64]string, say judge) {
	t, err := f.Rows()
	say(err == nil, "seal", "%v", err)
	if err != nil {
		return
	}
	v.report.Rows += int64(t.Rows)
	r := view(t)
	whole := func(name string, row int) int64 { return r.number[name].at(row) }
	batch := f.First - 1
	for row := range t.Rows {
		n := whole("batch", row)
		say(n >= f.First && n <= f.Last && n >= batch && n <= batch+1, "audit",
			"batch %d stands where %d is expected: %s", n, batch, f.Path)
		batch = n
		first, last, minute := whole("first", row), whole("last", row), whole("minute", row)
		say(minute%minuteUS == 0 && minute <= first && first <= last && last < minute+minuteUS, "audit",
			"batch %d: calls from %s to %s are not of the minute", n, instant(first), instant(last))
		say(instant(minute)[:len(time.DateOnly)] <= day, "audit",
			"batch %d: calls of %s in the folder of %s", n, instant(minute), day)
		say(whole("calls", row) >= 1 && whole("rows", row) >= 0 && whole("cycle", row) >= 0, "audit",
			"batch %d: figures below 0", n)
		status := whole("status", row)
		say(status >= 100 && status <= 599, "audit", "batch %d: %d is no status of an answer", n, status)
		by, caller := r.words["by"].text(row), r.words["caller"].text(row)
		nobody := by == decision.AuditBy[decision.AuditNobody]
		say(slices.Contains(decision.AuditBy, by) && nobody == (caller == ""), "audit",
			"batch %d: the caller %q by %q", n, caller, by)
		v.auditRevision(n, whole("revision", row), caller, r.words["call"].text(row), status, authors, say)
	}
	say(batch == f.Last, "audit", "%s ends with batch %d", f.Path, batch)
}

// auditRevision holds who put a policy against whom the table plans names.
func (v *verifier) auditRevision(
	batch, revision int64, caller, call string, status int64, authors map[int64]string, say judge,
) {
	if revision == 0 {
		return
	}
	say(call == "PUT /v1/plan" && status == 200, "audit", "batch %d: revision %d by %s with status %d", batch, revision,
		call, status)
	if author, ok := authors[revision]; ok && caller != "" {
		say(author == caller, "audit", "batch %d: revision %d was put by %q, the table plans has %q",
			batch, revision, caller, author)
	}
}

// authors are who put the revisions of the policy, as far as the log has them.
func (v *verifier) authors() map[int64]string {
	authors := map[int64]string{}
	t, err := v.log.Rows("plans", v.report.First, v.report.Last)
	if err != nil {
		return authors // told with its cycle
	}
	r := view(t)
	for row := range t.Rows {
		if a := r.words["author"].text(row); a != "" {
			authors[r.number["revision"].at(row)] = a
		}
	}
	return authors
}
