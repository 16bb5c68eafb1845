package engine

import "testing"

// TestCheck looks at inputs of each kind, good ones and such as are refused. Nothing comes of them: the cycles after
// them, and the key that one came with, are as if they had not been there.
func TestCheck(t *testing.T) {
	r := ready(t, nil)
	r.cycle()
	before, accepted := r.cycle().Summary, r.Stats().Inputs
	key := func(in *Input) { in.Key, in.AllowShrink = "k", in.Kind == InputDemandChanges }
	const release = "consumer,allocation,host,units,done\n/A,a,h1,2,true\n"
	r.checks = true
	for _, c := range []struct{ kind, source, text string }{
		{InputHosts, "", "host,ncpus\nh1,8\nh2,8\nh3,8\n"},
		{InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,5,1\n"},
		{InputDemandChanges, "one", "consumer,allocation,units,ncpus\n/A,b,1,1\n/A,a,0,\n"},
		{InputRunning, "one", "consumer,allocation,host,units\n/A,a,h1,4\n"},
		{InputReleases, "", release},
	} {
		r.must(c.kind, c.source, c.text, key)
	}
	r.refused(BadRows, InputDemand, "one", "consumer,allocation,units,ncpus\n/B,b,6,1\n")
	r.refused(BadRows, InputDemandChanges, "one", "consumer,allocation,units,ncpus\n/B,b,6,1\n")
	r.refused(BadRows, InputRunning, "one", "consumer,allocation,host,units\n/A,a,h9,4\n")
	r.refused(BadRows, InputReleases, "", "consumer,allocation,host,units\n/A,a,h9,4\n")
	r.refused(Shrink, InputDemand, "one", "consumer,allocation,units,ncpus\n")
	r.refused(Shrink, InputHosts, "", "host,ncpus\nh9,8\n")
	r.checks = false
	if after := r.cycle().Summary; after.UnitsHeld != before.UnitsHeld || after.UnitsWanted != before.UnitsWanted ||
		after.Hosts != before.Hosts {
		t.Errorf("the cycle after is %+v, before %+v", after, before)
	}
	if n := r.Stats().Inputs; n != accepted+1 { // that closes the hosts of the refused table
		t.Errorf("%d inputs were taken", n-accepted)
	}
	if got := r.must(InputReleases, "", release, key); got.Repeated || got.Released != 2 {
		t.Errorf("the same is taken as %+v", got)
	}
	r.checks = true
	r.must(InputReleases, "", release, key) // it would be answered as before
	r.refused(KeyReused, InputReleases, "", release+"\n", key)
}
