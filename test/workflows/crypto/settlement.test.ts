import { randomUUID } from 'node:crypto';
import type { CryptoConnectorActivities } from '../../../connectors/contract/crypto';
import { inTransaction } from '../../../src/base/mongo';
import { bookCurrency } from '../../../src/domain/crypto/assets';
import { SETTLE_WORKFLOW } from '../../../src/domain/crypto/settle';
import { SANDBOX_CONNECTOR } from '../../../src/routing';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import { callback, useWorkflowSetting, withBank } from '../../support/workflow-setting';
import { refusalOf, shows, unlessUnreachable } from '../lifecycles';
import {
  activitiesBehind,
  credit,
  ETH,
  ETHER,
  openMerchant,
  openSettlement,
  type TrackedSettlement,
  WALLET,
} from './setting';

const setting = useWorkflowSetting('time-skipping', ['sandbox', 'live']);

const CURRENCY = bookCurrency(ETH);
const WHOLE = { available: `${ETHER}`, reserved: '0' };
const RESERVED = { available: '0', reserved: `${ETHER}` };
const SPENT = { available: '0', reserved: '0' };
const PENDING = { outcome: 'pending' } as const;

type Story = (settlement: TrackedSettlement) => Promise<unknown>;

/** Runs the story of a settlement of one ether, which the chain has sent unless the changes differ. */
const withSettlement = (story: Story, changes: Partial<CryptoConnectorActivities> = {}) =>
  withBank(setting, scriptedChain(changes), async (connector) => {
    await story(await openSettlement(setting, connector));
  });

describe('the schedule of settlements', () => {
  test('settles each whole balance day after day, and none of a frozen account', () =>
    withBank(
      setting,
      scriptedChain(),
      async () => {
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
        expect(await settleDay(1)).toEqual([[`${ETHER}`, WALLET]]);
        await env.sleep('24 hours');
        await credit(setting, owner, 2n * ETHER + 1n);
        expect(await settleDay(2)).toEqual([
          [`${2n * ETHER + 1n}`, WALLET],
          [`${ETHER}`, WALLET],
        ]);
        await credit(setting, owner, ETHER);
        const frozen = { at: new Date().toISOString(), reason: 'Ticket 42' };
        await inTransaction(setting.mongo, (session) =>
          stores.accounts.freeze(account_id, frozen, session),
        );
        expect(await sweep()).toMatchObject({ started: 0 });
      },
      SANDBOX_CONNECTOR,
    ));

  test('opens a settlement once when it opens it twice at the same time', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const owner = await openMerchant(setting);
      const { stores } = setting;
      const input = {
        ...{ crypto_settlement_id: randomUUID(), ...owner, amount: null },
        ...{ currency: CURRENCY, ...ETH, connector, request_id: 'req-3' },
        scheduled: true,
        created_at: new Date().toISOString(),
      } as const;
      const first = await activitiesBehind(setting).openCryptoSettlement(input);
      let reads = 0;
      // Its first read is before the other attempt has written.
      const get: typeof stores.crypto_settlements.get = async (id) => {
        reads += 1;
        return reads === 1 ? null : await stores.crypto_settlements.get(id);
      };
      const late = { ...stores, crypto_settlements: { ...stores.crypto_settlements, get } };
      const second = await activitiesBehind(setting, late).openCryptoSettlement(input);
      expect(first).toMatchObject({ outcome: 'accepted' });
      expect(second).toMatchObject({ outcome: 'accepted', facts: { amount: `${ETHER}` } });
      expect(reads).toBe(2);
    }));
});

describe('a settlement', () => {
  test('that the connector did not answer is looked up, and sent again since it never arrived', async () => {
    let tries = 0;
    const wallets: string[] = [];
    const sendSettlement: CryptoConnectorActivities['sendSettlement'] = async (input) => {
      tries += 1;
      if (tries === 1) throw new Error('The node is away.');
      wallets.push(input.wallet_address);
      return { outcome: 'sent', transaction_id: `out-${input.crypto_settlement_id}` };
    };
    const story: Story = async ({ id, handle, stored, balance, report }) => {
      await eventually('sent', async () => {
        // Time is skipped between the tries.
        await setting.env.sleep('10 seconds');
        const { status, transaction_id } = await stored();
        return status === 'sent' && transaction_id === `out-${id}`;
      });
      expect(await balance()).toEqual(RESERVED);
      await report('completed', { transaction_id: `out-${id}` });
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      expect([tries, wallets]).toEqual([2, [WALLET]]);
      expect(await balance()).toEqual(SPENT);
      await saveHistory(handle, 'crypto-settlement-sent-again');
    };
    await withSettlement(story, { sendSettlement });
  });

  test('that the connector refuses releases the balance', async () => {
    const refusal = { outcome: 'refused', code: 'wallet_listed', message: 'Refused.' } as const;
    const story: Story = async ({ handle, balance }) => {
      expect(await handle.result()).toMatchObject({ status: 'failed' });
      expect(await balance()).toEqual(WHOLE);
      await saveHistory(handle, 'crypto-settlement-refused');
    };
    await withSettlement(story, { sendSettlement: async () => refusal });
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
    const story: Story = async ({ id, handle, act, balance }) => {
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
