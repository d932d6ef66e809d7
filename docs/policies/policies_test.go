package policies_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/awscloud/event"
)

// writers says which roles may write under each prefix of a bucket.
var writers = map[string][]string{
	"control/control/host-actors.json":                   {"console"},
	"control/control/declarations/e-1.json":              {"console"},
	"control/control/destructions/e-1.json":              {"console"},
	"control/control/resolutions/op-1/1.json":            {"console"},
	"control/apps/demo/notes/instances/h.json":           {"console"},
	"control/control/box-fences/e-1.json":                {"worker"},
	"control/control/box-volumes/e-1/t.json":             {"worker"},
	"control/control/box-memberships/box-1/i-1.json":     {"worker"},
	"control/control/drivers/ie.json":                    {"worker"},
	"control/control/stop/h/op-1/r.json":                 {"agent"},
	"control/control/exec/h/op-1/box-1.json":             {"agent"},
	"control/control/boxes/box-1.json":                   {"agent", "worker"},
	"control/control/edges/box-1.json":                   {"agent", "worker"},
	"control/control/leases/ie/instances/h/inc.json":     {"agent", "worker"},
	"control/control/relocations/h/op-1/pin-1.json":      {"agent", "worker"},
	"control/control/hosts/h.json":                       {"agent", "console", "worker"},
	"control/control/regions/ie.json":                    {"agent", "console", "worker"},
	"data/instances/h/inc/db/g/ltx/0/1-1.ltx":            {"agent"},
	"data/instances/h/inc/db/g/generation.json":          {"agent"},
	"data/instances/h/inc/db/g/build.json":               {"agent"},
	"data/instances/h/inc/db/g/install.json":             {"agent"},
	"data/instances/h/inc/files/g/manifest.json":         {"agent"},
	"data/instances/h/inc/files/g/objects/1-00aa.sha256": {"agent"},
}

var roles = []string{"agent", "console", "worker"}

// withAdmin adds a role that its own policy allows everything: only a Deny keeps
// it from anything.
func withAdmin(d deployment) deployment {
	all := statement{Sid: "All", Effect: "Allow", Action: values{"*"}, Resource: values{"*"}}
	d["admin-role"] = policy{Statements: []statement{all}}
	return d
}

func requireAllowed(t *testing.T, d deployment, r request) {
	t.Helper()
	allowed, by := d.decide(r)
	require.True(t, allowed, "%v: denied by %q", r, by)
}

func requireRefused(t *testing.T, d deployment, r request) {
	t.Helper()
	allowed, _ := d.decide(r)
	require.False(t, allowed, "%v", r)
}

func TestEveryRequestOfTheCodeIsAllowed(t *testing.T) {
	d := load(t)
	seen := map[string]bool{}
	for _, r := range scenario(t) {
		requireAllowed(t, d, r)
		seen[r.by+" "+r.action] = true
	}
	for _, name := range roles {
		require.True(t, seen[role(name)+" s3:GetObject"])
		require.True(t, seen[role(name)+" s3:PutObject"])
	}
	require.True(t, seen[role("worker")+" s3:ListBucket"])
}

// TestNoTwinOfAWriteOfTheCodeIsAllowed: the same write without its condition,
// over plain HTTP, and the end of what it wrote, by whoever may do everything.
func TestNoTwinOfAWriteOfTheCodeIsAllowed(t *testing.T) {
	d := withAdmin(load(t))
	for _, r := range scenario(t) {
		object := strings.TrimPrefix(r.resource, "arn:aws:s3:::")
		if r.action != "s3:PutObject" || strings.Contains(object, "/control/store-check/") {
			continue
		}
		by := strings.TrimPrefix(r.by, role(""))
		for _, twin := range []request{
			put(by, object, condition{}), plain(r),
			ask("admin", "s3:DeleteObject", r.resource), ask("admin", "s3:DeleteObjectVersion", r.resource),
			ask(by, "s3:DeleteObject", r.resource), ask(by, "s3:DeleteObjectVersion", r.resource),
		} {
			requireRefused(t, d, twin)
		}
	}
}

func plain(r request) request {
	r.context = maps.Clone(r.context)
	r.context["aws:SecureTransport"] = "false"
	return r
}

func TestOnlyItsWritersWriteAPrefix(t *testing.T) {
	d := withAdmin(load(t))
	for object, may := range writers {
		for _, name := range roles {
			allowed, _ := d.decide(put(name, object, condition{absent: true}))
			require.Equal(t, slices.Contains(may, name), allowed, "%s of %s", name, object)
		}
		allowed, _ := d.decide(put("admin", object, condition{absent: true}))
		require.Equal(t, len(may) == len(roles), allowed, "whoever else, of %s", object)
	}
}

func TestARecordIsOnlyCreatedAndTheRestIsOnlyWrittenUnderACondition(t *testing.T) {
	d := load(t)
	mutable := regexp.MustCompile(`/(host-actors\.json|hosts|edges|exec|leases|drivers|regions|apps|manifest\.json)(/|$)`)
	for object, may := range writers {
		if strings.HasSuffix(object, ".ltx") {
			requireAllowed(t, d, put(may[0], object, condition{})) // a copy inside S3 takes no condition
			continue
		}
		requireAllowed(t, d, put(may[0], object, condition{absent: true}))
		requireRefused(t, d, put(may[0], object, condition{}))
		replaced, _ := d.decide(put(may[0], object, condition{match: true}))
		require.Equal(t, mutable.MatchString(object), replaced, object)
	}
}

// S3 takes no condition for the parts of an upload, but for its completion.
func TestAnUploadInPartsNeedsItsConditionAtItsEnd(t *testing.T) {
	d := load(t)
	object := "data/instances/h/inc/files/g/objects/1-00aa"
	part := put("agent", object, condition{})
	part.context["s3:ObjectCreationOperation"] = "false"
	requireAllowed(t, d, part)
	requireAllowed(t, d, put("agent", object, condition{absent: true}))
	requireRefused(t, d, put("agent", object, condition{}))
	requireAllowed(t, d, ask("agent", "s3:AbortMultipartUpload", "arn:aws:s3:::"+object))
}

func TestWhatEachRoleMayAskOfTheCloud(t *testing.T) {
	d := load(t)
	queue := filled["queue-arn"]
	may := map[string]string{
		"ec2:DescribeInstances": "*", "autoscaling:DescribeAutoScalingInstances": "*", "autoscaling:DescribeAutoScalingGroups": "*",
		"sqs:ReceiveMessage": queue, "sqs:DeleteMessage": queue, "sqs:GetQueueAttributes": queue,
	}
	for action, resource := range may {
		requireAllowed(t, d, ask("worker", action, resource))
		requireRefused(t, d, ask("agent", action, resource))
		requireRefused(t, d, ask("console", action, resource))
	}
	for _, action := range []string{
		"ec2:StopInstances", "ec2:TerminateInstances", "ec2:RebootInstances", "ec2:ModifyInstanceAttribute", "ec2:RunInstances",
		"ec2:DetachVolume", "ec2:DeleteVolume", "autoscaling:TerminateInstanceInAutoScalingGroup", "autoscaling:SetDesiredCapacity",
		"sqs:SendMessage", "sqs:PurgeQueue", "sqs:SetQueueAttributes", "events:PutRule", "iam:PassRole", "s3:PutBucketPolicy",
	} {
		for _, name := range roles {
			requireRefused(t, d, ask(name, action, "*"))
			requireRefused(t, d, ask(name, action, queue))
			requireRefused(t, d, ask(name, action, "arn:aws:s3:::control"))
		}
	}
	requireRefused(t, d, ask("worker", "sqs:ReceiveMessage", queue+"-other"))
}

func TestWhatARoleMayNotRead(t *testing.T) {
	d := load(t)
	requireRefused(t, d, ask("agent", "s3:GetObject", "arn:aws:s3:::control/control/box-volumes/e-1/t.json"))
	requireRefused(t, d, ask("console", "s3:GetObject", "arn:aws:s3:::data/instances/h/inc/db/g/generation.json"))
	requireRefused(t, d, ask("console", "s3:ListBucket", "arn:aws:s3:::data"))
	requireRefused(t, d, ask("agent", "s3:GetObject", "arn:aws:s3:::other/control/hosts/h.json"))
}

// sending is one SendMessage to the queue.
func sending(by, rule string) request {
	r := request{by: by, action: "sqs:SendMessage", resource: filled["queue-arn"], context: tls()}
	if rule != "" {
		r.context["aws:SourceArn"] = rule
	}
	return r
}

func TestOnlyTheRuleSendsEvents(t *testing.T) {
	d := withAdmin(load(t))
	rule, service := filled["rule-arn"], "events.amazonaws.com"
	requireAllowed(t, d, sending(service, rule))
	for _, r := range []request{
		sending(service, ""), sending(service, rule+"-other"), sending("sns.amazonaws.com", rule), sending(role("admin"), ""),
		sending(role("worker"), ""), sending(role("worker"), rule),
	} {
		requireRefused(t, d, r)
	}
}

// Whoever set the policy may take it away again: nobody locks themselves out.
func TestVersionsAreKeptWhileThePolicyStands(t *testing.T) {
	d := withAdmin(load(t))
	for _, bucket := range []string{"arn:aws:s3:::control", "arn:aws:s3:::data"} {
		for _, action := range []string{"s3:PutBucketVersioning", "s3:PutLifecycleConfiguration", "s3:DeleteBucket"} {
			requireRefused(t, d, ask("admin", action, bucket))
		}
		requireAllowed(t, d, ask("admin", "s3:PutBucketPolicy", bucket))
		requireAllowed(t, d, ask("admin", "s3:DeleteBucketPolicy", bucket))
	}
}

// TestEveryDenyIsNeeded takes each Deny away once: something that is refused
// with it is allowed without it.
func TestEveryDenyIsNeeded(t *testing.T) {
	var tries []request
	for object := range writers {
		for _, by := range append([]string{"admin"}, roles...) {
			for _, cond := range []condition{{}, {absent: true}, {match: true}} {
				tries = append(tries, put(by, object, cond), plain(put(by, object, cond)))
			}
			tries = append(tries, ask(by, "s3:DeleteObject", "arn:aws:s3:::"+object))
		}
	}
	for _, bucket := range []string{"control", "data"} {
		tries = append(tries, ask("admin", "s3:DeleteBucket", "arn:aws:s3:::"+bucket))
	}
	tries = append(tries, sending(role("admin"), ""))
	d := withAdmin(load(t))
	for name, p := range d {
		for i, s := range p.Statements {
			if s.Effect != "Deny" {
				continue
			}
			without := maps.Clone(d)
			without[name] = policy{Statements: slices.Delete(slices.Clone(p.Statements), i, i+1)}
			require.True(t, slices.ContainsFunc(tries, func(r request) bool {
				before, _ := d.decide(r)
				after, _ := without.decide(r)
				return !before && after
			}), "%s: %s", name, s.Sid)
		}
	}
}

// TestEveryPrefixOfTheCodeIsGuarded finds the keys that the code names.
func TestEveryPrefixOfTheCodeIsGuarded(t *testing.T) {
	d := withAdmin(load(t))
	found := map[string]bool{}
	key := regexp.MustCompile(`"((?:control|apps)/[a-z-]*)`)
	require.NoError(t, filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{"bench", "examples", "simcloud", ".git"}, e.Name()):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range key.FindAllSubmatch(b, -1) {
			found[string(m[1])] = true
		}
		return err
	}))
	delete(found, "control/store-check") // where a store is tried out
	require.Greater(t, len(found), 10)
	for prefix := range found {
		if prefix == "control/host-actors" {
			prefix += ".json"
		}
		for _, object := range []string{prefix, prefix + "/x"} {
			if strings.HasSuffix(prefix, ".json") == strings.HasSuffix(object, "/x") {
				continue
			}
			requireRefused(t, d, ask("admin", "s3:DeleteObject", "arn:aws:s3:::control/"+object))
			requireRefused(t, d, put("admin", "control/"+object, condition{}))
		}
	}
}

func TestWhatIsNotUnderstoodIsAnError(t *testing.T) {
	good := `{"Version":"2012-10-17","Statement":[{"Sid":"A","Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"*"}]}`
	_, err := parse([]byte(good))
	require.NoError(t, err)
	for name, c := range map[string][2]string{
		"another version":     {"2012-10-17", "2008-10-17"},
		"an unknown member":   {`"Effect"`, `"NotResource":"*","Effect"`},
		"a duplicate member":  {`"Effect"`, `"Sid":"B","Effect"`},
		"an unknown effect":   {"Deny", "deny"},
		"no action":           {`"s3:*"`, `[]`},
		"a bad sid":           {`"A"`, `"a b"`},
		"an unknown operator": {`"Action"`, `"Condition":{"StringLike":{"aws:PrincipalArn":"x"}},"Action"`},
		"an unknown key":      {`"Action"`, `"Condition":{"Null":{"s3:if-nonematch":"true"}},"Action"`},
		"a wrong operator":    {`"Action"`, `"Condition":{"Bool":{"s3:if-match":"true"}},"Action"`},
		"another principal":   {`"*","Action"`, `{"AWS":"x"},"Action"`},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		require.NotEqual(t, good, bad, name)
		_, err := parse([]byte(bad))
		require.Error(t, err, name)
	}
}

func TestTheRuleMatchesTheEventsThatTheWorkerReads(t *testing.T) {
	raw, err := os.ReadFile("termination-rule.json")
	require.NoError(t, err)
	var rule struct {
		Source     []string `json:"source"`
		DetailType []string `json:"detail-type"`
		Detail     struct {
			State []string `json:"state"`
		} `json:"detail"`
	}
	require.NoError(t, json.Unmarshal(raw, &rule, json.RejectUnknownMembers(true)))
	require.Len(t, rule.Source, 1)
	require.Len(t, rule.DetailType, 1)
	require.Contains(t, rule.Detail.State, "terminated")
	for _, state := range rule.Detail.State {
		seen, err := event.Decode(fmt.Appendf(nil, `{"version":"0","id":"e","source":%q,"detail-type":%q,"account":"111122223333","region":"eu-west-1",
			"resources":["arn:aws:ec2:eu-west-1:111122223333:instance/i-1"],"detail":{"instance-id":"i-1","state":%q}}`, rule.Source[0], rule.DetailType[0], state))
		require.NoError(t, err)
		require.Equal(t, state, seen.State)
	}
}
