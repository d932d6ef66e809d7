// Package admin is the listener on which a process answers its operator:
// /healthz (it runs), /readyz (it does its work, or why not) and /metrics.
//
// It is meant for loopback or a private network. It answers GET and HEAD only,
// shows no secret, changes nothing, and never waits for the work that it
// reports on.
package admin
