import { Refusal } from '../../../src/domain/errors';
import { withAuditLine } from '../../../src/service/audit-log';

const CHANGE = { act: 'refund.created', account_id: 'a', livemode: true, target: 'p' } as const;

test.each<[string, () => Promise<object>, unknown[]]>([
  ['is done', async () => ({}), ['requested', 'done']],
  [
    'is refused',
    () => Promise.reject(new Refusal('account_frozen', '')),
    ['requested', 'account_frozen'],
  ],
  ['fails', () => Promise.reject(new Error('away')), ['requested', 'unknown']],
  ['never ends', () => new Promise(() => undefined), ['requested']],
])('an act that %s has lines with its outcomes', async (_, act, outcomes) => {
  const lines: unknown[] = [];
  const audit: Parameters<typeof withAuditLine>[0] = async ({ after }) =>
    void lines.push(after?.['outcome']);
  const result = withAuditLine(audit, CHANGE, act);
  // An act whose process ends in between never ends.
  await Promise.race([result.catch(() => undefined), new Promise(setImmediate)]);
  expect(lines).toEqual(outcomes);
});

test('an act does not begin when its first line cannot be written', async () => {
  const act = jest.fn(async () => ({}));
  const audit = () => Promise.reject(new Error('away'));
  await expect(withAuditLine(audit, CHANGE, act)).rejects.toThrow('away');
  expect(act).not.toHaveBeenCalled();
});
