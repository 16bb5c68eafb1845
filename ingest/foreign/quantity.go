package foreign

import (
	"math/big"
	"regexp"
)

// quantityForm is a quantity of Kubernetes; digits are bounded so that no number grows without end.
var quantityForm = regexp.MustCompile(`^([0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2})?$`)

var quantitySuffix = map[string]*big.Rat{
	"": big.NewRat(1, 1), "n": big.NewRat(1, 1e9), "u": big.NewRat(1, 1e6), "m": big.NewRat(1, 1000),
	"k": big.NewRat(1e3, 1), "M": big.NewRat(1e6, 1), "G": big.NewRat(1e9, 1), "T": big.NewRat(1e12, 1),
	"P": big.NewRat(1e15, 1), "E": big.NewRat(1e18, 1), "Ki": big.NewRat(1<<10, 1), "Mi": big.NewRat(1<<20, 1),
	"Gi": big.NewRat(1<<30, 1), "Ti": big.NewRat(1<<40, 1), "Pi": big.NewRat(1<<50, 1), "Ei": big.NewRat(1<<60, 1),
}

// quantity reads a quantity such as 1500m, 36Gi or 2e3 as a multiple of a unit, rounded down; exact tells whether
// nothing was lost. ok is false where it is none, or beyond 2^53 units.
func quantity(text string, unit *big.Rat) (n int64, exact, ok bool) {
	v, ok := rational(text)
	if !ok {
		return 0, false, false
	}
	v.Quo(v, unit)
	whole := new(big.Int).Quo(v.Num(), v.Denom())
	if !whole.IsInt64() || whole.Int64() > swfNumberMax {
		return 0, false, false
	}
	return whole.Int64(), v.IsInt(), true
}

// largest is the largest amount of a resource as people write it, for a message about a larger one.
func largest(unit *big.Rat) string {
	v := new(big.Rat).Mul(big.NewRat(swfNumberMax, 1), unit)
	return new(big.Int).Quo(v.Num(), v.Denom()).String()
}

// rational reads a quantity.
func rational(text string) (v *big.Rat, ok bool) {
	m := quantityForm.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	v, ok = new(big.Rat).SetString(m[1])
	if !ok {
		return nil, false
	}
	factor := quantitySuffix[m[2]]
	if factor == nil {
		if factor, ok = new(big.Rat).SetString("1" + m[2]); !ok {
			return nil, false
		}
	}
	return v.Mul(v, factor), true
}
