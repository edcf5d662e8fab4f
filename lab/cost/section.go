package cost

import "time"

// Section is one comparison, measured in one run.
type Section struct {
	ID    string `json:"id"` // also names its plots
	Title string `json:"title"`
	// Method says how it was measured, in Markdown.
	Method  string        `json:"method"`
	Machine Machine       `json:"machine"`
	Took    time.Duration `json:"took_ns"`
	Tables  []Table       `json:"tables,omitempty"`
	Targets []Target      `json:"targets,omitempty"`
	Curves  []Curve       `json:"curves,omitempty"`
	Series  []Series      `json:"series,omitempty"`
}

// Machine is where and under what load a section was measured.
type Machine struct {
	Date     string `json:"date"` // UTC, to the minute
	Revision string `json:"revision"`
	Kernel   string `json:"kernel"`
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	Go       string `json:"go"`
	// LoadBefore and LoadAfter are the load averages of one minute. The first
	// is other people's work, the second has our own in it.
	LoadBefore float64 `json:"load_before"`
	LoadAfter  float64 `json:"load_after"`
}

// Table of figures; the first column names the row.
type Table struct {
	Title  string     `json:"title"`
	Header []string   `json:"header"`
	Rows   [][]string `json:"rows"`
	Note   string     `json:"note,omitempty"`
}

// Target is one line of the contract.
type Target struct {
	What string `json:"what"`
	Aim  string `json:"aim"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
	Why  string `json:"why,omitempty"` // where it is not met
}

// Curve is a cost against its size. Growth is judged by it.
type Curve struct {
	Name string `json:"name"` // "scrape"
	Size string `json:"size"` // what X counts: "legs"
	Unit string `json:"unit"` // of Y
	// Reference curves are somebody else's: drawn, not judged.
	Reference bool    `json:"reference,omitempty"`
	Points    []Point `json:"points"`
}

// Series is a value over time.
type Series struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Points []Point `json:"points"` // X in seconds
}

// Point of a curve or a series.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}
