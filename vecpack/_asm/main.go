// Command _asm writes the assembly of package vecpack: go generate ./vecpack.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	sumLeast()
	sumLeastTimes()
	blockCovers()
	keyLoop()
	Generate()
}

func sumLeast() {
	TEXT("sumLeast", NOSPLIT, "func(column **int64, reciprocal *float64, dims int, rows int) (sum int64, any uint64)")
	Pragma("noescape")
	Doc("sumLeast adds up over some rows, a number of them that 4 divides, the least over dimensions of "+
		"⌊column[d][row] × reciprocal[d]⌋, where",
		"all that is in the columns is below 2⁵². Any is all of it, or'ed.")
	loop(false)
}

func sumLeastTimes() {
	TEXT("sumLeastTimes", NOSPLIT, "func(column **int64, reciprocal *float64, dims int, rows int, weight *int64) "+
		"(sum int64, any uint64, anyWeight uint64)")
	Pragma("noescape")
	Doc("sumLeastTimes is sumLeast with each row times its weight, where all weights are below 2³². AnyWeight is all " +
		"of them, or'ed.")
	loop(true)
}

// loop is the loop of vecpack.Capacity for four rows at a time. Amounts below 2⁵² become floats exactly by being put
// into the fraction of 2⁵², and whole floats amounts again by adding 2⁵².
func loop(weighted bool) {
	column, reciprocal := Load(Param("column"), GP64()), Load(Param("reciprocal"), GP64())
	dims, rows := Load(Param("dims"), GP64()), Load(Param("rows"), GP64())

	big, most, sum, any, anyWeight := YMM(), YMM(), YMM(), YMM(), YMM()
	var weight reg.Register
	if weighted {
		weight = Load(Param("weight"), GP64())
		VPXOR(anyWeight, anyWeight, anyWeight)
	}
	everywhere(0x4330000000000000, big)  // 2⁵²
	everywhere(0x7ff0000000000000, most) // infinity
	VPXOR(sum, sum, sum)
	VPXOR(any, any, any)

	row := GP64()
	XORQ(row, row)
	Label("rows")
	CMPQ(row, rows)
	JGE(LabelRef("done"))
	least, d, at := YMM(), GP64(), GP64()
	VMOVAPD(most, least)
	XORQ(d, d)
	Label("dims")
	MOVQ(Mem{Base: column, Index: d, Scale: 8}, at)
	have, by := YMM(), YMM()
	VMOVDQU(Mem{Base: at, Index: row, Scale: 8}, have)
	VPOR(have, any, any)
	VPOR(big, have, have)
	VSUBPD(big, have, have)
	VBROADCASTSD(Mem{Base: reciprocal, Index: d, Scale: 8}, by)
	VMULPD(by, have, have)
	VROUNDPD(U8(9), have, have) // down
	VMINPD(have, least, least)
	INCQ(d)
	CMPQ(d, dims)
	JLT(LabelRef("dims"))
	VADDPD(big, least, least)
	VPXOR(big, least, least)
	if weighted { // the product of 64 and 32 bits, of which what is beyond 64 goes
		by, high := YMM(), YMM()
		VMOVDQU(Mem{Base: weight, Index: row, Scale: 8}, by)
		VPOR(by, anyWeight, anyWeight)
		VPSRLQ(U8(32), least, high)
		VPMULUDQ(by, high, high)
		VPSLLQ(U8(32), high, high)
		VPMULUDQ(by, least, least)
		VPADDQ(high, least, least)
	}
	VPADDQ(least, sum, sum)
	ADDQ(U8(4), row)
	JMP(LabelRef("rows"))

	Label("done")
	Store(across(sum, func(a, b, c Op) { VPADDQ(a, b, c) }), ReturnIndex(0))
	Store(across(any, VPOR), ReturnIndex(1))
	if weighted {
		Store(across(anyWeight, VPOR), ReturnIndex(2))
	}
	VZEROUPPER()
	RET()
}

// blockCovers is the loop of vecpack.coverBlock for four words at a time.
func blockCovers() {
	TEXT("blockCovers", NOSPLIT, "func(word *uint64, want uint64) (set uint64, most uint64)")
	Pragma("noescape")
	Doc("blockCovers tells which of 64 packed words cover another, and the most of them in each lane.")
	at, want := Load(Param("word"), GP64()), Load(Param("want"), GP64())
	spare, less, most := YMM(), YMM(), YMM()
	everywhere(0x8000800080008000, spare)
	VMOVQ(want, less.AsX())
	VPBROADCASTQ(less.AsX(), less)
	VPXOR(most, most, most)
	set, n := GP64(), GP64()
	XORQ(set, set)
	MOVQ(U64(16), n)
	Label("fours")
	have, four := YMM(), GP64()
	VMOVDQU(Mem{Base: at}, have)
	VPMAXUW(have, most, most)
	VPOR(spare, have, have)
	VPSUBQ(less, have, have)
	VPAND(spare, have, have)
	VPCMPEQQ(spare, have, have)
	VMOVMSKPD(have, four.As32())
	SHRQ(U8(4), set)
	SHLQ(U8(60), four)
	ORQ(four, set)
	ADDQ(U8(32), at)
	DECQ(n)
	JNE(LabelRef("fours"))
	Store(set, ReturnIndex(0))
	Store(across(most, func(a, b, c Op) { VPMAXUW(a, b, c) }), ReturnIndex(1))
	VZEROUPPER()
	RET()
}

// keyLoop is the loop of vecpack.Keys for four vectors of one word at a time. Products of coordinates below 2¹⁰ are
// summed in whole numbers; the quotient is one of floats, which is exact as vecpack.keysOfFours explains.
func keyLoop() {
	TEXT("keyLoop", NOSPLIT, "func(dst *uint32, have *uint64, rows int, want uint64, length float64)")
	Pragma("noescape")
	Doc("keyLoop writes the keys of some vectors of one word, a number of them that 4 divides. Length is want².")
	dst, have, rows := Load(Param("dst"), GP64()), Load(Param("have"), GP64()), Load(Param("rows"), GP64())
	want, length := YMM(), YMM()
	word := Load(Param("want"), GP64())
	VMOVQ(word, want.AsX())
	VPBROADCASTQ(want.AsX(), want)
	float := Load(Param("length"), XMM())
	VBROADCASTSD(float, length)
	big, one, ones, low, most, scale := YMM(), YMM(), YMM(), YMM(), YMM(), YMM()
	everywhere(0x4330000000000000, big)   // 2⁵²
	everywhere(0x3ff0000000000000, one)   // 1
	everywhere(0x4080000000000000, scale) // 512
	everywhere(0x0001000100010001, ones)
	everywhere(0x00000000ffffffff, low)
	everywhere(1<<14-1, most)

	Label("vectors")
	CMPQ(rows, U8(0))
	JE(LabelRef("end"))
	vector, dot, square, sum, high := YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: have}, vector)
	across := func(with, into reg.VecVirtual) { // the sum of the products of four lanes, in 64 bits
		VPMADDWD(with, vector, into)
		VPSRLQ(U8(32), into, high)
		VPADDD(high, into, into)
		VPAND(low, into, into)
	}
	across(want, dot)
	across(vector, square)
	across(ones, sum)
	for _, whole := range []reg.VecVirtual{dot, square} {
		VPOR(big, whole, whole)
		VSUBPD(big, whole, whole)
	}
	VMULPD(dot, dot, dot)
	VMULPD(scale, dot, dot)
	VMULPD(length, square, square)
	VMAXPD(one, square, square) // where it is 0, the dividend is 0 too
	VDIVPD(square, dot, dot)
	VROUNDPD(U8(9), dot, dot) // down
	VADDPD(big, dot, dot)
	VPXOR(big, dot, dot)
	VPSLLQ(U8(14), dot, dot)
	VPSUBQ(sum, most, sum)
	VPOR(sum, dot, dot)
	half := XMM()
	VEXTRACTI128(U8(1), dot, half)
	VSHUFPS(U8(0x88), half, dot.AsX(), half)
	VMOVDQU(half, Mem{Base: dst})
	ADDQ(U8(32), have)
	ADDQ(U8(16), dst)
	SUBQ(U8(4), rows)
	JMP(LabelRef("vectors"))
	Label("end")
	VZEROUPPER()
	RET()
}

// everywhere puts bits into all lanes of a register.
func everywhere(bits uint64, into reg.VecVirtual) {
	one := GP64()
	MOVQ(U64(bits), one)
	VMOVQ(one, into.AsX())
	VPBROADCASTQ(into.AsX(), into)
}

// across folds the four lanes of a register into one.
func across(four reg.VecVirtual, fold func(a, b, c Op)) reg.Register {
	two, one := XMM(), GP64()
	VEXTRACTI128(U8(1), four, two)
	fold(four.AsX(), two, two)
	other := XMM()
	VPSHUFD(U8(0x4e), two, other)
	fold(other, two, two)
	VMOVQ(two, one)
	return one
}
