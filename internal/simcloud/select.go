package simcloud

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
)

// filterValues are the filters that are known, each with what it compares.
var filterValues = map[string]func(seen) string{
	"instance-id":         func(s seen) string { return s.id },
	"instance-state-name": func(s seen) string { return s.state },
	"owner-id":            func(s seen) string { return s.account },
	"availability-zone":   func(s seen) string { return s.zone() },
}

// filter keeps what matches every Filter.n.Name with any of its values.
func filter(all []seen, form url.Values) ([]seen, error) {
	for n := 1; form.Has("Filter." + strconv.Itoa(n) + ".Name"); n++ {
		prefix := "Filter." + strconv.Itoa(n)
		name, values := form.Get(prefix+".Name"), numbered(form, prefix+".Value")
		value := filterValues[name]
		if value == nil {
			return nil, refused("InvalidParameterValue", "The filter '%s' is invalid", name)
		}
		all = slices.DeleteFunc(all, func(s seen) bool { return !slices.Contains(values, value(s)) })
	}
	return all, nil
}

const (
	minPage = 5
	maxPage = 1000
)

// paged returns the page that the query asks for and the token of the next, ""
// for the last. all is sorted by id; a token is the id that its page follows.
func paged(all []seen, q query) (page []seen, next string, err error) {
	size := maxPage
	if v := q.form.Get("MaxResults"); v != "" {
		if len(q.ids) > 0 {
			return nil, "", refused("InvalidParameterCombination",
				"The parameter instancesSet cannot be used with the parameter maxResults")
		}
		if size, err = strconv.Atoi(v); err != nil || size < minPage || size > maxPage {
			return nil, "", refused("InvalidParameterValue",
				"Value ( %s ) for parameter maxResults is invalid. Expecting a value between %d and %d.", v, minPage, maxPage)
		}
	}
	after, err := base64.URLEncoding.DecodeString(q.form.Get("NextToken"))
	if err != nil {
		return nil, "", refused("InvalidNextToken", "The token is invalid")
	}
	all = slices.DeleteFunc(all, func(s seen) bool { return s.id <= string(after) })
	if len(all) <= size {
		return all, "", nil
	}
	return all[:size], pageToken(all[size-1].id), nil
}

func pageToken(id string) string { return base64.URLEncoding.EncodeToString([]byte(id)) }
