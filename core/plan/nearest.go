package plan

// nearestBytesMax bounds the words that Nearest compares: nobody misspells longer ones.
const nearestBytesMax = 40

// Nearest returns the word of a list that a misspelt one is meant to be: the one with the fewest letters that are
// added, left out, replaced or exchanged with the next, at most two of them and at most a third of the word. It returns
// "" where there is none; of several the first.
func Nearest(word string, list []string) string {
	best, fewest := "", min(2, len(word)/3)+1
	for _, candidate := range list {
		if n := edits(word, candidate); n < fewest {
			best, fewest = candidate, n
		}
	}
	return best
}

// Meant is a question for an error, such as "did you mean check? ", with a blank at its end; "" where no word is near.
func Meant(word string, list []string) string {
	if near := Nearest(word, list); near != "" {
		return "did you mean " + near + "? "
	}
	return ""
}

// edits counts the changes of letters that make b of a (optimal string alignment).
func edits(a, b string) int {
	if len(a) > nearestBytesMax || len(b) > nearestBytesMax {
		return nearestBytesMax
	}
	var rows [3][nearestBytesMax + 1]int // of the letters of a: two before, one before, this one
	for j := range len(b) + 1 {
		rows[2][j] = j
	}
	for i := 1; i <= len(a); i++ {
		rows[0], rows[1] = rows[1], rows[2]
		rows[2][0] = i
		for j := 1; j <= len(b); j++ {
			replaced := rows[1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			n := min(rows[1][j]+1, rows[2][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, rows[0][j-2]+1)
			}
			rows[2][j] = n
		}
	}
	return rows[2][len(b)]
}
