package export

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// Handler serves /metrics: the text format, OpenMetrics (exemplars) and
// protobuf (native histograms), as the scraper asks. What a collector gets
// wrong costs its own series, not the scrape, and is logged.
func Handler(g prometheus.Gatherer, log zerolog.Logger) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{
		ErrorLog:          promLog{log},
		ErrorHandling:     promhttp.ContinueOnError,
		EnableOpenMetrics: true,
	})
}

// promLog takes promhttp's complaints.
type promLog struct{ log zerolog.Logger }

func (l promLog) Println(v ...any) {
	l.log.Error().Str("error", sentence(fmt.Sprint(v...))).Msg("scrape is incomplete")
}
