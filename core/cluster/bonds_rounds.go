//go:build rounds

package cluster

// Place returns the values of the attribute by which a gang must be together, nil where it may be anywhere; and the
// value that it is held to, held false where that is none.
func (b *Bonds) Place(sub SubID) (places *Places, value int32, held bool) {
	if b.s == nil {
		return nil, NoID, false
	}
	one, held := b.now[sub]
	name, prefers := b.asks(sub)
	if name == "" || prefers && !held {
		return nil, NoID, false
	}
	return b.Places(name), one.value, held
}
