package journal

import "testing"

// BenchmarkAppend appends a small record and one of a megabyte, and makes them durable.
func BenchmarkAppend(b *testing.B) {
	j, _, err := tryReplay(b.TempDir(), Options{})
	must(b, err)
	head, body := make([]byte, 300), make([]byte, 1<<20)
	b.SetBytes(int64(2*len(head) + len(body)))
	for b.Loop() {
		_, err := j.Append(1, false, head, body, "")
		must(b, err)
		_, err = j.Append(2, true, head, nil, "")
		must(b, err)
		must(b, j.Sync())
		if j.Bytes() > 1<<30 {
			b.StopTimer()
			must(b, j.Close())
			j, _, err = tryReplay(b.TempDir(), Options{})
			must(b, err)
			b.StartTimer()
		}
	}
	must(b, j.Close())
}
