package policies_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// policy is an IAM policy document, as much of the language as is used here.
type policy struct {
	Version    string
	Statements []statement `json:"Statement"`
}

type statement struct {
	Sid       string
	Effect    string
	Principal jsontext.Value               `json:",omitzero"`
	Action    values                       // patterns
	Resource  values                       // patterns
	Condition map[string]map[string]values `json:",omitzero"`
}

// values is one string or a list of them.
type values []string

func (v *values) UnmarshalJSON(b []byte) error {
	if jsontext.Value(b).Kind() == '"' {
		*v = make(values, 1)
		return json.Unmarshal(b, &(*v)[0])
	}
	return json.Unmarshal(b, (*[]string)(v))
}

// keys are the condition keys that mean something here, and how they compare.
var keys = map[string][]string{
	"s3:if-match":                {"Null"},
	"s3:if-none-match":           {"Null"},
	"s3:ObjectCreationOperation": {"Bool"},
	"aws:SecureTransport":        {"Bool"},
	"aws:PrincipalArn":           {"ArnNotEquals"},
	"aws:SourceArn":              {"ArnEquals", "ArnNotEquals"},
}

// parse reads a policy strictly: what is not understood is an error, never
// ignored.
func parse(b []byte) (policy, error) {
	var p policy
	if err := json.Unmarshal(b, &p, json.RejectUnknownMembers(true)); err != nil {
		return p, err
	}
	if p.Version != "2012-10-17" {
		return p, fmt.Errorf("version %q", p.Version)
	}
	for _, s := range p.Statements {
		if err := s.check(); err != nil {
			return p, fmt.Errorf("%s: %w", s.Sid, err)
		}
	}
	return p, nil
}

var sid = regexp.MustCompile(`^[A-Za-z0-9]+$`)

func (s statement) check() error {
	switch {
	case !sid.MatchString(s.Sid):
		return fmt.Errorf("sid %q", s.Sid)
	case s.Effect != "Allow" && s.Effect != "Deny":
		return fmt.Errorf("effect %q", s.Effect)
	case len(s.Action) == 0 || len(s.Resource) == 0:
		return fmt.Errorf("no action or no resource")
	}
	for operator, tests := range s.Condition {
		for key := range tests {
			if !slices.Contains(keys[key], operator) {
				return fmt.Errorf("condition %s of %q is not understood", operator, key)
			}
		}
	}
	_, err := s.principal()
	return err
}

// principal returns what the statement is about: "" for whoever has the policy,
// "*", or the name of a service.
func (s statement) principal() (string, error) {
	if s.Principal == nil {
		return "", nil
	}
	if string(s.Principal) == `"*"` {
		return "*", nil
	}
	var by struct{ Service string }
	err := json.Unmarshal(s.Principal, &by, json.RejectUnknownMembers(true))
	return by.Service, err
}

// request is what a policy is held against.
type request struct {
	by       string // a role's ARN, or a service's name
	action   string
	resource string
	context  map[string]string
}

func (s statement) matches(r request) bool {
	about, _ := s.principal()
	return (about == "" || about == "*" || about == r.by) && like(s.Action, r.action) && like(s.Resource, r.resource) && s.holds(r.context)
}

// holds compares as IAM does: all of it has to hold, one value is enough, and a
// negated operator holds where the key is absent.
func (s statement) holds(context map[string]string) bool {
	for operator, tests := range s.Condition {
		for key, want := range tests {
			got, present := context[key]
			var ok bool
			switch operator {
			case "Null":
				ok = slices.Contains(want, fmt.Sprint(!present))
			case "Bool":
				ok = present && slices.Contains(want, got)
			case "ArnEquals":
				ok = present && like(want, got)
			case "ArnNotEquals":
				ok = !present || !like(want, got)
			}
			if !ok {
				return false
			}
		}
	}
	return true
}

// like reports whether a pattern matches all of s; * is any part of it, slashes
// included.
func like(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob(strings.Split(p, "*"), s) })
}

func glob(parts []string, s string) bool {
	rest, ok := strings.CutPrefix(s, parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	for i := range len(rest) + 1 {
		if glob(parts[1:], rest[i:]) {
			return true
		}
	}
	return false
}

// deployment is every policy with its placeholders filled in, by its file.
type deployment map[string]policy

// filled is what stands in for each placeholder.
var filled = map[string]string{
	"control-bucket": "control", "data-bucket": "data",
	"agent-role-arn": role("agent"), "worker-role-arn": role("worker"), "console-role-arn": role("console"),
	"queue-arn": "arn:aws:sqs:eu-west-1:111122223333:terminations", "rule-arn": "arn:aws:events:eu-west-1:111122223333:rule/terminations",
}

func role(name string) string { return "arn:aws:iam::111122223333:role/" + name }

func load(t *testing.T) deployment {
	t.Helper()
	d := deployment{}
	for _, name := range []string{"agent-role", "worker-role", "console-role", "control-bucket", "data-bucket", "termination-queue"} {
		raw, err := os.ReadFile(name + ".json")
		require.NoError(t, err)
		text := string(raw)
		for placeholder, value := range filled {
			text = strings.ReplaceAll(text, "${"+placeholder+"}", value)
		}
		require.NotContains(t, text, "${", name)
		d[name], err = parse([]byte(text))
		require.NoError(t, err, name)
	}
	return d
}

// decide is what AWS answers within one account: a request needs an Allow of its
// own role's policy or of the resource's, and no Deny.
func (d deployment) decide(r request) (allowed bool, denied string) {
	applies := []string{}
	for _, name := range slices.Sorted(maps.Keys(d)) {
		own, isRole := strings.CutSuffix(name, "-role")
		if !isRole || role(own) == r.by {
			applies = append(applies, name)
		}
	}
	for _, name := range applies {
		for _, s := range d[name].Statements {
			switch {
			case !s.matches(r):
			case s.Effect == "Deny":
				return false, s.Sid
			default:
				allowed = true
			}
		}
	}
	return allowed, ""
}
