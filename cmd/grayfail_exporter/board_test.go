package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"grayfail/lab/browser"
)

// slowModel pushes what makes a baseline, and then requests far below it.
func slowModel(e *exporter, model string, slow int) {
	e.t.Helper()
	var lines strings.Builder
	for i := range 20 + slow {
		rate := 100
		if i >= 20 {
			rate = 20
		}
		fmt.Fprintf(&lines, `{"model":%q,"id":"%s-%d","generated_tokens":128,"decode_tokens_per_second":%d,"concurrency":1}`+"\n", model, model, i, rate)
	}
	e.push(lines.String())
}

// TestBoardInABrowser: a page that is open shows what comes, keeps what the
// reader has opened, and the browser has nothing to complain about.
func TestBoardInABrowser(t *testing.T) {
	e := startExporter(t, "--config.file", writeFile(t, "requests: {push: {enabled: true}}"))
	b, err := browser.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	do := func(steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := b.Do(steps...); err != nil {
			t.Fatal(err)
		}
	}
	look := func(width, height int64, dark bool) {
		t.Helper()
		if err := b.Look(width, height, dark); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(expression string) string {
		t.Helper()
		answer, err := browser.Ask[string](b, "String("+expression+")")
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	shows := func(id string, wants ...string) {
		t.Helper()
		eventually(t, func() error {
			text := ask(fmt.Sprintf("document.getElementById(%q).innerText", id))
			for _, want := range wants {
				if !strings.Contains(text, want) {
					return fmt.Errorf("%s lacks %q:\n%s", id, want, text)
				}
			}
			return nil
		})
	}
	look(1280, 900, false)
	do(chromedp.Navigate(e.url + "/"))
	shows("head", "No request has been seen yet")
	shows("live", "Live")

	slowModel(e, "one", 3)
	shows("head", "one is slow", "3 of 3 requests ran below half")
	shows("requests", "one-22")
	if title := ask("document.title"); !strings.Contains(title, "one is slow") {
		t.Errorf("title %q", title)
	}

	// What the reader opened and stands on stays so, whatever comes.
	do(chromedp.Click("#requests summary"), chromedp.Focus("#requests summary"))
	slowModel(e, "two", 3)
	shows("requests", "two-22", "one-22")
	if open, focus := ask(`document.querySelectorAll("#requests details[open]").length`), ask("document.activeElement.tagName"); open != "1" || focus != "SUMMARY" {
		t.Errorf("%s details open, focus on %s", open, focus)
	}

	// By keyboard: the first stop leads past everything else.
	do(chromedp.Reload(), chromedp.WaitVisible("#live.on"), chromedp.KeyEvent(kb.Tab))
	if first := ask("document.activeElement.textContent"); first != "Skip to what is wrong now" {
		t.Errorf("the first stop is %q", first)
	}

	// On a phone nothing is wider than the screen, in light and in dark.
	for _, dark := range []bool{false, true} {
		look(320, 640, dark)
		if wide := ask("document.documentElement.scrollWidth"); wide != "320" {
			t.Errorf("dark %t: %s pixels wide on a screen of 320", dark, wide)
		}
		if ground := ask("getComputedStyle(document.body).backgroundColor"); (ground != "rgb(255, 255, 255)") != dark {
			t.Errorf("dark %t: ground %s", dark, ground)
		}
	}
	if c := b.Complaints(); len(c) != 0 {
		t.Errorf("the browser complains: %q", c)
	}

	// The exporter ends although the page is open, and the page says so.
	if code := e.stop(); code != exitOK {
		t.Errorf("exit %d\n%s", code, e.log)
	}
	shows("live", "Not live: the exporter does not answer.", "What you see is of ")
}

// TestOpenPageDoesNotHoldUpTheStop: and its stream ends as it should.
func TestOpenPageDoesNotHoldUpTheStop(t *testing.T) {
	e := startExporter(t)
	resp, err := http.Get(e.url + "/board/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stream := bufio.NewReader(resp.Body)
	if line, err := stream.ReadString('\n'); err != nil || line != "event: section\n" {
		t.Fatalf("%q %v", line, err)
	}
	if code := e.stop(); code != exitOK {
		t.Errorf("exit %d\n%s", code, e.log)
	}
	if _, err := io.Copy(io.Discard, stream); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
}
