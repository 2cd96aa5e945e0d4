import { randomUUID } from 'node:crypto';
import {
  acceptDispute,
  lookUpEvidence,
  submitEvidence,
} from '../../../../connectors/stripe/disputes';
import { createEventReader } from '../../../../connectors/stripe/events';
import { readFacts } from '../../../../connectors/stripe/facts';
import { openSession } from '../../../../connectors/stripe/sessions';
import { disputeInstructionId } from '../../../../src/domain/dispute/dispute';
import { useFixture } from '../../../support/fixture';
import type { Thing } from '../fake';
import { buildPayment, drain, openStripe } from '../world';

const DAY_MS = 86_400_000;
const world = useFixture(openStripe, (opened) => opened.stop());

/** Pays a payment, and disputes it. */
async function dispute(options: { isInquiry?: boolean; due_by?: number } = {}) {
  const { payment_id } = buildPayment();
  await openSession(buildPayment({ payment_id }), world.tools);
  const charge = await world.bank.pay(payment_id);
  return { payment_id, charge, made: await world.bank.dispute(charge, options) };
}

/** Reports of a dispute, without that of its payment. */
async function read(made: Thing) {
  const { reports } = await readFacts(made, world.tools);
  return reports.filter(({ name }) => name.startsWith('dispute_'));
}

const toTime = (seconds: number) => new Date(seconds * 1_000).toISOString();

test('a dispute opens without money, after its payment has settled', async () => {
  const { payment_id, made } = await dispute();
  const { reports } = await readFacts(made, world.tools);
  const names = reports.map(({ name }) => name);
  expect(names).toEqual(['settled', 'dispute_opened', 'dispute_updated']);
  const due = made['evidence_details'].due_by;
  expect(reports[1]).toEqual({
    ...{ resource: 'payment', resource_id: payment_id, name: 'dispute_opened' },
    callback: {
      ...{ callback_id: `${made.id}:opened:fraudulent:${due}`, occurred_at: toTime(made.created) },
      ...{ dispute_id: made.id, code: 'fraudulent', evidence_due_at: toTime(due), amount: 0 },
    },
  });
});

test('what Stripe has not booked of the payment keeps the dispute back', async () => {
  world.bank.state.booksLate = true;
  const { made } = await dispute();
  world.bank.state.booksLate = false;
  expect(await readFacts(made, world.tools)).toEqual({ reports: [], isUnbooked: true });
});

test.each([
  ['warning_needs_response', 'dispute_updated', 'needs_response'],
  ['warning_under_review', 'dispute_updated', 'under_review'],
  ['needs_response', 'dispute_updated', 'needs_response'],
  ['under_review', 'dispute_updated', 'under_review'],
  ['warning_closed', 'dispute_won', undefined],
  ['prevented', 'dispute_won', undefined],
  ['won', 'dispute_won', undefined],
  ['lost', 'dispute_lost', undefined],
  ['a_status_of_tomorrow', 'dispute_opened', undefined],
])('%s is reported as %s %s', async (status, name, dispute_status) => {
  const { made } = await dispute();
  made['status'] = status;
  const last = (await read(made)).at(-1);
  expect([last?.name, last?.callback.dispute_status]).toEqual([name, dispute_status]);
  // The money is that of balance transactions.
  const isMoneyless = name !== 'dispute_updated' && name !== 'dispute_lost';
  expect(last?.callback.amount).toBe(isMoneyless ? 0 : undefined);
});

test('statuses differ, and have the order in which Stripe takes them', async () => {
  const { made } = await dispute({ isInquiry: true });
  const updates = [];
  for (const status of ['warning_needs_response', 'warning_under_review', 'needs_response']) {
    made['status'] = status;
    updates.push((await read(made)).at(-1)?.callback);
  }
  const times = updates.map((callback) => callback?.occurred_at);
  expect(times).toEqual([...new Set(times)].toSorted());
  expect(new Set(updates.map((callback) => callback?.callback_id)).size).toBe(3);
});

test('each balance transaction is one report, with the fee that was kept or given back', async () => {
  const { bank } = world;
  const { made } = await dispute();
  const taken = await bank.withdraw(made, 1_000, 2_000);
  const countered = await bank.withdraw(made, 0, 1_500);
  const back = await bank.reinstate(made, 1_000, 1_500);
  const money = (await read(made)).filter(({ callback }) => callback.bank_reference);
  const rows = money.map(({ name, callback }) => {
    expect(callback).toMatchObject({ dispute_id: made.id, currency: 'EUR' });
    return [name, callback.bank_reference, callback.amount, callback.fee];
  });
  expect(rows).toEqual([
    ['dispute_withdrawn', taken.id, 1_000, 2_000],
    ['dispute_withdrawn', countered.id, undefined, 1_500],
    ['dispute_reinstated', back.id, 1_000, 1_500],
  ]);
});

test('money that goes both ways at once is left to an operator', async () => {
  const { made } = await dispute();
  await world.bank.withdraw(made, 1_000, -100);
  expect((await read(made)).map(({ name }) => name)).not.toContain('dispute_withdrawn');
  expect(world.errors).toHaveLength(1);
});

test('a dispute of another system on the account is not reported', async () => {
  const { charge, made } = await dispute();
  charge['metadata'] = { order: '7' };
  expect(await readFacts(made, world.tools)).toEqual({ reports: [] });
});

test('events of disputes are read, and after a gap their list back to older ones', async () => {
  const { bank, tools } = world;
  const reader = createEventReader();
  const { made } = await dispute();
  const { cursor } = await drain(reader, null, tools);
  await bank.decide(made, 'under_review');
  const second = await drain(reader, cursor, tools);
  expect(second.names).toContain('dispute_updated');
  bank.advance(100 * DAY_MS);
  const third = await drain(reader, second.cursor, tools);
  await bank.decide(made, 'lost');
  bank.events.splice(0);
  bank.advance(30 * DAY_MS);
  expect((await drain(reader, third.cursor, tools)).names).toContain('dispute_lost');
});

const EVIDENCE = {
  ...{ explanation: 'Signed for.', customer_reference: 'C-7', shipped_at: '2026-11-01T10:00:00Z' },
  ...{ carrier: 'DHL', tracking_number: 'T-1', refund_reference: null },
};

const instruct = (
  { payment_id, made }: { payment_id: string; made: Thing },
  by: 'evidence' | 'acceptance',
) => {
  const dispute_id = `dp_${randomUUID()}`;
  const instruction_id = disputeInstructionId(dispute_id, by);
  const ids = { instruction_id, dispute_id, payment_id, bank_dispute_id: made.id };
  return { ...ids, version: 1, livemode: false };
};
const ACCEPTED = { outcome: 'accepted' };

test('evidence is submitted once, under the ID of its instruction', async () => {
  const { bank, tools } = world;
  for (const fault of ['stored_500', 'stored_500_after'] as const) {
    const own = await dispute();
    const input = instruct(own, 'evidence');
    bank.failNext(fault);
    await expect(submitEvidence(input, tools, EVIDENCE)).rejects.toThrow();
    for (const _try of [1, 2, 3]) {
      if ((await lookUpEvidence(input, tools)).outcome === 'accepted') break;
      await submitEvidence(input, tools, EVIDENCE).catch(() => undefined);
    }
    expect(await lookUpEvidence(input, tools)).toEqual(ACCEPTED);
    expect(await submitEvidence(input, tools, EVIDENCE)).toEqual(ACCEPTED);
    expect(own.made).toMatchObject({
      ...{ status: 'under_review', evidence_details: { submission_count: 1 } },
      evidence: {
        ...{ uncategorized_text: 'Customer: C-7\nSigned for.', shipping_carrier: 'DHL' },
        ...{ shipping_date: '2026-11-01T10:00:00Z', shipping_tracking_number: 'T-1' },
      },
    });
  }
});

test('evidence that somebody submits at Stripe is not ours', async () => {
  const { made, ...own } = await dispute();
  const input = instruct({ made, ...own }, 'evidence');
  made['evidence_details'].submission_count = 1;
  expect(await lookUpEvidence(input, world.tools)).toEqual({ outcome: 'not_found' });
});

test('an answer after the end is refused, and one that Stripe only refuses now is tried again', async () => {
  const { bank, tools } = world;
  const over = await dispute();
  await bank.decide(over.made, 'won');
  const late = await dispute();
  late.made['evidence_details'].past_due = true;
  const refused = { outcome: 'refused', code: 'dispute_closed' };
  for (const own of [over, late]) {
    const answer = await submitEvidence(instruct(own, 'evidence'), tools, EVIDENCE);
    expect(answer).toMatchObject(refused);
  }
  expect(await acceptDispute(instruct(over, 'acceptance'), tools)).toMatchObject(refused);
  const unknown = { ...instruct(over, 'evidence'), bank_dispute_id: 'du_unknown' };
  await expect(submitEvidence(unknown, tools, EVIDENCE)).rejects.toThrow('resource_missing');
});

test('an acceptance closes the dispute once, and another one meets it closed', async () => {
  const { bank, tools } = world;
  const own = await dispute();
  for (const _instruction of ['one', 'another']) {
    expect(await acceptDispute(instruct(own, 'acceptance'), tools)).toEqual(ACCEPTED);
  }
  const events = bank.events.filter(({ type }) => type === 'charge.dispute.closed');
  expect(events.filter(({ data }) => data.object.id === own.made.id)).toHaveLength(1);
});
