package export

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"grayfail/event"
	"grayfail/internal/bound"
)

// maxDetailRunes bounds text that is no name.
const maxDetailRunes = 512

// Lines about requests are limited: whoever may push 10,000 requests a second
// must not fill the disk. A line after a gap says how many were left out.
const (
	linesPerSecond = 100
	lineBurst      = 200
)

// Log writes what changed: one line (warn) when the verdict of a source,
// model and phase turns from ok to slow or back, one (warn) when an episode
// opens or closes, one when a collector's problem comes (warn) or goes (info),
// and one (info) for every further slow request. Safe for concurrent use.
//
// Text from outside is cleaned before it goes into a line: zerolog's console
// form prints messages as they are, and a model name with a newline in it
// would start a line of its own.
type Log struct {
	log     zerolog.Logger
	now     func() time.Time // of the rate limit
	limit   *rate.Limiter
	mu      sync.Mutex
	names   *bound.Names
	slow    map[logKey]string // whom the last slow row blames; absent while ok
	problem map[problemKey]struct{}
	eroded  map[erodedKey]struct{}
	skipped uint64
}

type logKey struct {
	name  string // source and model
	phase event.Phase
}

type problemKey struct{ collector, reason string }

// NewLog returns a Log that writes to log.
func NewLog(log zerolog.Logger) *Log {
	return &Log{
		log: log, now: time.Now,
		limit:   rate.NewLimiter(linesPerSecond, lineBurst),
		names:   bound.New(maxPairs),
		slow:    make(map[logKey]string),
		problem: make(map[problemKey]struct{}),
		eroded:  make(map[erodedKey]struct{}),
	}
}

// Row notes the verdict on one phase of one request. Unknown changes nothing:
// it is not a verdict that anything is well.
func (l *Log) Row(r event.Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := logKey{l.names.Admit(label(r.Source) + "\x00" + label(r.Model)), r.Phase}
	before, wasSlow := l.slow[key]
	switch r.Verdict {
	case event.VerdictSlow:
		l.slow[key] = blame(r.Cause, r.Leg)
		level := zerolog.WarnLevel
		if wasSlow {
			level = zerolog.InfoLevel
		}
		if e := l.line(level); e != nil {
			rowFields(e, r).Msg(slowText(r))
		}
	case event.VerdictOK:
		if !wasSlow {
			return
		}
		delete(l.slow, key)
		if e := l.line(zerolog.WarnLevel); e != nil {
			rowFields(e, r).Msg(okText(r, before))
		}
	}
}

// EpisodeOpened notes that a run of slow requests has begun.
func (l *Log) EpisodeOpened(ep event.Episode) {
	l.episode(ep, "episode opened")
}

// EpisodeClosed notes that it is over.
func (l *Log) EpisodeClosed(ep event.Episode) {
	lasted := time.Duration(ep.EndNS - ep.StartNS).Seconds()
	l.episode(ep, "episode closed after "+seconds(lasted))
}

func (l *Log) episode(ep event.Episode, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.line(zerolog.WarnLevel)
	if e == nil {
		return
	}
	e.Str("source", label(ep.Source)).Str("model", label(ep.Model)).Str("phase", label(string(ep.Phase))).
		Str("cause", label(string(ep.Cause))).Str("leg", label(ep.Leg)).
		Int("slow", ep.Slow).Int("requests", ep.Requests).
		Msgf("%s: %s, %d slow of %d requests", what, blame(ep.Cause, ep.Leg), ep.Slow, ep.Requests)
}

type erodedKey struct{ source, model, phase, concurrency string }

// Baselines notes which of them have begun to erode since the call before
// (warn), and which no longer do (info).
func (l *Log) Baselines(all []event.Baseline) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range all {
		b := &all[i]
		key := erodedKey{label(b.Source), label(b.Model), label(string(b.Phase)), label(b.Concurrency)}
		_, known := l.eroded[key]
		if b.Eroded == known || !known && len(l.eroded) >= maxPairs {
			continue
		}
		level, text := zerolog.WarnLevel, "baseline eroded: the usual rate has decayed below 0.8 of its anchor; find what eats it, or adopt it"
		if known {
			delete(l.eroded, key)
			level, text = zerolog.InfoLevel, "baseline is no longer eroded"
		} else {
			l.eroded[key] = struct{}{}
		}
		if e := l.line(level); e != nil {
			e.Str("source", key.source).Str("model", key.model).Str("phase", key.phase).Str("concurrency", key.concurrency).
				Float64("baseline", b.Rate).Float64("anchor", b.Anchor).Msg(text)
		}
	}
}

// Statuses notes which problems of collectors came and went since the call
// before.
func (l *Log) Statuses(statuses []event.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := make(map[problemKey]struct{})
	for i := range statuses {
		s := &statuses[i]
		for _, p := range s.Problems {
			key := problemKey{label(s.Collector), label(p.Reason)}
			if _, twice := now[key]; twice {
				continue
			}
			now[key] = struct{}{}
			if _, known := l.problem[key]; known {
				continue
			}
			l.log.Warn().Str("collector", key.collector).Str("reason", key.reason).
				Str("detail", sentence(p.Detail)).
				Msgf("collector %s: %s: %s", key.collector, key.reason, sentence(p.Detail))
		}
	}
	for key := range l.problem {
		if _, still := now[key]; !still {
			l.log.Info().Str("collector", key.collector).Str("reason", key.reason).
				Msgf("collector %s: %s is over", key.collector, key.reason)
		}
	}
	l.problem = now
}

// line starts a line unless there have been too many of late.
func (l *Log) line(level zerolog.Level) *zerolog.Event {
	if level < l.log.GetLevel() || level < zerolog.GlobalLevel() {
		return nil
	}
	if !l.limit.AllowN(l.now(), 1) {
		l.skipped++
		return nil
	}
	e := l.log.WithLevel(level)
	if l.skipped > 0 {
		e = e.Uint64("lines_left_out", l.skipped)
		l.skipped = 0
	}
	return e
}
