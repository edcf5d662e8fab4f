package netns

import "golang.org/x/sys/unix"

func stat(path string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return st, err
}
