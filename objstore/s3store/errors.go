package s3store

import (
	"errors"
	"fmt"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/carlosframework/regionha/objstore"
)

// answer is what the server said: the status of its answer and the error code
// in it. Both are zero where no answer came.
func answer(err error) (status int, code string) {
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	return status, code
}

// writeError is the outcome of a write that failed. Only an answer that says
// that the condition did not hold is a conflict.
func writeError(cond objstore.Condition, err error) error {
	if errors.Is(err, objstore.ErrUnknown) {
		return err // of a step before the conditional one
	}
	_, match := cond.ETag()
	status, code := answer(err)
	conflict := false
	switch {
	case !match && !cond.IsAbsent():
	case status == http.StatusPreconditionFailed:
		conflict = true
	case status == http.StatusConflict:
		conflict = concurrent(code)
	case status == http.StatusNotFound:
		conflict = match && missing(code)
	}
	if conflict {
		return fmt.Errorf("%w: %w", objstore.ErrConflict, plain(err))
	}
	return fmt.Errorf("%w: %w", objstore.ErrUnknown, plain(err))
}

// concurrent reports whether a 409 is that of another conditional write in
// progress. Servers use 409 for other refusals too, and a refusal that lasts
// must not look like a lost race.
func concurrent(code string) bool {
	return code == "ConditionalRequestConflict" || code == "OperationAborted"
}

// readError is the outcome of a read that failed.
func readError(err error) error {
	status, code := answer(err)
	switch {
	case status == http.StatusNotFound && missing(code):
		return fmt.Errorf("%w: %w", objstore.ErrNotFound, plain(err))
	case status == http.StatusPreconditionFailed:
		return fmt.Errorf("%w: %w", objstore.ErrConflict, plain(err))
	}
	return plain(err)
}

// missing reports whether a 404 is about the key or the version, and not about
// the bucket, an upload, or a proxy on the way.
func missing(code string) bool { return code == "NoSuchKey" || code == "NoSuchVersion" }

// refusal shows an answer without the SDK's wrapping, for people.
type refusal struct {
	status                 int
	code, message, request string
	err                    error
}

func (r refusal) Error() string {
	return fmt.Sprintf("the server answered %d %s: %s (request %s)", r.status, r.code, r.message, r.request)
}

func (r refusal) Unwrap() error { return r.err }

// plain makes a server's answer readable, and leaves other errors alone.
func plain(err error) error {
	var response *awshttp.ResponseError
	var api smithy.APIError
	if !errors.As(err, &response) || !errors.As(err, &api) {
		return err
	}
	return refusal{
		status:  response.HTTPStatusCode(),
		code:    api.ErrorCode(),
		message: api.ErrorMessage(),
		request: response.ServiceRequestID(),
		err:     err,
	}
}
