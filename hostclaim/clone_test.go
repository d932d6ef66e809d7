package hostclaim_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

func cloneOf(c *hostclaim.Claim) *hostclaim.Claim { return c.Clone() }

func TestACloneEqualsItsClaimAndSharesNoMemoryWithIt(t *testing.T) {
	var full hostclaim.Claim
	fillAll(t, reflect.ValueOf(&full).Elem(), new(int64))
	copied := cloneOf(&full)
	require.Equal(t, &full, copied)
	requireApart(t, "claim", reflect.ValueOf(&full), reflect.ValueOf(copied))
}

func TestACloneOfNothingHoldsNothing(t *testing.T) {
	require.Equal(t, &hostclaim.Claim{}, cloneOf(&hostclaim.Claim{}))
}

// fillAll sets everything that v can hold: no pointer, list or map is left nil, and
// no two values are the same.
func fillAll(t *testing.T, v reflect.Value, n *int64) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillAll(t, v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillAll(t, key, n)
		fillAll(t, value, n)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(*n, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			fillAll(t, v.Field(i), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprint(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	default:
		t.Fatalf("a claim holds a %s: say here how it is filled", v.Type())
	}
}

// requireApart requires that nothing reachable from a is reachable from b. Both are
// equal.
func requireApart(t *testing.T, at string, a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Pointer:
		require.NotEqual(t, a.Pointer(), b.Pointer(), at)
		requireApart(t, at, a.Elem(), b.Elem())
	case reflect.Slice:
		require.NotEqual(t, a.Pointer(), b.Pointer(), at)
		for i := range a.Len() {
			requireApart(t, fmt.Sprintf("%s[%d]", at, i), a.Index(i), b.Index(i))
		}
	case reflect.Map:
		require.NotEqual(t, a.Pointer(), b.Pointer(), at)
		for _, key := range a.MapKeys() {
			requireApart(t, fmt.Sprintf("%s[%v]", at, key), a.MapIndex(key), b.MapIndex(key))
		}
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range a.NumField() {
			requireApart(t, at+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	}
}
