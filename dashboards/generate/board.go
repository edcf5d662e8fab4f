package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// tag is what the dashboards find each other by.
const tag = "grayfail"

// part is a row of a dashboard with the panels under it.
type part struct {
	title  string
	panels []cog.Builder[dashboard.Panel]
}

// board is what every dashboard has in common: variables, links, episodes as
// annotations, and that it is changed here and not by hand.
func board(uid, title, description string, parts ...part) *dashboard.DashboardBuilder {
	d := dashboard.NewDashboardBuilder(title).
		Uid(uid).
		Description(description).
		Tags([]string{tag, "inference"}).
		Timezone("browser").
		Time("now-1h", "now").
		Refresh("10s").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Readonly().
		Variables(variables()).
		Annotations([]cog.Builder[dashboard.AnnotationQuery]{episodes()}).
		Links([]cog.Builder[dashboard.DashboardLink]{others(), runbooks()})
	for _, p := range parts {
		d.WithRow(dashboard.NewRowBuilder(p.title))
		for _, panel := range p.panels {
			d.WithPanel(panel)
		}
	}
	return d
}

// episodes marks on every graph when slow requests were blamed on what.
func episodes() *dashboard.AnnotationQueryBuilder {
	return dashboard.NewAnnotationQueryBuilder().
		Name("Episodes").
		Datasource(source()).
		Enable(true).
		IconColor("red").
		Expr(q(`max by (instance, model, cause, leg) (grayfail_episode_cause{@ml}) == 1`)).
		TitleFormat("{{model}} is slow: {{cause}} {{leg}}").
		TextFormat("seen by {{instance}}").
		TagKeys("cause,leg")
}

func others() *dashboard.DashboardLinkBuilder {
	return dashboard.NewDashboardLinkBuilder("Gray failures").
		Type(dashboard.DashboardLinkTypeDashboards).
		Tags([]string{tag}).
		IncludeVars(true).KeepTime(true)
}

func runbooks() *dashboard.DashboardLinkBuilder {
	return dashboard.NewDashboardLinkBuilder("Runbooks").
		Type(dashboard.DashboardLinkTypeLink).
		Tooltip("One page an alert; the variable says where yours are served").
		Url("${runbooks}/").
		TargetBlank(true)
}

// linked is a panel that can carry links.
type linked[P any] interface {
	Links(links []cog.Builder[dashboard.DashboardLink]) P
}

// withRunbook links a panel to the pages of the alerts that watch the same.
func withRunbook[P linked[P]](p P, alerts ...string) P {
	var links []cog.Builder[dashboard.DashboardLink]
	for _, a := range alerts {
		links = append(links, dashboard.NewDashboardLinkBuilder("Runbook: "+a).
			Type(dashboard.DashboardLinkTypeLink).
			Url("${runbooks}/"+a+".md").
			TargetBlank(true))
	}
	return p.Links(links)
}

// q writes a query: @ stands for the matchers of the exporter, @m with the
// model's, @l with the leg's, @ml with both.
func q(expr string) string {
	const here = `job=~"$job", instance=~"$instance"`
	return strings.NewReplacer(
		"@ml", here+`, model=~"$model", leg=~"$leg"`,
		"@m", here+`, model=~"$model"`,
		"@l", here+`, leg=~"$leg"`,
		"@", here,
	).Replace(expr)
}

// quantile of a classic histogram by labels.
func quantile(of, metric, matchers, by string) string {
	return q("histogram_quantile(" + of + ", sum by (" + by + ", le) (rate(" + metric + "_bucket{" + matchers + "}[$__rate_interval])))")
}

// mean of a histogram by labels.
func mean(metric, matchers, by string) string {
	half := func(end string) string {
		return "sum by (" + by + ") (rate(" + metric + end + "{" + matchers + "}[$__rate_interval]))"
	}
	return q(half("_sum") + " / " + half("_count"))
}
