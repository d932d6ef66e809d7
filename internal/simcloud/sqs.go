package simcloud

import (
	"context"
	"crypto/md5" // SQS's own checksum of a body
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

var sqsAPI = api{
	scope: "sqs",
	errors: map[string]apiError{
		Throttled: {http.StatusBadRequest, "com.amazonaws.sqs#RequestThrottled", "Request is throttled."},
		Denied:    {http.StatusForbidden, "com.amazon.coral.service#AccessDeniedException", "Access to the resource is denied."},
		Expired:   {http.StatusForbidden, "com.amazon.coral.service#ExpiredTokenException", "The security token included in the request is expired"},
		Broken:    {http.StatusInternalServerError, "com.amazon.coral.service#InternalFailure", "The request processing has failed"},
	},
	bends: []string{Empty, Duplicate, Reordered},
}

const noQueue = "com.amazonaws.sqs#QueueDoesNotExist"

// look is how often a long poll looks for a message.
const look = 10 * time.Millisecond

// QueuePath is the path of every region's own queue; the request's signature
// names the region.
func (c *Cloud) QueuePath() string { return "/" + c.cfg.Account + "/terminations" }

// SQS is the handler of SQS's JSON API.
func (c *Cloud) SQS() http.Handler { return http.HandlerFunc(c.serveSQS) }

// sqsRequest holds what the actions read; each reads its own members.
type sqsRequest struct {
	QueueURL    string `json:"QueueUrl"`
	Handle      string `json:"ReceiptHandle"`
	Most        *int   `json:"MaxNumberOfMessages"`
	WaitSeconds int    `json:"WaitTimeSeconds"`
	HideSeconds *int   `json:"VisibilityTimeout"`
}

func (c *Cloud) serveSQS(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Amzn-Requestid", uuid())
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	reply, fault, err := c.answerSQS(w, r)
	if err != nil {
		e := sqsAPI.refusal(err)
		if e.code == noQueue { // the SDKs keep the older API's name for it
			w.Header().Set("X-Amzn-Query-Error", "AWS.SimpleQueueService.NonExistentQueue;Sender")
		}
		body, _ := json.Marshal(map[string]string{"__type": e.code, "message": e.message}) // strings alone
		finish(w, e.status, body, false)
		return
	}
	body, _ := json.Marshal(reply) // strings alone
	finish(w, http.StatusOK, body, fault == Cut)
}

func (c *Cloud) answerSQS(w http.ResponseWriter, r *http.Request) (reply any, fault string, err error) {
	action, _ := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	region, err := sqsAPI.region(r.Header.Get("Authorization"))
	if err != nil {
		return nil, "", err
	}
	var in sqsRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuery)).Decode(&in); err != nil {
		return nil, "", refused("com.amazon.coral.service#SerializationException", "%v", err)
	}
	if u, err := url.Parse(in.QueueURL); err != nil || u.Path != c.QueuePath() {
		return nil, "", refused(noQueue, "The specified queue does not exist.")
	}
	if fault, err = c.meet(r, &sqsAPI, action, nil); err != nil {
		return nil, "", err
	}
	switch action {
	case "ReceiveMessage":
		reply, err = c.receive(r.Context(), region, in, fault)
	case "DeleteMessage":
		reply, err = c.drop(region, in.Handle)
	default:
		err = refused("com.amazon.coral.service#UnknownOperationException", "%s", action)
	}
	return reply, fault, err
}

// receive answers ReceiveMessage: at once if there is a message, else as soon as
// one comes.
func (c *Cloud) receive(ctx context.Context, region string, in sqsRequest, fault string) (any, error) {
	most, hide := 1, c.cfg.Visibility
	if in.Most != nil {
		most = *in.Most
	}
	if most < 1 || most > 10 || in.WaitSeconds < 0 || in.WaitSeconds > 20 {
		return nil, refused("com.amazonaws.sqs#InvalidParameterValue",
			"Value for parameter MaxNumberOfMessages or WaitTimeSeconds is invalid.")
	}
	if in.HideSeconds != nil {
		hide = time.Duration(*in.HideSeconds) * time.Second
	}
	wait := min(time.Duration(in.WaitSeconds)*time.Second, c.cfg.LongestWait)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		all := c.take(region, most, hide, fault)
		if len(all) > 0 || fault == Empty {
			return receiveReply(all), nil
		}
		select {
		case <-ctx.Done():
			return receiveReply(nil), nil
		case <-time.After(look):
		}
	}
}

func (c *Cloud) take(region string, most int, hide time.Duration, fault string) []message {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell()
	return c.queue(region).take(most, hide, fault, c.cfg.Now())
}

func receiveReply(all []message) any {
	type item struct {
		MessageID  string            `json:"MessageId"`
		Handle     string            `json:"ReceiptHandle"`
		MD5        string            `json:"MD5OfBody"`
		Body       string            `json:"Body"`
		Attributes map[string]string `json:"Attributes"`
	}
	var reply struct {
		Messages []item `json:"Messages,omitempty"`
	}
	for _, m := range all {
		sum := md5.Sum([]byte(m.body))
		reply.Messages = append(reply.Messages, item{m.id, m.handle, hex.EncodeToString(sum[:]), m.body, map[string]string{
			"ApproximateReceiveCount": strconv.Itoa(m.receives),
			"SentTimestamp":           strconv.FormatInt(m.sent.UnixMilli(), 10),
		}})
	}
	return reply
}

// drop answers DeleteMessage.
func (c *Cloud) drop(region, handle string) (any, error) {
	if handle == "" {
		return nil, refused("com.amazonaws.sqs#MissingParameter", "The request must contain the parameter ReceiptHandle.")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue(region).drop(handle)
	return struct{}{}, nil
}
