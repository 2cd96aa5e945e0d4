import { formatAmount } from '../../domain/amount';
import { formatUnits } from '../../domain/crypto/assets';
import { formatMoney } from '../../domain/money';
import type { ResourcePage } from '../../service/operators/resource';
import { fields, formatTime, table } from '../output';
import { formatOutcome } from './callback';
import { MOVEMENT_COLUMNS, movementCells } from './movement';

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
  const { transfers: _transfers, ...rest } = page.resource;
  const rows = Object.entries(rest).map(([name, value]) => {
    const words = name.replaceAll('_', ' ');
    const title = `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
    return [title, formatValue(name, value, currency)] as const;
  });
  return [
    fields([...rows, ...formatRecipient(page)]),
    ...listMoney(page, currency),
    ...listDisputes(page),
    ...listLogs(page),
  ].join('\n\n');
}

function section(
  title: string,
  heading: readonly string[],
  rows: readonly string[][],
  none = '',
): string {
  return `${title}\n${table(heading, rows, none)}`;
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

/** Sections of the refunds, deposits and movements that the page has. */
function listMoney({ refunds, deposits, movements, resource }: ResourcePage, currency: string) {
  const asset = { asset: String(resource['asset']), network: String(resource['network']) };
  const refundRows = refunds?.map(({ id, created_at, status, amount, attention }) => [
    id,
    formatTime(created_at),
    status,
    formatMoney(amount, currency),
    attention ?? '-',
  ]);
  const depositRows = deposits?.map((deposit) => [
    deposit.transaction_id,
    formatTime(deposit.seen_at),
    formatUnits(deposit.amount, { ...asset, asset: deposit.asset ?? asset.asset }),
    `${deposit.confirmations} of ${deposit.required_confirmations}`,
    deposit.undone ? `${deposit.status}, reorged` : deposit.status,
    describeDeposit(deposit).join(', ') || '-',
  ]);
  const ofRefunds = ['REFUND', 'CREATED', 'STATUS', 'AMOUNT', 'ATTENTION'];
  const ofDeposits = ['TRANSACTION', 'SEEN', 'AMOUNT', 'CONFIRMATIONS', 'STATUS', 'MARKS'];
  return [
    ...(refundRows ? [section('REFUNDS', ofRefunds, refundRows, 'None.')] : []),
    ...(depositRows ? [section('DEPOSITS', ofDeposits, depositRows, 'None was seen.')] : []),
    ...(movements.length > 0
      ? [section('BANK MOVEMENTS', MOVEMENT_COLUMNS, movements.map(movementCells))]
      : []),
  ];
}

function describeDeposit(deposit: NonNullable<ResourcePage['deposits']>[number]): string[] {
  const { asset, late, screening, left, status, held, withdrawn } = deposit;
  const isHeld = left === undefined && status !== 'confirmed' && Boolean(held ?? withdrawn);
  const back = left?.transaction_id ?? '';
  return [
    asset === undefined ? '' : 'wrong asset',
    late && asset === undefined ? 'late' : '',
    screening === 'failed' ? 'screening failed' : '',
    isHeld ? 'in suspense' : '',
    left === undefined ? '' : `${left.as.replace('_', ' ')} ${back}`.trim(),
  ].filter((word) => word !== '');
}

function listDisputes({ disputes = [] }: ResourcePage): string[] {
  if (disputes.length === 0) return [];
  const rows = disputes.map(({ id, name, created_at, status, currency, ...dispute }) => [
    id,
    name,
    formatTime(created_at),
    status,
    formatMoney(dispute.amount, currency),
    formatMoney(dispute.fee, currency),
    formatMoney(dispute.owed, currency),
  ]);
  const heading = ['DISPUTE', 'AT THE BANK', 'OPENED', 'STATUS', 'AMOUNT', 'FEE', 'OWED THEN'];
  return [section('DISPUTES', heading, rows)];
}

/** Sections of what has happened, which each page has. */
function listLogs({ events, postings: entries, callbacks, audit }: ResourcePage): string[] {
  const eventRows = events.map(({ id, type, created, delivery }) => [
    formatTime(created),
    type,
    id,
    delivery.status,
    String(delivery.attempts),
    formatTime(delivery.next_attempt_at),
  ]);
  const entryRows = entries.flatMap(({ kind, at, book, legs: lines }) =>
    lines.map(({ account, amount }, index) => [
      ...(index === 0 ? [formatTime(at), kind] : ['', '']),
      account,
      formatAmount(amount, book.slice(book.lastIndexOf(':') + 1)),
    ]),
  );
  const callbackRows = callbacks.map((callback) => [
    formatTime(callback.received_at),
    callback.name,
    callback.connector,
    callback.callback_id,
    formatReport(callback),
    formatOutcome(callback),
  ]);
  const auditRows = audit.map(({ who, when: at, what, why, before, after, ...act }) => [
    act.approved_by === undefined ? who : `${who}, approved by ${act.approved_by}`,
    formatTime(at),
    act.bank_confirmed_not_executed ? `${what} (bank_confirmed_not_executed)` : what,
    why,
    before,
    after,
  ]);
  const ofEvents = ['AT', 'EVENT', 'ID', 'DELIVERY', 'ATTEMPTS', 'NEXT ATTEMPT'];
  const ofCallbacks = ['RECEIVED', 'CALLBACK', 'CONNECTOR', 'ID', 'SAYS', 'OUTCOME'];
  const ofAudit = ['WHO', 'WHEN', 'WHAT', 'WHY', 'BEFORE', 'AFTER'];
  return [
    section('MOVES', ofEvents, eventRows, 'It has not moved yet.'),
    section('LEDGER', ['AT', 'POSTING', 'ACCOUNT', 'AMOUNT'], entryRows, 'No money has moved.'),
    section('BANK CALLBACKS', ofCallbacks, callbackRows, 'The bank has reported nothing.'),
    section('AUDIT TRAIL', ofAudit, auditRows, 'No operator has acted.'),
  ];
}

function formatReport(callback: ResourcePage['callbacks'][number]): string {
  const { code, reason, amount, currency, value_date } = callback;
  const money = currency === null ? amount : formatAmount(amount ?? 0, currency);
  return (
    [
      [code, reason].filter((word) => word !== null).join(': '),
      amount === null ? '' : String(money),
      value_date === null ? '' : `value date ${value_date}`,
    ]
      .filter((word) => word !== '')
      .join(', ') || '-'
  );
}
