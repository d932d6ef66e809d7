// Package policies is documents: what an AWS account grants and forbids to the
// processes of a deployment, as JSON beside this file, and README.md, which says
// how to load them. Its tests evaluate them against the requests that the real
// code makes, and against the forbidden twins of those.
package policies
