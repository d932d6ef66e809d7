package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// teller prints one line per event, with the seconds since the program began.
type teller struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func (t *teller) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%7.2fs  %s\n", time.Since(t.began).Seconds(), fmt.Sprintf(format, args...))
}

// print prints lines as they are.
func (t *teller) print(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	io.WriteString(t.out, text)
}

// size is a number of bytes as a flag: 4096, 64KB, 200MB, 1GB.
type size int64

var units = []struct {
	suffix string
	bytes  int64
}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}, {"", 1}}

func (s *size) Set(text string) error {
	for _, u := range units {
		number, ok := strings.CutSuffix(strings.ToUpper(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 40)
		if err != nil || n < 0 {
			return fmt.Errorf("want a size such as 200MB")
		}
		*s = size(n * u.bytes)
		return nil
	}
	return nil
}

func (s *size) String() string {
	for _, u := range units[:3] {
		if n := int64(*s); n > 0 && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.suffix)
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

// pollEvery is the pace of everything that this program looks at.
const pollEvery = 100 * time.Millisecond

// until asks, at that pace, until the answer is true. It fails when asking
// does, when ctx ends, and after limit; what names what was waited for.
func until(ctx context.Context, limit time.Duration, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		done, err := ask(ctx)
		if done {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
