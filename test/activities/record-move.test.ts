import type { PaymentTransition } from '../../activities/payments';
import type { SessionAnswer } from '../../connectors/contract/activities';
import type { PaymentAttention, PaymentStatus } from '../../src/domain/payment/payment';
import { retryTransient } from '../support/eventually';
import { useRecords } from '../support/records';
import { paymentInput } from '../support/workflow-setting';

/**
 * A workflow task that is lost takes the reports of all its writes with it, so each write may be
 * asked for again after later ones were made.
 */
const records = useRecords();

const SESSION = {
  outcome: 'opened',
  bank_reference: 'b',
  session_url: 'https://b.example',
} as const;

/** A payment that was opened, and the moves that can be asked for. */
async function opened() {
  const { return_url, expires_in_seconds, ...facts } = paymentInput('bank');
  const { payment_id, account_id, livemode, request_id } = facts;
  const customer = { reference: null, sealed: null };
  const urls = { success_url: 'https://s.example', error_url: 'https://e.example' };
  const stored = { reference: null, customer, metadata: '{}', ...urls };
  const routing = { ...facts, expires_in_seconds };
  const claim = { account_id, livemode, operation: 'createPayment', key: payment_id };
  await records.stores.idempotency.reserveKey(
    {
      ...claim,
      fingerprint: 'f',
      resource_id: payment_id,
      request_id,
      request: { stored, routing },
    },
    new Date(),
  );
  const created_at = new Date().toISOString();
  const return_to = 'https://pay.example/return';
  const open = (session: SessionAnswer | null = SESSION) => {
    const times = { created_at, expires_at: created_at };
    const input = { ...facts, ...times, session, return_url: return_to };
    return retryTransient(() => records.payments.openPayment(input));
  };
  const move = (
    status: PaymentStatus,
    version: number,
    to: PaymentStatus[],
    attention: PaymentAttention | null = null,
  ) => {
    const at = new Date().toISOString();
    const input: PaymentTransition = {
      resource_id: payment_id,
      account_id,
      livemode,
      request_id,
      at,
      to,
      change: {},
      from: { status, version },
      attention,
    };
    return retryTransient(() => records.payments.recordPaymentMove(input));
  };
  const types = async () => {
    const filter = { account_id, livemode, resource_id: payment_id, limit: 10 };
    return (await records.stores.events.list(filter)).map(({ type }) => type).reverse();
  };
  return { payment_id, open, move, types };
}

test('a move that was made is told so again, also under later moves', async () => {
  const { open, move, types, payment_id } = await opened();
  await open();
  await move('awaiting_customer', 2, ['authorized']);
  await move('authorized', 3, ['settled']);
  expect(await move('awaiting_customer', 2, ['authorized'])).toEqual({
    status: 'authorized',
    version: 3,
  });
  expect(await move('authorized', 3, ['settled'])).toEqual({ status: 'settled', version: 4 });
  expect(await types()).toHaveLength(3);
  expect(await records.stores.payments.get(payment_id)).toMatchObject({
    status: 'settled',
    version: 4,
  });
});

test('opening again answers as the first time, whatever has happened since', async () => {
  const { open, move } = await opened();
  const first = await open();
  await move('awaiting_customer', 2, ['failed']);
  expect(await open()).toEqual(first);
});

test('opening again answers by the record, not by what the bank says this time', async () => {
  const slow = await opened();
  const created = await slow.open(null);
  expect(created).toMatchObject({ status: 'created', version: 1 });
  expect(await slow.open()).toEqual(created);
  const quick = await opened();
  const first = await quick.open();
  expect(await quick.open(null)).toEqual(first);
  expect(await quick.open({ outcome: 'declined', code: 'no', message: 'No.' })).toEqual(first);
});

test('opening again after its claim is gone answers as the payment is now', async () => {
  const { open, move, payment_id } = await opened();
  await open();
  await move('awaiting_customer', 2, ['authorized']);
  const claims = records.db.collection('idempotency');
  await claims.deleteOne({ resource_id: payment_id });
  const standing = { status: 'authorized', version: 3, verification: 'checked' };
  expect(await open(null)).toEqual(standing);
});

test('a record that has made the first of several moves is brought to the last', async () => {
  const { open, move, types } = await opened();
  await open();
  await move('awaiting_customer', 2, ['authorized']);
  const healed = await move('awaiting_customer', 2, ['authorized', 'settled']);
  expect(healed).toEqual({ status: 'settled', version: 4 });
  expect(await types()).toEqual([
    'payment.awaiting_customer',
    'payment.authorized',
    'payment.settled',
  ]);
});

test('a record that is ahead in another way is told of, and nothing is moved', async () => {
  const { open, move, types } = await opened();
  await open();
  await move('awaiting_customer', 2, ['authorized']);
  expect(await move('awaiting_customer', 2, ['cancelled'])).toEqual({
    status: 'authorized',
    version: 3,
    stale: { attention: null },
  });
  expect(await types()).toEqual(['payment.awaiting_customer', 'payment.authorized']);
});

test('a record that is behind is waited for: nothing is moved', async () => {
  const { open, move, types } = await opened();
  await open();
  await expect(move('authorized', 3, ['settled'])).rejects.toThrow(
    /is not where this transition begins/,
  );
  expect(await types()).toEqual(['payment.awaiting_customer']);
});

describe('a mark', () => {
  const marked = async (id: string) => (await records.stores.payments.get(id))?.attention;
  const markings = (resource_id: string) => (attention: PaymentAttention, attention_at: number) =>
    records.payments.recordPaymentAttention({
      ...{ resource_id, request_id: 'req-1', version: 2, attention, audit: null },
      attention_at,
    });

  test('is not hidden by an older one that lands late', async () => {
    const { open, payment_id } = await opened();
    await open();
    const mark = markings(payment_id);
    await mark('late_money_pending', 10);
    await mark('late_settlement_reversed', 20);
    await mark('late_money_pending', 10);
    expect(await marked(payment_id)).toBe('late_settlement_reversed');
    expect(
      await records.payments.loadPayment({ resource_id: payment_id, request_id: 'req-2' }),
    ).toMatchObject({ attention_at: 20 });
  });

  test('that a lost task set for an earlier version is written with its repeated move', async () => {
    const { open, move, payment_id } = await opened();
    await open();
    await move('awaiting_customer', 2, ['authorized']);
    // The same again, after a callback that the first task had not met.
    await markings(payment_id)('amount_differs', 10);
    expect(await marked(payment_id)).toBeNull();
    await move('awaiting_customer', 2, ['authorized'], 'amount_differs');
    expect(await marked(payment_id)).toBe('amount_differs');
    // An attempt that is late hides no later reason, and brings back none that was acknowledged.
    const { version = 0 } = (await records.stores.payments.get(payment_id)) ?? {};
    const cleared = { version, attention: null, audit: null, attention_at: Date.now() + 60_000 };
    await records.stores.payments.setAttention(payment_id, cleared);
    await move('awaiting_customer', 2, ['authorized'], 'amount_differs');
    expect(await marked(payment_id)).toBeNull();
  });

  test('of an operator is kept once, and told where the record has moved on', async () => {
    const { open, move, payment_id } = await opened();
    await open();
    const mark = markings(payment_id);
    const act = (id: string, version: number) =>
      records.payments.recordPaymentAttention({
        ...{
          resource_id: payment_id,
          request_id: 'req-1',
          version,
          attention: null,
          attention_at: 30,
        },
        audit: { id, who: 'ada', what: 'snooze', why: 'asked', at: new Date().toISOString() },
      });
    await mark('malformed_callback', 40);
    expect(await act('one', 2)).toBeUndefined();
    expect(await act('one', 2)).toBeUndefined();
    await mark('settlement_overdue', 35);
    expect(await marked(payment_id)).toBeNull();
    await expect(act('two', 3)).rejects.toThrow(/does not have the version of this act/);
    await move('awaiting_customer', 2, ['authorized']);
    expect(await act('one', 2)).toBeUndefined();
    const ahead = { status: 'authorized', version: 3, stale: { attention: null } };
    expect(await act('three', 2)).toEqual(ahead);
    expect((await records.stores.payments.get(payment_id))?.audit).toHaveLength(1);
  });
});

test('a move that no table lists is refused where it is written, and moves nothing', async () => {
  const { open, move, types, payment_id } = await opened();
  await open();
  await expect(move('awaiting_customer', 2, ['settled'])).rejects.toThrow(
    'There is no transition from awaiting_customer to settled.',
  );
  expect(await types()).toEqual(['payment.awaiting_customer']);
  expect(await records.stores.payments.get(payment_id)).toMatchObject({ version: 2 });
});

test('the same move asked for by many at once is made once', async () => {
  const { open, move, types } = await opened();
  await Promise.all(Array.from({ length: 8 }, () => open()));
  const made = await Promise.all(
    Array.from({ length: 8 }, () => move('awaiting_customer', 2, ['authorized', 'settled'])),
  );
  expect(new Set(made.map(({ version }) => version))).toEqual(new Set([4]));
  expect(await types()).toHaveLength(3);
});
