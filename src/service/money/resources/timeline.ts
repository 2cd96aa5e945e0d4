import type { CallbackResource } from '../../../domain/banks/callback';
import { assetRules, formatUnits } from '../../../domain/crypto/assets';
import { formatAmount, formatMoney } from '../../../domain/money/money';
import { formatCount } from '../../../domain/printable';
import { bookOwner, type EntryDocument } from '../../../ledger/entries';
import type { CallbackDocument } from '../../../store/callbacks';
import { type DeliveryAttempt, listAttempts } from '../../../store/deliveries';
import type { EventDocument } from '../../../store/events';
import type { IdempotencyRecord } from '../../../store/idempotency';
import type { AuditEntry } from '../../../store/resource';
import { getOrigin } from '../../../webhooks/url';
import { type ListedEvent, presentOldest, type ShownDelivery } from '../../events/list';

/** Order within the same moment. */
const KINDS = [
  'call',
  'callback',
  'chain',
  'act',
  'transition',
  'entry',
  'event',
  'attempt',
] as const;
export type TimelineEntryKind = (typeof KINDS)[number];

export interface TimelineEntry {
  /** ISO 8601. */
  at: string;
  kind: TimelineEntryKind;
  title: string;
  tone: 'good' | 'bad' | 'note' | 'plain';
  details: readonly string[];
  event_id?: string;
}

export interface Facts {
  kind: CallbackResource;
  resource: {
    created_at: string;
    request_id: string;
    asset?: string;
    network?: string;
    audit: readonly AuditEntry[];
    applied_callbacks?: readonly string[];
    /** Status of a dispute, which its events do not name. */
    status?: string;
    evidence_submitted_at?: string | null;
    closed_at?: string | null;
  };
  /** Stored for a day. */
  idempotencyRecord: Pick<IdempotencyRecord, 'key'> | null;
  callbacks: readonly CallbackDocument[];
  /** With their logs. */
  events: readonly ListedEvent[];
  journalEntries: readonly EntryDocument[];
}

export function assembleTimeline(facts: Facts): TimelineEntry[] {
  const { kind, resource, idempotencyRecord, callbacks, events, journalEntries } = facts;
  const isDispute = kind === 'dispute';
  const key = idempotencyRecord?.key;
  const call: TimelineEntry = {
    at: resource.created_at,
    kind: 'call',
    tone: 'plain',
    title: `API call created the ${kind.replaceAll('_', ' ')}`,
    details: [`Request ${resource.request_id}`, ...(key ? [`Idempotency-Key ${key}`] : [])],
  };
  const { status = '', evidence_submitted_at = null, closed_at = null } = resource;
  // Its events do not name these; a bank opens it by a callback.
  const ofDispute = [
    { at: evidence_submitted_at, tone: 'plain', title: 'The bank has the evidence' },
    { at: closed_at, tone: status === 'won' ? 'good' : 'bad', title: `Moved to ${status}` },
  ] as const;
  const entries = [
    ...(isDispute ? [] : [call]),
    ...ofDispute.flatMap(({ at, ...entry }): TimelineEntry[] =>
      isDispute && at !== null ? [{ at, kind: 'transition', ...entry, details: [] }] : [],
    ),
    ...callbacks.map((callback) => describeCallback(callback, resource)),
    ...resource.audit.map(({ when: at, what, before, after }): TimelineEntry => {
      // Merchants read it: no name and reason of an operator.
      const title = `Our operators: ${what.replaceAll('_', ' ')}`;
      return { at, kind: 'act', title, tone: 'note', details: [`${before} → ${after}`] };
    }),
    ...events.flatMap((listed): TimelineEntry[] => {
      const { type, created: at } = listed.event;
      const title = `Moved to ${(type.split('.').at(-1) ?? type).replaceAll('_', ' ')}`;
      const tone = GOOD.test(type) ? 'good' : BAD.test(type) ? 'bad' : 'plain';
      return [
        ...(isDispute ? [] : [{ at, kind: 'transition', title, tone, details: [] } as const]),
        describeEvent(listed),
        ...listAttempts(listed.deliveries)
          .reverse()
          .map((row) => describeAttempt(row, listed.event)),
      ];
    }),
    ...journalEntries.map(describeJournalEntry),
  ];
  return entries.sort((a, b) => {
    if (a.at !== b.at) return a.at < b.at ? -1 : 1;
    return KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind);
  });
}

function describeCallback(callback: CallbackDocument, resource: Facts['resource']): TimelineEntry {
  const { asset, network, applied_callbacks: appliedIds = [] } = resource;
  const isChain = asset !== undefined;
  const { name, body, received_at: at, unapplied, parked, signalled_at } = callback;
  const outcome =
    parked !== null
      ? `Waits for an operator: ${parked}`
      : unapplied !== null
        ? `Not applied: ${unapplied}`
        : appliedIds.includes(body.callback_id)
          ? 'Applied'
          : signalled_at === null
            ? 'Not handed on yet'
            : 'Taken in';
  const { bank_reference, code, reason } = body;
  const bankAmount =
    !('currency' in body) || body.amount === undefined || body.currency === undefined
      ? undefined
      : `Amount ${formatMoney(body.amount, body.currency)}`;
  // The chain may report an asset that the service does not know by name.
  const reported = ('asset' in body && body.asset) || (name === 'wrong_asset' ? '' : asset);
  const pair = assetRules(reported ?? '', network ?? '');
  const reportedFacts = [
    bankAmount,
    bank_reference && `Bank reference ${bank_reference}`,
    code && `Code ${code}`,
    reason,
    ...(!('transaction_id' in body) || !isChain
      ? []
      : [
          body.transaction_id && `Transaction ${body.transaction_id}`,
          pair && body.amount && `Amount ${formatUnits(body.amount, pair)}`,
          body.confirmations !== undefined && formatCount(body.confirmations, 'confirmation'),
        ]),
  ];
  return {
    at,
    kind: isChain ? 'chain' : 'callback',
    title: `${isChain ? 'Chain' : 'Bank'} reported ${name.replaceAll('_', ' ')}`,
    tone: parked === null && unapplied === null ? 'plain' : 'note',
    details: [outcome, ...reportedFacts.flatMap((text) => text || [])],
  };
}

const GOOD = /\.(settled|completed|authorized|received)$/;
const BAD = /\.(failed|expired|returned|cancelled)$/;

const DELIVERY = {
  pending: 'Not delivered yet',
  delivered: 'Delivered',
  exhausted: 'Not delivered: all attempts failed',
  no_endpoint: 'Not sent: no endpoint was registered',
  not_subscribed: 'Not sent: the endpoint does not want this type',
  disabled: 'Not sent: the endpoint is disabled',
} as const;

export function deliveryText({ status }: Pick<ShownDelivery, 'status'>): string {
  return DELIVERY[status];
}

function describeEvent({ event, deliveries }: ListedEvent): TimelineEntry {
  const { _id, type, created: at } = event;
  const states =
    deliveries.length === 0
      ? [deliveryText(presentOldest([]))]
      : deliveries.flatMap((row) => {
          const to = deliveries.length > 1 ? ` (${row.endpoint_id})` : '';
          const next = row.next_attempt_at === null ? [] : [`Next attempt ${row.next_attempt_at}`];
          return [`${deliveryText(row)}${to}`, ...next];
        });
  const isFailed = deliveries.some(({ status }) => status === 'exhausted');
  return {
    at,
    kind: 'event',
    title: `Event ${type}`,
    tone: isFailed ? 'bad' : 'plain',
    details: [_id, ...states],
    event_id: _id,
  };
}

function describeAttempt(row: DeliveryAttempt, { type }: EventDocument): TimelineEntry {
  const { event_id, run, attempt, at, url, status_code, error, duration_ms, outcome } = row;
  const answer = status_code === null ? 'no answer' : `HTTP ${status_code}`;
  const rerunDetails = run === 0 ? [] : [`Sent again, ${run}`];
  return {
    at,
    kind: 'attempt',
    title: `Webhook attempt ${attempt}: ${answer}`,
    tone: outcome === 'delivered' ? 'good' : 'bad',
    details: [
      ...(error === null ? [] : [error]),
      `${type} to ${getOrigin(url)} in ${duration_ms} ms`,
      ...rerunDetails,
    ],
    event_id,
  };
}

function describeAccount(account: string): string | undefined {
  const [, name, part] = /^balances\.(.+)\.(available|reserved)$/.exec(account) ?? [];
  if (name !== undefined) return `${name}, ${part}`;
  const [, balance, day] = /^due\.(.+)\.([^.]+)$/.exec(account) ?? [];
  if (balance !== undefined) return `${balance}, available on ${day}`;
  if (account === 'receivable.merchant') return 'owed to us';
  return account === 'transit.refunds' ? 'refunds on their way' : undefined;
}

/** Merchants read it: no note of an operator. */
function describeJournalEntry({ kind, at, book, lines }: EntryDocument): TimelineEntry {
  const { currency } = bookOwner(book);
  const movements = lines.flatMap(({ account, amount }) => {
    const name = describeAccount(account);
    const money = formatAmount(String(amount), currency);
    return name === undefined ? [] : [`${name}: ${money.startsWith('-') ? '' : '+'}${money}`];
  });
  const title = `Ledger: ${kind.replaceAll('_', ' ')}`;
  return { at, kind: 'entry', title, tone: 'plain', details: movements };
}
