import type { CallbackResource } from '../../domain/callback';
import { counted } from '../../domain/counted';
import { formatUnits } from '../../domain/crypto';
import { formatMoney } from '../../domain/money';
import type { PostingDocument } from '../../ledger/documents';
import { bookOwner } from '../../ledger/postings';
import type { AuditEntry } from '../../store/attention';
import type { CallbackDocument } from '../../store/callbacks';
import type { DeliveryDocument } from '../../store/deliveries';
import type { EventDocument } from '../../store/events';
import type { ClaimDocument } from '../../store/idempotency';
import { amountText } from '../amounts';

/** Kinds of entry, in the order in which those of one moment stand. */
const KINDS = ['call', 'callback', 'chain', 'act', 'move', 'posting', 'event', 'attempt'] as const;
export type EntryKind = (typeof KINDS)[number];

/** Line of a timeline. */
export interface Entry {
  /** ISO 8601. */
  at: string;
  kind: EntryKind;
  title: string;
  tone: 'good' | 'bad' | 'note' | 'plain';
  details: readonly string[];
  /** Event whose page tells more. */
  event_id?: string;
}

/** Everything that is known of a resource. */
export interface Facts {
  kind: CallbackResource;
  resource: {
    created_at: string;
    request_id: string;
    /** Coin, where it is one. */
    asset?: string;
    network?: string;
    audit: readonly AuditEntry[];
    applied_callbacks?: readonly string[];
  };
  /** Kept for a day. */
  claim: Pick<ClaimDocument, 'key'> | null;
  callbacks: readonly CallbackDocument[];
  events: readonly EventDocument[];
  attempts: readonly DeliveryDocument[];
  postings: readonly PostingDocument[];
}

/** Puts all of them in the order in which they happened. */
export function assembleTimeline(facts: Facts): Entry[] {
  const { resource, callbacks, events, attempts, postings } = facts;
  const entries = [
    callOf(facts),
    ...callbacks.map((callback) => callbackOf(callback, resource)),
    ...resource.audit.map(actOf),
    ...events.flatMap((event) => [moveOf(event), eventOf(event)]),
    ...postings.map(postingOf),
    ...attempts.map((row) => attemptOf(row, events)),
  ];
  return entries.sort(byTimeAndKind);
}

function byTimeAndKind(a: Entry, b: Entry): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1;
  return KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind);
}

function callOf({ kind, resource, claim }: Facts): Entry {
  const { created_at: at, request_id } = resource;
  const key = claim === null ? [] : [`Idempotency-Key ${claim.key}`];
  const details = [`Request ${request_id}`, ...key];
  return {
    at,
    kind: 'call',
    title: `API call created the ${kind.replaceAll('_', ' ')}`,
    tone: 'plain',
    details,
  };
}

function callbackOf(callback: CallbackDocument, resource: Facts['resource']): Entry {
  const { asset, network, applied_callbacks: applied = [] } = resource;
  const isChain = asset !== undefined;
  const { name, body, received_at: at, unapplied, parked, signalled_at } = callback;
  const outcome =
    parked !== null
      ? `Waits for an operator: ${parked}`
      : unapplied !== null
        ? `Not applied: ${unapplied}`
        : applied.includes(body.callback_id)
          ? 'Applied'
          : signalled_at === null
            ? 'Not handed on yet'
            : 'Taken in';
  const { bank_reference, code, reason } = body;
  const came =
    !('currency' in body) || body.amount === undefined || body.currency === undefined
      ? undefined
      : `Amount ${formatMoney(body.amount, body.currency)}`;
  const said = [
    came,
    bank_reference && `Bank reference ${bank_reference}`,
    code && `Code ${code}`,
    reason,
    ...coinsOf(body, { asset, network }),
  ];
  return {
    at,
    kind: isChain ? 'chain' : 'callback',
    title: `${isChain ? 'Chain' : 'Bank'} reported ${name.replaceAll('_', ' ')}`,
    tone: parked === null && unapplied === null ? 'plain' : 'note',
    details: [outcome, ...said.flatMap((text) => text || [])],
  };
}

/** Facts that a chain tells of a transaction. */
function coinsOf(
  body: CallbackDocument['body'],
  { asset, network }: Pick<Facts['resource'], 'asset' | 'network'>,
): (string | undefined)[] {
  if (!('transaction_id' in body) || asset === undefined || network === undefined) return [];
  const { amount, transaction_id, confirmations } = body;
  return [
    transaction_id && `Transaction ${transaction_id}`,
    amount && `Amount ${formatUnits(amount, { asset, network })}`,
    confirmations === undefined ? undefined : counted(confirmations, 'confirmation'),
  ];
}

function actOf({ who, when: at, what, why, before, after }: AuditEntry): Entry {
  const title = `Operator ${who}: ${what.replaceAll('_', ' ')}`;
  return { at, kind: 'act', title, tone: 'note', details: [why, `${before} → ${after}`] };
}

const GOOD = /\.(settled|completed|authorized|received)$/;
const BAD = /\.(failed|expired|returned|cancelled)$/;

function moveOf({ type, created: at }: EventDocument): Entry {
  const state = (type.split('.').at(-1) ?? type).replaceAll('_', ' ');
  const tone = GOOD.test(type) ? 'good' : BAD.test(type) ? 'bad' : 'plain';
  return { at, kind: 'move', title: `Moved to ${state}`, tone, details: [] };
}

const DELIVERY = {
  pending: 'Not delivered yet',
  delivered: 'Delivered',
  exhausted: 'Not delivered: all attempts failed',
  no_endpoint: 'Not sent: no endpoint was registered',
  not_subscribed: 'Not sent: the endpoint does not want this type',
} as const;

/** State of an event's delivery in words. */
export function deliveryText({ status }: Pick<EventDocument['delivery'], 'status'>): string {
  return DELIVERY[status];
}

function eventOf({ _id, type, created: at, delivery }: EventDocument): Entry {
  const { next_attempt_at } = delivery;
  const next = next_attempt_at === null ? [] : [`Next attempt ${next_attempt_at}`];
  return {
    at,
    kind: 'event',
    title: `Event ${type}`,
    tone: delivery.status === 'exhausted' ? 'bad' : 'plain',
    details: [_id, deliveryText(delivery), ...next],
    event_id: _id,
  };
}

function attemptOf(row: DeliveryDocument, events: Facts['events']): Entry {
  const { event_id, run, attempt, at, url, status_code, error, duration_ms, outcome } = row;
  const answer = status_code === null ? 'no answer' : `HTTP ${status_code}`;
  const sent = run === 0 ? [] : [`Sent again, ${run}`];
  const type = events.find(({ _id }) => _id === event_id)?.type ?? event_id;
  return {
    at,
    kind: 'attempt',
    title: `Webhook attempt ${attempt}: ${answer}`,
    tone: outcome === 'delivered' ? 'good' : 'bad',
    details: [
      ...(error === null ? [] : [error]),
      `${type} to ${url} in ${duration_ms} ms`,
      ...sent,
    ],
    event_id,
  };
}

/** Accounts of a book that are the merchant's own, in words. */
function accountText(account: string): string | undefined {
  const [, name, part] = /^balances\.(.+)\.(available|reserved)$/.exec(account) ?? [];
  if (name !== undefined) return `${name}, ${part}`;
  if (account === 'receivable.merchant') return 'owed to us';
  return account === 'transit.refunds' ? 'refunds on their way' : undefined;
}

function postingOf({ kind, at, book, legs, note }: PostingDocument): Entry {
  const { currency } = bookOwner(book);
  const moved = legs.flatMap(({ account, amount }) => {
    const name = accountText(account);
    const money = amountText(String(amount), currency);
    return name === undefined ? [] : [`${name}: ${money.startsWith('-') ? '' : '+'}${money}`];
  });
  const why = note?.reason == null ? [] : [note.reason];
  const title = `Ledger: ${kind.replaceAll('_', ' ')}`;
  return { at, kind: 'posting', title, tone: 'plain', details: [...moved, ...why] };
}
