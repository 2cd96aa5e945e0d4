import { saveHistory } from '../../support/histories';
import { scriptedChain } from '../../support/scripted-chain';
import { withBank } from '../../support/workflow-setting';
import { ETHER, marked, openPayment } from '../crypto/setting';
import { ACT, shows, useLifecycles } from '../lifecycles';

const { setting, withStatus } = useLifecycles();

test('an acknowledged reason no longer hides that a refund is overdue', async () => {
  await withStatus.processing(async ({ handle, becomes, act, refusal, stored }) => {
    await handle.signal('settled', { callback_id: 7 });
    await becomes({ attention: 'malformed_callback' });
    await setting.env.sleep('73h');
    await act('acknowledge');
    const overdue = await becomes({ attention: 'refund_overdue' });
    const since = expect.any(Number);
    expect(overdue.acknowledged).toEqual([{ reason: 'malformed_callback', since }]);
    await act('acknowledge');
    await setting.env.sleep('73h');
    const refund = await stored();
    expect(refund.attention).toBeNull();
    expect(refund.acknowledged).toMatchObject([
      { reason: 'malformed_callback' },
      { reason: 'refund_overdue', since: overdue.attention_since },
    ]);
    expect(await refusal('acknowledge')).toEqual({
      code: 'wrong_state',
      message: 'The attention reason is none.',
    });
    await act('mark_settled');
    await handle.result();
    await saveHistory(handle, 'refund-acknowledged');
  });
});

test('an acknowledged deposit that is gone stays so until another one is', () =>
  withBank(setting, scriptedChain(), async (connector) => {
    const { id, handle, deposit, report } = await openPayment(setting, connector);
    const quarter = ETHER / 4n;
    const passed = { screening: 'passed' };
    await deposit('tx', quarter, 3, passed);
    await deposit('second', quarter, 3, passed);
    await report('deposit_undone', { transaction_id: 'tx' });
    await marked(setting, id, 'deposit_undone');
    await handle.executeUpdate('acknowledge', { args: [ACT] });
    await deposit('second', quarter, 4);
    await shows(handle, 'by second, 4 of 3 confirmations');
    await marked(setting, id, null);
    await report('deposit_undone', { transaction_id: 'second' });
    await marked(setting, id, 'deposit_undone');
    await handle.executeUpdate('acknowledge', { args: [ACT] });
    await deposit('rest', ETHER, 3);
    expect(await handle.result()).toMatchObject({ status: 'received' });
    await marked(setting, id, null);
  }));
