package simcloud

import (
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"time"
)

var scalingAPI = api{
	scope:   "autoscaling",
	version: "2011-01-01",
	errors: map[string]apiError{
		Throttled: {http.StatusBadRequest, "Throttling", "Rate exceeded"},
		Denied:    {http.StatusForbidden, "AccessDenied", "User is not authorized to perform this action"},
		Expired:   {http.StatusForbidden, "ExpiredToken", "The security token included in the request is expired"},
		Broken:    {http.StatusInternalServerError, "InternalFailure", "The request processing has failed"},
	},
	bends: []string{Empty, Partial, NoState},
}

// The states of a membership, in Auto Scaling's words.
const (
	joining = "Pending"
	inGroup = "InService"
	leaving = "Terminating"
)

// GroupARN is the ARN of an Auto Scaling group, which is known before the
// group's first launch.
func GroupARN(region, account, name string) string {
	sum := sha256.Sum256([]byte(region + "/" + account + "/" + name))
	return fmt.Sprintf("arn:aws:autoscaling:%s:%s:autoScalingGroup:%s:autoScalingGroupName/%s",
		region, account, formatUUID([16]byte(sum[:16])), name)
}

// AutoScaling is the handler of Auto Scaling's Query API, as far as it is read:
// by the instances' ids, and by the groups' names.
func (c *Cloud) AutoScaling() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.serveQuery(w, r, &scalingAPI, "InstanceIds.member", c.answerScaling, func(e apiError, id string) any {
			return scalingError{Type: "Sender", Code: e.code, Message: e.message, RequestID: id}
		})
	})
}

func (c *Cloud) answerScaling(q query) (any, error) {
	switch action := q.action(); action {
	case "DescribeAutoScalingInstances":
		return c.describeMembers(q)
	case "DescribeAutoScalingGroups":
		return c.describeGroups(q)
	default:
		return nil, refused("InvalidAction", "Could not find operation %s for version %s", action, scalingAPI.version)
	}
}

// describeMembers leaves out an instance that it does not know, as Auto Scaling
// does.
func (c *Cloud) describeMembers(q query) (any, error) {
	if len(q.ids) == 0 {
		return nil, refused("ValidationError", "the simulation lists no instances: name them in InstanceIds")
	}
	reply := membersReply{RequestID: q.id}
	there := c.seenIn(q.region)
	for _, id := range q.ids {
		if state := c.lifecycle(there[id]); state != "" {
			reply.Instances = append(reply.Instances, member{InstanceID: id, Group: there[id].group,
				Zone: there[id].zone(), State: state, Health: "HEALTHY", Type: instanceType})
		}
	}
	switch q.fault {
	case Empty:
		reply.Instances = nil
	case Partial:
		reply.NextToken = pageToken("more")
	case NoState:
		for n := range reply.Instances {
			reply.Instances[n].State = ""
		}
	}
	return reply, nil
}

// lifecycle is the state of an instance in its group, "" for none.
func (c *Cloud) lifecycle(s seen) string {
	switch {
	case s.group == "" || s.state == Terminated:
		return ""
	case s.state == ShuttingDown:
		return leaving
	case c.cfg.Now().Before(s.launched.Add(c.cfg.JoinTime)):
		return joining
	}
	return inGroup
}

func (c *Cloud) describeGroups(q query) (any, error) {
	names := numbered(q.form, "AutoScalingGroupNames.member")
	if len(names) == 0 {
		return nil, refused("ValidationError", "the simulation lists no groups: name them in AutoScalingGroupNames")
	}
	reply := groupsReply{RequestID: q.id}
	there := c.seenIn(q.region)
	for _, s := range there {
		if s.group == "" || !slices.Contains(names, s.group) ||
			slices.ContainsFunc(reply.Groups, func(g group) bool { return g.Name == s.group }) {
			continue
		}
		reply.Groups = append(reply.Groups, group{Name: s.group, ARN: GroupARN(q.region, s.account, s.group),
			Zones: []string{s.zone()}, HealthCheck: "EC2", Created: s.launched.UTC().Format(time.RFC3339)})
	}
	switch q.fault {
	case Empty:
		reply.Groups = nil
	case Partial:
		reply.NextToken = pageToken("more")
	}
	return reply, nil
}

type scalingError struct {
	XMLName   xml.Name `xml:"http://autoscaling.amazonaws.com/doc/2011-01-01/ ErrorResponse"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

type membersReply struct {
	XMLName   xml.Name `xml:"http://autoscaling.amazonaws.com/doc/2011-01-01/ DescribeAutoScalingInstancesResponse"`
	Instances []member `xml:"DescribeAutoScalingInstancesResult>AutoScalingInstances>member"`
	NextToken string   `xml:"DescribeAutoScalingInstancesResult>NextToken,omitempty"`
	RequestID string   `xml:"ResponseMetadata>RequestId"`
}

type member struct {
	InstanceID string `xml:"InstanceId"`
	Group      string `xml:"AutoScalingGroupName"`
	Zone       string `xml:"AvailabilityZone"`
	State      string `xml:"LifecycleState,omitempty"`
	Health     string `xml:"HealthStatus"`
	Type       string `xml:"InstanceType"`
	Protected  bool   `xml:"ProtectedFromScaleIn"`
}

type groupsReply struct {
	XMLName   xml.Name `xml:"http://autoscaling.amazonaws.com/doc/2011-01-01/ DescribeAutoScalingGroupsResponse"`
	Groups    []group  `xml:"DescribeAutoScalingGroupsResult>AutoScalingGroups>member"`
	NextToken string   `xml:"DescribeAutoScalingGroupsResult>NextToken,omitempty"`
	RequestID string   `xml:"ResponseMetadata>RequestId"`
}

type group struct {
	Name        string   `xml:"AutoScalingGroupName"`
	ARN         string   `xml:"AutoScalingGroupARN"`
	Zones       []string `xml:"AvailabilityZones>member"`
	HealthCheck string   `xml:"HealthCheckType"`
	Created     string   `xml:"CreatedTime"`
}
