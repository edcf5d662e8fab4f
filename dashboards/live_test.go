package dashboards_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab"
	"grayfail/lab/monitor"
)

// TestEveryQueryKeepsItsPromise runs the queries of every panel in three states:
// on a healthy cluster, while one leg loses packets, and on a coordinator with a
// leg in fallback. Under loss it wants the alert that names the leg too, and no
// other leg named.
func TestEveryQueryKeepsItsPromise(t *testing.T) {
	l := startLive(t)
	for range 15 {
		l.request(t)
	}
	l.promises(t, healthy)

	loss, err := l.cluster.NewLoss(lab.LegB, lab.Replies, 5)
	if err == nil {
		err = l.cluster.Inject(t.Context(), loss)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.requestsUntil(t, `grayfail_episode_cause{cause="loss", leg="rpc-b"} == 1`)
	l.promises(t, lossy)
	named := fmt.Sprintf(`ALERTS{alertname="GrayfailPathNamed", alertstate="firing", leg=%q, cause="loss"}`, lab.LegB)
	l.eventually(t, named)
	l.eventually(t, `ALERTS{alertname="GrayfailSlowRequests", alertstate="firing", model!="recorded"}`)
	if wrong := l.query(t, fmt.Sprintf(`ALERTS{alertname="GrayfailPathNamed", model!="recorded", leg!=%q}`, lab.LegB)); len(wrong) != 0 {
		t.Errorf("an innocent leg is named: %v", wrong)
	}

	l.promises(t, fellBack)
	l.eventually(t, `ALERTS{alertname="GrayfailLegFallback", alertstate="firing", leg="w2", reason="port_not_probed"}`)
	for _, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				t.Run(d.file+": variable "+v.Name, func(t *testing.T) { l.eventually(t, offered(v)) })
			}
		}
	}
}

// promises sends requests until every query has returned what it promises.
func (l *live) promises(t *testing.T, s state) {
	t.Helper()
	var missing []string
	kept := make(map[string]bool)
	for range 40 {
		missing = missing[:0]
		if s != fellBack {
			l.request(t)
		}
		queries(t, func(where string, p panel, q target) {
			want := promised(p.file, p.Title, q.RefID)[s]
			if want == '?' || kept[where] {
				return
			}
			n := numbers(l.query(t, resolve(q.Expr, "1m", "10m", l.instances[s])))
			switch {
			case want == 's' && n > 0:
				kept[where] = true
			case want == 's':
				missing = append(missing, "nothing: "+where+": "+q.Expr)
			case n > 0:
				missing = append(missing, fmt.Sprintf("%d series: %s: %s", n, where, q.Expr))
			}
		})
		if len(missing) == 0 {
			return
		}
		l.nextScrape(t)
	}
	t.Errorf("%s: %d promises are not kept:\n%s", stateNames[s], len(missing), strings.Join(missing, "\n"))
}

// nextScrape waits until Prometheus has newer data.
func (l *live) nextScrape(t *testing.T) {
	t.Helper()
	last := ""
	testkit.Eventually(t, 30*time.Second, func() error {
		series := l.query(t, fmt.Sprintf("timestamp(grayfail_build_info{instance=%q})", fallbackAddr))
		if len(series) == 0 {
			return errors.New("not scraped")
		}
		at := fmt.Sprint(series[0].Value[1])
		if last == "" {
			last = at
		}
		if at == last {
			return errors.New("no newer scrape")
		}
		return nil
	})
}

func numbers(series []monitor.Series) (n int) {
	for _, s := range series {
		if s.Value[1] != "NaN" {
			n++
		}
	}
	return n
}

// offered counts what a variable offers: label_values(SERIES, LABEL).
func offered(v variable) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")")
	cut := strings.LastIndex(inner, ", ")
	return fmt.Sprintf("count by (%s) (%s)", inner[cut+2:], resolve(inner[:cut], "", "", ".*"))
}

func (l *live) request(t *testing.T) {
	t.Helper()
	a := l.cluster.Request(t.Context(), lab.RequestOptions{URL: l.exporter.ProxyURL(), Prompt: prompt})
	if a.Err != nil || a.Status != 200 {
		t.Fatalf("request: status %d, %v", a.Status, a.Err)
	}
}

// requestsUntil sends requests, a hundred at most, until Prometheus has data
// for expr.
func (l *live) requestsUntil(t *testing.T, expr string) {
	t.Helper()
	for range 100 {
		l.request(t)
		if len(l.query(t, expr)) > 0 {
			return
		}
	}
	t.Fatalf("after 100 requests no data for %s; episodes: %v, verdicts: %v", expr,
		l.query(t, "grayfail_episode_cause"), l.query(t, "grayfail_request_verdicts_total"))
}

// eventually waits until Prometheus answers expr with at least one number.
func (l *live) eventually(t *testing.T, expr string) {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, func() error {
		if numbers(l.query(t, expr)) > 0 {
			return nil
		}
		return fmt.Errorf("no data for %s", expr)
	})
}

func (l *live) query(t *testing.T, expr string) []monitor.Series {
	t.Helper()
	series, err := l.monitor.Query(t.Context(), expr)
	if err != nil {
		t.Fatal(err)
	}
	return series
}
