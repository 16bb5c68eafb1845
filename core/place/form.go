package place

// form is a unit size as a field sees it, and how the unit likes the field's classes; good until the field's
// weights change.
type form struct {
	unit  Unit
	shape [shapesMax]uint8 // shapes of free room in the order in which the unit prefers them
	place [shapesMax]uint8 // by shape: its place in that order

	// By class: Field.gain as it was when the unit fitted none of the parcels there that a desk's finders may use. As
	// long as it stays nothing fits: free room only falls otherwise.
	barren [classesMax]int64
}

// form looks at a unit size. O(shapes log shapes).
func (f *Field) form(size []int64) *form {
	u := &form{unit: f.Unit(size)}
	if !u.unit.never {
		f.rank(size, &u.shape)
		for i, shape := range u.shape[:f.shapes] {
			u.place[shape] = uint8(i)
		}
	}
	return u
}

// rankOf is where a class stands for this unit: by likeness of shape, then the fullest first.
func (u *form) rankOf(class int16) int {
	return int(u.place[class/fullnesses])*fullnesses + int(class%fullnesses)
}

// classOf is the class of a rank.
func (u *form) classOf(r int) int16 {
	return int16(u.shape[r/fullnesses])*fullnesses + int16(r%fullnesses)
}
