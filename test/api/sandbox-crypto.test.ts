import { randomUUID } from 'node:crypto';
import { WebhookEvent } from '../../src/domain/webhook/event';
import { makeSigningSecret } from '../../src/service/endpoints/secret';
import { sandboxBankDatabase } from '../../src/service/sandbox-bank/movements';
import { verifySignature } from '../../src/webhooks/signature';
import { assertWebhook } from '../support/contract';
import { useHook } from '../support/hook';
import { eventually } from '../support/http';
import { useService } from '../support/service';
import { advance, between, repeatIfBehind, SECOND_MS } from './clock-setting';
import { ASSET, IN_ETHER, openCryptoShop, useCryptoShop } from './crypto-setting';

/** Ten seconds at most, and as much again and more where the machine is busy. */
const PLAYED_WITHIN_MS = 90_000;

// Only with autoplay does the sandbox play the scripts of magic amounts.
const service = useService({ autoplay: true });
const shop = useCryptoShop(service);
const hook = useHook(service);

const postSimulation = (id: string, body: object) =>
  shop.post(`/v1/sandbox/crypto/payments/${id}/simulate`, body);
const simulate = async (id: string, body: object) => (await postSimulation(id, body)).body;

/** Reads the form that a payer fills in, and sends it with other fields. */
async function openPlayPage(url: string) {
  const page = await (await fetch(url)).text();
  const [, nonce = ''] = /name="nonce" value="([^"]+)"/.exec(page) ?? [];
  const [, amount = ''] = /name="amount"[^>]*value="([^"]+)"/.exec(page) ?? [];
  return (fields: Record<string, string> = {}) =>
    fetch(`${url}/send`, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ nonce, amount, course: 'confirms', ...fields }),
    });
}

describe('a simulation of a crypto payment', () => {
  test('by amount lets the status follow the sum of the deposits', async () => {
    const { id, amount_due } = await shop.pay();
    const half = String(BigInt(amount_due) / 2n);
    const short = await simulate(id, { amount: half });
    expect(short).toMatchObject({ status: 'underpaid', amount_received: half });
    expect(short.deposits).toMatchObject([
      { amount: half, confirmations: 3, required_confirmations: 3, status: 'confirmed' },
    ]);
    expect((await simulate(id, { amount: half })).status).toBe('received');
    expect(await shop.events(id)).toEqual(['crypto.payment.underpaid', 'crypto.payment.received']);
  });

  test.each([[['received']], [['underpaid', 'received']], [['held']], [['expired']]])(
    'by event leads to %j',
    async (statuses) => {
      const { id, amount_due } = await shop.pay();
      for (const status of statuses) {
        expect((await simulate(id, { event: status })).status).toBe(status);
      }
      if (statuses.includes('held')) {
        await shop.act('crypto_payment', id, 'release');
        await shop.untilStatus(id, 'received');
        return;
      }
      expect(await shop.events(id)).toEqual(statuses.map((status) => `crypto.payment.${status}`));
      if (statuses[0] === 'received')
        expect((await shop.read(id)).amount_received).toBe(amount_due);
    },
  );

  test('shows a deposit before it is confirmed, confirms it, or reorgs it', async () => {
    const { id } = await shop.pay();
    const amount = '7';
    const seen = await simulate(id, { amount, confirmations: 0 });
    expect(seen).toMatchObject({ status: 'awaiting_deposit', amount_received: '0' });
    expect(seen.deposits).toMatchObject([{ amount, confirmations: 0, status: 'pending' }]);
    expect((await simulate(id, { event: 'deposit_undone' })).deposits).toEqual([]);
    const [{ transaction_id }] = (await simulate(id, { amount, confirmations: 1 })).deposits;
    const confirmed = await simulate(id, { transaction_id });
    // The source of a known deposit is screened again, which ends a moment later.
    expect(confirmed.deposits).toMatchObject([{ confirmations: 3 }]);
    await shop.untilStatus(id, 'underpaid');
    await simulate(id, { event: 'deposit_undone', transaction_id });
    await shop.attention(id, 'deposit_undone');
  });

  test.each([{}, { amount: '1.5' }, { amount: 1 }, { amount: '-1' }, { event: 'paid' }])(
    'of %j is refused',
    async (body) => {
      const { id } = await shop.pay();
      expect((await postSimulation(id, body)).status).toBe(400);
    },
  );
});

/** Amount of a settlement that is sent and then never reported. */
const SILENT = '66643';

test('a merchant gets each of the six crypto events signed, complete and in order', async () => {
  const merchant = await openCryptoShop(service);
  await merchant.registerWallet();
  await hook.register(merchant);
  /** Simulates a report, and waits for its event, as deliveries do not wait for each other. */
  const happen = async (what: string, body: object) => {
    const before = hook.distinct().length;
    const answer = await merchant.post(`/v1/sandbox/crypto/${what}/simulate`, body);
    expect(answer.status).toBe(200);
    await eventually(`the event of ${what}`, async () => hook.distinct().length > before);
  };
  const settle = async () => {
    const { body } = await merchant.post('/v1/crypto/settlements', { ...ASSET, amount: SILENT });
    await service.becomes('crypto_settlements', body.id, { status: 'sent' });
    return body.id;
  };
  const { id: paid } = await merchant.pay();
  const { id: held } = await merchant.pay();
  const { id: left } = await merchant.pay();
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

test('magic amounts play their scripts, and the balance is the sum of all credits', async () => {
  /** Status in the end, and halves of the amount due that are credited. */
  const scripts: [amount: number, status: string, halves: bigint][] = [
    [66_631, 'received', 2n],
    [66_632, 'underpaid', 1n],
    [66_633, 'received', 2n],
    [66_634, 'received', 4n],
    [66_635, 'held', 0n],
    [66_636, 'received', 2n],
    [66_637, 'received', 2n],
    [66_638, 'awaiting_deposit', 0n],
  ];
  const merchant = await openCryptoShop(service);
  const payments = await Promise.all(
    scripts.map(async ([amount, status, halves]) => {
      const { id, amount_due } = await merchant.pay({ amount });
      return { id, amount, status, credit: (BigInt(amount_due) * halves) / 2n };
    }),
  );
  const read = async ({ id, amount, status }: (typeof payments)[number]) => {
    const isPlayed = async () => {
      const payment = await merchant.read(id);
      return payment.status === status && payment.deposits.length > 0 && payment;
    };
    return await eventually(`${amount} is ${status}`, isPlayed, PLAYED_WITHIN_MS);
  };
  const results = await Promise.all(payments.map(read));
  const received = results.reduce((sum, each) => sum + BigInt(each.amount_received), 0n);
  expect(received).toBe(payments.reduce((sum, { credit }) => sum + credit, 0n));
  expect((await merchant.balance()).available).toBe(String(received));
  const reorged = payments.find(({ amount }) => amount === 66_637)?.id ?? '';
  await merchant.attention(reorged, 'deposit_undone');
  const declined = await merchant.post('/v1/crypto/payments', { ...IN_ETHER, amount: 66_639 });
  expect([declined.status, declined.body.error.code]).toEqual([422, 'asset_not_available']);
});

test('a developer plays the payer on a page, and the page of the payer follows', async () => {
  const { id, redirect_url } = await shop.pay();
  const { play_url: url = '' } = Object(await service.stores.crypto_payments.get(id));
  const readPage = async () => (await fetch(redirect_url)).text();
  expect(await readPage()).toContain(`href="${url}"`);
  const send = await openPlayPage(url);
  expect((await send({ amount: 'much' })).status).toBe(422);
  for (let presses = 0; presses < 2; presses += 1) {
    expect((await send({ amount: '0.05' })).status).toBe(303);
  }
  expect((await shop.untilStatus(id, 'received')).deposits).toHaveLength(1);
  const after = await readPage();
  expect(after).toContain('Payment received');
  expect(after).toContain('0.01 ETH more than was due');
  expect((await fetch(`${url}x`)).status).toBe(404);

  const nonces = Array.from({ length: 100 }, () => randomUUID());
  const wallets = service.mongo
    .db(sandboxBankDatabase(service.database))
    .collection<{ _id: string }>('chain_wallets');
  await wallets.updateOne({ _id: id }, { $set: { nonces } });
  const refused = await send({ amount: '0.05', nonce: randomUUID() });
  expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('100')]);
});

test('a settlement completes, fails by its magic amount, or can be simulated', async () => {
  const payer = await openCryptoShop(service);
  await payer.registerWallet();
  const { id } = await payer.pay();
  await payer.post(`/v1/sandbox/crypto/payments/${id}/simulate`, { event: 'received' });
  const settle = async (amount: string) => {
    const { status, body } = await payer.post('/v1/crypto/settlements', { ...ASSET, amount });
    expect(status).toBe(201);
    return body.id;
  };
  const until = (settlement: string, status: string) =>
    eventually(`${settlement} is ${status}`, async () => {
      const { body } = await payer.get(`/v1/crypto/settlements/${settlement}`);
      return body.status === status && body;
    });

  const amounts = ['1000000000000000', '66641', '66642', SILENT, '66645'];
  const [good, refused, dropped, silent, lost] = await Promise.all(amounts.map(settle));
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

describe('with the sandbox clock of an account ten days in the future', () => {
  /** Seconds that a payer has to pay. */
  const WINDOW_SECONDS = 30 * 60;

  async function openShopInFuture() {
    const future = await openCryptoShop(service);
    await advance(future, { advance: 'P10D' });
    const untilDeposit = (id: string, status: string) =>
      eventually(`a deposit that is ${status}`, async () => {
        const payment = await service.stores.crypto_payments.get(id);
        return payment?.deposits[0]?.status === status && payment;
      });
    return { ...future, untilDeposit };
  }

  test(
    'the sandbox chain sees a deposit at the time of the account',
    repeatIfBehind(async () => {
      const future = await openShopInFuture();
      // The payer of this magic amount sends all of it after two seconds.
      const { id, created_at, expires_at } = await future.pay({ amount: 66_631 });
      await advance(future, { advance: 'PT5M' });
      await service.becomes('crypto_payments', id, { status: 'received' });
      const { deposits } = await future.untilDeposit(id, 'confirmed');
      expect(deposits[0]).toMatchObject({ late: false });
      expect(between(created_at, deposits[0]?.seen_at ?? '')).toBeGreaterThanOrEqual(0);
      expect(between(deposits[0]?.seen_at ?? '', expires_at)).toBeGreaterThan(0);
    }),
  );

  test(
    'a deposit after the payment window of the account is late',
    repeatIfBehind(async () => {
      const future = await openShopInFuture();
      const { id } = await future.pay({ amount: 4_950 });
      const { play_url, amount_due } = Object(await service.stores.crypto_payments.get(id));
      await advance(future, { advance: 'PT40M' });
      await service.becomes('crypto_payments', id, { status: 'expired' });
      expect((await (await openPlayPage(play_url))()).status).toBe(303);
      const { deposits } = await future.untilDeposit(id, 'held');
      expect(deposits).toMatchObject([{ amount: amount_due, late: true }]);
    }),
  );

  test(
    'the page of the payer counts down by the time of the account',
    repeatIfBehind(async () => {
      const future = await openShopInFuture();
      const { redirect_url } = await future.pay({ amount: 4_950 });
      /** Whole seconds of real time since then, or one more. */
      const secondsSince = (began: number) => Math.ceil((Date.now() - began) / SECOND_MS);
      const readSecondsLeft = async () => {
        const began = Date.now();
        const page = await (await fetch(redirect_url)).text();
        const shown = Number(/data-left="(\d+)"/.exec(page)?.[1]);
        const { seconds_left } = Object(await (await fetch(`${redirect_url}/status`)).json());
        // Two answers, each of them rounded, between which a busy machine may take its time.
        expect(Math.abs(shown - seconds_left)).toBeLessThanOrEqual(secondsSince(began) + 1);
        return shown;
      };
      const began = Date.now();
      const before = await readSecondsLeft();
      expect(before).toBeLessThanOrEqual(WINDOW_SECONDS);
      expect(before).toBeGreaterThan(WINDOW_SECONDS / 2);
      await advance(future, { advance: 'PT10M' });
      const elapsed = before - (await readSecondsLeft());
      expect(elapsed).toBeGreaterThanOrEqual(600);
      expect(elapsed).toBeLessThanOrEqual(600 + secondsSince(began) + 1);
      await advance(future, { advance: 'PT30M' });
      expect(await (await fetch(redirect_url)).text()).toContain('The time to pay is over');
    }),
  );
});
