package main

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// query is one line, or one set of lines, of a panel.
type query struct{ expr, legend string }

func (q query) build(ref int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().
		RefId(string(rune('A' + ref))).
		Datasource(source()).
		EditorMode(prometheus.QueryEditorModeCode).
		Expr(q.expr).
		LegendFormat(q.legend)
}

// lines is a graph over time, eight rows high.
func lines(title, description, unit string, width uint32, queries ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().
		Title(title).Description(description).Datasource(source()).
		Height(8).Span(width).
		Unit(unit).
		LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeNever).
		AxisSoftMin(0).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	for i, q := range queries {
		p.WithTarget(q.build(i).Range())
	}
	return p
}

// stacked is for parts of a whole.
func stacked(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.FillOpacity(60).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
}

// below marks the region under a bound that makes a verdict.
func below(p *timeseries.PanelBuilder, bound float64) *timeseries.PanelBuilder {
	return p.Thresholds(steps("red", bound, "transparent")).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeLineAndArea))
}

// number is one value as of now, red from bad upwards.
func number(title, description, unit string, bad float64, expr string) *stat.PanelBuilder {
	return figure(title, description, unit, expr).Thresholds(steps("green", bad, "red"))
}

// figure is one value as of now that is neither good nor bad.
func figure(title, description, unit, expr string) *stat.PanelBuilder {
	return stat.NewPanelBuilder().
		Title(title).Description(description).Datasource(source()).
		Height(4).Span(4).
		Unit(unit).NoValue("no data").
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps([]dashboard.Threshold{{Color: "text"}})).
		ColorMode(common.BigValueColorModeValue).GraphMode(common.BigValueGraphModeNone).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		WithTarget(query{expr, title}.build(0).Instant())
}

// states shows when something was the case.
func states(title, description string, width uint32, q query) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().
		Title(title).Description(description).Datasource(source()).
		Height(8).Span(width).
		Unit("none").NoValue("none yet").
		ShowValue(common.VisibilityModeNever).FillOpacity(80).
		Mappings([]dashboard.ValueMapping{values(map[float64]shown{0: {"over", "transparent"}, 1: {"open", "red"}})}).
		WithTarget(q.build(0).Range())
}

// list is a table of labels as of now; its columns are the labels named, in
// that order, and the value where value is not "".
func list(title, description string, width uint32, expr, value string, columns ...string) *table.PanelBuilder {
	index, rename, hide := map[string]int{}, map[string]string{}, map[string]bool{"Time": true, "__name__": true, "job": true}
	for i, c := range columns {
		index[c] = i
	}
	if value == "" {
		hide["Value"] = true
	} else {
		index["Value"], rename["Value"] = len(columns), value
	}
	return table.NewPanelBuilder().
		Title(title).Description(description).Datasource(source()).
		Height(8).Span(width).
		Unit("none").NoValue("none").
		WithTarget(query{expr, ""}.build(0).Instant().Format(prometheus.PromQueryFormatTable)).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": hide, "indexByName": index, "renameByName": rename,
		}})
}

type shown struct{ text, color string }

func values(m map[float64]shown) dashboard.ValueMapping {
	options := make(map[string]dashboard.ValueMappingResult)
	for v, s := range m {
		options[strconv.FormatFloat(v, 'g', -1, 64)] = dashboard.ValueMappingResult{Text: cog.ToPtr(s.text), Color: cog.ToPtr(s.color)}
	}
	return dashboard.ValueMapping{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}
}

func steps(first string, at float64, then string) *dashboard.ThresholdsConfigBuilder {
	return dashboard.NewThresholdsConfigBuilder().
		Mode(dashboard.ThresholdsModeAbsolute).
		Steps([]dashboard.Threshold{{Color: first}, {Value: cog.ToPtr(at), Color: then}})
}
