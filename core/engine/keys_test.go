package engine

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stintd/stint/core/pack"
)

// used lists how many of the first n keys of a scope are remembered.
func (k *keys) used(who string, s keyScope, n int) (found int) {
	for i := range n {
		if k.find(who, s, fmt.Sprint("key", i), 0) != nil {
			found++
		}
	}
	return found
}

// Whoever fills the table of keys pays for it: nobody else's key is forgotten or refused.
func TestGreedyCallersLoseTheirOwnKeys(t *testing.T) {
	var k keys
	k.init(100, 1000)
	mine, shared := keyScope{InputDemand, "mine"}, keyScope{InputReleases, ""}
	add := func(who string, s keyScope, i int) { k.add(who, s, fmt.Sprint("key", i), "", Receipt{}, 0) }
	for i := range 50 {
		add("small", mine, i)
		add("small", shared, i)
	}
	for i := range 10_000 { // of one scope, and of very many
		add("greedy", shared, i)
		add("greedy", keyScope{InputDemand, fmt.Sprint("source", i)}, 0)
	}
	add("late", mine, 0)
	if k.used("small", mine, 50) != 50 || k.used("small", shared, 50) != 50 || k.used("late", mine, 1) != 1 {
		t.Error("keys of others were forgotten:", k.used("small", mine, 50), k.used("small", shared, 50),
			k.used("late", mine, 1))
	}
	if k.count > 1000 || k.callers["greedy"].count != k.count-101 {
		t.Error(k.count, "keys,", k.callers["greedy"].count, "of the greedy one")
	}
	if k.find("greedy", shared, "key9999", 0) == nil && k.find("greedy", keyScope{InputDemand, "source9999"}, "key0",
		0) == nil {
		t.Error("the latest keys went, not the oldest")
	}
	k.find("small", mine, "key0", keyTTLUS)
	k.makeRoom(keyTTLUS)
	if k.count != 0 || len(k.callers) != 0 {
		t.Error("after a day:", k.count, len(k.callers))
	}
}

func TestKeysArePerScope(t *testing.T) {
	var k keys
	k.init(10, 1000)
	s := keyScope{InputDemand, "one"}
	for i := range 15 {
		k.add("a", s, fmt.Sprint("key", i), "", Receipt{}, 0)
		k.add("b", s, fmt.Sprint("key", i), "", Receipt{}, 0)
	}
	if k.used("a", s, 5) != 0 || k.used("a", s, 15) != 10 || k.count != 20 {
		t.Error(k.used("a", s, 5), k.used("a", s, 15), k.count)
	}
	k.add("a", keyScope{InputDemandDelete, "one"}, "gone", "", Receipt{}, 0)
	k.forget("one")
	if k.count != 1 || k.find("a", keyScope{InputDemandDelete, "one"}, "gone", 0) == nil {
		t.Error("a source that is gone:", k.count)
	}
}

// A checkpoint of before callers were known is read, and its keys hold for everybody.
func TestKeysOfForm1(t *testing.T) {
	var b bytes.Buffer
	c, form := pack.Save(), int64(1)
	pack.Int(c, &form)
	type named struct {
		name  string
		order []*kept
	}
	all := []named{{"demand of a source", []*kept{{"k", "digest", 7, Receipt{Seq: 3}}}},
		{"releases ", []*kept{{"r", "digest", 8, Receipt{Seq: 4}}}}}
	pack.Rows(c, &all, func(n *named) {
		pack.Text(c, &n.name)
		pack.Pointers(c, &n.order, func(c *pack.Coder, v *kept) { v.fields(c) })
	})
	if _, err := c.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	var k keys
	k.init(10, 1000)
	load := pack.Load(&b, int64(b.Len()))
	load.Form("checkpoint", saveForm)
	k.fields(load)
	if err := load.End(); err != nil {
		t.Fatal(err)
	}
	one := k.find(unknownCaller, keyScope{"demand", "of a source"}, "k", 9)
	two := k.find(unknownCaller, keyScope{"releases", ""}, "r", 9)
	if k.count != 2 || one == nil || one.receipt.Seq != 3 || two == nil || two.receipt.Seq != 4 {
		t.Error(k.count, one, two)
	}
}
