package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestGarbage: what is no HTTP gets its 400 at once and reaches nobody. Less
// than 14 bytes would wait for the time limit of a header: net/http (1.26)
// first looks whether they become HTTP/2's preface.
func TestGarbage(t *testing.T) {
	l := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it reached the upstream") }, nil)
	for name, sent := range map[string]string{
		"no request line": "\r\n\r\nhello, hello\r\n\r\n",
		"a TLS hello":     "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"another version": "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
		"no host":         "GET / HTTP/1.1\r\n\r\n",
		"a bad header":    "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
		"a bad length":    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", l.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode/100 != 4 && response.StatusCode != http.StatusHTTPVersionNotSupported {
				t.Errorf("%s", response.Status)
			}
		})
	}
	l.noneEmitted()
}
