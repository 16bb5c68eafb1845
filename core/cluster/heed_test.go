package cluster_test

import "testing"

// TestHostsThatComeBack: only what hosts are when a cycle begins counts as other input than in the last one, and as
// another capacity (docs/ownership.md, "When").
func TestHostsThatComeBack(t *testing.T) {
	for _, c := range []struct {
		name              string
		tables            []string
		stirred, reassign bool
	}{
		{"nothing", nil, false, false},
		{"fails", []string{`{"host":"h1","state":"unavail"}`}, true, true},
		{"fails and comes back", []string{`{"host":"h1","state":"unavail"}`, `{"host":"h1","state":"ok"}`}, false,
			false},
		{"closes", []string{`{"host":"h1","state":"closed"}`}, true, true},
		{"closes and opens", []string{`{"host":"h1","state":"draining"}`, `{"host":"h1","state":"ok"}`}, false, false},
		{"shrinks", []string{`{"host":"h1","ncpus":3}`}, true, true},
		{"shrinks and grows", []string{`{"host":"h1","ncpus":3}`, `{"host":"h1","ncpus":2}`, `{"host":"h1","ncpus":4}`},
			false, false},
		{"comes back smaller", []string{`{"host":"h1","state":"unavail"}`, `{"host":"h1","state":"ok","mem":7}`}, true,
			true},
		{"is another while the first comes back",
			[]string{`{"host":"h1","state":"unavail"}`, `{"host":"h1","state":"ok"}`, `{"host":"h2","ncpus":1}`}, true,
			true},
		{"with attributes", []string{`{"host":"h1","state":"unavail","rack":"x"}`,
			`{"host":"h1","state":"ok","rack":"x"}`}, true, false},
		{"with attributes it had", []string{`{"host":"h2","state":"unavail","model":"y"}`,
			`{"host":"h2","state":"ok","model":"y"}`}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ofTwo(t)
			tell(t, s, `{"host":"h1","ncpus":4,"mem":8} {"host":"h2","ncpus":4,"mem":8,"model":"y"}`, true)
			s.Settle(1)
			s.Plans[0].Reassign = false // as stage own does
			s.Finish(1, 1)
			for _, rows := range c.tables {
				tell(t, s, rows, false)
				copied, err := s.Copy() // what is noted is saved
				if err != nil {
					t.Fatal(err)
				}
				s = copied
			}
			s.Settle(2)
			if p := &s.Plans[0]; p.Stirred != c.stirred || p.Reassign != c.reassign {
				t.Errorf("stirred %t, a pass over ownership %t; want %t, %t", p.Stirred, p.Reassign, c.stirred,
					c.reassign)
			}
		})
	}
}
