package placement

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

const (
	// Prefix holds every edges file: Prefix + <ref> + ".json".
	Prefix = "control/edges/"

	// CapabilityRegionHA: the box runs hosts as the claims say.
	CapabilityRegionHA = "region-ha-1"

	// CapabilityRelease: the box can prove that a host of it has stopped, and so
	// give it up while it lives.
	CapabilityRelease = "release-1"

	// CapabilityWorker: the process drives operations and takes hints; it runs
	// no hosts. A file with only this publishes no capacity.
	CapabilityWorker = "worker-1"

	// RoleHome: the box serves the host.
	RoleHome = "home"

	// MaxHosts is how many hosts one box may publish.
	MaxHosts = 10_000

	version = 1
)

// ErrInvalid: an edges file says something that no box publishes.
var ErrInvalid = errors.New("invalid edges file")

// Edges is what a box, or a worker, says of itself. Absent booleans mean no.
type Edges struct {
	V     int    `json:"v"`
	Gen   uint64 `json:"gen"`
	Write string `json:"write"`

	Box          string    `json:"box"`
	Region       string    `json:"region"`   // placement code
	Address      string    `json:"address"`  // host:port of its ingress; empty for a worker
	Internal     string    `json:"internal"` // host:port, box to box
	Protocol     int       `json:"protocol"` // what its binary speaks
	Capabilities []string  `json:"capabilities,omitempty"`
	Accepting    bool      `json:"accepting"` // takes new hosts
	Draining     bool      `json:"draining"`
	Headroom     Headroom  `json:"headroom"`
	SecretsKeyFP string    `json:"secrets_key_fp"`
	At           time.Time `json:"at"` // the box's clock, for people

	Hosts map[string]Host `json:"hosts,omitempty"` // by primary name
}

// Says reports whether e says what as says, but for what changes all the time:
// the headroom, and what each version has of its own.
func (e Edges) Says(as Edges) bool {
	e.V, e.Gen, e.Write, e.At, e.Headroom = as.V, as.Gen, as.Write, as.At, as.Headroom
	return reflect.DeepEqual(e, as)
}

// Headroom is what the box has left, for people: it decides nothing.
type Headroom struct {
	MemoryBytes int64 `json:"memory_bytes"`
	DiskBytes   int64 `json:"disk_bytes"`
	Awake       int   `json:"awake"` // hosts whose process runs
}

// Host is one host that the box serves.
type Host struct {
	Role    string   `json:"role"`
	Stamp   uint64   `json:"stamp"` // holder.stamp of the claim that was read; 0: not read yet
	App     string   `json:"app"`   // <account>/<app>, to spread an app over boxes
	Aliases []string `json:"aliases,omitempty"`
}

// Published is an edges file as it is stored.
type Published struct {
	Edges   Edges
	ETag    string
	ModTime time.Time // the store's
}

// Key is where the edges file of ref lies.
func Key(ref string) string { return Prefix + ref + ".json" }

// Read reads one edges file. Errors: objstore.ErrNotFound, [ErrInvalid].
func Read(ctx context.Context, s objstore.Store, ref string) (Published, error) {
	obj, err := s.Get(ctx, Key(ref))
	if err != nil {
		return Published{}, fmt.Errorf("placement: edges of %s: %w", ref, err)
	}
	p, err := parse(obj, ref)
	if err != nil {
		return Published{}, fmt.Errorf("placement: edges of %s: %w", ref, err)
	}
	return p, nil
}

// Publish writes next over prev, the file as this box last read or wrote it; the
// zero Published where it has none. V, Gen and Write are set here. Errors:
// [ErrInvalid]; objstore.ErrConflict or ErrSuperseded when the file is another
// version, which for a box's own file means that another process acts as this
// box or that an earlier write landed late: read, then publish again;
// objstore.ErrUnknown. One PUT.
func Publish(ctx context.Context, s objstore.Store, prev Published, next Edges) (Published, error) {
	next.V, next.Gen, next.Write = version, prev.Edges.Gen+1, record.Nonce()
	next.At = next.At.UTC()
	if err := next.validate(next.Box); err != nil {
		return Published{}, fmt.Errorf("placement: publish %s: %w", next.Box, err)
	}
	raw, err := record.Encode(next)
	if err == nil && len(raw) > record.MaxSize {
		err = fmt.Errorf("%w: %d bytes, at most %d", ErrInvalid, len(raw), record.MaxSize)
	}
	if err != nil {
		return Published{}, fmt.Errorf("placement: publish %s: %w", next.Box, err)
	}
	cond := objstore.IfAbsent()
	if prev.ETag != "" {
		cond = objstore.IfMatch(prev.ETag)
	}
	info, err := objstore.PutSettled(ctx, s, Key(next.Box), raw, cond)
	if err != nil {
		return Published{}, fmt.Errorf("placement: publish %s: %w", next.Box, err)
	}
	return Published{Edges: next, ETag: info.ETag, ModTime: info.ModTime}, nil
}

func parse(obj objstore.Object, ref string) (Published, error) {
	e, err := record.Decode[Edges](obj.Body)
	if err == nil {
		err = e.validate(ref)
	}
	if err != nil {
		return Published{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return Published{Edges: e, ETag: obj.ETag, ModTime: obj.ModTime}, nil
}

func (e Edges) validate(ref string) error {
	if err := boxid.CheckRef(ref); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch {
	case e.V != version || e.Gen == 0 || e.Write == "":
		return fmt.Errorf("%w: version %d, gen %d, write %q: want version %d and neither empty", ErrInvalid, e.V, e.Gen, e.Write, version)
	case e.Box != ref:
		return fmt.Errorf("%w: it is of box %q, want %q", ErrInvalid, e.Box, ref)
	case e.Region == "":
		return fmt.Errorf("%w: no region", ErrInvalid)
	case len(e.Hosts) > MaxHosts:
		return fmt.Errorf("%w: %d hosts, at most %d", ErrInvalid, len(e.Hosts), MaxHosts)
	}
	for name, h := range e.Hosts {
		if name == "" || h.Role != RoleHome || slices.Contains(h.Aliases, "") {
			return fmt.Errorf("%w: host %q: role %q, aliases %q: want a name, %q, and no empty alias", ErrInvalid, name, h.Role, h.Aliases, RoleHome)
		}
	}
	return nil
}

// Dialable refuses an address that another box cannot dial: anything but
// host:port with a port, and no unspecified host.
func Dialable(address string) error {
	u, err := url.Parse("//" + address)
	if err != nil || u.Host != address || u.Hostname() == "" {
		return fmt.Errorf("address %q: want host:port", address)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return fmt.Errorf("address %q: want a port from 1 to 65535", address)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		return fmt.Errorf("address %q: an unspecified address cannot be dialled", address)
	}
	return nil
}
