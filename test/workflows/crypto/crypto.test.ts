import { LIFECYCLES } from '../../../src/lifecycles';
import { nextRun } from '../../../src/temporal/start';
import { keepHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import {
  eventTypes,
  openWorkflowSetting,
  type WorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import { balanceOf, ETHER, marked, openPayment, openSettlement, spend, WALLET } from './setting';

let setting: WorkflowSetting;

beforeAll(async () => {
  setting = await openWorkflowSetting();
});
afterAll(async () => setting?.close());

const ACT = { operator: 'mia', reason: 'Ticket 42' };

describe('the window of a crypto payment', () => {
  test('closes without a deposit: it has expired', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, handle } = await openPayment(setting, connector);
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      expect(await eventTypes(setting, id)).toEqual(['crypto.payment.expired']);
      await keepHistory(handle, 'crypto-payment-expired');
    }));

  test('stays open for a deposit that was seen, which a person is told of when it takes long', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, handle, deposit, report } = await openPayment(setting, connector);
      await deposit('tx', ETHER, 1);
      await setting.env.sleep('2 hours');
      expect(await handle.query('state')).toMatchObject({ status: 'awaiting_deposit' });
      await setting.env.sleep('24 hours');
      await marked(setting, id, 'deposit_unconfirmed');
      await handle.executeUpdate('snooze', { args: [{ ...ACT, hours: 1 }] });
      await marked(setting, id, null);
      await report('deposit_undone', { transaction_id: 'tx' });
      expect(await handle.result()).toMatchObject({ status: 'expired' });
      await keepHistory(handle, 'crypto-payment-unconfirmed');
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
      expect(kept).toMatchObject({ amount_received: '0', attention: null });
      expect(kept?.deposits).toMatchObject([{ status: 'rejected', returned: true }]);
      expect(await eventTypes(setting, id)).toEqual([
        'crypto.payment.underpaid',
        'crypto.payment.expired',
      ]);
      await keepHistory(handle, 'crypto-payment-returned');
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
      await keepHistory(handle, 'crypto-payment-underpaid');
    }));
});

describe('a crypto payment', () => {
  test('that no connector opens is refused, and its key is free', () => {
    const decline = { outcome: 'declined', code: 'no_rate', message: 'There is no rate.' } as const;
    const chain = scriptedChain({ quoteRate: async () => decline });
    return withBank(setting, chain, async (connector) => {
      await expect(openPayment(setting, connector)).rejects.toMatchObject({
        cause: { type: 'asset_not_available', message: 'There is no rate.' },
      });
      const claims = await setting.mongo
        .db(setting.stores.ledger.collections.books.dbName)
        .collection('idempotency')
        .countDocuments({ operation: 'createCryptoPayment', request: { $ne: null } });
      expect(claims).toBe(0);
    });
  });

  test('whose workflow was ended from outside goes on where the record stands', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const { id, handle, deposit } = await openPayment(setting, connector);
      await deposit('tx', ETHER, 1);
      const kept = await eventually('the deposit', async () => {
        const payment = await setting.stores.crypto_payments.get(id);
        return payment?.deposits.length === 1 && payment;
      });
      await handle.terminate('in a test');
      const again = nextRun('crypto_payment', kept, setting.queues.lifecycle, 'req-3');
      const { workflowType } = LIFECYCLES.crypto_payment;
      const next = await setting.env.client.workflow.start(workflowType, again);
      await deposit('tx', ETHER, 3);
      expect(await next.result()).toMatchObject({ status: 'received' });
      await keepHistory(next, 'crypto-payment-resumed');
    }));
});

describe('a settlement', () => {
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
      await keepHistory(handle, 'crypto-settlement-sent-again');
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
      await keepHistory(handle, 'crypto-settlement-refused');
    });
  });

  test('of more than the balance holds is refused, and nothing moves', () =>
    withBank(setting, scriptedChain(), async (connector) => {
      const amount = String(ETHER + 1n);
      await expect(openSettlement(setting, connector, { amount })).rejects.toMatchObject({
        cause: { type: 'insufficient_balance' },
      });
    }));
});
