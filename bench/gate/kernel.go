package main

import "slices"

// kernelWords is how many words the baseline kernel works on: 256 KiB.
const kernelWords = 1 << 15

// kernel is what a machine takes for a fixed piece of work that no change of stint touches: words are written,
// sorted, looked up in an order that no cache foresees, and summed. So it has what a cycle has too, of each
// something: moving bytes, branches, loads that wait for each other.
type kernel struct{ words, sorted []uint64 }

func newKernel() *kernel {
	return &kernel{words: make([]uint64, kernelWords), sorted: make([]uint64, kernelWords)}
}

// us is the processor time of one run, in microseconds.
func (k *kernel) us() float64 {
	start := cpuUS()
	x := uint64(1)
	for i := range k.words { // splitmix64
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		k.words[i] = z ^ z>>31
	}
	copy(k.sorted, k.words)
	slices.Sort(k.sorted[:kernelWords/4])
	var sum, at uint64
	for range kernelWords {
		at = (k.words[at] + sum) % kernelWords
		sum += k.sorted[at] >> 32
	}
	if sum == 1 { // never: the loops must not be left out by the compiler
		panic("BUG: the kernel's sum is a constant")
	}
	return float64(cpuUS() - start)
}
