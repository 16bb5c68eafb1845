package decision

import "testing"

func TestGangDetail(t *testing.T) {
	for _, c := range []struct {
		fit, least int64
		reason     int32
		detail     string
		want       string
	}{
		{3, 8, ReasonFragmented, "20 ncpus free, at most 4 on one host", "3 of 8 units would fit, the next one: fragmented: 20 ncpus free, at most 4 on one host"},
		{0, 2, ReasonPoolExhausted, "", "0 of 2 units would fit, the next one: pool_exhausted"},
		{1, 4, ReasonShareLimit, "share ratio 0: none", "1 of 4 units would fit, the next one: share_limit: share ratio 0: none"},
	} {
		text := GangDetail(c.fit, c.least, c.reason, c.detail)
		if text != c.want {
			t.Errorf("got %q, want %q", text, c.want)
		}
		fit, least, reason, detail, ok := ReadGangDetail(text)
		if !ok || fit != c.fit || least != c.least || reason != Reasons[c.reason] || detail != c.detail {
			t.Errorf("%q is read as %d of %d, %q, %q, %v", text, fit, least, reason, detail, ok)
		}
	}
	for _, text := range []string{"", "share ratio 0", "3 of units would fit, the next one: x", "x of 8 units would fit, the next one: y", "3 of 8"} {
		if _, _, _, _, ok := ReadGangDetail(text); ok {
			t.Errorf("%q is read as a gang's detail", text)
		}
	}
}
