import type { CallbackResource } from '../../src/domain/callback/callback';
import { run } from './cli';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();

const act = (kind: CallbackResource, id: string, what: string, ...more: string[]) => [
  ...[kind, 'act', id, what, '--operator', 'mia', '--reason', 'The bank said so', ...more],
];
const CONFIRMED = '--bank-confirmed-not-executed';

test('a payout that the sandbox bank holds is marked as failed by a confirmation alone', async () => {
  const id = await setting.payout({ amount: 66_624 }, 'submitted');
  expect(await setting.refusal(...act('payout', id, 'mark_failed'))).toEqual({
    code: 'held_by_bank',
    message: expect.stringMatching(/^The bank holds the payout and may still execute it/),
  });
  expect((await setting.service.stores.payouts.get(id))?.audit).toEqual([]);
  const done = await setting.json(...act('payout', id, 'mark_failed', CONFIRMED));
  expect(done).toMatchObject({ status: 'failed' });
  expect(await setting.json('payout', 'show', id)).toMatchObject({
    audit: [{ what: 'mark_failed', bank_confirmed_not_executed: true }],
  });
  const { stdout } = await setting.cli('payout', 'show', id);
  expect(stdout).toContain('mark_failed (bank_confirmed_not_executed)');
});

test.each([
  [act('payout', 'x', 'snooze', '--hours', '1', CONFIRMED), 'Only mark_failed takes'],
  [act('refund', 'x', 'mark_failed', CONFIRMED), 'unknown option'],
])('refuses %j before it asks any server', async (args, words) => {
  const { exit, stderr } = await run({}, ...args);
  expect(exit).toBe(1);
  expect(stderr).toContain(words);
});
