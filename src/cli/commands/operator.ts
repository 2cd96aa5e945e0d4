import { z } from 'zod';
import { ServiceError } from '../../domain/errors';
import { formatAmount } from '../../domain/money/money';
import { OPERATOR_ROLES } from '../../domain/operators/operator-act';
import type { Outcome } from '../../service/operators/act';
import { approve as approveRequest } from '../../service/operators/approvals/carry-out';
import {
  decide,
  findApproval,
  listApprovals,
  presentApproval,
  type ShownApproval,
} from '../../service/operators/approvals/decide';
import {
  acknowledgeAttention,
  acknowledgeOfBankAccount,
  isOfBankAccount,
  listAttention,
} from '../../service/operators/attention';
import { auditAs, getSystemUser } from '../../service/operators/deps';
import {
  areFirstCreated,
  createFirstOperator,
  createOperator,
  type ListedOperator,
  listOperators,
  revokeOperator,
  verifyOperator,
} from '../../service/operators/keys';
import { openKeyed, withAuthority } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import { type CliContext, readRoutes } from '../context';
import { APPROVED, APPROVED_NOTE, Id, limit, Operator, Reason, textOption } from '../options';
import { formatTime, printFields, printList } from '../output';
import { describeOutcome } from './act-many';

const create = defineCommand({
  name: 'create',
  description: 'create an operator’s key, and show it once',
  options: z.object({
    name: Operator.describe('the operator').meta({ argument: true }),
    role: z.enum(OPERATOR_ROLES).describe('an approver decides on the requests of others, too'),
    ...APPROVED,
  }),
  notes: `
The operator sets it as OPERATOR_KEY. To replace a key, create another for the same name, then revoke the
old one by its id. The first two keys, of two approvers, need nothing; after that: ${APPROVED_NOTE}`,
  example: 'operator create mia --role approver',
  run: async (context, { name, role, operation_id, reason }) => {
    // Before the first start, no index bounds the first keys.
    const isNeeded = await areFirstCreated(await context.actingDeps());
    const call = { isNeeded, account_id: null, input: { name, role }, operation_id, reason };
    await withAuthority(context, 'operator create', call, async (deps, part) => {
      const created_by = isNeeded ? await verifyOperator(deps, context.operatorKey) : undefined;
      const operator = created_by
        ? await createOperator(deps, { name, role, id: `op_${part}`, created_by: created_by.name })
        : await createFirstOperator(deps, { name, role });
      const note = 'The key is not stored and not shown again: pass it on now.';
      printFields(context, { json: operator, note }, [
        ['Operator id', operator.operator_id],
        ['Name', name],
        ['Role', role],
        ['Key', operator.key],
      ]);
    });
  },
});

const presentOperator = ({ _id, name, role, created_at, revoked_at }: ListedOperator) => ({
  operator_id: _id,
  name,
  role,
  created_at,
  revoked_at,
});

const list = defineCommand({
  name: 'list',
  description: 'list the operators’ keys, oldest first, without the secrets',
  options: z.object({}),
  example: 'operator list',
  run: async (context) => {
    printList(context, {
      rows: await listOperators(await context.readDeps()),
      present: presentOperator,
      columns: {
        OPERATOR: 'operator_id',
        NAME: 'name',
        ROLE: 'role',
        CREATED: 'created_at',
        REVOKED: 'revoked_at',
      },
      none: 'There are no operators: on live no command moves money.',
    });
  },
});

const revoke = defineCommand({
  name: 'revoke',
  description: 'revoke a key, or all keys of a name, at once; again changes nothing',
  options: z.object({
    operator: Id.meta({ argument: true, placeholder: 'name or id' }),
    reason: Reason.optional(),
  }),
  notes: 'It needs OPERATOR_KEY and --reason.',
  example: 'operator revoke mia --reason "Ticket 42: mia has left"',
  run: async (context, { operator, reason }) => {
    const { deps, reason: why } = await openKeyed(context, reason);
    const rows = await revokeOperator(deps, operator, why);
    const lines = rows.map(
      ({ _id, name, revoked_at }) =>
        `The key ${_id} of ${name} is revoked since ${formatTime(revoked_at)}.`,
    );
    context.print({ json: { data: rows.map(presentOperator) }, text: lines.join('\n') });
  },
});

export const operatorCommands = defineGroup({
  name: 'operator',
  description: 'who may move money on live: keys of operators, each shown once',
  commands: [create, list, revoke],
});

const listRequests = defineCommand({
  name: 'list',
  description: 'list the requests that wait for another operator, the oldest first',
  options: z.object({ all: z.boolean().default(false).describe('also those that have ended') }),
  example: 'approval list',
  run: async (context, { all }) => {
    printList(context, {
      rows: await listApprovals(await context.readDeps(), all),
      present: presentApproval,
      columns: {
        APPROVAL: 'approval_id',
        STATE: 'state',
        ACT: 'act',
        ON: formatTarget,
        AMOUNT: ({ amount, currency }) => formatCredit(amount, currency),
        'REQUESTED BY': formatRequester,
        EXPIRES: 'expires_at',
      },
      none: 'No request waits for an operator.',
    });
  },
});

function formatCredit(amount: ShownApproval['amount'], currency: string | null): string {
  return amount === null || currency === null ? '-' : formatAmount(amount, currency);
}

function formatTarget({ resource, resource_id, operation_id, plan, ...row }: ShownApproval) {
  if (row.request !== undefined) return row.request;
  return plan ? `${plan.length} ${resource}s` : (resource_id ?? operation_id ?? '-');
}

function formatRequester({ requested_by, requester_verified }: ShownApproval): string {
  return requester_verified ? requested_by : `${requested_by} (not verified)`;
}

const ApprovalId = Id.meta({ argument: true, placeholder: 'approval_id' });

const showRequest = defineCommand({
  name: 'show',
  description: 'show a request, and what it asks for',
  options: z.object({ id: ApprovalId }),
  example: 'approval show appr_…',
  run: async (context, { id }) => {
    const approval = await findApproval(await context.readDeps(), id);
    printApproval(context, presentApproval(approval), undefined);
  },
});
const DecisionOptions = z.object({ id: ApprovalId, reason: Reason });

const approve = defineCommand({
  name: 'approve',
  description: 'approve another operator’s request, and do what it asks for',
  options: DecisionOptions,
  notes: `
It needs an approver's OPERATOR_KEY. If the outcome is unknown, repeat it: the act is done once, and of a plan
each of its acts; a plan that has changed is refused. A request from the Temporal UI proves no operator: the
first who approves it confirms it, and another approves it. Where the act prints a secret, its requester then
repeats the command.`,
  example: 'approval approve appr_… --reason "Ticket 42: I have seen the statement"',
  run: async (context, { id, reason }) => {
    const operator = await verifyOperator(await context.readDeps(), context.operatorKey);
    const deps = {
      ...(await context.actingDeps()),
      audit: auditAs(await context.readDeps(), operator.name),
      database: context.settings().mongodb.db,
      ...readRoutes(context),
      openActDeps: async () => context.withTemporal(await context.readDeps()),
      by: getSystemUser(),
      onOutcome: (outcome: Outcome) =>
        context.progress(`${outcome.id} ${describeOutcome(outcome)}`),
    };
    const { approval } = await approveRequest(deps, id, { operator, reason });
    const isConfirmed = approval.state === 'requested';
    const status = isConfirmed ? 'approval_required' : undefined;
    const isLeft = approval.state === 'approved';
    const left = isLeft ? `Now ${approval.requested_by} repeats the command.` : undefined;
    const note = isConfirmed ? 'Confirmed. Now another operator approves it.' : left;
    printApproval(context, { ...presentApproval(approval), ...(status && { status }) }, note);
    const { plan = [], state } = approval;
    const undone = plan.filter(({ is_done }) => !is_done).length;
    if (state !== 'done' || undone === 0) return;
    const message = `Not done: ${undone} of ${plan.length}, which their workflows refused.`;
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
    ...(json.plan ?? []).map(({ id, status, amount, done }) => {
      const text = `${id} ${status} ${formatCredit(amount, json.currency)}`;
      return ['', done ? `${text}, done` : text] as const;
    }),
    ['Amount', json.amount === null ? undefined : formatCredit(json.amount, json.currency)],
    ['Requested by', formatRequester(json)],
    ['Reason', json.reason],
    ['Decided by', json.decided_by ?? '-'],
  ]);
}

export const approvalCommands = defineGroup({
  name: 'approval',
  description: 'requests that a second operator decides on',
  commands: [listRequests, showRequest, approve, reject],
});

const listReasons = defineCommand({
  name: 'list',
  description: 'list the attention reasons of all resources, the oldest first',
  options: z.object({
    all: z.boolean().default(false).describe('also those that were acknowledged'),
    limit: limit(1_000, 100),
    after: textOption('continue a list at its next_cursor', 'cursor').optional(),
  }),
  example: 'attention list --limit 10',
  run: async (context, query) => {
    const { stores } = await context.readDeps();
    printList(context, {
      ...(await listAttention(stores, { ...query, now: context.now() })),
      cursorOption: '--after',
      present: (row) => row,
      columns: {
        ATTENTION: 'id',
        SINCE: ({ since }) => formatTime(since),
        REASON: ({ reason, code, name }) =>
          [reason, code, name].filter((each) => each !== undefined).join(' '),
        AMOUNT: 'amount',
        CURRENCY: 'currency',
        ACKNOWLEDGED: ({ acknowledged }) => (acknowledged ? 'yes' : 'no'),
      },
      none: 'Nothing needs an operator.',
    });
  },
});

const acknowledge = defineCommand({
  name: 'acknowledge',
  description: 'take one off the list and out of the metrics; the audit trail records it',
  options: z.object({
    id: Id.describe('its id, as the list prints it').meta({
      argument: true,
      placeholder: 'attention',
    }),
    reason: Reason,
    operator: Operator.optional().describe('who does it; by default the system user'),
  }),
  notes: `
If the same reason comes again, it needs an operator again. A reason whose money is in suspense is refused.`,
  example: 'attention acknowledge payment:0d1f…:1764… --reason "Ticket 42: the bank released it"',
  run: async (context, { id, reason, operator }) => {
    const by = getSystemUser();
    const act = { operator: operator ?? by.system_user, reason, by };
    const { resource, resource_id, ...done } = isOfBankAccount(id)
      ? await acknowledgeOfBankAccount(await context.actingDeps(), id, act)
      : await acknowledgeAttention(await context.withTemporal(await context.readDeps()), id, act);
    const json = { id, resource, resource_id, ...done, acknowledged: true };
    printFields(context, { json }, [
      ['Acknowledged', done.reason],
      ['Resource', `${resource} ${resource_id}`],
    ]);
  },
});

export const attentionCommands = defineGroup({
  name: 'attention',
  description: 'what needs an operator, and acknowledging it',
  commands: [listReasons, acknowledge],
});
