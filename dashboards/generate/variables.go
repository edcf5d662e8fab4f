package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// runbooksAt is nobody's address (RFC 2606): the pages are files of this project,
// and where they are served is for its operator to say.
const runbooksAt = "https://runbooks.example/grayfail"

func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// variables are the same for every dashboard: where the data is, then which
// exporter, model and leg, then where the runbooks are.
func variables() []cog.Builder[dashboard.VariableModel] {
	return []cog.Builder[dashboard.VariableModel]{
		dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"),
		labelValues("job", "Job", "grayfail_build_info").AllValue(".+"),
		labelValues("instance", "Instance", `grayfail_build_info{job=~"$job"}`).AllValue(".+"),
		labelValues("model", "Model", `grayfail_requests_total{job=~"$job", instance=~"$instance"}`),
		labelValues("leg", "Leg", `grayfail_leg_info{job=~"$job", instance=~"$instance"}`),
		dashboard.NewTextBoxVariableBuilder("runbooks").Label("Runbooks at").
			Description("Where the folder alerts/runbooks is served in your network").
			DefaultValue(dashboard.StringOrMap{String: cog.ToPtr(runbooksAt)}).
			Current(dashboard.VariableOption{
				Text:  dashboard.StringOrArrayOfString{String: cog.ToPtr(runbooksAt)},
				Value: dashboard.StringOrArrayOfString{String: cog.ToPtr(runbooksAt)},
			}),
	}
}

// labelValues offers the values of a label. All means every series, those with
// an empty label too: time that no leg explains has leg "".
func labelValues(label, title, series string) *dashboard.QueryVariableBuilder {
	query := "label_values(" + series + ", " + label + ")"
	all := dashboard.StringOrArrayOfString{String: cog.ToPtr("$__all")}
	return dashboard.NewQueryVariableBuilder(label).
		Label(title).
		Datasource(source()).
		Query(dashboard.StringOrMap{String: &query}).
		Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).
		IncludeAll(true).
		AllValue(".*").
		Current(dashboard.VariableOption{Selected: cog.ToPtr(true), Text: dashboard.StringOrArrayOfString{String: cog.ToPtr("All")}, Value: all})
}
