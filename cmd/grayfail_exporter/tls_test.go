package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hashOfRight is bcrypt of "right" at the lowest cost.
const hashOfRight = "$2a$04$DzwsW4j.wqJVSa56ghohdOSCObxPebzNGj8xxarjbSWj55T.aJoQW"

// authority is a CA made for one test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
	}
	a.cert, a.key = a.sign(template, template, nil)
	return a
}

// sign makes a key and a certificate of it; without a parent's key it is its own.
func (a *authority) sign(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if parentKey == nil {
		parentKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// issue makes a certificate for loopback, for servers and clients.
func (a *authority) issue(until time.Time) tls.Certificate {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature, NotBefore: time.Now().Add(-47 * time.Hour), NotAfter: until,
	}, a.cert, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func writePEM(t *testing.T, dir, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// secured starts an exporter that serves TLS with a certificate and asks for
// user:right, and for a client's certificate of clients if there is one.
func secured(t *testing.T, cert tls.Certificate, clients *authority) *exporter {
	t.Helper()
	dir := t.TempDir()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("tls_server_config:\n  cert_file: %s\n  key_file: %s\n",
		writePEM(t, dir, "cert.pem", "CERTIFICATE", cert.Certificate[0]), writePEM(t, dir, "key.pem", "PRIVATE KEY", key))
	if clients != nil {
		text += fmt.Sprintf("  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: %s\n", writePEM(t, dir, "clients.pem", "CERTIFICATE", clients.cert.Raw))
	}
	text += "basic_auth_users:\n  user: " + hashOfRight + "\n"
	path := filepath.Join(dir, "web.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e := launch(t, program{}, "--web.config.file", path, "--config.file", writeFile(t, "requests: {push: {enabled: true}}"), "--web.pprof")
	eventually(t, func() error {
		m := listenLine.FindStringSubmatch(e.log.String())
		if m == nil {
			return fmt.Errorf("no listener yet:\n%s", e.log)
		}
		e.url = "https://" + m[1]
		return nil
	})
	return e
}

// visit asks for a path with a password, "" for none.
func visit(t *testing.T, e *exporter, c *tls.Config, method, path, password string) (int, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: c}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, e.url+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		req.SetBasicAuth("user", password)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func TestPassword(t *testing.T) {
	ca := newAuthority(t)
	e := secured(t, ca.issue(time.Now().Add(time.Hour)), nil)
	trust := &tls.Config{RootCAs: ca.pool()}
	for _, to := range []string{
		"GET /", "GET /metrics", "GET /-/healthy", "GET /-/ready", "POST /-/reload", "GET /debug/pprof/", "GET /nothing",
		"GET /api/v1/legs", "GET /api/v1/requests", "GET /api/v1/episodes", "GET /api/v1/baselines",
		"POST /api/v1/requests", "POST /api/v1/baselines/adopt",
	} {
		method, path, _ := strings.Cut(to, " ")
		for _, password := range []string{"", "wrong", "right "} {
			if code, err := visit(t, e, trust, method, path, password); code != http.StatusUnauthorized || err != nil {
				t.Errorf("%s with password %q: %d %v", to, password, code, err)
			}
		}
	}
	if code, err := visit(t, e, trust, "GET", "/metrics", "right"); code != http.StatusOK || err != nil {
		t.Errorf("with the right password: %d %v", code, err)
	}
	if log := e.log.String(); strings.Contains(log, "wrong") || strings.Contains(log, hashOfRight) {
		t.Errorf("a password is in the log:\n%s", log)
	}
}

// TestServerCertificate: what a scraper that checks it refuses.
func TestServerCertificate(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	good := secured(t, ca.issue(time.Now().Add(time.Hour)), nil)
	var unknown x509.UnknownAuthorityError
	if _, err := visit(t, good, &tls.Config{RootCAs: other.pool()}, "GET", "/metrics", "right"); !errors.As(err, &unknown) {
		t.Errorf("wrong CA: %v", err)
	}
	if _, err := visit(t, good, &tls.Config{RootCAs: ca.pool(), MaxVersion: tls.VersionTLS11}, "GET", "/metrics", "right"); err == nil {
		t.Error("TLS 1.1 is served")
	}
	old := secured(t, ca.issue(time.Now().Add(-time.Hour)), nil)
	var invalid x509.CertificateInvalidError
	if _, err := visit(t, old, &tls.Config{RootCAs: ca.pool()}, "GET", "/metrics", "right"); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		t.Errorf("expired certificate: %v", err)
	}
}

// TestClientCertificate: whom the exporter itself refuses.
func TestClientCertificate(t *testing.T) {
	ca, clients, other := newAuthority(t), newAuthority(t), newAuthority(t)
	e := secured(t, ca.issue(time.Now().Add(time.Hour)), clients)
	good := clients.issue(time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		certs    []tls.Certificate
		password string
		want     int // 0: no answer
	}{
		"right":                    {[]tls.Certificate{good}, "right", http.StatusOK},
		"right, wrong password":    {[]tls.Certificate{good}, "wrong", http.StatusUnauthorized},
		"none":                     {nil, "right", 0},
		"of another CA":            {[]tls.Certificate{other.issue(time.Now().Add(time.Hour))}, "right", 0},
		"of the right CA, expired": {[]tls.Certificate{clients.issue(time.Now().Add(-time.Hour))}, "right", 0},
	} {
		code, err := visit(t, e, &tls.Config{RootCAs: ca.pool(), Certificates: c.certs}, "GET", "/metrics", c.password)
		if code != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("client certificate %s: %d %v, want %d", name, code, err, c.want)
		}
	}
}
