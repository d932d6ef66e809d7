package hostguard

import (
	"log/slog"
	"time"
)

// lifeLong is the TTL of a lease that a test never loses.
const lifeLong = 10 * time.Minute

var quietLog = slog.New(slog.DiscardHandler)
