package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"
)

// TestRetries has a service that is busy, breaks off, and then takes the input: always under one key.
func TestRetries(t *testing.T) {
	var tries int
	var keys []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tries++
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		body, _ := io.ReadAll(r.Body)
		switch {
		case string(body) != "rows" || r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(500)
		case tries == 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(429)
		case tries == 2:
			panic(http.ErrAbortHandler)
		case tries == 3:
			w.WriteHeader(503)
		default:
			_, _ = io.WriteString(w, `{"snapshot":"7","rows":1,"cycle":3}`)
		}
	}))
	defer s.Close()
	c := &Client{Base: s.URL, Token: "secret", WaitMax: time.Millisecond}
	r, err := c.PutDemand(context.Background(), "feed", Bytes([]byte("rows"), "text/csv"), Options{})
	if err != nil || r.Snapshot != "7" || tries != 4 {
		t.Error(r, err, tries)
	}
	for _, k := range keys {
		if k != keys[0] || len(k) != 32 {
			t.Error("keys:", keys)
		}
	}
	tries = -100
	c.TriesMax = 3
	_, err = c.PutDemand(context.Background(), "feed", Bytes([]byte("other"), ""), Options{})
	var p *Problem
	if !errors.As(err, &p) || p.Status != 500 || tries != -99 {
		t.Error("an error that no further try helps:", err, tries)
	}
}

func TestProblem(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(410)
		_, _ = io.WriteString(w, `{"type":"urn:stint:error:compacted","title":"Gone","status":410,"detail":"not kept"}`)
	}))
	defer s.Close()
	_, _, err := (&Client{Base: s.URL}).Changes(context.Background(), "feed", 0, 0)
	if !Is(err, "compacted") || Is(err, "busy") || err.Error() != "not kept (410 compacted)" {
		t.Error(err)
	}
}

// TestChanges reads rows as a service writes them: what has no value is empty.
func TestChanges(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Stint-Cycle", "7")
		_, _ = io.WriteString(w,
			`{"cycle":6,"change":"grant","plan":"grid","source":"feed","consumer":"/A","allocation":"a","sub":null,`+
				`"host":"h1","units":4,"origin":"owned","pool":"/","lender":null,"cause":null,"reclaim":0,"reason":null,"deadline":null,`+
				`"for_consumer":null,"for_allocation":null,"for_sub":null}`+"\n"+
				`{"cycle":7,"change":"reclaim","plan":"grid","source":"feed","consumer":"/A","allocation":"a","sub":null,`+
				`"host":"h1","units":3,"origin":null,"pool":null,"lender":null,"cause":null,"reclaim":2,"reason":"recall",`+
				`"deadline":"2026-01-05T08:10:00Z","for_consumer":"/B","for_allocation":"b","for_sub":"s"}`+"\n")
	}))
	defer s.Close()
	got, next, err := (&Client{Base: s.URL}).Changes(context.Background(), "feed", 5, 0)
	due := time.Date(2026, 1, 5, 8, 10, 0, 0, time.UTC)
	want := []Change{
		{Cycle: 6, Change: "grant", Plan: "grid", Consumer: "/A", Allocation: "a", Host: "h1", Units: 4},
		{Cycle: 7, Change: "reclaim", Plan: "grid", Consumer: "/A", Allocation: "a", Host: "h1", Units: 3, Reclaim: 2,
			Reason: "recall", Deadline: &due, ForConsumer: "/B", ForAllocation: "b", ForSub: "s"},
	}
	if err != nil || next != 7 || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, next %d, %v", got, next, err)
	}
}

// TestProblemOfOthers has something answer that is no stint: what it says is told with its status.
func TestProblemOfOthers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, "speak otherwise\n")
	}))
	defer s.Close()
	_, _, err := (&Client{Base: s.URL}).Changes(context.Background(), "feed", 0, 0)
	if err == nil || err.Error() != "speak otherwise (400)" {
		t.Error(err)
	}
}
