import { randomUUID } from 'node:crypto';
import { findInList, readPage } from '../../../connectors/stripe/api';
import {
  acceptDispute,
  lookUpAcceptance,
  lookUpEvidence,
  submitEvidence,
} from '../../../connectors/stripe/disputes';
import { createEventReader, readWebhook } from '../../../connectors/stripe/events';
import { readFacts } from '../../../connectors/stripe/facts';
import { METHOD_IDS } from '../../../connectors/stripe/methods';
import { Event } from '../../../connectors/stripe/objects';
import { lookUpRefund, reversePayment, sendRefund } from '../../../connectors/stripe/refunds';
import { rehearse } from '../../../connectors/stripe/rehearse';
import { closeSession, openSession, voidPayment } from '../../../connectors/stripe/sessions';
import { listTransfers, makeStatement } from '../../../connectors/stripe/statements';
import { eventually } from '../../support/eventually';
import { useFixture } from '../../support/fixture';
import { useInbox } from '../../support/hook';
import { startLocalstripe } from '../../support/localstripe';
import { describeWith } from '../../support/python-tools';
import { describeWithStripeMock, startStripeMock } from '../../support/stripe-mock';
import { ACCOUNT } from './fake';
import { judge } from './judge';
import { buildPayment, openStripe, WEBHOOK_SECRET } from './world';

describeWithStripeMock('what Stripe’s own mock knows of the API', () => {
  const world = useFixture(openStripe, (opened) => opened.stop());
  const mock = useFixture(startStripeMock, ({ stop }) => stop());

  /** Has one dispute answered by evidence and won, and one accepted. */
  async function answerDisputes(): Promise<void> {
    const { bank, tools } = world;
    for (const by of ['evidence', 'acceptance']) {
      const payment = buildPayment();
      await openSession(payment, tools);
      const made = await bank.dispute(await bank.pay(payment.payment_id));
      await bank.withdraw(made);
      const { payment_id } = payment;
      const ids = { payment_id, dispute_id: `dp_${randomUUID()}`, bank_dispute_id: made.id };
      const input = { ...ids, instruction_id: `${by}:${made.id}`, version: 1, livemode: false };
      await (by === 'evidence' ? lookUpEvidence : lookUpAcceptance)(input, tools);
      if (by === 'acceptance') {
        await acceptDispute(input, tools);
        continue;
      }
      await submitEvidence(input, tools, {
        ...{ explanation: 'Signed for.', customer_reference: 'C-7', refund_reference: null },
        ...{ shipped_at: '2026-11-01T10:00:00Z', carrier: 'DHL', tracking_number: 'T-1' },
      });
      await bank.decide(made, 'won');
      await bank.reinstate(made);
    }
  }

  test('has every request of the connector and its rehearsal, and each answer and event of the fake', async () => {
    const { bank, tools } = world;
    for (const method of METHOD_IDS) await openSession(buildPayment({ method }), tools);
    const [paid, voucher, lost] = [
      buildPayment(),
      buildPayment({ method: 'multibanco' }),
      buildPayment(),
    ];
    for (const payment of [paid, voucher]) await openSession(payment, tools);
    bank.failNext('stored_500');
    await openSession(lost, tools).catch(() => undefined);
    await openSession(lost, tools).catch(() => undefined);
    await closeSession({ payment_id: lost.payment_id, bank_reference: null }, tools).catch(
      () => undefined,
    );
    await bank.complete(voucher.payment_id, 'requires_action');
    const { id: session } = bank.findSession(voucher.payment_id);
    await voidPayment({ payment_id: voucher.payment_id, bank_reference: session }, tools);
    const charge = await bank.pay(paid.payment_id);
    const refund = { ...paid, refund_id: randomUUID(), version: 1, amount: 100 };
    const payment_bank_reference = String(charge['balance_transaction']);
    bank.failNext('cut_after');
    await sendRefund({ ...refund, payment_bank_reference }, tools).catch(() => undefined);
    await lookUpRefund(refund, tools);
    await reversePayment({ ...refund, instruction_id: `reversal:${paid.payment_id}` }, tools);
    const debits = [buildPayment({ method: 'ideal' }), buildPayment({ method: 'ideal' })];
    for (const debit of debits) {
      const { payment_id } = debit;
      await openSession(debit, tools);
      await bank.complete(payment_id, 'processing');
      if (debit === debits[0]) await bank.fail(payment_id, 'card_declined');
      await voidPayment({ payment_id, bank_reference: null }, tools).catch(() => undefined);
    }
    for (const made of bank.listRefunds(refund.refund_id)) {
      await bank.settleRefund(made);
      await bank.failRefund(made);
    }
    const tooMuch = { ...refund, refund_id: randomUUID(), amount: 10 ** 6 };
    for (const fault of [[], ['limited'], ['cut_before']] as const) {
      bank.failNext(...fault);
      await sendRefund({ ...tooMuch, payment_bank_reference }, tools).catch(() => undefined);
      tools.pause.until = 0;
    }
    await answerDisputes();
    for (const thing of bank.things.values()) await readFacts(thing, tools);
    await readFacts({ object: 'charge', id: 'ch_000000unknown' }, tools);
    const read = createEventReader();
    for (let [page, cursor] = [0, null as string | null]; page < 7; page += 1) {
      cursor = (await read(cursor, tools)).cursor;
    }
    const day = { account: ACCOUNT, currency: 'EUR', since: new Date(0) };
    const period = { opening: null, isBooked: () => false, isCompared: true };
    bank.arrive(await bank.payOut(), 'TRACE-1');
    await bank.payOut({ amount: 100 });
    await makeStatement({ ...day, end: new Date(bank.now() * 1_000 + 1_000), ...period }, tools);
    await listTransfers(() => false, tools);
    const wrong: string[] = [];
    const step = (name: string, isRight: boolean) => {
      if (!isRight) wrong.push(name);
      const pending = [...bank.things.values()].filter((each) => each['status'] === 'pending');
      for (const each of pending) if (each.object === 'refund') void bank.settleRefund(each);
    };
    await rehearse(tools, step, 1);
    expect(wrong).toEqual([]);
    const { counts, faults } = await judge(bank, mock);
    if (process.env['STRIPE_COUNTS'] === 'yes') console.info(counts);
    expect(faults).toEqual([]);
    expect(
      Object.keys(counts)
        .filter((name) => /^[GP]/.test(name))
        .toSorted(),
    ).toEqual([
      'GET /v1/account',
      'GET /v1/balance',
      'GET /v1/balance_transactions',
      'GET /v1/balance_transactions/{id}',
      'GET /v1/charges/{id}',
      'GET /v1/checkout/sessions',
      'GET /v1/checkout/sessions/{id}',
      'GET /v1/disputes',
      'GET /v1/disputes/{id}',
      'GET /v1/events',
      'GET /v1/payment_intents/{id}',
      'GET /v1/payouts',
      'GET /v1/payouts/{id}',
      'GET /v1/refunds',
      'GET /v1/refunds/{id}',
      'POST /v1/checkout/sessions',
      'POST /v1/checkout/sessions/{id}/expire',
      'POST /v1/disputes/{id}',
      'POST /v1/disputes/{id}/close',
      'POST /v1/payment_intents',
      'POST /v1/payment_intents/{id}/cancel',
      'POST /v1/refunds',
    ]);
  });
});

describeWith('python3', 'a fake of Stripe that others wrote', () => {
  const world = useFixture(openStripe, (opened) => opened.stop());
  const local = useFixture(startLocalstripe, ({ stop }) => stop());
  const inbox = useInbox();

  test('signs webhooks, which count by the secret, and not by another or with other bytes', async () => {
    await local.listen(inbox.url, WEBHOOK_SECRET);
    await local.createCustomer();
    const [posted] = await eventually(
      'a webhook',
      async () => inbox.received.length > 0 && inbox.received,
    );
    const { headers, body } = posted as (typeof inbox.received)[number];
    const read = (text: string, secret = WEBHOOK_SECRET) => {
      const settings = { ...world.tools.settings, STRIPE_WEBHOOK_SECRET_FILE: secret };
      const request = { headers, body: Buffer.from(text), json: () => JSON.parse(text) };
      return readWebhook(request, { ...world.tools, settings });
    };
    expect(await read(body)).toEqual([]);
    expect(await read(body, `whsec_0000000000000000\n${WEBHOOK_SECRET}`)).toEqual([]);
    await expect(read(body, 'whsec_0000000000000000')).rejects.toMatchObject({ status: 400 });
    await expect(read(`${body} `)).rejects.toMatchObject({ status: 400 });
  });

  test('lists events in pages, of which each event is read once', async () => {
    for (let n = 0; n < 120; n += 1) await local.createCustomer();
    const { settings, ...tools } = world.tools;
    const own = { ...tools, settings: { ...settings, STRIPE_API_URL: local.url } };
    const read: string[] = [];
    const fits = ({ id }: { id: string }) => read.push(id) === 0;
    const list = { path: 'events', params: {} };
    expect(await findInList(own, list, Event, fits)).toBeUndefined();
    expect(new Set(read).size).toBe(read.length);
    expect(read.length).toBeGreaterThan(120);
    const { data, has_more } = await readPage(own, list, Event);
    expect([data.length, has_more]).toEqual([100, true]);
    expect(data.map(({ id }) => id)).toEqual(read.slice(0, 100));
  });
});
