package authorizer

import (
	"context"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
)

// To run: go mod init authorizer && go get go.temporal.io/server@v1.29.0 && go mod tidy && go test
func TestConnectors(t *testing.T) {
	const service = "/temporal.api.workflowservice.v1.WorkflowService/"
	authorizer := Authorizer{
		Namespace:   "payments",
		QueuePrefix: "a-",
		Signals:     map[string][]string{"connector-sepa": {"payout"}},
	}
	execution := func(id string) *commonpb.WorkflowExecution {
		return &commonpb.WorkflowExecution{WorkflowId: id}
	}
	signal := func(id, name string) any {
		return &workflowservice.SignalWorkflowExecutionRequest{
			WorkflowExecution: execution(id), SignalName: name,
		}
	}
	start := func(id, workflowType, queue, signal, input string) any {
		return &workflowservice.SignalWithStartWorkflowExecutionRequest{
			WorkflowId:   id,
			WorkflowType: &commonpb.WorkflowType{Name: workflowType},
			TaskQueue:    &taskqueuepb.TaskQueue{Name: queue},
			SignalName:   signal,
			Input:        &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte(input)}}},
		}
	}
	poll := func(queue string) any {
		return &workflowservice.PollActivityTaskQueueRequest{
			TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
		}
	}
	describe := func(id string) any {
		return &workflowservice.DescribeWorkflowExecutionRequest{Execution: execution(id)}
	}
	history := func(id string) any {
		return &workflowservice.GetWorkflowExecutionHistoryRequest{Execution: execution(id)}
	}
	resume := `{"payout_id":"1","resume":true}`
	for name, test := range map[string]struct {
		caller, namespace, call string
		request                 any
		allowed                 bool
	}{
		"a worker starts":           {"worker", "payments", "StartWorkflowExecution", nil, true},
		"another namespace":         {"worker", "other", "StartWorkflowExecution", nil, false},
		"nobody":                    {"", "payments", "DescribeNamespace", nil, false},
		"a stranger":                {"eve", "payments", "DescribeNamespace", nil, false},
		"own queue":                 {"connector-sepa", "payments", "PollActivityTaskQueue", poll("a-connector-sepa"), true},
		"own questions":             {"connector-sepa", "payments", "PollActivityTaskQueue", poll("a-questions-sepa"), true},
		"another's questions":       {"connector-sepa", "payments", "PollActivityTaskQueue", poll("a-questions-evm"), false},
		"without the prefix":        {"connector-sepa", "payments", "PollActivityTaskQueue", poll("connector-sepa"), false},
		"another connector's queue": {"connector-sepa", "payments", "PollActivityTaskQueue", poll("a-connector-evm"), false},
		"a queue of the service":    {"connector-sepa", "payments", "PollActivityTaskQueue", poll("a-lifecycle"), false},
		"a workflow queue":          {"connector-sepa", "payments", "PollWorkflowTaskQueue", nil, false},
		"start":                     {"connector-sepa", "payments", "StartWorkflowExecution", nil, false},
		"update":                    {"connector-sepa", "payments", "UpdateWorkflowExecution", nil, false},
		"terminate":                 {"connector-sepa", "payments", "TerminateWorkflowExecution", nil, false},
		"a callback":                {"connector-sepa", "payments", "SignalWorkflowExecution", signal("payout:1", "sent"), true},
		"no callback":               {"connector-sepa", "payments", "SignalWorkflowExecution", signal("payout:1", "mark_failed"), false},
		"another kind's callback":   {"connector-sepa", "payments", "SignalWorkflowExecution", signal("payment:1", "settled"), false},
		"a workflow of no resource": {"connector-sepa", "payments", "SignalWorkflowExecution", signal("payout", "sent"), false},
		"over HTTP":                 {"connector-acme", "payments", "SignalWorkflowExecution", signal("payout:1", "sent"), false},
		"read":                      {"connector-sepa", "payments", "DescribeWorkflowExecution", describe("payout:1"), true},
		"read another kind":         {"connector-sepa", "payments", "DescribeWorkflowExecution", describe("refund:1"), false},
		"read over HTTP":            {"connector-acme", "payments", "DescribeWorkflowExecution", describe("payout:1"), false},
		"history":                   {"connector-sepa", "payments", "GetWorkflowExecutionHistory", history("payout:1"), true},
		"another kind's history":    {"connector-sepa", "payments", "GetWorkflowExecutionHistory", history("payment:1"), false},
		"resume":                    {"connector-sepa", "payments", "SignalWithStartWorkflowExecution", start("payout:1", "payout", "a-lifecycle-live", "sent", resume), true},
		"resume without the flag":   {"connector-sepa", "payments", "SignalWithStartWorkflowExecution", start("payout:1", "payout", "a-lifecycle", "sent", `{"payout_id":"1"}`), false},
		"resume another id":         {"connector-sepa", "payments", "SignalWithStartWorkflowExecution", start("payout:2", "payout", "a-lifecycle", "sent", resume), false},
		"resume another type":       {"connector-sepa", "payments", "SignalWithStartWorkflowExecution", start("payout:1", "webhookDelivery", "a-lifecycle", "sent", resume), false},
		"resume by another signal":  {"connector-sepa", "payments", "SignalWithStartWorkflowExecution", start("payout:1", "payout", "a-lifecycle", "settled", resume), false},
		"resume on another queue":   {"connector-sepa", "payments", "SignalWithStartWorkflowExecution", start("payout:1", "payout", "a-webhooks", "sent", resume), false},
		"resume over HTTP":          {"connector-acme", "payments", "SignalWithStartWorkflowExecution", start("payout:1", "payout", "a-lifecycle", "sent", resume), false},
	} {
		t.Run(name, func(t *testing.T) {
			target := &authorization.CallTarget{
				APIName: service + test.call, Namespace: test.namespace, Request: test.request,
			}
			var claims *authorization.Claims
			if test.caller != "" {
				claims = &authorization.Claims{Subject: test.caller}
			}
			result, err := authorizer.Authorize(context.Background(), claims, target)
			if err != nil || (result.Decision == authorization.DecisionAllow) != test.allowed {
				t.Fatalf("decision %v, error %v, and allowed is %v", result.Decision, err, test.allowed)
			}
		})
	}
}
