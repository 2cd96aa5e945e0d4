import { BankFailure, type CloseAnswer, type SessionAnswer, type SessionInstruction } from '../kit';
import { callStripe, findInList, type Params, readStripe, type StripeTools } from './api';
import type { Sent } from './book';
import { DECLINES } from './codes';
import { findMethod, findRefusal, listBlockedBrands } from './methods';
import { PaymentIntent, PLACES, Session, SessionHead } from './objects';
import { sendOnce } from './sending';

const MINUTE_S = 60;

/** Stripe takes sessions that end after half an hour, and within a day. */
const SHORTEST_S = 31 * MINUTE_S;
const LONGEST_S = 24 * 3_600 - 5 * MINUTE_S;

/** Time in which an attempt without an answer may still arrive. */
const ARRIVAL_MS = 60_000;

/** Opens a page of Stripe Checkout, on which the customer pays by the method of the payment. */
export async function openSession(
  input: SessionInstruction,
  tools: StripeTools,
): Promise<SessionAnswer> {
  const refusal = findRefusal(input, tools.settings.STRIPE_CURRENCIES);
  if (refusal !== undefined) return { outcome: 'declined', ...refusal };
  const { object: session, problem } = await sendOnce(tools, {
    id: input.payment_id,
    path: 'checkout/sessions',
    buildParams: (record) => buildSession(input, record),
    schema: SessionHead,
    find: (record) => findSession(tools, record),
  });
  if (problem !== undefined) {
    const { code = '' } = problem;
    const message = DECLINES[code];
    if (message !== undefined) return { outcome: 'declined', code, message };
    throw new BankFailure(`Stripe opens no session: ${code || problem.type}.`);
  }
  if (!session.url) throw new BankFailure('The session has no page any more.');
  return { outcome: 'opened', bank_reference: session.id, session_url: session.url };
}

/** Depends on the instruction and its first attempt alone: a repeat must not differ. */
function buildSession(
  { payment_id, amount, currency, method, return_url, expires_at }: SessionInstruction,
  { begun_at }: Sent,
): Params {
  const own = findMethod(method);
  if (own === undefined) throw new RangeError(`The method ${method} is not served.`);
  const begun = Math.floor(begun_at.getTime() / 1_000);
  const end = Math.max(begun, Math.floor(Date.parse(expires_at) / 1_000));
  const metadata = { payment_id, method };
  const brands_blocked = listBlockedBrands(own);
  const product_data = { name: 'Payment' };
  const price_data = { currency: currency.toLowerCase(), unit_amount: amount, product_data };
  return {
    ...{ mode: 'payment', client_reference_id: payment_id, metadata },
    payment_method_types: [own.type],
    line_items: [{ quantity: 1, price_data }],
    ...{ success_url: return_url, cancel_url: return_url },
    // Also an attempt right before the end of the payment has a valid time.
    expires_at: Math.min(end + SHORTEST_S, begun + LONGEST_S),
    payment_intent_data: { capture_method: 'automatic', metadata },
    payment_method_options: { card: { restrictions: { brands_blocked } } },
  };
}

/** Finds the session of an instruction by time, since Stripe's search is late. */
function findSession(tools: StripeTools, { _id, begun_at, tried_at }: Sent) {
  const toSeconds = (time: Date) => Math.floor(time.getTime() / 1_000);
  const gte = toSeconds(begun_at) - 10 * MINUTE_S;
  // An account may have very many sessions since.
  const created = { gte, lte: toSeconds(tried_at) + 10 * MINUTE_S };
  const list = { path: 'checkout/sessions', params: { created } };
  const fits = ({ client_reference_id: id }: { client_reference_id?: unknown }) => id === _id;
  return findInList(tools, list, SessionHead, fits);
}

interface Closing {
  payment_id: string;
  bank_reference: string | null;
}

/** @returns undefined if Stripe has none */
async function findSessionId(
  tools: StripeTools,
  { payment_id, bank_reference }: Closing,
): Promise<string | undefined> {
  if (bank_reference !== null) return bank_reference;
  const record = await tools.book.get(payment_id);
  if (record === null) return undefined;
  const id = record.object ?? (await findSession(tools, record))?.id;
  if (id !== undefined) return id;
  if (tools.now().getTime() - record.tried_at.getTime() >= ARRIVAL_MS) return undefined;
  throw new BankFailure('A session may still be opened: ask again.');
}

export function readSession(tools: StripeTools, id: string): Promise<Session> {
  const params = { expand: PLACES['checkout.session']?.expand };
  return readStripe(tools, { path: `checkout/sessions/${id}`, params }, Session);
}

/**
 * Ends what can be ended of a session.
 * @param cancels whether a PaymentIntent of this status is canceled
 * @returns that by which money has come, or may come without the customer: a voucher, a debit or a
 * confirmation under way
 */
async function endSession(
  tools: StripeTools,
  id: string,
  cancels: (status: string) => boolean,
): Promise<PaymentIntent | undefined> {
  for (const _try of [1, 2, 3]) {
    const { status, payment_intent: intent } = await readSession(tools, id);
    if (status === 'open') {
      // A refusal says that the customer was faster: it is read again.
      await callStripe(tools, { path: `checkout/sessions/${id}/expire`, post: true }, SessionHead);
      continue;
    }
    if (!intent || intent.status === 'canceled') return undefined;
    if (!cancels(intent.status)) return intent;
    const path = `payment_intents/${intent.id}/cancel`;
    const params = { cancellation_reason: 'abandoned' };
    await callStripe(tools, { path, params, post: true }, PaymentIntent.pick({ id: true }));
  }
  throw new BankFailure('Stripe does not end the session: ask again.');
}

/** Closes a session. A voucher that nobody has paid ends with it. */
export async function closeSession(input: Closing, tools: StripeTools): Promise<CloseAnswer> {
  await tools.book.note(input.payment_id, { closing: true });
  const id = await findSessionId(tools, input);
  const isVoucher = (status: string) => status !== 'processing' && status !== 'succeeded';
  const intent = id && (await endSession(tools, id, isVoucher));
  return { outcome: intent ? 'already_authorized' : 'closed' };
}

/** Cancels what is under way, which Stripe does in rare cases only; else it is paid, or fails. */
export async function voidPayment(input: Closing, tools: StripeTools) {
  const id = await findSessionId(tools, input);
  const intent = id && (await endSession(tools, id, (status) => status !== 'succeeded'));
  if (!intent) return { outcome: 'voided' as const };
  const { amount_received: amount, currency } = intent;
  return { outcome: 'already_settled' as const, amount, currency: currency.toUpperCase() };
}
