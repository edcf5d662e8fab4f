package event

// Intake is what became of the records that others sent to one source, since
// the start.
type Intake struct {
	Source  string
	Results []Count
}
