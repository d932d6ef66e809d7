package awscloud

import "time"

// WithTimeout is d with another bound than DescribeTimeout.
func (d *Describer) WithTimeout(t time.Duration) *Describer { return &Describer{d.client, t} }
