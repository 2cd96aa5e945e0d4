import { randomUUID } from 'node:crypto';
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
import { ASSET, ETHER, IN_ETHER, openCryptoShop, useCryptoShop, WALLET } from './crypto-setting';
import { askUntilReady } from './exchange';
import { expectRefusal } from './refusal';

const PAYMENTS = '/v1/crypto/payments';
const SETTLEMENTS = '/v1/crypto/settlements';
/** Smallest amount of a settlement: 0.001 ETH. */
const LEAST = String(10n ** 15n);

const chain = scriptedChain();
// A chain that the test scripts; schedules run on the queue of live.
const service = useService({ chain, environments: ['sandbox', 'live'] });
const shop = useCryptoShop(service);
const hook = useHook(service);

/** Lists every crypto route, about one payment and one settlement. */
function listRoutes(
  payment: string,
  settlement: string,
): [method: string, path: string, body?: object][] {
  const sandbox = '/v1/sandbox/crypto';
  return [
    ['POST', PAYMENTS, IN_ETHER],
    ['GET', `${PAYMENTS}/${payment}`],
    ['GET', PAYMENTS],
    ['POST', SETTLEMENTS, ASSET],
    ['GET', `${SETTLEMENTS}/${settlement}`],
    ['GET', SETTLEMENTS],
    ['POST', `${sandbox}/payments/${payment}/simulate`, { event: 'received' }],
    ['POST', `${sandbox}/settlements/${settlement}/simulate`, { event: 'completed' }],
  ];
}

test('every crypto route is refused until crypto is enabled for the account', async () => {
  const { account_id, get, send } = await service.account();
  for (const route of listRoutes(randomUUID(), randomUUID())) {
    expectRefusal(await send(...route), 'crypto_not_enabled');
  }
  await service.stores.accounts.setCrypto(account_id, true);
  expect((await get(PAYMENTS)).status).toBe(200);
});

test('an account that loses crypto is refused, while its payments go on without webhooks', async () => {
  const { stores } = service;
  const off = await openCryptoShop(service);
  const { account_id } = off;
  await off.registerWallet();
  await hook.register(off);
  const { id, redirect_url } = await off.pay();
  const { id: earlier } = await off.pay();
  await off.deposit(earlier, 'tx-on', ETHER);
  await eventually('the event', async () => hook.distinct().length === 1);
  const { id: settlement } = (await off.post(SETTLEMENTS, ASSET)).body;

  await stores.accounts.setCrypto(account_id, false);
  for (const route of listRoutes(id, settlement)) {
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
    const events = await stores.events.list({
      ...{ account_id, livemode: false, resource_id, limit: 9 },
    });
    expect(events.map(({ delivery }) => delivery.status)).toEqual(['not_subscribed']);
  }
  expect(hook.distinct()).toHaveLength(1);

  await stores.accounts.setCrypto(account_id, true);
  expect((await off.read(id)).status).toBe('received');
  expect((await off.get(`${SETTLEMENTS}/${settlement}`)).body.status).toBe('completed');
});

test('an account sees and settles only its own, in the environment of its key', async () => {
  const owner = await openCryptoShop(service);
  await owner.registerWallet();
  const { id } = await owner.pay();
  await owner.payBy('tx-own', ETHER, 'received');
  const { id: settlement } = (await owner.post(SETTLEMENTS, ASSET)).body;
  const balance = await owner.balance();
  const other = await openCryptoShop(service);
  await other.registerWallet();
  const live = await service.withKey(owner, true);

  const read = async ({ send }: Client) => {
    const answers: unknown[] = [];
    for (const route of listRoutes(id, settlement).slice(1)) {
      const { body } = await send(...route);
      answers.push(body.error?.code ?? body.data);
    }
    return answers;
  };
  const [noPayment, noSettlement] = ['crypto_payment_not_found', 'crypto_settlement_not_found'];
  const outOfScope = 'api_key_scope_insufficient';
  expect(await read(other)).toEqual([
    ...[noPayment, [], 'insufficient_balance', noSettlement, [], noPayment, noSettlement],
  ]);
  expect(await read(live)).toEqual([
    ...[noPayment, [], 'asset_not_available', noSettlement, [], outOfScope, outOfScope],
  ]);
  expect((await owner.read(id)).status).toBe('awaiting_deposit');
  expect(await owner.balance()).toEqual(balance);
});

describe('a crypto payment', () => {
  test('is paid over HTTP by its connector, and by no other', async () => {
    const { url, stores, mongo, keys, connector } = service;
    const audit = operatorsAudit(stores);
    const encrypter = createEncrypter(keys.seal);
    const deps = { stores, mongo, audit, encrypter, now: () => new Date() };
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
    const { chainConnector } = service;
    const { repeats, seen } = await send(chainConnector, report);
    // A repeat may learn that the try before it, whose outcome was unknown, has delivered.
    const statuses = repeats > 0 ? /^(delivered|duplicate)$/ : /^delivered$/;
    expect(seen).toEqual([202, { status: expect.stringMatching(statuses) }]);
    await shop.untilStatus(id, 'received');
    expect((await send(chainConnector, report)).seen).toEqual([202, { status: 'duplicate' }]);
    const more = report.replace(String(ETHER), String(ETHER + 1n));
    expect((await send(chainConnector, more)).seen[0]).toBe(409);
  });

  test('is created with an address, the amount due, a URI and a window of half an hour', async () => {
    const more = { reference: 'order-7', metadata: { n: 1 } };
    const created = await shop.pay(more);
    const { id, created_at, expires_at } = created;
    expect(created).toEqual({
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
      ...more,
      livemode: false,
      expires_at,
      received_at: null,
      created_at,
      updated_at: created_at,
    });
    const window = Date.parse(expires_at) - Date.parse(created_at);
    expect(Math.round(window / 60_000)).toBe(30);
    expect(await shop.read(id)).toEqual(created);
    expect(await shop.events(id)).toEqual([]);
  });

  test.each([
    [{ asset: 'USDC', network: 'tron' }, 'asset_not_supported'],
    [{ currency: 'ETH' }, 'invalid_request'],
    [{ network: undefined }, 'invalid_request'],
  ])('with %j is refused as %s', async (changes, code) => {
    const refused = await shop.post(PAYMENTS, { ...IN_ETHER, ...changes });
    expect(refused.body.error.code).toBe(code);
  });

  test('is received once the deposit is confirmed, and credits it to the smallest unit', async () => {
    const { id } = await shop.pay();
    const before = BigInt((await shop.balance()).available);
    await shop.deposit(id, 'tx-1', ETHER + 7n, 1);
    const seen = await shop.until(id, 'seen', ({ deposits }) => deposits.length === 1);
    expect(seen).toMatchObject({ status: 'awaiting_deposit', amount_received: '0' });
    expect(seen.deposits[0]).toMatchObject({ status: 'pending', confirmations: 1 });
    await shop.deposit(id, 'tx-1', ETHER + 7n, 3);
    const received = await shop.untilStatus(id, 'received');
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

  test('that is underpaid is received after a second deposit within the window', async () => {
    const id = await shop.payBy('tx-2', ETHER - 1n, 'underpaid');
    await shop.deposit(id, 'tx-3', 1n);
    await shop.untilStatus(id, 'received');
    expect(await shop.events(id)).toEqual(['crypto.payment.underpaid', 'crypto.payment.received']);
    await shop.end(id, 'crypto-payment-topped-up');
  });

  test('that is underpaid can be accepted as it is by an operator', async () => {
    const id = await shop.payBy('tx-4', ETHER - 1n, 'underpaid');
    expect(await shop.act('crypto_payment', id, 'accept')).toMatchObject({ status: 'received' });
    expect((await shop.read(id)).amount_received).toBe(String(ETHER - 1n));
    const stored = await service.stores.crypto_payments.get(id);
    expect(stored?.audit).toMatchObject([{ who: 'mia', what: 'accept', after: 'received' }]);
    await shop.end(id, 'crypto-payment-accepted');
  });

  test('from a source that fails screening is held, and released once', async () => {
    const before = await shop.balance();
    const id = await shop.payBy('bad-1', ETHER, 'held');
    await shop.attention(id, 'deposit_held');
    expect(await shop.balance()).toEqual(before);
    const release = () => shop.act('crypto_payment', id, 'release');
    expect(await release()).toMatchObject({ status: 'received' });
    await expect(release()).rejects.toMatchObject({ code: 'wrong_state' });
    expect(BigInt((await shop.balance()).available)).toBe(BigInt(before.available) + ETHER);
    expect(await shop.events(id)).toEqual(['crypto.payment.held', 'crypto.payment.received']);
    await saveHistory(shop.handle('crypto_payment', id), 'crypto-payment-released');
  });

  test('whose held deposit is rejected waits for another deposit', async () => {
    const id = await shop.payBy('bad-2', ETHER, 'held');
    const rejected = await shop.act('crypto_payment', id, 'reject');
    expect(rejected).toMatchObject({ status: 'awaiting_deposit' });
    expect((await shop.read(id)).deposits[0].status).toBe('rejected');
    await shop.deposit(id, 'tx-5', ETHER, 3, { screening: 'passed' });
    await shop.untilStatus(id, 'received');
    await shop.end(id, 'crypto-payment-rejected');
  });

  test('that has expired holds a late deposit for an operator', async () => {
    const { id } = await shop.pay();
    await shop.report('crypto_payment', id, 'expired', {});
    await shop.untilStatus(id, 'expired');
    await shop.handle('crypto_payment', id).result();
    await shop.deposit(id, 'tx-6', ETHER);
    await shop.attention(id, 'late_deposit');
    const held = { status: 'expired', amount_received: '0', deposits: [{ status: 'held' }] };
    expect(await shop.read(id)).toMatchObject(held);
    const credited = await shop.act('crypto_payment', id, 'credit_late');
    expect(credited).toMatchObject({ status: 'received' });
    expect(await shop.events(id)).toEqual(['crypto.payment.expired', 'crypto.payment.received']);
    await shop.end(id, 'crypto-payment-credited-late');
  });

  test('drops a reorged deposit before it is confirmed, and needs an operator after', async () => {
    const { id } = await shop.pay();
    await shop.deposit(id, 'tx-7', ETHER, 2);
    await shop.until(id, 'seen', ({ deposits }) => deposits.length === 1);
    await shop.undo(id, 'tx-7');
    await shop.until(id, 'dropped', ({ deposits }) => deposits.length === 0);
    await shop.deposit(id, 'tx-7', ETHER, 3);
    await shop.untilStatus(id, 'received');
    await shop.handle('crypto_payment', id).result();
    await shop.undo(id, 'tx-7');
    await shop.attention(id, 'deposit_undone');
    expect(await shop.read(id)).toMatchObject({ status: 'received', amount_received: `${ETHER}` });
    await shop.deposit(id, 'tx-7', ETHER, 1);
    await shop.attention(id, null);
    await saveHistory(shop.handle('crypto_payment', id), 'crypto-payment-undone');
  });

  test('counts a repeated report once, and adds no deposit for an incomplete report', async () => {
    const { id } = await shop.pay();
    const callback_id = `same-${id}`;
    await shop.deposit(id, 'tx-8', ETHER / 4n, 3, { callback_id });
    await shop.untilStatus(id, 'underpaid');
    expect(await shop.deposit(id, 'tx-8', ETHER / 4n, 3, { callback_id })).toBe('duplicate');
    await shop.report('crypto_payment', id, 'deposit', { transaction_id: 'tx-9' });
    await shop.attention(id, 'malformed_callback');
    expect((await shop.read(id)).deposits).toHaveLength(1);
  });

  test('is listed by status, newest first', async () => {
    const { body } = await shop.get(`${PAYMENTS}?status=expired&limit=100`);
    expect(body).toMatchObject({ object: 'list', has_more: false, next_cursor: null });
    const all = (await shop.get(`${PAYMENTS}?limit=2`)).body;
    expect(all).toMatchObject({ has_more: true, data: [{ object: 'crypto_payment' }, {}] });
    expect((await shop.get(`${PAYMENTS}?status=settled`)).status).toBe(400);
  });

  test('of any size is exact, and leaves the ledger without differences', async () => {
    const large = await openCryptoShop(service);
    const sum = 10n ** 24n + 1n;
    const { id } = await large.pay({ amount: 20_000_000_000 });
    await large.deposit(id, 'tx-large', sum);
    await large.untilStatus(id, 'underpaid');
    await large.deposit(id, 'tx-larger', sum);
    await large.untilStatus(id, 'received');
    expect(await large.balance()).toEqual({ available: String(2n * sum), reserved: '0' });
    const { differences } = await shop.verify();
    expect(differences).toEqual([]);
  });
});

describe('a settlement', () => {
  const settle = (body: object = ASSET, as: Client = shop) => as.post(SETTLEMENTS, body);
  const readCode = async (body?: object) => (await settle(body)).body.error.code;

  test('needs a wallet, a balance and a minimum amount', async () => {
    expect(await readCode()).toBe('wallet_not_registered');
    await shop.registerWallet();
    expect(await readCode({ asset: 'USDC', network: 'ethereum' })).toBe('insufficient_balance');
    const { available } = await shop.balance();
    const more = { ...ASSET, amount: String(BigInt(available) + 1n) };
    expect(await readCode(more)).toBe('insufficient_balance');
    expect(await readCode({ ...ASSET, amount: '0' })).toBe('invalid_amount');
    const small = await settle({ ...ASSET, amount: String(BigInt(LEAST) - 1n) });
    expect([small.status, small.body.error]).toMatchObject([
      422,
      {
        code: 'method_requirements_not_met',
        message: `A settlement must be at least 0.001 ETH (${LEAST}).`,
        details: [{ field: 'amount' }],
      },
    ]);
  });

  test('pays a part and then the rest, and a failed one gives its amount back', async () => {
    await shop.registerWallet();
    const { available } = await shop.balance();
    const part = await settle({ ...ASSET, amount: LEAST });
    const rest = await settle();
    const { id, created_at } = rest.body;
    expect([part.status, rest.status]).toEqual([201, 201]);
    expect(rest.body).toEqual({
      id,
      object: 'crypto_settlement',
      status: expect.stringMatching(/^(pending|sent)$/),
      ...ASSET,
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
    const { body } = await shop.get(`${SETTLEMENTS}/${failing}`);
    expect(body.failure).toEqual({ code: 'dust', message: 'Too small to send.' });
    expect(await shop.events(failing)).toEqual(['crypto.settlement.failed']);
    await saveHistory(shop.handle('crypto_settlement', failing), 'crypto-settlement-failed');
    expect((await shop.get(`${SETTLEMENTS}?status=failed`)).body.data).toEqual([body]);
  });

  test('is created daily by the schedule, to a wallet that takes effect', async () => {
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
    const run = { taskQueue, workflowId: randomUUID(), args: [] };
    await temporal.workflow.execute('cryptoSettlements', run);
    expect(await day.balance()).toEqual({ available: String(ETHER), reserved: '0' });
    expect((await settle(ASSET, day)).body.error).toMatchObject({
      code: 'wallet_not_registered',
      message: `Settlements on ethereum pause until the new wallet takes effect at ${tomorrow}.`,
    });
    const other = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359';
    await stores.wallets.set({ ...wallet, address: other }, { now, counts_from: now });
    const patient = patientClient(temporal);
    const ensure = () => ensureSchedule(patient, 'settlements', taskQueue);
    expect(await ensure()).toBe('made');
    expect(await retryUntilDone(ensure)).toBe('kept');
    const schedule = temporal.schedule.getHandle(getScheduleId('settlements', taskQueue));
    const daily = { every: 86_400_000, offset: 7_200_000 };
    expect((await schedule.describe()).spec.intervals).toMatchObject([daily]);
    await schedule.trigger();
    const settled = await eventually('the settlement', async () => {
      return (await day.get(SETTLEMENTS)).body.data[0];
    });
    await schedule.delete();
    expect(settled).toMatchObject({ amount: String(ETHER), wallet_address: other });
    expect(await day.balance()).toEqual({ available: '0', reserved: String(ETHER) });
  });

  test('leaves out a reorged deposit until an operator decides', async () => {
    const loss = await openCryptoShop(service);
    await loss.registerWallet();
    const ids: string[] = [];
    for (const transaction of ['tx-stays', 'tx-gone', 'tx-lost']) {
      ids.push(await loss.payBy(transaction, ETHER, 'received'));
    }
    const [, gone = '', lost = ''] = ids;
    await loss.undo(gone, 'tx-gone');
    await loss.undo(lost, 'tx-lost');
    await loss.attention(gone, 'deposit_undone');
    await loss.attention(lost, 'deposit_undone');
    const refused = await settle({ ...ASSET, amount: String(ETHER + 1n) }, loss);
    expect(refused.body.error).toMatchObject({
      code: 'insufficient_balance',
      message: expect.stringContaining('2 ETH is held back'),
    });
    const first = await settle(ASSET, loss);
    expect([first.status, first.body.amount]).toEqual([201, String(ETHER)]);
    expect((await settle(ASSET, loss)).body.error.code).toBe('insufficient_balance');
    await loss.act('crypto_payment', gone, 'debit_reorged');
    await loss.act('crypto_payment', lost, 'write_off');
    expect(await loss.balance()).toEqual({ available: String(ETHER), reserved: String(ETHER) });
    const second = await settle(ASSET, loss);
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
});
