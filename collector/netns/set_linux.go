package netns

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"grayfail/event"
)

// Config of a Set. Zero values mean the defaults.
type Config struct {
	Names     []string      // configured names in /run/netns
	Auto      bool          // also the namespaces of processes that own a watched socket
	Max       int           // namespaces besides our own, default 64
	ScanEvery time.Duration // how often /proc is walked in auto mode, default 5 s

	runDir, procDir string // tests
}

// Set is the namespaces being watched: our own, the configured ones and, in
// auto mode, those that were found to hold a watched socket. Safe for
// concurrent use.
//
// A tick goes: Look says where to look for sockets, the caller reads them
// there and hands the namespaces that had any to Adopt, which answers with the
// ones to watch.
type Set struct {
	mu      sync.Mutex
	cfg     Config
	own     Namespace
	named   map[string]Namespace // configured and present
	adopted map[uint32]Namespace
	known   map[uint32]found // of the last walk, without own
	cursor  uint32           // inode after which the next candidates start
	scanned bool
	scanNS  int64
	walk    []event.Problem // what the last walk could not do

	vanished, overflow uint64
}

// NewSet returns a Set; nothing is opened before Look.
func NewSet(cfg Config) *Set {
	return &Set{
		cfg:     withDefaults(cfg),
		named:   make(map[string]Namespace),
		adopted: make(map[uint32]Namespace),
		known:   make(map[uint32]found),
	}
}

func withDefaults(cfg Config) Config {
	cfg.Max = cmp.Or(cfg.Max, 64)
	cfg.ScanEvery = cmp.Or(cfg.ScanEvery, 5*time.Second)
	cfg.runDir = cmp.Or(cfg.runDir, RunDir)
	cfg.procDir = cmp.Or(cfg.procDir, "/proc")
	return cfg
}

// SetConfig replaces the configuration: names that left it are dropped, and
// so is everything found by itself when Auto is off.
func (s *Set) SetConfig(cfg Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = withDefaults(cfg)
	maps.DeleteFunc(s.named, func(name string, _ Namespace) bool { return !slices.Contains(cfg.Names, name) })
	if !cfg.Auto {
		clear(s.adopted)
		clear(s.known)
		s.walk = nil
	}
	s.scanned = false
}

// Look gives the namespaces to look into for watched sockets: all watched
// ones and, when a walk over /proc was due, the next others that processes
// run in (at most Max at a time; the rest follow with the next walks).
func (s *Set) Look(nowNS int64) ([]Namespace, []event.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems []event.Problem
	if s.own.Inode == 0 {
		own, err := Own()
		if err != nil {
			problems = append(problems, event.Problem{Reason: ReasonFailed, Detail: err.Error()})
		}
		s.own = own
	}
	problems = append(problems, s.resolveNames()...)
	var candidates []Namespace
	if s.cfg.Auto {
		if s.due(nowNS) {
			s.walk = s.rescan(nowNS)
			candidates = s.candidates()
		}
		problems = append(problems, s.walk...)
	}
	return append(s.watched(), candidates...), problems
}

// resolveNames opens the configured names once more: a namespace may have
// been removed, or made anew under the same name.
func (s *Set) resolveNames() (problems []event.Problem) {
	for _, name := range s.cfg.Names {
		before, had := s.named[name]
		ns, err := byName(s.cfg.runDir, name)
		if had && (err != nil || ns.Inode != before.Inode) {
			s.vanished++
			delete(s.named, name)
		}
		switch {
		case err != nil:
			if p, bad := Problem(name, err); bad {
				problems = append(problems, p)
			}
		case ns.Inode == s.own.Inode || s.sameAs(ns):
			// Our own namespace, or one with two names: watched already.
		case !had && len(s.named) >= s.cfg.Max:
			s.overflow++
			problems = append(problems, event.Problem{Reason: ReasonOverflow,
				Detail: fmt.Sprintf("network namespace %q: more than %d namespaces are configured", name, s.cfg.Max)})
		default:
			s.named[name] = ns
			delete(s.adopted, ns.Inode)
		}
	}
	return problems
}

// sameAs says whether ns is also configured under another name.
func (s *Set) sameAs(ns Namespace) bool {
	for name, other := range s.named {
		if name != ns.Name && other.Inode == ns.Inode {
			return true
		}
	}
	return false
}

// due says whether /proc has to be walked: on time, or because the process
// through which a namespace was reached has ended.
func (s *Set) due(nowNS int64) bool {
	if !s.scanned || nowNS < s.scanNS || nowNS-s.scanNS >= int64(s.cfg.ScanEvery) {
		return true
	}
	for inode, ns := range s.adopted {
		if st, err := stat(ns.Path); err != nil || uint32(st.Ino) != inode {
			return true
		}
	}
	return false
}

// rescan walks /proc, drops adopted namespaces that have ended and finds a
// living process for the others.
func (s *Set) rescan(nowNS int64) (problems []event.Problem) {
	s.scanned, s.scanNS = true, nowNS
	walk, err := scanProc(s.cfg.procDir)
	if err != nil {
		return []event.Problem{{Reason: ReasonFailed, Detail: "looking for network namespaces of processes: " + err.Error()}}
	}
	if walk.denied > 0 && !HasPtrace() {
		problems = append(problems, event.Problem{Reason: ReasonNoPermission, Detail: fmt.Sprintf(
			"the network namespaces of %d of %d processes cannot be read: that needs CAP_SYS_PTRACE", walk.denied, walk.processes)})
	}
	delete(walk.namespaces, s.own.Inode)
	s.known = walk.namespaces
	names := runNames(s.cfg.runDir)
	for inode, ns := range s.adopted {
		if f, alive := s.known[inode]; alive {
			ns.Path = f.path
			if names[inode] == ns.Name {
				ns.Path = s.cfg.runDir + "/" + ns.Name
			}
			s.adopted[inode] = ns
		} else {
			delete(s.adopted, inode)
			s.vanished++
		}
	}
	return problems
}

// candidates are the next namespaces not watched yet, in order of inode and
// going round, so that a host with hundreds of containers is covered in turn.
func (s *Set) candidates() []Namespace {
	var inodes []uint32
	for inode := range s.known {
		if !s.isWatched(inode) {
			inodes = append(inodes, inode)
		}
	}
	slices.Sort(inodes)
	start, _ := slices.BinarySearch(inodes, s.cursor+1)
	inodes = append(inodes[start:], inodes[:start]...)
	inodes = inodes[:min(len(inodes), s.cfg.Max)]
	out := make([]Namespace, 0, len(inodes))
	for _, inode := range inodes {
		f := s.known[inode]
		out = append(out, Namespace{Name: processName(s.cfg.procDir, f.pid), Inode: inode, Path: f.path})
		s.cursor = inode
	}
	return out
}

func (s *Set) isWatched(inode uint32) bool {
	if _, yes := s.adopted[inode]; yes || inode == s.own.Inode {
		return true
	}
	for _, ns := range s.named {
		if ns.Inode == inode {
			return true
		}
	}
	return false
}

// Owner is a process with a watched socket and the namespace of that socket.
type Owner struct {
	Inode uint32
	PID   int // 0 where it could not be found out
}

// OwnersOf gives one owner for each namespace in which a process holds one of
// the sockets: leftovers like TIME-WAIT belong to nobody.
func OwnersOf(sockets []event.TCPSocket) []Owner {
	pids := make(map[uint32]int)
	for i := range sockets {
		f := &sockets[i].Flow
		if sockets[i].Inode == 0 {
			continue
		}
		if pid, seen := pids[f.NetnsInode]; !seen || pid == 0 {
			pids[f.NetnsInode] = f.PID
		}
	}
	owners := make([]Owner, 0, len(pids))
	for inode, pid := range pids {
		owners = append(owners, Owner{inode, pid})
	}
	slices.SortFunc(owners, func(a, b Owner) int { return cmp.Compare(a.Inode, b.Inode) })
	return owners
}

// Adopt makes the namespaces of owners watched ones (auto mode; one stays
// watched as long as it exists) and returns all watched namespaces, our own
// first, the others by name.
func (s *Set) Adopt(owners []Owner) []Namespace {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range owners {
		f, known := s.known[o.Inode]
		if !s.cfg.Auto || !known || s.isWatched(o.Inode) {
			continue
		}
		if len(s.named)+len(s.adopted) >= s.cfg.Max {
			s.overflow++
			continue
		}
		if o.PID == 0 {
			o.PID = f.pid
		}
		s.adopted[o.Inode] = s.name(o, f.path)
	}
	return s.watched()
}

// name gives an adopted namespace the name that stays with it: that in
// /run/netns, else the name of the process that owns the socket ("rpc-server"
// tells an operator more than a number, and survives a restart of the
// container), with its process id only where two would be called the same.
func (s *Set) name(o Owner, path string) Namespace {
	ns := Namespace{Name: processName(s.cfg.procDir, o.PID), Inode: o.Inode, Path: path}
	if name, ok := runNames(s.cfg.runDir)[o.Inode]; ok {
		ns.Name, ns.Path = name, s.cfg.runDir+"/"+name
	}
	if s.taken(ns.Name) {
		ns.Name += ":" + strconv.Itoa(o.PID)
	}
	return ns
}

func (s *Set) taken(name string) bool {
	if slices.Contains(s.cfg.Names, name) {
		return true
	}
	for _, ns := range s.adopted {
		if ns.Name == name {
			return true
		}
	}
	return false
}

// watched lists our own namespace and all others by name.
func (s *Set) watched() []Namespace {
	out := make([]Namespace, 0, 1+len(s.named)+len(s.adopted))
	for _, ns := range s.named {
		out = append(out, ns)
	}
	for _, ns := range s.adopted {
		out = append(out, ns)
	}
	slices.SortFunc(out, func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
	if s.own.Inode != 0 {
		out = slices.Insert(out, 0, s.own)
	}
	return out
}

// Vanished counts watched namespaces that ended.
func (s *Set) Vanished() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vanished
}

// Overflow counts tries to watch more than Max namespaces.
func (s *Set) Overflow() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overflow
}
