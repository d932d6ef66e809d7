package termfence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// declarationPrefix is where operators' declarations are, by enrollment.
const declarationPrefix = "control/declarations/"

// The longest text of each kind in bytes, and the most checks.
const (
	maxName   = 128
	maxText   = 2048
	maxCheck  = 512
	maxChecks = 32
)

// Declaration is an operator's word that a box which no cloud reports
// terminated will never act again. It is at [DeclarationKey], immutable, and
// never deleted. The box may still run: what keeps it from acting is that its
// roster entry is quarantined.
//
// A text is one line of UTF-8 without control characters.
type Declaration struct {
	V            int         `json:"v"`
	Box          string      `json:"box"`
	Enrollment   string      `json:"enrollment"`
	Cloud        boxid.Cloud `json:"cloud"` // as the roster has it; zero of a box that never proved one
	Region       string      `json:"region"`
	Who          string      `json:"who"`               // the person; up to 128 bytes
	Why          string      `json:"why"`               // up to 2048 bytes
	Checked      []string    `json:"checked,omitempty"` // what was looked at: 1 to 32 of up to 512 bytes
	Confirmation string      `json:"confirmation"`      // the box's reference, as the person typed it
	DeclaredAt   time.Time   `json:"declared_at"`
}

// DeclarationKey is where the declaration of an enrollment is.
func DeclarationKey(enrollment string) string { return declarationPrefix + enrollment + ".json" }

// Check refuses a declaration that says too little or too much, or whose
// confirmation is not its box. [Declare] checks the same, and what it says
// against the roster.
func (d Declaration) Check() error {
	if err := checkPerson(d.Box, d.Who, d.Why, d.Confirmation, d.DeclaredAt); err != nil {
		return err
	}
	if n := len(d.Checked); n == 0 || n > maxChecks {
		return fmt.Errorf("checked: got %d entries, expected 1 to %d", n, maxChecks)
	}
	for i, text := range d.Checked {
		if err := checkText(fmt.Sprintf("checked[%d]", i), text, maxCheck); err != nil {
			return err
		}
	}
	return nil
}

// checkPerson is about what every statement of an operator says.
func checkPerson(box, who, why, confirmation string, at time.Time) error {
	if err := checkText("who", who, maxName); err != nil {
		return err
	}
	if err := checkText("why", why, maxText); err != nil {
		return err
	}
	switch {
	case box == "" || confirmation != box:
		return fmt.Errorf("confirmation: got %q, expected the box's reference %q", confirmation, box)
	case at.IsZero():
		return errors.New("declared_at: got no time, expected that of the declaration")
	}
	return nil
}

func checkText(field, text string, most int) error {
	switch {
	case text == "" || len(text) > most:
		return fmt.Errorf("%s: got %d bytes, expected 1 to %d", field, len(text), most)
	case text != strings.TrimSpace(text):
		return fmt.Errorf("%s: got %q, expected no white space around it", field, text)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%s: got %q, expected one line of UTF-8 without control characters", field, text)
	}
	return nil
}

// Declare stores an operator's declaration, and returns its evidence. The box's
// roster entry has to be quarantined before. Where the enrollment was declared
// lost already, the declaration that is there counts, if it verifies. One that
// would not verify is not written: its key can be used only once. The version
// is set here. It costs a GET of the roster and a PUT.
//
// store is where reader reads.
func Declare(ctx context.Context, store objstore.Store, reader Reader, d Declaration) (Evidence, error) {
	d.V = version
	ev, err := publish(ctx, store, DeclarationKey(d.Enrollment), d, func(ctx context.Context, body []byte) (Evidence, error) {
		return reader.verify(ctx, declarations, d.Enrollment, body)
	})
	if err != nil {
		return Evidence{}, fmt.Errorf("termfence: declare %q lost: %w", d.Enrollment, err)
	}
	return ev, nil
}

// checkDeclaration holds a declaration to the roster. While its box is active
// it may act, whatever anyone says.
func checkDeclaration(_ roster.Roster, box roster.Box, body []byte) (time.Time, error) {
	d, err := record.Decode[Declaration](body)
	if err != nil {
		return time.Time{}, err
	}
	switch {
	case d.V != version:
		return time.Time{}, fmt.Errorf("version %d, expected %d", d.V, version)
	case d.Box != box.Ref || d.Enrollment != box.Enrollment:
		return time.Time{}, otherBox(d.Box, d.Enrollment, box)
	case d.Region != box.Region:
		return time.Time{}, fmt.Errorf("region %q, enrolled is %q", d.Region, box.Region)
	case d.Cloud != (boxid.Cloud{}) && d.Cloud != box.Cloud:
		return time.Time{}, fmt.Errorf("cloud %s, enrolled is %s", d.Cloud, box.Cloud)
	case box.State != roster.Quarantined && box.State != roster.Retired:
		return time.Time{}, fmt.Errorf("the box is %q, expected %q or %q", box.State, roster.Quarantined, roster.Retired)
	}
	return d.DeclaredAt, d.Check()
}
