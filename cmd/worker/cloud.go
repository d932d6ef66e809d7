package main

import (
	"context"

	"github.com/carlosframework/regionha/awscloud"
	"github.com/carlosframework/regionha/internal/worker"
)

// newCloud opens AWS, with the SDK's own credentials and endpoints.
func newCloud(ctx context.Context, set worker.Settings) (worker.Cloud, error) {
	instances, err := awscloud.NewDescriber(ctx)
	if err != nil {
		return worker.Cloud{}, err
	}
	groups, err := awscloud.NewGroups(ctx)
	if err != nil {
		return worker.Cloud{}, err
	}
	cloud := worker.Cloud{Instances: instances, Groups: groups}
	if set.TerminationQueue == "" {
		return cloud, nil
	}
	queue, err := awscloud.NewQueue(ctx, set.TerminationQueue)
	if err != nil {
		return worker.Cloud{}, err
	}
	cloud.Events = queue
	return cloud, nil
}
