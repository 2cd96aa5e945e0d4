import { randomUUID } from 'node:crypto';
import { Client, type WorkflowHandle } from '@temporalio/client';
import { inTransaction } from '../../../src/base/mongo';
import type { PayoutInput, PayoutState } from '../../../src/domain/payout/workflow';
import { ENTRY_LINES } from '../../../src/ledger/entry-lines';
import { messages } from '../../../workflows/payout/messages';
import { readBalances } from '../../support/book';
import { eventually } from '../../support/http';
import { recordKey } from '../../support/records';
import {
  callback,
  open,
  type ScriptedBank,
  type WorkflowSetting,
  withBank,
} from '../../support/workflow-setting';

export { postingsOf } from '../refund/setting';

/** Balance of `main` before each payout of 1,000 with its fee of 25; minor units. */
const FUNDED = 10_000;

/**
 * A handle that does not skip time while it waits for the result: with nothing left to wait for,
 * this server would skip ten years, to where runs time out.
 */
function handleOf({ env }: WorkflowSetting, id: string): WorkflowHandle {
  const { connection, namespace = 'default' } = env;
  return new Client({ connection, namespace }).workflow.getHandle(`payout:${id}`);
}

function payoutInput(connector: string, changes: Partial<PayoutInput> = {}): PayoutInput {
  const payout_id = randomUUID();
  return {
    payout_id,
    account_id: `acct_${payout_id}`,
    livemode: false,
    amount: 1_000,
    fee: 25,
    currency: 'EUR',
    method: 'sepa_instant',
    recipient_id: randomUUID(),
    balance_account: 'main',
    connector,
    request_id: 'req-3',
    ...changes,
  };
}

/** Credits the payout's account. */
async function fund(
  { mongo, stores }: WorkflowSetting,
  { account_id, livemode, currency }: PayoutInput,
  amount = FUNDED,
): Promise<void> {
  const at = new Date().toISOString();
  const legs = ENTRY_LINES.funded('main', amount);
  const posting = { kind: 'funded', resource_id: randomUUID(), account_id, livemode } as const;
  await inTransaction(mongo, (session) =>
    stores.ledger.post({ ...posting, currency, at, legs }, session),
  );
}

async function claimPayout(setting: WorkflowSetting, input: PayoutInput): Promise<void> {
  const { payout_id, request_id, ...routing } = input;
  const payout = { reference: 'order-7', metadata: '{}' };
  await recordKey(setting.stores, 'createPayout', payout_id, input, { payout, routing });
}

/** As the API does it: the claim first, then update-with-start. Fails when it is refused. */
async function openPayout(
  setting: WorkflowSetting,
  input: PayoutInput,
  taskQueue?: string,
): Promise<{ handle: WorkflowHandle; opened: PayoutState }> {
  await claimPayout(setting, input);
  const { payout_id } = input;
  const { opened } = await open(setting, 'payout', payout_id, input, messages.open, taskQueue);
  return { handle: handleOf(setting, payout_id), opened };
}

export interface PayingOut {
  handle: WorkflowHandle;
  /** The payout's. */
  id: string;
  input: PayoutInput;
}

/** Funds an account, opens a payout and runs `story` with it. */
export function payingOut(
  setting: WorkflowSetting,
  bank: ScriptedBank,
  story: (payingOut: PayingOut & { opened: PayoutState }) => Promise<void>,
  changes: Partial<PayoutInput> = {},
): Promise<void> {
  return withBank(setting, bank, async (connector) => {
    const input = payoutInput(connector, changes);
    await fund(setting, input);
    const { handle, opened } = await openPayout(setting, input);
    const id = input.payout_id;
    await story({ handle, opened: await withWord(setting, opened), id, input });
  });
}

/** Longest that the word of a bank which answers is waited for. */
const WORD_MS_MAX = 20_000;

/** The payout with the bank's word, where one comes: on a busy machine the answer is before it. */
async function withWord(setting: WorkflowSetting, opened: PayoutState): Promise<PayoutState> {
  const { payout_id } = opened;
  const isMoved = async () => (await storedPayout(setting, payout_id)).status !== 'created';
  if (opened.status !== 'created') return opened;
  await eventually('the word of the bank', isMoved, WORD_MS_MAX).catch(() => undefined);
  const { status, version } = await storedPayout(setting, payout_id);
  return { payout_id, status, version };
}

/** A callback as the kit delivers it: the workflow is started again when it has ended. */
export async function late(
  setting: WorkflowSetting,
  id: string,
  signal: string,
  more: object = {},
): Promise<WorkflowHandle> {
  const { env, queues } = setting;
  await env.client.workflow.signalWithStart('payout', {
    workflowId: `payout:${id}`,
    taskQueue: queues.lifecycle,
    signal,
    signalArgs: [callback(more)],
    args: [{ payout_id: id, resume: true, request_id: 'late' }],
  });
  return handleOf(setting, id);
}

export async function storedPayout({ stores }: WorkflowSetting, id: string) {
  const payout = await stores.payouts.get(id);
  if (payout === null) throw new Error('not stored');
  return payout;
}

/** Balances of the payout's account; minor units. */
export async function moneyOf({ stores }: WorkflowSetting, input: PayoutInput) {
  const { account_id, currency, connector } = input;
  const at = await readBalances(stores, `${account_id}:sandbox:${currency}`);
  return {
    available: at('balances.main.available') ?? 0,
    reserved: at('balances.main.reserved') ?? 0,
    fees: at('income.fees') ?? 0,
    atBank: at(`clearing.${connector}`) ?? 0,
  };
}

/** The books of a payout in each of its states. */
export const MONEY = {
  untouched: { available: 10_000, reserved: 0, fees: 0, atBank: 0 },
  reserved: { available: 8_975, reserved: 1_025, fees: 0, atBank: 0 },
  captured: { available: 8_975, reserved: 0, fees: 25, atBank: 1_000 },
  returned: { available: 9_975, reserved: 0, fees: 25, atBank: 0 },
} as const;
