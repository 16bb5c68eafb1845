package engine

// keyTTLUS is how long an idempotency key is remembered (API-1).
const keyTTLUS = 24 * 3600 * 1_000_000

// keys are the idempotency keys of accepted inputs. Keys of one scope are forgotten in order of age: when a day old, or
// when there are too many.
type keys struct {
	perScopeMax, max int
	scopes           map[string]*keyScope
	count            int
}

type keyScope struct {
	of    map[string]kept
	order []aged // oldest first, from first on
	first int
}

type aged struct {
	key  string
	atUS int64
}

type kept struct {
	digest  string
	receipt Receipt
}

func (k *keys) init(perScopeMax, max int) {
	k.perScopeMax, k.max, k.scopes = perScopeMax, max, map[string]*keyScope{}
}

// scope is within what an idempotency key names one input: a kind and source.
func scope(in *Input) string { return in.Kind + " " + in.Source }

// find gives what a key was used for, ok false when it was not.
func (k *keys) find(scope, key string, nowUS int64) (kept, bool) {
	s := k.scopes[scope]
	if s == nil {
		return kept{}, false
	}
	k.expire(scope, s, nowUS)
	v, ok := s.of[key]
	return v, ok
}

// room tells whether another key may be remembered. Those of the scope that are too old are forgotten first.
func (k *keys) room(scope string, nowUS int64) bool {
	if s := k.scopes[scope]; s != nil {
		k.expire(scope, s, nowUS)
	}
	if k.count >= k.max { // rare: look everywhere
		for name, s := range k.scopes {
			k.expire(name, s, nowUS)
		}
	}
	return k.count < k.max
}

// add remembers a key. Amortised O(1).
func (k *keys) add(scope, key, digest string, r Receipt, nowUS int64) {
	s := k.scopes[scope]
	if s == nil {
		s = &keyScope{of: map[string]kept{}}
		k.scopes[scope] = s
	}
	k.expire(scope, s, nowUS)
	if len(s.of) >= k.perScopeMax {
		k.drop(s)
	}
	if _, ok := s.of[key]; ok {
		return // a replay may meet one that had expired
	}
	k.scopes[scope] = s
	s.of[key] = kept{digest, r}
	s.order = append(s.order, aged{key, nowUS})
	k.count++
}

// expire forgets the keys of a scope that are too old, and the scope when it has none.
func (k *keys) expire(name string, s *keyScope, nowUS int64) {
	for s.first < len(s.order) && s.order[s.first].atUS <= nowUS-keyTTLUS {
		k.drop(s)
	}
	if len(s.of) == 0 {
		delete(k.scopes, name)
	}
}

// drop forgets the oldest key of a scope.
func (k *keys) drop(s *keyScope) {
	delete(s.of, s.order[s.first].key)
	s.order[s.first] = aged{}
	s.first++
	k.count--
	if s.first*2 > len(s.order) {
		s.order = append(s.order[:0], s.order[s.first:]...)
		s.first = 0
	}
}
