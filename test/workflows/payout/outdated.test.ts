import { randomUUID } from 'node:crypto';
import { createPayoutActivities } from '../../../activities/payouts';
import { createInstructionGuard } from '../../../connectors/contract/guard';
import { createLogger } from '../../../src/base/log';
import { PAYOUT_FAILURES } from '../../../src/domain/payout/payout';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedBank, useWorkflowSetting, withBank } from '../../support/workflow-setting';
import {
  changing,
  fund,
  handleOf,
  lost,
  MONEY,
  moneyOf,
  openPayout,
  payoutInput,
  sent,
  storedPayout,
} from './setting';

// An activity that nobody serves waits in real time.
const setting = useWorkflowSetting('real');

/** Fails a payout in the record alone, as its workflow did before Temporal was restored. */
async function failInRecord(id: string): Promise<void> {
  const { mongo, stores, env, queues } = setting;
  const deps = { mongo, stores, temporal: env.client, webhookQueue: queues.webhooks };
  const activities = createPayoutActivities({ ...deps, log: createLogger('test', 'silent') });
  const { account_id, livemode } = await storedPayout(setting, id);
  await activities.recordPayoutMove({
    ...{ resource_id: id, account_id, livemode, request_id: 'operator' },
    from: { status: 'created', version: 1 },
    to: ['failed'],
    at: new Date().toISOString(),
    attention: null,
    change: { failure: PAYOUT_FAILURES.operator },
  });
}

test('what was marked failed since is not sent again after a look-up', async () => {
  const guard = createInstructionGuard(setting.stores);
  const paid: string[] = [];
  const bank = scriptedBank({
    sendPayout: changing(lost, async (instruction) => {
      const { payout_id: id, version } = instruction;
      const outdated = await guard({ resource: 'payout', id, version });
      if (outdated !== undefined) return outdated;
      paid.push(id);
      return await sent(instruction);
    }),
    lookUpPayout: async ({ payout_id }) => {
      await failInRecord(payout_id);
      return { outcome: 'not_found' };
    },
  });
  await withBank(setting, bank, async (connector) => {
    const input = payoutInput(connector);
    await fund(setting, input);
    await openPayout(setting, input);
    const handle = handleOf(setting, input.payout_id);
    expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
    const { payout_id } = input;
    const send = `sendPayout ${payout_id}`;
    expect(bank.told).toEqual([send, `lookUpPayout ${payout_id}`, send]);
    expect(paid).toEqual([]);
    expect(await moneyOf(setting, input)).toEqual(MONEY.untouched);
    await saveHistory(handle, 'payout-outdated');
  });
});

test('an instruction that waits for its connector meets the record there', async () => {
  const findOutdated = createInstructionGuard(setting.stores);
  const paid: string[] = [];
  const bank = scriptedBank({
    sendPayout: async (instruction) => {
      const { payout_id, version } = instruction;
      const outdated = await findOutdated({ resource: 'payout', id: payout_id, version });
      if (outdated !== undefined) return outdated;
      paid.push(payout_id);
      return await sent(instruction);
    },
  });
  const away = `away-${randomUUID()}`;
  const input = payoutInput(away);
  await fund(setting, input);
  await openPayout(setting, input);
  await eventually('the instruction to wait', async () => {
    const { raw } = await handleOf(setting, input.payout_id).describe();
    return (raw.pendingActivities ?? []).length > 0;
  });
  await failInRecord(input.payout_id);
  await withBank(
    setting,
    bank,
    async () => {
      const handle = handleOf(setting, input.payout_id);
      expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
    },
    away,
  );
  expect(paid).toEqual([]);
  expect(await moneyOf(setting, input)).toEqual(MONEY.untouched);
});
