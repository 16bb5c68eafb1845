package client

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUntrusted asks a service whose certificate is for other names, and one whose authority is not known: the error
// says what to do, and there is no second try.
func TestUntrusted(t *testing.T) {
	calls := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	other := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	for _, c := range []struct {
		base string
		http *http.Client
		want string
	}{
		{other, s.Client(), "is not for localhost: ask it by a name that the certificate has, such as example.com"},
		{s.URL, nil, "which is not trusted here: name its authority (--ca, STINT_CA): "},
	} {
		_, err := (&Client{Base: c.base, HTTP: c.http}).Get(context.Background(), "/healthz", nil, "")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.base, err, c.want)
		}
	}
	if calls > 0 {
		t.Errorf("%d calls came through", calls)
	}
}
