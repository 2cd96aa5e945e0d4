import { z } from 'zod';
import { PROGRAM } from '../../base/program';
import { AMOUNT_MAX, type CallbackResource } from '../../domain/banks/callback';
import { OUTCOMES } from '../../domain/banks/movement';
import { formatUnits } from '../../domain/crypto/assets';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { formatAmount, formatMoney } from '../../domain/money/money';
import { isApprovalRequired } from '../../domain/operators/approval';
import { KINDS, LIFECYCLES } from '../../lifecycles';
import { actAsOperator, FOUND_MAX } from '../../service/operators/act';
import { findResource, type ResourcePage, readPage } from '../../service/operators/resource';
import { assertNamed, openActing, printApprovalRequired } from '../acting-operator';
import { type CliCommand, defineCommand, defineGroup } from '../command';
import {
  Amount,
  ApprovedBy,
  Hours,
  Id,
  idOption,
  NOTED,
  OperationId,
  textOption,
  wholeNumber,
} from '../options';
import { type Columns, fields, formatCells, formatTime, printFields, table } from '../output';
import { actByQuery, assertOneMode, MANY_OPTIONS } from './act-many';
import { formatOutcome } from './callback';
import { disputeCommands } from './dispute';
import { MOVEMENTS } from './movement';

/** Facts that an act of some kinds takes. */
const FACTS = {
  bank_confirmed_not_executed: z
    .boolean()
    .optional()
    .describe(
      'of mark_failed: the bank said that it did not execute it and will not; it is not asked',
    ),
  operation_id: OperationId.optional().describe('of claw_back: a repeat with it posts nothing'),
  dispute_id: textOption('of dispute_won: which of several', 'id').optional(),
  fee: wholeNumber(0, AMOUNT_MAX)
    .optional()
    .describe('of dispute_won: what came back of the fee, in minor units')
    .meta({ placeholder: 'minor' }),
  movement: idOption('one movement in suspense, which the act takes').optional(),
  as: z
    .enum(OUTCOMES)
    .optional()
    .describe('of resolve_movement: who has the money, or bears it')
    .meta({ placeholder: 'outcome' }),
  transaction_id: textOption(
    'of confirm: the deposit’s transaction; of resolve_movement: the one that sent it back',
    'transaction',
  ).optional(),
  address: textOption('of resolve_movement: where it was sent', 'address').optional(),
};

const ActFacts = z.object({
  bank_confirmed_not_executed: z.boolean().optional(),
  operation_id: z.string().optional(),
  dispute_id: z.string().optional(),
  fee: z.number().optional(),
  movement: z.string().optional(),
  as: z.enum(OUTCOMES).optional(),
  transaction_id: z.string().optional(),
  address: z.string().optional(),
});

const RENAMED_ACTS = {
  mark_sent_back: '`mark_sent_back` is now `movement resolve MOVEMENT_ID --as customer`.',
  write_off: '`write_off` is now `movement resolve MOVEMENT_ID --as loss`.',
  debit_reorged: '`debit_reorged` is now `movement resolve MOVEMENT_ID --as merchant`.',
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
      const refuse = (message: string) => new ServiceError('invalid_usage', message);
      if (!plan && reason === undefined) {
        throw refuse("required option '--reason <text>' not specified");
      }
      if (!plan && (what === 'snooze') !== (hours !== undefined)) {
        throw refuse('A snooze, and nothing else, takes --hours.');
      }
      if (more.bank_confirmed_not_executed && what !== 'mark_failed') {
        throw refuse('Only mark_failed takes --bank-confirmed-not-executed.');
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
      const approver = livemode ? undefined : approved_by;
      const facts = { ...ActFacts.parse(more), amount: more.amount, approved_by: approver };
      const request = { what, reason: reason ?? '', hours, ...names, ...facts };
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
  const { bank_confirmed_not_executed, operation_id, dispute_id, fee, movement, as } = FACTS;
  const { transaction_id, address } = FACTS;
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
    ...NOTED,
    hours: Hours.optional().describe('of a snooze: how long, up to 720'),
    amount: Amount.optional().describe('what really moved, where that differs from the request'),
    approved_by: ApprovedBy,
    ...(LIFECYCLES[kind].isOutgoing ? { bank_confirmed_not_executed } : {}),
    ...(kind === 'payment' ? { operation_id, dispute_id, fee } : {}),
    ...(kind === 'dispute' ? { fee } : {}),
    ...{ movement, as },
    ...(kind === 'crypto_payment' ? { transaction_id, address } : {}),
    ...MANY_OPTIONS,
  });
}

/** @throws ServiceError `invalid_usage` */
function readTarget(
  kind: CallbackResource,
  { first, second, query }: Record<'second' | 'query', string | undefined> & { first: string },
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

const MONEY = [
  'amount',
  'fee',
  'refunded',
  'refunded_over',
  'settled_amount',
  'returned_amount',
  'late_amount',
];
const UNITS = ['amount_due', 'amount_received'];
/** Headings as they have been since the first version. */
const [ENTRY, NOTES] = ['POSTING', 'MARKS'] as const;

function pageText(page: ResourcePage): string {
  const currency = String(page.resource['currency']);
  const { transfers: _transfers, ...rest } = page.resource;
  const rows = Object.entries(rest).map(([name, value]) => {
    const words = name.replaceAll('_', ' ');
    const title = `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
    return [title, formatValue(name, value, currency)] as const;
  });
  const { type, scheme, last4, deleted_at } = page.recipient ?? {};
  const name = [type, scheme, `…${last4}`].filter(Boolean).join(' ');
  const known = deleted_at ? `${name}, deleted ${formatTime(deleted_at)}` : name;
  const recipient = page.recipient === null ? 'is not there' : page.recipient && known;
  return [
    fields([...rows, ['Recipient', recipient]]),
    ...listMoney(page, currency),
    ...listLogs(page),
  ].join('\n\n');
}

/** A section of a page, or none without rows of which `none` would say so. */
function section<Row>(
  title: string,
  none: string | undefined,
  rows: readonly Row[] = [],
  columns: Columns<Row>,
): string[] {
  if (rows.length === 0 && none === undefined) return [];
  const cells = rows.map((row) => formatCells(columns, row, row));
  return [`${title}\n${table(Object.keys(columns), cells, none ?? '')}`];
}

function formatValue(name: string, value: unknown, currency: string): string {
  if (value === null || value === undefined) return '-';
  if (name === 'livemode') return value === true ? 'live' : 'sandbox';
  if (MONEY.includes(name)) return formatAmount(String(value), currency);
  if (UNITS.includes(name)) return `${value} smallest units`;
  if (name.endsWith('_at')) return formatTime(String(value));
  if (typeof value !== 'object') return String(value);
  return Object.values(value).join(': ');
}

/** Sections of the refunds, deposits, movements and disputes that the page has. */
function listMoney(page: ResourcePage, currency: string): string[] {
  const { refunds, deposits, movements, disputes, resource } = page;
  const asset = { asset: String(resource['asset']), network: String(resource['network']) };
  return [
    ...section('REFUNDS', refunds && 'None.', refunds, {
      REFUND: 'id',
      CREATED: 'created_at',
      STATUS: 'status',
      AMOUNT: ({ amount }) => formatMoney(amount, currency),
      ATTENTION: 'attention',
    }),
    ...section('DEPOSITS', deposits && 'None was seen.', deposits, {
      TRANSACTION: 'transaction_id',
      SEEN: 'seen_at',
      AMOUNT: (deposit) =>
        formatUnits(deposit.amount, { ...asset, asset: deposit.asset ?? asset.asset }),
      CONFIRMATIONS: (deposit) => `${deposit.confirmations} of ${deposit.required_confirmations}`,
      STATUS: ({ undone, status }) => (undone ? `${status}, reorged` : status),
      [NOTES]: ({ asset: wrong, late, screening, left, status, held, withdrawn }) => {
        const isHeld = left === undefined && status !== 'confirmed' && (held ?? withdrawn);
        const notes = [
          wrong !== undefined && 'wrong asset',
          late && wrong === undefined && 'late',
          screening === 'failed' && 'screening failed',
          isHeld && 'in suspense',
          left && `${left.as.replace('_', ' ')} ${left.transaction_id ?? ''}`.trim(),
        ];
        return notes.filter(Boolean).join(', ') || null;
      },
    }),
    ...section('BANK MOVEMENTS', undefined, movements, MOVEMENTS),
    ...section('DISPUTES', undefined, disputes, {
      DISPUTE: 'id',
      'AT THE BANK': 'name',
      OPENED: 'created_at',
      STATUS: 'status',
      AMOUNT: (dispute) => formatMoney(dispute.amount, dispute.currency),
      FEE: (dispute) => formatMoney(dispute.fee, dispute.currency),
      'OWED THEN': (dispute) => formatMoney(dispute.owed, dispute.currency),
    }),
  ];
}

/** Sections of what has happened, which each page has. */
function listLogs({ events, postings: entries, callbacks, audit }: ResourcePage): string[] {
  const lines = entries.flatMap(({ legs, ...entry }) =>
    legs.map((line, index) => ({ ...entry, ...line, isFirst: index === 0 })),
  );
  return [
    ...section('MOVES', 'It has not moved yet.', events, {
      AT: ({ created }) => formatTime(created),
      EVENT: 'type',
      ID: 'id',
      DELIVERY: ({ delivery }) => delivery.status,
      ATTEMPTS: ({ delivery }) => String(delivery.attempts),
      'NEXT ATTEMPT': ({ delivery }) => formatTime(delivery.next_attempt_at),
    }),
    ...section('LEDGER', 'No money has moved.', lines, {
      AT: ({ isFirst, at }) => (isFirst ? formatTime(at) : ''),
      [ENTRY]: ({ isFirst, kind }) => (isFirst ? kind : ''),
      ACCOUNT: 'account',
      AMOUNT: ({ amount, book }) => formatAmount(amount, book.slice(book.lastIndexOf(':') + 1)),
    }),
    ...section('BANK CALLBACKS', 'The bank has reported nothing.', callbacks, {
      RECEIVED: 'received_at',
      CALLBACK: 'name',
      CONNECTOR: 'connector',
      ID: 'callback_id',
      SAYS: ({ code, reason, amount, currency, value_date }) => {
        const money = currency === null ? amount : formatAmount(amount ?? 0, currency);
        const texts = [
          [code, reason].filter((word) => word !== null).join(': '),
          amount === null ? '' : String(money),
          value_date === null ? '' : `value date ${value_date}`,
        ];
        return texts.filter((text) => text !== '').join(', ') || null;
      },
      OUTCOME: formatOutcome,
    }),
    ...section('AUDIT TRAIL', 'No operator has acted.', audit, {
      WHO: ({ who, approved_by: by }) => (by === undefined ? who : `${who}, approved by ${by}`),
      WHEN: ({ when }) => formatTime(when),
      WHAT: ({ what, bank_confirmed_not_executed: confirmed }) =>
        confirmed ? `${what} (bank_confirmed_not_executed)` : what,
      WHY: 'why',
      BEFORE: 'before',
      AFTER: 'after',
    }),
  ];
}
