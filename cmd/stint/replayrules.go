package main

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/export"
)

// otherRules is a run of cycles that one other version of the rules decided. Replay does not decide them again: this
// stint decides by its own rules, and a difference would not be an error of the log.
type otherRules struct {
	Rules string `json:"rules_version"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
}

// replayRange is what replay can compare of a log.
type replayRange struct {
	first, last int64 // cycles to decide and compare; first > last: none
	other       []otherRules
}

// rangeByRules cuts the cycles first to last of a log down to those that rules decided and that can be decided again.
// What cycles of another version left behind is known from saved states only, so the comparison begins after a state
// that is not older than the last of them.
func rangeByRules(r *export.Reader, first, last int64, rules string) (c replayRange, err error) {
	c = replayRange{first: first, last: last}
	begin := stateBefore(r, first)
	t, err := r.Rows("cycles", max(begin+1, r.Cycles()[0]), last)
	if err != nil {
		return c, err
	}
	number, version := t.Column("cycle").Int, t.Column("rules_version")
	end := int64(0) // the last cycle of another version
	for row, n := range number {
		by := string(version.Dict.Bytes(version.Code[row]))
		if by == rules {
			continue
		}
		end = n
		switch k := len(c.other); {
		case n < first:
		case k > 0 && c.other[k-1].Rules == by && c.other[k-1].To == n-1:
			c.other[k-1].To = n
		default:
			c.other = append(c.other, otherRules{Rules: by, From: n, To: n})
		}
	}
	if end == 0 {
		return c, nil
	}
	states := r.States()
	i, _ := slices.BinarySearch(states, end)
	if i == len(states) {
		c.first = last + 1
		return c, nil
	}
	c.first = max(first, states[i]+1)
	return c, nil
}

// stateBefore is the last cycle before a cycle after which the log has a saved state, 0 if there is none.
func stateBefore(r *export.Reader, cycle int64) int64 {
	states := r.States()
	if i, _ := slices.BinarySearch(states, cycle); i > 0 {
		return states[i-1]
	}
	return 0
}

// intact compares the files of the cycles of other versions with the digests that the log names.
func intact(r *export.Reader, other []otherRules, report func(*otherwise)) error {
	for _, o := range other {
		for n := o.From; n <= o.To; n++ {
			t, err := r.Table("cycles", n)
			if err != nil {
				return err
			}
			digest := t.Column("decisions_digest")
			logged := string(digest.Dict.Bytes(digest.Code[0]))
			files, err := r.Digest(n)
			if err != nil {
				return err
			}
			if files != logged {
				report(&otherwise{Cycle: n, What: "its files say otherwise", Logged: logged, Decided: files})
			}
		}
	}
	return nil
}

// line describes the cycles for people.
func (o *otherRules) line(rules string) string {
	return fmt.Sprintf("cycles %d to %d: rules version %s decided them and this stint decides by version %s, so it "+
		"does not decide them again; it compared the digests of their files", o.From, o.To, o.Rules, rules)
}
