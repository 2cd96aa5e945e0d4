import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Stripe from 'stripe';

// biome-ignore lint/suspicious/noExplicitAny: as loose as Stripe's JSON.
type Loose = any;

/** Object of Stripe, by its public documentation. References are IDs, unless expanded. */
export interface Thing {
  id: string;
  object: string;
  created: number;
  [field: string]: Loose;
}

interface Answer {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

/** Result that Stripe keeps under an idempotency key, for 24 hours. */
interface Stored {
  answer: Answer;
  request: string;
  at: number;
}

/**
 * Fault of the next POST: a 500 that is stored, before or after it has acted; a cut connection
 * before it was read, or while it goes on; a 429.
 */
export type Fault = 'stored_500' | 'stored_500_after' | 'cut_before' | 'cut_after' | 'limited';

export interface SeenRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  /** Answer of the fake. */
  answer?: { status: number; body: unknown };
}

interface Options {
  port?: number;
  key?: string;
  /** Address and secret of the webhook endpoint. */
  webhook?: { url: string; secret: string };
}

/** Objects that are read, by their path. */
const OBJECTS: Record<string, string> = {
  'checkout/sessions': 'checkout.session',
  payment_intents: 'payment_intent',
  charges: 'charge',
  disputes: 'dispute',
  refunds: 'refund',
  balance_transactions: 'balance_transaction',
  payouts: 'payout',
};

/** Objects without `livemode`. */
const MODELESS = ['refund', 'balance_transaction'];

/** ID of the account at Stripe. */
export const ACCOUNT = 'acct_1FakeOfTests';
/** Fields that each object has, by Stripe's document, and nothing here is about. */
const DEFAULTS: Record<string, object> = {
  'checkout.session': {
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    ...{ custom_fields: [], shipping_options: [], payment_method_types: ['card'] },
    custom_text: {
      ...{ after_submit: null, shipping_address: null, submit: null },
      terms_of_service_acceptance: null,
    },
  },
  charge: {
    ...{ amount_refunded: 0, refunded: false },
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
  },
  balance_transaction: {
    ...{ balance_type: 'payments', exchange_rate: null, description: null, fee_details: [] },
  },
};
const CARD = { exp_month: 12, exp_year: 2039, country: 'NL', last4: '4242' };

const DAY_S = 86_400;
const HALF_HOUR_S = 1_800;

const PAGES = '/c/pay/';

const INVALID = 'invalid_request_error';

class Refused extends Error {
  readonly answer: Answer;

  constructor(status: number, code: string, param?: string) {
    super(code);
    this.answer = refuse(status, INVALID, code, param);
  }
}

/** Stateful Stripe: what stripe-mock and others lack is keys, late bookings, expiry and webhooks. */
export async function startFakeStripe({ port = 0, key = 'sk_test_fake', webhook }: Options = {}) {
  const things = new Map<string, Thing>();
  const events: Thing[] = [];
  const keys = new Map<string, Stored>();
  const running = new Set<string>();
  const faults: Fault[] = [];
  const holds: { request: string; work: () => Promise<unknown> }[] = [];
  const requests: SeenRequest[] = [];
  let offsetMs = 0;
  let numbers = 0;
  const state = {
    account: ACCOUNT,
    livemode: false,
    /** Balance transactions come by `book` only. */
    booksLate: false,
    /** No event is posted. */
    isSilent: false,
    /** A check cancels what Stripe would not. */
    cancelsProcessing: false,
  };
  /** Balance transactions of each payout, with its own. */
  const paidOut = new Map<string, Set<string>>();
  /** In the balance, and not in the list yet. */
  let unseen: Thing[] = [];

  const now = () => Math.floor((Date.now() + offsetMs) / 1_000);
  const nextId = (prefix: string) => {
    numbers += 1;
    return `${prefix}_${String(numbers).padStart(6, '0')}${randomUUID().slice(0, 8)}`;
  };
  const put = (prefix: string, object: string, fields: Record<string, unknown>): Thing => {
    const mode = MODELESS.includes(object) ? {} : { livemode: state.livemode };
    const named = { id: nextId(prefix), object, created: now() };
    const thing: Thing = { ...DEFAULTS[object], ...named, ...mode, ...fields };
    things.set(thing.id, thing);
    return thing;
  };
  const get = (id: string, object: string): Thing => {
    const thing = things.get(id);
    if (thing?.object !== object) throw new Refused(404, 'resource_missing', 'id');
    return thing;
  };
  const list = (object: string) =>
    [...things.values()].filter((thing) => thing.object === object).reverse();

  /** Creates an event, and posts it as Stripe does. A lost one stays in the list. */
  const emit = async (type: string, thing: Thing): Promise<Thing> => {
    const data = { object: expand(thing, []) };
    const event: Thing = {
      ...{ id: nextId('evt'), object: 'event', created: now(), type, data },
      ...{ livemode: state.livemode, api_version: Stripe.API_VERSION },
      ...{ pending_webhooks: 1, request: { id: null } },
    };
    events.unshift(event);
    if (webhook && !state.isSilent) await postEvent(event, webhook).catch(() => undefined);
    return event;
  };
  /** Books money on the balance; an asynchronous booking comes by `book`. */
  const bookNow = (thing: Thing, type: string, amount: number, currency: string): Thing => {
    const fee = type === 'charge' || type === 'payment' ? Math.round(amount * 0.015) + 25 : 0;
    // Money waits for a midnight UTC.
    const midnight = now() - (now() % DAY_S) + 2 * DAY_S;
    const available_on = type === 'charge' ? midnight : now();
    return put('txn', 'balance_transaction', {
      ...{ amount, currency, fee, net: amount - fee, type, source: thing.id, available_on },
      ...{ status: type === 'charge' ? 'pending' : 'available', reporting_category: type },
    });
  };
  const isAvailable = (booked: Thing) => booked['available_on'] <= now();
  const sumNet = (some: Thing[]) => some.reduce((total, { net }) => total + net, 0);
  const readBalance = () => {
    const all = [...list('balance_transaction'), ...unseen];
    const currencies = [...new Set(['eur', ...all.map(({ currency }) => currency)])];
    const add = (isOf: (booked: Thing) => boolean) =>
      currencies.map((currency) => {
        const amount = sumNet(all.filter((each) => each['currency'] === currency && isOf(each)));
        return { amount, currency, source_types: { card: amount } };
      });
    const pending = add((each) => !isAvailable(each));
    const { livemode } = state;
    return { object: 'balance', livemode, available: add(isAvailable), pending };
  };

  /** Books what a dispute takes or gives back. */
  const bookDispute = (dispute: Thing, amount: number, fee: number): Thing => {
    const taken = put('txn', 'balance_transaction', {
      ...{ amount, currency: dispute['currency'], fee, net: amount - fee, type: 'adjustment' },
      ...{ available_on: now(), status: 'available', source: dispute.id },
      reporting_category: amount < 0 ? 'dispute' : 'dispute_reversal',
    });
    dispute['balance_transactions'].push(taken.id);
    return taken;
  };
  const isDisputeOpen = ({ status }: Thing) => /needs_response|under_review/.test(status);
  const updateDispute = async (dispute: Thing, params: Record<string, Loose>): Promise<Thing> => {
    const { evidence = {}, metadata = {}, submit } = params;
    const details = dispute['evidence_details'];
    if (!isDisputeOpen(dispute) || details.past_due) throw new Refused(400, 'parameter_invalid');
    Object.assign(dispute['evidence'], evidence);
    Object.assign(dispute['metadata'], metadata);
    details.has_evidence = true;
    if (submit !== 'true') return dispute;
    details.submission_count += 1;
    dispute['status'] = dispute['status'].replace('needs_response', 'under_review');
    await emit('charge.dispute.updated', dispute);
    return dispute;
  };
  const closeDispute = async (dispute: Thing, status: string): Promise<Thing> => {
    if (!isDisputeOpen(dispute)) throw new Refused(400, 'dispute_not_open');
    dispute['status'] = status;
    await emit('charge.dispute.closed', dispute);
    return dispute;
  };

  const createSession = (params: Record<string, Loose>): Thing => {
    const { expires_at: end = now() + DAY_S } = params;
    if (end < now() + HALF_HOUR_S || end > now() + DAY_S) {
      throw new Refused(400, 'parameter_invalid_integer', 'expires_at');
    }
    const [item] = Object.values<Loose>(params['line_items']);
    const amount = Number(item.price_data.unit_amount);
    if (amount < 50) throw new Refused(400, 'amount_too_small');
    const session = put('cs_test', 'checkout.session', {
      ...{ status: 'open', payment_status: 'unpaid', payment_intent: null },
      ...{ amount_total: amount, currency: item.price_data.currency },
      ...{ client_reference_id: params['client_reference_id'], metadata: params['metadata'] },
      ...{ expires_at: Number(end), mode: 'payment', params },
      payment_method_types: Object.values(params['payment_method_types'] ?? { 0: 'card' }),
      ...{ success_url: params['success_url'], cancel_url: params['cancel_url'] },
    });
    session['url'] = `${getUrl()}${PAGES}${session.id}`;
    return session;
  };
  const createIntent = (fields: Record<string, unknown>): Thing =>
    put('pi', 'payment_intent', {
      ...{ status: 'requires_payment_method', amount_received: 0, latest_charge: null },
      ...{ canceled_at: null, cancellation_reason: null, last_payment_error: null },
      ...fields,
    });
  const expireSession = async (session: Thing): Promise<Thing> => {
    if (session['status'] !== 'open') throw new Refused(400, 'checkout_session_not_open');
    session['status'] = 'expired';
    session['url'] = null;
    await emit('checkout.session.expired', session);
    return session;
  };
  const cancelIntent = (intent: Thing, params: Record<string, Loose>): Thing => {
    const isProcessing = intent['status'] === 'processing' && !state.cancelsProcessing;
    if (['succeeded', 'canceled'].includes(intent['status']) || isProcessing) {
      throw new Refused(400, 'payment_intent_unexpected_state');
    }
    return Object.assign(intent, {
      ...{ status: 'canceled', canceled_at: now() },
      cancellation_reason: params['cancellation_reason'] ?? null,
    });
  };
  const sumRefunds = (charge: string) =>
    list('refund')
      .filter((each) => each['charge'] === charge && each['status'] !== 'failed')
      .reduce((sum, each) => sum + each['amount'], 0);
  const createRefund = (params: Record<string, Loose>): Thing => {
    const { payment_intent, charge = things.get(payment_intent)?.['latest_charge'] } = params;
    const refunded = things.get(charge ?? '');
    if (refunded?.object !== 'charge') throw new Refused(404, 'resource_missing', 'charge');
    if (refunded['disputed']) throw new Refused(400, 'charge_disputed');
    const left = refunded['amount'] - sumRefunds(refunded.id);
    if (left === 0) throw new Refused(400, 'charge_already_refunded');
    const amount = Number(params['amount'] ?? left);
    if (amount > left) throw new Refused(400, 'amount_too_large');
    const refund = put('re', 'refund', {
      ...{ amount, currency: refunded['currency'], charge: refunded.id, status: 'pending' },
      ...{ payment_intent: refunded['payment_intent'], metadata: params['metadata'] ?? {} },
      ...{ balance_transaction: null, reason: null },
    });
    const amount_refunded = sumRefunds(refunded.id);
    const isAll = amount_refunded === refunded['amount'];
    Object.assign(refunded, { amount_refunded, refunded: isAll });
    return refund;
  };

  /** Pays without a page, by a test card. */
  const payDirectly = async ({ amount, currency, metadata }: Record<string, Loose>) => {
    const money = { amount: Number(amount), currency };
    const intent = createIntent({ ...money, metadata, status: 'succeeded' });
    const charge = addCharge(intent, 'succeeded', { type: 'card', card: { brand: 'visa' } });
    bank.book(charge);
    await emit('charge.succeeded', charge);
    return intent;
  };
  const listEvents = (params: Record<string, Loose>) => {
    const types: string[] = Object.values(params['types'] ?? {});
    const isListed = ({ created, type }: Thing) =>
      created >= now() - 30 * DAY_S && (types.length === 0 || types.includes(type));
    return page(events.filter(isListed), params);
  };
  type Act = (id: string, params: Record<string, Loose>) => unknown;
  /** Requests that are no reading of an object or a list. */
  const ACTS: Record<string, Act> = {
    'POST checkout/sessions': (_id, params) => createSession(params),
    'POST checkout/sessions/ID/expire': (id) => expireSession(get(id, 'checkout.session')),
    'POST payment_intents': (_id, params) => payDirectly(params),
    'POST payment_intents/ID/cancel': (id, params) =>
      cancelIntent(get(id, 'payment_intent'), params),
    'POST disputes/ID': (id, params) => updateDispute(get(id, 'dispute'), params),
    'POST disputes/ID/close': (id) => closeDispute(get(id, 'dispute'), 'lost'),
    'POST refunds': (_id, params) => createRefund(params),
    'GET balance': () => readBalance(),
    'GET account': () => ({ id: state.account, object: 'account', type: 'standard' }),
    'GET events': (_id, params) => listEvents(params),
  };
  const answer = (method: string, path: string, params: Record<string, Loose>): unknown => {
    const [, id = ''] = /\/([^/]*\d[^/]*|CHECK-PAYMENT)/.exec(path) ?? [];
    const name = `${method} ${id === '' ? path : path.replace(id, 'ID')}`;
    const act = ACTS[name];
    if (act !== undefined) return act(decodeURIComponent(id), params);
    const object = OBJECTS[name.replace(/^GET |\/ID$/g, '')];
    if (object === undefined) throw new Refused(404, 'resource_missing');
    return id === '' ? page(list(object), params) : get(decodeURIComponent(id), object);
  };
  const page = (rows: Thing[], params: Record<string, Loose>) => {
    const { limit = 10, starting_after, created = {}, payout } = params;
    const { gte = 0, lt = Number.POSITIVE_INFINITY, lte = lt } = created;
    const isEqual = (row: Thing, name: string) => [undefined, row[name]].includes(params[name]);
    const fitting = rows.filter(
      (row) =>
        (payout === undefined || paidOut.get(payout)?.has(row.id)) &&
        ['currency', 'payment_intent', 'charge'].every((name) => isEqual(row, name)) &&
        row.created >= Number(gte) &&
        row.created < Number(lt) &&
        row.created <= Number(lte),
    );
    const from = fitting.findIndex(({ id }) => id === starting_after) + 1;
    const data = fitting.slice(from, from + Number(limit));
    const has_more = fitting.length > from + data.length;
    return { object: 'list', url: '/v1/list', has_more, data };
  };
  const expand = (value: Loose, paths: string[]): unknown => {
    const copy = structuredClone(value);
    const findThing = (id: string) => structuredClone(things.get(id) ?? null);
    /** A dispute has them in full, whatever is expanded. */
    const withTransactions = (of: Loose): void => {
      if (of?.object !== 'dispute') return;
      of.balance_transactions = of.balance_transactions.map(findThing);
    };
    for (const each of copy?.data ?? [copy]) {
      withTransactions(each);
      for (const path of paths) {
        let at = each;
        for (const name of path.replace(/^data\./, '').split('.')) {
          if (typeof at?.[name] === 'string') at[name] = findThing(at[name]);
          at = at?.[name];
          withTransactions(at);
        }
      }
      if (each !== null) delete each.params;
    }
    return copy;
  };
  const answerRoute = async (method: string, path: string, params: Loose): Promise<Answer> => {
    try {
      const body = await answer(method, path, params);
      return { status: 200, body: expand(body, Object.values(params.expand ?? {})) };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return error.answer;
    }
  };
  /** Answers a POST once for each key, and repeats what is stored, failures too. */
  const answerOnce = async (
    { path, headers, body }: SeenRequest,
    params: Loose,
    fault: Fault | undefined,
  ): Promise<Answer> => {
    const idempotencyKey = headers['idempotency-key'];
    for (const [name, { at }] of keys) if (now() - at >= DAY_S) keys.delete(name);
    const request = `${path}\n${body}`;
    const stored = idempotencyKey === undefined ? undefined : keys.get(idempotencyKey);
    if (stored !== undefined) {
      if (stored.request !== request) return refuse(400, 'idempotency_error');
      return { ...stored.answer, headers: { 'Idempotent-Replayed': 'true' } };
    }
    if (idempotencyKey === undefined) return await answerRoute('POST', path, params);
    if (running.has(idempotencyKey)) {
      return refuse(409, 'idempotency_error', 'idempotency_key_in_use');
    }
    running.add(idempotencyKey);
    const failure = refuse(500, 'api_error');
    const acts = fault !== 'stored_500';
    const made = acts ? await answerRoute('POST', path, params) : failure;
    const answer = fault === 'stored_500_after' ? failure : made;
    running.delete(idempotencyKey);
    // A request that fails validation is not stored.
    if (answer.status !== 400) keys.set(idempotencyKey, { answer, request, at: now() });
    return answer;
  };
  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(incoming.url ?? '', 'http://stripe');
    if (url.pathname.startsWith(PAGES)) return await servePage(incoming, response);
    const isDesk = url.pathname.startsWith('/desk/');
    const fault = incoming.method === 'POST' && !isDesk ? faults.shift() : undefined;
    if (fault === 'cut_before') return void incoming.socket.destroy();
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const { method = 'GET' } = incoming;
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    );
    const seen: SeenRequest = { method, path: `${url.pathname}${url.search}`, headers, body };
    const answer = await (async (): Promise<Answer> => {
      if (isDesk) return await serveDesk(url.pathname, body);
      requests.push(seen);
      const held = holds.findIndex(({ request }) => request === `${method} ${url.pathname}`);
      if (held >= 0) await holds.splice(held, 1)[0]?.work();
      if (fault === 'limited')
        return { ...refuse(429, INVALID, 'rate_limit'), headers: RETRY_AFTER };
      if (headers['authorization'] !== `Bearer ${key}`)
        return refuse(401, INVALID, 'api_key_invalid');
      const params = decodeForm(method === 'GET' ? url.search.slice(1) : body);
      const path = url.pathname.replace('/v1/', '');
      if (method === 'GET') return await answerRoute(method, path, params);
      return await answerOnce({ ...seen, path }, params, fault);
    })();
    Object.assign(seen, { answer });
    // The request has gone on after the client has left.
    if (fault === 'cut_after') return void incoming.socket.destroy();
    response.writeHead(answer.status, { 'Content-Type': 'application/json', ...answer.headers });
    response.end(JSON.stringify(answer.body));
  };

  const findSession = (payment_id: string): Thing => {
    const session = list('checkout.session').find(
      (each) => each['client_reference_id'] === payment_id,
    );
    if (session === undefined) throw new Error(`No session of ${payment_id}.`);
    return session;
  };
  /** Begins a payment on the page of a session. */
  const begin = (session: Thing, status: string): Thing => {
    const known = things.get(session['payment_intent'] ?? '');
    const { payment_intent_data: data = {} } = session['params'] ?? {};
    const { amount_total: amount, currency } = session;
    const intent = known ?? createIntent({ amount, currency, metadata: data.metadata ?? {} });
    intent['status'] = status;
    Object.assign(session, { status: 'complete', payment_intent: intent.id, url: null });
    return intent;
  };
  const addCharge = (intent: Thing, status: string, details: Record<string, unknown>): Thing => {
    const known = things.get(intent['latest_charge'] ?? '');
    const { amount, currency, metadata } = intent;
    const charge =
      known ??
      put('ch', 'charge', {
        ...{ amount, currency, metadata: { ...metadata }, payment_intent: intent.id },
        ...{ captured: true, disputed: false, balance_transaction: null, amount_captured: amount },
        payment_method_details: withCard(details),
      });
    charge['status'] = status;
    charge['paid'] = status === 'succeeded';
    intent['latest_charge'] = charge.id;
    return charge;
  };

  interface Paying {
    /** As `payment_method_details`; by default what the session takes. */
    details?: Record<string, unknown>;
    /** Currency and amount that the balance gets, by default those of the payment. */
    booked?: { amount: number; currency: string };
  }
  const defaultDetails = (session: Thing) => {
    const [type = 'card'] = Object.values<string>(session['params']?.payment_method_types ?? {});
    const brand = session['metadata']?.method;
    return type === 'card' ? { type, card: { brand } } : { type, [type]: {} };
  };
  const bank = {
    now,
    state,
    things,
    events,
    requests,
    findSession,
    /** Refunds by instruction id. */
    listRefunds: (id: string) =>
      list('refund').filter((refund) => refund['metadata']?.instruction_id === id),
    failNext: (...next: Fault[]) => void faults.push(...next),
    /** Has work done once the next such request was read, before it acts. */
    holdNext: (request: string, work: () => Promise<unknown>) => void holds.push({ request, work }),
    advance: (ms: number) => {
      offsetMs += ms;
    },
    /** Pays out what is available, as by a schedule; an amount as by hand, of which nobody knows parts. */
    payOut: async ({ amount, currency = 'eur' }: { amount?: number; currency?: string } = {}) => {
      const paid = new Set([...paidOut.values()].flatMap((ids) => [...ids]));
      const parts = list('balance_transaction').filter(
        (each) => each['currency'] === currency && isAvailable(each) && !paid.has(each.id),
      );
      const automatic = amount === undefined;
      const payout = put('po', 'payout', {
        ...{ amount: amount ?? sumNet(parts), currency, automatic, status: 'pending' },
        ...{ arrival_date: now() - (now() % DAY_S) + 2 * DAY_S, type: 'bank_account' },
        ...{ method: 'standard', source_type: 'card', statement_descriptor: null },
        ...{ trace_id: { status: 'pending', value: null }, failure_balance_transaction: null },
        reconciliation_status: automatic ? 'in_progress' : 'not_applicable',
      });
      const booked = bookNow(payout, 'payout', -payout['amount'], currency);
      payout['balance_transaction'] = booked.id;
      if (automatic) paidOut.set(payout.id, new Set([booked.id, ...parts.map(({ id }) => id)]));
      return payout;
    },
    /** The payout has arrived, and Stripe knows its trace ID, and what it contains. */
    arrive: (payout: Thing, value: string) => {
      payout['status'] = 'paid';
      payout['trace_id'] = { status: 'supported', value };
      if (payout['automatic']) payout['reconciliation_status'] = 'completed';
    },
    failPayout: (payout: Thing) => {
      payout['status'] = 'failed';
      const back = bookNow(payout, 'payout_failure', payout['amount'], payout['currency']);
      payout['failure_balance_transaction'] = back.id;
      paidOut.delete(payout.id);
    },
    /** Balance, available and pending; without a currency the minor units of all. */
    balance: (currency?: string) =>
      sumNet(
        list('balance_transaction').filter(
          (each) => each['currency'] === (currency ?? each['currency']),
        ),
      ),
    /** Moves money by a transaction that the list has later. */
    addUnseen: (amount: number, currency = 'eur') => {
      const booked = bookNow(
        { id: 'none', object: 'none', created: 0 },
        'adjustment',
        amount,
        currency,
      );
      things.delete(booked.id);
      unseen.push(booked);
      return {
        show: () => {
          unseen = unseen.filter((each) => each !== booked);
          things.set(booked.id, booked);
        },
      };
    },
    /** The customer pays on the page. */
    pay: async (payment_id: string, { details, booked }: Paying = {}): Promise<Thing> => {
      const session = findSession(payment_id);
      const intent = begin(session, 'succeeded');
      const charge = addCharge(intent, 'succeeded', details ?? defaultDetails(session));
      intent['amount_received'] = intent['amount'];
      session['payment_status'] = 'paid';
      if (!state.booksLate) bank.book(charge, booked);
      await emit('charge.succeeded', charge);
      await emit('checkout.session.completed', session);
      return charge;
    },
    /** Books a charge; Stripe does so later for some methods. */
    book: (charge: Thing, money?: { amount: number; currency: string }): Thing => {
      const { amount, currency } = money ?? charge;
      const booked = bookNow(charge, 'charge', amount, currency);
      charge['balance_transaction'] = booked.id;
      return booked;
    },
    emit,
    /** The customer has a voucher, or has approved a debit: money may come. */
    complete: async (payment_id: string, status: 'requires_action' | 'processing') => {
      const session = findSession(payment_id);
      const intent = begin(session, status);
      if (status === 'processing') addCharge(intent, 'pending', defaultDetails(session));
      await emit('checkout.session.completed', session);
      if (status === 'processing') await emit('payment_intent.processing', intent);
      return intent;
    },
    /** A voucher ends, or a debit fails. */
    fail: async (payment_id: string, code: string) => {
      const session = findSession(payment_id);
      const intent = begin(session, 'requires_payment_method');
      intent['last_payment_error'] = { code, type: 'card_error' };
      await emit('checkout.session.async_payment_failed', session);
    },
    /** The clock has passed the end of a session. */
    expire: (payment_id: string) => expireSession(findSession(payment_id)),
    /** Books what a pending refund takes, of which no event says. */
    takeRefund: (refund: Thing): void => {
      const { amount, currency } = refund;
      refund['balance_transaction'] ??= bookNow(refund, 'refund', -amount, currency).id;
    },
    settleRefund: async (refund: Thing): Promise<void> => {
      refund['status'] = 'succeeded';
      bank.takeRefund(refund);
      await emit('refund.updated', refund);
    },
    failRefund: async (refund: Thing, failure_reason = 'declined'): Promise<void> => {
      const { amount, currency } = refund;
      Object.assign(refund, { status: 'failed', failure_reason });
      if (refund['balance_transaction'] !== null) {
        const back = bookNow(refund, 'refund_failure', amount, currency);
        refund['failure_balance_transaction'] = back.id;
      }
      await emit('refund.failed', refund);
    },
    /** The customer's bank asks, or takes the money back at once. */
    dispute: async (charge: Thing, { isInquiry = false, due_by = now() + 7 * DAY_S } = {}) => {
      const { amount, currency, payment_intent } = charge;
      const dispute = put('du', 'dispute', {
        ...{ amount, currency, charge: charge.id, payment_intent, reason: 'fraudulent' },
        ...{ status: isInquiry ? 'warning_needs_response' : 'needs_response', metadata: {} },
        ...{ balance_transactions: [], is_charge_refundable: isInquiry },
        evidence: { enhanced_evidence: {} },
        enhanced_eligibility_types: [],
        evidence_details: {
          ...{ due_by, has_evidence: false, past_due: false, submission_count: 0 },
          enhanced_eligibility: {},
        },
      });
      charge['disputed'] = true;
      await emit('charge.dispute.created', dispute);
      return dispute;
    },
    /** An inquiry becomes a dispute. */
    escalate: async (dispute: Thing): Promise<void> => {
      dispute['status'] = 'needs_response';
      await emit('charge.dispute.updated', dispute);
    },
    withdraw: async (dispute: Thing, amount = dispute['amount'], fee = 2_000) => {
      const booked = bookDispute(dispute, -amount, fee);
      await emit('charge.dispute.funds_withdrawn', dispute);
      return booked;
    },
    reinstate: async (dispute: Thing, amount = dispute['amount'], fee = 0) => {
      const booked = bookDispute(dispute, amount, -fee);
      await emit('charge.dispute.funds_reinstated', dispute);
      return booked;
    },
    decide: closeDispute,
    stop: async (): Promise<void> => {
      server.closeAllConnections();
      server.close();
    },
  };

  /** Makes the session of a payment that was never opened here. */
  const addForeign = (payment_id: string): Thing => {
    const metadata = { payment_id, method: 'ideal' };
    const line_items = [{ price_data: { unit_amount: 1_000, currency: 'eur' } }];
    const intent = { payment_intent_data: { metadata } };
    return createSession({ client_reference_id: payment_id, metadata, line_items, ...intent });
  };
  const reportPayment = async (payment_id: string, name: string): Promise<boolean> => {
    const isNamed = (each: Thing) => each['client_reference_id'] === payment_id;
    if (!list('checkout.session').some(isNamed)) addForeign(payment_id);
    if (name === 'settled') await bank.pay(payment_id);
    else if (name === 'authorized') await bank.complete(payment_id, 'processing');
    else if (name === 'failed') await bank.fail(payment_id, 'card_declined');
    else return false;
    return true;
  };
  const reportRefund = async (refund_id: string, name: string): Promise<boolean> => {
    const metadata = { refund_id, instruction_id: refund_id };
    const payment_intent = 'CHECK-PAYMENT';
    const refund =
      bank.listRefunds(refund_id)[0] ?? createRefund({ payment_intent, amount: 1, metadata });
    if (name === 'settled') await bank.settleRefund(refund);
    else if (name === 'failed') await bank.failRefund(refund);
    else return false;
    return true;
  };
  /** Desk of `connector check`. */
  const serveDesk = async (path: string, text: string): Promise<Answer> => {
    if (path === '/desk/reports') {
      const { resource, resource_id, name } = JSON.parse(text);
      const report = { payment: reportPayment, refund: reportRefund }[resource as string];
      const isDone = (await report?.(resource_id, name)) ?? false;
      return { status: isDone ? 200 : 404, body: {} };
    }
    const id = decodeURIComponent(path.split('/').at(-1) ?? '');
    const effects = bank.listRefunds(id).map(({ amount, currency }) => ({
      ...{ amount, currency: String(currency).toUpperCase() },
    }));
    return { status: 200, body: { effects } };
  };
  /** Lets a check refund what its documents say was paid. */
  const openCheck = (): void => {
    const paid = createIntent({
      amount: 10 ** 9,
      currency: 'eur',
      metadata: {},
      status: 'succeeded',
    });
    addCharge(paid, 'succeeded', { type: 'ideal' });
    things.set('CHECK-PAYMENT', paid);
    state.cancelsProcessing = true;
  };

  /** Serves the page of a session, whose customer is led back once it is paid. */
  const servePage = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const session = get(String(request.url).slice(PAGES.length), 'checkout.session');
    if (request.method === 'POST' && session['status'] === 'open') {
      await bank.pay(session['client_reference_id']);
      return void response.writeHead(303, { Location: session['success_url'] }).end();
    }
    const headers = { 'Content-Type': 'text/html; charset=utf-8' };
    response.writeHead(200, headers).end(renderPage(session));
  };
  const getUrl = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy());
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { ...bank, url: getUrl(), openCheck };
}

/** Adds what Stripe says of every card. */
function withCard({ card, ...details }: Record<string, unknown>): Record<string, unknown> {
  return card === undefined ? details : { ...details, card: { ...CARD, ...Object(card) } };
}

const RETRY_AFTER = { 'Retry-After': '1' };

function refuse(status: number, type: string, code?: string, param?: string): Answer {
  return { status, body: { error: { type, code, param, message: 'As Stripe says.' } } };
}

/** Posts an event, by default with a fresh signature. */
export async function postEvent(
  event: Thing,
  { url, secret, ageSeconds = 0 }: { url: string; secret: string; ageSeconds?: number },
): Promise<Response> {
  const payload = JSON.stringify(event);
  const timestamp = Math.floor(Date.now() / 1_000) - ageSeconds;
  const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp });
  const headers = { 'Content-Type': 'application/json', 'Stripe-Signature': signature };
  return await fetch(url, { method: 'POST', body: payload, headers });
}

/** Reads `a[b]=1&c[0]=2`. */
export function decodeForm(text: string): Record<string, Loose> {
  const params: Record<string, Loose> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const path = name.replaceAll(']', '').split('[');
    let at = params;
    for (const part of path.slice(0, -1)) at = at[part] ??= {};
    at[path.at(-1) ?? ''] = value;
  }
  return params;
}

/** Page on which a customer pays, or reads why nothing can be paid. */
function renderPage({ id, status, amount_total, currency, ...session }: Thing): string {
  const amount = `${(amount_total / 100).toFixed(2)} ${String(currency).toUpperCase()}`;
  const [title, content] =
    status === 'open'
      ? [
          `Pay ${amount}`,
          `<form method="post"><button>Pay by ${session['payment_method_types'][0]}</button></form>
           <p><a href="${session['cancel_url']}">Back to the shop</a></p>`,
        ]
      : status === 'complete'
        ? ['You have paid already', `<p><a href="${session['success_url']}">Back</a></p>`]
        : ['This page has expired', `<p><a href="${session['cancel_url']}">Back</a></p>`];
  return `<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><title>Fake of Stripe Checkout</title>
<main><h1>${title}</h1>${content}<p>A fake of Stripe Checkout: nobody is charged. ${id}</p></main></html>`;
}
