import { z } from 'zod';
import { formatAmount } from '../../domain/amount';
import { ServiceError } from '../../domain/errors';
import type { Outcome } from '../../service/operators/act-many';
import { approve as approveRequest } from '../../service/operators/approvals/carry-out';
import {
  decide,
  listApprovals,
  presentApproval,
  type ShownApproval,
} from '../../service/operators/approvals/decide';
import { auditAs, getSystemUser } from '../../service/operators/deps';
import { verifyOperator } from '../../service/operators/keys';
import { defineCommand, defineGroup } from '../command';
import type { CliContext } from '../context';
import { Reason } from '../options';
import { formatTime, printFields, printList, sanitize } from '../output';
import { describeOutcome } from './act-many';

const list = defineCommand({
  name: 'list',
  description: 'list the requests that wait for another operator, the oldest first',
  options: z.object({ all: z.boolean().default(false).describe('also those that have ended') }),
  example: 'approval list',
  run: async (context, { all }) => {
    printList(context, {
      rows: await listApprovals(await context.readDeps(), all),
      present: presentApproval,
      columns: ['APPROVAL', 'STATE', 'ACT', 'ON', 'AMOUNT', 'REQUESTED BY', 'EXPIRES'],
      cells: (row) => [
        row.approval_id,
        row.state,
        row.act,
        formatTarget(row),
        formatAmount(row.amount, row.currency),
        formatRequester(row),
        formatTime(row.expires_at),
      ],
      none: 'No request waits for an operator.',
    });
  },
});

function formatTarget({ resource, resource_id, operation_id, plan }: ShownApproval): string {
  return plan ? `${plan.length} ${resource}s` : (resource_id ?? operation_id ?? '-');
}

function formatPlanned(
  { id, status, amount, done }: NonNullable<ShownApproval['plan']>[number],
  { currency }: ShownApproval,
): string {
  return `${id} ${status} ${formatAmount(amount, currency)}${done ? ', done' : ''}`;
}

function formatRequester({ requested_by, requester_verified }: ShownApproval): string {
  return requester_verified ? requested_by : `${requested_by} (not verified)`;
}

const ApprovalId = z.string().meta({ argument: true, placeholder: 'approval_id' });
const DecisionOptions = z.object({ id: ApprovalId, reason: Reason });

const approve = defineCommand({
  name: 'approve',
  description: 'approve another operator’s request, and do what it asks for',
  options: DecisionOptions,
  notes: `
It needs an approver's OPERATOR_KEY. If the outcome is unknown, repeat it: the act is done once, and of a plan
each of its acts; a plan that has changed is refused. A request from the Temporal UI proves no operator: the
first who approves it confirms it, and another approves it.`,
  example: 'approval approve appr_… --reason "Ticket 42: I have seen the statement"',
  run: async (context, { id, reason }) => {
    const operator = await verifyOperator(await context.readDeps(), context.operatorKey);
    const deps = {
      ...(await context.actingDeps()),
      audit: auditAs(await context.readDeps(), operator.name),
      database: context.settings().mongodb.db,
      openActDeps: async () => context.withTemporal(await context.readDeps()),
      by: getSystemUser(),
      onOutcome: (outcome: Outcome) =>
        context.progress(sanitize(`${outcome.id} ${describeOutcome(outcome)}`)),
    };
    const { approval } = await approveRequest(deps, id, { operator, reason });
    const isConfirmed = approval.state === 'requested';
    const status = isConfirmed ? 'approval_required' : undefined;
    const note = isConfirmed ? 'Confirmed. Now another operator approves it.' : undefined;
    printApproval(context, { ...presentApproval(approval), ...(status && { status }) }, note);
    const { plan = [], state } = approval;
    const left = plan.filter(({ is_done }) => !is_done).length;
    if (state !== 'done' || left === 0) return;
    const message = `Not done: ${left} of ${plan.length}, which their workflows refused.`;
    throw new ServiceError('not_all_done', message);
  },
});

const reject = defineCommand({
  name: 'reject',
  description: 'reject another operator’s request, for good',
  options: DecisionOptions,
  example: 'approval reject appr_… --reason "Ticket 42: the wire has not come"',
  run: async (context, { id, reason }) => {
    const read = await context.readDeps();
    const operator = await verifyOperator(read, context.operatorKey);
    const deps = { ...(await context.actingDeps()), audit: auditAs(read, operator.name) };
    const rejected = await decide(deps, id, { to: 'rejected', operator, reason });
    printApproval(context, presentApproval(rejected), undefined);
  },
});

function printApproval(
  context: Pick<CliContext, 'print'>,
  json: ShownApproval,
  note: string | undefined,
): void {
  printFields(context, { json, ...(note !== undefined && { note }) }, [
    ['Approval', json.approval_id],
    ['State', json.state],
    ['Act', json.act],
    ['On', formatTarget(json)],
    ...(json.plan ?? []).map((act): [string, string] => ['', formatPlanned(act, json)]),
    ['Amount', formatAmount(json.amount, json.currency)],
    ['Requested by', formatRequester(json)],
    ['Decided by', json.decided_by ?? '-'],
  ]);
}

export const approvalCommands = defineGroup({
  name: 'approval',
  description: 'requests above the limit, which a second operator decides on',
  commands: [list, approve, reject],
});
