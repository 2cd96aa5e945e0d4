import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation } from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import { createDisputeActivities, type OpenDispute } from '../../../activities/disputes';
import type { ConnectorActivities } from '../../../connectors/contract/activities';
import type { DisputeAnswer } from '../../../src/domain/dispute/dispute';
import { Encrypted } from '../../../src/encryption/encrypter';
import { disputeId } from '../../../src/store/disputes';
import { setFeeBearer } from '../../support/fee-bearer';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedBank } from '../../support/workflow-setting';
import { ACT, refusalOf, type TrackedPayment, track, useLifecycles } from '../lifecycles';

/** Holds docs/api.md#disputes and docs/connectors.md#disputes for the workflow of a dispute. */
const { setting, buildDeps, withPayment } = useLifecycles();

const DAY_MS = 86_400_000;
const CIPHERTEXT = 'header.key.iv.text.tag';
const inDays = (days: number, at: number) => new Date(at + days * DAY_MS).toISOString();

type TrackedDispute = ReturnType<typeof track<'dispute'>> & {
  payment: TrackedPayment;
  told: readonly string[];
  respond: (answer: DisputeAnswer) => Promise<unknown>;
  reportOf: (name: Parameters<TrackedPayment['report']>[0], facts?: object) => Promise<object>;
};

/** Has a settled payment of 1,050 disputed, and verifies the ledger after the story. */
const withDispute = (
  story: (dispute: TrackedDispute) => Promise<unknown>,
  facts: object = {},
  changes: Partial<ConnectorActivities> = {},
) =>
  withPayment(scriptedBank(changes), async (payment) => {
    await payment.endBy('settled');
    const { stores, env, queues } = setting;
    const now = await env.currentTimeMs();
    const due = { evidence_due_at: inDays(10, now) };
    await payment.report('dispute_opened', { dispute_id: 'D1', amount: 400, ...due, ...facts });
    const { _id: id } = await eventually('the dispute', async () => {
      const [first] = await stores.disputes.forPayment(payment.id);
      return first;
    });
    const handle = env.client.workflow.getHandle(`dispute:${id}`);
    const tracked = track('dispute', setting, id, payment.account_id, handle, stores.disputes.get);
    const respond = (by: DisputeAnswer) =>
      env.client.workflow.executeUpdateWithStart<Workflow, unknown, [object]>('respond', {
        args: [{ with: by }],
        startWorkflowOperation: new WithStartWorkflowOperation('dispute', {
          workflowId: `dispute:${id}`,
          taskQueue: queues.lifecycle,
          args: [{ dispute_id: id, resume: true, request_id: 'late' }],
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      });
    const reportOf: TrackedDispute['reportOf'] = (name, more = {}) =>
      payment.report(name, { dispute_id: 'D1', ...more });
    await story({ ...tracked, payment, told: payment.told, respond, reportOf });
    expect(await payment.differences()).toEqual([]);
    expect(await tracked.differences()).toEqual([]);
  });

const answers = (told: readonly string[]) =>
  told.filter((each) => /Evidence|Dispute|Acceptance/.test(each));

test('evidence reaches the bank once, by one instruction, and the dispute is under review', () =>
  withDispute(async ({ id, handle, respond, told, stored, reportOf, eventTypes }) => {
    await Promise.all([respond('evidence'), respond('evidence')]);
    await respond('evidence');
    expect(answers(told)).toEqual([`submitEvidence evidence:${id}`]);
    expect(await stored()).toMatchObject({ status: 'under_review', answering: null });
    await reportOf('dispute_lost');
    expect(await handle.result()).toMatchObject({ status: 'lost' });
    const types = ['dispute.opened', 'dispute.updated', 'dispute.closed'];
    expect(await eventTypes()).toEqual(types);
    await saveHistory(handle, 'dispute-evidence');
  }));

test('an instruction without an answer is looked up, and sent again only if the bank lacks it', () => {
  return withDispute(
    async ({ id, handle, respond, told, stored }) => {
      await respond('acceptance');
      expect(await handle.result()).toMatchObject({ status: 'accepted' });
      const instruction = `acceptance:${id}`;
      expect(answers(told)).toEqual([
        `acceptDispute ${instruction}`,
        `lookUpAcceptance ${instruction}`,
      ]);
      expect(await stored()).toMatchObject({ status: 'accepted', amount: 400 });
    },
    {},
    {
      acceptDispute: async () => {
        throw new Error('The answer got lost.');
      },
      lookUpAcceptance: async () => ({ outcome: 'accepted' }),
    },
  );
});

test('a refused answer is for operators, and the dispute stays as it is', () =>
  withDispute(
    async ({ respond, becomes, stored, act }) => {
      for (let times = 0; times < 2; times += 1) {
        const refusal = await refusalOf(respond('evidence') as Promise<object>);
        expect(refusal).toMatchObject({ code: 'dispute_closed' });
        await becomes({ attention: 'answer_refused' });
        expect(await stored()).toMatchObject({ status: 'needs_response', answering: null });
      }
      await act('acknowledge');
      await act('accept');
      await becomes({ status: 'accepted' });
    },
    {},
    { submitEvidence: async () => ({ outcome: 'refused', code: 'late', message: 'Too late.' }) },
  ));

test('an operator cannot accept it at a bank that takes no answers', () =>
  withDispute(async ({ payment, stored, told, reportOf, ...dispute }) => {
    const { connector } = await payment.stored();
    const report = { serves: [], functions: [], contract: 1 };
    const seen = { seen_at: new Date(), stopped: null };
    await setting.stores.capabilities.report(connector, report, seen);
    expect(await dispute.refusal('accept')).toMatchObject({ code: 'evidence_not_supported' });
    expect(await stored()).toMatchObject({ audit: [], status: 'needs_response' });
    await reportOf('dispute_lost');
    expect(await dispute.handle.result()).toMatchObject({ status: 'lost' });
    expect(answers(told)).toEqual([]);
  }));

test('while the bank is away, only the first caller waits, and the end answers it', () => {
  const away = () => Promise.reject(new Error('The bank is away.'));
  return withDispute(
    async ({ respond, stored, act, reportOf }) => {
      const first = refusalOf(respond('evidence') as Promise<object>);
      await eventually('the attempt', async () => (await stored()).answering === 'evidence');
      for (let times = 0; times < 10; times += 1) await respond('evidence');
      await act('snooze', { ...ACT, hours: 1 });
      await reportOf('dispute_lost');
      expect(await first).toMatchObject({ code: 'dispute_closed' });
    },
    {},
    { submitEvidence: away, lookUpEvidence: away },
  );
});

test('evidence that nobody has sent is erased when the bank decides', () =>
  withDispute(async ({ id, reportOf, becomes, stored }) => {
    const evidence = { ciphertext: Encrypted.parse(CIPHERTEXT), fingerprint: 'f', kid: 'k' };
    await setting.stores.disputes.storeEvidence(id, evidence, new Date().toISOString());
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

test('a first report whose answer got lost is refused again, or leaves its fee out again', () =>
  withPayment(scriptedBank(), async (payment) => {
    await payment.endBy('settled');
    const { stores } = setting;
    const { connector } = await payment.stored();
    const report = { serves: [], functions: [], contract: 1, dispute_fee_max: 15 };
    await stores.capabilities.report(connector, report, { seen_at: new Date(), stopped: null });
    const { openDispute } = createDisputeActivities(buildDeps());
    const large = buildOpening(payment, connector, 'large', { amount: 1_051 });
    const dear = buildOpening(payment, connector, 'dear', { amount: 400, fee: 16 });
    const refused = { outcome: 'refused', why: expect.stringContaining('1050 is left') };
    expect(await openDispute(large)).toMatchObject({ answer: refused });
    // It is decided about as any other.
    expect(await openDispute(large)).not.toHaveProperty('answer');
    const posted = { outcome: 'posted', isFeeRefused: true };
    expect(await openDispute(dear)).toMatchObject({ answer: posted });
    expect(await openDispute(dear)).toMatchObject({ answer: posted });
  }));

function buildOpening(
  { id: payment_id, account_id }: TrackedPayment,
  connector: string,
  name: string,
  money: { amount: number; fee?: number },
): OpenDispute {
  const at = new Date().toISOString();
  const owner = { account_id, livemode: false, currency: 'EUR', method: 'ideal', connector };
  const ids = { dispute_id: disputeId(payment_id, name), payment_id, name, request_id: 'r' };
  const report = { name: 'dispute_opened', callback_id: name, occurred_at: at, ...money } as const;
  return { ...ids, ...owner, amount: money.amount, created_at: at, report };
}

test('the team gets a mail 72 hours before the deadline, and after it evidence is refused', () =>
  withDispute(async ({ account_id, id, stored, respond, becomes, reportOf }) => {
    const { stores, env, mongo, database } = setting;
    await stores.mails.publish(true);
    const user = { _id: randomUUID(), account_id, email: 'ana@shop.example', role: 'read_only' };
    await mongo.db(database).collection<typeof user>('users').insertOne(user);
    const mails = mongo.db(database).collection('mails').find({ account_id });
    await env.sleep(6.9 * DAY_MS);
    expect(await stored()).not.toHaveProperty('reminded_at');
    await env.sleep(0.2 * DAY_MS);
    await eventually('the reminder', async () => (await stored()).reminded_at);
    const due = { kind: 'dispute_due', dispute_id: id, livemode: false };
    expect(await mails.toArray()).toMatchObject([{ to: 'ana@shop.example', subject: due }]);
    await env.sleep(3 * DAY_MS);
    const refusal = await refusalOf(respond('evidence') as Promise<object>);
    expect(refusal).toMatchObject({ code: 'dispute_closed' });
    await reportOf('dispute_lost');
    await becomes({ status: 'lost' });
  }));

test('a report after the end starts the workflow again, and moves the money of the books', () =>
  withDispute(async ({ handle, reportOf, stored, payment, eventTypes }) => {
    await reportOf('dispute_won', { amount: 0 });
    expect(await handle.result()).toMatchObject({ status: 'won' });
    expect(await payment.money()).toMatchObject({ available: 650 });
    await reportOf('dispute_reinstated', { amount: 400, bank_reference: 'R1' });
    await reportOf('dispute_reinstated', { amount: 400, bank_reference: 'R1' });
    await eventually('the money', async () => (await stored()).amount === 0);
    expect(await payment.money()).toMatchObject({ available: 1_050, clearing: -1_050 });
    expect(await eventTypes()).toEqual(['dispute.opened', 'dispute.closed', 'dispute.updated']);
    await saveHistory(handle, 'dispute-reinstated');
  }));

test('what came back before it was taken waits an hour for that, and then for an operator', () =>
  withDispute(
    async ({ stored, reportOf, becomes, payment, shows }) => {
      const back = { amount: 400, bank_reference: 'R1' };
      await reportOf('dispute_reinstated', back);
      await reportOf('dispute_won', { amount: 0 });
      await becomes({ status: 'won' });
      expect(await stored()).toMatchObject({ amount: 0, attention: null, transfers: [] });
      await reportOf('dispute_withdrawn', { amount: 400, bank_reference: 'W1' });
      const directions = [{ direction: 'out' }, { direction: 'in', bank_reference: 'R1' }];
      await eventually('both', async () => (await stored()).transfers.length === 2);
      expect(await stored()).toMatchObject({ amount: 0, transfers: directions });
      expect(await payment.money()).toMatchObject({ available: 1_050, clearing: -1_050 });
      await reportOf('dispute_reinstated', { ...back, bank_reference: 'R2' });
      await shows('refused');
      expect(await stored()).toMatchObject({ attention: null });
      await setting.env.sleep(DAY_MS);
      await becomes({ attention: 'dispute_differs' });
      expect(await payment.unapplied()).toEqual([expect.stringContaining('more came back')]);
    },
    { amount: 0 },
  ));

test.each([
  ['service', 'service'],
  ['merchant', 'merchant'],
  ['merchant', 'service'],
  ['service', 'merchant'],
] as const)('a fee is borne, and had back, by the %s, and one of later by the %s', (first, later) =>
  withDispute(
    async ({ payment, reportOf, becomes }) => {
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
      expect(await payment.money()).toMatchObject({ available: 1_050, clearing: -1_050 });
    },
    { amount: 0 },
  ),
);

test('a fee above the maximum of the connector is not posted, and an operator sees it', () =>
  withDispute(async ({ payment, reportOf, becomes, act }) => {
    const { stores } = setting;
    const [{ connector = '' } = {}] = await stores.disputes.forPayment(payment.id);
    const report = { serves: [], functions: [], contract: 1, dispute_fee_max: 15 };
    await stores.capabilities.report(connector, report, { seen_at: new Date(), stopped: null });
    await payment.report('dispute_opened', { dispute_id: 'D2', amount: 100, fee: 16 });
    const second = await eventually('the second dispute', async () => {
      const rows = await stores.disputes.forPayment(payment.id);
      return rows.find(({ name, attention }) => name === 'D2' && attention !== null);
    });
    expect(second).toMatchObject({ amount: 100, fee: 0, attention: 'dispute_differs' });
    await act('dispute_won');
    await becomes({ status: 'won' });
    await reportOf('dispute_lost');
  }));
