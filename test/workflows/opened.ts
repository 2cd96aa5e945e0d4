import type { PayoutInput } from '../../src/domain/payout/workflow';
import { eventually } from '../support/http';
import { fund, payoutInput, type WorkflowSetting } from '../support/workflow-setting';

const PAYOUTS_MAX = 20;

/**
 * Opens a payout of a funded account, and another where a busy machine has not accepted it in its
 * seconds.
 * @returns the accepted one, with what `open` gave
 */
export async function openAccepted<Opened>(
  setting: WorkflowSetting,
  connector: string,
  changes: Partial<PayoutInput>,
  open: (input: PayoutInput) => Promise<Opened>,
): Promise<{ input: PayoutInput; opened: Opened | undefined }> {
  for (let left = PAYOUTS_MAX; ; left -= 1) {
    const input = payoutInput(connector, changes);
    await fund(setting, input);
    const opened = await open(input).catch((error: unknown) => {
      if (Object(error).cause?.type !== 'temporarily_unavailable') throw error;
      return undefined;
    });
    if (await isAccepted(setting, input)) return { input, opened };
    if (left === 1) throw new Error('No payout was accepted.');
  }
}

/** Waits until it is stored, or its workflow has ended without. */
async function isAccepted(
  { env, stores }: WorkflowSetting,
  { payout_id }: PayoutInput,
): Promise<boolean> {
  const handle = env.client.workflow.getHandle(`payout:${payout_id}`);
  return await eventually('the acceptance of the payout', async () => {
    // Asked first: what is accepted late may end at once.
    const { status } = await handle.describe();
    if ((await stores.payouts.get(payout_id)) !== null) return { accepted: true };
    return status.name !== 'RUNNING' && { accepted: false };
  }).then(({ accepted }) => accepted);
}
