package decision

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

// Table is a view of the calls, with the column cycle.
func (a *Audit) Table() Table {
	return Table{"audit", len(a.Calls), []Column{
		ints("cycle", a.Cycle), ints("batch", a.Batch), instants("minute", a.Minute), text("caller", a.Caller),
		text("by", a.By),
		text("address", a.Address), text("call", a.Call), text("source", a.Source), text("branch", a.Branch),
		ints("status", a.Status), ints("calls", a.Calls), ints("rows", a.Rows), ints("revision", a.Revision),
		instants("first", a.First), instants("last", a.Last),
	}}
}
