package hostfiles

import (
	"cmp"
	"sync"

	"golang.org/x/sync/singleflight"
)

// contents maps the digest of every published content to an object that holds it.
func (p *Publisher) contents() map[string]string {
	out := make(map[string]string)
	for _, e := range p.durable.live() {
		if e.Object != "" {
			out[e.SHA256] = cmp.Or(out[e.SHA256], e.Object)
		}
	}
	return out
}

// uploads are the objects that this session made and no manifest names yet.
type uploads struct {
	running singleflight.Group // by digest
	mu      sync.Mutex
	keys    map[string]string // by digest
}

func newUploads() *uploads { return &uploads{keys: map[string]string{}} }

// do returns the object that holds the content with this digest, made by make
// where there is none.
func (u *uploads) do(sum string, make func() (string, error)) (string, error) {
	key, err, _ := u.running.Do(sum, func() (any, error) {
		u.mu.Lock()
		key, ok := u.keys[sum]
		u.mu.Unlock()
		if ok {
			return key, nil
		}
		key, err := make()
		if err != nil {
			return "", err
		}
		u.mu.Lock()
		u.keys[sum] = key
		u.mu.Unlock()
		return key, nil
	})
	return key.(string), err
}

// named forgets the objects: the manifest names what is to be kept.
func (u *uploads) named() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.keys)
}
