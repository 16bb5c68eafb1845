package share

// Level raises the usage ÷ ratio of siblings to one level (MD-16): part i becomes min(claim[i], max(0, ratio[i] × level
// - usage[i])) with the largest whole level whose parts add up to total at most, or claim[i] for all where total covers
// the claims. Ratios are > 0, all else is ≥ 0. What rounding leaves of total nobody gets.
func Level(total int64, usage, ratio, claim, part []int64) {
	all, sum, used, ratios := int64(0), int64(0), int64(0), int64(0)
	for i, c := range claim {
		all, used, ratios = Add(all, c), Add(used, usage[i]), Add(ratios, ratio[i])
		sum = max(sum, Add(usage[i], c)/ratio[i])
	}
	if all <= total {
		copy(part, claim)
		return
	}
	// Invariant: the parts at level low add up to total at most, those at level high to more.
	low, high := int64(0), sum+1
	level := min(max(Add(total, used)/ratios, low+1), high-1)
	for turn := 0; high-low > 1; turn++ {
		given, slope := raise(level, usage, ratio, claim)
		if given <= total {
			low = level
		} else {
			high = level
		}
		next := (high-low)/2 + low
		if turn%4 != 3 && slope > 0 { // go along the slope, but now and then halve
			if given <= total {
				next = Add(level, (total-given)/slope)
				if next == level {
					next++
				}
			} else {
				next = level - (given-total+slope-1)/slope
			}
		}
		level = min(max(next, low+1), high-1)
	}
	for i := range part {
		part[i] = raised(low, usage[i], ratio[i], claim[i])
	}
}

// raise returns what all parts add up to at a level, and by how much that grows with the level.
func raise(level int64, usage, ratio, claim []int64) (given, slope int64) {
	for i, c := range claim {
		p := raised(level, usage[i], ratio[i], c)
		given = Add(given, p)
		if 0 < p && p < c {
			slope = Add(slope, ratio[i])
		}
	}
	return given, slope
}

// raised returns the part of one sibling at a level.
func raised(level, usage, ratio, claim int64) int64 {
	return min(claim, max(0, Mul(ratio, level)-usage))
}
