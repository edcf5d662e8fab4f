package otlp

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
)

// Attribute names. vLLM: vllm/tracing/utils.py, SpanAttributes. GenAI:
// OpenTelemetry semantic conventions, gen-ai, of 1.27 (prompt_tokens,
// completion_tokens), 1.28 on (input_tokens, output_tokens) and 2026
// (cache_read, time_to_first_chunk).
const (
	keyOperation = "gen_ai.operation.name"
	keyErrorType = "error.type"
	keyFinish    = "gen_ai.response.finish_reasons"

	latencyPrefix = "gen_ai.latency."
	keyPrefill    = latencyPrefix + "time_in_model_prefill"
	keyDecode     = latencyPrefix + "time_in_model_decode"
)

// Several names of one thing, the one to prefer first.
func keysID() []string { return []string{"gen_ai.request.id", "gen_ai.response.id"} }

func keysModel() []string { return []string{"gen_ai.response.model", "gen_ai.request.model"} }

func keysInput() []string {
	return []string{"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"}
}

func keysOutput() []string {
	return []string{"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"}
}

func keysCached() []string {
	return []string{"gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_tokens"}
}

func keysFirst() []string {
	return []string{latencyPrefix + "time_to_first_token", "gen_ai.response.time_to_first_chunk"}
}

func keysChoices() []string {
	return []string{"gen_ai.request.choice.count", "gen_ai.request.n"}
}

// attributes are a span's, by name. An error of one of them sticks: the first
// is kept.
type attributes struct {
	list []*common.KeyValue
	err  error
}

var errAttribute = errors.New("cannot be read")

// find returns the value of the first of keys that is there.
func (a *attributes) find(keys []string) (key string, value *common.AnyValue) {
	for _, want := range keys {
		for _, kv := range a.list {
			if kv.GetKey() == want && kv.GetValue() != nil {
				return want, kv.GetValue()
			}
		}
	}
	return "", nil
}

// text returns a string; "" when it is not there or something else.
func (a *attributes) text(keys ...string) string {
	_, v := a.find(keys)
	return v.GetStringValue()
}

// has says that a name is there, or one that begins with it.
func (a *attributes) has(prefix string) bool {
	for _, kv := range a.list {
		if strings.HasPrefix(kv.GetKey(), prefix) {
			return true
		}
	}
	return false
}

// number reads an integer, a double, or the text of one: exporters differ.
func (a *attributes) number(keys []string, most float64) (v float64, ok bool) {
	key, value := a.find(keys)
	switch value := value.GetValue().(type) {
	case nil:
		return 0, false
	case *common.AnyValue_IntValue:
		v = float64(value.IntValue)
	case *common.AnyValue_DoubleValue:
		v = value.DoubleValue
	case *common.AnyValue_StringValue:
		parsed, err := strconv.ParseFloat(value.StringValue, 64)
		if err != nil {
			parsed = math.NaN()
		}
		v = parsed
	default:
		v = math.NaN()
	}
	if !(v >= 0 && v <= most) {
		if a.err == nil {
			a.err = fmt.Errorf("%s %w: not a number from 0 to %g", key, errAttribute, most)
		}
		return 0, false
	}
	return v, true
}

const (
	maxTokens  = 1e9
	maxSeconds = 30 * 24 * 3600
)

// tokens reads a count.
func (a *attributes) tokens(keys []string) (n int, ok bool) {
	v, ok := a.number(keys, maxTokens)
	return int(v), ok
}

// seconds reads a span of time.
func (a *attributes) seconds(keys ...string) (s float64, ok bool) { return a.number(keys, maxSeconds) }

// finishedBy says that one of the finish reasons is reason.
func (a *attributes) finishedBy(reason string) bool {
	_, v := a.find([]string{keyFinish})
	if v.GetStringValue() == reason {
		return true
	}
	for _, one := range v.GetArrayValue().GetValues() {
		if one.GetStringValue() == reason {
			return true
		}
	}
	return false
}
