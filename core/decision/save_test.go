package decision

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/stintd/stint/core/pack"
)

// unsaved are the fields of a cycle that the log alone has, or that are made on demand.
var unsaved = []string{"Cycle.Holdings", "Cycle.Hosts", "Cycle.Owners", "Cycle.Keyframe", "Cycle.Standing",
	"Cycle.State", "Summary.StandingCycle", "Summary.Inputs", "Summary.ConsumersCycle", "Summary.SharesCycle",
	"Summary.ShortfallsCycle"}

// TestSavesEachField looks that each field below a cycle was named.
func TestSavesEachField(t *testing.T) {
	c, p := &Cycle{}, pack.Save()
	p.Watch()
	c.SaveEvents(p, &Saved{Version: 8})
	c.SaveStates(p, &Saved{Version: 8})
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name
			switch {
			case slices.Contains(unsaved, name):
			case f.Kind() == reflect.Struct:
				walk(f)
			case !p.Met(f.UnsafeAddr()):
				t.Errorf("%s is not saved", name)
			}
		}
	}
	walk(reflect.ValueOf(c).Elem())
}

// TestSave fills every column with something, and compares digests after loading.
func TestSave(t *testing.T) {
	d := &Saved{Words{"s", "t"}, Words{"/", "/A"}, Words{"", "a"}, Words{"h", "i"}, 8}
	dicts := &Dicts{Plan: Words{"p"}, Source: d.Source, Consumer: d.Consumer, Label: d.Label, Host: d.Host,
		Dimension: Words{"ncpus"}, Detail: Words{"so"}, Device: Words{"0+1"}}
	var c Cycle
	c.ResetEvents(dicts)
	c.ResetStates(dicts)
	fill(reflect.ValueOf(&c).Elem())
	c.Plans.Author, c.Plans.Message = Coded{Code: []int32{Null}}, Coded{Code: []int32{Null}}
	c.Plans.Digest = Coded{Code: []int32{0}, Dict: Words{"d"}}
	c.Summary.Window, c.Summary.Digest = "night", "d1"
	p := pack.Save()
	c.SaveEvents(p, d)
	c.SaveStates(p, d)
	var b bytes.Buffer
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	load := func(b []byte) (*Cycle, error) {
		got, p := &Cycle{}, pack.Load(bytes.NewReader(b), int64(len(b)))
		got.SaveEvents(p, d)
		got.SaveStates(p, d)
		return got, p.End()
	}
	got, err := load(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if Content(got.Tables()) != Content(c.Tables()) || !reflect.DeepEqual(got.Summary, c.Summary) ||
		!slices.Equal(got.Releases.Source.Code, c.Releases.Source.Code) {
		t.Errorf("%+v\n%+v", got, &c)
	}
	for i := range b.Bytes() { // an error or a cycle, never a panic
		bad := bytes.Clone(b.Bytes())
		bad[i] ^= 0x81
		if got, err := load(bad); err == nil {
			_ = got.Summary
		}
	}
	if _, err := load(b.Bytes()[:b.Len()-1]); err == nil {
		t.Error("a part of a cycle was loaded")
	}
}

// TestSaveWithoutLost reads a cycle as it was saved before work lost was told: there was none.
func TestSaveWithoutLost(t *testing.T) {
	d := &Saved{Words{"s"}, Words{"/"}, Words{""}, Words{"h"}, 4}
	var c Cycle
	c.ResetEvents(&Dicts{Plan: Words{"p"}, Source: d.Source, Consumer: d.Consumer, Label: d.Label, Host: d.Host})
	c.ResetStates(&Dicts{Plan: Words{"p"}, Consumer: d.Consumer, Dimension: Words{"ncpus"}, Detail: Words{}})
	c.Releases.Schema().Resize(1)
	at := c.Consumers.ExtendMD(2)
	c.Consumers.UnitSecondsLost[at] = 5
	c.Summary.UnitMSLost = 5000
	p, got := pack.Save(), &Cycle{}
	c.SaveEvents(p, d)
	c.SaveStates(p, d)
	var b bytes.Buffer
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	p = pack.Load(&b, int64(b.Len()))
	got.SaveEvents(p, d)
	got.SaveStates(p, d)
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	if r, n := got.Releases.UnitSecondsLost, got.Consumers.UnitSecondsLost; !slices.Equal(r, []float64{0}) ||
		!slices.Equal(n, []float64{0, 0}) ||
		!slices.Equal(got.Consumers.BudgetNull, []bool{true, true}) ||
		got.Summary.UnitMSLost != 0 {
		t.Error(r, n, got.Summary.UnitMSLost)
	}
}

// fill gives every column below a struct one row.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Name() + "." + v.Type().Field(i).Name; !slices.Contains(unsaved, name) {
				fill(v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Int64:
		v.SetInt(77)
	case reflect.Float64:
		v.SetFloat(0.25)
	case reflect.Bool:
		v.SetBool(true)
	}
}
