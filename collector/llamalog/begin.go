package llamalog

import (
	"time"
)

// begin makes s the source and sets where reading begins.
func (f *Follower) begin(s *source) error {
	if f.parser == nil {
		f.parser = f.newParser(s.fifo || f.missed)
	}
	if s.fifo {
		f.source = s
		return nil
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	saved := f.loaded
	f.loaded = nil
	switch {
	case saved != nil:
		f.oldTo, f.oldNS = info.Size(), info.ModTime().UnixNano()
		if s.identity == saved.identity && info.Size() >= saved.Offset {
			if err := s.seek(saved.Offset); err == nil && s.mark == saved.Mark {
				f.source = s
				return nil
			}
		}
		// Another file bears the name, or the old one begins anew: first what
		// was left unread, then this from its beginning.
		if rotated := findRotated(f.config.Path, saved.identity, saved.Offset, saved.Mark); rotated != nil {
			f.source = rotated
			_ = s.file.Close()
			if info, err := rotated.file.Stat(); err == nil {
				f.oldTo, f.oldNS = info.Size(), info.ModTime().UnixNano()
			}
			return nil
		}
		f.parser.dropLine()
		err = s.seek(s.firstData())
	case f.missed:
		err = s.seek(s.firstData())
	default:
		f.learn(s)
		f.parser.raw.skip = s.endsInLine(info.Size())
		err = s.seek(info.Size())
	}
	f.source = s
	if err != nil {
		f.source = nil
	}
	f.dirty = true
	return err
}

// learn reads the head of a log, where an engine says which model it loads.
// The requests there are not told.
func (f *Follower) learn(s *source) {
	n, _ := s.file.ReadAt(f.buf, 0)
	head := f.newParser(true)
	head.Feed(f.buf[:n], f.hooks.now().UnixNano())
	f.parser.learn(head)
}

// resumeRotated: the name is gone for now, what it meant may be read on.
func (f *Follower) resumeRotated() *source {
	if f.loaded == nil || f.searched {
		return nil
	}
	f.searched = true
	s := findRotated(f.config.Path, f.loaded.identity, f.loaded.Offset, f.loaded.Mark)
	if s == nil {
		return nil
	}
	info, err := s.file.Stat()
	if err != nil {
		_ = s.file.Close()
		return nil
	}
	f.oldTo, f.oldNS = info.Size(), info.ModTime().UnixNano()
	f.loaded, f.grewAt = nil, f.hooks.now()
	return s
}

// load reads the state once. One of another log, or older than maxGap, is none.
func (f *Follower) load() {
	if f.tried || f.hooks.Load == nil {
		return
	}
	f.tried = true
	raw, err := f.hooks.Load()
	if err != nil || len(raw) == 0 {
		f.aside("bad_state", err)
		return
	}
	saved, err := parseState(raw)
	if err == nil && saved.Path == f.config.Path {
		age := f.hooks.now().Sub(time.Unix(0, saved.SavedNS))
		parser := f.newParser(false)
		if err = parser.restore(saved.Parser); err == nil && age < maxGap && age > -maxGap {
			f.loaded, f.parser = saved, parser
		}
	}
	f.aside("bad_state", err)
}

func (f *Follower) newParser(whole bool) *Parser {
	return NewParser(Config{Name: f.config.Name, Model: f.config.Model}, whole)
}
