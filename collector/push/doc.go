// Package push takes request records over HTTP.
//
// In: POST bodies of one JSON object or JSON lines. Out: event.Request values
// and an answer that says what was taken and, line by line, what was not.
package push
