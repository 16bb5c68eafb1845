package cluster

// namesakes finds sub-allocations by name for the rows of one table. An allocation is listed when its first row asks,
// so that a table which names many sub-allocations of one does not go through all of them for each row.
type namesakes struct {
	s      *State
	listed map[AllocID]bool
	of     map[namesake][]SubID
}

type namesake struct {
	alloc AllocID
	name  int32 // in State.Label
}

// find lists the sub-allocations of an allocation that have a name, whatever their size, in row order. The list is
// borrowed. O(1), and once O(sub-allocations of the allocation).
func (n *namesakes) find(a AllocID, name int32) []SubID {
	if !n.listed[a] {
		if n.listed == nil {
			n.listed, n.of = map[AllocID]bool{}, map[namesake][]SubID{}
		}
		n.listed[a] = true
		for q := n.s.Alloc.First[a]; q != NoID; q = n.s.Sub.Next[q] {
			key := namesake{a, n.s.Sub.Name[q]}
			n.of[key] = append(n.of[key], q)
		}
	}
	return n.of[namesake{a, name}]
}

// absence is what orphans hold, and what is held on hosts that left their plans, by what rows of a table name it by.
type absence struct {
	orphan map[absentKey][]SubID
	parcel map[HostID][]placeOf
}

type absentKey struct {
	consumer ConsumerID
	label    int32
	name     int32
}

type placeOf struct {
	plan   int32
	parcel ParcelID
}

// absent lists what orphans hold and hosts that left still carry. O(orphans + parcels that are left).
func (s *State) absent() (x absence) {
	for _, o := range s.orphans {
		if x.orphan == nil {
			x.orphan = map[absentKey][]SubID{}
		}
		key := absentKey{s.Sub.Consumer[o.sub], s.Alloc.Name[s.Sub.Alloc[o.sub]], s.Sub.Name[o.sub]}
		x.orphan[key] = append(x.orphan[key], o.sub)
	}
	for p := range s.Plans {
		k := &s.Plans[p].Parcels
		for at := k.Len() - k.Left; at < k.Len(); at++ {
			if x.parcel == nil {
				x.parcel = map[HostID][]placeOf{}
			}
			x.parcel[k.Host[at]] = append(x.parcel[k.Host[at]], placeOf{int32(p), ParcelID(at)})
		}
	}
	return x
}
