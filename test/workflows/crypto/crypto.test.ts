import { randomUUID } from 'node:crypto';
import type { CryptoConnectorActivities } from '../../../connectors/contract/crypto';
import { inTransaction } from '../../../src/base/mongo';
import { bookCurrency } from '../../../src/domain/crypto/assets';
import { SETTLE_WORKFLOW } from '../../../src/domain/crypto/settle';
import { readAct } from '../../../src/domain/operators/operator-act';
import { SANDBOX_CONNECTOR } from '../../../src/routing';
import { createMetricStore } from '../../../src/store/metrics';
import { eventually } from '../../support/eventually';
import { saveHistory } from '../../support/histories';
import { scriptedChain } from '../../support/scripted-chain';
import { terminateIdle } from '../../support/skipping-server';
import { callback, eventTypes, useWorkflowSetting, withBank } from '../../support/workflow-setting';
import { ACT, refusalOf, shows, unlessUnreachable } from '../lifecycles';
import {
  activitiesBehind,
  credit,
  debit,
  ETH,
  ETHER,
  openMerchant,
  openPayment,
  openSettlement,
  type TrackedCryptoPayment,
  type TrackedSettlement,
  WALLET,
  withPayment,
} from './setting';

const setting = useWorkflowSetting('time-skipping', ['sandbox', 'live']);

const WHOLE = { available: `${ETHER}`, reserved: '0' };
const RESERVED = { available: '0', reserved: `${ETHER}` };
const SPENT = { available: '0', reserved: '0' };
const PENDING = { outcome: 'pending' } as const;

type SettlementStory = (settlement: TrackedSettlement) => Promise<unknown>;

/** Runs the story of a settlement of one ether, which the chain has sent unless the changes differ. */
const withSettlement = (story: SettlementStory, changes: Partial<CryptoConnectorActivities> = {}) =>
  withBank(setting, scriptedChain(changes), async (connector) => {
    await story(await openSettlement(setting, connector));
  });

describe('the schedule of settlements', () => {
  test('settles each whole balance day after day, and none of a frozen account', async () => {
    const { stores, env, queues } = setting;
    const owner = await openMerchant(setting);
    const { account_id, livemode } = owner;
    await stores.accounts.insert({
      ...{ _id: account_id, name: 'Test Shop', crypto: true, enabled_methods: [] },
      dashboard: { email: `${account_id}@example.com` },
      created_at: new Date().toISOString(),
    });
    const { workflow } = env.client;
    const sweep = async () => {
      const start = { workflowId: randomUUID(), taskQueue: queues.lifecycle, args: [] };
      const started = await workflow.start(SETTLE_WORKFLOW, start);
      const result: unknown = await started.result();
      await saveHistory(started, 'schedule-settlements');
      return result;
    };
    /** Settles the day, and waits until the settlement is completed. */
    const settleDay = async (days: number) => {
      expect(await sweep()).toMatchObject({ started: 1 });
      const rows = await eventually(`the settlement of day ${days}`, async () => {
        const made = await stores.crypto_settlements.list({ account_id, livemode, limit: 9 });
        return made.length === days && made[0]?.status === 'sent' && made;
      });
      const handle = workflow.getHandle(`crypto-settlement:${rows[0]?._id}`);
      await handle.signal('completed', callback());
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      return rows.map(({ amount, wallet_address }) => [amount, wallet_address]);
    };
    const story = async () => {
      const first = [`${ETHER}`, WALLET];
      expect(await settleDay(1)).toEqual([first]);
      await env.sleep('24 hours');
      await credit(setting, owner, 2n * ETHER + 1n);
      expect(await settleDay(2)).toEqual([[`${2n * ETHER + 1n}`, WALLET], first]);
      await credit(setting, owner, ETHER);
      const frozen = { at: new Date().toISOString(), reason: 'Ticket 42' };
      await inTransaction(setting.mongo, (session) =>
        stores.accounts.freeze(account_id, frozen, session),
      );
      expect(await sweep()).toMatchObject({ started: 0 });
    };
    await withBank(setting, scriptedChain(), story, SANDBOX_CONNECTOR);
  });

  test('opens a settlement once when it opens it twice at the same time', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const owner = await openMerchant(setting);
      const { crypto_settlements } = setting.stores;
      const input = {
        ...{ crypto_settlement_id: randomUUID(), ...owner, amount: null, ...ETH, connector },
        ...{ currency: bookCurrency(ETH), request_id: 'req-3' },
        ...({ scheduled: true, created_at: new Date().toISOString() } as const),
      } as const;
      const first = await activitiesBehind(setting).openCryptoSettlement(input);
      let reads = 0;
      // Its first read is before the other attempt has written.
      const get: typeof crypto_settlements.get = async (id) => {
        reads += 1;
        return reads === 1 ? null : await crypto_settlements.get(id);
      };
      const late = { ...setting.stores, crypto_settlements: { ...crypto_settlements, get } };
      const second = await activitiesBehind(setting, late).openCryptoSettlement(input);
      expect(first).toMatchObject({ outcome: 'accepted' });
      expect(second).toMatchObject({ outcome: 'accepted', facts: { amount: `${ETHER}` } });
      expect(reads).toBe(2);
    }));
});

describe('a settlement', () => {
  test('that the connector did not answer is looked up, sent again since it never arrived, and its network fee booked', async () => {
    let tries = 0;
    const wallets: string[] = [];
    const sendSettlement: CryptoConnectorActivities['sendSettlement'] = async (input) => {
      tries += 1;
      if (tries === 1) throw new Error('The node is away.');
      wallets.push(input.wallet_address);
      return { outcome: 'sent', transaction_id: `out-${input.crypto_settlement_id}` };
    };
    const story: SettlementStory = async ({ id, connector, handle, stored, balance, report }) => {
      await eventually('sent', async () => {
        // Time is skipped between the tries.
        await setting.env.sleep('10 seconds');
        const { status, transaction_id } = await stored();
        return status === 'sent' && transaction_id === `out-${id}`;
      });
      expect(await balance()).toEqual(RESERVED);
      await report('completed', { transaction_id: `out-${id}`, network_fee: '42000' });
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      expect([tries, wallets]).toEqual([2, [WALLET]]);
      expect(await balance()).toEqual(SPENT);
      const fee = await setting.stores.ledger.findEntry(`crypto_settlement_fee:${id}`);
      const lines = fee?.lines.map(({ account, amount }) => `${account} ${amount}`);
      expect(lines).toEqual(['expense.network -42000', `clearing.${connector} 42000`]);
      await saveHistory(handle, 'crypto-settlement-sent-again');
    };
    await withSettlement(story, { sendSettlement });
  });

  test('that the connector refuses releases the balance', () => {
    const refusal = { outcome: 'refused', code: 'wallet_listed', message: 'Refused.' } as const;
    const story: SettlementStory = async ({ handle, balance }) => {
      expect(await handle.result()).toMatchObject({ status: 'failed' });
      expect(await balance()).toEqual(WHOLE);
      await saveHistory(handle, 'crypto-settlement-refused');
    };
    return withSettlement(story, { sendSettlement: async () => refusal });
  });

  test('of more than the balance is refused', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const crypto_settlement_id = randomUUID();
      const changes = { crypto_settlement_id, amount: String(ETHER + 1n) };
      expect(await refusalOf(openSettlement(setting, connector, changes))).toMatchObject({
        code: 'insufficient_balance',
      });
      const workflowId = `crypto-settlement:${crypto_settlement_id}`;
      const handle = setting.env.client.workflow.getHandle(workflowId);
      await saveHistory(handle, 'crypto-settlement-insufficient-balance');
    }));

  test('that is not completed after 6 hours needs attention, and an operator completes it', () =>
    withSettlement(async ({ id, handle, act, becomes, balance }) => {
      await becomes({ status: 'sent', attention: null });
      await setting.env.sleep('6 hours');
      await becomes({ status: 'sent', attention: 'settlement_overdue' });
      await act('snooze', { hours: 1 });
      await becomes({ status: 'sent', attention: null });
      await setting.env.sleep('1 hour');
      await becomes({ status: 'sent', attention: 'settlement_overdue' });
      expect(await refusalOf(act('resubmit'))).toMatchObject({ code: 'wrong_state' });
      await act('mark_completed');
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      const { audit, transaction_id } = await becomes({ status: 'completed', attention: null });
      expect(audit).toMatchObject([{ what: 'snooze' }, { what: 'mark_completed' }]);
      expect(transaction_id).toBe(`out-${id}`);
      expect(await balance()).toEqual(SPENT);
      await saveHistory(handle, 'crypto-settlement-overdue-marked-completed');
    }));

  test('that ended by an operator has the network’s fee of the later report once', () =>
    withSettlement(
      async ({ id, handle, act, reportAfterEnd, becomes, balance, stored, differences }) => {
        await becomes({ status: 'sent' });
        await act('mark_failed', { bank_confirmed_not_executed: true });
        expect(await handle.result()).toMatchObject({ status: 'failed' });
        for (const network_fee of ['21000', '42000']) {
          await reportAfterEnd('failed', { transaction_id: `out-${id}`, network_fee });
        }
        expect(await stored()).toMatchObject({ status: 'failed', network_fee: '21000' });
        await saveHistory(handle, 'crypto-settlement-late-fee');
        expect(await balance()).toEqual(WHOLE);
        const entries = await setting.stores.ledger.forResource(id);
        const fees = entries.filter(({ kind }) => kind === 'crypto_settlement_fee');
        expect(fees).toHaveLength(1);
        expect(await differences()).toEqual([]);
      },
    ));

  test('of which the chain shows another amount is in suspense until an operator decides', () =>
    withSettlement(async ({ handle, act, actAfterEnd, report, becomes, sum, differences }) => {
      await becomes({ status: 'sent' });
      const other = { transaction_id: 'other', amount: `${ETHER + 5n}` };
      await report('completed', other);
      await becomes({ attention: 'amount_differs' });
      await report('completed', other);
      expect(await sum('suspense.sent')).toBe(-ETHER - 5n);
      expect(await refusalOf(act('acknowledge'))).toMatchObject({ code: 'money_in_suspense' });
      await act('mark_completed');
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      expect(await sum('suspense.sent')).toBe(-5n);
      // Nobody owes an asset.
      const refused = await refusalOf(actAfterEnd('resolve_movement', { as: 'merchant' }));
      expect(refused).toMatchObject({ code: 'wrong_state' });
      await actAfterEnd('resolve_movement', { as: 'loss' });
      expect(await sum('suspense.sent')).toBe(0n);
      expect(await differences()).toEqual([]);
    }));

  test('that is not broadcast is sent again by an operator, or marked as failed', () => {
    const sent: string[] = [];
    const sendSettlement: CryptoConnectorActivities['sendSettlement'] = async (input) => {
      sent.push(input.crypto_settlement_id);
      return PENDING;
    };
    const story: SettlementStory = async ({ id, handle, act, balance }) => {
      await shows(handle, 'instruction at the connector: pending');
      expect(await act('resubmit')).toMatchObject({ status: 'pending', bank: 'pending' });
      expect(sent).toEqual([id, id]);
      // A busy machine's connector may answer too late whether it holds the settlement.
      const failed = await unlessUnreachable(() => act('mark_failed'));
      expect(failed).toMatchObject({ status: 'failed' });
      expect(await handle.result()).toMatchObject({ status: 'failed' });
      expect(await balance()).toEqual(WHOLE);
      await saveHistory(handle, 'crypto-settlement-resubmitted-marked-failed');
    };
    return withSettlement(story, { sendSettlement });
  });
});

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
      expect(stuck).toContainEqual({ ...about, livemode: 'false', count: 1 });
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

  test.each<[title: string, history: string, events: string[], received: bigint, play: Story]>([
    [
      'once an operator accepts it as it is',
      'accepted',
      ['underpaid', 'received'],
      ETHER - 1n,
      async ({ deposit, becomes, act }) => {
        await deposit('tx', ETHER - 1n, 3);
        await becomes({ status: 'underpaid' });
        await act('accept');
      },
    ],
    [
      'by its next deposit where an operator rejects one that failed screening',
      'rejected',
      ['held', 'received'],
      ETHER,
      async ({ deposit, becomes, act }) => {
        await deposit('bad', ETHER, 3);
        await becomes({ status: 'held' });
        expect(await act('reject')).toMatchObject({ status: 'awaiting_deposit' });
        await deposit('tx', ETHER, 3);
      },
    ],
    [
      'when its deposit is reorged before it is confirmed and comes again, and stays so after',
      'undone',
      ['received'],
      ETHER,
      async ({ handle, deposit, report, stored, becomes, signalAfterEnd }) => {
        const countDeposits = async () => (await stored()).deposits.length;
        await deposit('tx', ETHER, 2);
        await eventually('the deposit', async () => (await countDeposits()) === 1);
        await report('deposit_undone', { transaction_id: 'tx' });
        await eventually('none', async () => (await countDeposits()) === 0);
        await deposit('tx', ETHER, 3);
        expect(await handle.result()).toMatchObject({ status: 'received' });
        const again = { transaction_id: 'tx', occurred_at: new Date(0).toISOString() };
        await signalAfterEnd('deposit_undone', again);
        await becomes({ status: 'received', attention: 'deposit_undone' });
        await signalAfterEnd('deposit', { ...again, amount: `${ETHER}`, confirmations: 1 });
        await eventually(
          'its block',
          async () => (await stored()).deposits[0]?.confirmations === 1,
        );
        await becomes({ status: 'received', attention: 'deposit_undone' });
        await signalAfterEnd('deposit', { ...again, amount: `${ETHER}`, confirmations: 3 });
        await becomes({ status: 'received', attention: null });
      },
    ],
  ])('is received %s', (_title, history, events, received, play) =>
    withPayment(setting, async (payment) => {
      await play(payment);
      const { id, handle } = payment;
      expect(await handle.result()).toMatchObject({ status: 'received' });
      expect(await payment.stored()).toMatchObject({ amount_received: `${received}` });
      expect(await payment.balance()).toMatchObject({ available: `${received}` });
      const types = events.map((name) => `crypto.payment.${name}`);
      expect(await eventTypes(setting, id)).toEqual(types);
      expect(await payment.differences()).toEqual([]);
      await saveHistory(handle, `crypto-payment-${history}`);
    }),
  );

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
      await terminateIdle(payment.handle);
    }));
});

describe('a deposit', () => {
  test('that is not credited is in suspense from its confirmation until it is sent back to the payer', () =>
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

  test('by the same transaction as that of another payment is a movement of its own', () =>
    withPayment(setting, async (payment) => {
      // The second opens once the first has ended: waiting for an end lets the clock run.
      for (const open of [() => payment, () => openPayment(setting, payment.connector)]) {
        const each = await open();
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
        const own = each === payment ? 'shared' : expect.stringContaining(each.id);
        expect(movement?.names).toEqual([own]);
      }
    }));

  test('of an asset of another network is in no book, and the right one counts', () =>
    withPayment(setting, async ({ handle, deposit, report, becomes, movements, differences }) => {
      for (const asset of ['USDT', 'USDC']) {
        const facts = { transaction_id: `in ${asset}`, asset, amount: '5', confirmations: 3 };
        await report('wrong_asset', facts);
      }
      await becomes({ attention: 'wrong_asset' });
      await deposit('tx', ETHER, 3);
      expect(await handle.result()).toMatchObject({ status: 'received' });
      const currencies = (await movements()).map(({ currency }) => currency);
      expect(currencies).toEqual(['USDC.ethereum', 'ETH.ethereum']);
      expect(await differences()).toEqual([]);
    }));

  test('that is not credited keeps its reason, whatever an operator silences, until one that says more comes', () =>
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

  test('that the register has otherwise than its payment is a difference of the ledger', () =>
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

  test('that is not credited is sent back on live only by a transaction that one operator names and another approves', () => {
    const story: Story = async ({ deposit, act, becomes, stored, handle }) => {
      await deposit('bad', ETHER, 3);
      await becomes({ attention: 'deposit_held' });
      const message = expect.stringContaining('transaction_id');
      const sendBack = (facts: object = {}) =>
        act('resolve_movement', { as: 'customer', ...facts });
      expect(await refusalOf(sendBack())).toEqual({ code: 'invalid_request', message });
      const required = { status: 'approval_required' };
      expect(await sendBack({ transaction_id: 'out' })).toMatchObject(required);
      expect(await stored()).toMatchObject({ attention: 'deposit_held', audit: [] });
      await terminateIdle(handle);
    };
    return withPayment(setting, story, { livemode: true });
  });

  test('that is dust changes nothing on live, so that the real one counts', () => {
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
