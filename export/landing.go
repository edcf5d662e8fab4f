package export

import (
	"bytes"
	"cmp"
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/prometheus/common/version"

	"grayfail/event"
)

//go:embed landing.html
var landingHTML string

// landingRows is how many slow requests the page shows.
const landingRows = 20

// landingData is what the page shows; html/template escapes all of it.
type landingData struct {
	Version  string
	Time     string // of the snapshot; "" before the first
	Legs     []landingLeg
	Open     []landingEpisode
	Slow     []landingRow
	Problems []landingProblem
	Untried  []string
}

type (
	landingLeg struct {
		Name, Role, Peer, Netns, Transport, Reason, RTT string
		Connections                                     int
	}
	landingEpisode struct {
		Since, Source, Model, Phase, Blame string
		Slow, Requests                     int
	}
	landingRow struct {
		Time, Model, Phase, ID, Rate, Baseline, Text string
	}
	landingProblem struct {
		Collector, Reason, Detail string
		Down                      bool
	}
)

// landing is a plain page without outside assets and without scripts.
func (a *API) landing(w http.ResponseWriter, _ *http.Request) {
	var page bytes.Buffer
	t, err := template.New("landing").Parse(landingHTML)
	if err == nil {
		err = t.Execute(&page, a.landingData())
	}
	if err != nil {
		http.Error(w, "page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(page.Bytes())
}

func (a *API) landingData() landingData {
	s := a.snapshot.Load()
	d := landingData{Version: version.Info(), Time: clock(s.TimeNS)}
	for i := range s.Legs {
		l := &s.Legs[i]
		leg := landingLeg{
			Name: label(l.Name), Role: l.Role.String(), Peer: peerText(l.Peer), Netns: label(l.Netns),
			Transport: string(cmp.Or(l.Transport, event.TransportUnknown)), Reason: label(l.Reason),
			Connections: l.Connections,
		}
		if l.RTT > 0 {
			leg.RTT = l.RTT.Round(time.Microsecond).String()
		}
		d.Legs = append(d.Legs, leg)
	}
	for _, e := range episodesOf(s) {
		if e.EndNS == 0 {
			d.Open = append(d.Open, landingEpisode{
				Since: clock(e.StartNS), Source: label(e.Source), Model: label(e.Model), Phase: string(e.Phase),
				Blame: blame(e.Cause, e.Leg), Slow: e.Slow, Requests: e.Requests,
			})
		}
	}
	slow := rowFilter{verdict: event.VerdictSlow}
	for _, r := range a.rows.newest(landingRows, slow.admits) {
		d.Slow = append(d.Slow, landingRow{
			Time: clock(r.EndNS), Model: label(r.Model), Phase: string(r.Phase), ID: label(r.ID),
			Rate: rateText(r.Rate), Baseline: rateText(r.Baseline), Text: slowText(r),
		})
	}
	for i := range s.Statuses {
		st := &s.Statuses[i]
		if st.Availability == event.NotTried {
			d.Untried = append(d.Untried, label(st.Collector))
			continue
		}
		down := st.Availability == event.Unsupported || st.Availability == event.Failed
		for _, p := range st.Problems {
			d.Problems = append(d.Problems, landingProblem{label(st.Collector), label(p.Reason), clean(p.Detail, maxDetailRunes), down})
		}
		if down && len(st.Problems) == 0 {
			d.Problems = append(d.Problems, landingProblem{Collector: label(st.Collector), Down: true})
		}
	}
	return d
}

func clock(ns int64) string {
	if ns == 0 {
		return ""
	}
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC")
}
