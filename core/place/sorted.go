package place

import (
	"math/bits"

	"github.com/stintd/stint/vecpack"
)

// sorted is rows of free room, a field's parcels or a lot's items, dealt out to classes.
type sorted struct {
	// by row: free room of the first four dimensions, packed, each shifted right by the field's shift
	word  []uint64
	class []int16           // by row; shut for rows that get no grants
	count [classesMax]int32 // by class: its rows
	set   [][]uint64        // by class: its rows
	some  [][]uint64        // by class: the words of its set that are not empty
	top   [][]uint64        // by class, then word of its set: at least what any of the rows there has, packed
	peak  []uint64          // by class: at least what any of its rows has, packed; 0 when it has none
	crest []uint64          // by shape: at least the peaks of its classes
	gain  [classesMax]int64 // by class: how often a row entered it, or gained room in it, ever; from 1
	quiet bool              // no finder is looking: nothing need be logged

	entered []int16          // the classes that rows entered, one after the other, for the finders
	log     []move           // beside it: which row
	logOf   [][]move         // by class: the rows that entered it
	latest  [shapesMax]int32 // by shape: of entered, one past the last that is of a class of it
}

// shut is the class of rows that get no grants.
const shut int16 = -1

// move says that a row entered a class, or gained room in it, and what room it had then: a
// unit that did not fit then fits no more.
type move struct {
	word uint64
	row  int32
}

// forget empties the logs.
func (s *sorted) forget() {
	s.entered, s.log, s.latest = s.entered[:0], s.log[:0], [shapesMax]int32{}
	for c := range s.logOf {
		s.logOf[c] = s.logOf[c][:0]
	}
}

// begin makes room for rows, none of which is in a class yet.
func (s *sorted) begin(rows, classes int) {
	s.word, s.class = resize(s.word, rows), resize(s.class, rows)
	s.set, s.some = resize(s.set, classes), resize(s.some, classes)
	s.top, s.peak = resize(s.top, classes), resize(s.peak, classes)
	s.crest = resize(s.crest, classes/fullnesses)
	clear(s.crest)
	for c := range s.set {
		s.set[c], s.peak[c] = s.set[c][:0], 0 // made when the first row enters
	}
	for row := range s.class {
		s.class[row] = shut
	}
	s.count, s.logOf = [classesMax]int32{}, resize(s.logOf, classes)
	s.forget()
}

func (s *sorted) words() int { return (len(s.word) + 63) / 64 }

// enter moves a row to a class and logs it, also when it is the same one: it may have gained room.
func (s *sorted) enter(row int32, c int16) {
	if old := s.class[row]; old != shut {
		s.drop(row, old)
	}
	s.class[row] = c
	if c == shut {
		return
	}
	s.gain[c]++
	if len(s.set[c]) == 0 {
		s.set[c], s.top[c] = resize(s.set[c], s.words()), resize(s.top[c], s.words())
		s.some[c] = resize(s.some[c], (s.words()+63)/64)
		clear(s.set[c])
		clear(s.some[c])
	}
	w := row >> 6
	top, crest := &s.top[c][w], &s.crest[c/fullnesses]
	if s.set[c][w] == 0 {
		*top = 0
		s.some[c][w>>6] |= 1 << (uint(w) & 63)
	}
	*top, s.peak[c] = vecpack.Most(*top, s.word[row]), vecpack.Most(s.peak[c], s.word[row])
	*crest = vecpack.Most(*crest, s.word[row])
	s.set[c][w] |= 1 << (uint(row) & 63)
	s.count[c]++
	if !s.quiet {
		m := move{s.word[row], row}
		s.entered, s.log, s.logOf[c] = append(s.entered, c), append(s.log, m), append(s.logOf[c], m)
		s.latest[c/fullnesses] = int32(len(s.entered))
	}
}

// drop takes a row out of its class.
func (s *sorted) drop(row int32, c int16) {
	w := row >> 6
	if s.set[c][w] &^= 1 << (uint(row) & 63); s.set[c][w] == 0 {
		s.some[c][w>>6] &^= 1 << (uint(w) & 63)
	}
	if s.count[c]--; s.count[c] == 0 {
		s.setPeak(c, 0)
	}
}

// lower brings a class's peak down to its tops. O(words of its set that are not empty).
func (s *sorted) lower(c int16) {
	peak := uint64(0)
	for i, some := range s.some[c] {
		for ; some != 0; some &= some - 1 {
			peak = vecpack.Most(peak, s.top[c][i<<6+bits.TrailingZeros64(some)])
		}
	}
	s.setPeak(c, peak)
}

// setPeak lowers a class's peak, and its shape's crest with it.
func (s *sorted) setPeak(c int16, peak uint64) {
	s.peak[c] = peak
	crest := uint64(0)
	for _, peak := range s.peak[c-c%fullnesses:][:fullnesses] {
		crest = vecpack.Most(crest, peak)
	}
	s.crest[c/fullnesses] = crest
}
