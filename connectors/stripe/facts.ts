import { z } from 'zod';
import type { Report } from '../kit';
import { buildFailure, callStripe, type StripeTools } from './api';
import { CLOSED_DISPUTES, FAILURES, OPEN_DISPUTES, REFUND_FAILURES } from './codes';
import { findMethod } from './methods';
import {
  type BalanceTransaction,
  Charge,
  Dispute,
  type Hint,
  PaymentIntent,
  PLACES,
  Refund,
  Session,
} from './objects';

/** Facts about our resources, as an object of Stripe has them. */
export interface Facts {
  reports: Report[];
  /** Whether money has moved that Stripe has not booked yet: read it again. */
  isUnbooked?: boolean;
}

export const NONE: Facts = { reports: [] };

const OTHER = { code: 'failed', reason: 'It failed at Stripe.' };

function explain(codes: Readonly<Record<string, string>>, code: string | null | undefined) {
  const reason = codes[code ?? ''];
  return code && reason !== undefined ? { code, reason } : OTHER;
}

const toTime = (seconds: number): string => new Date(seconds * 1_000).toISOString();

/** Money as Stripe has booked it: its currency is never converted here. */
function describeMoney({ id, amount, currency, created }: BalanceTransaction) {
  const occurred_at = toTime(created);
  return {
    ...{ callback_id: id, bank_reference: id, occurred_at, value_date: occurred_at.slice(0, 10) },
    ...{ amount: Math.abs(amount), currency: currency.toUpperCase() },
  };
}

function readId(metadata: Charge['metadata'], name: 'payment_id' | 'refund_id') {
  return z.uuid().safeParse(metadata?.[name]).data;
}

/** Whether an object is one of ours, also where another system uses the account. */
export function isOurs({ metadata }: Pick<Charge, 'metadata'>): boolean {
  return (readId(metadata, 'payment_id') ?? readId(metadata, 'refund_id')) !== undefined;
}

type PaymentReport = Extract<Report, { resource: 'payment' }>;

function build(
  resource_id: string,
  name: PaymentReport['name'],
  callback: PaymentReport['callback'],
): PaymentReport {
  return { resource: 'payment', resource_id, name, callback };
}

/** A charge settles with its balance transaction, which may come later. */
function readCharge({ metadata, status, captured, ...charge }: Charge): Facts {
  const id = readId(metadata, 'payment_id');
  if (id === undefined || status !== 'succeeded' || !captured) return NONE;
  const { balance_transaction: booked, payment_method_details: paid } = charge;
  if (!booked) return { reports: [], isUnbooked: true };
  const { type, brand } = findMethod(metadata?.['method'] ?? '') ?? {};
  const isOther = type !== paid?.type || (brand !== undefined && brand !== paid?.card?.brand);
  const mark = paid && type && isOther ? { code: 'method_differs' } : {};
  // A fee that is no part of the amount must not keep the settlement back.
  const fee = Math.min(Math.max(booked.fee, 0), Math.abs(booked.amount));
  const available_on = toTime(booked.available_on).slice(0, 10);
  const facts = { ...describeMoney(booked), fee, available_on, ...mark };
  return { reports: [build(id, 'settled', facts)] };
}

function readIntent({ id, status, metadata, created, ...intent }: PaymentIntent): Facts {
  const payment_id = readId(metadata, 'payment_id');
  if (payment_id === undefined) return NONE;
  const { latest_charge: charge } = intent;
  if (status !== 'processing') return charge ? readCharge(charge) : NONE;
  const occurred_at = toTime(charge?.created ?? created);
  const callback = { callback_id: `${id}:processing`, occurred_at, bank_reference: id };
  return { reports: [build(payment_id, 'authorized', callback)] };
}

async function readSession(session: Session, { book }: StripeTools): Promise<Facts> {
  const { id, status, payment_intent: intent, metadata } = session;
  const payment_id = readId(metadata, 'payment_id');
  if (payment_id === undefined || status === 'open') return NONE;
  // What the service has closed itself is no news, and it may still cancel the payment.
  const isClosed = (await book.get(payment_id))?.closing === true;
  if (status === 'expired') {
    const callback = { callback_id: `${id}:expired`, occurred_at: toTime(session.expires_at) };
    return { reports: isClosed ? [] : [build(payment_id, 'expired', callback)] };
  }
  if (!intent) return NONE;
  const isOver = intent.status === 'canceled' || intent.status === 'requires_payment_method';
  if (!isOver) return readIntent(intent);
  if (isClosed && intent.cancellation_reason === 'abandoned') return NONE;
  const at = intent.latest_charge?.created ?? intent.canceled_at ?? intent.created;
  const why = explain(FAILURES, intent.last_payment_error?.code);
  const callback = { callback_id: `${id}:failed`, occurred_at: toTime(at), ...why };
  return { reports: [build(payment_id, 'failed', callback)] };
}

/** A refund may fail after it has succeeded: each has its own balance transaction. */
function readRefund({ id, status, metadata, created, ...refund }: Refund): Facts {
  const refund_id = readId(metadata, 'refund_id');
  const payment_id = readId(metadata, 'payment_id');
  const { balance_transaction: booked, failure_balance_transaction: back } = refund;
  const hasFailed = status === 'failed' || status === 'canceled';
  if (status !== 'succeeded' && !hasFailed) return NONE;
  // What has left comes back by a balance transaction of its own.
  const money = hasFailed ? back : booked;
  if (!money && (booked || !hasFailed)) return { reports: [], isUnbooked: true };
  const callback = {
    ...(money
      ? describeMoney(money)
      : { callback_id: `${id}:failed`, occurred_at: toTime(created) }),
    ...(hasFailed ? explain(REFUND_FAILURES, refund.failure_reason) : {}),
  };
  if (refund_id !== undefined) {
    const subject = { resource: 'refund', resource_id: refund_id } as const;
    if (!hasFailed) return { reports: [{ ...subject, name: 'settled', callback }] };
    const failed: Report = { ...subject, name: 'failed', callback };
    if (!booked) return { reports: [failed] };
    // The refund has to settle first, or no entry has what Stripe booked as taken.
    return { reports: [{ ...subject, name: 'settled', callback: describeMoney(booked) }, failed] };
  }
  if (payment_id === undefined) return NONE;
  return { reports: [build(payment_id, hasFailed ? 'reversal_failed' : 'reversed', callback)] };
}

/** Only a balance transaction of a dispute moves money. */
function readDispute(dispute: Dispute, { log }: StripeTools): Facts {
  const { id: dispute_id, charge, status, reason: code, created } = dispute;
  const payment_id = readId(charge.metadata, 'payment_id');
  if (payment_id === undefined) return NONE;
  // Only what has settled can be disputed.
  const settled = readCharge(charge);
  if (settled.isUnbooked) return settled;
  const reports = [...settled.reports];
  const add = (name: PaymentReport['name'], callback: PaymentReport['callback']) =>
    reports.push(build(payment_id, name, { dispute_id, ...callback }));
  const { due_by } = dispute.evidence_details;
  const known = { code, ...(due_by ? { evidence_due_at: toTime(due_by) } : {}) };
  const facts = `${code}:${due_by ?? 0}`;
  const opened = { callback_id: `${dispute_id}:opened:${facts}`, occurred_at: toTime(created) };
  add('dispute_opened', { ...opened, ...known, amount: 0 });
  const dispute_status = OPEN_DISPUTES[status];
  if (dispute_status !== undefined) {
    // Stripe does not say when a status came: milliseconds keep their order.
    const rank = Object.keys(OPEN_DISPUTES).indexOf(status) + 1;
    const occurred_at = new Date(created * 1_000 + rank).toISOString();
    const callback_id = `${dispute_id}:${status}:${facts}`;
    add('dispute_updated', { callback_id, occurred_at, ...known, dispute_status });
  }
  for (const booked of dispute.balance_transactions) {
    const { amount, ...money } = describeMoney(booked);
    const fee = Math.abs(booked.fee);
    const name = booked.amount < 0 || booked.fee > 0 ? 'dispute_withdrawn' : 'dispute_reinstated';
    // A report has one direction.
    const isMixed = booked.amount * booked.fee > 0;
    if (isMixed) log.error({ object: booked.id }, 'what a dispute moved was not applied');
    else if (amount + fee > 0) add(name, { ...money, fee, ...(amount ? { amount } : {}) });
  }
  const end = CLOSED_DISPUTES[status];
  if (end !== undefined) {
    const ended = { callback_id: `${dispute_id}:${status}`, occurred_at: toTime(created), code };
    add(end, { ...ended, ...(end === 'dispute_won' ? { amount: 0 } : {}) });
  }
  return { reports };
}

/** Objects that events are about. */
const Subject = z.discriminatedUnion('object', [Session, PaymentIntent, Charge, Dispute, Refund]);

/** Reads what an object says now, whatever an event has said of it. */
export async function readFacts(
  { object, id }: Pick<Hint, 'object' | 'id'>,
  tools: StripeTools,
): Promise<Facts> {
  const place = PLACES[object];
  if (place === undefined || id === undefined) return NONE;
  const path = `${place.path}/${encodeURIComponent(id)}`;
  const request = { path, params: { expand: place.expand } };
  const { object: subject, problem } = await callStripe(tools, request, Subject);
  if (problem !== undefined) {
    if (problem.code !== 'resource_missing') throw buildFailure(problem);
    tools.log.warn({ object: id }, 'Stripe does not know an object of an event');
    return NONE;
  }
  if ('livemode' in subject && subject.livemode !== tools.livemode) {
    reportMode(tools, id);
    return NONE;
  }
  switch (subject.object) {
    case 'checkout.session':
      return await readSession(subject, tools);
    case 'payment_intent':
      return readIntent(subject);
    case 'charge':
      return readCharge(subject);
    case 'dispute':
      return readDispute(subject, tools);
    default:
      return readRefund(subject);
  }
}

/** Reports an object of the other mode, which has the money of another account. */
export function reportMode({ log }: Pick<StripeTools, 'log'>, object: string): void {
  log.error({ object }, 'an object of the other mode of Stripe was not applied');
}
