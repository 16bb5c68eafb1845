package decision

import "github.com/stintd/stint/core/column"

// Audit are the calls that a service answered, summed by minute: who called what, for whose branch or source, with
// which answer. It is no part of a cycle and follows from nothing else in the log: the service's edge writes it.
type Audit struct {
	Cycle    []int64 // the last one that had ended when the calls of the row began
	Batch    []int64 // rows that were written together; from 1
	Minute   []int64 // µs since 1970 UTC; the first of the minute
	Caller   Coded   // name of the token; Null: nobody who is known
	By       Coded   // AuditBy
	Address  Coded   // from where; Null: several, which are not told apart
	Call     Coded   // method and route
	Source   Coded   // that the call is about; Null: none
	Branch   Coded   // consumer whose branch was read, / for all; Null: nothing was read
	Status   []int64 // of the answer
	Calls    []int64
	Rows     []int64 // of the inputs that were taken
	Revision []int64 // of the policy that was put; 0: none
	First    []int64 // when the first and the last of the calls began, µs since 1970 UTC
	Last     []int64
}

// By what a caller is known.
const (
	AuditToken int32 = iota
	AuditCertificate
	AuditNobody // no token is configured, or none that is known came
)

// AuditBy are the names of by what a caller is known, by value.
var AuditBy = Words{"token", "certificate", "nobody"}

// Schema declares the columns.
func (a *Audit) Schema() column.Schema {
	return column.Schema{Name: "audit", Lines: []column.Line{
		{Name: "cycle", Of: column.Ints(&a.Cycle),
			Doc: "the last cycle that had ended when the first of the calls began"},
		{Name: "batch", Of: column.Ints(&a.Batch), Doc: "from 1; none is left out"},
		{Name: "minute", Of: column.Ints(&a.Minute), Type: Time, Doc: "its first microsecond"},
		{Name: "caller", Of: &a.Caller, Nullable: true, Doc: "the name of the token; null: nobody who is known"},
		{Name: "by", Of: &a.By, Words: AuditBy, Doc: "`token`, `certificate`, `nobody`"},
		{Name: "address", Of: &a.Address, Nullable: true, Doc: "from where"},
		{Name: "call", Of: &a.Call, Doc: "method and route, as `PUT /v1/plan`"},
		{Name: "source", Of: &a.Source, Nullable: true, Doc: "that the call is about"},
		{Name: "branch", Of: &a.Branch, Nullable: true, Doc: "of calls that read: the consumer that was asked for, " +
			"else the branch that the caller may read, else `/` for all"},
		{Name: "status", Of: column.Ints(&a.Status), Doc: "of the answer; 401 and 403 are refusals"},
		{Name: "calls", Of: column.Ints(&a.Calls), Doc: "how many"},
		{Name: "rows", Of: column.Ints(&a.Rows), Doc: "of the inputs that were taken"},
		{Name: "revision", Of: column.Ints(&a.Revision), Doc: "of the policy that was put, 0 where none was"},
		{Name: "first", Of: column.Ints(&a.First), Type: Time, Doc: auditSpan},
		{Name: "last", Of: column.Ints(&a.Last), Type: Time, Doc: auditSpan},
	}}
}

const auditSpan = "when the first and the last of the calls began"
