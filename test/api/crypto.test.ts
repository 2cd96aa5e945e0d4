import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../src/base/mongo';
import { createConnectorKey } from '../../src/callbacks/keys';
import { pageText } from '../../src/cli/commands/resource-page';
import { createEncrypter } from '../../src/encryption/encrypter';
import { readPage } from '../../src/service/operators/resource';
import { ensureSchedule, getScheduleId } from '../../src/temporal/schedules';
import { signPayload } from '../../src/webhooks/signature';
import { patientClient } from '../cli/resource-setting';
import { operatorsAudit } from '../support/audit';
import { saveHistory } from '../support/histories';
import { useHook } from '../support/hook';
import { type Client, eventually } from '../support/http';
import { retryUntilDone } from '../support/insist';
import { scriptedChain } from '../support/scripted-chain';
import { useService } from '../support/service';
import {
  COIN,
  ETHER,
  everyRoute,
  IN_ETHER,
  openCryptoShop,
  useCryptoShop,
  WALLET,
} from './crypto-setting';
import { askUntilReady } from './exchange';
import { expectRefusal } from './refusal';

const chain = scriptedChain();
// Schedules run on live's queue.
const service = useService({ chain, environments: ['sandbox', 'live'] });
const shop = useCryptoShop(service);
const hook = useHook(service);

describe('an account', () => {
  test('without crypto is refused on every route, and enabling opens them', async () => {
    const { stores } = service;
    const { account_id, get, send } = await service.account();
    for (const route of everyRoute(randomUUID(), randomUUID())) {
      expectRefusal(await send(...route), 'crypto_not_enabled');
    }
    await stores.accounts.setCrypto(account_id, true);
    expect((await get('/v1/crypto/payments')).status).toBe(200);
    await stores.accounts.setCrypto(account_id, false);
    expect((await get('/v1/crypto/payments')).status).toBe(403);
  });

  test('that loses crypto is refused on every route; what is under way goes on, untold', async () => {
    const { stores } = service;
    const off = await openCryptoShop(service);
    const { account_id } = off;
    await off.registerWallet();
    await hook.register(off);
    const { id, redirect_url } = await off.pay();
    const { id: earlier } = await off.pay();
    await off.deposit(earlier, 'tx-on', ETHER);
    await eventually('the event', async () => hook.distinct().length === 1);
    const { id: settlement } = (await off.post('/v1/crypto/settlements', COIN)).body;

    await stores.accounts.setCrypto(account_id, false);
    for (const route of everyRoute(id, settlement)) {
      expectRefusal(await off.send(...route), 'crypto_not_enabled');
    }
    expect((await fetch(redirect_url)).status).toBe(200);
    await off.deposit(id, 'tx-off', ETHER);
    const completed = { transaction_id: `out-${settlement}` };
    await off.report('crypto_settlement', settlement, 'completed', completed);
    await off.handle('crypto_payment', id).result();
    await off.handle('crypto_settlement', settlement).result();
    expect(await off.balance()).toEqual({ available: String(ETHER), reserved: '0' });
    for (const resource_id of [id, settlement]) {
      const kept = await stores.events.list({ account_id, livemode: false, resource_id, limit: 9 });
      expect(kept.map(({ delivery }) => delivery.status)).toEqual(['not_subscribed']);
    }
    expect(hook.distinct()).toHaveLength(1);

    await stores.accounts.setCrypto(account_id, true);
    expect((await off.read(id)).status).toBe('received');
    const shown = await off.get(`/v1/crypto/settlements/${settlement}`);
    expect(shown.body.status).toBe('completed');
  });

  test('sees and moves only its own, in the environment of its key', async () => {
    const owner = await openCryptoShop(service);
    await owner.registerWallet();
    const { id } = await owner.pay();
    const { id: paid } = await owner.pay();
    await owner.deposit(paid, 'tx-own', ETHER);
    await owner.until(paid, 'received', ({ status }) => status === 'received');
    const { id: settlement } = (await owner.post('/v1/crypto/settlements', COIN)).body;
    const balance = await owner.balance();
    const other = await openCryptoShop(service);
    await other.registerWallet();
    const live = await service.withKey(owner, true);

    const codes = async ({ send }: Client) => {
      const answers: unknown[] = [];
      for (const route of everyRoute(id, settlement).slice(1)) {
        const { body } = await send(...route);
        answers.push(body.error?.code ?? body.data);
      }
      return answers;
    };
    const [noPayment, noSettlement] = ['crypto_payment_not_found', 'crypto_settlement_not_found'];
    expect(await codes(other)).toEqual([
      noPayment,
      [],
      'insufficient_balance',
      noSettlement,
      [],
      noPayment,
      noSettlement,
    ]);
    expect(await codes(live)).toEqual([
      noPayment,
      [],
      'asset_not_available',
      noSettlement,
      [],
      'api_key_scope_insufficient',
      'api_key_scope_insufficient',
    ]);
    expect((await owner.read(id)).status).toBe('awaiting_deposit');
    expect(await owner.balance()).toEqual(balance);
  });
});

describe('a crypto payment', () => {
  test('is paid over HTTP by its connector, and by no other', async () => {
    const { url, stores, mongo, keys, chainConnector, connector } = service;
    const acting = { stores, mongo, now: () => new Date(), audit: operatorsAudit(stores) };
    const deps = { ...acting, encrypter: createEncrypter(keys.seal) };
    const { id } = await shop.pay();
    const report = JSON.stringify({
      callback_id: `cb-${randomUUID()}`,
      resource: 'crypto_payment',
      resource_id: id,
      event: 'deposit',
      occurred_at: new Date().toISOString(),
      transaction_id: '0x7',
      amount: String(ETHER),
      confirmations: 3,
    });
    const send = async (name: string, body: string) => {
      const { secret } = await createConnectorKey(deps, name);
      const { answer, repeats } = await askUntilReady(() => {
        const signature = signPayload(secret, body, Math.floor(Date.now() / 1_000));
        const headers = { 'Connector-Signature': signature };
        return fetch(`${url}/connectors/${name}/callbacks`, { method: 'POST', headers, body });
      });
      return { repeats, seen: [answer.status, await answer.json()] };
    };
    expect((await send(connector, report)).seen).toEqual([202, { status: 'parked' }]);
    expect((await shop.read(id)).status).toBe('awaiting_deposit');
    const { repeats, seen } = await send(chainConnector, report);
    // A repeat may learn that the try before it, whose outcome was unknown, has delivered.
    const statuses = repeats > 0 ? /^(delivered|duplicate)$/ : /^delivered$/;
    expect(seen).toEqual([202, { status: expect.stringMatching(statuses) }]);
    await shop.until(id, 'the deposit', ({ status }) => status === 'received');
    expect((await send(chainConnector, report)).seen).toEqual([202, { status: 'duplicate' }]);
    const more = report.replace(String(ETHER), String(ETHER + 1n));
    expect((await send(chainConnector, more)).seen[0]).toBe(409);
  });

  test('is created once, with address, amount and URI', async () => {
    const idempotencyKey = randomUUID();
    const body = { ...IN_ETHER, reference: 'order-7', metadata: { n: 1 } };
    const create = () => shop.post('/v1/crypto/payments', body, { idempotencyKey });
    const created = await create();
    const { id, created_at, expires_at, redirect_url } = created.body;
    expect(created.status).toBe(201);
    expect(created.body).toEqual({
      id,
      object: 'crypto_payment',
      status: 'awaiting_deposit',
      ...IN_ETHER,
      amount_due: String(ETHER),
      amount_received: '0',
      address: `ethereum-${id}`,
      payment_uri: `ethereum:ethereum-${id}@1?value=${ETHER}`,
      redirect_url: expect.stringMatching(/^http.*\/pay\/crypto\/[\w-]{43}$/),
      deposits: [],
      reference: 'order-7',
      livemode: false,
      metadata: { n: 1 },
      expires_at,
      received_at: null,
      created_at,
      updated_at: created_at,
    });
    const window = Date.parse(expires_at) - Date.parse(created_at);
    expect(Math.round(window / 60_000)).toBe(30);
    const again = await create();
    expect([again.headers.get('Idempotent-Replayed'), again.body]).toEqual(['true', created.body]);
    expect(redirect_url).toBe((await shop.read(id)).redirect_url);
    expect(await shop.events(id)).toEqual([]);
  });

  test.each([
    [{ asset: 'USDC', network: 'tron' }, 'asset_not_supported'],
    [{ asset: 'DOGE', network: 'dogecoin' }, 'asset_not_supported'],
    [{ amount: 10.5 }, 'invalid_amount'],
    [{ currency: 'ETH' }, 'invalid_request'],
    [{ network: undefined }, 'invalid_request'],
  ])('of %j is refused', async (changes, code) => {
    const refused = await shop.post('/v1/crypto/payments', { ...IN_ETHER, ...changes });
    expect(refused.body.error.code).toBe(code);
  });

  test('is received once the deposit is deep enough, and credits it to the unit', async () => {
    const { id } = await shop.pay();
    const before = BigInt((await shop.balance()).available);
    await shop.deposit(id, 'tx-1', ETHER + 7n, 1);
    const seen = await shop.until(id, 'seen', ({ deposits }) => deposits.length === 1);
    expect(seen).toMatchObject({ status: 'awaiting_deposit', amount_received: '0' });
    expect(seen.deposits[0]).toMatchObject({ status: 'pending', confirmations: 1 });
    await shop.deposit(id, 'tx-1', ETHER + 7n, 3);
    const received = await shop.until(id, 'received', ({ status }) => status === 'received');
    expect(received.amount_received).toBe(String(ETHER + 7n));
    expect(received.deposits[0]).toMatchObject({ status: 'confirmed' });
    expect(BigInt((await shop.balance()).available) - before).toBe(ETHER + 7n);
    expect(await shop.events(id)).toEqual(['crypto.payment.received']);
    const shown = pageText(await readPage(service.stores, 'crypto_payment', id));
    expect(shown).toMatch(/DEPOSITS\n.*\n *tx-1 .* 1.000000000000000007 ETH +3 of 3 +confirmed/);
    expect(shown).toMatch(/crypto_payment_credited +clearing.* -1.000000000000000007 ETH/);
    const handle = shop.handle('crypto_payment', id);
    expect(await handle.result()).toMatchObject({ status: 'received' });
    await saveHistory(handle, 'crypto-payment-received');
  });

  test('that is underpaid is topped up within the window', async () => {
    const id = await shop.payBy('tx-2', ETHER - 1n, 'underpaid');
    await shop.deposit(id, 'tx-3', 1n);
    await shop.until(id, 'received', ({ status }) => status === 'received');
    expect(await shop.events(id)).toEqual(['crypto.payment.underpaid', 'crypto.payment.received']);
    await shop.end(id, 'crypto-payment-topped-up');
  });

  test('that is underpaid is accepted as it is by an operator', async () => {
    const id = await shop.payBy('tx-4', ETHER - 1n, 'underpaid');
    expect(await shop.act('crypto_payment', id, 'accept')).toMatchObject({ status: 'received' });
    expect((await shop.read(id)).amount_received).toBe(String(ETHER - 1n));
    const kept = await service.stores.crypto_payments.get(id);
    expect(kept?.audit).toMatchObject([{ who: 'mia', what: 'accept', after: 'received' }]);
    await shop.end(id, 'crypto-payment-accepted');
  });

  test('of a source that fails screening is held, then released once', async () => {
    const before = await shop.balance();
    const id = await shop.payBy('bad-1', ETHER, 'held');
    await shop.attention(id, 'deposit_held');
    expect(await shop.balance()).toEqual(before);
    expect(await shop.act('crypto_payment', id, 'release')).toMatchObject({ status: 'received' });
    await expect(shop.act('crypto_payment', id, 'release')).rejects.toMatchObject({
      code: 'wrong_state',
    });
    expect(BigInt((await shop.balance()).available)).toBe(BigInt(before.available) + ETHER);
    expect(await shop.events(id)).toEqual(['crypto.payment.held', 'crypto.payment.received']);
    await saveHistory(shop.handle('crypto_payment', id), 'crypto-payment-released');
  });

  test('whose held deposit is rejected is what its other deposits make it', async () => {
    const id = await shop.payBy('bad-2', ETHER, 'held');
    expect(await shop.act('crypto_payment', id, 'reject')).toMatchObject({
      status: 'awaiting_deposit',
    });
    expect((await shop.read(id)).deposits[0].status).toBe('rejected');
    await shop.deposit(id, 'tx-5', ETHER, 3, { screening: 'passed' });
    await shop.until(id, 'received', ({ status }) => status === 'received');
    await shop.end(id, 'crypto-payment-rejected');
  });

  test('that has expired keeps what comes late for an operator', async () => {
    const { id } = await shop.pay();
    await shop.report('crypto_payment', id, 'expired', {});
    await shop.until(id, 'expired', ({ status }) => status === 'expired');
    await shop.handle('crypto_payment', id).result();
    await shop.deposit(id, 'tx-6', ETHER);
    await shop.attention(id, 'late_deposit');
    expect(await shop.read(id)).toMatchObject({
      status: 'expired',
      amount_received: '0',
      deposits: [{ status: 'held' }],
    });
    expect(await shop.act('crypto_payment', id, 'credit_late')).toMatchObject({
      status: 'received',
    });
    expect(await shop.events(id)).toEqual(['crypto.payment.expired', 'crypto.payment.received']);
    await shop.end(id, 'crypto-payment-credited-late');
  });

  test('forgets a deposit that the chain undoes before it counts, and shows one after', async () => {
    const { id } = await shop.pay();
    await shop.deposit(id, 'tx-7', ETHER, 2);
    await shop.until(id, 'seen', ({ deposits }) => deposits.length === 1);
    await shop.undo(id, 'tx-7');
    await shop.until(id, 'forgotten', ({ deposits }) => deposits.length === 0);
    await shop.deposit(id, 'tx-7', ETHER, 3);
    await shop.until(id, 'received', ({ status }) => status === 'received');
    await shop.handle('crypto_payment', id).result();
    await shop.undo(id, 'tx-7');
    await shop.attention(id, 'deposit_undone');
    expect(await shop.read(id)).toMatchObject({ status: 'received', amount_received: `${ETHER}` });
    await shop.deposit(id, 'tx-7', ETHER, 1);
    await shop.attention(id, null);
    await saveHistory(shop.handle('crypto_payment', id), 'crypto-payment-undone');
  });

  test('counts the same report once, and moves nothing by one that lacks its fields', async () => {
    const { id } = await shop.pay();
    const callback_id = `same-${id}`;
    await shop.deposit(id, 'tx-8', ETHER / 4n, 3, { callback_id });
    await shop.until(id, 'underpaid', ({ status }) => status === 'underpaid');
    expect(await shop.deposit(id, 'tx-8', ETHER / 4n, 3, { callback_id })).toBe('duplicate');
    await shop.report('crypto_payment', id, 'deposit', { transaction_id: 'tx-9' });
    await shop.attention(id, 'malformed_callback');
    expect((await shop.read(id)).deposits).toHaveLength(1);
  });

  test('is listed by status, newest first', async () => {
    const { body } = await shop.get('/v1/crypto/payments?status=expired&limit=100');
    expect(body).toMatchObject({ object: 'list', has_more: false, next_cursor: null });
    const all = (await shop.get('/v1/crypto/payments?limit=2')).body;
    expect(all).toMatchObject({ has_more: true, data: [{ object: 'crypto_payment' }, {}] });
    const unknown = await shop.get('/v1/crypto/payments?status=settled');
    expect(unknown.status).toBe(400);
  });
});

describe('a settlement', () => {
  const settle = (body: object = COIN) => shop.post('/v1/crypto/settlements', body);
  /** The minimum of the table: 0.001 ETH. */
  const LEAST = String(10n ** 15n);

  test('needs a wallet that counts, and a balance', async () => {
    expect((await settle()).body.error.code).toBe('wallet_not_registered');
    await shop.registerWallet();
    const usdc = { asset: 'USDC', network: 'ethereum' };
    expect((await settle(usdc)).body.error.code).toBe('insufficient_balance');
    const { available } = await shop.balance();
    const more = { ...COIN, amount: String(BigInt(available) + 1n) };
    expect((await settle(more)).body.error.code).toBe('insufficient_balance');
    expect((await settle({ ...COIN, amount: '0' })).body.error.code).toBe('invalid_amount');
    const small = await settle({ ...COIN, amount: String(BigInt(LEAST) - 1n) });
    expect([small.status, small.body.error]).toMatchObject([
      422,
      {
        code: 'method_requirements_not_met',
        message: `A settlement must be at least 0.001 ETH (${LEAST}).`,
        details: [{ field: 'amount' }],
      },
    ]);
  });

  test('pays a part, and then the rest, each in one transaction', async () => {
    await shop.registerWallet();
    const { available } = await shop.balance();
    const part = await settle({ ...COIN, amount: LEAST });
    const rest = await settle();
    const { id, created_at } = rest.body;
    expect([part.status, rest.status]).toEqual([201, 201]);
    expect(rest.body).toEqual({
      id,
      object: 'crypto_settlement',
      status: expect.stringMatching(/^(pending|sent)$/),
      ...COIN,
      amount: String(BigInt(available) - BigInt(LEAST)),
      fee: '0',
      wallet_address: WALLET,
      transaction_id: rest.body.transaction_id,
      failure: null,
      livemode: false,
      created_at,
      completed_at: null,
    });
    expect(await shop.balance()).toEqual({ available: '0', reserved: available });
    await shop.report('crypto_settlement', id, 'completed', { transaction_id: `out-${id}` });
    const handle = shop.handle('crypto_settlement', id);
    expect(await handle.result()).toMatchObject({ status: 'completed' });
    expect(await shop.events(id)).toEqual(['crypto.settlement.completed']);
    expect(await shop.balance()).toEqual({ available: '0', reserved: LEAST });
    await saveHistory(handle, 'crypto-settlement-completed');

    const { id: failing } = part.body;
    const refusal = { code: 'dust', reason: 'Too small to send.' };
    await shop.report('crypto_settlement', failing, 'failed', refusal);
    await shop.handle('crypto_settlement', failing).result();
    expect(await shop.balance()).toEqual({ available: LEAST, reserved: '0' });
    const { body } = await shop.get(`/v1/crypto/settlements/${failing}`);
    expect(body.failure).toEqual({ code: 'dust', message: 'Too small to send.' });
    expect(await shop.events(failing)).toEqual(['crypto.settlement.failed']);
    await saveHistory(shop.handle('crypto_settlement', failing), 'crypto-settlement-failed');
    const listed = (await shop.get('/v1/crypto/settlements?status=failed')).body;
    expect(listed.data).toEqual([body]);
  });
});

test('the schedule pays out what is worth it, to wallets that count', async () => {
  const { stores, temporal, queues } = service;
  const day = await openCryptoShop(service);
  await day.payBy('tx-day', ETHER, 'received');
  await day.registerWallet();
  const wallet = { account_id: day.account_id, livemode: false, network: 'ethereum' } as const;
  const now = new Date().toISOString();
  const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  await stores.wallets.set({ ...wallet, address }, { now, counts_from: tomorrow });

  const taskQueue = queues.lifecycle;
  const sweep = () =>
    temporal.workflow.execute('cryptoSettlements', {
      taskQueue,
      workflowId: randomUUID(),
      args: [],
    });
  await sweep();
  expect(await day.balance()).toEqual({ available: String(ETHER), reserved: '0' });
  const paused = await day.post('/v1/crypto/settlements', COIN);
  expect(paused.body.error).toMatchObject({
    code: 'wallet_not_registered',
    message: `Settlements on ethereum pause until the new wallet takes effect at ${tomorrow}.`,
  });
  const other = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359';
  await stores.wallets.set({ ...wallet, address: other }, { now, counts_from: now });
  const patient = patientClient(temporal);
  expect(await ensureSchedule(patient, 'settlements', taskQueue)).toBe('made');
  expect(await retryUntilDone(() => ensureSchedule(patient, 'settlements', taskQueue))).toBe(
    'kept',
  );
  const schedule = temporal.schedule.getHandle(getScheduleId('settlements', taskQueue));
  const daily = { every: 86_400_000, offset: 7_200_000 };
  expect((await schedule.describe()).spec.intervals).toMatchObject([daily]);
  await schedule.trigger();
  const settled = await eventually('the settlement', async () => {
    const { body } = await day.get('/v1/crypto/settlements');
    return body.data[0];
  });
  await schedule.delete();
  expect(settled).toMatchObject({ amount: String(ETHER), wallet_address: other });
  expect(await day.balance()).toEqual({ available: '0', reserved: String(ETHER) });
});

test('a credited deposit that the chain removes is not settled until an operator decides', async () => {
  const loss = await openCryptoShop(service);
  await loss.registerWallet();
  const settle = (amount?: bigint) =>
    loss.post('/v1/crypto/settlements', {
      ...COIN,
      ...(amount && { amount: String(amount) }),
    });
  const ids: string[] = [];
  for (const transaction of ['tx-stays', 'tx-gone', 'tx-lost']) {
    ids.push(await loss.payBy(transaction, ETHER, 'received'));
  }
  const [, gone = '', lost = ''] = ids;
  await loss.undo(gone, 'tx-gone');
  await loss.undo(lost, 'tx-lost');
  await loss.attention(gone, 'deposit_undone');
  await loss.attention(lost, 'deposit_undone');
  const refused = await settle(ETHER + 1n);
  expect(refused.body.error).toMatchObject({
    code: 'insufficient_balance',
    message: expect.stringContaining('2 ETH is held back'),
  });
  const first = await settle();
  expect([first.status, first.body.amount]).toEqual([201, String(ETHER)]);
  expect((await settle()).body.error.code).toBe('insufficient_balance');
  await loss.act('crypto_payment', gone, 'debit_reorged');
  await loss.act('crypto_payment', lost, 'write_off');
  expect(await loss.balance()).toEqual({ available: String(ETHER), reserved: String(ETHER) });
  const second = await settle();
  expect([second.status, second.body.amount]).toEqual([201, String(ETHER)]);
  const costs = { network_fee: '42000', transaction_id: 'out' };
  await loss.report('crypto_settlement', second.body.id, 'completed', costs);
  await loss.handle('crypto_settlement', second.body.id).result();
  const fee = await service.stores.ledger.findEntry(`crypto_settlement_fee:${second.body.id}`);
  expect(fee?.legs.map(({ account, amount }) => `${account} ${amount}`)).toEqual([
    'expense.network -42000',
    `clearing.${service.chainConnector} 42000`,
  ]);
});

test('the address of another payment is refused, and shared by nobody', async () => {
  const { id } = await shop.pay();
  const payment = await service.stores.crypto_payments.get(id);
  if (payment === null) throw new Error('No payment.');
  const twin = { ...payment, _id: randomUUID(), position: randomUUID(), token_hash: randomUUID() };
  const insert = inTransaction(service.mongo, (session) =>
    service.stores.crypto_payments.insert(twin, session),
  );
  await expect(insert).rejects.toThrow(/index: address/);
});

test('money of any size is exact, and the ledger is clean', async () => {
  const large = await openCryptoShop(service);
  const sum = 10n ** 24n + 1n;
  const { id } = await large.pay({ amount: 20_000_000_000 });
  await large.deposit(id, 'tx-large', sum);
  await large.until(id, 'underpaid', ({ status }) => status === 'underpaid');
  await large.deposit(id, 'tx-larger', sum);
  await large.until(id, 'received', ({ status }) => status === 'received');
  expect(await large.balance()).toEqual({ available: String(2n * sum), reserved: '0' });
  const { differences } = await shop.verify();
  expect(differences).toEqual([]);
});
