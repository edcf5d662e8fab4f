// Package browser drives Debian's Chromium without a window, to see pages as
// people see them. In come a page's address and what to do there; out come its
// text, pictures of it, and what the browser complained about.
package browser

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Browser is one tab of a browser of its own, with a profile of its own.
type Browser struct {
	ctx context.Context
	end []context.CancelFunc

	mu         sync.Mutex
	complaints []string
}

// Open starts a browser that lives until Close or the end of ctx. It has no
// sandbox: as root Chromium makes none, and it is shown our own pages only.
func Open(ctx context.Context) (*Browser, error) {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(2*time.Minute)) // a busy machine
	ctx, endProcess := chromedp.NewExecAllocator(ctx, opts...)
	ctx, endTab := chromedp.NewContext(ctx)
	b := &Browser{ctx: ctx, end: []context.CancelFunc{endTab, endProcess}}
	err := chromedp.Listen(ctx, b.listen)
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, struct{}{})
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("chromium: %w", err)
	}
	return b, nil
}

// Close ends the browser and removes its profile.
func (b *Browser) Close() {
	for _, end := range b.end {
		end()
	}
}

// listen keeps what a developer would see in the console: errors of scripts,
// resources that could not be loaded, what a policy forbade.
func (b *Browser) listen(ev any) {
	var text string
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		text = ev.ExceptionDetails.Text
		if e := ev.ExceptionDetails.Exception; e != nil {
			text += " " + e.Description
		}
	case *runtime.EventConsoleAPICalled:
		text = "console." + string(ev.Type)
		for _, arg := range ev.Args {
			text += fmt.Sprintf(" %s%s", arg.Value, arg.Description)
		}
	case *log.EventEntryAdded:
		text = fmt.Sprintf("%s: %s (%s)", ev.Entry.Level, ev.Entry.Text, ev.Entry.URL)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, text)
}

// Complaints are all of the browser's so far.
func (b *Browser) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.complaints)
}

// Do takes steps one after another.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) error {
	return chromedp.Do(b.ctx, steps...)
}

// Await waits until a JavaScript expression is true.
func (b *Browser) Await(expression string) error {
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression))
	return err
}

// Ask gives the value of a JavaScript expression.
func Ask[T any](b *Browser, expression string) (T, error) {
	return chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
}

// Look makes the screen: width and height in CSS pixels, and whether the
// person likes it dark.
func (b *Browser) Look(width, height int64, dark bool) error {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	if err := b.Do(chromedp.EmulateViewport(width, height)); err != nil {
		return err
	}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	return err
}

// Picture takes what is on the screen, as PNG.
func (b *Browser) Picture() ([]byte, error) {
	return chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
}
