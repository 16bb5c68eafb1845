package pack

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

type id int32

// thing has a field of each kind.
type thing struct {
	whole    int64
	small    id
	yes      bool
	text     string
	words    []string
	raw      []byte
	ids      []id
	wide     []int64
	set      []uint64
	state    []uint8
	flags    []bool
	shares   []float64
	amount   [][]int64
	absent   []id
	none     []id
	appended []uint64
	many     []*pair
	late     []id
}

type pair struct {
	key string
	n   int64
}

func (v *thing) fields(c *Coder) {
	c.Mark("thing")
	Int(c, &v.whole)
	Int(c, &v.small)
	Bool(c, &v.yes)
	Text(c, &v.text)
	Texts(c, &v.words)
	Raw(c, &v.raw)
	Column(c, &v.ids)
	Column(c, &v.wide)
	Column(c, &v.set)
	Column(c, &v.state)
	Bools(c, &v.flags)
	Floats(c, &v.shares)
	Columns(c, &v.amount)
	Column(c, &v.absent)
	Column(c, &v.none)
	Appended(c, &v.appended)
	Pointers(c, &v.many, func(c *Coder, p *pair) { Text(c, &p.key); Int(c, &p.n) })
	c.Later(func(c *Coder) { Column(c, &v.late) })
}

func example() *thing {
	v := &thing{
		whole: math.MinInt64, small: -1, yes: true, text: "päß", words: []string{"", "two"}, raw: []byte{0, 255},
		ids: []id{-1, 0, math.MaxInt32, math.MinInt32}, wide: []int64{math.MaxInt64, -5}, set: []uint64{1 << 63, 3},
		state: []uint8{0, 255, 7}, flags: []bool{true, false}, shares: []float64{0.5, math.Inf(-1)},
		amount: [][]int64{{1, 2, 300}, nil, {}}, none: []id{}, appended: []uint64{9, 70_000},
	}
	for i := range 10_000 {
		v.many = append(v.many, &pair{"key", int64(i)})
	}
	v.late = []id{4, 5}
	for range 100_000 {
		v.wide = append(v.wide, int64(rand.Uint64()>>rand.IntN(64)))
	}
	return v
}

func saved(t testing.TB, v *thing) []byte {
	t.Helper()
	c := Save()
	v.fields(c)
	c.Hold()
	var b bytes.Buffer
	if n, err := c.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatal(n, err)
	}
	return b.Bytes()
}

func load(b []byte) (*thing, error) {
	v, c := &thing{}, Load(bytes.NewReader(b), int64(len(b)))
	v.fields(c)
	return v, c.End()
}

func TestBothWays(t *testing.T) {
	v := example()
	got, err := load(saved(t, v))
	if err != nil || !reflect.DeepEqual(got, v) {
		got.wide, got.many = nil, nil
		t.Fatalf("%+v, %v", got, err)
	}
}

// TestHold changes columns after they were held.
func TestHold(t *testing.T) {
	v, was := &thing{ids: []id{1, 2}, appended: []uint64{1}}, &thing{ids: []id{1, 2}, appended: []uint64{1}}
	larger := &thing{ids: make([]id, 9)} // of another length by now
	prepared := Save()
	larger.fields(prepared)
	prepared.Prepare()
	c := SaveInto(prepared)
	v.fields(c)
	c.Hold()
	v.ids[0], v.appended = 9, append(v.appended, 2)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	was.many = []*pair{}
	got, err := load(b.Bytes())
	if err != nil || !reflect.DeepEqual(got, was) {
		t.Fatalf("%+v, %v", got, err)
	}
}

// TestNarrow holds every width at its limits.
func TestNarrow(t *testing.T) {
	for _, limit := range []int64{0, math.MaxInt8, math.MaxInt16, math.MaxInt32, math.MaxInt64 - 1} {
		for d := int64(-1); d <= 1; d++ {
			v := []int64{limit + d, -limit - d, -limit - d - 1}
			b := appendColumn(nil, v)
			c := Load(bytes.NewReader(b), int64(len(b)))
			var got []int64
			Column(c, &got)
			if err := c.End(); err != nil || !reflect.DeepEqual(got, v) {
				t.Errorf("%v: %v, %v", v, got, err)
			}
		}
	}
}

func TestDamaged(t *testing.T) {
	whole := saved(t, &thing{text: "text", words: []string{"a"}, ids: []id{1, 2, 3}, shares: []float64{1}})
	for n := range whole {
		if _, err := load(whole[:n]); err == nil || !strings.Contains(err.Error(), "byte ") {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
	}
	if _, err := load(append(bytes.Clone(whole), 0)); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Error(err)
	}
	if _, err := load(append([]byte{6, 0, 0, 0, 0, 0, 0, 0}, "other"...)); err == nil ||
		!strings.Contains(err.Error(), `"other" where "thing" begins`) {
		t.Error(err)
	}
	var small []id
	b := appendColumn(nil, []int64{1 << 40})
	if c := Load(bytes.NewReader(b), int64(len(b))); true {
		if Column(c, &small); c.Err() == nil {
			t.Error("a number that does not fit was loaded")
		}
	}
}

// TestForms loads what an older form left out, and refuses what a newer one has.
func TestForms(t *testing.T) {
	fields := func(c *Coder, newest int64, a, b *int64) {
		c.Form("thing", newest)
		Int(c, a)
		if c.Since(2) {
			Int(c, b)
		}
	}
	saved := func(newest int64) []byte {
		var b bytes.Buffer
		c, one, two := Save(), int64(1), int64(2)
		fields(c, newest, &one, &two)
		if _, err := c.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for form := int64(1); form <= 3; form++ {
		b, one, two := saved(form), int64(0), int64(0)
		c := Load(bytes.NewReader(b), int64(len(b)))
		fields(c, 2, &one, &two)
		switch err := c.End(); {
		case form == 3 && (err == nil || !strings.Contains(err.Error(),
			"form 3 of a thing; this stint reads forms 1 to 2")):
			t.Error(err)
		case form < 3 && (err != nil || one != 1 || (two == 2) != (form == 2)):
			t.Error(form, one, two, err)
		}
	}
}

// FuzzLoad loads arbitrary bytes: it ends, and takes no more memory than there are bytes, by a factor.
func FuzzLoad(f *testing.F) {
	f.Add(saved(f, &thing{text: "text", words: []string{"a"}, ids: []id{1, 2, 3}, amount: [][]int64{{1}}}))
	f.Add(saved(f, &thing{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := load(b); err == nil {
			if again, err := load(saved(t, v)); err != nil || !bytes.Equal(saved(t, again), saved(t, v)) {
				t.Fatalf("%+v, then %+v, %v", v, again, err)
			}
		}
	})
}

func BenchmarkHold(b *testing.B) {
	v := make([]id, 1_000_000)
	for i := range v {
		v[i] = id(i)
	}
	prepared := Save()
	for range 40 {
		Column(prepared, &v)
	}
	prepared.Prepare()
	for b.Loop() {
		c := SaveInto(prepared)
		for range 40 {
			Column(c, &v)
		}
		c.Hold()
	}
	b.SetBytes(40 * 4 * int64(len(v)))
}
