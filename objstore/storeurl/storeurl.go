// Package storeurl opens a store from its URL, and is the only parser of one:
//
//	dir:///var/lib/regionha
//	s3://bucket/prefix?region=eu-west-1&endpoint=http://127.0.0.1:7070&path-style=true
//
// Parameters of s3 are all optional. A parameter that is not known, given
// twice, or without a value is refused, and so are credentials: they come from
// the AWS SDK's own chain.
package storeurl

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/dirstore"
	"github.com/carlosframework/regionha/objstore/s3store"
)

// Store is all that a store from a URL can do.
type Store interface {
	objstore.Store
	objstore.Streamer
	objstore.Versioned
}

// Open opens the store that raw names. A directory is made if need be; an S3
// server is not asked anything yet.
func Open(ctx context.Context, raw string) (Store, error) {
	l, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if l.dir != "" {
		return dirstore.Open(filepath.FromSlash(l.dir))
	}
	return s3store.Open(ctx, l.s3)
}

// Name returns the identity of the store that raw names: its URL without what
// only says how to reach it, such as "s3://bucket/prefix" or "dir:///abs/path".
func Name(raw string) (string, error) {
	l, err := parse(raw)
	if err != nil {
		return "", err
	}
	if l.dir != "" {
		return (&url.URL{Scheme: "dir", Path: l.dir}).String(), nil
	}
	u := url.URL{Scheme: "s3", Host: l.s3.Bucket}
	if l.s3.Prefix != "" {
		u.Path = "/" + l.s3.Prefix
	}
	return u.String(), nil
}

// location is a parsed URL: a directory, or a bucket.
type location struct {
	dir string
	s3  s3store.Config
}

// bucketName is what S3 allows.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func parse(raw string) (location, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse repeats the URL, which may hold a secret.
		return location{}, fmt.Errorf("store URL: not a URL; expected dir:///path or s3://bucket/prefix")
	}
	shown := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String() // a secret may be in the rest
	switch {
	case u.User != nil:
		return location{}, fmt.Errorf("store URL %s: credentials do not belong in it; the AWS SDK's own settings are used", shown)
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return location{}, fmt.Errorf("store URL %s: a fragment (#) has no meaning", shown)
	case u.Opaque != "":
		return location{}, fmt.Errorf("store URL %s: expected %s://", shown, u.Scheme)
	}
	var l location
	switch u.Scheme {
	case "dir":
		l, err = parseDir(u)
	case "s3":
		l, err = parseS3(u)
	default:
		err = fmt.Errorf("scheme %q; expected dir:///path or s3://bucket/prefix", u.Scheme)
	}
	if err != nil {
		return location{}, fmt.Errorf("store URL %s: %w", shown, err)
	}
	return l, nil
}

func parseDir(u *url.URL) (location, error) {
	switch {
	case u.Host != "":
		return location{}, fmt.Errorf("the path must be absolute: dir:/// and not dir://%s", u.Host)
	case u.RawQuery != "" || u.ForceQuery:
		return location{}, fmt.Errorf("dir takes no parameters, got %q", u.RawQuery)
	case u.Path == "" || strings.IndexByte(u.Path, 0) >= 0:
		return location{}, fmt.Errorf("no path; expected dir:///path")
	}
	return location{dir: path.Clean(u.Path)}, nil
}

func parseS3(u *url.URL) (location, error) {
	if !bucketName.MatchString(u.Host) {
		return location{}, fmt.Errorf("bucket %q; expected 3 to 63 of a-z 0-9 . -", u.Host)
	}
	c := s3store.Config{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	if err := objstore.CheckKey(c.Prefix + "/"); err != nil {
		return location{}, fmt.Errorf("prefix: %w", err)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return location{}, fmt.Errorf("parameters: %w", err)
	}
	for name, values := range query {
		if len(values) != 1 || values[0] == "" {
			return location{}, fmt.Errorf("parameter %s: expected one value, got %q", name, values)
		}
		switch value := values[0]; name {
		case "region":
			c.Region = value
		case "endpoint":
			c.Endpoint, err = parseEndpoint(value)
		case "path-style":
			c.PathStyle, err = parseBool(value)
		default:
			err = fmt.Errorf("not known; expected region, endpoint or path-style")
		}
		if err != nil {
			return location{}, fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return location{s3: c}, nil
}

func parseEndpoint(value string) (string, error) {
	u, err := url.Parse(value)
	if err == nil && u.User != nil {
		return "", fmt.Errorf("credentials do not belong in it")
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("got %q; expected http://host:port or https://host", value)
	}
	return value, nil
}

func parseBool(value string) (bool, error) {
	switch value {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("got %q; expected true or false", value)
}
