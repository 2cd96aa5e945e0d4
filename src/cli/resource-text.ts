import { coinOfBook, formatUnits } from '../domain/crypto';
import { formatMoney } from '../domain/money';
import { fields, table, when } from './output';
import type { ResourcePage } from './resource-page';

const MONEY = ['amount', 'fee', 'refunded', 'settled_amount', 'returned_amount'];
const UNITS = ['amount_due', 'amount_received'];

/** Text of a resource's page for a person. */
export function pageText(page: ResourcePage): string {
  const currency = String(page.resource['currency']);
  const own = Object.entries(page.resource).map(
    ([name, value]) => [titleOf(name), textOf(name, value, currency)] as const,
  );
  const parts = [
    fields([...own, ...recipientOf(page)]),
    ...refundsOf(page, currency),
    ...depositsOf(page),
    section('MOVES', eventTable(page)),
    section('LEDGER', postingTable(page)),
    section('BANK CALLBACKS', callbackTable(page)),
    section('AUDIT TRAIL', auditTable(page)),
  ];
  return parts.join('\n\n');
}

function section(title: string, body: string): string {
  return `${title}\n${body}`;
}

/** Amount of money, or of a coin, for people. */
function amountText(amount: unknown, currency: string): string {
  const coin = coinOfBook(currency);
  return coin === undefined
    ? formatMoney(Number(amount), currency)
    : formatUnits(String(amount), coin);
}

function currencyOfBook(book: string): string {
  return book.slice(book.lastIndexOf(':') + 1);
}

/** Title of a field: `Bank reference` for `bank_reference`. */
function titleOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

function textOf(name: string, value: unknown, currency: string): string {
  if (value === null || value === undefined) return '-';
  if (name === 'livemode') return value === true ? 'live' : 'sandbox';
  if (MONEY.includes(name)) return amountText(value, currency);
  if (UNITS.includes(name)) return `${value} smallest units`;
  if (name.endsWith('_at')) return when(String(value));
  if (typeof value !== 'object') return String(value);
  return Object.values(value).join(': ');
}

function recipientOf({ recipient }: ResourcePage): (readonly [string, string])[] {
  if (recipient === undefined) return [];
  if (recipient === null) return [['Recipient', 'is not there']];
  const { type, scheme, last4, deleted_at } = recipient;
  const named = `${type} ${scheme === null ? '' : `${scheme} `}…${last4}`;
  return [['Recipient', deleted_at ? `${named}, deleted ${when(deleted_at)}` : named]];
}

function refundsOf({ refunds }: ResourcePage, currency: string): string[] {
  if (refunds === undefined) return [];
  const rows = refunds.map(({ id, created_at, status, amount, attention }) => [
    id,
    when(created_at),
    status,
    formatMoney(amount, currency),
    attention ?? '-',
  ]);
  const heading = ['REFUND', 'CREATED', 'STATUS', 'AMOUNT', 'ATTENTION'];
  return [section('REFUNDS', table(heading, rows, 'None.'))];
}

function depositsOf({ deposits, resource }: ResourcePage): string[] {
  if (deposits === undefined) return [];
  const coin = { asset: String(resource['asset']), network: String(resource['network']) };
  const rows = deposits.map((deposit) => [
    deposit.transaction_id,
    when(deposit.seen_at),
    formatUnits(deposit.amount, coin),
    `${deposit.confirmations} of ${deposit.required_confirmations}`,
    deposit.undone ? `${deposit.status}, undone` : deposit.status,
    [deposit.late ? 'late' : '', deposit.screening === 'failed' ? 'screening failed' : '']
      .filter((word) => word !== '')
      .join(', ') || '-',
  ]);
  const heading = ['TRANSACTION', 'SEEN', 'AMOUNT', 'CONFIRMATIONS', 'STATUS', 'MARKS'];
  return [section('DEPOSITS', table(heading, rows, 'None was seen.'))];
}

function eventTable({ events }: ResourcePage): string {
  const rows = events.map(({ id, type, created, delivery }) => [
    when(created),
    type,
    id,
    delivery.status,
    String(delivery.attempts),
    when(delivery.next_attempt_at),
  ]);
  const heading = ['AT', 'EVENT', 'ID', 'DELIVERY', 'ATTEMPTS', 'NEXT ATTEMPT'];
  return table(heading, rows, 'It has not moved yet.');
}

function postingTable({ postings }: ResourcePage): string {
  const rows = postings.flatMap(({ kind, at, book, legs }) =>
    legs.map(({ account, amount }, leg) => [
      ...(leg === 0 ? [when(at), kind] : ['', '']),
      account,
      amountText(amount, currencyOfBook(book)),
    ]),
  );
  return table(['AT', 'POSTING', 'ACCOUNT', 'AMOUNT'], rows, 'No money has moved.');
}

function callbackTable({ callbacks }: ResourcePage): string {
  const rows = callbacks.map((callback) => [
    when(callback.received_at),
    callback.name,
    callback.connector,
    callback.callback_id,
    [callback.code, callback.reason].filter((word) => word !== null).join(': ') || '-',
    outcomeOf(callback),
  ]);
  const heading = ['RECEIVED', 'CALLBACK', 'CONNECTOR', 'ID', 'SAYS', 'OUTCOME'];
  return table(heading, rows, 'The bank has reported nothing.');
}

function outcomeOf({ parked, unapplied, signalled_at }: ResourcePage['callbacks'][number]): string {
  if (parked !== null) return `parked: ${parked}`;
  if (unapplied !== null) return `not applied: ${unapplied}`;
  return signalled_at === null ? 'not handed to the workflow yet' : 'taken in';
}

function auditTable({ audit }: ResourcePage): string {
  const rows = audit.map(({ who, when: at, what, why, before, after }) => [
    who,
    when(at),
    what,
    why,
    before,
    after,
  ]);
  return table(['WHO', 'WHEN', 'WHAT', 'WHY', 'BEFORE', 'AFTER'], rows, 'No operator has acted.');
}
