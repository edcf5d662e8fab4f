package detector

import (
	"fmt"
	"testing"
	"unsafe"

	"grayfail/event"
)

// manyLegs has 256 legs over 32 devices with 1,000 queues that are read each
// second and drop, and retransmits on every leg.
func manyLegs(t testing.TB) (d *Detector, step func()) {
	t.Helper()
	d = New(DefaultConfig())
	now, tick := int64(1_800_000_000e9), uint64(0)
	names := make([]string, 256)
	for i := range names {
		names[i] = fmt.Sprintf("leg-%03d", i)
		d.Leg(event.LegChange{TimeNS: now, Leg: names[i], Transport: event.TransportTCP, Device: fmt.Sprintf("eth%d", i/8)})
	}
	return d, func() {
		now += 1e9
		tick++
		for q := range 1000 {
			d.Qdisc(event.Qdisc{TimeNS: now, Device: fmt.Sprintf("eth%d", q%32), Kind: "fq", Handle: fmt.Sprintf("%d:", q/32), Packets: 1000 * tick, Drops: tick * (tick + uint64(q)) % 50})
		}
		for i, name := range names {
			if (uint64(i)+tick)%3 == 0 {
				d.Retransmit(event.Retransmit{Leg: name, TimeNS: now - 5e8, Kind: event.RetransmitTLP})
			}
		}
		d.Request(event.Request{
			ID: fmt.Sprint(tick), Source: "s", Model: "m", StartNS: now - 9e8, FirstTokenNS: now - 8e8, EndNS: now, GeneratedTokens: 32,
			DecodeRate: 39 + float64(mix(tick)%5), Outcome: event.OutcomeOK, Concurrency: 1,
		})
		d.Advance(now)
	}
}

// What is kept for the correlations of a model does not grow with the legs.
func TestScoresAreBounded(t *testing.T) {
	d, step := manyLegs(t)
	for range 200 {
		step()
	}
	s := &d.order[0].decode.scores
	if len(s.ring) != d.cfg.CorrelateOver {
		t.Fatalf("%d scores", len(s.ring))
	}
	bytes := cap(s.ring)*int(unsafe.Sizeof(score{})) + cap(s.devices)*int(unsafe.Sizeof(deviceKey{}))
	beyond := 0
	for i := range s.ring {
		bytes += cap(s.ring[i].resent)*int(unsafe.Sizeof(legResent{})) + cap(s.ring[i].drops)*int(unsafe.Sizeof(deviceDrops{}))
		if s.ring[i].beyond {
			beyond++
		}
	}
	if bytes > 16<<10 || beyond != len(s.ring) {
		t.Errorf("%d bytes of scores, %d of which lack legs", bytes, beyond)
	}
	for _, c := range d.Correlations() {
		if c.N < minCorrelated || c.PValue <= 0 || c.PValue > 1 || c.FamilyPValue < c.PValue || c.FamilyPValue > 1 {
			t.Errorf("%+v", c)
		}
	}
	t.Logf("%d bytes", bytes)
}

// A device that is gone, and a leg that is gone, leave the scores.
func TestScoresForget(t *testing.T) {
	var s scoreRing
	gone, kept := &leg{name: "gone"}, &leg{name: "kept", device: "eth99"}
	for i := range 100 {
		sc := s.slot(16)
		sc.r = float64(i)
		sc.add(legResent{gone, uint16(i + 1)})
		sc.add(legResent{kept, uint16(i*i%7 + 1)})
		at, ok := s.device(deviceKey{"", fmt.Sprint("eth", i)})
		if !ok {
			t.Fatalf("device %d has no room", i)
		}
		sc.drops = append(sc.drops, deviceDrops{at, float32(i)})
		if s.devices[at].device != fmt.Sprint("eth", i) {
			t.Fatalf("device %d is called %s", i, s.devices[at].device)
		}
	}
	s.forget(gone)
	r, columns := s.columns([]*leg{kept})
	if len(r) != 16 {
		t.Errorf("%d scores", len(r))
	}
	for _, c := range columns {
		for _, name := range c.legs {
			if name != "kept" {
				t.Errorf("%s is still there", name)
			}
		}
	}
	if len(s.devices) > maxRingDevices {
		t.Errorf("%d devices", len(s.devices))
	}
}

// Of many innocent legs one is nearly always associated by its own p-value; by
// that of the family it is as rare as the level says.
func TestFamilyPValue(t *testing.T) {
	alone, family := 0, 0
	for seed := range uint64(60) {
		var scores []Score
		for i := range uint64(30) {
			sc := Score{R: float64(mix(seed<<20|i<<8|255)%1000) / 1000}
			for leg := range uint64(30) {
				sc.Evidence = append(sc.Evidence, Evidence{Leg: fmt.Sprint(leg), DropFraction: -1, Retransmits: int(mix(seed<<20|i<<8|leg) % 50)})
			}
			scores = append(scores, sc)
		}
		least, leastFamily := 1.0, 1.0
		for _, c := range Correlate(scores, 199, seed) {
			least, leastFamily = min(least, c.PValue), min(leastFamily, c.FamilyPValue)
		}
		if least <= 0.05 {
			alone++
		}
		if leastFamily <= 0.05 {
			family++
		}
	}
	if alone < 36 || family > 9 {
		t.Errorf("of 60 without any relation %d are associated alone and %d in the family; want most and 3", alone, family)
	}
}

// One leg that is truly associated stays so among 255 innocent ones.
func TestFamilyFindsTheOne(t *testing.T) {
	var columns []column
	r := make([]float64, 64)
	for leg := range 256 {
		c := column{legs: []string{fmt.Sprint(leg)}, evidence: EvidenceRetransmits}
		for i := range r {
			x := float64(mix(uint64(leg<<10|i)) % 50)
			if leg == 77 {
				r[i] = -x + float64(mix(uint64(i))%10)
			}
			c.add(i, x)
		}
		columns = append(columns, c)
	}
	for _, c := range correlate(r, columns, 999, 1) {
		if (c.FamilyPValue <= 0.01) != (c.Leg == "77") {
			t.Errorf("%+v", c)
		}
	}
}

// A request of 256 legs and 1,000 queues, with its readings and the evidence
// kept beside it.
func BenchmarkEvidence(b *testing.B) {
	d, step := manyLegs(b)
	for range 100 {
		step()
	}
	m := d.order[0]
	row := event.Row{R: new(float64)}
	r := event.Request{StartNS: d.nowNS - 9e8, EndNS: d.nowNS}
	b.ReportAllocs()
	for b.Loop() {
		d.score(&m.decode, &row, &r, &Output{})
	}
}

// What the lock is held for, and what runs beside it.
func BenchmarkCorrelations(b *testing.B) {
	d, step := manyLegs(b)
	for range 100 {
		step()
	}
	b.Run("copied under the lock", func(b *testing.B) {
		for b.Loop() {
			d.order[0].decode.scores.fresh = true
			d.Scores()
		}
	})
	d.order[0].decode.scores.fresh = true
	sets := d.Scores()
	b.Run("computed beside it", func(b *testing.B) {
		c := d.NewCorrelator()
		for b.Loop() {
			c.Update(sets)
		}
	})
	b.Run("256 legs that all vary", func(b *testing.B) {
		var columns []column
		r := make([]float64, 64)
		for leg := range 512 {
			c := column{legs: []string{fmt.Sprint(leg)}, evidence: EvidenceRetransmits}
			for i := range r {
				r[i] = float64(mix(uint64(i)) % 1000)
				c.add(i, float64(mix(uint64(leg<<10|i))%50))
			}
			columns = append(columns, c)
		}
		for b.Loop() {
			correlate(r, columns, 999, 1)
		}
	})
}
