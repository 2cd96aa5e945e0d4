import { randomUUID } from 'node:crypto';
import type { ServiceError } from '../../../src/domain/errors';
import { readAct } from '../../../src/domain/operator-act';
import { toBigInt } from '../../../src/ledger/integers';
import { verifyLedger } from '../../../src/ledger-check/verify';
import { LIFECYCLES } from '../../../src/lifecycles';
import { actOn } from '../../../src/service/operators/act';
import { nextRun } from '../../../src/temporal/start';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import { eventTypes, useWorkflowSetting, withBank } from '../../support/workflow-setting';
import { activitiesBehind, balanceOf, ETHER, marked, openPayment, stands } from './setting';

const setting = useWorkflowSetting('time-skipping', ['sandbox', 'live']);

const ACT = { operator: 'mia', reason: 'Ticket 42' };
type Handle = Awaited<ReturnType<typeof openPayment>>['handle'];
const act = (handle: Handle, name: string, more: object = {}) =>
  handle.executeUpdate(name, { args: [{ ...ACT, ...more }] });

/** Sum of all lines of a ledger account. */
async function sumOf(account_id: string, account: string, asset = 'ETH'): Promise<bigint> {
  const { postings } = setting.stores.ledger.collections;
  const rows = await postings.find({ book: `${account_id}:sandbox:${asset}.ethereum` }).toArray();
  return rows
    .flatMap(({ legs }) => legs)
    .filter((line) => line.account === account)
    .reduce((sum, { amount }) => sum + (toBigInt(amount) ?? 0n), 0n);
}

/** Expects the entries of a payment to be those of its deposits. */
async function expectVerified(id: string): Promise<void> {
  const { dbName } = setting.stores.ledger.collections.books;
  const { differences } = await verifyLedger(setting.mongo, dbName, { full: true });
  expect(differences.filter((each) => JSON.stringify(each).includes(id))).toEqual([]);
}

async function afterWindow(id: string): Promise<string> {
  const expires = (await setting.stores.crypto_payments.get(id))?.expires_at ?? '';
  return new Date(Date.parse(expires) + 1).toISOString();
}

// Tests that skip hours come first: an activity that another test leaves holds the clock.
test('a deposit that stays pending after the end needs an operator, who confirms it', () =>
  withBank(setting, scriptedChain(), async (connector) => {
    const { id, account_id, handle, deposit } = await openPayment(setting, connector);
    await deposit('late', ETHER, 1, { occurred_at: await afterWindow(id) });
    await setting.env.sleep('20 hours');
    await stands(setting, id, 'expired');
    await setting.env.sleep('6 hours');
    await marked(setting, id, 'deposit_unconfirmed');
    expect(await handle.result()).toMatchObject({ status: 'expired' });
    const { stores, env, queues } = setting;
    const deps = { stores, temporal: env.client, lifecycleQueue: queues.lifecycle };
    await actOn(deps, 'crypto_payment', id, { ...ACT, what: 'confirm', transaction_id: 'late' });
    await marked(setting, id, 'late_deposit');
    await actOn(deps, 'crypto_payment', id, { ...ACT, what: 'credit_late' }).catch(
      (error: ServiceError) => {
        // Where this server fails an answer, the client asks again, and the next run refuses the
        // repeat, maybe before the first is stored.
        if (error.code !== 'wrong_state') throw error;
      },
    );
    await stands(setting, id, 'received');
    expect(await balanceOf(setting, account_id)).toMatchObject({ available: `${ETHER}` });
    await expectVerified(id);
  }));

describe('the end of the window', () => {
  /** A chain that is read up to a time; undefined: the connector is away. */
  const readUntil = (time: () => string | undefined) =>
    scriptedChain({
      readChainTime: async () => {
        const reported_until = time();
        if (reported_until === undefined) throw new Error('The node is away.');
        return { reported_until };
      },
    });

  test('waits until the connector has read the chain, and counts what was mined in time', () => {
    let reported: string | undefined;
    return withBank(
      setting,
      readUntil(() => reported),
      async (connector) => {
        const { id, account_id, handle, deposit } = await openPayment(setting, connector);
        const { expires_at = '' } = (await setting.stores.crypto_payments.get(id)) ?? {};
        const timeBefore = (ms: number) => new Date(Date.parse(expires_at) - ms).toISOString();
        await setting.env.sleep('2 hours');
        reported = timeBefore(60_000);
        await setting.env.sleep('1 hour');
        await stands(setting, id, 'awaiting_deposit');
        const seen = { occurred_at: await afterWindow(id), mined_at: timeBefore(1_000) };
        await deposit('tx', ETHER / 2n, 3, seen);
        await stands(setting, id, 'underpaid');
        reported = expires_at;
        await setting.env.sleep('1 hour');
        await marked(setting, id, 'underpaid');
        await act(handle, 'accept');
        expect(await handle.result()).toMatchObject({ status: 'received' });
        expect(await eventTypes(setting, id)).toEqual([
          'crypto.payment.underpaid',
          'crypto.payment.received',
        ]);
        expect(await balanceOf(setting, account_id)).toMatchObject({ available: `${ETHER / 2n}` });
      },
    );
  });

  test('comes after six hours whatever the connector has read; money of the window still counts', () =>
    withBank(
      setting,
      readUntil(() => undefined),
      async (connector) => {
        const { id, handle } = await openPayment(setting, connector);
        await setting.env.sleep('5 hours');
        await stands(setting, id, 'awaiting_deposit');
        await setting.env.sleep('3 hours');
        await stands(setting, id, 'expired');
        expect(await handle.result()).toMatchObject({ status: 'expired' });
        const again = await openAgain(id);
        await again.signal('deposit', {
          ...{ callback_id: 'late-report', occurred_at: new Date(0).toISOString() },
          ...{ transaction_id: 'tx', amount: `${ETHER}`, confirmations: 3 },
        });
        await stands(setting, id, 'received');
        expect(await again.result()).toMatchObject({ status: 'received' });
      },
    ));
});

async function openAgain(id: string) {
  const kept = await setting.stores.crypto_payments.get(id);
  if (kept === null) throw new Error('No payment.');
  const { workflowType } = LIFECYCLES.crypto_payment;
  const start = nextRun('crypto_payment', kept, setting.queues.lifecycle, 'req-3');
  return await setting.env.client.workflow.start(workflowType, start);
}

describe('a deposit that is not credited', () => {
  test('is in suspense from its confirmation until it is back with the payer', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, account_id, handle, deposit } = await openPayment(setting, connector);
      await deposit('late', ETHER, 3, { occurred_at: await afterWindow(id) });
      await marked(setting, id, 'late_deposit');
      expect(await sumOf(account_id, 'suspense.deposits')).toBe(ETHER);
      await expect(act(handle, 'acknowledge')).rejects.toMatchObject({
        cause: { type: 'money_in_suspense' },
      });
      await act(handle, 'reject');
      await marked(setting, id, 'deposit_to_return');
      await expect(act(handle, 'mark_sent_back', { deposit: 'other' })).rejects.toMatchObject({
        cause: { type: 'wrong_state' },
      });
      await act(handle, 'mark_sent_back', { transaction_id: 'out', address: '0xabc' });
      await marked(setting, id, null);
      expect(await sumOf(account_id, 'suspense.deposits')).toBe(0n);
      expect(await sumOf(account_id, `clearing.${connector}`)).toBe(0n);
      const left = { as: 'returned', transaction_id: 'out', address: '0xabc' };
      const kept = await setting.stores.crypto_payments.get(id);
      expect(kept?.deposits).toMatchObject([{ status: 'rejected', left }]);
      await expectVerified(id);
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      await saveHistory(handle, 'crypto-payment-sent-back');
    }));

  test.each<[string, string[], object, bigint, bigint]>([
    ['is credited from suspense', ['release'], { transaction_id: 'bad' }, ETHER, 0n],
    ['is written off', ['reject', 'write_off'], { transaction_id: 'bad' }, 0n, ETHER],
  ])('%s', (_, acts, report, credited, adjusted) =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, account_id, handle, deposit } = await openPayment(setting, connector);
      await deposit('bad', ETHER, 3, report);
      await marked(setting, id, 'deposit_held');
      expect(await sumOf(account_id, 'suspense.deposits')).toBe(ETHER);
      for (const name of acts) await act(handle, name);
      await marked(setting, id, null);
      expect(await balanceOf(setting, account_id)).toMatchObject({ available: `${credited}` });
      expect(await sumOf(account_id, 'suspense.deposits')).toBe(0n);
      expect(await sumOf(account_id, 'external.adjustments')).toBe(adjusted);
      await expectVerified(id);
    }),
  );

  test('of another asset is in the book of what came', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, account_id, handle, report } = await openPayment(setting, connector);
      await report('wrong_asset', { transaction_id: 'usdc', amount: '5000000', asset: 'USDC' });
      await marked(setting, id, 'wrong_asset');
      expect(await sumOf(account_id, 'suspense.deposits', 'USDC')).toBe(5_000_000n);
      await act(handle, 'mark_sent_back', { transaction_id: 'out' });
      await marked(setting, id, null);
      expect(await sumOf(account_id, 'suspense.deposits', 'USDC')).toBe(0n);
      await expectVerified(id);
    }));

  test('is back with the payer on live only by the transaction that an operator names', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, handle, deposit } = await openPayment(setting, connector, randomUUID(), true);
      await deposit('bad', ETHER, 3);
      await marked(setting, id, 'deposit_held');
      await expect(act(handle, 'mark_sent_back')).rejects.toMatchObject({
        cause: { type: 'invalid_request', message: expect.stringContaining('transaction_id') },
      });
      await act(handle, 'mark_sent_back', { transaction_id: 'out' });
      await marked(setting, id, null);
    }));

  test('that is dust on live changes nothing, and leaves room for the real one', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, handle, deposit } = await openPayment(setting, connector, randomUUID(), true);
      for (const n of [1, 2, 3]) await deposit(`dust ${n}`, 1n, 3);
      await deposit('tx', ETHER, 3);
      expect(await handle.result()).toMatchObject({ status: 'received' });
      const kept = await setting.stores.crypto_payments.get(id);
      expect(kept?.deposits).toMatchObject([{ amount: `${ETHER}` }]);
    }));
});

test.each<[string, object, string]>([
  ['confirm', {}, 'transaction_id: is required'],
  ['write_off', { transaction_id: 'x' }, 'transaction_id: is not accepted here'],
  ['debit_reorged', { deposit: '' }, 'deposit: must have at least 1 character'],
  ['release', { deposit: 'x' }, 'deposit: is not accepted here'],
  ['mark_sent_back', { address: 7 }, 'address: must be a string'],
])('%s with %j is refused', (name, more, text) => {
  expect(readAct(name, { ...ACT, ...more })).toMatchObject({ text });
});

test('a move whose answer was lost is known as its own, without event, callback or act', () =>
  withBank(setting, scriptedChain(), async (connector) => {
    const { id, account_id, deposit } = await openPayment(setting, connector);
    await deposit('tx', ETHER, 1);
    const seen = await eventually('the deposit', async () => {
      const payment = await setting.stores.crypto_payments.get(id);
      return payment?.deposits.length === 1 && payment;
    });
    const { status, version, deposits, attention } = seen;
    const move = (moveId: string) =>
      activitiesBehind(setting).recordCryptoPaymentMove({
        ...{ resource_id: id, account_id, livemode: false, request_id: 'req', attention },
        ...{ from: { status, version }, to: [status], at: new Date().toISOString(), id: moveId },
        change: { deposits, credited: [], entries: [], is_reported: false },
      });
    const first = await move('run:1');
    expect(first).toEqual({ status, version: version + 1 });
    expect(await move('run:1')).toEqual(first);
    expect(await move('run:2')).toMatchObject({ version: version + 1, stale: {} });
  }));
