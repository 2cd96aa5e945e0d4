import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation } from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import { createDisputeActivities } from '../../../activities/disputes';
import type { ConnectorActivities } from '../../../connectors/contract/activities';
import type { DisputeAnswer } from '../../../src/domain/dispute/dispute';
import { Encrypted } from '../../../src/encryption/encrypter';
import { disputeId } from '../../../src/store/disputes';
import { eventually } from '../../support/eventually';
import { setFeeBearer } from '../../support/fee-bearer';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { scriptedBank } from '../../support/workflow-setting';
import { ACT, refusalOf, type TrackedPayment, track, useLifecycles } from '../lifecycles';

/** Holds docs/api.md#disputes and docs/connectors.md#disputes for the workflow of a dispute. */
const { setting, buildDeps, withPayment } = useLifecycles();

const DAY_MS = 86_400_000;
const inDays = (days: number, at: number) => new Date(at + days * DAY_MS).toISOString();

type TrackedDispute = ReturnType<typeof track<'dispute'>> & {
  payment: TrackedPayment;
  respond: (answer: DisputeAnswer) => Promise<unknown>;
  reportOf: (name: Parameters<TrackedPayment['report']>[0], facts?: object) => Promise<object>;
  /** Instructions that answer it, as the bank got them. */
  answers: () => string[];
};

interface Options extends Partial<ConnectorActivities> {
  /** Facts of its first report. */
  facts?: object;
}

/** Has a settled payment of 1,050 disputed, and verifies the ledger after the story. */
const withDispute = (
  { facts, ...bank }: Options,
  story: (dispute: TrackedDispute) => Promise<unknown>,
) =>
  withPayment(scriptedBank(bank), async (payment) => {
    await payment.endBy('settled');
    const { stores, env, queues } = setting;
    const evidence_due_at = inDays(10, await env.currentTimeMs());
    const report = { dispute_id: 'D1', amount: 400, evidence_due_at, ...facts };
    await payment.report('dispute_opened', report);
    const read = async () => (await stores.disputes.forPayment(payment.id))[0];
    const { _id: id } = await eventually('the dispute', read);
    const handle = env.client.workflow.getHandle(`dispute:${id}`);
    const tracked = track('dispute', setting, id, payment.account_id, handle, stores.disputes.get);
    const respond = (by: DisputeAnswer) =>
      env.client.workflow.executeUpdateWithStart<Workflow, object, [object]>('respond', {
        args: [{ with: by }],
        startWorkflowOperation: new WithStartWorkflowOperation('dispute', {
          ...{ workflowId: `dispute:${id}`, taskQueue: queues.lifecycle },
          args: [{ dispute_id: id, resume: true, request_id: 'late' }],
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      });
    const reportOf: TrackedDispute['reportOf'] = (name, more = {}) =>
      payment.report(name, { dispute_id: 'D1', ...more });
    const answers = () => payment.told.filter((each) => /Evidence|Dispute|Acceptance/.test(each));
    await story({ ...tracked, payment, respond, reportOf, answers });
    expect(await payment.differences()).toEqual([]);
    expect(await tracked.differences()).toEqual([]);
  });

/** Says what the connector of a payment serves. */
async function reportServed({ stored }: TrackedPayment, more: object = {}): Promise<void> {
  const report = { serves: [], functions: [], contract: 1, ...more };
  const seen = { seen_at: new Date(), stopped: null };
  await setting.stores.capabilities.report((await stored()).connector, report, seen);
}

async function storeEvidence(id: string): Promise<void> {
  const ciphertext = Encrypted.parse('header.key.iv.text.tag');
  const evidence = { ciphertext, fingerprint: 'f', kid: 'k' };
  await setting.stores.disputes.storeEvidence(id, evidence, new Date().toISOString());
}

test('evidence reaches the bank once, by one instruction, and the dispute is under review', () =>
  withDispute({}, async ({ id, handle, respond, answers, stored, reportOf, eventTypes }) => {
    await Promise.all([respond('evidence'), respond('evidence')]);
    await respond('evidence');
    expect(answers()).toEqual([`submitEvidence evidence:${id}`]);
    expect(await stored()).toMatchObject({ status: 'under_review', answering: null });
    await reportOf('dispute_lost');
    expect(await handle.result()).toMatchObject({ status: 'lost' });
    expect(await eventTypes()).toEqual(['dispute.opened', 'dispute.updated', 'dispute.closed']);
    await saveHistory(handle, 'dispute-evidence');
  }));

test('an instruction without an answer is looked up, and sent again only if the bank lacks it', () => {
  const acceptDispute = () => Promise.reject(new Error('The answer got lost.'));
  const lookUpAcceptance = async () => ({ outcome: 'accepted' }) as const;
  return withDispute({ acceptDispute, lookUpAcceptance }, async (dispute) => {
    await dispute.respond('acceptance');
    expect(await dispute.handle.result()).toMatchObject({ status: 'accepted' });
    const calls = ['acceptDispute', 'lookUpAcceptance'];
    expect(dispute.answers()).toEqual(calls.map((call) => `${call} acceptance:${dispute.id}`));
    expect(await dispute.stored()).toMatchObject({ status: 'accepted', amount: 400 });
  });
});

test('a refused answer is for operators, and the dispute stays as it is', () => {
  const refused = { outcome: 'refused', code: 'late', message: 'Too late.' } as const;
  const submitEvidence = async () => refused;
  return withDispute({ submitEvidence }, async ({ respond, becomes, stored, act }) => {
    for (let times = 0; times < 2; times += 1) {
      expect(await refusalOf(respond('evidence'))).toMatchObject({ code: 'dispute_closed' });
      await becomes({ attention: 'answer_refused' });
      expect(await stored()).toMatchObject({ status: 'needs_response', answering: null });
    }
    await act('acknowledge');
    await act('accept');
    await becomes({ status: 'accepted' });
  });
});

test('evidence stays until it is sent, also where the bank refuses the acceptance', () => {
  const refused = { outcome: 'refused', code: 'late', message: 'Not now.' } as const;
  return withDispute({ acceptDispute: async () => refused }, async (dispute) => {
    const { id, respond, stored, becomes, reportOf } = dispute;
    await storeEvidence(id);
    expect(await refusalOf(respond('acceptance'))).toMatchObject({ code: 'dispute_closed' });
    expect(await stored()).toMatchObject({ evidence: { ciphertext: expect.any(String) } });
    await respond('evidence');
    expect(await stored()).toMatchObject({
      status: 'under_review',
      evidence: { ciphertext: null },
    });
    await reportOf('dispute_lost');
    await becomes({ status: 'lost' });
  });
});

test('a dispute whose money does not fit has its deadline and reason', () =>
  withDispute(
    { facts: { currency: 'USD', code: '13.1' } },
    async ({ stored, becomes, reportOf }) => {
      await becomes({ attention: 'dispute_differs' });
      const known = { amount: 0, reason: '13.1', evidence_due_at: expect.any(String) };
      expect(await stored()).toMatchObject(known);
      await reportOf('dispute_lost');
      await becomes({ status: 'lost' });
    },
  ));

test('an operator cannot accept a dispute at a bank that takes no answers', () =>
  withDispute({}, async ({ payment, stored, answers, reportOf, refusal, handle }) => {
    await reportServed(payment);
    expect(await refusal('accept')).toMatchObject({ code: 'evidence_not_supported' });
    expect(await stored()).toMatchObject({ audit: [], status: 'needs_response' });
    await reportOf('dispute_lost');
    expect(await handle.result()).toMatchObject({ status: 'lost' });
    expect(answers()).toEqual([]);
  }));

test('while the bank is away, only the first caller waits, and the end answers it', () => {
  const away = () => Promise.reject(new Error('The bank is away.'));
  const bank = { submitEvidence: away, lookUpEvidence: away };
  return withDispute(bank, async ({ respond, stored, act, reportOf, becomes, shows }) => {
    const first = refusalOf(respond('evidence'));
    await eventually('the attempt', async () => (await stored()).answering === 'evidence');
    for (let times = 0; times < 10; times += 1) await respond('evidence');
    await act('snooze', { ...ACT, hours: 1 });
    await setting.env.sleep(DAY_MS / 12);
    await becomes({ attention: 'answer_overdue' });
    await reportOf('dispute_updated', { dispute_status: 'under_review' });
    await becomes({ status: 'under_review', attention: 'answer_overdue' });
    await reportOf('dispute_lost');
    expect(await first).toMatchObject({ code: 'dispute_closed' });
    // The bank has decided, and nothing is overdue any more.
    await becomes({ status: 'lost', attention: null });
    expect(await shows('**lost**')).not.toContain('answer_overdue');
  });
});

test('an answer that comes after the end leaves the time of the end', () => {
  const { opened, release } = gate();
  const submitEvidence = () => opened.then(() => ({ outcome: 'accepted' as const }));
  return withDispute(
    { submitEvidence },
    async ({ respond, reportOf, becomes, answers, stored }) => {
      const waiting = refusalOf(respond('evidence'));
      await eventually('the attempt', async () => answers().length > 0);
      await reportOf('dispute_lost');
      const { closed_at } = await becomes({ status: 'lost' });
      await waiting;
      release();
      await eventually('the answer', async () => (await stored()).answering === null);
      expect(await stored()).toMatchObject({ status: 'lost', closed_at });
      expect((await stored()).evidence_submitted_at).not.toBeNull();
    },
  );
});

test('a merchant who gives in is not refused where the bank closes the dispute before it answers', () => {
  const { opened, release } = gate();
  const acceptDispute = () => opened.then(() => ({ outcome: 'accepted' as const }));
  return withDispute({ acceptDispute }, async ({ respond, reportOf, becomes, answers, stored }) => {
    const waiting = respond('acceptance');
    await eventually('the attempt', async () => answers().length > 0);
    await reportOf('dispute_lost');
    const { closed_at } = await becomes({ status: 'accepted' });
    expect(await waiting).toMatchObject({ status: 'accepted' });
    release();
    await eventually('the answer', async () => (await stored()).answering === null);
    expect(await stored()).toMatchObject({ status: 'accepted', closed_at, attention: null });
  });
});

test('evidence that nobody has sent is erased when the bank decides', () =>
  withDispute({}, async ({ id, reportOf, becomes, stored }) => {
    await storeEvidence(id);
    await reportOf('dispute_lost');
    await becomes({ status: 'lost' });
    expect(await stored()).toMatchObject({ evidence: { ciphertext: null } });
  }));

test('a bank may leave its only dispute unnamed, also where its reports come together', () =>
  withPayment(scriptedBank(), async (payment) => {
    await payment.endBy('settled');
    await payment.signalAfterEnd('dispute_opened', { amount: 400 });
    await payment.report('dispute_won');
    const won = await eventually('the end', async () => {
      const [dispute] = await setting.stores.disputes.forPayment(payment.id);
      return dispute?.status === 'won' && dispute;
    });
    expect(won).toMatchObject({ amount: 0 });
    expect(await payment.attention()).toBeNull();
  }));

test('money that an unnamed dispute takes later is of the only one that is open', () =>
  withPayment(scriptedBank(), async (payment) => {
    await payment.endBy('settled');
    const becomes = (expected: object[]) =>
      eventually('the disputes', async () => {
        const rows = await setting.stores.disputes.forPayment(payment.id);
        const seen = rows.map(({ status, amount }) => ({ status, amount }));
        return JSON.stringify(seen) === JSON.stringify(expected);
      });
    await payment.report('dispute_opened', { amount: 0 });
    await becomes([{ status: 'needs_response', amount: 0 }]);
    await payment.report('dispute_withdrawn', { amount: 400, bank_reference: 'W1' });
    await becomes([{ status: 'needs_response', amount: 400 }]);
    await payment.report('dispute_won');
    await becomes([{ status: 'won', amount: 0 }]);
    // The same movement once more, after the end of its dispute.
    await payment.report('dispute_withdrawn', { amount: 400, bank_reference: 'W1' });
    const second = { amount: 100, bank_reference: 'W2' };
    await payment.report('dispute_withdrawn', second);
    const ended = { status: 'won', amount: 0 };
    await becomes([ended, { status: 'needs_response', amount: 100 }]);
    await payment.report('dispute_lost', { dispute_id: await nameOfOpen(payment.id) });
    await becomes([ended, { status: 'lost', amount: 100 }]);
  }));

async function nameOfOpen(payment_id: string) {
  const rows = await setting.stores.disputes.forPayment(payment_id);
  return rows.find(({ status }) => status === 'needs_response')?.name;
}

test('a first report whose answer got lost is refused again, or leaves its fee out again', () =>
  withPayment(scriptedBank(), async (payment) => {
    await payment.endBy('settled');
    await reportServed(payment, { dispute_fee_max: 15 });
    const { id: payment_id, account_id, input } = payment;
    const { openDispute } = createDisputeActivities(buildDeps());
    const open = (name: string, money: { amount: number; fee?: number }, more: object = {}) => {
      const at = new Date().toISOString();
      const report = { callback_id: name, occurred_at: at, ...money };
      return openDispute({
        ...{ dispute_id: disputeId(payment_id, name), payment_id, name, request_id: 'r' },
        ...{ account_id, livemode: false, currency: 'EUR', method: 'ideal' },
        ...{ connector: input.connector, amount: money.amount, created_at: at },
        report: { name: 'dispute_opened', ...report },
        ...more,
      });
    };
    const refused = { outcome: 'refused', why: expect.stringContaining('1050 is left') };
    expect(await open('large', { amount: 1_051 })).toMatchObject({ answer: refused });
    // It is decided about as any other.
    expect(await open('large', { amount: 1_051 })).not.toHaveProperty('answer');
    const posted = { answer: { outcome: 'posted', isFeeRefused: true } };
    for (const _time of ['once', 'again']) {
      expect(await open('dear', { amount: 400, fee: 16 })).toMatchObject(posted);
    }
    // A rebuild posts it whatever the bank has refunded since.
    const { mongo, database } = setting;
    const payments = mongo.db(database).collection<{ _id: string }>('payments');
    await payments.updateOne({ _id: payment_id }, { $set: { refunded_over: 1 } });
    const rebuilt = await open('rebuilt', { amount: 650 }, { rebuilding: true });
    expect(rebuilt).toMatchObject({ answer: { outcome: 'posted' } });
    await payments.updateOne({ _id: payment_id }, { $unset: { refunded_over: '' } });
  }));

test('the team gets a mail 72 hours before the deadline, and after it evidence is refused', () =>
  withDispute({}, async ({ account_id, id, stored, respond, becomes, reportOf }) => {
    const { stores, env, mongo, database } = setting;
    await stores.mails.publish(true);
    const user = { _id: randomUUID(), account_id, email: 'ana@shop.example', role: 'read_only' };
    await mongo.db(database).collection<typeof user>('users').insertOne(user);
    await env.sleep(6.9 * DAY_MS);
    expect(await stored()).not.toHaveProperty('reminded_at');
    await env.sleep(0.2 * DAY_MS);
    await eventually('the reminder', async () => (await stored()).reminded_at);
    const due = { kind: 'dispute_due', dispute_id: id, livemode: false };
    const mails = await mongo.db(database).collection('mails').find({ account_id }).toArray();
    expect(mails).toMatchObject([{ to: 'ana@shop.example', subject: due }]);
    await env.sleep(3 * DAY_MS);
    expect(await refusalOf(respond('evidence'))).toMatchObject({ code: 'dispute_closed' });
    await reportOf('dispute_lost');
    await becomes({ status: 'lost' });
  }));

const WHOLE = { available: 1_050, clearing: -1_050 };

test('a report after the end starts the workflow again, and moves the money of the books', () =>
  withDispute({}, async ({ handle, reportOf, stored, payment, eventTypes }) => {
    await reportOf('dispute_won', { amount: 0 });
    expect(await handle.result()).toMatchObject({ status: 'won' });
    expect(await payment.money()).toMatchObject({ available: 650 });
    for (const _time of ['once', 'again']) {
      await reportOf('dispute_reinstated', { amount: 400, bank_reference: 'R1' });
    }
    await eventually('the money', async () => (await stored()).amount === 0);
    expect(await payment.money()).toMatchObject(WHOLE);
    expect(await eventTypes()).toEqual(['dispute.opened', 'dispute.closed', 'dispute.updated']);
    await saveHistory(handle, 'dispute-reinstated');
  }));

const INQUIRY = { facts: { amount: 0 } };

test('what came back before it was taken waits an hour for that, and then for an operator', () =>
  withDispute(INQUIRY, async ({ stored, reportOf, becomes, payment, shows }) => {
    const back = { amount: 400, bank_reference: 'R1' };
    await reportOf('dispute_reinstated', back);
    await reportOf('dispute_won', { amount: 0 });
    await becomes({ status: 'won' });
    expect(await stored()).toMatchObject({ amount: 0, attention: null, transfers: [] });
    await reportOf('dispute_withdrawn', { amount: 400, bank_reference: 'W1' });
    await eventually('both', async () => (await stored()).transfers.length === 2);
    const transfers = [{ direction: 'out' }, { direction: 'in', bank_reference: 'R1' }];
    expect(await stored()).toMatchObject({ amount: 0, transfers });
    expect(await payment.money()).toMatchObject(WHOLE);
    await reportOf('dispute_reinstated', { ...back, bank_reference: 'R2' });
    await shows('refused');
    expect(await stored()).toMatchObject({ attention: null });
    await setting.env.sleep(DAY_MS);
    await becomes({ attention: 'dispute_differs' });
    expect(await payment.unapplied()).toEqual([expect.stringContaining('more came back')]);
  }));

// How fees of both are shared is in test/domain/dispute.test.ts.
test.each([
  ['merchant', 'service'],
  ['service', 'merchant'],
] as const)('the %s bears a fee and has it back, and the %s a later one', (first, later) =>
  withDispute(INQUIRY, async ({ payment, reportOf, becomes }) => {
    const during = first === 'merchant' ? 635 : 650;
    await setFeeBearer(setting.stores, payment.account_id, first);
    await reportOf('dispute_withdrawn', { amount: 400, fee: 15, bank_reference: 'W1' });
    await becomes({ amount: 400 });
    const clearing = -650;
    expect(await payment.money()).toMatchObject({ available: during, clearing });
    await setFeeBearer(setting.stores, payment.account_id, later);
    for (const direction of ['dispute_withdrawn', 'dispute_reinstated'] as const) {
      await reportOf(direction, { fee: 7, bank_reference: direction });
      const isTaken = direction === 'dispute_withdrawn';
      await becomes({ fee: isTaken ? 22 : 15 });
      const available = isTaken && later === 'merchant' ? during - 7 : during;
      expect(await payment.money()).toMatchObject({ available, clearing });
    }
    await reportOf('dispute_won', { amount: 400, fee: 15 });
    await becomes({ status: 'won' });
    expect(await payment.money()).toMatchObject(WHOLE);
  }),
);

test('a fee above the maximum of the connector is not posted, and an operator sees it', () =>
  withDispute({}, async ({ payment, reportOf, becomes, act }) => {
    await reportServed(payment, { dispute_fee_max: 15 });
    await payment.report('dispute_opened', { dispute_id: 'D2', amount: 100, fee: 16 });
    const second = await eventually('the second dispute', async () => {
      const rows = await setting.stores.disputes.forPayment(payment.id);
      return rows.find(({ name, attention }) => name === 'D2' && attention !== null);
    });
    expect(second).toMatchObject({ amount: 100, fee: 0, attention: 'dispute_differs' });
    for (const [fee, charged] of [
      [15, 15],
      [7, 22],
    ] as const) {
      await reportOf('dispute_withdrawn', { fee, bank_reference: `W${fee}` });
      await becomes({ fee: charged });
    }
    // An operator gives both fees back, which together are above the maximum of one.
    await act('dispute_won', { ...ACT, fee: 22 });
    await becomes({ status: 'won', fee: 0 });
    await reportOf('dispute_lost');
  }));
