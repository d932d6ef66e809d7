package simcloud

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
)

var ec2API = api{
	scope:   "ec2",
	version: "2016-11-15",
	errors: map[string]apiError{
		Throttled: {http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded."},
		Denied:    {http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation."},
		Expired:   {http.StatusBadRequest, "RequestExpired", "Request has expired."},
		NotFound:  {http.StatusBadRequest, "InvalidInstanceID.NotFound", "The instance ID does not exist"},
		Broken:    {http.StatusInternalServerError, "InternalError", "An internal error has occurred"},
	},
	bends: []string{Empty, Partial, NoOwner, NoState},
}

// EC2 is the handler of EC2's Query API.
func (c *Cloud) EC2() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.serveQuery(w, r, &ec2API, "InstanceId", c.answer, func(e apiError, id string) any {
			return errorReply{Code: e.code, Message: e.message, RequestID: id}
		})
	})
}

func (c *Cloud) answer(q query) (any, error) {
	switch action := q.action(); action {
	case "DescribeInstances":
		return c.describe(q)
	case "TerminateInstances":
		return c.transition(q, "TerminateInstancesResponse", c.Terminate)
	case "StopInstances":
		return c.transition(q, "StopInstancesResponse", c.Stop)
	case "StartInstances":
		return c.transition(q, "StartInstancesResponse", c.Start)
	default:
		return nil, refused("InvalidAction", "The action %s is not valid for this web service.", action)
	}
}

// describe answers DescribeInstances.
func (c *Cloud) describe(q query) (any, error) {
	there := c.seenIn(q.region)
	found, err := named(there, q.ids)
	if err != nil {
		return nil, err
	}
	if found, err = filter(found, q.form); err != nil {
		return nil, err
	}
	page, token, err := paged(found, q)
	if err != nil {
		return nil, err
	}
	reply := describeReply{Xmlns: xmlns, RequestID: q.id, NextToken: token}
	for _, s := range page {
		reply.Reservations = append(reply.Reservations, newReservation(s))
	}
	reply.bend(q.fault)
	return reply, nil
}

// named returns the instances with these ids, all of them for none, by id. As
// on EC2 one unknown id refuses the whole request.
func named(there map[string]seen, ids []string) ([]seen, error) {
	if len(ids) == 0 {
		for id := range there {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var found []seen
	for _, id := range slices.Compact(ids) {
		if !strings.HasPrefix(id, "i-") {
			return nil, refused("InvalidInstanceID.Malformed", "Invalid id: %q", id)
		}
		s, ok := there[id]
		if !ok {
			return nil, refused("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
		found = append(found, s)
	}
	return found, nil
}

// transition answers TerminateInstances, StopInstances and StartInstances.
func (c *Cloud) transition(q query, name string, apply func(string) error) (any, error) {
	if len(q.ids) == 0 {
		return nil, refused("MissingParameter", "The request must contain the parameter InstanceId")
	}
	before, err := named(c.now(q.region), q.ids)
	if err != nil {
		return nil, err
	}
	for _, s := range before {
		if err := apply(s.id); err != nil {
			return nil, refused("InvalidInstanceID.NotFound", "%v", err)
		}
	}
	after := c.now(q.region)
	reply := transitionReply{XMLName: xml.Name{Local: name}, Xmlns: xmlns, RequestID: q.id}
	for _, s := range before {
		reply.Changes = append(reply.Changes, stateChange{s.id, stateOf(after[s.id].state), stateOf(s.state)})
	}
	return reply, nil
}
