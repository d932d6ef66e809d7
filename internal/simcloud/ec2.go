package simcloud

import (
	"bytes"
	"crypto/rand"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// apiVersion is the one version of the EC2 API that the SDKs speak.
const apiVersion = "2016-11-15"

// maxQuery bounds one request's form in bytes.
const maxQuery = 1 << 20

// apiError is a refusal in EC2's form.
type apiError struct {
	status        int
	code, message string
}

func (e apiError) Error() string { return e.code + ": " + e.message }

func refused(code, format string, args ...any) apiError {
	return apiError{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

// query is one parsed request.
type query struct {
	region string
	form   url.Values
	ids    []string // InstanceId.1, .2, …
	id     string   // the request's own id
	fault  string   // a kind that bends the reply, or ""
}

// EC2 is the Query API's handler.
func (c *Cloud) EC2() http.Handler { return http.HandlerFunc(c.serveEC2) }

func (c *Cloud) serveEC2(w http.ResponseWriter, r *http.Request) {
	id := requestID()
	w.Header().Set("X-Amzn-Requestid", id)
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	q, err := parseQuery(w, r)
	if err != nil {
		writeError(w, id, err)
		return
	}
	q.id = id
	q.fault = c.faults.take(q.form.Get("Action"), q.ids)
	if q.fault == Hang {
		select {
		case <-r.Context().Done():
		case <-c.faults.untilCleared():
		}
		panic(http.ErrAbortHandler)
	}
	if answer, ok := errorKinds[q.fault]; ok {
		writeError(w, id, answer)
		return
	}
	reply, err := c.answer(q)
	if err != nil {
		writeError(w, id, err)
		return
	}
	write(w, http.StatusOK, reply, q.fault == Cut)
}

func (c *Cloud) answer(q query) (any, error) {
	switch action := q.form.Get("Action"); action {
	case "DescribeInstances":
		return c.describe(q)
	case "TerminateInstances":
		return c.transition(q, "TerminateInstancesResponse", c.Terminate)
	case "StopInstances":
		return c.transition(q, "StopInstancesResponse", c.Stop)
	default:
		return nil, refused("InvalidAction", "The action %s is not valid for this web service.", action)
	}
}

func parseQuery(w http.ResponseWriter, r *http.Request) (query, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxQuery)
	if err := r.ParseForm(); err != nil {
		return query{}, refused("MalformedQueryString", "%v", err)
	}
	region, err := scopeRegion(r.Header.Get("Authorization"))
	if err != nil {
		return query{}, err
	}
	if v := r.Form.Get("Version"); v != apiVersion {
		return query{}, refused("InvalidParameterValue", "Version is %q, expected %s", v, apiVersion)
	}
	return query{region: region, form: r.Form, ids: numbered(r.Form, "InstanceId")}, nil
}

// scopeRegion reads the region out of a version 4 signature's credential scope,
// <key id>/<date>/<region>/ec2/aws4_request.
func scopeRegion(authorization string) (string, error) {
	fields, ok := strings.CutPrefix(authorization, "AWS4-HMAC-SHA256 ")
	if !ok {
		return "", apiError{http.StatusUnauthorized, "MissingAuthenticationToken", "Request is missing an authentication token"}
	}
	for _, field := range strings.Split(fields, ",") {
		scope, ok := strings.CutPrefix(strings.TrimSpace(field), "Credential=")
		parts := strings.Split(scope, "/")
		if ok && len(parts) == 5 && parts[2] != "" && parts[3] == "ec2" && parts[4] == "aws4_request" {
			return parts[2], nil
		}
	}
	return "", apiError{http.StatusUnauthorized, "AuthFailure", "AWS was not able to validate the provided access credentials"}
}

// numbered reads name.1, name.2, … up to the first that is missing.
func numbered(form url.Values, name string) []string {
	var all []string
	for n := 1; form.Has(name + "." + strconv.Itoa(n)); n++ {
		all = append(all, form.Get(name+"."+strconv.Itoa(n)))
	}
	return all
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

// transition answers TerminateInstances and StopInstances.
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

// write sends reply; cut ends the connection half-way through it.
func write(w http.ResponseWriter, status int, reply any, cut bool) {
	var body bytes.Buffer
	body.WriteString(xml.Header)
	if err := xml.NewEncoder(&body).Encode(reply); err != nil {
		panic(fmt.Sprintf("simcloud: encode %T: %v", reply, err)) // a reply type is wrong
	}
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	if cut {
		body.Truncate(body.Len() / 2)
	}
	_, _ = w.Write(body.Bytes())
	if cut {
		panic(http.ErrAbortHandler)
	}
}

func writeError(w http.ResponseWriter, id string, err error) {
	e, ok := err.(apiError)
	if !ok {
		e = errorKinds[Broken]
	}
	write(w, e.status, errorReply{Code: e.code, Message: e.message, RequestID: id}, false)
}

func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
