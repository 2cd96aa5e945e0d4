import { Refusal } from '../../../src/domain/errors';
import { withAuditLine } from '../../../src/service/audit-log';

const CHANGE = { act: 'refund.created', account_id: 'a', livemode: true, target: 'p' } as const;

async function outcomesOf(act: () => Promise<object>) {
  const outcomes: unknown[] = [];
  const result = withAuditLine(
    async ({ after }) => {
      outcomes.push(after?.['outcome']);
    },
    CHANGE,
    act,
  );
  // An act whose process dies never ends.
  await Promise.race([result.catch(() => undefined), new Promise(setImmediate)]);
  return outcomes;
}

test.each<[string, () => Promise<object>, unknown[]]>([
  ['is done', async () => ({}), ['requested', 'done']],
  [
    'is refused',
    () => Promise.reject(new Refusal('account_frozen', '')),
    ['requested', 'account_frozen'],
  ],
  ['fails', () => Promise.reject(new Error('away')), ['requested', 'unknown']],
  ['never ends', () => new Promise(() => undefined), ['requested']],
])('the lines of an act that %s say so', async (_, act, outcomes) => {
  expect(await outcomesOf(act)).toEqual(outcomes);
});

test('nothing is done when its request has no line', async () => {
  const act = jest.fn(async () => ({}));
  const audit = () => Promise.reject(new Error('away'));
  await expect(withAuditLine(audit, CHANGE, act)).rejects.toThrow('away');
  expect(act).not.toHaveBeenCalled();
});
