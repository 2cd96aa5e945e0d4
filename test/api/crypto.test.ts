import { WebhookEvent } from '../../src/domain/events/event';
import { ENDPOINTS } from '../../src/domain/wire';
import { assertWebhook } from '../support/contract';
import { eventually } from '../support/eventually';
import { saveHistory } from '../support/histories';
import { useHook } from '../support/hook';
import type { Client } from '../support/http';
import { useService } from '../support/service';
import { advance, between, repeatIfBehind } from './clock-setting';
import { ASSET, ETHER, IN_ETHER, openCryptoShop, useCryptoShop, WALLET } from './crypto-setting';
import { expectRefusal } from './refusal';

const PAYMENTS = '/v1/crypto/payments';
const SETTLEMENTS = '/v1/crypto/settlements';
/** Smallest amount of a settlement: 0.001 ETH. */
const LEAST = 10n ** 15n;
/** Ether that the sandbox chain asks for 100 EUR. */
const DUE = ETHER / 25n;

const service = useService();
const shop = useCryptoShop(service);
const hook = useHook(service);
beforeAll(() => hook.register(shop));

test('an account without crypto is refused every crypto route, while its payments go on without webhooks', async () => {
  const { accounts, events, deliveries } = service.stores;
  const off = await openCryptoShop(service);
  const { account_id } = off;
  await off.registerWallet();
  await off.payBy('tx-on', DUE, 'received');
  await hook.register(off);
  const { id, redirect_url } = await off.pay();
  const { id: settlement } = (await off.post(SETTLEMENTS, ASSET)).body;
  await accounts.setCrypto(account_id, false);
  for (const { method, path } of ENDPOINTS.filter(({ crypto }) => crypto)) {
    const named = path.replace('{id}', path.includes('payments') ? id : settlement);
    expectRefusal(await off.send(method.toUpperCase(), named), 'crypto_not_enabled');
  }
  expect((await fetch(redirect_url)).status).toBe(200);
  await off.deposit(id, 'tx-off', DUE);
  await off.report('crypto_settlement', settlement, 'completed', {});
  await off.handle('crypto_payment', id).result();
  await off.handle('crypto_settlement', settlement).result();
  expect(await off.balance()).toEqual({ available: String(DUE), reserved: '0' });
  for (const resource_id of [id, settlement]) {
    const rows = await events.list({ account_id, livemode: false, resource_id, limit: 9 });
    const statuses = (await deliveries.forEvents(rows.map(({ _id }) => _id))).map(
      (row) => row.status,
    );
    expect(statuses).toEqual(['not_subscribed']);
  }
  expect(hook.received).toEqual([]);
  await accounts.setCrypto(account_id, true);
  expect((await off.read(id)).status).toBe('received');
  expect((await off.get(`${SETTLEMENTS}/${settlement}`)).body.status).toBe('completed');
});

/** Expects the webhooks of a resource, in any order, each as the OpenAPI document describes it. */
async function expectWebhooks(id: string, types: string[], data: object): Promise<void> {
  const bodies = await eventually('the webhooks', async () => {
    const distinct = hook.distinct(id).map(({ body }) => WebhookEvent.parse(JSON.parse(body)));
    return distinct.length >= types.length && distinct;
  });
  expect(bodies.map(({ type }) => type).toSorted()).toEqual(types.toSorted());
  for (const event of bodies) {
    expect(event).toMatchObject({ livemode: false, data });
    await assertWebhook(service.url, event.type, event);
  }
}

describe('a crypto payment', () => {
  test('has an address, the amount due, a URI and a window of half an hour', async () => {
    const more = { reference: 'order-7', metadata: { n: 1 } };
    const created = await shop.pay(more);
    const { id, address, created_at, expires_at } = created;
    expect(created).toEqual({
      id,
      object: 'crypto_payment',
      status: 'awaiting_deposit',
      ...IN_ETHER,
      amount_due: String(DUE),
      amount_received: '0',
      address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      payment_uri: `ethereum:${address}@31337?value=${DUE}`,
      redirect_url: expect.stringMatching(/^http.*\/pay\/crypto\/[\w-]{43}$/),
      deposits: [],
      ...more,
      livemode: false,
      expires_at,
      received_at: null,
      created_at,
      updated_at: created_at,
    });
    expect(Math.round(between(created_at, expires_at) / 60_000)).toBe(30);
    expect(await shop.read(id)).toEqual(created);
    expect(await shop.events(id)).toEqual([]);
  });

  test('is refused in an asset or currency that is not offered, and on live, where no connector serves it', async () => {
    for (const [changes, code] of [
      [{ asset: 'USDC', network: 'tron' }, 'asset_not_supported'],
      [{ currency: 'ETH' }, 'invalid_request'],
      // The sandbox chain has no rate for it.
      [{ amount: 66_639 }, 'asset_not_available'],
    ] as const) {
      expectRefusal(await shop.post(PAYMENTS, { ...IN_ETHER, ...changes }), code);
    }
    const live = await service.withKey(shop, true);
    expectRefusal(await live.post(PAYMENTS, IN_ETHER), 'asset_not_available');
  });

  // Acts on what is short, rejected or reorged: test/workflows/crypto
  type Play = (id: string) => Promise<unknown>;
  test.each<[title: string, play: Play, received: bigint, events: string[], history: string]>([
    [
      'once its deposit is confirmed',
      async (id) => {
        await shop.deposit(id, 'tx-1', DUE + 7n, 1);
        const seen = await shop.until(id, 'seen', ({ deposits }) => deposits.length === 1);
        expect(seen).toMatchObject({ status: 'awaiting_deposit', amount_received: '0' });
        expect(seen.deposits[0]).toMatchObject({ status: 'pending', confirmations: 1 });
        await shop.deposit(id, 'tx-1', DUE + 7n, 3);
      },
      DUE + 7n,
      ['received'],
      'received',
    ],
    [
      'once its rest has come within the window',
      async (id) => {
        await shop.deposit(id, 'tx-2', DUE - 1n);
        await shop.untilStatus(id, 'underpaid');
        await shop.deposit(id, 'tx-3', 1n);
      },
      DUE,
      ['underpaid', 'received'],
      'topped-up',
    ],
    [
      'once an operator releases a deposit that failed screening',
      async (id) => {
        const before = await shop.balance();
        await shop.deposit(id, 'bad-1', DUE, 3, { screening: 'failed' });
        await shop.untilStatus(id, 'held');
        await service.becomes('crypto_payments', id, { attention: 'deposit_held' });
        expect(await shop.balance()).toEqual(before);
        const release = () => shop.act('crypto_payment', id, 'release');
        expect(await release()).toMatchObject({ status: 'received' });
        await expect(release()).rejects.toMatchObject({ code: 'wrong_state' });
      },
      DUE,
      ['held', 'received'],
      'released',
    ],
    [
      'once an operator credits what came after its end',
      async (id) => {
        await shop.report('crypto_payment', id, 'expired', {});
        await shop.handle('crypto_payment', id).result();
        await shop.deposit(id, 'tx-6', DUE);
        await service.becomes('crypto_payments', id, { attention: 'late_deposit' });
        expect(await shop.read(id)).toMatchObject({ status: 'expired', amount_received: '0' });
        await shop.act('crypto_payment', id, 'credit_late');
      },
      DUE,
      ['expired', 'received'],
      'credited-late',
    ],
  ])('is received %s', async (_title, play, received, events, history) => {
    const before = BigInt((await shop.balance()).available);
    const { id } = await shop.pay();
    await play(id);
    const payment = await shop.untilStatus(id, 'received');
    expect(payment.amount_received).toBe(String(received));
    expect(payment.deposits.at(-1)?.status).toBe('confirmed');
    expect(BigInt((await shop.balance()).available) - before).toBe(received);
    const types = events.map((name) => `crypto.payment.${name}`);
    expect(await shop.events(id)).toEqual(types);
    await expectWebhooks(id, types, { crypto_payment_id: id });
    const handle = shop.handle('crypto_payment', id);
    await handle.result();
    await saveHistory(handle, `crypto-payment-${history}`);
  });

  test('that is short is received within the tolerance of its creation, and credited with what came', async () => {
    const { accounts } = service.stores;
    const own = await openCryptoShop(service);
    await accounts.setCryptoTolerance(own.account_id, 0.3);
    const { id } = await own.pay();
    await accounts.setCryptoTolerance(own.account_id, 0);
    const later = await own.pay();
    const came = (DUE * 997n) / 1_000n;
    await own.deposit(id, 'tx-short', came);
    const received = await own.untilStatus(id, 'received');
    expect(received).toMatchObject({ amount_due: String(DUE), amount_received: String(came) });
    expect(await own.balance()).toEqual({ available: String(came), reserved: '0' });
    expect(await own.events(id)).toEqual(['crypto.payment.received']);
    const handle = own.handle('crypto_payment', id);
    await handle.result();
    await saveHistory(handle, 'crypto-payment-tolerance');
    await own.deposit(later.id, 'tx-later', came);
    await own.untilStatus(later.id, 'underpaid');
  });
});

describe('a settlement', () => {
  const settle = (body: object = ASSET, as: Client = shop) => as.post(SETTLEMENTS, body);

  test('needs a wallet, a balance and a minimum amount', async () => {
    const poor = await openCryptoShop(service);
    const refuse = async (body?: object) => (await settle(body, poor)).body.error;
    expect(await refuse()).toMatchObject({ code: 'wallet_not_registered' });
    await poor.registerWallet();
    expect(await refuse()).toMatchObject({ code: 'insufficient_balance' });
    await poor.payBy('tx-poor', DUE, 'received');
    for (const [body, code] of [
      [{ asset: 'USDC', network: 'ethereum' }, 'insufficient_balance'],
      [{ ...ASSET, amount: String(DUE + 1n) }, 'insufficient_balance'],
      [{ ...ASSET, amount: '0' }, 'invalid_amount'],
    ] as const) {
      expect(await refuse(body)).toMatchObject({ code });
    }
    const small = await settle({ ...ASSET, amount: String(LEAST - 1n) }, poor);
    expectRefusal(small, 'method_requirements_not_met', ['amount']);
    const message = `A settlement must be at least 0.001 ETH (${LEAST}).`;
    expect(small.body.error.message).toBe(message);

    const wallet = { account_id: poor.account_id, livemode: false, network: 'ethereum' } as const;
    const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const times = { now: new Date().toISOString(), counts_from: tomorrow };
    await service.stores.wallets.set({ ...wallet, address }, times);
    expect(await refuse()).toMatchObject({
      code: 'wallet_not_registered',
      message: `Settlements on ethereum pause until the new wallet takes effect at ${tomorrow}.`,
    });
  });

  test('pays a part and then the rest, and a failed one gives its amount back', async () => {
    const payer = await openCryptoShop(service);
    await payer.registerWallet();
    await hook.register(payer);
    await payer.payBy('tx-rest', DUE, 'received');
    const { id: failing } = (await settle({ ...ASSET, amount: String(LEAST) }, payer)).body;
    const { status, body } = await settle(ASSET, payer);
    const { id, transaction_id, created_at } = body;
    expect([status, body]).toEqual([
      201,
      {
        ...{ id, object: 'crypto_settlement', status: expect.stringMatching(/^(pending|sent)$/) },
        ...{ ...ASSET, amount: String(DUE - LEAST), fee: '0', wallet_address: WALLET },
        ...{ transaction_id, failure: null, livemode: false, created_at, completed_at: null },
      },
    ]);
    expect(await payer.balance()).toEqual({ available: '0', reserved: String(DUE) });
    const code = 'dust';
    for (const [settlement, end, facts, rest] of [
      [id, 'completed', { transaction_id: `out-${id}` }, { available: '0', reserved: `${LEAST}` }],
      [failing, 'failed', { code, reason: 'Small.' }, { available: `${LEAST}`, reserved: '0' }],
    ] as const) {
      await payer.report('crypto_settlement', settlement, end, facts);
      const handle = payer.handle('crypto_settlement', settlement);
      expect(await handle.result()).toMatchObject({ status: end });
      expect(await payer.balance()).toEqual(rest);
      await saveHistory(handle, `crypto-settlement-${end}`);
      const data = { crypto_settlement_id: settlement };
      await expectWebhooks(settlement, [`crypto.settlement.${end}`], data);
    }
    const { failure } = (await payer.get(`${SETTLEMENTS}/${failing}`)).body;
    expect(failure).toEqual({ code, message: 'Small.' });
    const type = 'crypto_settlement';
    const source = { object: type, id: failing };
    expect((await payer.get('/v1/balance_transactions')).body.data).toMatchObject([
      { type: 'crypto_settlement_failure', amount: `${LEAST}`, fee: '0', source },
      { type, amount: `-${DUE - LEAST}`, fee: '0', source: { object: type, id } },
      { type, amount: `-${LEAST}`, fee: '0', source },
      { type: 'crypto_payment', amount: `${DUE}` },
    ]);
  });

  test('leaves out a reorged deposit until an operator decides', async () => {
    const loss = await openCryptoShop(service);
    await loss.registerWallet();
    await loss.payBy('tx-stays', DUE, 'received');
    const gone = await loss.payBy('tx-gone', DUE, 'received');
    const lost = await loss.payBy('tx-lost', DUE, 'received');
    for (const [id, transaction_id] of [
      [gone, 'tx-gone'],
      [lost, 'tx-lost'],
    ] as const) {
      await loss.report('crypto_payment', id, 'deposit_undone', { transaction_id });
      await service.becomes('crypto_payments', id, { attention: 'deposit_undone' });
    }
    const refused = await settle({ ...ASSET, amount: String(DUE + 1n) }, loss);
    expectRefusal(refused, 'insufficient_balance');
    expect(refused.body.error.message).toContain('0.08 ETH is held back');
    const first = await settle(ASSET, loss);
    expect([first.status, first.body.amount]).toEqual([201, String(DUE)]);
    expectRefusal(await settle(ASSET, loss), 'insufficient_balance');
    await loss.act('crypto_payment', gone, 'resolve_movement', { as: 'merchant' });
    await loss.act('crypto_payment', lost, 'resolve_movement', { as: 'loss' });
    expect(await loss.balance()).toEqual({ available: String(DUE), reserved: String(DUE) });
    const second = await settle(ASSET, loss);
    expect([second.status, second.body.amount]).toEqual([201, String(DUE)]);
  });
});

// Time left on the page: test/pages/browser.test.ts
test(
  'the window and the deposits of a crypto payment follow the clock of the account',
  repeatIfBehind(async () => {
    const future = await openCryptoShop(service);
    await advance(future, { advance: 'P10D' });
    // The payer of this magic amount sends all of it after two seconds.
    const paid = await future.pay({ amount: 66_631 });
    const late = await future.pay({ amount: 4_950 });
    await advance(future, { advance: 'PT10M' });
    await service.becomes('crypto_payments', paid.id, { status: 'received' });
    const [deposit] = (await service.stores.crypto_payments.get(paid.id))?.deposits ?? [];
    expect(deposit).toMatchObject({ late: false });
    expect(between(paid.created_at, deposit?.seen_at ?? '')).toBeGreaterThanOrEqual(0);
    expect(between(deposit?.seen_at ?? '', paid.expires_at)).toBeGreaterThan(0);

    await advance(future, { advance: 'PT30M' });
    await service.becomes('crypto_payments', late.id, { status: 'expired' });
    expect(await (await fetch(late.redirect_url)).text()).toContain('The time to pay is over');
    await payOnChain(String((await service.stores.crypto_payments.get(late.id))?.play_url));
    const deposits = await eventually('the late deposit', async () => {
      const stored = await service.stores.crypto_payments.get(late.id);
      return stored?.deposits.length === 1 && stored.deposits;
    });
    expect(deposits).toMatchObject([{ amount: late.amount_due, late: true }]);
  }),
);

/** Sends the form of a payer's page as it is filled in. */
async function payOnChain(url: string): Promise<void> {
  const page = await (await fetch(url)).text();
  const [, nonce = ''] = /name="nonce" value="([^"]+)"/.exec(page) ?? [];
  const [, amount = ''] = /name="amount"[^>]*value="([^"]+)"/.exec(page) ?? [];
  const body = new URLSearchParams({ nonce, amount, course: 'confirms' });
  const { status } = await fetch(`${url}/send`, { method: 'POST', redirect: 'manual', body });
  expect(status).toBe(303);
}
