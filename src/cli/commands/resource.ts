import { z } from 'zod';
import { PROGRAM } from '../../base/program';
import { isApprovalRequired } from '../../domain/approval';
import { AMOUNT_MAX, type CallbackResource } from '../../domain/callback/callback';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { OUTCOMES } from '../../domain/movement/movement';
import { KINDS, LIFECYCLES } from '../../lifecycles';
import { actAsOperator, FOUND_MAX } from '../../service/operators/act';

import { findResource, readPage } from '../../service/operators/resource';
import { assertNamed, openActing, printApprovalRequired } from '../acting-operator';
import { type CliCommand, defineCommand, defineGroup } from '../command';
import {
  Amount,
  ApprovedBy,
  Hours,
  Id,
  idOption,
  OperationId,
  Operator,
  Reason,
  textOption,
  wholeNumber,
} from '../options';
import { printFields } from '../output';
import { actByQuery, assertOneMode, MANY_OPTIONS } from './act-many';
import { disputeCommands } from './dispute';
import { pageText } from './resource-page';

const OUTGOING_OPTIONS = {
  bank_confirmed_not_executed: z
    .boolean()
    .optional()
    .describe(
      'of mark_failed: the bank said that it did not execute it and will not; it is not asked',
    ),
};

const MOVEMENT_OPTIONS = {
  movement: idOption('one movement in suspense, which the act takes').optional(),
  as: z
    .enum(OUTCOMES)
    .optional()
    .describe('of resolve_movement: who has the money, or bears it')
    .meta({ placeholder: 'outcome' }),
};

const DISPUTE_OPTIONS = {
  operation_id: OperationId.optional().describe('of claw_back: a repeat with it posts nothing'),
  dispute_id: textOption('of dispute_won: which of several', 'id').optional(),
  fee: wholeNumber(0, AMOUNT_MAX)
    .optional()
    .describe('of dispute_won: what came back of the fee, in minor units')
    .meta({ placeholder: 'minor' }),
};

const ActFacts = z.object({
  operation_id: z.string().optional(),
  dispute_id: z.string().optional(),
  fee: z.number().optional(),
  transaction_id: z.string().optional(),
  address: z.string().optional(),
  movement: z.string().optional(),
  as: z.enum(OUTCOMES).optional(),
});

const RENAMED_ACTS = {
  mark_sent_back: '`mark_sent_back` is now `movement resolve MOVEMENT_ID --as customer`.',
  write_off: '`write_off` is now `movement resolve MOVEMENT_ID --as loss`.',
  debit_reorged: '`debit_reorged` is now `movement resolve MOVEMENT_ID --as merchant`.',
};

const DEPOSIT_OPTIONS = {
  transaction_id: textOption(
    'of confirm: the deposit’s transaction; of resolve_movement: the one that sent it back',
    'transaction',
  ).optional(),
  address: textOption('of resolve_movement: where it was sent', 'address').optional(),
};

export const resourceCommands: readonly CliCommand[] = KINDS.map((kind) => {
  const group = kind.replace('_', '-');
  const noun = kind.replace('_', ' ');
  const ResourceId = Id.meta({ argument: true, placeholder: `${kind}_id` });

  const show = defineCommand({
    name: 'show',
    description: `show all that is stored of a ${noun}: transitions, ledger, callbacks, audit trail`,
    options: z.object({ id: ResourceId }),
    notes:
      'Details of customers and recipients are left out; texts of merchants and banks are shown.',
    example: `${group} show 0d1f…`,
    run: async (context, { id }) => {
      const { stores } = await context.readDeps();
      const page = await readPage(stores, kind, id);
      const { resource, ...rest } = page;
      context.print({ json: { [kind]: resource, ...rest }, text: pageText(page) });
    },
  });

  const act = defineCommand({
    name: 'act',
    description: `do to a ${noun} what its workflow lets operators do; the audit trail records it`,
    options: getActOptions(kind),
    notes: `
The workflow decides, and refuses in words what the state does not allow. One that was terminated is
restarted for it. On live it needs OPERATOR_KEY, except for snooze and acknowledge, and the approval of a second
operator where it credits and, with what was credited over 24 hours, is above APPROVAL_LIMIT.

With --query it acts on up to ${FOUND_MAX} that a query of Temporal's list of workflows finds, which lags by seconds:
  ${PROGRAM.cli} ${group} act snooze --query "ServiceAttention IS NOT NULL" --plan
--plan lists them; --apply does it, goes on after a refusal, and exits with 1 if one was refused or failed. Credits on
live whose sum is above APPROVAL_LIMIT are one request.`,
    example: `${group} act 0d1f… ${LIFECYCLES[kind].acts[0]} --operator mia --reason "Ticket 42"`,
    run: async (context, options) => {
      const { query, plan, apply, expect, id: first, act: second, ...more } = options;
      const { id, what } = readTarget(kind, { first, second, query });
      const { operator: typed, reason, hours, approved_by, ...ofOne } = more;
      assertOneMode({ query, plan, apply, expect }, Object.keys(omitUndefined(ofOne)));
      const isConfirmed = more.bank_confirmed_not_executed === true;
      if (!plan) assertComplete(what, { reason, hours });
      if (isConfirmed && what !== 'mark_failed') {
        const message = 'Only mark_failed takes --bank-confirmed-not-executed.';
        throw new ServiceError('invalid_usage', message);
      }
      if (query !== undefined) {
        const acts = { what, operator: typed, reason, hours, approved_by };
        return await actByQuery(context, kind, { query, plan, apply, expect }, acts);
      }
      assertNamed(context, typed);
      const { stores } = await context.readDeps();
      const { livemode } = await findResource(stores, kind, id);
      const acting = await openActing(context, { livemode, what, operator: typed });
      const { deps, verified, names } = acting;
      const confirmation = { bank_confirmed_not_executed: isConfirmed || undefined };
      const facts = { ...ActFacts.parse(more), ...confirmation, amount: more.amount };
      const second_operator = { approved_by: livemode ? undefined : approved_by };
      const request = { what, reason: reason ?? '', hours, ...names, ...second_operator, ...facts };
      const answer = await actAsOperator(deps, kind, id, omitUndefined(request), verified);
      if (isApprovalRequired(answer)) return printApprovalRequired(context, answer);
      const { status, version, bank } = answer;
      const { attention = null } = await findResource(deps.stores, kind, id);
      const json = omitUndefined({ [`${kind}_id`]: id, status, version, bank, attention });
      printFields(context, { json }, [
        ['Done', what],
        ['Status', status],
        ['Version', String(version)],
        ['Bank', bank],
        ['Attention', attention ?? '-'],
      ]);
    },
  });

  return defineGroup({
    name: group,
    description: `see one ${noun}, and act on it`,
    commands: [...(kind === 'dispute' ? disputeCommands : []), show, act],
  });
});

function getActOptions(kind: CallbackResource) {
  return z.object({
    id: Id.describe('its id; with --query the act instead').meta({
      argument: true,
      placeholder: `${kind}_id`,
    }),
    act: z
      .enum(LIFECYCLES[kind].acts)
      .optional()
      .describe('what to do')
      .meta({ argument: true, renamed: kind === 'crypto_payment' ? RENAMED_ACTS : {} }),
    operator: Operator.optional(),
    reason: Reason.optional(),
    hours: Hours.optional().describe('of a snooze: how long, up to 720'),
    amount: Amount.optional().describe('what really moved, where that differs from the request'),
    approved_by: ApprovedBy,
    ...(LIFECYCLES[kind].isOutgoing ? OUTGOING_OPTIONS : {}),
    ...(kind === 'payment' ? DISPUTE_OPTIONS : {}),
    ...(kind === 'dispute' ? { fee: DISPUTE_OPTIONS.fee } : {}),
    ...MOVEMENT_OPTIONS,
    ...(kind === 'crypto_payment' ? DEPOSIT_OPTIONS : {}),
    ...MANY_OPTIONS,
  });
}

interface Target {
  first: string;
  second: string | undefined;
  query: string | undefined;
}

/** @throws ServiceError `invalid_usage` */
function readTarget(
  kind: CallbackResource,
  { first, second, query }: Target,
): { id: string; what: string } {
  if (query === undefined) {
    if (second !== undefined) return { id: first, what: second };
    throw new ServiceError('invalid_usage', "missing required argument 'act'");
  }
  const { acts } = LIFECYCLES[kind];
  if (second === undefined && acts.includes(first)) return { id: '', what: first };
  const message = `With --query, give an act and no id. Allowed choices are ${acts.join(', ')}.`;
  throw new ServiceError('invalid_usage', message);
}

/** @throws ServiceError `invalid_usage` */
function assertComplete(
  what: string,
  { reason, hours }: { reason: string | undefined; hours: number | undefined },
): void {
  if (reason === undefined) {
    throw new ServiceError('invalid_usage', "required option '--reason <text>' not specified");
  }
  if ((what === 'snooze') === (hours !== undefined)) return;
  throw new ServiceError('invalid_usage', 'A snooze, and nothing else, takes --hours.');
}
