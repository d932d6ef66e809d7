package ingress

import (
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
)

// A page is an answer that no app made.
type page struct {
	status     int
	title      string
	text       string
	retryAfter int // seconds; 0: trying again is of no use
}

var (
	badHost    = page{http.StatusBadRequest, "Bad request", "The request names no valid host.", 0}
	badRequest = page{http.StatusBadRequest, "Bad request", "The request is not one that can be passed on.", 0}
	slowBody   = page{http.StatusRequestTimeout, "Too slow", "The rest of the request did not arrive.", 0}
	noTunnel   = page{http.StatusMethodNotAllowed, "Not allowed", "There are no tunnels here.", 0}
	busy       = page{http.StatusServiceUnavailable, "Too busy",
		"Too many requests are under way. Please try again in a few seconds.", 2}
	unknownHost = page{http.StatusNotFound, "Not found", "There is no such site here.", 0}
	inTransit   = page{http.StatusServiceUnavailable, "Back in a moment",
		"This site is on its way to another machine. Please try again in a few seconds.", 2}
	writesPaused = page{http.StatusServiceUnavailable, "Changes are paused",
		"This site can be read but not changed just now. Please try again in a few seconds.", 5}
	brokenOff = page{http.StatusBadGateway, "No answer",
		"The site stopped answering. If this request changes something, it may or may not have been carried out.", 0}
)

// writePage answers with the page, as HTML where the client asks for it.
func writePage(w http.ResponseWriter, r *http.Request, p page) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	body, kind := p.title+". "+p.text+"\n", "text/plain; charset=utf-8"
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		title, text := html.EscapeString(p.title), html.EscapeString(p.text)
		body, kind = fmt.Sprintf(htmlPage, title, title, text), "text/html; charset=utf-8"
	}
	h.Set("Content-Type", kind)
	w.WriteHeader(p.status)
	fmt.Fprint(w, body) // an error is the client's absence
}

const htmlPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>%s</title>
<style>body{font:18px/1.5 system-ui,sans-serif;max-width:34em;margin:20vh auto;padding:0 1em}</style>
<h1>%s</h1>
<p>%s</p>
</html>
`
