package awscloud

import "time"

// WithTimeout is d with another bound than DescribeTimeout.
func (d *Describer) WithTimeout(t time.Duration) *Describer { return &Describer{d.client, t} }

// WithTimeout is q with another bound of a receive.
func (q *Queue) WithTimeout(t time.Duration) *Queue { return &Queue{q.client, q.url, t} }
