import { z } from 'zod';
import type { Report } from '../kit';
import { buildFailure, callStripe, type StripeTools } from './api';
import { findMethod, isMethod } from './methods';
import {
  type BalanceTransaction,
  Charge,
  CLOSED_DISPUTES,
  Dispute,
  EXPAND,
  OPEN_DISPUTES,
  PaymentIntent,
  Refund,
  Session,
} from './objects';

/** Facts about our resources, as an object of Stripe has them. */
export interface Facts {
  reports: Report[];
  /** Whether money has moved that Stripe has not booked yet: read it again. */
  isUnbooked?: boolean;
}

/** Codes of failures that are passed on to merchants. None names the payer. */
const FAILURES: Readonly<Record<string, string>> = {
  card_declined: 'The card was declined.',
  expired_card: 'The card has expired.',
  insufficient_funds: 'There is not enough money on the account.',
  payment_intent_payment_attempt_expired: 'The customer did not pay in time.',
  payment_intent_payment_attempt_failed: 'The payment failed.',
  payment_method_customer_decline: 'The customer declined the payment.',
  payment_method_provider_decline: 'The provider of the payment method declined the payment.',
  payment_method_provider_timeout: 'The provider of the payment method did not answer.',
};

const REFUND_FAILURES: Readonly<Record<string, string>> = {
  lost_or_stolen_card: 'The card is lost or stolen.',
  expired_or_canceled_card: 'The card has expired, or was canceled.',
  charge_for_pending_refund_disputed: 'The payment is disputed.',
  insufficient_funds: 'The Stripe balance did not reach.',
  declined: 'The bank of the customer declined it.',
  merchant_request: 'It was canceled at Stripe.',
};

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

const OurId = z.uuid();

function readId(metadata: Charge['metadata'], name: 'payment_id' | 'refund_id') {
  return OurId.safeParse(metadata?.[name]).data;
}

/** Whether an object is one of ours, also where another system uses the account. */
export function isOurs({ metadata }: Pick<Charge, 'metadata'>): boolean {
  return ['payment_id', 'refund_id'].some((name) => OurId.safeParse(metadata?.[name]).success);
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
function readCharge({ metadata, ...charge }: Charge): Facts {
  const id = readId(metadata, 'payment_id');
  if (id === undefined || charge.status !== 'succeeded' || !charge.captured) return { reports: [] };
  const { balance_transaction: booked } = charge;
  if (!booked) return { reports: [], isUnbooked: true };
  const mark = isOtherMethod(charge, metadata?.['method']) ? { code: 'method_differs' } : {};
  // A fee that is no part of the amount must not keep the settlement back.
  const fee = Math.min(Math.max(booked.fee, 0), Math.abs(booked.amount));
  const available_on = toTime(booked.available_on).slice(0, 10);
  const facts = { ...describeMoney(booked), fee, available_on, ...mark };
  return { reports: [build(id, 'settled', facts)] };
}

function isOtherMethod(
  { payment_method_details: paid }: Pick<Charge, 'payment_method_details'>,
  method: string | undefined,
): boolean {
  if (!paid || method === undefined || !isMethod(method)) return false;
  const { type, brand } = findMethod(method);
  return paid.type !== type || (brand !== undefined && paid.card?.brand !== brand);
}

function readIntent({
  id,
  status,
  metadata,
  created,
  latest_charge: charge,
}: PaymentIntent): Facts {
  const payment_id = readId(metadata, 'payment_id');
  if (payment_id === undefined) return { reports: [] };
  if (status !== 'processing') return charge ? readCharge(charge) : { reports: [] };
  const occurred_at = toTime(charge?.created ?? created);
  const callback = { callback_id: `${id}:processing`, occurred_at, bank_reference: id };
  return { reports: [build(payment_id, 'authorized', callback)] };
}

async function readSession(session: Session, { book }: StripeTools): Promise<Facts> {
  const { id, status, payment_intent: intent, metadata } = session;
  const payment_id = readId(metadata, 'payment_id');
  if (payment_id === undefined || status === 'open') return { reports: [] };
  // What the service has closed itself is no news, and it may still cancel the payment.
  const isClosed = (await book.get(payment_id))?.closing === true;
  if (status === 'expired') {
    const callback = { callback_id: `${id}:expired`, occurred_at: toTime(session.expires_at) };
    return { reports: isClosed ? [] : [build(payment_id, 'expired', callback)] };
  }
  if (!intent) return { reports: [] };
  const isOver = intent.status === 'canceled' || intent.status === 'requires_payment_method';
  if (!isOver) return readIntent(intent);
  if (isClosed && intent.cancellation_reason === 'abandoned') return { reports: [] };
  const at = intent.latest_charge?.created ?? intent.canceled_at ?? intent.created;
  const why = explain(FAILURES, intent.last_payment_error?.code);
  const callback = { callback_id: `${id}:failed`, occurred_at: toTime(at), ...why };
  return { reports: [build(payment_id, 'failed', callback)] };
}

/** A refund may fail after it has succeeded: each has its own balance transaction. */
function readRefund(refund: Refund): Facts {
  const { id, status, metadata, created } = refund;
  const refund_id = readId(metadata, 'refund_id');
  const payment_id = readId(metadata, 'payment_id');
  const booked = refund.balance_transaction;
  const back = refund.failure_balance_transaction;
  const hasFailed = status === 'failed' || status === 'canceled';
  if (status !== 'succeeded' && !hasFailed) return { reports: [] };
  // What has left comes back by a balance transaction of its own.
  if (!(hasFailed ? back || !booked : booked)) return { reports: [], isUnbooked: true };
  const why = explain(REFUND_FAILURES, refund.failure_reason);
  const failed = back
    ? { ...describeMoney(back), ...why }
    : { callback_id: `${id}:failed`, occurred_at: toTime(created), ...why };
  const callback = hasFailed || !booked ? failed : describeMoney(booked);
  if (refund_id !== undefined) {
    const name = hasFailed ? 'failed' : 'settled';
    return { reports: [{ resource: 'refund', resource_id: refund_id, name, callback }] };
  }
  if (payment_id === undefined) return { reports: [] };
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
  const { due_by } = dispute.evidence_details;
  const known = { dispute_id, code, ...(due_by ? { evidence_due_at: toTime(due_by) } : {}) };
  const facts = `${code}:${due_by ?? 0}`;
  // Stripe does not say when a status came: milliseconds keep their order.
  const rank = Object.keys(OPEN_DISPUTES).indexOf(status) + 1;
  const occurred_at = new Date(created * 1_000 + rank).toISOString();
  const reports = [
    build(payment_id, 'dispute_opened', {
      ...{ callback_id: `${dispute_id}:opened:${facts}`, occurred_at: toTime(created) },
      ...{ ...known, amount: 0 },
    }),
  ];
  const dispute_status = OPEN_DISPUTES[status];
  if (dispute_status !== undefined) {
    const callback_id = `${dispute_id}:${status}:${facts}`;
    const callback = { ...known, callback_id, occurred_at, dispute_status };
    reports.push(build(payment_id, 'dispute_updated', callback));
  }
  for (const booked of dispute.balance_transactions) {
    const { amount, fee } = booked;
    const name =
      amount < 0 || (amount === 0 && fee > 0) ? 'dispute_withdrawn' : 'dispute_reinstated';
    const { amount: moved, ...money } = describeMoney(booked);
    const callback = {
      ...money,
      dispute_id,
      fee: Math.abs(fee),
      ...(moved ? { amount: moved } : {}),
    };
    // A report has one direction.
    if (amount * fee > 0) log.error({ object: booked.id }, 'what a dispute moved was not applied');
    else if (moved + callback.fee > 0) reports.push(build(payment_id, name, callback));
  }
  const end = CLOSED_DISPUTES[status];
  if (end !== undefined) {
    const ended = { callback_id: `${dispute_id}:${status}`, occurred_at: toTime(created) };
    const moneyless = end === 'dispute_won' ? { amount: 0 } : {};
    reports.push(build(payment_id, end, { ...ended, dispute_id, code, ...moneyless }));
  }
  return { reports: [...settled.reports, ...reports] };
}

interface Kind<S extends z.ZodType> {
  path: string;
  expand: string[];
  schema: S;
  read: (object: z.output<S>, tools: StripeTools) => Facts | Promise<Facts>;
}

/** @returns function that reads what an object says now, whatever an event has said of it */
function readBy<S extends z.ZodType>({ path, expand, schema, read }: Kind<S>) {
  return async (id: string, tools: StripeTools): Promise<Facts> => {
    const request = { path: `${path}/${encodeURIComponent(id)}`, params: { expand } };
    const answer = await callStripe(tools, request, schema);
    if (answer.problem !== undefined) {
      if (answer.problem.code !== 'resource_missing') throw buildFailure(answer.problem);
      tools.log.warn({ object: id }, 'Stripe does not know an object of an event');
      return NONE;
    }
    const { livemode = tools.livemode } = Object(answer.object);
    if (livemode === tools.livemode) return await read(answer.object, tools);
    reportMode(tools, id);
    return NONE;
  };
}

/** Objects that events are about, by their names. */
const READERS = new Map([
  [
    'checkout.session',
    readBy({
      ...{ path: 'checkout/sessions', expand: EXPAND.session },
      ...{ schema: Session, read: readSession },
    }),
  ],
  [
    'payment_intent',
    readBy({
      ...{ path: 'payment_intents', expand: EXPAND.payment_intent },
      ...{ schema: PaymentIntent, read: readIntent },
    }),
  ],
  ['charge', readBy({ path: 'charges', expand: EXPAND.charge, schema: Charge, read: readCharge })],
  [
    'dispute',
    readBy({ path: 'disputes', expand: EXPAND.dispute, schema: Dispute, read: readDispute }),
  ],
  ['refund', readBy({ path: 'refunds', expand: EXPAND.refund, schema: Refund, read: readRefund })],
]);

export const NONE: Facts = { reports: [] };

/** @returns nothing about an object that events are not about */
export async function readFacts(
  { object, id }: { object: string; id?: string | undefined },
  tools: StripeTools,
): Promise<Facts> {
  const read = READERS.get(object);
  return read === undefined || id === undefined ? NONE : await read(id, tools);
}

/** Reports an object of the other mode, which has the money of another account. */
export function reportMode({ log }: Pick<StripeTools, 'log'>, object: string): void {
  log.error({ object }, 'an object of the other mode of Stripe was not applied');
}
