import { useFixture } from '../support/fixture';
import { commandsIn, useProvisioning } from './cli';

const service = useProvisioning();

/** `balance adjust` of a new sandbox account, which has 100,000.00 on `main`. */
async function opened() {
  const { account_id } = await service.account();
  const adjusting = (amount: string, ...more: string[]) => [
    ...['balance', 'adjust', account_id, '--env', 'sandbox', '--balance-account', 'main'],
    ...['--currency', 'EUR', '--operator', 'mia', '--reason', 'Ticket 42', '--amount', amount],
    ...more,
  ];
  const adjust = (...args: Parameters<typeof adjusting>) => service.json(...adjusting(...args));
  const entries = () =>
    service.db
      .collection('ledger_postings')
      .find({ book: `${account_id}:sandbox:EUR`, kind: { $in: ['adjusted', 'reversed'] } })
      .sort({ written_at: 1 })
      .toArray();
  return { account_id, adjusting, adjust, entries };
}

/** Merchant of refused corrections. */
const merchant = useFixture(opened);

const legs = (account: string, amount: number) => [
  { account, amount: -amount },
  { account: 'balances.main.available', amount },
];

test.each([
  ['bank_fees', 'expense.bank_fees', 5],
  ['suspense', 'suspense.held', -5],
  ['adjustments', 'external.adjustments', 5],
])('a correction against %s moves no money at a bank', async (against, account, amount) => {
  const { adjust, entries } = await opened();
  const row = await adjust(String(amount), '--against', against);
  expect(row).toMatchObject({ available: 10_000_000 + amount });
  const [entry] = await entries();
  expect(entry).toMatchObject({ legs: legs(account, amount) });
  expect(entry).not.toHaveProperty('uncleared');
});

test('a correction of what a bank moved awaits a line of its statement', async () => {
  const { adjust, adjusting, entries } = await opened();
  const bank = ['--against', 'clearing:sandbox', '--bank-reference', 'ACCT-7'];
  const once = ['-700', ...bank, '--operation-id', 'ticket-42'] as const;
  expect(await adjust(...once)).toMatchObject({ available: 9_999_300 });
  expect(await adjust(...once)).toMatchObject({ available: 9_999_300 });
  const [entry, ...others] = await entries();
  expect(others).toEqual([]);
  expect(entry).toMatchObject({
    ...{ legs: legs('clearing.sandbox', -700), bank_reference: 'ACCT-7' },
    ...{ uncleared: 'sandbox', bank_amount: -700, livemode: false, currency: 'EUR' },
  });
  const scope = { connector: 'sandbox', livemode: false, currency: 'EUR' };
  expect(
    await service.stores.ledger.findUncleared({ ...scope, bank_reference: 'ACCT-7' }),
  ).toMatchObject([{ entry_id: 'adjusted:ticket-42', amount: -700 }]);
  const other = adjusting(...once).map((word) => (word === 'ACCT-7' ? 'ACCT-8' : word));
  expect((await service.refusal(...other)).code).toBe('operation_id_used');
});

test('a mistake that is reversed is on no statement, but what a line matches is', async () => {
  const { adjust, entries } = await opened();
  const reverse = (id: string) =>
    service.json('balance', 'reverse', id, '--operator', 'mia', '--reason', 'Typo');
  const against = ['--against', 'clearing:sandbox'] as const;
  await adjust('700', ...against, '--operation-id', 'typo');
  await reverse('adjusted:typo');
  const cleared = { cleared: 'sandbox', cleared_at: expect.any(String) };
  expect(await entries()).toMatchObject([cleared, cleared]);
  await adjust('800', ...against, '--operation-id', 'moved');
  const { mongo, ledger } = { mongo: service.mongo, ...service.stores };
  await mongo.withSession((session) => ledger.clear(['adjusted:moved'], session));
  await reverse('adjusted:moved');
  expect((await entries()).slice(2)).toMatchObject([
    cleared,
    { kind: 'reversed', uncleared: 'sandbox', bank_amount: -800 },
  ]);
});

test('no more leaves suspense than an operator has put there', async () => {
  const { adjust, adjusting } = await opened();
  await adjust('-5', '--against', 'suspense');
  const refused = await service.refusal(...adjusting('6', '--against', 'suspense'));
  expect(refused).toEqual({
    code: 'insufficient_balance',
    message: 'Less is in suspense. Nothing was posted.',
  });
  expect(await adjust('5', '--against', 'suspense')).toMatchObject({ available: 10_000_000 });
});

test.each([
  [['--against', 'clearing:acme'], 'connector_unknown', /no connector acme/],
  [['--against', 'clearing:a.b'], 'invalid_usage', /clearing:CONNECTOR/],
  [['--against', 'clearing:'], 'invalid_usage', /clearing:CONNECTOR/],
  [['--against', 'clearing'], 'invalid_usage', /clearing:CONNECTOR/],
  [['--bank-reference', 'ACCT-7'], 'invalid_usage', /needs --against clearing:CONNECTOR/],
  [
    ['--against', 'suspense', '--bank-reference', 'ACCT-7'],
    ...(['invalid_usage', /needs --against clearing:CONNECTOR/] as const),
  ],
])('%j is refused in words', async (options, code, message) => {
  const { adjusting, entries } = merchant;
  const refusal = await service.refusal(...adjusting('5', ...options));
  expect(refusal).toEqual({ code, message: expect.stringMatching(message) });
  expect(await entries()).toEqual([]);
});

test('the sandbox bank moves nothing on live', async () => {
  const { adjusting } = await opened();
  const live = adjusting('5', '--against', 'clearing:sandbox').map((word) =>
    word === 'sandbox' ? 'live' : word,
  );
  const { refusal } = commandsIn({ ...service.env, LIVE_CONNECTORS: 'acme=ideal' });
  expect((await refusal(...live)).code).toBe('connector_unknown');
});
