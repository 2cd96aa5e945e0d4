import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import {
  callback,
  scriptedBank,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import { ETHER, marked, openPayment } from '../crypto/setting';
import { accepted, refunding, refusalOf, shows, storedRefund } from '../refund/setting';

const setting = useWorkflowSetting();

const ACT = { operator: 'mia', reason: 'Ticket 42' };

const refundWith = (id: string, attention: string) =>
  eventually(attention, async () => {
    const refund = await storedRefund(setting, id);
    return refund.attention === attention && refund;
  });

test('an acknowledged reason no longer hides that a refund is overdue', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id }) => {
    await accepted(handle);
    await handle.signal('settled', callback({ amount: 1 }));
    await refundWith(id, 'amount_differs');
    await setting.env.sleep('73h');
    const acknowledge = () => handle.executeUpdate('acknowledge', { args: [ACT] });
    await acknowledge();
    const overdue = await refundWith(id, 'refund_overdue');
    expect(overdue.acknowledged).toEqual([{ reason: 'amount_differs', since: expect.any(Number) }]);
    await acknowledge();
    await setting.env.sleep('73h');
    const refund = await storedRefund(setting, id);
    expect(refund.attention).toBeNull();
    expect(refund.acknowledged).toMatchObject([
      { reason: 'amount_differs' },
      { reason: 'refund_overdue', since: overdue.attention_since },
    ]);
    expect(await refusalOf(acknowledge())).toEqual({
      code: 'wrong_state',
      message: 'The attention reason is none.',
    });
    await handle.executeUpdate('mark_settled', { args: [ACT] });
    await handle.result();
    await saveHistory(handle, 'refund-acknowledged');
  });
});

test('an acknowledged late deposit stays so while its confirmations come, until another comes', () =>
  withBank(setting, scriptedChain(), async (connector) => {
    const { id, handle, deposit } = await openPayment(setting, connector);
    await deposit('tx', 1n, 3);
    const expires = (await setting.stores.crypto_payments.get(id))?.expires_at ?? '';
    const late = { occurred_at: new Date(Date.parse(expires) + 1).toISOString() };
    await deposit('late', ETHER, 3, late);
    await marked(setting, id, 'late_deposit');
    await handle.executeUpdate('acknowledge', { args: [ACT] });
    await deposit('late', ETHER, 4, late);
    await shows(handle, 'by late, 4 of 3 confirmations');
    await deposit('tx', 1n, 4);
    await shows(handle, 'by tx, 4 of 3 confirmations');
    await marked(setting, id, null);
    await deposit('second', 1n, 3, late);
    await marked(setting, id, 'late_deposit');
    await handle.executeUpdate('acknowledge', { args: [ACT] });
    await deposit('rest', ETHER, 3);
    expect(await handle.result()).toMatchObject({ status: 'received' });
    await marked(setting, id, null);
    await saveHistory(handle, 'crypto-payment-acknowledged');
  }));
