package decision

import "testing"

func TestGangDetail(t *testing.T) {
	for _, c := range []struct {
		fit, least int64
		where      string
		reason     int32
		detail     string
		want       string
	}{
		{3, 8, "", ReasonFragmented, "20 ncpus free, at most 4 on one host",
			"3 of 8 units would fit, the next one: fragmented: 20 ncpus free, at most 4 on one host"},
		{0, 2, "", ReasonPoolExhausted, "", "0 of 2 units would fit, the next one: pool_exhausted"},
		{1, 4, "", ReasonShareLimit, "share ratio 0: none",
			"1 of 4 units would fit, the next one: share_limit: share ratio 0: none"},
		{3, 4, "in rack r7", ReasonFragmented, "", "3 of 4 units would fit in rack r7, the next one: fragmented"},
	} {
		text := GangDetail(c.fit, c.least, c.where, c.reason, c.detail)
		if text != c.want {
			t.Errorf("got %q, want %q", text, c.want)
		}
		got, ok := ReadGangDetail(text)
		if want := (Gang{c.fit, c.least, c.where, Reasons[c.reason], c.detail}); !ok || got != want {
			t.Errorf("%q is read as %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "share ratio 0", "3 of units would fit, the next one: x",
		"x of 8 units would fit, the next one: y", "3 of 8"} {
		if _, ok := ReadGangDetail(text); ok {
			t.Errorf("%q is read as a gang's detail", text)
		}
	}
}
