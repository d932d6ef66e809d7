package ingress

import (
	"net"
	"strings"
)

// longestHost is the longest name that DNS knows.
const longestHost = 253

// hostOf is the host that a Host header names: no port, lower case, no final
// dot. false: it is not a name that a host can have, or what follows it is not a
// port: an app may make links of the header as it came.
func hostOf(header string) (string, bool) {
	name := header
	if strings.Contains(header, ":") {
		host, port, err := net.SplitHostPort(header)
		if err != nil || !digits(port) {
			return "", false
		}
		name = host
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "" || len(name) > longestHost {
		return "", false
	}
	for i := range len(name) {
		if !inHost(name[i]) {
			return "", false
		}
	}
	return name, true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) <= len("65535")
}

func inHost(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_'
}
