package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
)

// line is a curve of a chart: a value above 0 for each x.
type line struct {
	name, colour string
	y            []float64
}

// chart is curves over common x, both axes by powers of ten.
type chart struct {
	title, xName, yName string
	x                   []float64
	lines               []line
}

// The picture's size, and where in it the axes are.
const (
	width, height            = 560.0, 320.0
	left, right, top, bottom = 64.0, 470.0, 36.0, 272.0
)

// axis places values between two powers of ten.
type axis struct{ low, high, from, to float64 }

// axisOf spans the powers of ten that contain all values.
func axisOf(from, to float64, values ...[]float64) axis {
	least, most := math.Inf(1), math.Inf(-1)
	for _, column := range values {
		for _, v := range column {
			least, most = min(least, math.Log10(v)), max(most, math.Log10(v))
		}
	}
	low, high := math.Floor(least), math.Ceil(most)
	if low == high {
		high++
	}
	return axis{low, high, from, to}
}

func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

// write draws the chart as SVG.
func (c *chart) write(w io.Writer) error {
	var ys [][]float64
	for _, l := range c.lines {
		ys = append(ys, l.y)
	}
	x, y := axisOf(left, right, c.x), axisOf(bottom, top, ys...)
	b := &errWriter{w: w}
	b.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `, width, height)
	b.f(`font-family="sans-serif" font-size="12">`)
	b.f(`<rect width="%g" height="%g" fill="white"/>`, width, height)
	b.f(`<text x="%g" y="20" font-size="14">%s</text>`, left, c.title)
	for p := x.low; p <= x.high; p++ {
		at := x.at(math.Pow(10, p))
		b.f(`<path d="M%.1f %gV%g" stroke="#ddd"/>`, at, top, bottom)
		b.f(`<text x="%.1f" y="%g" text-anchor="middle">%s</text>`, at, bottom+16, power(p))
	}
	for p := y.low; p <= y.high; p++ {
		at := y.at(math.Pow(10, p))
		b.f(`<path d="M%g %.1fH%g" stroke="#ddd"/>`, left, at, right)
		b.f(`<text x="%g" y="%.1f" text-anchor="end">%s</text>`, left-6, at+4, power(p))
	}
	b.f(`<text x="%g" y="%g" text-anchor="middle">%s</text>`, (left+right)/2, height-10, c.xName)
	b.f(`<text transform="translate(16 %g) rotate(-90)" text-anchor="middle">%s</text>`, (top+bottom)/2, c.yName)
	label := math.Inf(-1) // where the last name stands: one that would be over it goes below
	for _, l := range c.lines {
		b.f(`<path fill="none" stroke="%s" stroke-width="2" d="`, l.colour)
		for i, v := range l.y {
			b.f(`%s%.1f %.1f`, map[bool]string{true: "M", false: "L"}[i == 0], x.at(c.x[i]), y.at(v))
		}
		b.f(`"/>`)
		for i, v := range l.y {
			b.f(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x.at(c.x[i]), y.at(v), l.colour)
		}
		last := len(l.y) - 1
		at := y.at(l.y[last]) + 4
		if math.Abs(at-label) < 13 {
			at = label + 13
		}
		label = at
		b.f(`<text x="%.1f" y="%.1f" fill="%s">%s</text>`, x.at(c.x[last])+8, at, l.colour, l.name)
	}
	b.f("</svg>\n")
	return b.err
}

// power writes a power of ten.
func power(p float64) string { return strconv.FormatFloat(math.Pow(10, p), 'g', 10, 64) }

// errWriter keeps the first error.
type errWriter struct {
	w   io.Writer
	err error
}

func (b *errWriter) f(format string, args ...any) {
	if b.err == nil {
		_, b.err = fmt.Fprintf(b.w, format, args...)
	}
}
