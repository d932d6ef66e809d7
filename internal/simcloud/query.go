package simcloud

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// maxQuery bounds one request's form in bytes.
const maxQuery = 1 << 20

// query is one parsed request of a Query API: a form, answered in XML.
type query struct {
	region string
	form   url.Values
	ids    []string // of the instances that it names
	id     string   // the request's own id
	fault  string   // a kind that bends the reply, or ""
}

func (q query) action() string { return q.form.Get("Action") }

// serveQuery answers one request of a. idsAt is where it names instances, and
// failed makes the service's error document.
func (c *Cloud) serveQuery(w http.ResponseWriter, r *http.Request, a *api, idsAt string,
	answer func(query) (any, error), failed func(e apiError, id string) any) {
	id := uuid()
	w.Header().Set("X-Amzn-Requestid", id)
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	q, err := parseQuery(w, r, a, idsAt)
	if err == nil {
		q.id = id
		q.fault, err = c.meet(r, a, q.action(), q.ids)
	}
	var reply any
	if err == nil {
		reply, err = answer(q)
	}
	if err != nil {
		e := a.refusal(err)
		finish(w, e.status, document(failed(e, id)), false)
		return
	}
	finish(w, http.StatusOK, document(reply), q.fault == Cut)
}

func parseQuery(w http.ResponseWriter, r *http.Request, a *api, idsAt string) (query, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxQuery)
	if err := r.ParseForm(); err != nil {
		return query{}, refused("MalformedQueryString", "%v", err)
	}
	region, err := a.region(r.Header.Get("Authorization"))
	if err != nil {
		return query{}, err
	}
	if v := r.Form.Get("Version"); v != a.version {
		return query{}, refused("InvalidParameterValue", "Version is %q, expected %s", v, a.version)
	}
	return query{region: region, form: r.Form, ids: numbered(r.Form, idsAt)}, nil
}

// numbered reads name.1, name.2, … up to the first that is missing.
func numbered(form url.Values, name string) []string {
	var all []string
	for n := 1; form.Has(name + "." + strconv.Itoa(n)); n++ {
		all = append(all, form.Get(name+"."+strconv.Itoa(n)))
	}
	return all
}

// document is reply as an XML document.
func document(reply any) []byte {
	var body bytes.Buffer
	body.WriteString(xml.Header)
	if err := xml.NewEncoder(&body).Encode(reply); err != nil {
		panic(fmt.Sprintf("simcloud: encode %T: %v", reply, err)) // a reply type is wrong
	}
	return body.Bytes()
}
