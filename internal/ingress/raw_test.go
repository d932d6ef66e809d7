package ingress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/ingress"
)

// converse sends a request as it stands and reads the answer's beginning.
func converse(t *testing.T, srv *httptest.Server, request string) (*http.Response, *bufio.Reader, net.Conn) {
	conn := dial(t, srv)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err := io.WriteString(conn, request)
	require.NoError(t, err)
	method, _, _ := strings.Cut(request, " ")
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	require.NoError(t, err)
	return resp, r, conn
}

// TestWhatClientsMaySendPassesTheHop: each way to frame a request and an answer.
func TestWhatClientsMaySendPassesTheHop(t *testing.T) {
	b := twoHops(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Query", r.URL.RawQuery)
		if r.URL.Path == "/long" {
			w.Header().Set("Content-Length", "7")
		}
		fmt.Fprintf(w, "%s:%s", r.Method, body)
	})
	for name, tc := range map[string]struct {
		request, body string
		length        int64
		closes        bool
	}{
		"HEAD says how long the answer were": {"HEAD /long HTTP/1.1\r\nHost: notes.example\r\n\r\n", "", 7, false},
		"HTTP/1.0":                           {"GET / HTTP/1.0\r\nHost: notes.example\r\n\r\n", "GET:", 4, true},
		"Connection: close":                  {"GET / HTTP/1.1\r\nHost: notes.example\r\nConnection: close\r\n\r\n", "GET:", 4, true},
		"chunked":                            {"PUT / HTTP/1.1\r\nHost: notes.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", "PUT:abcd", 8, false},
		"a target in absolute form":          {"GET http://notes.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n", "GET:", 4, false},
		"a long body that is asked for":      {"POST / HTTP/1.1\r\nHost: notes.example\r\nContent-Length: 2\r\n\r\nab", "POST:ab", 7, false},
	} {
		t.Run(name, func(t *testing.T) {
			resp, _, _ := converse(t, b.srv, tc.request)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.Equal(t, tc.length, resp.ContentLength)
			require.Equal(t, tc.closes, resp.Close)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, tc.body, string(got))
		})
	}
	resp, _, _ := converse(t, b.srv, "GET /?a=1;b=%zz HTTP/1.1\r\nHost: notes.example\r\n\r\n")
	require.Equal(t, "a=1;b=%zz", resp.Header.Get("X-Query"), "the app's own to understand")
}

func TestTrailersPassTheHopBothWays(t *testing.T) {
	b := twoHops(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "sum of "+r.Trailer.Get("X-Sum"))
	})
	resp, _, _ := converse(t, b.srv, "POST / HTTP/1.1\r\nHost: notes.example\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1\r\na\r\n0\r\nX-Sum: one\r\n\r\n")
	_, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "sum of one", resp.Trailer.Get("X-Sum"))
}

// TestEarlyHintsPassTheHop, but not to a client that is to be told to go on, which
// the server says in between, nor to one that knows no interim answers.
func TestEarlyHintsPassTheHop(t *testing.T) {
	b := twoHops(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		io.Copy(io.Discard, r.Body)
	})
	for request, want := range map[string][]int{
		"GET / HTTP/1.1\r\nHost: notes.example\r\n\r\n":                                               {http.StatusEarlyHints, http.StatusOK},
		"GET / HTTP/1.0\r\nHost: notes.example\r\n\r\n":                                               {http.StatusOK},
		"PUT / HTTP/1.1\r\nHost: notes.example\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\na": {http.StatusContinue, http.StatusOK},
	} {
		resp, r, _ := converse(t, b.srv, request)
		require.Equal(t, want[0], resp.StatusCode)
		if resp.StatusCode == http.StatusEarlyHints {
			require.Equal(t, "</style.css>", resp.Header.Get("Link"))
		}
		for _, code := range want[1:] {
			resp, err := http.ReadResponse(r, nil)
			require.NoError(t, err)
			require.Equal(t, code, resp.StatusCode)
		}
	}
}

// TestAnAnswerMayBeginBeforeTheRequestEnded: the server would read on in the
// request first, and lose what it reads.
func TestAnAnswerMayBeginBeforeTheRequestEnded(t *testing.T) {
	for name, frame := range map[string]struct{ header, one, two string }{
		"chunked":   {"Transfer-Encoding: chunked", "4\r\none\n\r\n", "4\r\ntwo\n\r\n0\r\n\r\n"},
		"announced": {"Content-Length: 8", "one\n", "two\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := twoHops(t, func(w http.ResponseWriter, r *http.Request) {
				http.NewResponseController(w).EnableFullDuplex()
				for lines := bufio.NewScanner(r.Body); lines.Scan(); {
					fmt.Fprintln(w, lines.Text())
					http.NewResponseController(w).Flush()
				}
			})
			resp, _, conn := converse(t, b.srv, "POST / HTTP/1.1\r\nHost: notes.example\r\n"+frame.header+"\r\n\r\n"+frame.one)
			body := bufio.NewReader(resp.Body)
			got, err := body.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "one\n", got)
			_, err = io.WriteString(conn, frame.two)
			require.NoError(t, err)
			got, err = body.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "two\n", got)
			require.True(t, resp.Close, "what the server may have lost is not read as a request")
		})
	}
}

func TestWhatNamesNoHostOrTwoIsRefused(t *testing.T) {
	b, a := newBox(t, "b1", nil), newApp(t, "a", nil)
	b.local(a.ready(1))
	for name, tc := range map[string]struct {
		request string
		status  int
	}{
		"two Host headers":                   {"GET / HTTP/1.1\r\nHost: notes.example\r\nHost: other.example\r\n\r\n", 400},
		"none":                               {"GET / HTTP/1.1\r\n\r\n", 400},
		"none, by HTTP/1.0":                  {"GET / HTTP/1.0\r\n\r\n", 400},
		"a port that is none":                {"GET / HTTP/1.1\r\nHost: notes.example:80;evil.example\r\n\r\n", 400},
		"an IPv6 literal":                    {"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 400},
		"invalid bytes":                      {"GET / HTTP/1.1\r\nHost: n\xc3\xb6tes\x01\r\n\r\n", 400},
		"10 KiB":                             {"GET / HTTP/1.1\r\nHost: " + strings.Repeat("a.", 5<<10) + "\r\n\r\n", 400},
		"a tunnel":                           {"CONNECT notes.example:443 HTTP/1.1\r\nHost: notes.example:443\r\n\r\n", 405},
		"a length and chunks":                {"POST / HTTP/1.1\r\nHost: notes.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200},
		"two lengths":                        {"POST / HTTP/1.1\r\nHost: notes.example\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", 400},
		"another coding":                     {"POST / HTTP/1.1\r\nHost: notes.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
		"a space before a name":              {"GET / HTTP/1.1\r\nHost: notes.example\r\nX : y\r\n\r\n", 400},
		"another protocol's name is not one": {"GET / HTTP/1.1\r\nHost: notes.example\r\nConnection: Upgrade\r\nUpgrade: \x80\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			resp, _, _ := converse(t, b.srv, tc.request)
			require.Equal(t, tc.status, resp.StatusCode)
		})
	}
	require.Equal(t, 1, a.count(), "the chunks, which stand over the length")
	require.Empty(t, a.requests[0].Header.Get("Content-Length"))
}

// TestARequestThatCannotBePassedOnSaysNothingOfTheHome: what a stranger sends
// makes nobody look at a box.
func TestARequestThatCannotBePassedOnSaysNothingOfTheHome(t *testing.T) {
	b := newBox(t, "b1", nil)
	b.home(ingress.Home{Box: "b2", Addr: nobody(t), Stamp: 7})
	resp, _, _ := converse(t, b.srv, "GET / HTTP/1.1\r\nHost: notes.example\r\nConnection: Upgrade\r\nUpgrade: \x80\r\n\r\n")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	b2 := twoHops(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	resp, _, _ = converse(t, b2.srv, "POST / HTTP/1.1\r\nHost: notes.example\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.True(t, resp.Close)
	require.Empty(t, append(b.hinted(), b2.hinted()...))
}

func TestNoForwardingHeaderOfAClientReachesAnApp(t *testing.T) {
	b, a := newBox(t, "b1", nil), newApp(t, "a", nil)
	b.local(a.ready(7))
	spoofed := []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix",
		"Forwarded", "X-Real-Ip", "X-Regionha-Unserved"}
	var header []string
	for _, name := range spoofed {
		header = append(header, name, "evil")
	}
	b.ask(t.Context(), http.MethodGet, "", header...).from(t, "a")
	for _, name := range spoofed {
		require.NotContains(t, a.requests[0].Header.Get(name), "evil", name)
	}
}
