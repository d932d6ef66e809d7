package boxid

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// AWS is the [Cloud.Provider] of an EC2 instance.
const AWS = "aws"

// ErrBadRef: a box reference is not one DNS label. Trying again changes
// nothing.
var ErrBadRef = errors.New("bad box reference")

// Cloud names one instance of one cloud. It is private to the roster and to
// evidence; everything else knows a box by its reference.
type Cloud struct {
	Provider   string `json:"provider"`
	Account    string `json:"account"`
	Region     string `json:"region"` // the cloud's own name, such as eu-west-1
	InstanceID string `json:"instance_id"`
}

// Complete reports whether every field is known. Two clouds are compared only
// when both are complete, so that two empty fields never match.
func (c Cloud) Complete() bool {
	return c.Provider != "" && c.Account != "" && c.Region != "" && c.InstanceID != ""
}

// String names the instance for messages.
func (c Cloud) String() string {
	return fmt.Sprintf("%s/%s/%s/%s", c.Provider, c.Account, c.Region, c.InstanceID)
}

// CheckRef refuses, with [ErrBadRef], a box reference that is not one DNS label
// in lower case: 1 to 63 of [a-z0-9-], neither starting nor ending with a
// hyphen. A reference is compared by equality and never parsed.
func CheckRef(ref string) error {
	switch {
	case ref == "" || len(ref) > 63:
		return fmt.Errorf("%w: %q has %d bytes, a reference has 1 to 63", ErrBadRef, ref, len(ref))
	case strings.ContainsFunc(ref, notInLabel):
		return fmt.Errorf("%w: %q is not one DNS label of [a-z0-9-]", ErrBadRef, ref)
	case ref == "none":
		return fmt.Errorf("%w: %q is what a claim says where no box executes", ErrBadRef, ref)
	case ref[0] == '-' || ref[len(ref)-1] == '-':
		return fmt.Errorf("%w: %q starts or ends with a hyphen", ErrBadRef, ref)
	}
	return nil
}

func notInLabel(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
}

// ParseDocument reads an EC2 instance identity document. It says what the
// document says and proves nothing; a document that does not name an account, a
// region and an instance is an error.
func ParseDocument(doc []byte) (Cloud, error) {
	c, err := readDocument(doc)
	if err == nil && !c.Complete() {
		err = fmt.Errorf("identity document: accountId %q, region %q, instanceId %q: none may be empty",
			c.Account, c.Region, c.InstanceID)
	}
	if err != nil {
		return Cloud{}, err
	}
	return c, nil
}

// readDocument takes the three fields that matter. The document is the cloud's
// and grows new fields, so others are ignored; a duplicate name is refused.
func readDocument(doc []byte) (Cloud, error) {
	var d struct {
		Account    string `json:"accountId"`
		Region     string `json:"region"`
		InstanceID string `json:"instanceId"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return Cloud{}, fmt.Errorf("identity document: %w", err)
	}
	return Cloud{Provider: AWS, Account: d.Account, Region: d.Region, InstanceID: d.InstanceID}, nil
}
