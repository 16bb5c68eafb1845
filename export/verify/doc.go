// Package verify checks the promises of SPEC chapter 11 from a decision log alone: from its tables, and from the
// inputs that it keeps. It shares no code with the engine. Policies, tables of input, requirements and the digest of
// decisions (D-16) are read and computed here once more; only the log's own reader is export's.
//
// What it knows of a cluster it builds up cycle by cycle: hosts, demand and policy from the inputs, what is held where
// from grants and releases. Against that it holds every figure of the log. What it finds is a Fault: the cycle, the
// rule, whose it is, where, and the numbers. docs/verify.md says what each rule covers, and what a log cannot tell.
package verify
