package engine

import "strings"

// keyTTLUS is how long an idempotency key is remembered (API-1).
const keyTTLUS = 24 * 3600 * 1_000_000

// keys are the idempotency keys of accepted inputs. A key belongs to who gave it. Those of one scope are forgotten in
// order of age: when a day old, or when there are too many of the scope. When there are too many in all, those of the
// caller with the most make room: nobody is refused for another's keys.
type keys struct {
	perScopeMax, max int
	callers          map[string]*caller
	count            int
	sweptUS          int64 // when scopes that nobody asks for were looked through last
}

// caller is the keys of one who gives inputs.
type caller struct {
	scopes map[keyScope]*scopeKeys
	count  int
}

// keyScope is within what a caller's key names one input.
type keyScope struct{ kind, source string }

type scopeKeys struct {
	of    map[string]*kept
	order []*kept // oldest first, from first on
	first int
}

// kept is what a key was used for. Nobody changes it.
type kept struct {
	key, digest string
	atUS        int64
	receipt     Receipt
}

func (k *keys) init(perScopeMax, max int) {
	*k = keys{perScopeMax: perScopeMax, max: max, callers: map[string]*caller{}}
}

func scope(in *Input) keyScope { return keyScope{in.Kind, in.Source} }

// find gives what a caller's key was used for, nil when it was not.
func (k *keys) find(who string, scope keyScope, key string, nowUS int64) *kept {
	c := k.callers[who]
	if c == nil || c.scopes[scope] == nil {
		return nil
	}
	s := c.scopes[scope]
	k.expire(c, s, nowUS)
	v := s.of[key]
	k.tidy(who, c, scope, s)
	return v
}

// add remembers a key. Amortised O(1) while there are fewer than max; else O(callers, and the scopes of the one with
// the most keys).
func (k *keys) add(who string, scope keyScope, key, digest string, r Receipt, nowUS int64) {
	c := k.callers[who]
	if c == nil {
		c = &caller{scopes: map[keyScope]*scopeKeys{}}
		k.callers[who] = c
	}
	s := c.scopes[scope]
	if s == nil {
		s = &scopeKeys{of: map[string]*kept{}}
		c.scopes[scope] = s
	}
	k.expire(c, s, nowUS)
	if s.of[key] != nil {
		return // a replay may meet one that had expired
	}
	if len(s.of) >= k.perScopeMax {
		k.drop(c, s)
	}
	k.put(c, s, &kept{key, digest, nowUS, r})
	if k.count > k.max {
		k.makeRoom(nowUS)
	}
}

func (k *keys) put(c *caller, s *scopeKeys, v *kept) {
	s.of[v.key] = v
	s.order = append(s.order, v)
	c.count++
	k.count++
}

// sweepUS is how often at most all scopes are looked through for keys that are too old.
const sweepUS = 60 * 1_000_000

// makeRoom forgets the keys that are too old, wherever they are, and, when there are still too many, the oldest of the
// largest scope of who has the most: a sixteenth of the scope, so that it is not searched for again with each key.
func (k *keys) makeRoom(nowUS int64) {
	if nowUS-k.sweptUS >= sweepUS || nowUS < k.sweptUS {
		k.sweptUS = nowUS
		for who, c := range k.callers {
			for scope, s := range c.scopes {
				k.expire(c, s, nowUS)
				k.tidy(who, c, scope, s)
			}
		}
	}
	for k.count > k.max {
		name, most := "", (*caller)(nil)
		for who, c := range k.callers {
			if most == nil || c.count > most.count || c.count == most.count && who < name {
				name, most = who, c
			}
		}
		which, largest := keyScope{}, (*scopeKeys)(nil)
		for scope, s := range most.scopes {
			if largest == nil || len(s.of) > len(largest.of) || len(s.of) == len(largest.of) && scope.before(which) {
				which, largest = scope, s
			}
		}
		for range max(1, len(largest.of)/16) {
			k.drop(most, largest)
		}
		k.tidy(name, most, which, largest)
	}
}

func (s keyScope) before(o keyScope) bool {
	if s.kind != o.kind {
		return s.kind < o.kind
	}
	return s.source < o.source
}

// forget drops all keys of inputs of a source, but those of its removal.
func (k *keys) forget(source string) {
	for who, c := range k.callers {
		for scope, s := range c.scopes {
			if scope.source == source && scope.kind != InputDemandDelete {
				for len(s.of) > 0 {
					k.drop(c, s)
				}
				k.tidy(who, c, scope, s)
			}
		}
	}
}

// expire forgets the keys of a scope that are too old.
func (k *keys) expire(c *caller, s *scopeKeys, nowUS int64) {
	for s.first < len(s.order) && s.order[s.first].atUS <= nowUS-keyTTLUS {
		k.drop(c, s)
	}
}

// tidy forgets a scope without keys, and a caller without any.
func (k *keys) tidy(who string, c *caller, scope keyScope, s *scopeKeys) {
	if len(s.of) == 0 {
		delete(c.scopes, scope)
	}
	if len(c.scopes) == 0 {
		delete(k.callers, who)
	}
}

// drop forgets the oldest key of a scope.
func (k *keys) drop(c *caller, s *scopeKeys) {
	delete(s.of, s.order[s.first].key)
	s.order[s.first] = nil
	s.first++
	k.count--
	c.count--
	if s.first*2 > len(s.order) {
		s.order = append(s.order[:0], s.order[s.first:]...)
		s.first = 0
	}
}

// oldScope reads the scope of keys of a checkpoint of form 1, whose callers were not known.
func oldScope(name string) keyScope {
	kind, source, _ := strings.Cut(name, " ")
	return keyScope{kind, source}
}
