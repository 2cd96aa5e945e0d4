import { randomUUID } from 'node:crypto';
import { WebhookEvent } from '../../src/domain/webhook/event';
import { makeSigningSecret } from '../../src/service/endpoints/secret';
import { sandboxBankDatabase } from '../../src/service/sandbox-bank/movements';
import { verifySignature } from '../../src/webhooks/signature';
import { assertWebhook } from '../support/contract';
import { useHook } from '../support/hook';
import { eventually } from '../support/http';
import { useService } from '../support/service';
import { COIN, IN_ETHER, openCryptoShop, useCryptoShop } from './crypto-setting';

/** Ten seconds at most, and as much again and more where the machine is busy. */
const PLAYED_WITHIN_MS = 90_000;
const service = useService({ autoplay: true });
const shop = useCryptoShop(service);
const hook = useHook(service);

const simulate = async (id: string, body: object) =>
  (await shop.post(`/v1/sandbox/crypto/payments/${id}/simulate`, body)).body;

const statusAfter = async (id: string, body: object) => (await simulate(id, body)).status;

describe('simulate', () => {
  test('pays by the amount: the status follows the sum', async () => {
    const { id, amount_due } = await shop.pay();
    const half = String(BigInt(amount_due) / 2n);
    const short = await simulate(id, { amount: half });
    expect(short).toMatchObject({ status: 'underpaid', amount_received: half });
    expect(short.deposits).toMatchObject([
      { amount: half, confirmations: 3, required_confirmations: 3, status: 'confirmed' },
    ]);
    expect(await statusAfter(id, { amount: half })).toBe('received');
    expect(await shop.events(id)).toEqual(['crypto.payment.underpaid', 'crypto.payment.received']);
  });

  test('reaches every state by its name', async () => {
    const { id: received, amount_due } = await shop.pay();
    expect(await simulate(received, { event: 'received' })).toMatchObject({
      status: 'received',
      amount_received: amount_due,
    });
    const { id: underpaid } = await shop.pay();
    expect(await statusAfter(underpaid, { event: 'underpaid' })).toBe('underpaid');
    expect(await statusAfter(underpaid, { event: 'received' })).toBe('received');
    const { id: held } = await shop.pay();
    expect(await statusAfter(held, { event: 'held' })).toBe('held');
    await shop.act('crypto_payment', held, 'release');
    await shop.until(held, 'received', ({ status }) => status === 'received');
    const { id: expired } = await shop.pay();
    expect(await statusAfter(expired, { event: 'expired' })).toBe('expired');
    expect(await shop.events(expired)).toEqual(['crypto.payment.expired']);
  });

  test('shows a deposit before it counts, confirms it, or takes it back', async () => {
    const { id } = await shop.pay();
    const amount = '7';
    const seen = await simulate(id, { amount, confirmations: 0 });
    expect(seen).toMatchObject({ status: 'awaiting_deposit', amount_received: '0' });
    expect(seen.deposits).toMatchObject([{ amount, confirmations: 0, status: 'pending' }]);
    expect((await simulate(id, { event: 'deposit_undone' })).deposits).toEqual([]);
    const [{ transaction_id }] = (await simulate(id, { amount, confirmations: 1 })).deposits;
    const confirmed = await simulate(id, { transaction_id });
    // The chain is asked about the source of a deposit that is known: it passes a moment later.
    expect(confirmed.deposits).toMatchObject([{ confirmations: 3 }]);
    await shop.until(id, 'underpaid', ({ status }) => status === 'underpaid');
    await simulate(id, { event: 'deposit_undone', transaction_id });
    await shop.attention(id, 'deposit_undone');
  });

  test('is for whole amounts only', async () => {
    const { id } = await shop.pay();
    const path = `/v1/sandbox/crypto/payments/${id}/simulate`;
    for (const body of [
      {},
      { amount: '1.5' },
      { amount: 1 },
      { amount: '-1' },
      { event: 'paid' },
    ]) {
      expect((await shop.post(path, body)).status).toBe(400);
    }
  });
});

/** Settlement that is sent, and of which nothing more is heard. */
const SILENT = '66643';

test('each of the six events reaches the merchant in one run: signed, whole, in order', async () => {
  const told = await openCryptoShop(service);
  await told.registerWallet();
  await hook.register(told);
  /** Brings it about, and waits for the event, as no delivery waits for another. */
  const happen = async (what: string, body: object) => {
    const before = hook.distinct().length;
    const answer = await told.post(`/v1/sandbox/crypto/${what}/simulate`, body);
    expect(answer.status).toBe(200);
    await eventually(`the event of ${what}`, async () => hook.distinct().length > before);
  };
  const settle = async () => {
    const { body } = await told.post('/v1/crypto/settlements', { ...COIN, amount: SILENT });
    const path = `/v1/crypto/settlements/${body.id}`;
    await eventually('sent', async () => (await told.get(path)).body.status === 'sent');
    return body.id;
  };
  const { id: paid } = await told.pay();
  const { id: held } = await told.pay();
  const { id: left } = await told.pay();
  await happen(`payments/${paid}`, { event: 'underpaid' });
  await happen(`payments/${paid}`, { event: 'received' });
  await happen(`payments/${held}`, { event: 'held' });
  await happen(`payments/${left}`, { event: 'expired' });
  const [completed, failed] = [await settle(), await settle()];
  await happen(`settlements/${completed}`, { event: 'completed' });
  await happen(`settlements/${failed}`, { event: 'failed', code: 'gone', reason: 'Gone.' });

  const events = hook.distinct().map(({ headers, body }) => {
    const header = String(headers['service-signature']);
    const delivery = { header, body, now: Date.now() / 1_000 };
    expect(verifySignature({ ...delivery, secret: hook.secret })).toBe(true);
    expect(verifySignature({ ...delivery, secret: makeSigningSecret() })).toBe(false);
    expect(headers['content-type']).toBe('application/json');
    const event = WebhookEvent.parse(JSON.parse(body));
    expect(headers['service-event-type']).toBe(event.type);
    return event;
  });
  expect(events.map(({ type, livemode, data }) => [type, livemode, data])).toEqual([
    ['crypto.payment.underpaid', false, { crypto_payment_id: paid }],
    ['crypto.payment.received', false, { crypto_payment_id: paid }],
    ['crypto.payment.held', false, { crypto_payment_id: held }],
    ['crypto.payment.expired', false, { crypto_payment_id: left }],
    ['crypto.settlement.completed', false, { crypto_settlement_id: completed }],
    ['crypto.settlement.failed', false, { crypto_settlement_id: failed }],
  ]);
  expect(new Set(events.map(({ id }) => id)).size).toBe(6);
  for (const event of events) await assertWebhook(service.url, event.type, event);
});

test('magic amounts play every course by themselves, and the books agree', async () => {
  const magic = {
    66631: 'received',
    66632: 'underpaid',
    66633: 'received',
    66634: 'received',
    66635: 'held',
    66636: 'received',
    66637: 'received',
    66638: 'awaiting_deposit',
  };
  const played = await openCryptoShop(service);
  const paid = await Promise.all(
    Object.entries(magic).map(async ([amount, status]) => {
      const { id, amount_due } = await played.pay({ amount: Number(amount) });
      return { id, amount: Number(amount), status, due: BigInt(amount_due) };
    }),
  );
  const end = await Promise.all(
    paid.map(({ id, amount, status }) =>
      eventually(
        `${amount} is ${status}`,
        async () => {
          const payment = await played.read(id);
          return payment.status === status && payment.deposits.length > 0 && payment;
        },
        PLAYED_WITHIN_MS,
      ),
    ),
  );
  const credited = end.reduce((sum, { amount_received }) => sum + BigInt(amount_received), 0n);
  const share = (amount: number, halves: bigint) =>
    ((paid.find((each) => each.amount === amount)?.due ?? 0n) * halves) / 2n;
  const due = [66631, 66633, 66636, 66637].reduce((sum, amount) => sum + share(amount, 2n), 0n);
  expect(credited).toBe(due + share(66632, 1n) + share(66634, 4n));
  expect((await played.balance()).available).toBe(String(credited));
  const undone = paid.find(({ amount }) => amount === 66637)?.id ?? '';
  await played.attention(undone, 'deposit_undone');
  const declined = await played.post('/v1/crypto/payments', { ...IN_ETHER, amount: 66639 });
  expect([declined.status, declined.body.error.code]).toEqual([422, 'asset_not_available']);
});

test('a person plays the payer, and the payer’s page follows', async () => {
  const { id, redirect_url } = await shop.pay();
  const kept = await service.stores.crypto_payments.get(id);
  const play = kept?.play_url ?? '';
  const page = await (await fetch(redirect_url)).text();
  expect(page).toContain(`href="${play}"`);
  const form = await (await fetch(play)).text();
  const nonce = /name="nonce" value="([^"]+)"/.exec(form)?.[1] ?? '';
  const send = (fields: Record<string, string>) =>
    fetch(`${play}/send`, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ nonce, course: 'confirms', ...fields }),
    });
  expect((await send({ amount: 'much' })).status).toBe(422);
  for (let presses = 0; presses < 2; presses += 1) {
    expect((await send({ amount: '0.05' })).status).toBe(303);
  }
  const seen = await shop.until(id, 'received', ({ status }) => status === 'received');
  expect(seen.deposits).toHaveLength(1);
  const after = await (await fetch(redirect_url)).text();
  expect(after).toContain('Payment received');
  expect(after).toContain('0.01 ETH more than was due');
  expect((await fetch(`${play}x`)).status).toBe(404);

  const nonces = Array.from({ length: 100 }, () => randomUUID());
  const wallets = service.mongo.db(sandboxBankDatabase(service.database));
  await wallets
    .collection<{ _id: string }>('chain_wallets')
    .updateOne({ _id: id }, { $set: { nonces } });
  const refused = await send({ amount: '0.05', nonce: randomUUID() });
  expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('100')]);
});

test('settlements leave by themselves, fail by their amount, and can be simulated', async () => {
  const payer = await openCryptoShop(service);
  await payer.registerWallet();
  const { id } = await payer.pay();
  await payer.post(`/v1/sandbox/crypto/payments/${id}/simulate`, { event: 'received' });
  const settle = async (amount: string) => {
    const { status, body } = await payer.post('/v1/crypto/settlements', { ...COIN, amount });
    expect(status).toBe(201);
    return body.id;
  };
  const read = async (settlement: string) =>
    (await payer.get(`/v1/crypto/settlements/${settlement}`)).body;
  const until = (settlement: string, status: string) =>
    eventually(`${settlement} is ${status}`, async () => {
      const found = await read(settlement);
      return found.status === status && found;
    });

  const [good, refused, dropped, silent, lost] = await Promise.all(
    ['1000000000000000', '66641', '66642', '66643', '66645'].map(settle),
  );
  expect((await until(good, 'completed')).transaction_id).toMatch(/^0x[0-9a-f]{64}$/);
  expect((await until(refused, 'failed')).failure.code).toBe('settlement_refused');
  expect((await until(dropped, 'failed')).failure.code).toBe('transaction_dropped');
  expect((await until(lost, 'completed')).failure).toBeNull();
  await until(silent, 'sent');
  const path = `/v1/sandbox/crypto/settlements/${silent}/simulate`;
  const simulated = await payer.post(path, { event: 'failed', code: 'gone', reason: 'Gone.' });
  expect(simulated.body).toMatchObject({ status: 'failed', failure: { code: 'gone' } });
  expect((await payer.verify()).differences).toEqual([]);
});
