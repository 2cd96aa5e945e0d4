import type { ConnectorActivities } from '../../../connectors/contract/activities';
import type { PaymentCallbackName } from '../../../src/domain/callback/callback';
import { scriptedChain } from '../../support/scripted-chain';
import { readAccountRows } from '../../support/trial-balance';
import { callback, scriptedBank, withBank } from '../../support/workflow-setting';
import { ETHER, marked, openPayment as openCrypto, stands } from '../crypto/setting';
import {
  MONEY,
  refusalOf,
  type TrackedPayment,
  unlessUnreachable,
  useLifecycles,
} from '../lifecycles';
import { reportAfterEnd } from '../payment/setting';

/**
 * Holds that money which a bank moves otherwise than asked is in the books at once: each scenario
 * prints the trial balance of its merchant before and after.
 * @see docs/ledger.md#money-that-goes-wrong
 */
const { setting, withPayment, withPayout, withStatus } = useLifecycles();
const BY = { operator: 'ada', reason: 'asked the bank' };

function recorder(name: string, account_id: string) {
  return async (when: string, expected: Record<string, number>): Promise<void> => {
    const rows = await readAccountRows(setting, account_id);
    console.info(`${name}, ${when}: ${JSON.stringify(rows)}`);
    expect(rows).toEqual(expected);
  };
}

const cancelled = (
  name: string,
  bank: Partial<ConnectorActivities>,
  story: (
    payment: TrackedPayment,
    shows: ReturnType<typeof recorder>,
    report: (event: PaymentCallbackName, facts: object) => Promise<unknown>,
  ) => Promise<void>,
) =>
  withPayment(scriptedBank(bank), async (payment) => {
    const { id, account_id } = payment;
    await payment.act('cancel', { by: 'merchant' });
    await payment.handle.result();
    await story(payment, recorder(name, account_id), (event, facts) =>
      reportAfterEnd(setting, id, event, callback(facts)),
    );
    expect(await payment.differences()).toEqual([]);
  });

test('F1: a settlement of another amount is in suspense, and an operator credits it', () =>
  withStatus.awaiting_customer(async (payment) => {
    const shows = recorder('F1', payment.account_id);
    await shows('before', {});
    await payment.signal('settled', { amount: 999, bank_reference: 'odd' });
    await payment.becomes({ attention: 'amount_differs' });
    await shows('after', { 'suspense.late': 999, clearing: -999 });
    await payment.act('mark_settled', BY);
    await payment.handle.result();
    await shows('decided', { 'balances.main.available': 999, clearing: -999 });
  }));

test('F2: a second settlement is in suspense, also after the end', () =>
  withStatus.authorized(async (payment) => {
    const shows = recorder('F2', payment.account_id);
    await payment.endBy('settled', { bank_reference: 'first' });
    await shows('before', { 'balances.main.available': 1_050, clearing: -1_050 });
    const again = callback({ bank_reference: 'second' });
    await reportAfterEnd(setting, payment.id, 'settled', again);
    const held = { 'suspense.late': 1_050, clearing: -2_100 };
    await shows('after', { 'balances.main.available': 1_050, ...held });
    expect(await payment.attention()).toBe('second_settlement');
  }));

test('F3: late money is in suspense each time, and sent back each time', () =>
  cancelled('F3', {}, async (payment, shows, report) => {
    await shows('before', {});
    await report('settled', { bank_reference: 'one' });
    await report('settled', { bank_reference: 'two' });
    await shows('after', { 'suspense.late': 2_100, clearing: -2_100 });
    await report('reversed', { bank_reference: 'back-1' });
    await report('reversed', { bank_reference: 'back-2' });
    await shows('decided', {});
    expect(payment.told.filter((line) => line.startsWith('reverse'))).toHaveLength(2);
  }));

test('F4: a failed refund that settles is debited again, so nobody is refunded twice', () =>
  withStatus.processing(async (refund) => {
    const shows = recorder('F4', refund.account_id);
    await refund.endBy('failed');
    await shows('before', { 'balances.main.available': 1_050, clearing: -1_050 });
    await refund.signalAfterEnd('settled');
    await refund.handle.result();
    await shows('after', {});
    expect(await refund.money()).toMatchObject({ refunded: 1_050 });
  }));

test('F9: a deposit that was mined in time counts, whenever it is reported', () =>
  withBank(setting, scriptedChain(), async (connector) => {
    const { id, account_id, deposit } = await openCrypto(setting, connector);
    const shows = recorder('F9', account_id);
    const { expires_at = '' } = (await setting.stores.crypto_payments.get(id)) ?? {};
    const [mined, seen] = [-1_000, 60_000].map((ms) =>
      new Date(Date.parse(expires_at) + ms).toISOString(),
    );
    await shows('before', {});
    await deposit('tx', ETHER, 3, { occurred_at: seen, mined_at: mined });
    await stands(setting, id, 'received');
    const coins = Number(ETHER);
    await shows('after', {
      'balances.main.available ETH.ethereum': coins,
      'clearing ETH.ethereum': -coins,
    });
  }));

test('F10: a late deposit is in suspense until it is back with the payer', () =>
  withBank(setting, scriptedChain(), async (connector) => {
    const { id, account_id, handle, deposit } = await openCrypto(setting, connector);
    const shows = recorder('F10', account_id);
    const { expires_at = '' } = (await setting.stores.crypto_payments.get(id)) ?? {};
    await shows('before', {});
    const late = new Date(Date.parse(expires_at) + 1).toISOString();
    await deposit('late', ETHER, 3, { occurred_at: late });
    await marked(setting, id, 'late_deposit');
    const coins = Number(ETHER);
    const held = { 'suspense.deposits ETH.ethereum': coins, 'clearing ETH.ethereum': -coins };
    await shows('after', held);
    await handle.executeUpdate('reject', { args: [BY] });
    await marked(setting, id, 'deposit_to_return');
    await shows('rejected', held);
    await handle.executeUpdate('mark_sent_back', { args: [{ ...BY, transaction_id: 'out' }] });
    await marked(setting, id, null);
    await shows('decided', {});
  }));

test('F12: a payout that the bank holds is not given back on an operator’s word', () => {
  const sendPayout = async () => ({ outcome: 'submitted', bank_reference: 'queue-1' }) as const;
  const lookUpPayout = sendPayout;
  return withPayout(scriptedBank({ sendPayout, lookUpPayout }), async (payout) => {
    const shows = recorder('F12', payout.account_id);
    const { available, reserved } = MONEY.reserved;
    const balances = { 'balances.main.available': available, 'balances.main.reserved': reserved };
    await payout.becomes({ status: 'submitted' });
    await shows('before', balances);
    const refused = await refusalOf(unlessUnreachable(() => payout.act('mark_failed')));
    expect(refused).toMatchObject({ code: 'held_by_bank' });
    await shows('after', balances);
    await payout.act('mark_failed', { ...BY, bank_confirmed_not_executed: true });
    await payout.handle.result();
    await shows('decided', { 'balances.main.available': 10_000 });
  });
});

test('D6: while the bank does not answer, what it reports is applied, and an act is refused', () => {
  let answer = () => {};
  const silence = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const reversePayment = async () => {
    await silence;
    return { outcome: 'accepted', bank_reference: 'back' } as const;
  };
  return cancelled('D6', { reversePayment }, async (payment, shows) => {
    await payment.signalAfterEnd('settled', { bank_reference: 'one' });
    await payment.becomes({ attention: 'late_money_pending' });
    await shows('before', { 'suspense.late': 1_050, clearing: -1_050 });
    expect(await payment.refusalAfterEnd('mark_reversed')).toMatchObject({ code: 'wrong_state' });
    await payment.handle.signal('reversed', callback());
    await payment.becomes({ attention: 'late_settlement_reversed' });
    await shows('after', {});
    answer();
    await payment.handle.result();
  });
});

test('D10: a void of settled money sends back what came, not what was asked', () => {
  const voidPayment = async () =>
    ({ outcome: 'already_settled', amount: 100, currency: 'EUR' }) as const;
  return cancelled('D10', { voidPayment }, async (payment, shows, report) => {
    await shows('before', {});
    await report('authorized', {});
    await shows('after', { 'suspense.late': 100, clearing: -100 });
    const sent = payment.told.filter((line) => line.startsWith('reverse'));
    expect(sent).toEqual([`reversePayment reversal:${payment.id}`]);
  });
});
