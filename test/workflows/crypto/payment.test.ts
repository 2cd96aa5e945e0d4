import { randomUUID } from 'node:crypto';
import { readAct } from '../../../src/domain/operators/operator-act';
import { createMetricStore } from '../../../src/store/metrics';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import { terminateIdle } from '../../support/skipping-server';
import { eventTypes, useWorkflowSetting, withBank } from '../../support/workflow-setting';
import { ACT, refusalOf } from '../lifecycles';
import {
  activitiesBehind,
  debit,
  ETHER,
  openPayment,
  type TrackedCryptoPayment,
  withPayment,
} from './setting';

const setting = useWorkflowSetting('time-skipping', ['sandbox', 'live']);

const QUARTER = ETHER / 4n;
const UNDERPAID_EVENT = 'crypto.payment.underpaid';

type Story = (payment: TrackedCryptoPayment) => Promise<unknown>;

/** Time before the end of a payment's window, or after it where `ms` is below 0. */
async function timeBeforeEnd({ stored }: TrackedCryptoPayment, ms: number): Promise<string> {
  return new Date(Date.parse((await stored()).expires_at) - ms).toISOString();
}

// Tests that skip hours come first: an activity that another test leaves holds the clock.
describe('the window of a crypto payment', () => {
  test.each([
    ['', 'crypto-payment-expired', false],
    [', also while its attention reason is snoozed', 'crypto-payment-snoozed-expired', true],
  ])('ends without a deposit in the status expired%s', (_when, history, isSnoozed) =>
    withPayment(setting, async ({ id, handle, act, becomes }) => {
      if (isSnoozed) {
        await act('snooze', { hours: 24 });
        await setting.env.sleep('1 hour');
        await becomes({ status: 'expired' });
      }
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      expect(await eventTypes(setting, id)).toEqual(['crypto.payment.expired']);
      await saveHistory(handle, history);
    }),
  );

  test('stays open for a deposit that has been seen, which needs attention after a day', () =>
    withPayment(setting, async ({ handle, deposit, report, act, becomes }) => {
      await deposit('tx', ETHER, 1);
      await setting.env.sleep('2 hours');
      expect(await handle.query('state')).toMatchObject({ status: 'awaiting_deposit' });
      await setting.env.sleep('24 hours');
      await becomes({ attention: 'deposit_unconfirmed' });
      const metrics = createMetricStore(setting.mongo.db(setting.database));
      const about = { resource: 'crypto_payment', reason: 'deposit_unconfirmed' };
      const { stuck } = await metrics.read(new Date());
      expect(stuck).toEqual([{ ...about, livemode: 'false', count: 1 }]);
      await act('snooze', { hours: 1 });
      await becomes({ attention: null });
      await report('deposit_undone', { transaction_id: 'tx' });
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      await saveHistory(handle, 'crypto-payment-unconfirmed');
    }));

  test('applies no report again, however many came since', () =>
    withPayment(setting, async ({ id, connector, handle, stored, report }) => {
      const { callbacks } = setting.stores;
      const occurred_at = new Date(0).toISOString();
      const about = { connector, resource: 'crypto_payment', resource_id: id } as const;
      for (let number = 0; number < 60; number += 1) {
        const facts = {
          transaction_id: `tx-${number}`,
          amount: '1',
          confirmations: 1,
          occurred_at,
        };
        const body = { callback_id: `${id}:${number}`, ...facts };
        const row = { ...about, name: 'deposit', body, received_at: occurred_at } as const;
        const { _id } = await callbacks.insertOnce(row);
        await callbacks.markSignalled({ _id }, occurred_at);
        await report('deposit', body);
      }
      await eventually('the deposits', async () => (await stored()).deposits.length === 60);
      const { applied_callbacks: applied = [] } = await stored();
      expect(applied).toHaveLength(50);
      expect(await callbacks.listMissed(id, applied)).toEqual([]);
      await terminateIdle(handle);
    }));

  const withUnderpaid = (story: Story) =>
    withPayment(setting, async (payment) => {
      await payment.deposit('tx', ETHER - 1n, 3);
      await payment.becomes({ status: 'underpaid' });
      expect(await refusalOf(payment.act('return'))).toMatchObject({ code: 'wrong_state' });
      await setting.env.sleep('1 hour');
      await payment.becomes({ attention: 'underpaid' });
      await story(payment);
    });

  test('leaves an underpaid payment to an operator, who returns what the balance holds', () =>
    withUnderpaid(async (payment) => {
      const { id, handle, act } = payment;
      const creditAgain = await debit(setting, payment, ETHER - 1n);
      expect(await refusalOf(act('return'))).toMatchObject({ code: 'insufficient_balance' });
      expect(await handle.query('state')).toMatchObject({ status: 'underpaid' });
      await creditAgain();
      await act('return');
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      expect(await payment.balance()).toMatchObject({ available: '0' });
      expect(await payment.stored()).toMatchObject({
        ...{ amount_received: '0', attention: 'deposit_to_return' },
        deposits: [{ status: 'rejected' }],
      });
      expect(await payment.movements()).toMatchObject([
        { state: 'suspense', reason: 'deposit_to_return', is_debited: true },
      ]);
      expect(await eventTypes(setting, id)).toEqual([UNDERPAID_EVENT, 'crypto.payment.expired']);
      await saveHistory(handle, 'crypto-payment-returned');
    }));

  test('leaves an underpaid payment open for a late deposit that an operator credits', () =>
    withUnderpaid(async (payment) => {
      const { handle, deposit, act, balance } = payment;
      await deposit('late', 1n, 3, { occurred_at: await timeBeforeEnd(payment, -1) });
      await payment.becomes({ attention: 'late_deposit' });
      expect(await balance()).toMatchObject({ available: `${ETHER - 1n}` });
      await act('credit_late');
      expect(await handle.result()).toMatchObject({ status: 'received' });
      expect(await balance()).toMatchObject({ available: `${ETHER}` });
      await saveHistory(handle, 'crypto-payment-underpaid');
    }));

  /** Builds a chain that is read up to a time, or whose connector is away where that is undefined. */
  const buildChain = (readTime: () => string | undefined) =>
    scriptedChain({
      readChainTime: async () => {
        const reported_until = readTime();
        if (reported_until === undefined) throw new Error('The node is away.');
        return { reported_until };
      },
    });

  test('ends once the connector has read the chain up to it, and counts what was mined in time', () => {
    let readUntil: string | undefined;
    const story: Story = async (payment) => {
      const { handle, deposit, becomes } = payment;
      await setting.env.sleep('2 hours');
      readUntil = await timeBeforeEnd(payment, 60_000);
      await setting.env.sleep('1 hour');
      await becomes({ status: 'awaiting_deposit' });
      await deposit('tx', ETHER / 2n, 3, {
        occurred_at: await timeBeforeEnd(payment, -1),
        mined_at: await timeBeforeEnd(payment, 1_000),
      });
      await becomes({ status: 'underpaid' });
      readUntil = await timeBeforeEnd(payment, 0);
      await setting.env.sleep('1 hour');
      await becomes({ attention: 'underpaid' });
      await payment.act('accept');
      expect(await handle.result()).toMatchObject({ status: 'received' });
    };
    return withPayment(setting, story, { chain: buildChain(() => readUntil) });
  });

  test('ends after six hours without the connector, and a deposit in time still counts', () => {
    const story: Story = async ({ handle, becomes, restart }) => {
      await setting.env.sleep('5 hours');
      await becomes({ status: 'awaiting_deposit' });
      await setting.env.sleep('3 hours');
      await becomes({ status: 'expired' });
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      const next = await restart();
      await next.signal('deposit', {
        ...{ callback_id: 'late-report', occurred_at: new Date(0).toISOString() },
        ...{ transaction_id: 'tx', amount: `${ETHER}`, confirmations: 3 },
      });
      expect(await next.result()).toMatchObject({ status: 'received' });
    };
    return withPayment(setting, story, { chain: buildChain(() => undefined) });
  });
});

describe('a crypto payment', () => {
  /** Opens a payment that is refused, and stores nothing. */
  async function expectRefused(connector: string, message: unknown, history: string) {
    const id = randomUUID();
    const refusal = { code: 'asset_not_available', message };
    expect(await refusalOf(openPayment(setting, connector, { id }))).toEqual(refusal);
    expect(await setting.stores.crypto_payments.get(id)).toBeNull();
    expect(await setting.stores.idempotency.forResource(id)).toBeNull();
    await saveHistory(setting.env.client.workflow.getHandle(`crypto-payment:${id}`), history);
  }

  test('that no connector opens is refused, and its key is free', () => {
    const decline = { outcome: 'declined', code: 'no_rate', message: 'There is no rate.' } as const;
    return withBank(setting, scriptedChain({ quoteRate: async () => decline }), (connector) =>
      expectRefused(connector, decline.message, 'crypto-payment-not-available'),
    );
  });

  test('that is given the address of another is refused, and stores nothing', () => {
    const chain = scriptedChain();
    const { giveAddress } = chain.activities;
    const address = `0x${randomUUID()}`;
    chain.activities.giveAddress = async (input) => ({ ...(await giveAddress(input)), address });
    return withBank(setting, chain, async (connector) => {
      const first = await openPayment(setting, connector);
      const message = expect.stringMatching(/another payment/);
      await expectRefused(connector, message, 'crypto-payment-address-in-use');
      // Left open, it would query a connector that is gone, which holds the clock for minutes.
      expect(await first.handle.result()).toMatchObject({ status: 'expired' });
    });
  });

  test('keeps an attention reason that no deposit explains until an operator has looked', () =>
    withPayment(setting, async ({ handle, deposit, act, becomes }) => {
      await deposit('tx', QUARTER, 3);
      await becomes({ status: 'underpaid' });
      await deposit('tx', 2n * QUARTER, 3);
      await becomes({ attention: 'amount_differs' });
      await deposit('more', 2n * QUARTER, 3);
      await becomes({ amount_received: String(3n * QUARTER) });
      await act('snooze', { hours: 1 });
      await deposit('rest', QUARTER, 3);
      expect(await handle.result()).toMatchObject({ status: 'received' });
      const { audit } = await becomes({ attention: null });
      expect(audit).toMatchObject([{ what: 'snooze', before: 'amount_differs' }]);
      await saveHistory(handle, 'crypto-payment-mark-kept');
    }));

  /** Builds an input that records a change behind the workflow, of what is stored with one deposit. */
  async function waitForDeposit({ stored }: TrackedCryptoPayment) {
    const payment = await eventually('the deposit', async () => {
      const document = await stored();
      return document.deposits.length === 1 && document;
    });
    const { _id: resource_id, account_id, livemode, attention } = payment;
    const { status, version, transition } = payment;
    return {
      ...payment,
      input: {
        ...{ resource_id, account_id, livemode, request_id: 'req', attention },
        ...{ from: { status, version, transition }, at: new Date().toISOString() },
      },
    };
  }

  test('that is started again continues from what the database has', () =>
    withPayment(setting, async (payment) => {
      await payment.deposit('tx', ETHER, 1);
      await waitForDeposit(payment);
      await terminateIdle(payment.handle);
      const next = await payment.restart();
      await payment.deposit('tx', ETHER, 3);
      expect(await next.result()).toMatchObject({ status: 'received' });
      await saveHistory(next, 'crypto-payment-resumed');
    }));

  test('with a stale state reads its deposits again before an act changes it', () =>
    withPayment(setting, async (payment) => {
      const { handle, deposit } = payment;
      const half = ETHER / 2n;
      await deposit('tx', half, 1);
      const { version, transition, deposits, input } = await waitForDeposit(payment);
      const counted = { confirmations: 3, screening: 'passed', status: 'confirmed' } as const;
      await activitiesBehind(setting).recordCryptoPaymentMove({
        ...{ ...input, to: ['underpaid'] },
        change: {
          deposits: deposits.map((each) => ({ ...each, ...counted })),
          ...{ amount_received: String(half), accepted: false },
          steps: [{ step: 'credited', deposit: 'tx' }],
          ...{ reported: [{ status: 'underpaid', transition: transition + 1 }], is_reported: true },
        },
      });
      const snoozed = await payment.act('snooze', { hours: 1 });
      expect(snoozed).toMatchObject({ status: 'underpaid', version: version + 2 });
      await deposit('rest', half, 3);
      expect(await handle.result()).toMatchObject({ status: 'received' });
      const after = await payment.stored();
      expect(after.deposits).toMatchObject([counted, counted]);
      expect(after.audit).toMatchObject([{ what: 'snooze' }]);
      await saveHistory(handle, 'crypto-payment-act-record-ahead');
    }));

  test('knows a transition whose answer was lost as its own by its id', () =>
    withPayment(setting, async (payment) => {
      await payment.deposit('tx', ETHER, 1);
      const { status, version, transition, deposits, input } = await waitForDeposit(payment);
      const record = (id: string) =>
        activitiesBehind(setting).recordCryptoPaymentMove({
          ...{ ...input, to: [status], id },
          change: { deposits, steps: [], is_reported: false },
        });
      const first = await record('run:1');
      expect(first).toEqual({ status, version: version + 1, transition: transition + 1 });
      expect(await record('run:1')).toEqual(first);
      expect(await record('run:2')).toMatchObject({ version: version + 1, stale: {} });
    }));
});

describe('a deposit that is not credited', () => {
  test('is in suspense from its confirmation until it is sent back to the payer', () =>
    withPayment(setting, async (payment) => {
      const { connector, handle, deposit, act, becomes } = payment;
      await deposit('late', ETHER, 3, { occurred_at: await timeBeforeEnd(payment, -1) });
      await becomes({ attention: 'late_deposit' });
      expect(await payment.sum('suspense.deposits')).toBe(ETHER);
      expect(await refusalOf(act('acknowledge'))).toMatchObject({ code: 'money_in_suspense' });
      await act('reject');
      await becomes({ attention: 'deposit_to_return' });
      const refuse = (facts: object) => refusalOf(act('resolve_movement', facts));
      for (const facts of [{ movement: 'mv_other' }, { as: 'merchant' }, { amount: 5 }]) {
        const refused = await refuse({ as: 'customer', ...facts });
        expect(refused).toMatchObject({ code: 'wrong_state' });
      }
      const named = { as: 'loss', transaction_id: 'out' };
      expect(await refuse(named)).toMatchObject({ code: 'invalid_request' });
      await act('resolve_movement', { as: 'customer', transaction_id: 'out', address: '0xabc' });
      const { deposits } = await becomes({ attention: null });
      expect(await payment.sum('suspense.deposits')).toBe(0n);
      expect(await payment.sum(`clearing.${connector}`)).toBe(0n);
      expect(deposits).toMatchObject([{ status: 'rejected' }]);
      const [came, sent] = await payment.movements();
      expect(came).toMatchObject({
        ...{ direction: 'in', names: ['late'], state: 'resolved', reason: 'deposit_to_return' },
        resolutions: [{ as: 'customer', operator: ACT.operator, by: sent?._id, address: '0xabc' }],
      });
      expect(sent).toMatchObject({ direction: 'out', bank_reference: 'out', state: 'applied' });
      expect(await payment.differences()).toEqual([]);
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      await saveHistory(handle, 'crypto-payment-sent-back');
    }));

  test('and that another payment has by the same transaction, is a movement of its own', () =>
    withPayment(setting, async (payment) => {
      const other = await openPayment(setting, payment.connector);
      const names: (readonly string[])[] = [];
      for (const each of [payment, other]) {
        await each.deposit('shared', ETHER, 3);
        expect(await each.handle.result()).toMatchObject({ status: 'received' });
        const [movement, ...more] = await each.movements();
        expect(more).toEqual([]);
        expect(movement).toMatchObject({
          ...{ bank_reference: 'shared', amount: `${ETHER}`, currency: 'ETH.ethereum' },
          ...{ state: 'applied', reason: null, sources: [{ kind: 'block', id: 'shared' }] },
          entry: `crypto_payment_credited:${each.id}:shared`,
        });
        expect(await each.differences()).toEqual([]);
        names.push(movement?.names ?? []);
      }
      expect(names).toEqual([['shared'], [expect.stringContaining(other.id)]]);
    }));

  test('keeps its reason, whatever an operator silences, until one that says more comes', () =>
    withPayment(setting, async (payment) => {
      const { connector, handle, deposit, report, act, becomes } = payment;
      await deposit('tx', ETHER - 1n, 3);
      await becomes({ status: 'underpaid' });
      await deposit('late', 1n, 3, { occurred_at: await timeBeforeEnd(payment, -1) });
      await becomes({ attention: 'late_deposit' });
      await act('snooze', { hours: 1 });
      await becomes({ attention: 'late_deposit' });
      await report('deposit_undone', { transaction_id: 'tx' });
      await becomes({ attention: 'deposit_undone', amount_received: `${ETHER - 1n}` });
      expect(await refusalOf(act('acknowledge'))).toMatchObject({ code: 'money_in_suspense' });
      const several = await refusalOf(act('resolve_movement', { as: 'loss' }));
      expect(several).toMatchObject({ message: expect.stringContaining('name one by its id') });
      const [gone, late] = await payment.movements();
      expect(gone).toMatchObject({ state: 'suspense', reason: 'deposit_undone', applied: '0' });
      await act('resolve_movement', { movement: gone?._id, as: 'merchant' });
      await becomes({ attention: 'late_deposit', amount_received: '0' });
      await report('deposit_undone', { transaction_id: 'late' });
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      const after = await payment.movements();
      expect(after).toMatchObject([
        { _id: gone?._id, state: 'resolved', resolutions: [{ as: 'merchant', operator: 'ada' }] },
        { _id: late?._id, state: 'resolved', resolutions: [{ as: 'never_happened' }] },
      ]);
      expect(await payment.sum(`clearing.${connector}`)).toBe(0n);
      expect(await payment.sum('suspense.deposits')).toBe(0n);
      expect(await payment.differences()).toEqual([]);
    }));

  test('or that the register has otherwise than its payment, is a difference of the ledger', () =>
    withPayment(setting, async (payment) => {
      const { id, handle, deposit, movements } = payment;
      await deposit('tx', ETHER, 3);
      expect(await handle.result()).toMatchObject({ status: 'received' });
      const [row] = await movements();
      const rows = setting.mongo.db(setting.database).collection<{ _id: string }>('bank_movements');
      const is = async (change: object, ...differences: object[]) => {
        await rows.updateOne({ _id: row?._id ?? '' }, { $set: change });
        expect(await payment.differences()).toMatchObject(differences);
      };
      const counts = { check: 'deposit_differs', subject: id, found: `${ETHER} counts` };
      const extra = { check: 'posting_extra', subject: id };
      await is({ applied: '0' }, extra, { ...counts, expected: `${ETHER} does not count` });
      const other = { ...counts, expected: '5 counts' };
      await is({ applied: '5', amount: '5' }, { check: 'posting_differs', subject: id }, other);
      await is({ applied: `${ETHER}`, amount: `${ETHER}` });
      await rows.deleteOne({ _id: row?._id ?? '' });
      expect(await payment.differences()).toMatchObject([{ ...counts, expected: null }]);
    }));

  test('is sent back on live only by a transaction that one operator names and another approves', () => {
    const story: Story = async ({ deposit, act, becomes, stored }) => {
      await deposit('bad', ETHER, 3);
      await becomes({ attention: 'deposit_held' });
      const message = expect.stringContaining('transaction_id');
      const sendBack = (facts: object = {}) =>
        act('resolve_movement', { as: 'customer', ...facts });
      expect(await refusalOf(sendBack())).toEqual({ code: 'invalid_request', message });
      const required = { status: 'approval_required' };
      expect(await sendBack({ transaction_id: 'out' })).toMatchObject(required);
      expect(await stored()).toMatchObject({ attention: 'deposit_held', audit: [] });
    };
    return withPayment(setting, story, { livemode: true });
  });

  test('changes nothing on live when it is dust, so that the real one counts', () => {
    const story: Story = async ({ handle, deposit, stored }) => {
      for (const n of [1, 2, 3]) await deposit(`dust ${n}`, 1n, 3);
      await deposit('tx', ETHER, 3);
      expect(await handle.result()).toMatchObject({ status: 'received' });
      expect((await stored()).deposits).toMatchObject([{ amount: `${ETHER}` }]);
    };
    return withPayment(setting, story, { livemode: true });
  });
});

test.each<[string, object, string]>([
  ['confirm', {}, 'transaction_id: is required'],
  ['release', { transaction_id: 'x' }, 'transaction_id: is not accepted here'],
  [
    'resolve_movement',
    { as: 'customer', movement: '' },
    'movement: must have at least 1 character',
  ],
  ['release', { movement: 'x' }, 'movement: is not accepted here'],
  ['resolve_movement', { as: 'customer', address: 7 }, 'address: must be a string'],
])('the act %s on a deposit is refused with %j', (name, more, text) => {
  expect(readAct(name, { ...ACT, ...more })).toMatchObject({ text });
});
