package report

import (
	"fmt"

	"grayfail/detector"
)

// permutations behind each p-value: the smallest that can be told is 1/10000.
const permutations = 9999

// Correlation is the rank correlation of an evidence with the normalized rate
// inside one condition: "associated with", not "caused by".
type Correlation struct {
	Condition string   `json:"condition"`
	Evidence  Evidence `json:"evidence"`
	N         int      `json:"n"`
	Rho       float64  `json:"rho"`
	P         float64  `json:"p_value"` // two-sided, by permutations drawn from the order seed
}

// Result of a criterion.
type Result string

// Results of a criterion.
const (
	Met       Result = "met"
	NotMet    Result = "not met"
	NotJudged Result = "not judged"
)

// Judgement on one criterion.
type Judgement struct {
	Criterion
	Result Result `json:"result"`
	Why    string `json:"why,omitempty"` // it was not judged
	N      int    `json:"n"`
	// Found is nil where the correlation could not be computed.
	Found *Correlation `json:"found"`
}

// correlate is nil when nothing varies or there are too few requests.
func (a *analysis) correlate(condition string, e Evidence) (c *Correlation, n int) {
	var x, y []float64
	for _, r := range a.runs(condition) {
		v, known := e.Of(r)
		if rate, ok := a.relative(r); ok && known {
			x, y = append(x, v), append(y, rate)
		}
	}
	if len(x) < MinRequests {
		return nil, len(x)
	}
	rho, p, ok := detector.Spearman(x, y, permutations, a.m.OrderSeed)
	if !ok {
		return nil, len(x)
	}
	return &Correlation{condition, e, len(x), rho, p}, len(x)
}

func (a *analysis) judge(c Criterion) Judgement {
	j := Judgement{Criterion: c, Result: NotJudged}
	j.Found, j.N = a.correlate(c.Condition, c.Evidence)
	switch {
	case a.m.Control == "":
		j.Why = "the method names no control condition to normalize by"
	case j.N < c.fewest():
		j.Why = fmt.Sprintf("too few: %d requests with both, at least %d are needed", j.N, c.fewest())
	case j.Found == nil:
		j.Why = fmt.Sprintf("%s or the rate is the same in all %d requests", c.Evidence, j.N)
	case c.Op == "<=" && j.Found.Rho <= c.Rho, c.Op == ">=" && j.Found.Rho >= c.Rho:
		j.Result = Met
	default:
		j.Result = NotMet
	}
	return j
}
