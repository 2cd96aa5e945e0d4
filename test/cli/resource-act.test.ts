import { hostname } from 'node:os';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { CallbackResource } from '../../src/domain/callback/callback';
import { actOn } from '../../src/service/operators/act';
import { eventually } from '../support/http';
import { run } from './cli';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();
/** Payouts that the bank has queued and says no more of: opening one takes five seconds. */
let queued: string[];
beforeAll(async () => {
  const silent = () => setting.payout({ amount: 66_624 }, 'submitted');
  queued = await Promise.all(Array.from({ length: 4 }, silent));
});

const CONFIRMED = '--bank-confirmed-not-executed';
const BY = ['--operator', 'mia', '--reason', 'The bank said so'];
const act = (kind: CallbackResource, id: string, what: string, ...more: string[]) => [
  kind,
  'act',
  id,
  what,
  ...BY,
  ...more,
];
/** As the command does it, with workers that it does not know: for a workflow that has ended. */
const actAgain = (kind: CallbackResource, id: string, what: string, hours?: number) =>
  actOn(setting.deps, kind, id, { what, operator: 'mia', reason: 'The bank said so', hours });
function queuedPayout(): string {
  const id = queued.pop();
  if (id === undefined) throw new Error('All are used.');
  return id;
}
const payout = (id: string) => setting.service.stores.payouts.get(id);

describe('payout act', () => {
  test('marks one that the bank is silent about, and prints the state after', async () => {
    const id = queuedPayout();
    expect(await setting.json(...act('payout', id, 'mark_completed'))).toEqual({
      payout_id: id,
      status: 'completed',
      version: 4,
      attention: null,
    });
    const { stores } = setting.service;
    const { account_id } = setting.shop;
    const [line] = await stores.auditLog.list({ account_id, limit: 1 });
    expect(line).toMatchObject({
      actor: { door: 'command_line', operator: 'mia', host: hostname() },
      act: 'payout.act',
      target: id,
      before: { state: 'submitted' },
      after: { what: 'mark_completed', state: 'completed', why: 'The bank said so' },
    });
    const other = await setting.payout({ amount: 66_623 });
    const { exit, stdout } = await setting.cli(...act('payout', other, 'mark_returned'));
    expect(exit).toBe(0);
    expect(stdout).toMatch(
      /^Done: +mark_returned\nStatus: +returned\nVersion: +4\nAttention: +-\n$/,
    );
  });

  test('resubmits by asking the bank first, and tells what it said', async () => {
    const id = queuedPayout();
    expect(await setting.json(...act('payout', id, 'resubmit'))).toEqual({
      payout_id: id,
      status: 'submitted',
      version: 2,
      bank: 'submitted',
      attention: null,
    });
    expect((await payout(id))?.audit).toMatchObject([{ who: 'mia', what: 'resubmit' }]);
  });

  test('snoozes for some hours', async () => {
    const id = await setting.payout({ amount: 66_623 });
    const snoozed = await setting.json(
      ...act('payout', id, 'snooze', '--hours', '1.5', '--approved-by', 'noah'),
    );
    expect(snoozed).toMatchObject({ status: 'sent', attention: null });
    const trail = [{ what: 'snooze', approved_by: 'noah' }];
    expect((await payout(id))?.audit).toMatchObject(trail);
    const { account_id } = setting.shop;
    const lines = await setting.service.stores.auditLog.list({ account_id, limit: 100 });
    expect(lines.filter(({ target }) => target === id)).toMatchObject([
      { act: 'payout.act', after: { what: 'snooze', approved_by: 'noah' } },
    ]);
  });

  test('marks one that the bank holds as failed by a confirmation alone', async () => {
    const id = queuedPayout();
    expect(await setting.refusal(...act('payout', id, 'mark_failed'))).toEqual({
      code: 'held_by_bank',
      message: expect.stringMatching(/^The bank holds the payout and may still execute it/),
    });
    expect((await payout(id))?.audit).toEqual([]);
    const done = await setting.json(...act('payout', id, 'mark_failed', CONFIRMED));
    expect(done).toMatchObject({ status: 'failed' });
    expect(await setting.json('payout', 'show', id)).toMatchObject({
      audit: [{ what: 'mark_failed', bank_confirmed_not_executed: true }],
    });
    const { stdout } = await setting.cli('payout', 'show', id);
    expect(stdout).toContain('mark_failed (bank_confirmed_not_executed)');
  });

  test("is refused in the workflow's words, and changes nothing", async () => {
    const id = await setting.payout({ amount: 66_623 });
    const before = await payout(id);
    expect(await setting.refusal(...act('payout', id, 'resubmit'))).toEqual({
      code: 'wrong_state',
      message: 'The payout is sent; only one that the bank has not sent can be given to it again.',
    });
    expect(await payout(id)).toEqual(before);
  });

  test('works after the workflow has ended, and after it was terminated', async () => {
    const ended = await setting.payout({ amount: 66_623 });
    await setting.json(...act('payout', ended, 'mark_completed'));
    await setting.handle('payout', ended).result();
    expect(await actAgain('payout', ended, 'mark_returned')).toMatchObject({ status: 'returned' });
    await setting.handle('payout', ended).result();
    await expect(actAgain('payout', ended, 'mark_failed')).rejects.toMatchObject({
      code: 'wrong_state',
      message: expect.stringMatching(/^The payout is returned; /),
    });
    const terminated = queuedPayout();
    await setting.terminate('payout', terminated);
    const failed = await actOn(setting.deps, 'payout', terminated, {
      what: 'mark_failed',
      operator: 'mia',
      reason: 'The bank said so',
      bank_confirmed_not_executed: true,
    });
    expect(failed).toMatchObject({ status: 'failed' });
    expect((await payout(terminated))?.audit).toMatchObject([
      { who: 'mia', what: 'mark_failed', before: 'submitted', after: 'failed' },
    ]);
  });
});

describe.each([
  ['refund', async () => (await setting.refund()).id, 'processing'],
  ['payment', () => setting.payment(), 'awaiting_customer'],
] as const)('%s act', (kind, open, status) => {
  test('settles and fails it; what has ended stays as it is', async () => {
    const settled = await open();
    const done = { [`${kind}_id`]: settled, status: 'settled', attention: null };
    expect(await setting.json(...act(kind, settled, 'mark_settled'))).toMatchObject(done);
    expect(await setting.refusal(...act(kind, settled, 'mark_failed'))).toEqual({
      code: 'wrong_state',
      message: `The ${kind} is settled; a final state is never left.`,
    });
    const failed = await open();
    expect(await setting.json(...act(kind, failed, 'mark_failed'))).toMatchObject({
      status: 'failed',
    });
  });

  test('works after the workflow was terminated', async () => {
    const id = await open();
    await setting.terminate(kind, id);
    expect(await actAgain(kind, id, 'mark_settled')).toMatchObject({ status: 'settled' });
    await setting.handle(kind, id).result();
  });

  test('speaks of the state that it has, also when the workflow has just started again', async () => {
    const id = await open();
    await setting.terminate(kind, id);
    const snoozed = actAgain(kind, id, 'snooze', 2);
    if (kind === 'refund') expect(await snoozed).toMatchObject({ status });
    else {
      await expect(snoozed).rejects.toMatchObject({
        message: `Only an authorised payment can be snoozed; it is ${status}.`,
      });
    }
  });
});

/** @returns false while there is no run to end: a busy Temporal may start it late, or never */
async function endRun(id: string): Promise<boolean> {
  try {
    await setting.terminate('payout', id);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

test('an act with no answer in time says that its outcome is unknown', async () => {
  const id = await setting.payout({ amount: 66_623 });
  await setting.terminate('payout', id);
  // The client without patience: its deadline is what is checked.
  const { temporal } = setting.service;
  const lifecycleQueue = `nobody-${id}`;
  const nobody = { ...setting.deps, temporal, lifecycleQueue, timeoutMs: 10_000 };
  const failed = { what: 'mark_failed', operator: 'mia', reason: 'Why' };
  // A repeated act joins a run that started late, so that none is left.
  await eventually('the end of the run that nobody works on', async () => {
    await expect(actOn(nobody, 'payout', id, failed)).rejects.toMatchObject({
      code: 'outcome_unknown',
      message: expect.stringMatching(
        /no answer within 10 seconds, so the outcome is unknown: `payout show \S+` shows it/,
      ),
    });
    return await endRun(id);
  });
});

const WRONG: [string[], string][] = [
  [act('payout', 'x', 'mark_settled'), 'Allowed choices are resubmit, mark_failed, mark_completed'],
  [act('refund', 'x', 'resubmit'), 'mark_settled, mark_failed, snooze, acknowledge.'],
  [act('payout', 'x', 'snooze'), 'A snooze, and nothing else, takes --hours.'],
  [act('payout', 'x', 'resubmit', '--hours', '1'), 'A snooze, and nothing else, takes --hours.'],
  [act('payout', 'x', 'snooze', '--hours', '721'), 'It must be more than 0 and at most 720.'],
  [act('payout', 'x', 'snooze', '--hours', '0'), 'It must be more than 0 and at most 720.'],
  [act('payout', 'x', 'snooze', '--hours', '1', CONFIRMED), 'Only mark_failed takes'],
  [act('refund', 'x', 'mark_failed', CONFIRMED), 'unknown option'],
  [['payout', 'act', 'x', 'resubmit', '--operator', 'mia'], "'--reason <text>' not specified"],
  [['payout', 'act', 'x', 'resubmit', '--reason', 'Why'], "'--operator <name>' not specified"],
];

test.each(WRONG)('refuses %j before it asks any server', async (args, words) => {
  const { exit, stderr } = await run({}, ...args);
  expect(exit).toBe(1);
  expect(stderr).toContain(words);
});

test('says when Temporal is away, and does nothing', async () => {
  const id = await setting.payout({ amount: 66_623 });
  const env = { ...setting.env, TEMPORAL_ADDRESS: '127.0.0.1:1' };
  const { exit, stderr } = await run(env, ...act('payout', id, 'mark_failed'));
  expect(exit).toBe(1);
  expect(stderr).toContain('Temporal does not answer at 127.0.0.1:1');
  expect((await payout(id))?.status).toBe('sent');
});
