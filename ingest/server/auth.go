package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/stintd/stint/core/plan"
)

// The roles of PLAN-5.
const (
	RoleAdmin         = "admin"          // may change all
	RoleConsumerAdmin = "consumer_admin" // settings below the consumers whose `admins` name it, and their demand
	RoleSubmitter     = "submitter"      // demand of the consumers whose `users` name it, and of those below them
	RoleReader        = "reader"         // nothing
)

// Roles are the roles there are.
var Roles = []string{RoleAdmin, RoleConsumerAdmin, RoleSubmitter, RoleReader}

// Token is a bearer token that the service knows. It has only the token's hash.
type Token struct {
	Name   string   // for logs, and as whom the policy's `admins` and `users` may name it
	SHA256 string   // of the token, in hex
	Role   string   //
	Groups []string // further names under which the policy may name it
	Branch string   // the consumer with all below it that it reads, besides the figures of those above; "": it reads all
}

// HashToken is the hash of a token as Token has it.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// tokensMax bounds the tokens of a configuration.
const tokensMax = 100_000

func checkTokens(list []Token) (map[[32]byte]*Token, error) {
	if len(list) > tokensMax {
		return nil, fmt.Errorf("%d tokens; at most %d are taken", len(list), tokensMax)
	}
	tokens := make(map[[32]byte]*Token, len(list))
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for i := range list {
		t := &list[i]
		name := fmt.Sprintf("token %q", t.Name)
		if t.Name == "" {
			name = fmt.Sprintf("token %d", i+1)
			fault("%s: has no name", name)
		}
		if !slices.Contains(Roles, t.Role) {
			fault("%s: role %q: must be one of %s", name, t.Role, strings.Join(Roles, ", "))
		}
		if why := t.checkBranch(); why != "" {
			fault("%s: %s", name, why)
		}
		sum, err := hex.DecodeString(t.SHA256)
		if err != nil || len(sum) != sha256.Size {
			fault("%s: sha256 %q: must be 64 hexadecimal digits", name, t.SHA256)
			continue
		}
		if twin := tokens[[32]byte(sum)]; twin != nil {
			fault("%s: has the same hash as %q", name, twin.Name)
			continue
		}
		tokens[[32]byte(sum)] = t
	}
	return tokens, errors.Join(faults...)
}

// CheckTokens tells what is wrong with a list of tokens.
func CheckTokens(list []Token) error {
	_, err := checkTokens(list)
	return err
}

// SetTokens has the server know other tokens from the next request on. Errors, after which it knows those that it knew:
// tokens that are not valid; none where there were some, which would open the service to everybody.
func (s *Server) SetTokens(list []Token) error {
	tokens, err := checkTokens(list)
	if err != nil {
		return err
	}
	if len(tokens) == 0 && len(*s.tokens.Load()) > 0 {
		return errors.New("no tokens any more: everybody could do everything, which takes a restart")
	}
	s.tokens.Store(&tokens)
	return nil
}

// everybody is who asks where no tokens are configured.
var everybody = &Token{Name: "everybody", Role: RoleAdmin}

// authenticate finds out whose token a request carries.
func (s *Server) authenticate(q *request) (*Token, error) {
	return s.tokenOf(&q.Request.Header)
}

// tokenOf is the token that a header carries.
func (s *Server) tokenOf(h *fasthttp.RequestHeader) (*Token, error) {
	tokens := *s.tokens.Load()
	if len(tokens) == 0 {
		return everybody, nil
	}
	word, token, ok := strings.Cut(string(h.Peek("Authorization")), " ")
	if !ok || !strings.EqualFold(word, "Bearer") {
		return nil, problem{Status: 401, Type: "unauthorized", Detail: "a bearer token is needed"}
	}
	t := tokens[sha256.Sum256([]byte(strings.TrimSpace(token)))]
	if t == nil {
		return nil, problem{Status: 401, Type: "unauthorized", Detail: "the token is not known"}
	}
	return t, nil
}

// has tells whether a role is enough for what a route needs.
func (t *Token) has(needs string) bool {
	switch needs {
	case RoleReader:
		return true
	case RoleSubmitter:
		return t.Role != RoleReader
	case RoleConsumerAdmin:
		return t.Role == RoleConsumerAdmin || t.Role == RoleAdmin
	}
	return t.Role == RoleAdmin
}

// named tells whether a list of the policy names the token.
func (t *Token) named(people []string) bool {
	return slices.ContainsFunc(people, func(p string) bool { return p == t.Name || slices.Contains(t.Groups, p) })
}

// principal is a token with a role that may not do everything; it is what the engine asks.
type principal struct{ *Token }

// MayDemand tells whether the consumer, or one above it, names the token.
func (t principal) MayDemand(p *plan.Policy, consumer string) bool {
	n, ok := p.Find(consumer)
	if !ok {
		return false
	}
	for ; n != plan.None; n = p.Parent[n] {
		if t.named(p.Admins[n]) && t.Role == RoleConsumerAdmin || t.named(p.Users[n]) {
			return t.Role != RoleReader
		}
	}
	return false
}

// MayPlan tells what of another policy file is not the token's to change.
func (t principal) MayPlan(was *plan.Policy, old, new []byte) error {
	var branches []string
	for n, people := range was.Admins {
		if t.Role == RoleConsumerAdmin && t.named(people) {
			branches = append(branches, was.Path[n])
		}
	}
	if len(branches) == 0 {
		return fmt.Errorf("the token %q administers no consumer", t.Name)
	}
	return plan.ChangedOutside(old, new, branches)
}
