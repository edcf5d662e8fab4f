package event

import "net/netip"

// Snapshot is the state of everything that is sampled, taken at one tick and
// handed to export. It is immutable once published: whoever made it never
// writes to it or to anything it points to again, so that any number of
// scrapes may read it without a lock. What could not be read is left out; an
// empty slice says that there is nothing.
type Snapshot struct {
	TimeNS int64
	// Legs holds every leg of the table, one value a name; a leg that the
	// table has dropped is not here, and disappears from the scrape.
	Legs   []Leg
	Qdiscs []Qdisc
	// RDMA is the last reading of the RDMA devices; nil while there is none.
	RDMA *RDMA
	// Baselines holds every stratum; which of them are exported is export's
	// decision.
	Baselines []Baseline
	// Episodes holds the open ones (EndNS 0) and the most recent closed ones.
	// It is the truth about which are open.
	Episodes     []Episode
	Correlations []Correlation
	Statuses     []Status
	Detector     DetectorStats
	Intake       []Intake
	InFlight     []InFlight
	// HostAddresses are the unicast addresses of this host in the namespaces
	// being watched: other hosts' legs are joined with them.
	HostAddresses []netip.Addr
	// SeriesOverflow counts what producers had to put under another name
	// because one of their tables was full; since the start, monotonic.
	SeriesOverflow uint64
	ConfigReload   ConfigReload
}

// InFlight is how many requests a source is serving now.
type InFlight struct {
	Source, Model string
	Requests      int
}

// ConfigReload is what the last attempt to load the configuration came to;
// loading at start counts as an attempt.
type ConfigReload struct {
	Successful bool
	// TimeNS is when a load last succeeded; 0 means none has.
	TimeNS int64
}
