package standing

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
)

// loan is what a row of loans stands for, in the codes of a state.
type loan struct {
	plan             int32
	lender, borrower cluster.ConsumerID
	pool             cluster.ConsumerID
}

func (a loan) compare(b loan) int {
	return cmp.Or(cmp.Compare(a.plan, b.plan), cmp.Compare(a.lender, b.lender), cmp.Compare(a.borrower, b.borrower),
		cmp.Compare(a.pool, b.pool))
}

// Loans is the table of who has what of whom.
func (k *Columns) Loans() *decision.Table {
	t := k.loans.Table()
	return &t
}

// loansOf adds up what is held of lenders, in the order of plans, lenders and borrowers. O(holdings).
func (k *Columns) loansOf(s *cluster.State) decision.Loans {
	type sum struct {
		units, leaving, due int64
		amounts             []int64
	}
	h := &s.Holding
	of := map[loan]*sum{}
	var last loan
	var at *sum // of last: holdings of one sub-allocation mostly follow each other
	for q, lender := range h.Lender {
		sub := h.Sub[q]
		if lender == cluster.NoID || sub == cluster.NoID || h.Units[q] == 0 {
			continue
		}
		key := loan{s.Sub.Plan[sub], lender, s.Sub.Consumer[sub], h.Pool[q]}
		if at == nil || key != last {
			if last, at = key, of[key]; at == nil {
				at = &sum{amounts: make([]int64, len(k.policy.Dimensions)+1)}
				of[key] = at
			}
		}
		at.units += h.Units[q]
		for d, size := range s.Size(sub) {
			at.amounts[d] += h.Units[q] * size
		}
		if h.Set[q] != cluster.NoID {
			if at.leaving += h.Units[q]; at.due == 0 || h.Due[q] < at.due {
				at.due = h.Due[q]
			}
		}
	}
	coded := func(d decision.Dict) decision.Coded { return decision.Coded{Dict: d} }
	l := decision.Loans{
		Plan: coded(k.planNames()), Lender: coded(k.consumers), Borrower: coded(k.consumers), Pool: coded(k.consumers),
		Amounts: k.figures(),
	}
	for _, key := range slices.SortedFunc(maps.Keys(of), loan.compare) {
		one := of[key]
		l.Plan.Add(key.plan)
		l.Lender.Add(int32(key.lender))
		l.Borrower.Add(int32(key.borrower))
		l.Pool.Add(int32(key.pool))
		l.Units, l.UnderRecall = append(l.Units, one.units), append(l.UnderRecall, one.leaving)
		l.Deadline, l.DeadlineNull = append(l.Deadline, one.due), append(l.DeadlineNull, one.due == 0)
		l.Amounts.Add(k.inSlots(key.plan), one.amounts)
	}
	return l
}

// changedLoans are the loans that are other than before, those that are gone with 0 units. Both are of one policy.
// O(loans).
func (k *Columns) changedLoans(old *Columns) decision.Loans {
	if sameLoans(&old.loans, &k.loans) {
		return decision.Loans{Amounts: k.figures()}
	}
	was := make(map[loan]int, len(old.loans.Units))
	for row := range old.loans.Units {
		was[loanAt(&old.loans, row)] = row
	}
	var t decision.Loans
	t.Plan.Dict, t.Lender.Dict, t.Borrower.Dict, t.Pool.Dict = k.planNames(), k.consumers, k.consumers, k.consumers
	t.Amounts = k.figures()
	for row := range k.loans.Units {
		key := loanAt(&k.loans, row)
		before, there := was[key]
		if delete(was, key); !there || !sameLoan(&old.loans, before, &k.loans, row) {
			add(&t, &k.loans, row)
		}
	}
	for row := range old.loans.Units {
		if _, gone := was[loanAt(&old.loans, row)]; gone {
			add(&t, &old.loans, row)
			end := len(t.Units) - 1
			t.Units[end], t.UnderRecall[end], t.DeadlineNull[end] = 0, 0, true
			for d := range t.Amounts.Int {
				t.Amounts.Int[d][end] = 0
			}
		}
	}
	return t
}

func loanAt(l *decision.Loans, row int) loan {
	return loan{
		l.Plan.Code[row], cluster.ConsumerID(l.Lender.Code[row]), cluster.ConsumerID(l.Borrower.Code[row]),
		cluster.ConsumerID(l.Pool.Code[row]),
	}
}

// add appends a row of loans to others.
func add(to, from *decision.Loans, row int) {
	to.Plan.Add(from.Plan.Code[row])
	to.Lender.Add(from.Lender.Code[row])
	to.Borrower.Add(from.Borrower.Code[row])
	to.Pool.Add(from.Pool.Code[row])
	to.Units, to.UnderRecall = append(to.Units, from.Units[row]), append(to.UnderRecall, from.UnderRecall[row])
	to.Deadline = append(to.Deadline, from.Deadline[row])
	to.DeadlineNull = append(to.DeadlineNull, from.DeadlineNull[row])
	for d := range to.Amounts.Int {
		to.Amounts.Int[d] = append(to.Amounts.Int[d], from.Amounts.Int[d][row])
		to.Amounts.Null[d] = append(to.Amounts.Null[d], from.Amounts.Null[d][row])
	}
}

func sameLoan(a *decision.Loans, i int, b *decision.Loans, j int) bool {
	same := a.Units[i] == b.Units[j] && a.UnderRecall[i] == b.UnderRecall[j] && a.Deadline[i] == b.Deadline[j]
	for d := range a.Amounts.Int {
		same = same && a.Amounts.Int[d][i] == b.Amounts.Int[d][j]
	}
	return same
}

// sameLoans tells whether two tables of loans of one policy are equal, row by row.
func sameLoans(a, b *decision.Loans) bool {
	if len(a.Units) != len(b.Units) {
		return false
	}
	for row := range a.Units {
		if loanAt(a, row) != loanAt(b, row) || !sameLoan(a, row, b, row) {
			return false
		}
	}
	return true
}
