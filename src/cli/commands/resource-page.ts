import { formatAmount } from '../../domain/amount';
import { formatUnits } from '../../domain/crypto/assets';
import { type Deposit, isInSuspense } from '../../domain/crypto/deposit';
import { formatMoney } from '../../domain/money';
import type { Dispute } from '../../domain/payment/dispute';
import type { ResourcePage } from '../../service/operators/resource';
import { fields, formatTime, table } from '../output';
import { formatOutcome } from './callback';
import { MOVEMENT_COLUMNS, movementCells } from './movement-output';

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

export function pageText(page: ResourcePage): string {
  const currency = String(page.resource['currency']);
  const { disputes, ...rest } = page.resource;
  const rows = Object.entries(rest).map(
    ([name, value]) => [formatTitle(name), formatValue(name, value, currency)] as const,
  );
  const parts = [
    fields([...rows, ...formatRecipient(page)]),
    ...formatRefunds(page, currency),
    ...formatDeposits(page),
    ...formatMovements(page),
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
    deposit.reorged ? `${deposit.status}, reorged` : deposit.status,
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

function formatMovements({ movements }: ResourcePage): string[] {
  if (movements.length === 0) return [];
  return [section('BANK MOVEMENTS', table(MOVEMENT_COLUMNS, movements.map(movementCells), ''))];
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
