import { printList } from '../../../src/cli/output';

test('a column of a list shows a field or what it prints: a time in UTC, and - for nothing', () => {
  const print = jest.fn();
  const row = { id: 'a', amount: 0, created_at: '2026-03-01T12:00:00.000Z', revoked_at: null };
  printList(
    { print },
    {
      ...{ rows: [row], has_more: true, next_cursor: 'c', none: 'None.' },
      present: ({ id, ...rest }) => ({ key: id, ...rest }),
      columns: {
        KEY: 'key',
        AMOUNT: 'amount',
        CREATED: 'created_at',
        REVOKED: 'revoked_at',
        OWN: (_, { id }) => `own ${id}`,
        NONE: () => null,
      },
    },
  );
  const [{ json, text }] = print.mock.calls[0];
  const { id: key, ...rest } = row;
  expect(json).toEqual({ data: [{ key, ...rest }], has_more: true, next_cursor: 'c' });
  expect(text.split('\n').map((line: string) => line.split(/ {2,}/))).toEqual([
    ['KEY', 'AMOUNT', 'CREATED', 'REVOKED', 'OWN', 'NONE'],
    ['a', '0', '2026-03-01 12:00:00 UTC', '-', 'own a', '-'],
    [''],
    ['There are more: --before c'],
  ]);
});
