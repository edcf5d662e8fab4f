package llamalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// stateVersion is raised when an older program could misread a state.
const stateVersion = 1

// A state is what a follower needs to go on: where it is in which file, and
// what the parser knows there. It holds no text of the log.
type state struct {
	Version int    `json:"version"`
	Path    string `json:"path"`
	identity
	Offset  int64           `json:"offset"`
	Mark    mark            `json:"mark"`
	SavedNS int64           `json:"saved_ns"`
	Parser  json.RawMessage `json:"parser"`
}

var errState = errors.New("state of a log")

func parseState(raw []byte) (*state, error) {
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("%w: version %d, not %d", errState, s.Version, stateVersion)
	}
	if s.Offset < 0 || s.SavedNS <= 0 {
		return nil, fmt.Errorf("%w: offset %d, saved at %d", errState, s.Offset, s.SavedNS)
	}
	return &s, nil
}

// saveIfDue notes the place once a second while the log grows.
func (f *Follower) saveIfDue(now time.Time) {
	if f.dirty && now.Sub(f.savedAt) >= saveEvery {
		f.save(now)
	}
}

// save notes the place: the beginning of the line not yet whole.
func (f *Follower) save(now time.Time) {
	if f.hooks.Save == nil || f.source == nil || f.source.fifo {
		return
	}
	f.savedAt, f.dirty = now, false
	offset := f.source.offset - f.parser.pending()
	m, err := f.source.markAt(offset)
	if err != nil {
		f.aside("state_not_saved", err)
		return
	}
	parser, err := json.Marshal(f.parser.snapshot())
	if err != nil {
		f.aside("state_not_saved", err)
		return
	}
	raw, err := json.Marshal(state{
		Version: stateVersion, Path: f.config.Path, identity: f.source.identity,
		Offset: offset, Mark: m, SavedNS: now.UnixNano(), Parser: parser,
	})
	if err == nil {
		err = f.hooks.Save(raw)
	}
	f.aside("state_not_saved", err)
}
