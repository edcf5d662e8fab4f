// Package draw is the hand in which this project's plots are drawn.
//
// In: a gonum plot and its legend. Out: SVG and PNG. The same plot gives the
// same bytes: fonts are part of the program. The colours are those of Okabe and
// Ito, which all kinds of colour vision tell apart; dashes say the same again.
package draw
