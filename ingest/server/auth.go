package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
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

// Token is somebody whom the service knows, by a bearer token or by the subject of a client certificate or by either.
// Of a bearer token it has only the hash.
type Token struct {
	Name   string // for logs, and as whom the policy's `admins` and `users` may name it
	SHA256 string // of the token, in hex; "": there is none
	// of client certificates, as openssl prints it with -nameopt RFC2253, such as CN=feed,O=Bank; "": there is none
	Subject string
	Role    string
	Groups  []string // further names under which the policy may name it
	// the consumer with all below it that it reads, besides the figures of those above; "": it reads all
	Branch string
}

// known are the tokens by that by which they are known.
type known struct {
	byHash    map[[32]byte]*Token
	bySubject map[string]*Token
}

// none tells whether nobody is known: then everybody may do everything.
func (k *known) none() bool { return len(k.byHash)+len(k.bySubject) == 0 }

// HashToken is the hash of a token as Token has it.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// tokensMax bounds the tokens of a configuration.
const tokensMax = 100_000

func checkTokens(list []Token) (*known, error) {
	if len(list) > tokensMax {
		return nil, fmt.Errorf("%d tokens; at most %d are taken", len(list), tokensMax)
	}
	tokens := &known{make(map[[32]byte]*Token, len(list)), map[string]*Token{}}
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
		if t.SHA256 == "" && t.Subject == "" {
			fault("%s: has neither sha256, of its secret, nor subject, of its certificates", name)
		}
		if t.Subject != "" {
			subject, err := parseName(t.Subject)
			if err == nil {
				err = subject.fault()
			}
			if err != nil {
				fault("%s: subject %q: must be the subject of a certificate, such as CN=feed,O=Bank: %w", name,
					t.Subject, err)
			}
			if twin := tokens.bySubject[subject.String()]; twin != nil && err == nil {
				fault("%s: has the same subject as %q", name, twin.Name)
			}
			tokens.bySubject[subject.String()] = t
		}
		if t.SHA256 == "" {
			continue
		}
		sum, err := hex.DecodeString(t.SHA256)
		if err != nil || len(sum) != sha256.Size {
			fault("%s: sha256 %q: must be 64 hexadecimal digits", name, t.SHA256)
			continue
		}
		if twin := tokens.byHash[[32]byte(sum)]; twin != nil {
			fault("%s: has the same hash as %q", name, twin.Name)
			continue
		}
		tokens.byHash[[32]byte(sum)] = t
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
	if tokens.none() && !s.tokens.Load().none() {
		return errors.New("no tokens any more: everybody could do everything, which takes a restart")
	}
	s.tokens.Store(tokens)
	return nil
}

// Reload has the server know other tokens, TLS files and hosts. Errors, after which all stays as it was: tokens or
// files that are not good. A server that does not speak TLS passes the files over.
func (s *Server) Reload(tokens []Token, files TLSFiles, hosts []string) error {
	was := s.tokens.Load()
	if err := s.SetTokens(tokens); err != nil {
		return err
	}
	if s.o.TLS != nil && files.Certificate != "" {
		if _, err := s.o.TLS.Reload(files); err != nil {
			s.tokens.Store(was)
			return err
		}
	}
	s.SetHostsAllowed(hosts)
	for _, d := range s.divisions {
		d.tokens.Store(s.tokens.Load())
		d.SetHostsAllowed(hosts)
	}
	return nil
}

// everybody is who asks where no tokens are configured.
var everybody = &Token{Name: "everybody", Role: RoleAdmin}

// credentials are by what a request can be told whose it is.
type credentials struct {
	authorization string // the header
	conn          *conn  // that it came with
	passedFor     string // the subject of the client for which another process of the cluster passes the request on
}

// credentialsOf are a request's. They outlive it.
func credentialsOf(q *fasthttp.RequestCtx) credentials {
	c, _ := q.Conn().(*conn)
	return credentials{
		string(q.Request.Header.Peek("Authorization")), c, string(q.Request.Header.Peek(passedFor)),
	}
}

// authenticate finds out whose a request is: the bearer token tells it, and where there is none the client certificate.
func (s *Server) authenticate(of credentials) (*Token, error) {
	tokens := s.tokens.Load()
	if tokens.none() {
		return everybody, nil
	}
	unauthorized := func(detail string) error { return problem{Status: 401, Type: "unauthorized", Detail: detail} }
	if of.authorization == "" {
		return s.certified(of, unauthorized)
	}
	word, token, ok := strings.Cut(of.authorization, " ")
	if !ok || !strings.EqualFold(word, "Bearer") {
		return nil, unauthorized("a bearer token is needed")
	}
	t := tokens.byHash[sha256.Sum256([]byte(strings.TrimSpace(token)))]
	if t == nil {
		return nil, unauthorized("the token is not known")
	}
	return t, nil
}

// certified finds out whose a request without a bearer token is.
func (s *Server) certified(of credentials, unauthorized func(string) error) (*Token, error) {
	if s.o.TLS == nil || !s.o.TLS.TakesClients() {
		return nil, unauthorized("a bearer token is needed")
	}
	subject, err := of.conn.certified(s.o.TLS)
	switch {
	case err != nil:
		return nil, unauthorized(err.Error())
	case subject == "":
		return nil, unauthorized("a bearer token or a client certificate is needed")
	}
	if of.passedFor != "" && s.member() != nil && subject == s.o.TLS.subject() {
		if subject, err = passedSubject(of.passedFor); err != nil {
			return nil, unauthorized("the header " + passedFor + " cannot be read")
		}
	}
	t := s.tokens.Load().bySubject[subject]
	if t == nil {
		return nil, unauthorized("the client certificate of " + subject +
			" is taken, but no token of the configuration has this subject")
	}
	return t, nil
}

// passedSubject reads the subject for which another process passes a request on. That process may be of a version that
// writes it in another form.
func passedSubject(header string) (string, error) {
	text, err := url.PathUnescape(header)
	if err != nil {
		return "", err
	}
	n, err := parseName(text)
	return n.String(), err
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
