// Package authorizer lets each process do in Temporal only what it needs, by the name in its client
// certificate. Temporal's own authorizer knows namespaces and roles, and no task queues: compile
// this one into a server (Temporal 1.29, `temporal.NewServer`):
//
//	temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorizer.Names{} }),
//	temporal.WithAuthorizer(authorizer.Authorizer{Namespace: "payments"}),
//
// Run `internal-frontend` as well: it serves Temporal's own workers, and asks no authorizer.
package authorizer

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
)

// Names makes the common name of a client certificate the caller.
type Names struct{}

func (Names) GetClaims(auth *authorization.AuthInfo) (*authorization.Claims, error) {
	if auth.TLSSubject == nil {
		return nil, nil
	}
	return &authorization.Claims{Subject: auth.TLSSubject.CommonName}, nil
}

type Authorizer struct {
	Namespace string
	// QueuePrefix is TASK_QUEUE_PREFIX with its hyphen, or empty.
	QueuePrefix string
}

// Processes of the service, which start, run and change workflows.
var trusted = map[string]bool{"api": true, "worker": true, "operator": true}

// Calls of a connector that name no queue. A task's token is no secret: it keeps connectors from
// polling what is not theirs, and not from answering a task whose run they know.
var connectorCalls = map[string]bool{
	"GetSystemInfo": true, "GetClusterInfo": true, "DescribeNamespace": true,
	"CountWorkflowExecutions": true, "DescribeWorkflowExecution": true,
	"GetWorkflowExecutionHistory": true, "SignalWorkflowExecution": true,
	"RecordActivityTaskHeartbeat": true, "RespondActivityTaskCompleted": true,
	"RespondActivityTaskFailed": true, "RespondActivityTaskCanceled": true,
	"RecordWorkerHeartbeat": true, "ShutdownWorker": true,
}

func (a Authorizer) Authorize(
	_ context.Context, caller *authorization.Claims, target *authorization.CallTarget,
) (authorization.Result, error) {
	if authorization.IsHealthCheckAPI(target.APIName) || caller != nil && a.allows(caller.Subject, target) {
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	return authorization.Result{Decision: authorization.DecisionDeny}, nil
}

func (a Authorizer) allows(name string, target *authorization.CallTarget) bool {
	if target.Namespace != "" && target.Namespace != a.Namespace {
		return false
	}
	if trusted[name] {
		return true
	}
	if !strings.HasPrefix(name, "connector-") {
		return false
	}
	switch request := target.Request.(type) {
	case *workflowservice.PollActivityTaskQueueRequest:
		return request.GetTaskQueue().GetName() == a.QueuePrefix+name
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		queue := strings.TrimPrefix(request.GetTaskQueue().GetName(), a.QueuePrefix)
		return (queue == "lifecycle" || queue == "lifecycle-live") && resumes(request)
	}
	return connectorCalls[path.Base(target.APIName)]
}

// A callback may start the workflow of a stored resource again, and never that of a new one.
func resumes(request *workflowservice.SignalWithStartWorkflowExecutionRequest) bool {
	var input map[string]any
	payloads := request.GetInput().GetPayloads()
	if len(payloads) != 1 || json.Unmarshal(payloads[0].GetData(), &input) != nil {
		return false
	}
	return input["resume"] == true
}
