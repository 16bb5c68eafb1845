package engine

import (
	"fmt"
	"testing"
)

const nothing = "consumer,allocation,units,ncpus\n"

// by is an input of somebody who may speak for one consumer.
func by(name string, b branch) func(*Input) {
	return func(in *Input) { in.Author, in.Principal = name, b }
}

func keyed(key string) func(*Input) { return func(in *Input) { in.Key = key } }

func shrunk(in *Input) { in.AllowShrink = true }

// A source is removed with what it wants and its keys, under the shrink guard, durably; its name is free then.
func TestSourcesAreRemoved(t *testing.T) {
	r := ready(t, func(r *rig) { r.o.CheckpointAtEnd = true })
	r.cycle()
	r.refused(NoSource, InputDemandDelete, "three", "")
	r.refused(Shrink, InputDemandDelete, "one", "")
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n", keyed("before"))
	first := r.must(InputDemandDelete, "one", "", shrunk, keyed("gone"))
	if first.Released != 6 || first.Repeated {
		t.Errorf("%+v", first)
	}
	for range 2 {
		if again := r.must(InputDemandDelete, "one", "", shrunk, keyed("gone")); !again.Repeated ||
			again.Seq != first.Seq {
			t.Errorf("%+v", again)
		}
		r.restart() // first from the journal, then from a checkpoint
		r.cycle()
		if r.held("one") != 0 || r.held("two") != 6 {
			t.Error(r.held("one"), r.held("two"))
		}
	}
	r.refused(NoSource, InputDemandDelete, "one", "")
	if got := r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n", keyed("before")); got.Repeated {
		t.Error("a key of a source that is gone is remembered")
	}
	r.must(InputDemandDelete, "one", "") // holds nothing yet
	r.cycle()
}

// A source belongs to who pushed to it first, also after a restart; who may do all may push to it and remove it.
func TestSourcesBelongToSomebody(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.CheckpointAtEnd = true })
	r.must(InputPlan, "", policyText)
	r.must(InputDemand, "nobody's", nothing)
	r.must(InputDemand, "ann's", nothing, by("ann", "/A"))
	r.cycle()
	for range 2 {
		for _, kind := range []string{InputDemand, InputDemandChanges} {
			r.refused(Forbidden, kind, "ann's", nothing, by("ben", "/A"))
		}
		r.refused(Forbidden, InputRunning, "ann's", "consumer,allocation,host,units\n", by("ben", "/A"))
		r.refused(Forbidden, InputDemandDelete, "ann's", "", by("ben", "/A"))
		r.must(InputDemand, "ann's", nothing)
		r.must(InputDemand, "ann's", nothing, by("ann", "/A"))
		r.restart() // first from the journal, then from a checkpoint
		r.cycle()
	}
	r.must(InputDemand, "nobody's", nothing, by("ben", "/B"))
	r.refused(Forbidden, InputDemand, "nobody's", nothing, by("ann", "/A"))
	r.must(InputDemandDelete, "ann's", "", by("ann", "/A"))
	r.must(InputDemand, "ann's", nothing, by("ben", "/B"))
	r.must(InputDemand, "ann's", "consumer,allocation,units,ncpus\n/A,a,1,1\n")
	r.refused(Forbidden, InputDemandDelete, "ann's", "", by("ben", "/B")) // it has demand of others
	r.must(InputDemandDelete, "ann's", "")
}

// Nobody takes all the sources there may be, and those that have nothing and are silent make room.
func TestSourcesAreLimited(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.SourcesMax, r.o.SourcesPerCallerMax = 10, 3 })
	r.must(InputPlan, "", policyText)
	r.must(InputDemand, "busy", "consumer,allocation,units,ncpus\n/B,b,1,1\n", by("ben", "/B"))
	for i := range 3 {
		r.must(InputDemand, fmt.Sprint("ann", i), nothing, by("ann", "/A"))
	}
	r.refused(TooMany, InputDemand, "ann3", nothing, by("ann", "/A"))
	for i := range 6 {
		r.must(InputDemand, fmt.Sprint("ops", i), nothing)
	}
	r.refused(TooMany, InputDemand, "ops6", nothing)
	r.refused(TooMany, InputDemand, "ben1", nothing, by("ben", "/B"))
	r.must(InputDemandDelete, "ops5", "")
	r.must(InputDemand, "ops6", nothing)
	r.cycle()
	r.now.Add(sourceIdleUS)
	r.must(InputDemand, "ann0", nothing, by("ann", "/A"))
	r.must(InputDemand, "ann3", nothing, by("ann", "/A")) // in place of her others
	r.restart()
	r.must(InputDemand, "ann4", nothing, by("ann", "/A"))
	r.must(InputDemand, "ann5", nothing, by("amy", "/A"))
	r.must(InputDemand, "ben1", nothing, by("ben", "/B")) // in place of all of the others that have nothing
	r.must(InputDemandChanges, "busy", nothing, by("ben", "/B"))
	r.refused(TooMany, InputDemand, "ann6", nothing, by("ann", "/A"))
}

// Keys of releases belong to who gave them.
func TestKeysOfReleases(t *testing.T) {
	r := ready(t, func(r *rig) { r.o.KeysPerSourceMax = 2 })
	r.cycle()
	a, b := "consumer,allocation,host,units\n/A,a,h1,1\n", "consumer,allocation,host,units\n/B,b,h2,1\n"
	first := r.must(InputReleases, "", a, by("ann", "/A"), keyed("1"))
	if got := r.must(InputReleases, "", b, by("ben", "/B"), keyed("1")); got.Repeated {
		t.Error("another's key")
	}
	for i := range 10 {
		r.must(InputReleases, "", b, by("ben", "/B"), keyed(fmt.Sprint("n", i)))
	}
	r.restart()
	if got := r.must(InputReleases, "", a, by("ann", "/A"), keyed("1")); !got.Repeated || got.Seq != first.Seq {
		t.Errorf("a key that another's pushed out: %+v", got)
	}
}

// A resynchronisation is a snapshot too: the guard goes by the units that the source would hold, wherever they run.
func TestGuardOfRunning(t *testing.T) {
	r := ready(t, nil)
	r.cycle()
	rows := "consumer,allocation,host,units\n"
	r.refused(Shrink, InputRunning, "one", rows)
	r.refused(Shrink, InputRunning, "one", rows+"/A,a,h1,1\n/A,a,h2,1\n")
	r.refused(BadRows, InputRunning, "one", rows+"/A,nope,h1,1\n")
	r.refused(BadRows, InputRunning, "one", rows+"/B,b,h2,1\n")
	if got := r.must(InputRunning, "one", rows+"/A,a,h1,1\n/A,a,h2,2\n"); got.Released-got.Added != 3 {
		t.Errorf("%+v", got)
	}
	r.cycle()
	if got := r.must(InputRunning, "one", rows, shrunk); got.Released != 6 {
		t.Errorf("%+v", got)
	}
	r.must(InputRunning, "three", rows) // holds nothing
}

// What is given back of what is gone is counted as beyond what is held; the other rows count.
func TestReleasesOfWhatIsGone(t *testing.T) {
	r := ready(t, nil)
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,5,1\n/A,old,1,1\n")
	r.cycle()
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,5,1\n")
	r.cycle()
	r.must(InputHosts, "", "host,ncpus\nh1,8\nh2,8\nh3,0\n")
	rows := "consumer,allocation,host,units,done\n/A,a,h1,1,true\n/A,a,h2,1,true\n"
	for _, gone := range []string{"/A,old,h1,2,true", "/A,never,h1,2,false", "/A,a,h3,2,false"} {
		if got := r.must(InputReleases, "", rows+gone+"\n"); got.Released+got.Beyond != 4 || got.Beyond < 2 {
			t.Errorf("%s: %+v", gone, got)
		}
	}
	for _, bad := range []string{"/Nobody,a,h1,1,true", "/A,a,h9,1,true"} {
		r.refused(BadRows, InputReleases, "", rows+bad+"\n")
	}
	if got := r.must(InputReleases, "",
		rows+"/A,never,h1,9007199254740992,false\n/A,gone,h1,9007199254740992,false\n"); got.Beyond != 1<<53 {
		t.Errorf("%+v", got)
	}
	r.cycle()
}
