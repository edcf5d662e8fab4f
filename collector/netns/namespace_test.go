package netns

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"grayfail/event"
)

func TestParseLink(t *testing.T) {
	for _, tt := range []struct {
		target string
		inode  uint32
		ok     bool
	}{
		{"net:[4026531840]", 4026531840, true},
		{"net:[1]", 1, true},
		{"net:[4294967296]", 0, false},
		{"net:[0]", 0, false},
		{"net:[-1]", 0, false},
		{"net:[]", 0, false},
		{"net:[12", 0, false},
		{"mnt:[12]", 0, false},
		{"", 0, false},
	} {
		inode, ok := parseLink(tt.target)
		if ok != tt.ok || (ok && inode != tt.inode) {
			t.Errorf("parseLink(%q) = %d, %t; want %d, %t", tt.target, inode, ok, tt.inode, tt.ok)
		}
	}
}

func TestProblem(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		reason string // "" is no problem
		detail string
	}{
		{"b", &Error{"b", ErrVanished}, "", ""},
		{"b", &Error{"b", os.ErrPermission}, ReasonNoPermission, `network namespace "b": permission denied: entering another network namespace needs CAP_SYS_ADMIN, and CAP_SYS_PTRACE to find it through a process`},
		{"", os.ErrPermission, ReasonNoPermission, "own network namespace: permission denied"},
		{"b", fs.ErrNotExist, ReasonNotFound, `network namespace "b": file does not exist`},
		{"a/b", ErrBadName, ReasonNotFound, `network namespace "a/b": a namespace name is one file name in /run/netns: no slash, not empty`},
		{"", ErrInterrupted, ReasonInterrupted, "own network namespace: the kernel marked the dump as inconsistent (NLM_F_DUMP_INTR) each time"},
		{"", errors.New("boom"), ReasonFailed, "own network namespace: boom"},
	} {
		p, bad := Problem(tt.name, tt.err)
		if bad != (tt.reason != "") || p != (event.Problem{Reason: tt.reason, Detail: tt.detail}) {
			t.Errorf("Problem(%q, %v) = %+v, %t", tt.name, tt.err, p, bad)
		}
	}
}

// FuzzNames: whatever a process calls itself, the name is short, valid and
// printable; whatever a link says, it is read without a panic.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"rpc-server", "", "a\nb\xff\x00c", strings.Repeat("ü", 40), "net:[4026531840]", "net:[99999999999]", "../x", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name := cleanName(s)
		if len(name) > 32 || !utf8.ValidString(name) || strings.ContainsAny(name, "\n\x00") {
			t.Errorf("cleanName(%q) = %q", s, name)
		}
		if inode, ok := parseLink(s); ok && inode == 0 {
			t.Errorf("parseLink(%q) gave inode 0", s)
		}
		if validName(s) && (strings.Contains(s, "/") || s == "..") {
			t.Errorf("validName(%q) leaves /run/netns", s)
		}
	})
}
