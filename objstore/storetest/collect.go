package storetest

import (
	"iter"

	"github.com/carlosframework/regionha/objstore"
)

func collect(seq iter.Seq2[objstore.Info, error]) ([]objstore.Info, error) {
	var infos []objstore.Info
	for info, err := range seq {
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func keysOf(infos []objstore.Info) []string {
	keys := make([]string, len(infos))
	for i, info := range infos {
		keys[i] = info.Key
	}
	return keys
}

func count(keys []string, key string) int {
	n := 0
	for _, k := range keys {
		if k == key {
			n++
		}
	}
	return n
}
