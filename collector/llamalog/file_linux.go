package llamalog

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// An identity is what stays of a file when it is renamed.
type identity struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// A source is an open log.
type source struct {
	file *os.File
	identity
	fifo bool
	// waits: reads wait for a writer's bytes, up to a deadline.
	waits bool
	// offset is where the next read begins, and mark what the file held before
	// it then.
	offset int64
	mark   mark
}

// A mark tells whether a file still holds before an offset what it held: the
// hash of its first bytes and of those just before the offset.
type mark [16]byte

// markBytes from each end. A log's lines begin with a time or a task's number.
const markBytes = 256

var errNotALog = errors.New("neither a file nor a named pipe")

// openSource opens path for reading at offset 0.
func openSource(path string) (*source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	s := &source{}
	switch info.Mode().Type() {
	case 0:
		s.file, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	case fs.ModeNamedPipe:
		s.fifo, s.waits = true, true
		// With a writer of our own the pipe has no end when the engine's goes.
		s.file, err = os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrPermission) {
			s.waits = false
			s.file, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		}
	default:
		err = &fs.PathError{Op: "open", Path: path, Err: errNotALog}
	}
	if err != nil {
		return nil, err
	}
	opened, err := s.file.Stat()
	if err == nil && opened.Mode().Type() != info.Mode().Type() {
		err = fmt.Errorf("%s: changed while it was opened", path)
	}
	if err != nil {
		_ = s.file.Close()
		return nil, err
	}
	s.identity = identityOf(opened)
	return s, nil
}

func identityOf(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{Device: st.Dev, Inode: st.Ino}
}

// removed: no name leads to the file any more.
func (s *source) removed() bool {
	info, err := s.file.Stat()
	if err != nil {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

// markAt reads what stands before offset.
func (s *source) markAt(offset int64) (mark, error) {
	n := min(offset, markBytes)
	buf := make([]byte, 2*n)
	if n > 0 {
		if _, err := s.file.ReadAt(buf[:n], 0); err != nil {
			return mark{}, err
		}
		if _, err := s.file.ReadAt(buf[n:], offset-n); err != nil {
			return mark{}, err
		}
	}
	sum := sha256.Sum256(buf)
	return mark(sum[:len(mark{})]), nil
}

// seek makes offset the place where the next read begins.
func (s *source) seek(offset int64) (err error) {
	s.offset = offset
	s.mark, err = s.markAt(offset)
	return err
}

// rewritten: what stood before the offset is not there any more.
func (s *source) rewritten(size int64) bool {
	if size < s.offset {
		return true
	}
	m, err := s.markAt(s.offset)
	return errors.Is(err, io.EOF) || err == nil && m != s.mark
}

// firstData is where a file begins that was truncated under its writer: one
// that does not append goes on at its old offset and leaves a hole before it.
func (s *source) firstData() int64 {
	// The file's own offset is not used otherwise: reads say theirs.
	at, err := unix.Seek(int(s.file.Fd()), 0, unix.SEEK_DATA)
	if err != nil {
		return 0 // ENXIO: empty; EINVAL: a file system without holes
	}
	return at
}

// endsInLine: the last byte before offset is no newline.
func (s *source) endsInLine(offset int64) bool {
	if offset == 0 {
		return false
	}
	var last [1]byte
	_, err := s.file.ReadAt(last[:], offset-1)
	return err == nil && last[0] != '\n'
}

// maxSiblings bounds the search for a rotated log.
const maxSiblings = 4096

// findRotated looks beside path for the file that it was, renamed: names that
// begin with path's, as logrotate and Docker make them.
func findRotated(path string, id identity, offset int64, m mark) *source {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxSiblings)
	base := filepath.Base(path)
	stem := strings.TrimSuffix(base, filepath.Ext(base))
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), stem) {
			continue
		}
		info, err := e.Info()
		if err != nil || identityOf(info) != id || info.Size() < offset {
			continue
		}
		s, err := openSource(filepath.Join(filepath.Dir(path), e.Name()))
		if err != nil {
			continue
		}
		if err := s.seek(offset); err == nil && s.identity == id && s.mark == m {
			return s
		}
		_ = s.file.Close()
	}
	return nil
}
