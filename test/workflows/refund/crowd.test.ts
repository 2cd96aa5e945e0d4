import { bookId } from '../../../src/ledger/entries';
import { withLock } from '../../../src/ledger/locks';
import { eventually } from '../../support/http';
import {
  openRefund,
  refundInput,
  scriptedBank,
  settledPayment,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';

const setting = useWorkflowSetting('real');

/** Keeps the turn of a book until it is given back. */
function holding(book: string) {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { over: withLock({ book, by: 0 }, () => held), release };
}

test('a refund that finds no turn gives its slot free, and is accepted soon after', async () => {
  await withBank(setting, scriptedBank(), async (connector) => {
    const payment = await settledPayment(setting, connector);
    const { over, release } = holding(bookId(payment));
    const input = refundInput(payment);
    const opening = openRefund(setting, input);
    const handle = setting.env.client.workflow.getHandle(`refund:${input.refund_id}`);
    const delay = await eventually('the refund to be told to come again', async () => {
      const { raw } = await handle.describe().catch(() => ({ raw: {} }));
      const [opening] = ('pendingActivities' in raw && raw.pendingActivities) || [];
      const failure = opening?.lastFailure?.applicationFailureInfo;
      return failure?.type === 'no_lock' && failure.nextRetryDelay;
    });
    // Not with a back-off that grows to half a minute.
    expect(Number(delay.seconds)).toBeLessThan(25);
    release();
    await over;
    expect((await opening).opened).toMatchObject({ status: 'processing', version: 1 });
  });
});
