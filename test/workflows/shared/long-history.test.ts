import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { LONG_HISTORY } from '../../support/servers';
import { callback, scriptedBank } from '../../support/workflow-setting';
import { isAt, useLifecycles } from '../lifecycles';

// The other server never says that a history is long.
const { withPayment } = useLifecycles('real');

const AT_ONCE = 128;
/** Signals by the hundred are taken in by one task, and a busy machine may time out the first. */
const A_LONG_TASK_MS = 90_000;

test('a bank that repeats itself hundreds of times is heard to the end', async () => {
  await withPayment(scriptedBank(), async ({ handle, stored, endBy }) => {
    const first = await handle.describe();
    const report = callback();
    await handle.signal('authorized', report);
    // From now on the payment waits, and no repeat changes anything.
    await isAt(handle, 'authorized');
    for (let sent = 0; sent < LONG_HISTORY; sent += AT_ONCE) {
      const repeats = Array.from({ length: AT_ONCE }, () => handle.signal('authorized', report));
      await Promise.all(repeats);
    }
    const renewed = async () => (await handle.describe()).runId !== first.runId;
    await eventually('a new run', renewed, A_LONG_TASK_MS);
    expect(await stored()).toMatchObject({ status: 'authorized', version: 3 });
    expect(await endBy('settled')).toMatchObject({ status: 'settled', version: 4 });
    // The run that was continued is too long for the tree.
    await saveHistory(handle, 'payment-continued');
  });
});
