package hostdb

import (
	"context"
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// integrity runs SQLite's own check over a finished file, which it leaves as it
// is.
func integrity(ctx context.Context, path string) error {
	verdict := ""
	if err := ask(ctx, path, "PRAGMA integrity_check(1)", &verdict); err != nil {
		return fmt.Errorf("integrity check: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: integrity check: %s", ErrBroken, verdict)
	}
	return nil
}

// readable lets SQLite open a finished file and read its schema.
func readable(ctx context.Context, path string) error {
	tables := 0
	if err := ask(ctx, path, "SELECT count(*) FROM sqlite_schema", &tables); err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	return nil
}

// ask opens a file that nobody writes and asks one question. Immutable means no
// lock, no -wal and no -shm.
func ask(ctx context.Context, path, question string, answer any) error {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&immutable=1")
	if err != nil {
		return err
	}
	defer db.Close()
	return db.QueryRowContext(ctx, question).Scan(answer)
}
