package simcloud

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// api is one of the cloud's services on the wire.
type api struct {
	scope   string              // its name in a signature
	version string              // the one version of a Query API that the SDKs speak
	errors  map[string]apiError // its own form of a fault, by kind
	bends   []string            // the kinds that change a reply of it
}

// knows reports whether a fault of this kind can befall a request.
func (a *api) knows(kind string) bool {
	_, refuses := a.errors[kind]
	return refuses || slices.Contains(a.bends, kind) || kind == Cut || kind == Hang
}

var apis = []*api{&ec2API, &scalingAPI, &sqsAPI}

// apiError is a refusal, in the service's own words.
type apiError struct {
	status        int
	code, message string
}

func (e apiError) Error() string { return e.code + ": " + e.message }

func refused(code, format string, args ...any) apiError {
	return apiError{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

// meet lets the first fault that waits for a request befall it: an error, an end
// of the connection, or the kind that bends its reply, or "".
func (c *Cloud) meet(r *http.Request, a *api, action string, ids []string) (string, error) {
	kind := c.faults.take(a, action, ids)
	if kind == Hang {
		select {
		case <-r.Context().Done():
		case <-c.faults.untilCleared():
		}
		panic(http.ErrAbortHandler)
	}
	if answer, ok := a.errors[kind]; ok {
		return "", answer
	}
	return kind, nil
}

// refusal is err as the service sends it.
func (a *api) refusal(err error) apiError {
	if e, ok := err.(apiError); ok {
		return e
	}
	return a.errors[Broken]
}

// region reads the region out of a version 4 signature's credential scope,
// <key id>/<date>/<region>/<service>/aws4_request.
func (a *api) region(authorization string) (string, error) {
	fields, ok := strings.CutPrefix(authorization, "AWS4-HMAC-SHA256 ")
	if !ok {
		return "", apiError{http.StatusUnauthorized, "MissingAuthenticationToken", "Request is missing an authentication token"}
	}
	for _, field := range strings.Split(fields, ",") {
		scope, ok := strings.CutPrefix(strings.TrimSpace(field), "Credential=")
		parts := strings.Split(scope, "/")
		if ok && len(parts) == 5 && parts[2] != "" && parts[3] == a.scope && parts[4] == "aws4_request" {
			return parts[2], nil
		}
	}
	return "", apiError{http.StatusUnauthorized, "AuthFailure", "AWS was not able to validate the provided access credentials"}
}

// finish writes the body; cut ends the connection half-way through it.
func finish(w http.ResponseWriter, status int, body []byte, cut bool) {
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	if cut {
		body = body[:len(body)/2]
	}
	_, _ = w.Write(body)
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// uuid is a random id in the form of the ids of requests, events and messages.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	return formatUUID(b)
}

func formatUUID(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
