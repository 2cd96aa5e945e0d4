import { z } from 'zod';
import { formatAmount } from '../../domain/amount';
import { isApprovalRequired, needsKey } from '../../domain/approval';
import { AMOUNT_MAX, type CallbackResource } from '../../domain/callback/callback';
import { formatUnits } from '../../domain/crypto/assets';
import { type Deposit, isInSuspense } from '../../domain/crypto/deposit';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { formatMoney } from '../../domain/money';
import type { Dispute } from '../../domain/payment/dispute';
import type { Receipt } from '../../domain/payment/receipt';
import { KINDS, LIFECYCLES } from '../../lifecycles';
import { actAsOperator } from '../../service/approvals/act';
import { auditAs, getSystemUser } from '../../service/operators/deps';
import { findResource, type ResourcePage, readPage } from '../../service/operators/resource';
import { assertNamed, identifyOperator, printApprovalRequired } from '../acting-operator';
import { type CliCommand, defineCommand, defineGroup } from '../command';
import {
  Amount,
  ApprovedBy,
  Hours,
  OperationId,
  Operator,
  Reason,
  textOption,
  wholeNumber,
} from '../options';
import { fields, formatTime, printFields, table } from '../output';
import { formatOutcome } from './callback';

const OUTGOING_OPTIONS = {
  bank_confirmed_not_executed: z
    .boolean()
    .optional()
    .describe(
      'of mark_failed: the bank said that it did not execute it and will not; it is not asked',
    ),
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
  deposit: z.string().optional(),
  transaction_id: z.string().optional(),
  address: z.string().optional(),
});

const DEPOSIT_OPTIONS = {
  deposit: textOption(
    'transaction of one deposit; default: all that apply',
    'transaction',
  ).optional(),
  transaction_id: textOption(
    'of confirm: the deposit’s transaction; of mark_sent_back: the one that sent it back',
    'transaction',
  ).optional(),
  address: textOption('of mark_sent_back: where it was sent', 'address').optional(),
};

export const resourceCommands: readonly CliCommand[] = KINDS.map((kind) => {
  const group = kind.replace('_', '-');
  const noun = kind.replace('_', ' ');
  const ResourceId = z.string().meta({ argument: true, placeholder: `${kind}_id` });

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
    options: getActOptions(kind, ResourceId),
    notes: `
The workflow decides, and refuses in words what the state does not allow. One that was terminated is
restarted for it. On live it needs OPERATOR_KEY, except for snooze and acknowledge, and a credit above
APPROVAL_LIMIT the approval of a second operator.`,
    example: `${group} act 0d1f… ${LIFECYCLES[kind].acts[0]} --operator mia --reason "Ticket 42"`,
    run: async (context, { id, act: what, hours, bank_confirmed_not_executed, ...options }) => {
      const isConfirmed = bank_confirmed_not_executed === true;
      if ((what === 'snooze') !== (hours !== undefined)) {
        throw new ServiceError('invalid_usage', 'A snooze, and nothing else, takes --hours.');
      }
      if (isConfirmed && what !== 'mark_failed') {
        const message = 'Only mark_failed takes --bank-confirmed-not-executed.';
        throw new ServiceError('invalid_usage', message);
      }
      assertNamed(context, options.operator);
      const read = await context.readDeps();
      const { livemode } = await findResource(read.stores, kind, id);
      const isVerified = livemode && needsKey(what);
      const { verified, operator = getSystemUser().system_user } = await identifyOperator(context, {
        livemode: isVerified,
        operator: options.operator,
      });
      const deps = await context.withTemporal(await context.actingDeps());
      const audit = verified && { audit: auditAs(read, verified.name) };
      const confirmation = { bank_confirmed_not_executed: isConfirmed || undefined };
      const by = getSystemUser();
      const { operation_id, dispute_id, fee, ...target } = ActFacts.parse(options);
      const { deposit, transaction_id, address } = target;
      const details = { operation_id, dispute_id, fee, deposit, transaction_id, address };
      const facts = { ...details, ...confirmation };
      const { amount, reason, approved_by } = options;
      const names = { operator, reason, approved_by: livemode ? undefined : approved_by };
      const request = omitUndefined({ what, hours, amount, ...names, ...facts, by });
      const answer = await actAsOperator({ ...deps, ...audit }, kind, id, request, verified);
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
    commands: [show, act],
  });
});

function getActOptions(kind: CallbackResource, ResourceId: z.ZodString) {
  return z.object({
    id: ResourceId,
    act: z.enum(LIFECYCLES[kind].acts).describe('what to do').meta({ argument: true }),
    operator: Operator.optional(),
    reason: Reason,
    hours: Hours.optional().describe('of a snooze: how long, up to 720'),
    amount: Amount.optional().describe('what really moved, where that differs from the request'),
    approved_by: ApprovedBy,
    ...(LIFECYCLES[kind].isOutgoing ? OUTGOING_OPTIONS : {}),
    ...(kind === 'payment' ? DISPUTE_OPTIONS : {}),
    ...(kind === 'crypto_payment' ? DEPOSIT_OPTIONS : {}),
  });
}

const MONEY = ['amount', 'fee', 'refunded', 'refunded_over', 'settled_amount', 'returned_amount'];
const UNITS = ['amount_due', 'amount_received'];

export function pageText(page: ResourcePage): string {
  const currency = String(page.resource['currency']);
  // The entries of the ledger say the same.
  const { receipts, disputes, sent_late, sent_again, ...rest } = page.resource;
  const rows = Object.entries(rest).map(
    ([name, value]) => [formatTitle(name), formatValue(name, value, currency)] as const,
  );
  const parts = [
    fields([...rows, ...formatRecipient(page)]),
    ...formatRefunds(page, currency),
    ...formatDeposits(page),
    ...formatReceipts(receipts),
    ...formatDisputes(disputes),
    section('MOVES', eventTable(page)),
    section('LEDGER', entryTable(page)),
    section('BANK CALLBACKS', callbackTable(page)),
    section('AUDIT TRAIL', auditTable(page)),
  ];
  return parts.join('\n\n');
}

function section(title: string, body: string): string {
  return `${title}\n${body}`;
}

function readBookCurrency(book: string): string {
  return book.slice(book.lastIndexOf(':') + 1);
}

function formatTitle(name: string): string {
  const words = name.replaceAll('_', ' ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
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

function formatRecipient({ recipient }: ResourcePage): (readonly [string, string])[] {
  if (recipient === undefined) return [];
  if (recipient === null) return [['Recipient', 'is not there']];
  const { type, scheme, last4, deleted_at } = recipient;
  const text = `${type} ${scheme === null ? '' : `${scheme} `}…${last4}`;
  return [['Recipient', deleted_at ? `${text}, deleted ${formatTime(deleted_at)}` : text]];
}

function formatRefunds({ refunds }: ResourcePage, currency: string): string[] {
  if (refunds === undefined) return [];
  const rows = refunds.map(({ id, created_at, status, amount, attention }) => [
    id,
    formatTime(created_at),
    status,
    formatMoney(amount, currency),
    attention ?? '-',
  ]);
  const heading = ['REFUND', 'CREATED', 'STATUS', 'AMOUNT', 'ATTENTION'];
  return [section('REFUNDS', table(heading, rows, 'None.'))];
}

function formatDeposits({ deposits, resource }: ResourcePage): string[] {
  if (deposits === undefined) return [];
  const asset = { asset: String(resource['asset']), network: String(resource['network']) };
  const rows = deposits.map((deposit) => [
    deposit.transaction_id,
    formatTime(deposit.seen_at),
    formatUnits(deposit.amount, { ...asset, asset: deposit.asset ?? asset.asset }),
    `${deposit.confirmations} of ${deposit.required_confirmations}`,
    deposit.undone ? `${deposit.status}, undone` : deposit.status,
    describeDeposit(deposit).join(', ') || '-',
  ]);
  const heading = ['TRANSACTION', 'SEEN', 'AMOUNT', 'CONFIRMATIONS', 'STATUS', 'MARKS'];
  return [section('DEPOSITS', table(heading, rows, 'None was seen.'))];
}

function describeDeposit(deposit: Deposit): string[] {
  const { asset, late, screening, left } = deposit;
  const back = left?.transaction_id ?? '';
  return [
    asset === undefined ? '' : 'wrong asset',
    late && asset === undefined ? 'late' : '',
    screening === 'failed' ? 'screening failed' : '',
    isInSuspense(deposit) ? 'in suspense' : '',
    left === undefined ? '' : `${left.as.replace('_', ' ')} ${back}`.trim(),
  ].filter((word) => word !== '');
}

function formatReceipts(receipts: unknown): string[] {
  if (!isRows<Receipt>(receipts)) return [];
  const rows = receipts.map(({ id, received_at, amount, currency, reason, state }) => [
    id,
    formatTime(received_at),
    formatMoney(amount, currency),
    reason,
    state,
  ]);
  const heading = ['RECEIPT', 'RECEIVED', 'AMOUNT', 'REASON', 'STATE'];
  return [section('MONEY IN QUESTION', table(heading, rows, 'None.'))];
}

function formatDisputes(disputes: unknown): string[] {
  if (!isRows<Dispute>(disputes)) return [];
  const rows = disputes.map(({ id, opened_at, state, won = 0, currency, ...dispute }) => [
    id,
    formatTime(opened_at),
    state,
    ...[dispute.amount, dispute.fee, dispute.owed, won].map((money) =>
      formatMoney(money, currency),
    ),
  ]);
  const heading = ['DISPUTE', 'OPENED', 'STATE', 'AMOUNT', 'FEE', 'OWED THEN', 'WON'];
  return [section('DISPUTES', table(heading, rows, 'None.'))];
}

function isRows<Row>(value: unknown): value is Row[] {
  return Array.isArray(value) && value.length > 0;
}

function eventTable({ events }: ResourcePage): string {
  const rows = events.map(({ id, type, created, delivery }) => [
    formatTime(created),
    type,
    id,
    delivery.status,
    String(delivery.attempts),
    formatTime(delivery.next_attempt_at),
  ]);
  const heading = ['AT', 'EVENT', 'ID', 'DELIVERY', 'ATTEMPTS', 'NEXT ATTEMPT'];
  return table(heading, rows, 'It has not moved yet.');
}

function entryTable({ postings: entries }: ResourcePage): string {
  const rows = entries.flatMap(({ kind, at, book, legs: lines }) =>
    lines.map(({ account, amount }, index) => [
      ...(index === 0 ? [formatTime(at), kind] : ['', '']),
      account,
      formatAmount(amount, readBookCurrency(book)),
    ]),
  );
  return table(['AT', 'POSTING', 'ACCOUNT', 'AMOUNT'], rows, 'No money has moved.');
}

function callbackTable({ callbacks }: ResourcePage): string {
  const rows = callbacks.map((callback) => [
    formatTime(callback.received_at),
    callback.name,
    callback.connector,
    callback.callback_id,
    [callback.code, callback.reason].filter((word) => word !== null).join(': ') || '-',
    formatOutcome(callback),
  ]);
  const heading = ['RECEIVED', 'CALLBACK', 'CONNECTOR', 'ID', 'SAYS', 'OUTCOME'];
  return table(heading, rows, 'The bank has reported nothing.');
}

function auditTable({ audit }: ResourcePage): string {
  const rows = audit.map(({ who, when: at, what, why, before, after, ...act }) => [
    act.approved_by === undefined ? who : `${who}, approved by ${act.approved_by}`,
    formatTime(at),
    act.bank_confirmed_not_executed ? `${what} (bank_confirmed_not_executed)` : what,
    why,
    before,
    after,
  ]);
  return table(['WHO', 'WHEN', 'WHAT', 'WHY', 'BEFORE', 'AFTER'], rows, 'No operator has acted.');
}
