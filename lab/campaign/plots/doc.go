// Package plots draws the distributions behind a campaign's table.
//
// In: report.Results. Out: a strip plot (every request is a point) and the
// empirical distribution function of each condition, as SVG and PNG. The same
// results give the same bytes: fonts are part of the program, points are spread
// by their number and not by chance. The colours are those of Okabe and Ito,
// which all kinds of colour vision tell apart; shapes and dashes say the same
// again.
package plots
