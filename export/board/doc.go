// Package board draws the page at /: what is slow, which leg ate the time,
// since when, why we think so and what to look at next.
//
// In comes a Page, made by package export from the same snapshot and rows that
// the API answers from; out goes HTML. The page is whole without a script; with
// one, /board/events keeps it current, section by section. It needs nothing
// from outside, and a browser is told to load nothing from there.
package board
