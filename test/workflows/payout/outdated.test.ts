import { randomUUID } from 'node:crypto';
import { createPayoutActivities } from '../../../activities/payouts';
import type { ConnectorActivities } from '../../../connectors/contract/activities';
import { createInstructionGuard } from '../../../connectors/contract/guard';
import { createLogger } from '../../../src/base/log';
import { PAYOUT_FAILURES } from '../../../src/domain/payout/payout';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { openPayout, scriptedBank, withBank } from '../../support/workflow-setting';
import { MONEY, trackPayout, useLifecycles } from '../lifecycles';
import { openAccepted } from '../opened';

// An activity that nobody serves waits in real time.
const { setting, withPayout } = useLifecycles('real');

/** Fails a payout in the record alone, as its workflow did before Temporal was restored. */
async function failInRecord(id: string): Promise<void> {
  const { mongo, stores, env, queues } = setting;
  const deps = { mongo, stores, temporal: env.client, webhookQueue: queues.webhooks };
  const activities = createPayoutActivities({ ...deps, log: createLogger('test', 'silent') });
  const payout = await stores.payouts.get(id);
  if (payout === null) throw new Error('not stored');
  const { account_id, livemode } = payout;
  await activities.recordPayoutMove({
    ...{ resource_id: id, account_id, livemode, request_id: 'operator' },
    from: { status: 'created', version: 1 },
    to: ['failed'],
    at: new Date().toISOString(),
    attention: null,
    change: { failure: PAYOUT_FAILURES.operator },
  });
}

/** A connector that sends what its guard lets pass, and the ids of what it sent. */
function guardedSend() {
  const log = createLogger('test', 'silent');
  const paid: string[] = [];
  const sendPayout: ConnectorActivities['sendPayout'] = async (instruction) => {
    const { payout_id: id } = instruction;
    const connector = (await setting.stores.payouts.get(id))?.connector ?? '';
    const guard = createInstructionGuard({ ...setting.stores, connector, log });
    const outdated = await guard.findOutdated('payout', instruction);
    if (outdated !== undefined) return outdated;
    paid.push(id);
    return { outcome: 'sent', bank_reference: `again-${id}` };
  };
  return { sendPayout, paid };
}

test('what was marked failed since is not sent again after a look-up', async () => {
  const { sendPayout, paid } = guardedSend();
  let sends = 0;
  const bank = scriptedBank({
    sendPayout: async (instruction) => {
      sends += 1;
      if (sends === 1) throw new Error('the connection was lost');
      return await sendPayout(instruction);
    },
    lookUpPayout: async ({ payout_id }) => {
      await failInRecord(payout_id);
      return { outcome: 'not_found' };
    },
  });
  await withPayout(bank, async ({ id, handle, money }) => {
    expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
    expect(bank.told).toEqual([`sendPayout ${id}`, `lookUpPayout ${id}`, `sendPayout ${id}`]);
    expect(paid).toEqual([]);
    expect(await money()).toEqual(MONEY.untouched);
    await saveHistory(handle, 'payout-outdated');
  });
});

test('an instruction that waits for its connector meets the record there', async () => {
  const { sendPayout, paid } = guardedSend();
  const away = `away-${randomUUID()}`;
  const { input } = await openAccepted(setting, away, {}, (asked) => openPayout(setting, asked));
  const { id, handle, money } = trackPayout(setting, input);
  await eventually('the instruction to wait', async () => {
    const { raw } = await handle.describe();
    return (raw.pendingActivities ?? []).length > 0;
  });
  await failInRecord(id);
  const bank = scriptedBank({ sendPayout });
  const end = () => handle.result();
  expect(await withBank(setting, bank, end, away)).toMatchObject({ status: 'failed', version: 2 });
  expect(paid).toEqual([]);
  expect(await money()).toEqual(MONEY.untouched);
});
