package cluster

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestCharge holds what is charged to a budget, and when it will be used up, against sums without bounds.
func TestCharge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(label string, most int64) int64 {
			return rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, most)).Draw(t, label)
		}
		b := Budgets{Used: []int64{0}, rest: []int64{0}, rate: []int64{0}}
		now, used := amount("now", 1<<51), new(big.Int)
		hours := 1 + amount("hours", 1<<40)
		whole := func(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(hourUS)) }
		for range rapid.IntRange(1, 6).Draw(t, "cycles") {
			b.rate[0] = amount("rate", math.MaxInt64)
			if at := b.usedUpAt(0, hours, now); at < math.MaxInt64 {
				for _, near := range []struct {
					us   int64
					full bool
				}{{at - 1, false}, {at, true}} {
					then := new(big.Int).Mul(big.NewInt(b.rate[0]), big.NewInt(near.us-now))
					if full := then.Add(then, used).Cmp(whole(hours)) >= 0; full != near.full {
						t.Fatalf("at %d of rate %d with %v used of %d hours: used up is %v", near.us, b.rate[0], used,
							hours, full)
					}
				}
			}
			next := now + amount("later", 1<<42)
			begin := now - 1
			if rapid.IntRange(0, 3).Draw(t, "period") == 0 && next > now {
				begin = rapid.Int64Range(now+1, next).Draw(t, "begin")
			}
			from := now
			if begin > now {
				used.SetInt64(0)
				from = begin
			}
			used.Add(used, new(big.Int).Mul(big.NewInt(b.rate[0]), big.NewInt(next-from)))
			if renewed := b.charge(0, now, next, begin); renewed != (begin > now) {
				t.Fatalf("a period that begins at %d between %d and %d: renewed is %v", begin, now, next, renewed)
			}
			if used.Cmp(whole(hoursMost)) >= 0 {
				if b.Used[0] != hoursMost {
					t.Fatalf("%v is %d hours, which should have been as many as there can be", used, b.Used[0])
				}
				return
			}
			if got := new(big.Int).Add(whole(b.Used[0]), big.NewInt(b.rest[0])); got.Cmp(used) != 0 ||
				b.rest[0] >= hourUS {
				t.Fatalf("%v was charged as %d hours and %d", used, b.Used[0], b.rest[0])
			}
			now = next
		}
	})
}
