import { eventually } from '../../support/http';
import { LONG_HISTORY } from '../../support/servers';
import {
  callback,
  openPayment,
  paymentInput,
  scriptedBank,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import { storedPayment } from '../payment/setting';

// The other server never says that a history is long.
const setting = useWorkflowSetting('real');

const AT_ONCE = 128;
/** Signals by the hundred are taken in by one task, and a busy machine may time out the first. */
const A_LONG_TASK_MS = 90_000;

test('a bank that repeats itself hundreds of times is heard to the end', async () => {
  await withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector);
    const { handle } = await openPayment(setting, input);
    const first = await handle.describe();
    const said = callback();
    for (let sent = 0; sent < LONG_HISTORY; sent += AT_ONCE) {
      const repeats = Array.from({ length: AT_ONCE }, () => handle.signal('authorized', said));
      await Promise.all(repeats);
    }
    const renewed = async () => (await handle.describe()).runId !== first.runId;
    await eventually('a new run', renewed, A_LONG_TASK_MS);
    expect(await storedPayment(setting, input.payment_id)).toMatchObject({
      status: 'authorized',
      version: 3,
    });
    await handle.signal('settled', callback());
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
  });
});
