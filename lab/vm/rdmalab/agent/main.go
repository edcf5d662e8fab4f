// Command agent is a process with queue pairs and TCP connections that a test
// moves about.
//
// In: one command a line on standard input. Out: one line for each, "ok" with
// what it asked for, or "error" with why not. It ends with its input.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

func main() {
	a := newAgent()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		answer, err := a.do(strings.Fields(in.Text()))
		if err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		fmt.Println(strings.TrimSpace("ok " + answer))
	}
}
