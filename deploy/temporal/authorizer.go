// Package authorizer lets each process do in Temporal only what it needs, by the name in its client
// certificate. Temporal's own authorizer knows namespaces and roles, and no task queues: compile
// this one into a server (Temporal 1.29, `temporal.NewServer`):
//
//	temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorizer.Names{} }),
//	temporal.WithAuthorizer(authorizer.Authorizer{
//		Namespace: "payments",
//		Signals:   map[string][]string{"connector-sepa": {"payout"}},
//	}),
//
// Run `internal-frontend` as well: it serves Temporal's own workers, and asks no authorizer.
package authorizer

import (
	"context"
	"encoding/json"
	"path"
	"slices"
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
	// Signals names the resources whose workflows a connector may signal. One that is not in it
	// reports to the API, which checks its signature and whose resource it is: better, since no
	// authorizer can know that. Those of connectors/sepa and connectors/evm signal.
	Signals map[string][]string
}

// Processes of the service, which start, run and change workflows.
var trusted = map[string]bool{"api": true, "worker": true, "operator": true}

// Calls of a connector that name no queue. A task's token is no secret: it keeps connectors from
// polling what is not theirs, and not from answering a task whose run they know.
var connectorCalls = map[string]bool{
	"GetSystemInfo": true, "GetClusterInfo": true, "DescribeNamespace": true,
	"CountWorkflowExecutions": true, "RecordActivityTaskHeartbeat": true,
	"RespondActivityTaskCompleted": true, "RespondActivityTaskFailed": true,
	"RespondActivityTaskCanceled": true,
	"RecordWorkerHeartbeat":       true, "ShutdownWorker": true,
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
		queue := request.GetTaskQueue().GetName()
		questions := "questions-" + strings.TrimPrefix(name, "connector-")
		return queue == a.QueuePrefix+name || queue == a.QueuePrefix+questions
	case *workflowservice.DescribeWorkflowExecutionRequest:
		return a.signaled(name, request.GetExecution().GetWorkflowId()) != nil
	case *workflowservice.GetWorkflowExecutionHistoryRequest:
		return a.signaled(name, request.GetExecution().GetWorkflowId()) != nil
	case *workflowservice.SignalWorkflowExecutionRequest:
		resource := a.signaled(name, request.GetWorkflowExecution().GetWorkflowId())
		return resource != nil && slices.Contains(resource.signals, request.GetSignalName())
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		resource := a.signaled(name, request.GetWorkflowId())
		queue := strings.TrimPrefix(request.GetTaskQueue().GetName(), a.QueuePrefix)
		return resource != nil && slices.Contains(resource.signals, request.GetSignalName()) &&
			(queue == "lifecycle" || queue == "lifecycle-live") && resource.resumes(request)
	}
	return connectorCalls[path.Base(target.APIName)]
}

type resource struct {
	workflowType string
	idField      string
	signals      []string
}

// By the first part of a workflow's id; test/deploy compares them with the service's.
var resources = map[string]*resource{
	"payment": {"payment", "payment_id", strings.Fields(
		"authorized settled failed expired reversed reversal_failed clawed_back " +
			"dispute_opened dispute_updated dispute_withdrawn dispute_reinstated " +
			"dispute_won dispute_lost")},
	"refund": {"refund", "refund_id", strings.Fields("settled failed")},
	"payout": {"payout", "payout_id", strings.Fields(
		"submitted sent completed failed returned called_duplicate debit_reversed " +
			"return_reversed payee_verified")},
	"dispute": {"dispute", "dispute_id", strings.Fields(
		"dispute_opened dispute_updated dispute_withdrawn dispute_reinstated " +
			"dispute_won dispute_lost")},
	"crypto-payment": {"cryptoPayment", "crypto_payment_id", strings.Fields(
		"deposit deposit_undone wrong_asset expired")},
	"crypto-settlement": {"cryptoSettlement", "crypto_settlement_id", strings.Fields(
		"sent completed failed")},
}

// The kind of a workflow that the connector may signal, or nil.
func (a Authorizer) signaled(name, workflowID string) *resource {
	kind, id, _ := strings.Cut(workflowID, ":")
	if id == "" || !slices.Contains(a.Signals[name], kind) {
		return nil
	}
	return resources[kind]
}

// A callback may start the workflow of a stored resource again, and never that of a new one.
func (r *resource) resumes(request *workflowservice.SignalWithStartWorkflowExecutionRequest) bool {
	var input map[string]any
	payloads := request.GetInput().GetPayloads()
	if len(payloads) != 1 || json.Unmarshal(payloads[0].GetData(), &input) != nil {
		return false
	}
	_, id, _ := strings.Cut(request.GetWorkflowId(), ":")
	return request.GetWorkflowType().GetName() == r.workflowType && input["resume"] == true &&
		input[r.idField] == id
}
