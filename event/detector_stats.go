package event

// Count is a number of things of one kind.
type Count struct {
	Name string
	N    uint64
}

// DetectorStats is what the detector says of its own limits.
type DetectorStats struct {
	// Ignored events by reason, Freed entries and the Entries in use by table.
	// Counts are since the start and monotonic, but for Entries.
	Ignored, Freed, Entries []Count
	// ClockSteps counts how often the clock was set by a minute or more.
	ClockSteps uint64
}
