package spec

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"

	"grayfail/internal/strictyaml"
)

// Bounds of what is believed to be meant.
const (
	maxRuns        = 100_000
	maxConcurrency = 256
	maxConditions  = 64
)

// plain is what names of conditions, devices and namespaces consist of: they
// become arguments and file names.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.%@+-]{0,63}$`)

// check returns every value that cannot work.
func (s *Spec) check(lines strictyaml.Lines) (errs []error) {
	bad := func(wrong bool, field, format string, args ...any) {
		if wrong {
			errs = append(errs, lines.Error(field, format, args...))
		}
	}
	bad(s.Version != Version, "version", "%d: this program reads version %d", s.Version, Version)
	bad(!plain.MatchString(s.Name), "name", "%q: one to 64 letters, digits and _.%%@+- are allowed", s.Name)
	bad(s.Warmup < 0 || s.Warmup > 10_000, "warmup", "%d is outside 0 to 10000", s.Warmup)
	bad(s.Blocks < 1, "blocks", "%d: at least 1", s.Blocks)
	bad(s.Repeats < 1, "repeats", "%d: at least 1", s.Repeats)
	bad(s.Concurrency < 1 || s.Concurrency > maxConcurrency, "concurrency", "%d is outside 1 to %d", s.Concurrency, maxConcurrency)
	bad(s.Timeout <= 0, "timeout", "must be more than 0")
	bad(len(s.Conditions) == 0 || len(s.Conditions) > maxConditions, "conditions", "%d conditions: 1 to %d are allowed", len(s.Conditions), maxConditions)
	if len(errs) == 0 && float64(s.Blocks)*float64(len(s.Conditions))*float64(s.Repeats)*float64(s.Concurrency) > maxRuns {
		bad(true, "blocks", "blocks x conditions x repeats x concurrency is more than %d runs", maxRuns)
	}
	bad(s.Exporter != "" && !httpURL(s.Exporter), "exporter", "%q is not a URL such as http://127.0.0.1:10550", s.Exporter)
	s.checkRequest(bad)
	for i := range s.Conditions {
		s.checkCondition(i, bad)
	}
	if err := s.checkMethod(); err != nil {
		bad(true, "rule", "%v", err)
	}
	return errs
}

func (s *Spec) checkRequest(bad func(bool, string, string, ...any)) {
	r := s.Request
	bad((r.URL == "") == (len(r.Command) == 0), "request", "one of url and command is needed")
	bad(r.URL != "" && !httpURL(r.URL), "request.url", "%q is not a URL such as http://127.0.0.1:8081/v1/completions", r.URL)
	bad(r.URL == "" && r.Body != "", "request.body", "belongs to a url")
	bad(len(r.Command) > 0 && r.Command[0] == "", "request.command", "the program has no name")
}

func (s *Spec) checkCondition(i int, bad func(bool, string, string, ...any)) {
	c := &s.Conditions[i]
	field := fmt.Sprintf("conditions[%d]", i)
	bad(!plain.MatchString(c.Name), field+".name", "%q: one to 64 letters, digits and _.%%@+- are allowed", c.Name)
	bad(slices.IndexFunc(s.Conditions, func(o Condition) bool { return o.Name == c.Name }) < i, field+".name", "%q is listed twice", c.Name)
	ways := 0
	for _, used := range []bool{len(c.Netem) > 0, len(c.TBF) > 0, c.DropPercent != 0, c.Pause != (Pause{}), len(c.Apply) > 0} {
		if used {
			ways++
		}
	}
	bad(ways > 1, field, "only one of netem, tbf, drop_percent, pause and apply is allowed")
	device := len(c.Netem) > 0 || len(c.TBF) > 0 || c.DropPercent != 0
	bad(device && c.Device == "", field+".device", "is needed with %s", c.Kind())
	bad(!device && c.Device != "", field+".device", "belongs to netem, tbf or drop_percent")
	bad(c.Device != "" && (!plain.MatchString(c.Device) || len(c.Device) > 15), field+".device", "%q is no interface's name", c.Device)
	for name, value := range map[string]string{".netns": c.Netns, ".count_netns": c.CountNetns} {
		bad(value != "" && (!plain.MatchString(value) || value == "." || value == ".."), field+name, "%q is not a name under /run/netns", value)
	}
	bad(c.DropPercent != 0 && !(c.DropPercent >= 0.01 && c.DropPercent <= 100), field+".drop_percent", "%g is outside 0.01 to 100", c.DropPercent)
	bad(len(c.Apply) > 0 && len(c.Clear) == 0, field+".clear", "is needed with apply: the network is always left clean")
	bad(len(c.Apply) > 0 && len(c.Counter) == 0, field+".counter", "is needed with apply: a fault proves that it acted")
	bad(len(c.Apply) == 0 && len(c.Clear)+len(c.Counter) > 0, field+".apply", "is needed with clear and counter")
	if p := c.Pause; p != (Pause{}) {
		bad(p.PID < 2, field+".pause.pid", "%d is no process that may be stopped", p.PID)
		bad(!(p.Percent > 0 && p.Percent < 100), field+".pause.percent", "%g is outside 0 to 100 (exclusive)", p.Percent)
		bad(p.Period < Duration(2e6), field+".pause.period", "at least 2ms")
	}
}

// checkMethod holds rule and criteria to what the report can do.
func (s *Spec) checkMethod() error {
	if math.IsNaN(s.Rule.SlowBelow) {
		return fmt.Errorf("slow_below: not a number")
	}
	m := s.Method()
	return m.Check()
}

func httpURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}
