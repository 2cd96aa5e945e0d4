import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../../src/base/mongo';
import { bookCurrency } from '../../../src/domain/crypto/assets';
import { SETTLE_WORKFLOW } from '../../../src/domain/crypto/settle';
import { readTrialBalance } from '../../../src/ledger-check/trial-balance';
import { verifyLedger } from '../../../src/ledger-check/verify';
import { LIFECYCLES } from '../../../src/lifecycles';
import { SANDBOX_CONNECTOR } from '../../../src/routing';
import { resolveSentHeld } from '../../../src/service/balances/resolve';
import { createMetricStore } from '../../../src/store/metrics';
import { nextRun } from '../../../src/temporal/start';
import { operatorsAudit } from '../../support/audit';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import { terminateIdle } from '../../support/skipping-server';
import { callback, eventTypes, useWorkflowSetting, withBank } from '../../support/workflow-setting';
import { unlessUnreachable } from '../lifecycles';
import {
  activitiesBehind,
  balanceOf,
  COIN,
  credit,
  ETHER,
  marked,
  openBalance,
  openPayment,
  openSettlement,
  registerWallet,
  settle,
  spend,
  stands as standsIn,
  WALLET,
} from './setting';

const setting = useWorkflowSetting('time-skipping', ['sandbox', 'live']);

const ACT = { operator: 'mia', reason: 'Ticket 42' };
const METADATA = '__temporal_workflow_metadata';

/** Waits until the record of a payment is in a state. */
const stands = (id: string, status: string) => standsIn(setting, id, status);

/** Waits until a settlement is sent: time must not be skipped while the connector is at it. */
const isSent = (id: string) =>
  eventually('sent', async () => {
    const settlement = await setting.stores.crypto_settlements.get(id);
    return settlement?.status === 'sent' && settlement;
  });

describe('the window of a crypto payment', () => {
  test('closes without a deposit: it has expired', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, handle } = await openPayment(setting, connector);
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      expect(await eventTypes(setting, id)).toEqual(['crypto.payment.expired']);
      await saveHistory(handle, 'crypto-payment-expired');
    }));

  test('closes in its time, also while the mark of the payment is snoozed', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, handle } = await openPayment(setting, connector);
      await handle.executeUpdate('snooze', { args: [{ ...ACT, hours: 24 }] });
      await setting.env.sleep('1 hour');
      await stands(id, 'expired');
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      expect(await eventTypes(setting, id)).toEqual(['crypto.payment.expired']);
      await saveHistory(handle, 'crypto-payment-snoozed-expired');
    }));

  test('stays open for a deposit that was seen, which a person is told of when it takes long', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, handle, deposit, report } = await openPayment(setting, connector);
      await deposit('tx', ETHER, 1);
      await setting.env.sleep('2 hours');
      expect(await handle.query('state')).toMatchObject({ status: 'awaiting_deposit' });
      await setting.env.sleep('24 hours');
      await marked(setting, id, 'deposit_unconfirmed');
      const { dbName } = setting.stores.ledger.collections.books;
      const { stuck } = await createMetricStore(setting.mongo.db(dbName)).read(new Date());
      const about = { resource: 'crypto_payment', reason: 'deposit_unconfirmed' };
      expect(stuck).toEqual([{ ...about, livemode: 'false', count: 1 }]);
      await handle.executeUpdate('snooze', { args: [{ ...ACT, hours: 1 }] });
      await marked(setting, id, null);
      await report('deposit_undone', { transaction_id: 'tx' });
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      await saveHistory(handle, 'crypto-payment-unconfirmed');
    }));

  test('is long enough for the rest to come in its last minute', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, account_id, handle, deposit } = await openPayment(setting, connector);
      await deposit('tx', ETHER / 4n, 3);
      await stands(id, 'underpaid');
      const { expires_at = '' } = (await setting.stores.crypto_payments.get(id)) ?? {};
      const now_ms = await setting.env.currentTimeMs();
      await setting.env.sleep(Date.parse(expires_at) - now_ms - 59_000);
      expect(await handle.query('state')).toMatchObject({ status: 'underpaid' });
      await deposit('rest', (ETHER / 4n) * 3n, 3);
      await stands(id, 'received');
      expect(await handle.result()).toMatchObject({ status: 'received' });
      expect(await balanceOf(setting, account_id)).toMatchObject({ available: `${ETHER}` });
      expect(await eventTypes(setting, id)).toEqual([
        'crypto.payment.underpaid',
        'crypto.payment.received',
      ]);
    }));

  test('closes with too little: an operator returns it, where the balance holds it', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, account_id, handle, deposit } = await openPayment(setting, connector);
      await deposit('tx', ETHER - 1n, 3);
      await eventually('underpaid', async () => {
        const payment = await setting.stores.crypto_payments.get(id);
        return payment?.status === 'underpaid';
      });
      const early = handle.executeUpdate('return', { args: [ACT] });
      await expect(early).rejects.toMatchObject({ cause: { type: 'wrong_state' } });
      await setting.env.sleep('1 hour');
      await marked(setting, id, 'underpaid');
      const giveBack = await spend(setting, account_id, ETHER - 1n);
      const lacking = handle.executeUpdate('return', { args: [ACT] });
      await expect(lacking).rejects.toMatchObject({ cause: { type: 'insufficient_balance' } });
      expect(await handle.query('state')).toMatchObject({ status: 'underpaid' });
      await giveBack();
      await handle.executeUpdate('return', { args: [ACT] });
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      expect(await balanceOf(setting, account_id)).toMatchObject({ available: '0' });
      const kept = await setting.stores.crypto_payments.get(id);
      expect(kept).toMatchObject({ amount_received: '0', attention: 'deposit_to_return' });
      expect(kept?.deposits).toMatchObject([{ status: 'rejected', returned: true }]);
      expect(await eventTypes(setting, id)).toEqual([
        'crypto.payment.underpaid',
        'crypto.payment.expired',
      ]);
      await saveHistory(handle, 'crypto-payment-returned');
    }));

  test('closes with too little: an operator takes it as it is', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, account_id, handle, deposit } = await openPayment(setting, connector);
      await deposit('tx', ETHER - 1n, 3);
      await eventually('underpaid', async () => {
        const payment = await setting.stores.crypto_payments.get(id);
        return payment?.status === 'underpaid';
      });
      await setting.env.sleep('1 hour');
      await marked(setting, id, 'underpaid');
      const expires = (await setting.stores.crypto_payments.get(id))?.expires_at ?? '';
      const occurred_at = new Date(Date.parse(expires) + 1).toISOString();
      await deposit('late', 1n, 3, { occurred_at });
      await marked(setting, id, 'late_deposit');
      expect(await balanceOf(setting, account_id)).toMatchObject({ available: `${ETHER - 1n}` });
      await handle.executeUpdate('credit_late', { args: [ACT] });
      expect(await handle.result()).toMatchObject({ status: 'received' });
      expect(await balanceOf(setting, account_id)).toMatchObject({ available: `${ETHER}` });
      await saveHistory(handle, 'crypto-payment-underpaid');
    }));
});

describe('a crypto payment', () => {
  test('that no connector opens is refused, and its key is free', () => {
    const decline = { outcome: 'declined', code: 'no_rate', message: 'There is no rate.' } as const;
    const chain = scriptedChain({ quoteRate: async () => decline });
    return withBank(setting, chain, async (connector) => {
      const id = randomUUID();
      await expect(openPayment(setting, connector, id)).rejects.toMatchObject({
        cause: { type: 'asset_not_available', message: 'There is no rate.' },
      });
      const claims = await setting.mongo
        .db(setting.stores.ledger.collections.books.dbName)
        .collection('idempotency')
        .countDocuments({ operation: 'createCryptoPayment', request: { $ne: null } });
      expect(claims).toBe(0);
      const handle = setting.env.client.workflow.getHandle(`crypto-payment:${id}`);
      await saveHistory(handle, 'crypto-payment-not-available');
    });
  });

  test('gets no address that another one has: it is refused, and an operator sees it', () => {
    const chain = scriptedChain();
    const { giveAddress } = chain.activities;
    const address = `0x${randomUUID()}`;
    chain.activities.giveAddress = async (input) => ({ ...(await giveAddress(input)), address });
    return withBank(setting, chain, async (connector) => {
      const first = await openPayment(setting, connector);
      const id = randomUUID();
      await expect(openPayment(setting, connector, id)).rejects.toMatchObject({
        cause: { type: 'asset_not_available', message: expect.stringMatching(/another payment/) },
      });
      expect(await setting.stores.crypto_payments.get(id)).toBeNull();
      expect(await setting.stores.idempotency.forResource(id)).toBeNull();
      const handle = setting.env.client.workflow.getHandle(`crypto-payment:${id}`);
      await saveHistory(handle, 'crypto-payment-address-in-use');
      // Left open, it would ask a connector that is gone, which holds the clock for minutes.
      expect(await first.handle.result()).toMatchObject({ status: 'expired' });
    });
  });

  test('keeps a mark of what no deposit tells until an operator has looked', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, handle, deposit } = await openPayment(setting, connector);
      const quarter = ETHER / 4n;
      await deposit('tx', quarter, 3);
      await stands(id, 'underpaid');
      await deposit('tx', 2n * quarter, 3);
      await marked(setting, id, 'amount_differs');
      await deposit('more', 2n * quarter, 3);
      await eventually('more', async () => {
        const payment = await setting.stores.crypto_payments.get(id);
        return payment?.amount_received === String(3n * quarter);
      });
      await handle.executeUpdate('snooze', { args: [{ ...ACT, hours: 1 }] });
      await deposit('rest', quarter, 3);
      expect(await handle.result()).toMatchObject({ status: 'received' });
      const { audit } = await marked(setting, id, null);
      expect(audit).toMatchObject([{ what: 'snooze', before: 'amount_differs' }]);
      await saveHistory(handle, 'crypto-payment-mark-kept');
    }));

  test('whose workflow was ended from outside goes on where the record stands', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, handle, deposit } = await openPayment(setting, connector);
      await deposit('tx', ETHER, 1);
      const kept = await eventually('the deposit', async () => {
        const payment = await setting.stores.crypto_payments.get(id);
        return payment?.deposits.length === 1 && payment;
      });
      await terminateIdle(handle);
      const again = nextRun('crypto_payment', kept, setting.queues.lifecycle, 'req-3');
      const { workflowType } = LIFECYCLES.crypto_payment;
      const next = await setting.env.client.workflow.start(workflowType, again);
      await deposit('tx', ETHER, 3);
      expect(await next.result()).toMatchObject({ status: 'received' });
      await saveHistory(next, 'crypto-payment-resumed');
    }));
});

test('an act on a crypto payment reads its deposits again where the record is ahead', () =>
  withBank(setting, scriptedChain(), async (connector) => {
    const { id, account_id, handle, deposit } = await openPayment(setting, connector);
    const half = ETHER / 2n;
    await deposit('tx', half, 1);
    const kept = await eventually('the deposit', async () => {
      const payment = await setting.stores.crypto_payments.get(id);
      return payment?.deposits.length === 1 && payment;
    });
    const { status, version } = kept;
    const counted = { confirmations: 3, screening: 'passed', status: 'confirmed' } as const;
    await activitiesBehind(setting).recordCryptoPaymentMove({
      ...{ resource_id: id, account_id, livemode: false, request_id: 'before the restore' },
      from: { status, version },
      to: ['underpaid'],
      at: new Date().toISOString(),
      attention: null,
      change: {
        deposits: kept.deposits.map((each) => ({ ...each, ...counted })),
        amount_received: String(half),
        accepted: false,
        reported: [{ status: 'underpaid', version: version + 1 }],
        credited: ['tx'],
        is_reported: true,
      },
    });
    const snoozed = await handle.executeUpdate('snooze', { args: [{ ...ACT, hours: 1 }] });
    expect(snoozed).toMatchObject({ status: 'underpaid', version: version + 1 });
    await deposit('rest', half, 3);
    await stands(id, 'received');
    expect(await handle.result()).toMatchObject({ status: 'received' });
    const after = await setting.stores.crypto_payments.get(id);
    expect(after?.deposits).toMatchObject([counted, counted]);
    expect(after?.audit).toMatchObject([{ what: 'snooze' }]);
    expect(await balanceOf(setting, account_id)).toMatchObject({ available: `${ETHER}` });
    await saveHistory(handle, 'crypto-payment-act-record-ahead');
  }));

describe('a settlement', () => {
  test('goes on live to the wallet that counts, and to none for 24 hours after a new one is set', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const other = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
      const owner = await openBalance(setting, true);
      /** Asks for one unit, and gives the wallet that it goes to. */
      const walletNow = async () => {
        const asked = { ...owner, amount: '1' };
        const { id, handle, report } = await settle(setting, connector, asked);
        const { wallet_address } = await isSent(id);
        await report('completed');
        await handle.result();
        return wallet_address;
      };
      const register = async (address: string) => {
        const at = new Date(await setting.env.currentTimeMs());
        await registerWallet(setting, owner, address, at);
      };
      await register(WALLET);
      await expect(walletNow()).rejects.toMatchObject({ cause: { type: 'wallet_not_registered' } });
      await setting.env.sleep('24 hours');
      expect(await walletNow()).toBe(WALLET);
      await register(other);
      await setting.env.sleep('23 hours');
      await expect(walletNow()).rejects.toMatchObject({
        cause: { type: 'wallet_not_registered', message: expect.stringMatching(/pause until/) },
      });
      await setting.env.sleep('1 hour');
      expect(await walletNow()).toBe(other);
    }));

  test('is made of each whole balance, day after day', () =>
    withBank(
      setting,
      scriptedChain(),
      async () => {
        const { stores, env, queues } = setting;
        const owner = await openBalance(setting, false);
        const { account_id, livemode } = owner;
        await stores.accounts.insert({
          ...{ _id: account_id, name: 'Test Shop', crypto: true, enabled_methods: [] },
          dashboard: { email: `${account_id}@example.com` },
          created_at: new Date().toISOString(),
        });
        await registerWallet(setting, owner, WALLET, new Date(0));
        const { workflow } = env.client;
        const sweep = async () => {
          const started = await workflow.start(SETTLE_WORKFLOW, {
            workflowId: randomUUID(),
            taskQueue: queues.lifecycle,
            args: [],
          });
          const result: unknown = await started.result();
          await saveHistory(started, 'schedule-settlements');
          return result;
        };
        /** Settles the day, and waits until the money is there. */
        const settleDay = async (days: number) => {
          expect(await sweep()).toMatchObject({ started: 1 });
          const rows = await eventually(`the settlement of day ${days}`, async () => {
            const made = await stores.crypto_settlements.list({ account_id, livemode, limit: 9 });
            return made.length === days && made;
          });
          await isSent(rows[0]?._id ?? '');
          const handle = workflow.getHandle(`crypto-settlement:${rows[0]?._id}`);
          await handle.signal('completed', callback());
          expect(await handle.result()).toMatchObject({ status: 'completed' });
          return rows.map(({ amount, wallet_address }) => [amount, wallet_address]);
        };
        expect(await settleDay(1)).toEqual([[`${ETHER}`, WALLET]]);
        await env.sleep('24 hours');
        await credit(setting, owner, 2n * ETHER);
        await credit(setting, owner, 1n);
        expect(await settleDay(2)).toEqual([
          [`${2n * ETHER + 1n}`, WALLET],
          [`${ETHER}`, WALLET],
        ]);
        expect(await balanceOf(setting, account_id)).toEqual({ available: '0', reserved: '0' });
        await credit(setting, owner, ETHER);
        const frozen = { at: new Date().toISOString(), reason: 'Ticket 42' };
        await inTransaction(setting.mongo, (session) =>
          stores.accounts.freeze(account_id, frozen, session),
        );
        expect(await sweep()).toMatchObject({ started: 0 });
      },
      SANDBOX_CONNECTOR,
    ));

  test('that the schedule opens twice at once is one, and never refused for its own money', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const owner = await openBalance(setting, false);
      await registerWallet(setting, owner, WALLET, new Date(0));
      const { stores } = setting;
      const input = {
        ...{ crypto_settlement_id: randomUUID(), ...owner, amount: null },
        ...{ currency: bookCurrency(COIN), ...COIN, connector, request_id: 'req-3' },
        scheduled: true,
        created_at: new Date().toISOString(),
      } as const;
      const first = await activitiesBehind(setting).openCryptoSettlement(input);
      let looks = 0;
      // Its first look is before the other attempt has written.
      const get: typeof stores.crypto_settlements.get = async (id) => {
        looks += 1;
        return looks === 1 ? null : await stores.crypto_settlements.get(id);
      };
      const late = { ...stores, crypto_settlements: { ...stores.crypto_settlements, get } };
      const second = await activitiesBehind(setting, late).openCryptoSettlement(input);
      expect(first).toMatchObject({ outcome: 'accepted' });
      expect(second).toMatchObject({ outcome: 'accepted', facts: { amount: `${ETHER}` } });
      expect(looks).toBe(2);
    }));

  test('without an answer is looked up, and sent again only when it never arrived', async () => {
    let tries = 0;
    const sent: string[] = [];
    const chain = scriptedChain({
      sendSettlement: async ({ crypto_settlement_id, wallet_address }) => {
        tries += 1;
        if (tries === 1) throw new Error('The node is away.');
        sent.push(wallet_address);
        return { outcome: 'sent', transaction_id: `out-${crypto_settlement_id}` };
      },
    });
    await withBank(setting, chain, async (connector) => {
      const { id, account_id, handle, report } = await openSettlement(setting, connector);
      await eventually('sent', async () => {
        // Time is skipped between the tries.
        await setting.env.sleep('10 seconds');
        const kept = await setting.stores.crypto_settlements.get(id);
        return kept?.status === 'sent' && kept.transaction_id === `out-${id}`;
      });
      expect(await balanceOf(setting, account_id)).toEqual({
        available: '0',
        reserved: String(ETHER),
      });
      await report('completed', { transaction_id: `out-${id}` });
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      expect([tries, sent]).toEqual([2, [WALLET]]);
      expect(await balanceOf(setting, account_id)).toEqual({ available: '0', reserved: '0' });
      await saveHistory(handle, 'crypto-settlement-sent-again');
    });
  });

  test('that the connector refuses gives the balance back', async () => {
    const refusal = { outcome: 'refused', code: 'wallet_listed', message: 'Refused.' } as const;
    const chain = scriptedChain({ sendSettlement: async () => refusal });
    await withBank(setting, chain, async (connector) => {
      const { account_id, handle } = await openSettlement(setting, connector);
      expect(await handle.result()).toMatchObject({ status: 'failed' });
      expect(await balanceOf(setting, account_id)).toEqual({
        available: String(ETHER),
        reserved: '0',
      });
      await saveHistory(handle, 'crypto-settlement-refused');
    });
  });

  test('of more than the balance holds is refused, and nothing moves', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const crypto_settlement_id = randomUUID();
      const asked = { crypto_settlement_id, amount: String(ETHER + 1n) };
      await expect(openSettlement(setting, connector, asked)).rejects.toMatchObject({
        cause: { type: 'insufficient_balance' },
      });
      const workflowId = `crypto-settlement:${crypto_settlement_id}`;
      const handle = setting.env.client.workflow.getHandle(workflowId);
      await saveHistory(handle, 'crypto-settlement-insufficient-balance');
    }));

  test('that is late is shown after 6 hours, snoozed, and completed by an operator', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, account_id, handle } = await openSettlement(setting, connector);
      const shows = (status: string, mark: string | null) =>
        eventually(`${status}, ${mark}`, async () => {
          const kept = await setting.stores.crypto_settlements.get(id);
          return kept?.status === status && kept.attention === mark && kept;
        });
      await shows('sent', null);
      await setting.env.sleep('6 hours');
      await shows('sent', 'settlement_overdue');
      await handle.executeUpdate('snooze', { args: [{ ...ACT, hours: 1 }] });
      await shows('sent', null);
      await setting.env.sleep('1 hour');
      await shows('sent', 'settlement_overdue');
      const again = handle.executeUpdate('resubmit', { args: [ACT] });
      await expect(again).rejects.toMatchObject({ cause: { type: 'wrong_state' } });
      await handle.executeUpdate('mark_completed', { args: [ACT] });
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      const { audit, transaction_id } = await shows('completed', null);
      expect(audit).toMatchObject([{ what: 'snooze' }, { what: 'mark_completed' }]);
      expect(transaction_id).toBe(`out-${id}`);
      expect(await balanceOf(setting, account_id)).toEqual({ available: '0', reserved: '0' });
      await saveHistory(handle, 'crypto-settlement-overdue-marked-completed');
    }));

  test('of which the chain shows another amount: in suspense until an operator decides', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { stores, mongo } = setting;
      const { id, account_id, handle, report } = await openSettlement(setting, connector);
      await isSent(id);
      const other = { transaction_id: 'other', amount: `${ETHER + 5n}` };
      await report('completed', other);
      const isMarked = async () =>
        (await stores.crypto_settlements.get(id))?.attention === 'amount_differs';
      await eventually('the mark', isMarked);
      await report('completed', other);
      const suspense = async () => {
        const book = `${account_id}:sandbox:${bookCurrency(COIN)}`;
        const { rows } = await readTrialBalance(mongo, stores.ledger.collections.books.dbName, {
          now: () => new Date(),
        });
        const row = rows.find((each) => each.book === book && each.account === 'suspense.sent');
        return row?.balance ?? 0n;
      };
      expect(await suspense()).toBe(-ETHER - 5n);
      const acknowledged = handle.executeUpdate('acknowledge', { args: [ACT] });
      await expect(acknowledged).rejects.toMatchObject({ cause: { type: 'money_in_suspense' } });
      await handle.executeUpdate('mark_completed', { args: [ACT] });
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      expect(await suspense()).toBe(-5n);
      const deps = { ...setting, now: () => new Date(), audit: operatorsAudit(stores) };
      const held = `crypto_settlement_sent_held:${id}:other`;
      const by = { operator: 'mia', reason: 'Ticket 42' };
      // Nobody owes an asset.
      await expect(resolveSentHeld(deps, { id: held, as: 'merchant' }, by)).rejects.toMatchObject({
        code: 'insufficient_balance',
      });
      await resolveSentHeld(deps, { id: held, as: 'loss' }, by);
      expect(await suspense()).toBe(0n);
      const { differences } = await verifyLedger(mongo, stores.ledger.collections.books.dbName);
      const own = differences.filter(({ subject }) => subject.includes(id));
      expect(own).toEqual([]);
    }));

  test('that is not broadcast is asked about and sent again, or given back, by an operator', () => {
    const sent: string[] = [];
    const chain = scriptedChain({
      sendSettlement: async ({ crypto_settlement_id }) => {
        sent.push(crypto_settlement_id);
        return { outcome: 'pending' };
      },
    });
    return withBank(setting, chain, async (connector) => {
      const { id, account_id, handle } = await openSettlement(setting, connector);
      await eventually('the answer', async () => {
        const metadata = await handle.query<{ currentDetails?: string }>(METADATA);
        return metadata.currentDetails?.includes('instruction at the connector: pending');
      });
      const answered = await handle.executeUpdate('resubmit', { args: [ACT] });
      expect(answered).toMatchObject({ status: 'pending', bank: 'pending' });
      expect(sent).toEqual([id, id]);
      // A busy machine's connector may answer too late whether it holds the settlement.
      const failed = await unlessUnreachable(() =>
        handle.executeUpdate<object, [object]>('mark_failed', { args: [ACT] }),
      );
      expect(failed).toMatchObject({ status: 'failed' });
      expect(await handle.result()).toMatchObject({ status: 'failed' });
      expect(await balanceOf(setting, account_id)).toEqual({
        available: `${ETHER}`,
        reserved: '0',
      });
      await saveHistory(handle, 'crypto-settlement-resubmitted-marked-failed');
    });
  });
});
