import { randomUUID } from 'node:crypto';
import Stripe from 'stripe';
import { findInList } from '../../../../connectors/stripe/api';
import { createEventReader, readWebhook } from '../../../../connectors/stripe/events';
import { readFacts } from '../../../../connectors/stripe/facts';
import { Event } from '../../../../connectors/stripe/objects';
import { lookUpRefund, reversePayment, sendRefund } from '../../../../connectors/stripe/refunds';
import { closeSession, openSession, voidPayment } from '../../../../connectors/stripe/sessions';
import { useFixture } from '../../../support/fixture';
import type { Fault, Thing } from '../fake';
import { buildPayment, drain as drainAll, openStripe, WEBHOOK_SECRET } from '../world';

const HOUR_MS = 3_600_000;
const world = useFixture(openStripe, (opened) => opened.stop());

/** Opens the session of a payment. */
async function open(change: object = {}) {
  const payment = buildPayment(change);
  const answer = await openSession(payment, world.tools);
  if (answer.outcome !== 'opened') throw new Error(`answered ${answer.outcome}`);
  const { bank_reference } = answer;
  return { ...payment, bank_reference };
}

const buildRefund = ({ payment_id }: { payment_id: string }, reference: string, amount = 400) => ({
  ...{ refund_id: randomUUID(), version: 1, payment_id, payment_bank_reference: reference, amount },
  ...{ currency: 'EUR', method: 'visa', livemode: false },
});

/** Pays a payment. @returns it, and the reference under which its money came */
async function pay(change: object = {}) {
  const payment = await open(change);
  const charge = await world.bank.pay(payment.payment_id);
  return { ...payment, charge, reference: String(charge['balance_transaction']) };
}

const read = async (thing: Thing | { object: string; id: string }) =>
  (await readFacts(thing, world.tools)).reports;

describe('a session', () => {
  test('has the ID of the payment, its method alone, and an end after that of the payment', async () => {
    const { payment_id, expires_at } = await open();
    const { params, expires_at: end, ...session } = world.bank.findSession(payment_id);
    expect(session).toMatchObject({ client_reference_id: payment_id, amount_total: 1_000 });
    const metadata = { payment_id, method: 'visa' };
    const brands_blocked = { 0: 'mastercard', 1: 'american_express', 2: 'discover_global_network' };
    expect(params).toMatchObject({
      ...{ payment_method_types: { 0: 'card' }, metadata },
      payment_intent_data: { capture_method: 'automatic', metadata },
      payment_method_options: { card: { restrictions: { brands_blocked } } },
    });
    expect(end).toBe(Math.floor(Date.parse(expires_at) / 1_000) + 31 * 60);
  });

  test('of a payment that may take days ends after one, the longest that Stripe allows', async () => {
    const expires_at = new Date(Date.now() + 72 * HOUR_MS).toISOString();
    const { payment_id } = await open({ method: 'multibanco', expires_at });
    const { expires_at: end, created } = world.bank.findSession(payment_id);
    expect(end - created).toBeGreaterThan(23.9 * 3_600);
  });

  test('is repeated under the same key, with the same request, also at the end', async () => {
    const payment = buildPayment();
    world.bank.failNext('cut_after');
    await expect(openSession(payment, world.tools)).rejects.toThrow('does not answer');
    world.bank.advance(29 * 60_000);
    const answer = await openSession(payment, world.tools);
    expect(answer).toMatchObject({ bank_reference: world.bank.findSession(payment.payment_id).id });
  });

  test('whose failure Stripe has stored is found, or opened under the next key', async () => {
    for (const fault of ['stored_500', 'stored_500_after'] as const satisfies readonly Fault[]) {
      const payment = buildPayment();
      world.bank.failNext(fault);
      const tries: string[] = [];
      const requests = world.bank.requests.length;
      for (const _try of [1, 2, 3]) {
        const answer = await openSession(payment, world.tools).catch(() => undefined);
        tries.push(answer?.outcome ?? 'failed');
        if (answer !== undefined) break;
      }
      const keys = world.bank.requests
        .slice(requests)
        .flatMap(({ method, headers }) => (method === 'POST' ? headers['idempotency-key'] : []));
      const { payment_id: id } = payment;
      const isMade = fault === 'stored_500_after';
      expect(tries).toEqual(isMade ? ['failed', 'opened'] : ['failed', 'failed', 'opened']);
      expect(keys).toEqual(isMade ? [id, id] : [id, id, `${id}:2`]);
    }
  });

  test('is closed, also where its answer got lost, until its customer has paid or money is under way', async () => {
    const { bank, tools } = world;
    const unpaid = await open();
    const voucher = await open({ method: 'multibanco' });
    const intent = await bank.complete(voucher.payment_id, 'requires_action');
    const debit = await open({ method: 'ideal' });
    await bank.complete(debit.payment_id, 'processing');
    const paid = await pay();
    const lost = { ...buildPayment(), bank_reference: null };
    bank.failNext('cut_after');
    await expect(openSession(lost, tools)).rejects.toThrow();
    const answers = { closed: [unpaid, voucher, lost], already_authorized: [debit, paid] };
    for (const [outcome, payments] of Object.entries(answers)) {
      for (const payment of [...payments, ...payments]) {
        expect(await closeSession(payment, tools)).toEqual({ outcome });
      }
    }
    for (const { payment_id } of [unpaid, lost]) {
      expect(bank.findSession(payment_id)['status']).toBe('expired');
    }
    expect(intent).toMatchObject({ status: 'canceled', cancellation_reason: 'abandoned' });
    // The end of what the service has closed is no news.
    expect(await read(bank.findSession(unpaid.payment_id))).toEqual([]);
    expect(await read(bank.findSession(voucher.payment_id))).toEqual([]);
  });

  test('of a late payment is voided until its money has come, and then given back once', async () => {
    const { bank, tools } = world;
    const voucher = await open({ method: 'multibanco' });
    await bank.complete(voucher.payment_id, 'requires_action');
    expect(await voidPayment(voucher, tools)).toEqual({ outcome: 'voided' });
    const debit = await open({ method: 'ideal' });
    await bank.complete(debit.payment_id, 'processing');
    await expect(voidPayment(debit, tools)).rejects.toThrow('ask again');
    await bank.pay(debit.payment_id);
    const money = { amount: 1_000, currency: 'EUR' };
    expect(await voidPayment(debit, tools)).toEqual({ outcome: 'already_settled', ...money });
    const { payment_id } = debit;
    const instruction = { payment_id, instruction_id: `reversal:${payment_id}`, ...money };
    const answer = await reversePayment(instruction, tools);
    expect(answer.outcome).toBe('accepted');
    expect(await reversePayment(instruction, tools)).toEqual(answer);
    const [refund, ...others] = bank.listRefunds(instruction.instruction_id);
    expect(others).toEqual([]);
    const other = { ...instruction, instruction_id: `reversal:${payment_id}:2`, currency: 'PLN' };
    const differs = { outcome: 'refused', code: 'currency_differs' };
    expect(await reversePayment(other, tools)).toMatchObject(differs);
    await bank.settleRefund(refund as Thing);
    expect(await read(refund as Thing)).toMatchObject([
      { resource: 'payment', resource_id: payment_id, name: 'reversed', callback: money },
    ]);
  });
});

describe('a refund', () => {
  test('without an answer for 23 hours is not sent again, but found', async () => {
    const { reference, ...payment } = await pay();
    const { bank, tools } = world;
    const [lost, made] = [buildRefund(payment, reference), buildRefund(payment, reference)];
    bank.failNext('cut_before');
    await expect(sendRefund(lost, tools)).rejects.toThrow();
    bank.failNext('cut_after');
    await expect(sendRefund(made, tools)).rejects.toThrow();
    bank.advance(25 * HOUR_MS);
    await expect(sendRefund(lost, tools)).rejects.toThrow('an operator has to decide');
    expect(bank.listRefunds(lost.refund_id)).toEqual([]);
    expect(await sendRefund(made, tools)).toMatchObject({ outcome: 'accepted' });
    expect(bank.listRefunds(made.refund_id)).toHaveLength(1);
  });

  test('that Stripe shows late after a stored failure is found as its repeat is refused', async () => {
    const { reference, ...payment } = await pay();
    const { bank, tools } = world;
    const refund = buildRefund(payment, reference, 1_000);
    bank.failNext('stored_500_after');
    await expect(sendRefund(refund, tools)).rejects.toThrow();
    const [made] = bank.listRefunds(refund.refund_id) as [Thing];
    await tools.book.note(refund.refund_id, { key: `${refund.refund_id}:2` });
    const accepted = { outcome: 'accepted', bank_reference: made.id };
    expect(await sendRefund(refund, tools)).toEqual(accepted);
    expect(bank.listRefunds(refund.refund_id)).toEqual([made]);
  });

  test('of what an operator has credited is of its session, also where the service has no reference', async () => {
    const payment = await pay();
    for (const reference of [payment.bank_reference, '', null]) {
      const refund = { ...buildRefund(payment, '', 100), payment_bank_reference: reference };
      expect(await sendRefund(refund, world.tools)).toMatchObject({ outcome: 'accepted' });
      const [made] = world.bank.listRefunds(refund.refund_id);
      expect(made).toMatchObject({ charge: payment.charge.id });
    }
    const unknown = buildRefund({ payment_id: randomUUID() }, '');
    await expect(sendRefund(unknown, world.tools)).rejects.toThrow('no reference of Stripe');
  });

  test('whose second key stores a failure, too, is never sent under a third', async () => {
    const { reference, ...payment } = await pay();
    const { bank, tools } = world;
    const refund = buildRefund(payment, reference);
    bank.failNext('stored_500');
    const requests = bank.requests.length;
    for (let tried = 0; tried < 6; tried += 1) {
      // The third attempt is the first one under the second key.
      if (tried === 2) bank.failNext('stored_500');
      await expect(sendRefund(refund, tools)).rejects.toThrow('answered 500');
    }
    const keys = bank.requests
      .slice(requests)
      .flatMap(({ method, headers }) => (method === 'POST' ? headers['idempotency-key'] : []));
    const { refund_id: id } = refund;
    expect(keys).toEqual([id, id, ...Array(4).fill(`${id}:2`)]);
    expect(bank.listRefunds(id)).toEqual([]);
  });

  test('is refused for what no repeat changes, and tried again for the rest', async () => {
    const { reference, charge, ...payment } = await pay();
    const { tools } = world;
    const send = (amount: number) => sendRefund(buildRefund(payment, reference, amount), tools);
    expect(await send(1_001)).toMatchObject({ outcome: 'refused', code: 'amount_too_large' });
    expect(await send(1_000)).toMatchObject({ outcome: 'accepted' });
    expect(await send(1)).toMatchObject({ outcome: 'refused', code: 'charge_already_refunded' });
    const other = await pay();
    Object.assign(other.charge, { disputed: true });
    const disputed = buildRefund(other, other.reference);
    expect(await sendRefund(disputed, tools)).toMatchObject({ code: 'charge_disputed' });
    await expect(sendRefund(buildRefund(payment, 'pi_unknown'), tools)).rejects.toThrow(
      'resource_missing',
    );
    expect(charge['amount']).toBe(1_000);
  });

  test('may fail after it has succeeded, each with a movement of its own', async () => {
    const { reference, ...payment } = await pay();
    const { bank, tools } = world;
    const refund = buildRefund(payment, reference);
    await sendRefund(refund, tools);
    const [made] = bank.listRefunds(refund.refund_id) as [Thing];
    expect(await read(made)).toEqual([]);
    await bank.settleRefund(made);
    const subject = { resource: 'refund', resource_id: refund.refund_id };
    const [settled] = await read(made);
    expect(settled).toMatchObject({
      ...{ ...subject, name: 'settled' },
      callback: { bank_reference: made['balance_transaction'], amount: 400, currency: 'EUR' },
    });
    await bank.failRefund(made, 'lost_or_stolen_card');
    const [again, failed, ...others] = await read(made);
    expect([again, others]).toEqual([settled, []]);
    const bank_reference = made['failure_balance_transaction'];
    const callback = { bank_reference, code: 'lost_or_stolen_card' };
    expect(failed).toMatchObject({ ...subject, name: 'failed', callback });
    expect(await lookUpRefund(refund, tools)).toMatchObject({ outcome: 'accepted' });
  });

  test.each([
    [true, ['settled', 'failed']],
    [false, ['failed']],
  ])('that fails unread, with its money taken (%p), is reported as %j', async (isTaken, names) => {
    const { reference, ...payment } = await pay();
    const { bank, tools } = world;
    const refund = buildRefund(payment, reference);
    await sendRefund(refund, tools);
    const [made] = bank.listRefunds(refund.refund_id) as [Thing];
    if (isTaken) bank.takeRefund(made);
    expect(await read(made)).toEqual([]);
    await bank.failRefund(made);
    const reports = await read(made);
    expect(reports.map(({ name }) => name)).toEqual(names);
    const booked = [...bank.things.values()].filter(({ source }) => source === made.id);
    const lines = booked.map(({ id }) => id);
    const references = reports.flatMap(({ callback }) => callback.bank_reference ?? []);
    expect(references).toEqual(lines);
    expect(await read(made)).toEqual(reports);
  });
});

describe('a fact', () => {
  test('of a charge is its balance transaction, and there is none until Stripe has booked it', async () => {
    const { bank } = world;
    bank.state.booksLate = true;
    const { payment_id, charge } = await pay({ method: 'ideal' });
    bank.state.booksLate = false;
    expect(await readFacts(charge, world.tools)).toEqual({ reports: [], isUnbooked: true });
    const { id, created, available_on: ready } = bank.book(charge);
    const at = new Date(created * 1_000).toISOString();
    const available_on = new Date(ready * 1_000).toISOString().slice(0, 10);
    const settled = {
      ...{ resource: 'payment', resource_id: payment_id, name: 'settled' },
      callback: {
        ...{ callback_id: id, bank_reference: id, occurred_at: at, value_date: at.slice(0, 10) },
        ...{ amount: 1_000, currency: 'EUR', fee: 40, available_on },
      },
    };
    // The same in each object that has it.
    const intent = { object: 'payment_intent', id: charge['payment_intent'] };
    for (const thing of [charge, intent, bank.findSession(payment_id)]) {
      expect(await read(thing)).toEqual([settled]);
    }
  });

  test.each([
    ['visa', { type: 'card', card: { brand: 'visa' } }, undefined],
    ['visa', { type: 'card', card: { brand: 'mastercard' } }, 'method_differs'],
    ['amex', { type: 'link' }, 'method_differs'],
    ['ideal', { type: 'ideal', ideal: {} }, undefined],
  ])('of %s paid by %j has the code %s', async (method, details, code) => {
    const { payment_id } = await open({ method });
    const charge = await world.bank.pay(payment_id, { details });
    expect((await read(charge))[0]?.callback.code).toBe(code);
  });

  test('in another currency is reported as Stripe has booked it', async () => {
    const { payment_id } = await open();
    const booked = { amount: 4_310, currency: 'pln' };
    const charge = await world.bank.pay(payment_id, { booked });
    expect((await read(charge))[0]?.callback).toMatchObject({ amount: 4_310, currency: 'PLN' });
  });

  test('of a debit is `authorized` while it is processed, of a voucher nothing, until it fails', async () => {
    const { bank } = world;
    const voucher = await open({ method: 'multibanco' });
    await bank.complete(voucher.payment_id, 'requires_action');
    expect(await read(bank.findSession(voucher.payment_id))).toEqual([]);
    const debit = await open({ method: 'ideal' });
    const { id } = await bank.complete(debit.payment_id, 'processing');
    const session = bank.findSession(debit.payment_id);
    expect(await read(session)).toMatchObject([
      { name: 'authorized', callback: { callback_id: `${id}:processing`, bank_reference: id } },
    ]);
    await bank.fail(debit.payment_id, 'a code that quotes Ada');
    expect(await read(session)).toMatchObject([
      { name: 'failed', callback: { callback_id: `${session.id}:failed`, code: 'failed' } },
    ]);
  });

  test('of a session that Stripe has expired is `expired`', async () => {
    const { payment_id } = await open();
    await world.bank.expire(payment_id);
    expect(await read(world.bank.findSession(payment_id))).toMatchObject([{ name: 'expired' }]);
  });

  test('of an object of the other mode is reported, and ends nothing', async () => {
    const { bank, errors } = world;
    bank.state.livemode = true;
    const { charge } = await pay();
    bank.state.livemode = false;
    errors.splice(0);
    expect(await read(charge)).toEqual([]);
    expect(errors).toEqual([{ object: charge.id }]);
  });

  test('of objects that are not ours is nothing', async () => {
    const { bank } = world;
    const { payment_id } = await open();
    bank.findSession(payment_id)['params'].payment_intent_data.metadata = { payment_id: '7' };
    expect(await read(await bank.pay(payment_id))).toEqual([]);
    expect(await read({ object: 'charge', id: 'ch_unknown' })).toEqual([]);
    expect(await read({ object: 'customer', id: 'cus_1' })).toEqual([]);
  });
});

describe('a webhook', () => {
  const sign = (payload: string, secret = WEBHOOK_SECRET, timestamp?: number) =>
    Stripe.webhooks.generateTestHeaderString({
      ...{ payload, secret },
      ...(timestamp === undefined ? {} : { timestamp }),
    });
  const post = (event: Thing | string, signature?: string, secrets = WEBHOOK_SECRET) => {
    const payload = typeof event === 'string' ? event : JSON.stringify(event);
    const headers = { 'stripe-signature': signature ?? sign(payload) };
    const settings = { ...world.tools.settings, STRIPE_WEBHOOK_SECRET_FILE: secrets };
    const request = { headers, body: Buffer.from(payload), json: () => JSON.parse(payload) };
    return readWebhook(request, { ...world.tools, settings });
  };
  const last = () => world.bank.events[0] as Thing;

  test('is a hint, of which only the object is taken, in any order and as often as it comes', async () => {
    const { payment_id } = await pay();
    const event = last();
    const [first] = await post(event);
    expect(first).toMatchObject({ resource_id: payment_id, name: 'settled' });
    const changed = structuredClone(event);
    changed['data'].object.amount_total = 1;
    expect(await post(changed)).toEqual([first]);
    expect(await post({ ...event, type: 'customer.created' })).toEqual([]);
  });

  test('is refused unless one of the secrets has signed its bytes within five minutes', async () => {
    await pay();
    const event = last();
    const payload = JSON.stringify(event);
    const old = Math.floor(Date.now() / 1_000) - 301;
    for (const signature of [sign(payload, 'whsec_x'), sign(payload, WEBHOOK_SECRET, old), '']) {
      await expect(post(payload, signature)).rejects.toMatchObject({ status: 400 });
    }
    await expect(post(`${payload} `, sign(payload))).rejects.toMatchObject({ status: 400 });
    // While the secret is rolled, both count.
    const both = `${WEBHOOK_SECRET}\nwhsec_new`;
    expect(await post(payload, sign(payload, 'whsec_new'), both)).toHaveLength(1);
  });

  test('of the other mode is reported, and nothing is read for it', async () => {
    await pay();
    world.errors.splice(0);
    expect(await post({ ...last(), livemode: true })).toEqual([]);
    expect(world.errors).toHaveLength(1);
  });
});

describe('the list of events', () => {
  const drain = (reader: ReturnType<typeof createEventReader>, from: string | null) =>
    drainAll(reader, from, world.tools);

  test('is read once the lists are walked through, and each read begins ten minutes before the newest event', async () => {
    const reader = createEventReader();
    const before = await pay();
    const first = await drain(reader, null);
    expect(first.ids).toContain(before.payment_id);
    const { payment_id } = await pay();
    const second = await drain(reader, first.cursor);
    expect(second.ids).toContain(payment_id);
    // What was delivered is not read again by this process, but by the next one.
    expect((await drain(reader, second.cursor)).ids).toEqual([]);
    expect((await drain(createEventReader(), second.cursor)).ids).toContain(payment_id);
    // What was not delivered is.
    const third = await pay();
    await drain(reader, second.cursor);
    expect((await drain(reader, second.cursor)).ids).toContain(third.payment_id);
  });

  test('is read again where Stripe had not booked the money', async () => {
    const reader = createEventReader();
    const { cursor } = await drain(reader, null);
    world.bank.state.booksLate = true;
    const { payment_id, charge } = await pay();
    world.bank.state.booksLate = false;
    const early = await drain(reader, cursor);
    expect(early.ids).not.toContain(payment_id);
    world.bank.book(charge);
    expect((await drain(reader, early.cursor)).ids).toContain(payment_id);
  });

  test('has what cannot be read set aside, and keeps nothing else back, also in a walk', async () => {
    const { bank } = world;
    const reader = createEventReader();
    const { cursor } = await drain(reader, null);
    const broken = await pay();
    const booked = bank.things.get(broken.reference) as Thing;
    Object.assign(booked, { amount: 'ten' });
    const { payment_id } = await pay();
    bank.events.unshift({ ...(bank.events[0] as Thing), id: 'evt_broken', data: { object: 7 } });
    const page = await reader(cursor, world.tools);
    expect(page.reports.map(({ resource_id }) => resource_id)).toContain(payment_id);
    const why = expect.stringContaining('balance_transaction.amount does not fit');
    expect(page.malformed).toEqual([
      { id: 'evt_broken', why: 'The list has data.object that does not fit.' },
      ...Array(2).fill({ id: expect.stringMatching(/^evt_\d/), why }),
    ]);
    const walk = await createEventReader()(null, world.tools);
    expect(walk.malformed).toEqual([{ id: booked.id, why }]);
    expect(walk.reports.map(({ resource_id }) => resource_id)).toContain(payment_id);
    bank.events.shift();
    Object.assign(booked, { amount: 1_000 });
  });

  test('names objects of other systems, which are not read', async () => {
    const { bank } = world;
    const { payment_id } = await open();
    const session = bank.findSession(payment_id);
    Object.assign(session, { metadata: {} });
    session['params'].payment_intent_data.metadata = { order: '7' };
    const { id } = await bank.pay(payment_id);
    const reader = createEventReader();
    const { cursor } = await drain(reader, null);
    await drain(reader, cursor);
    const read = bank.requests.filter(({ path }) => path.includes(id) || path.includes(session.id));
    expect(read).toEqual([]);
  });

  test('of several pages is read to its end, each event once', async () => {
    const { bank, tools } = world;
    const { payment_id } = await open();
    const session = bank.findSession(payment_id);
    for (let made = 0; made < 220; made += 1) await bank.emit('customer.created', session);
    const read: string[] = [];
    const fits = ({ id }: { id: string }) => read.push(id) === 0;
    const list = { path: 'events', params: {} };
    expect(await findInList(tools, list, Event, fits)).toBeUndefined();
    expect(read).toEqual(bank.events.map(({ id }) => id));
    bank.events.splice(0, 220);
  });

  test('is replaced by a walk after 29 days, in which its events were lost', async () => {
    const reader = createEventReader();
    const { cursor } = await drain(reader, null);
    const { payment_id } = await pay();
    world.bank.events.splice(0);
    expect((await drain(reader, cursor)).ids).not.toContain(payment_id);
    world.bank.advance(29 * 24 * HOUR_MS + HOUR_MS);
    expect((await drain(createEventReader(), cursor)).ids).toContain(payment_id);
  });
});

test('after a 429 nothing is sent until the time that Stripe has named', async () => {
  const { bank, tools } = world;
  bank.failNext('limited');
  await expect(open()).rejects.toThrow('answered 429');
  const { length } = bank.requests;
  await expect(open()).rejects.toThrow('asked to wait');
  expect(bank.requests).toHaveLength(length);
  tools.pause.until = 0;
  await open();
});
