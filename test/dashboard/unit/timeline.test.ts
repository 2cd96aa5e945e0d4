import { Decimal128 } from 'mongodb';
import { buildEvents } from '../../../activities/shared/events';
import { assembleTimeline, type Facts } from '../../../src/service/money/resources/timeline';
import type { CallbackDocument } from '../../../src/store/callbacks';
import type { DeliveryRow } from '../../../src/store/deliveries';

const AT = '2026-03-01T12:00:00.000Z';
const LATER = '2026-03-01T12:00:05.000Z';

const recorded = buildEvents(
  {
    ...{ resource: 'payment', resource_id: 'pay-1', account_id: 'acct_1', livemode: false },
    ...{ at: LATER, data: { payment_id: 'pay-1' }, request_id: 'req-1' },
    transitions: [{ type: 'payment.settled', transition: 4 }],
  },
  [{ endpoint_id: 'we_1', wants: 'all', isDisabled: false }],
);

const callback: CallbackDocument = {
  ...{ _id: 'bank:cb-1', connector: 'bank', resource: 'payment', resource_id: 'pay-1' },
  ...{ name: 'settled', received_at: LATER, signalled_at: LATER, unapplied: null, parked: null },
  body: { callback_id: 'cb-1', occurred_at: AT, bank_reference: 'ref-1' },
};

const attempt: NonNullable<DeliveryRow['log']>[number] = {
  ...{ run: 0, attempt: 1, at: '2026-03-01T12:00:06.000Z', duration_ms: 12, next_attempt_at: null },
  url: 'https://shop.example/hook?token=secret',
  ...{ status_code: 500, error: null, response_excerpt: 'no', outcome: 'failed' },
};
const log = [attempt, { ...attempt, attempt: 2, status_code: null, error: 'No answer.' }];

const facts: Facts = {
  kind: 'payment',
  resource: {
    ...{ created_at: AT, request_id: 'req-1', applied_callbacks: ['cb-1'] },
    audit: [
      {
        ...{ id: 'act-1', who: 'mia', when: '2026-03-02T08:00:00.000Z', what: 'mark_settled' },
        ...{ why: 'The bank says so.', before: 'authorized', after: 'settled' },
      },
    ],
  },
  idempotencyRecord: { key: 'order-1' },
  callbacks: [
    callback,
    {
      ...{ ...callback, _id: 'bank:cb-2', name: 'failed', unapplied: 'The payment is settled.' },
      body: { callback_id: 'cb-2', occurred_at: AT, code: 'late', reason: 'Too late' },
      received_at: '2026-03-01T13:00:00.000Z',
    },
  ],
  events: recorded.events.map((event) => ({
    event,
    deliveries: recorded.deliveries.map((row) => ({ ...row, log })),
  })),
  journalEntries: [
    {
      ...{ _id: 'payment_settled:pay-1', kind: 'payment_settled', resource_id: 'pay-1' },
      ...{ book: 'acct_1:sandbox:EUR', at: LATER, written_at: LATER },
      lines: [
        { account: 'clearing.bank', amount: -1_000 },
        { account: 'balances.main.available', amount: 1_000 },
      ],
    },
  ],
};

test('a timeline is in order, and in that of cause and effect at one moment', () => {
  expect(assembleTimeline(facts).map(({ kind, title }) => [kind, title])).toEqual([
    ['call', 'API call created the payment'],
    ['callback', 'Bank reported settled'],
    ['transition', 'Moved to settled'],
    ['entry', 'Ledger: payment settled'],
    ['event', 'Event payment.settled'],
    ['attempt', 'Webhook attempt 1: HTTP 500'],
    ['attempt', 'Webhook attempt 2: no answer'],
    ['callback', 'Bank reported failed'],
    ['act', 'Our operators: mark settled'],
  ]);
});

test('each entry of a timeline has its details, without accounts that are not the merchant’s', () => {
  const details = assembleTimeline(facts).map((entry) => entry.details);
  expect(details).toEqual([
    ['Request req-1', 'Idempotency-Key order-1'],
    ['Applied', 'Bank reference ref-1'],
    [],
    ['main, available: +€10.00'],
    [recorded.events[0]?._id, 'Not delivered yet', `Next attempt ${LATER}`],
    ['payment.settled to https://shop.example in 12 ms'],
    ['No answer.', 'payment.settled to https://shop.example in 12 ms'],
    ['Not applied: The payment is settled.', 'Code late', 'Too late'],
    ['authorized → settled'],
  ]);
});

test('a timeline of a dispute says when the bank had evidence, and how it decided', () => {
  const closed_at = '2026-03-03T08:00:00.000Z';
  const resource = { ...facts.resource, status: 'won', evidence_submitted_at: LATER, closed_at };
  const entries = assembleTimeline({ ...facts, kind: 'dispute', resource, callbacks: [] });
  const titles = entries.filter(({ kind }) => kind !== 'attempt').map(({ title }) => title);
  expect(titles).toEqual([
    'The bank has the evidence',
    'Ledger: payment settled',
    'Event payment.settled',
    'Our operators: mark settled',
    'Moved to won',
  ]);
  const open = { ...resource, status: 'needs_response', evidence_submitted_at: null };
  const unanswered = { ...facts, kind: 'dispute', resource: { ...open, closed_at: null } } as const;
  expect(JSON.stringify(assembleTimeline(unanswered))).not.toMatch(/Moved to|has the evidence/);
});

test('a journal entry of an operator shows neither the operator nor the reason', () => {
  const note = { operator: 'zoe', reason: 'Suspected mule', approved_by: 'mia' };
  const journalEntries = facts.journalEntries.map((entry) => ({ ...entry, note }));
  expect(assembleTimeline({ ...facts, journalEntries })).toEqual(assembleTimeline(facts));
});

test('a timeline writes amounts of a chain and of its journal entries in whole units of the asset', () => {
  const moved = (amount: string) => Decimal128.fromString(`${amount}10000000000000000001`);
  const transaction = { transaction_id: '0xabc', amount: '1500000000000000000', confirmations: 3 };
  const entries = assembleTimeline({
    ...{ ...facts, kind: 'crypto_payment' },
    resource: { ...facts.resource, asset: 'ETH', network: 'ethereum' },
    callbacks: [
      {
        ...callback,
        name: 'deposit',
        body: { callback_id: 'cb-1', occurred_at: AT, ...transaction },
      },
    ],
    journalEntries: [
      {
        ...{ _id: 'crypto_payment_credited:pay-1:0xabc', kind: 'crypto_payment_credited' },
        ...{ book: 'acct_1:sandbox:ETH.ethereum', resource_id: 'pay-1', at: LATER },
        written_at: LATER,
        lines: [
          { account: 'clearing.chain', amount: moved('-') },
          { account: 'balances.main.available', amount: moved('') },
        ],
      },
    ],
  });
  const report = entries.find(({ kind }) => kind === 'chain');
  expect([report?.title, report?.details]).toEqual([
    'Chain reported deposit',
    ['Applied', 'Transaction 0xabc', 'Amount 1.5 ETH', '3 confirmations'],
  ]);
  expect(entries.find(({ kind }) => kind === 'entry')?.details).toEqual([
    'main, available: +10.000000000000000001 ETH',
  ]);
  expect(entries[0]?.title).toBe('API call created the crypto payment');
});

test.each([
  ['USDC', 'Amount 5 USDC'],
  ['USDT', undefined],
  [undefined, undefined],
])('a wrong asset %s is never written in units of the expected one', (asset, amount) => {
  const resource = { ...facts.resource, asset: 'ETH', network: 'ethereum' };
  const told = { transaction_id: '0x1', amount: '5000000', ...(asset && { asset }) };
  const body = { callback_id: 'cb-1', occurred_at: AT, ...told };
  const callbacks = [{ ...callback, name: 'wrong_asset', body } as CallbackDocument];
  const report = assembleTimeline({ ...facts, resource, callbacks }).find(
    ({ kind }) => kind === 'chain',
  );
  expect(report?.details.find((text) => text.startsWith('Amount'))).toBe(amount);
});

test('a callback that is parked or not signalled yet says so', () => {
  const row = (change: Partial<CallbackDocument>) => {
    const alone = { ...facts, callbacks: [{ ...callback, ...change }] };
    const resource = { ...facts.resource, applied_callbacks: [] };
    return assembleTimeline({ ...alone, resource }).find(({ kind }) => kind === 'callback')
      ?.details[0];
  };
  expect(row({ parked: 'No such payment.' })).toBe('Waits for an operator: No such payment.');
  expect(row({ signalled_at: null })).toBe('Not handed on yet');
  expect(row({})).toBe('Taken in');
});
