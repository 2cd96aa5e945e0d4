import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { ZodError } from 'zod';
import { CallbackConflict } from '../../connectors/contract/callbacks';
import { RecipientDeleted } from '../../connectors/contract/recipients';
import { BankFailure } from '../../connectors/kit';
import {
  MAGIC_AMOUNTS,
  PAYOUT_MAGIC_AMOUNTS,
  REFUND_MAGIC_AMOUNTS,
} from '../../connectors/sandbox/magic-amounts';
import { planApproval, planPayout, planRefund } from '../../connectors/sandbox/plan';
import { deliverCallback, type ResourceCallback } from '../../src/callbacks/deliver';
import { createCallbackMemory } from '../../src/callbacks/memory';
import { signCallback } from '../../src/callbacks/verify';
import { payoutWorkflowId } from '../../src/domain/payout/payout';
import { refundWorkflowId } from '../../src/domain/refund/refund';
import type { CallbackDocument } from '../../src/store/callbacks';
import { lifecycleLabels } from '../../src/temporal/start';
import { eventually, retryUntilDone } from '../support/eventually';
import { gate } from '../support/gate';
import { readPayloads } from '../support/histories';
import { describeOutgoing, RECIPIENT, useBankWorld } from './bank-server';

/** Refunds, payouts and settlements that the sandbox bank sends, and its reports about them. */
const world = useBankWorld();

const outgoing = describeOutgoing(world);
const activities = () => world.server.bank.activities;
const lookUpPayout = (payout_id: string) => activities().lookUpPayout({ payout_id });
const NOT_FOUND = { outcome: 'not_found' };

describe.each(Object.values(outgoing))('a $resource', (row) => {
  const { taken, done, takenAnswer, readEntry, readStatus, know, lookUp } = row;

  it(`is ${done} three seconds later by one signal, also for repeats and after a restart`, async () => {
    const { id, send } = await know();
    const answers = await Promise.all(Array.from({ length: 5 }, () => retryUntilDone(send)));
    await world.server.restart();
    expect(await row.readSentSignals(id)).toEqual([done]);
    const [callback] = await world.callbacks(id);
    expect(callback).toMatchObject({ resource: row.resource, connector: 'sandbox', name: done });
    const answer = { outcome: taken, bank_reference: callback?.body.bank_reference };
    expect(answer).toEqual(takenAnswer);
    expect([...answers, await send(), await lookUp(id)]).toEqual(Array(7).fill(answer));
    const sentAt = (await readEntry(id))?.created_at.getTime() ?? 0;
    expect(Date.parse(callback?.body.occurred_at ?? '') - sentAt).toBeGreaterThanOrEqual(3_000);
    expect(await readStatus(id)).toBe(done);
    expect(await world.rows(id)).toHaveLength(1);
    expect(await world.listMovements(id)).toHaveLength(1);
  });

  it('is not in the book when its callbacks could not be planned', async () => {
    const { id, send } = await know();
    await world.own.command({ collMod: 'outbox', validator: { resource: 'payment' } });
    await expect(send()).rejects.toThrow('The bank answered 500');
    await row.endAttempt(id);
    expect(await lookUp(id)).toEqual(NOT_FOUND);
    await world.own.command({ collMod: 'outbox', validator: {} });
    expect(await send()).toEqual(takenAnswer);
  });

  it('is refused in live', async () => {
    const decryptRecipient = jest.fn(async () => RECIPIENT);
    world.server.setReads({ decryptRecipient });
    const { id, send } = await know({ livemode: true });
    expect(await send()).toMatchObject({ outcome: 'refused', code: 'live_not_supported' });
    expect([await world.rows(id), await lookUp(id)]).toEqual([[], NOT_FOUND]);
    expect(decryptRecipient).not.toHaveBeenCalled();
    world.server.setReads();
  });
});

test('the chain sends no settlement that differs from its document', async () => {
  const { id, input } = await world.knowSettlement();
  const differing = activities().sendSettlement({ ...input, amount: '1001' });
  await expect(differing).rejects.toThrow('amount');
  const transactions = world.own.collection('chain_transactions');
  expect(await transactions.countDocuments({ resource_id: id })).toBe(0);
  expect(await activities().sendSettlement(input)).toMatchObject({ outcome: 'sent' });
});

describe('a cancellation', () => {
  const cancelPayout = (payout_id: string) => activities().cancelPayout?.({ payout_id });
  const CANCELLED = { outcome: 'cancelled' };
  const TOO_LATE = { outcome: 'too_late' };
  const REFUSED = { outcome: 'refused', code: 'cancelled', message: expect.any(String) };

  it('refuses a settlement that arrives later', async () => {
    const { input } = await world.knowSettlement();
    const cancel = () => activities().cancelSettlement?.(input);
    expect([await cancel(), await cancel()]).toEqual([CANCELLED, CANCELLED]);
    expect(await activities().lookUpSettlement(input)).toEqual(REFUSED);
    expect(await activities().sendSettlement(input)).toEqual(REFUSED);
  });

  it('that races with the instruction gives one of the two results', async () => {
    const { input, id } = await world.knowPayout();
    const cancel = async () => {
      const answer = await cancelPayout(id);
      if (answer?.outcome === 'unknown') throw new Error('An attempt runs.');
      return answer;
    };
    const [answer, cancelled] = await Promise.all([
      retryUntilDone(() => activities().sendPayout(input)),
      retryUntilDone(cancel),
    ]);
    const wasSent = answer.outcome === 'sent';
    expect(cancelled).toEqual(wasSent ? TOO_LATE : CANCELLED);
    expect(await outgoing.payout.readStatus(id)).toBe(wasSent ? 'sent' : undefined);
  });
});

describe('the recipient of a payout', () => {
  afterEach(() => world.server.setReads());

  it('reads the payout’s reference on the statement', async () => {
    const { input, id } = await world.knowPayout();
    const texts = new Map([[id, 'Salary 11/2026']]);
    world.server.setReads({ readReference: async (payout) => texts.get(payout) ?? null });
    await activities().sendPayout(input);
    expect(await outgoing.payout.readEntry(id)).toMatchObject({ statement: 'Salary 11/2026' });
  });

  it('that cannot be decrypted causes an error without its cause, and is not decrypted for a repeat', async () => {
    const decryptRecipient = async () => {
      throw new SyntaxError(`Unexpected token in JSON: ${JSON.stringify(RECIPIENT)}`);
    };
    world.server.setReads({ decryptRecipient });
    const { input, id } = await world.knowPayout();
    const send = () => activities().sendPayout(input);
    const error: unknown = await send().catch((thrown) => thrown);
    expect(error).toEqual(new BankFailure('The payout was not sent (SyntaxError).'));
    expect(error).not.toHaveProperty('cause');
    expect(error).not.toHaveProperty('nonRetryable');
    await world.endAttempt('payout', id);
    expect([await world.rows(id), await lookUpPayout(id)]).toEqual([[], NOT_FOUND]);
    world.server.setReads();
    const answer = await send();
    expect(answer).toEqual(outgoing.payout.takenAnswer);
    world.server.setReads({ decryptRecipient });
    expect(await send()).toEqual(answer);
  });

  it('that was deleted ends the payout for good', async () => {
    const { input, id } = await world.knowPayout();
    const send = () => activities().sendPayout(input);
    world.server.setReads({ decryptRecipient: () => Promise.reject(new RecipientDeleted()) });
    const answer = await send();
    expect(answer).toMatchObject({ outcome: 'refused', code: 'recipient_deleted' });
    world.server.setReads();
    expect([await send(), await lookUpPayout(id)]).toEqual([answer, answer]);
    expect(await outgoing.payout.readEntry(id)).toBeNull();
  });

  it('that is deleted once an attempt has decrypted it ends no repeat for good, and the payout is sent', async () => {
    const { input, id } = await world.knowPayout();
    const { opened, release } = gate();
    const decryptRecipient = jest.fn((_id: string) => opened.then(() => RECIPIENT));
    world.server.setReads({ decryptRecipient });
    const earlier = activities().sendPayout(input);
    while (decryptRecipient.mock.calls.length === 0) await new Promise(setImmediate);
    decryptRecipient.mockImplementation(() => Promise.reject(new RecipientDeleted()));
    await expect(activities().sendPayout(input)).rejects.toThrow('may still reach the bank');
    release();
    const { takenAnswer } = outgoing.payout;
    expect([await earlier, await lookUpPayout(id)]).toEqual([takenAnswer, takenAnswer]);
  });
});

describe('magic amounts', () => {
  it('change only the resources of their own table', () => {
    const plans = [
      [planApproval, MAGIC_AMOUNTS],
      [planRefund, REFUND_MAGIC_AMOUNTS],
      [planPayout, PAYOUT_MAGIC_AMOUNTS],
    ] as const;
    for (const [plan, own] of plans) {
      const others = plans.flatMap(([, table]) => (table === own ? [] : Object.keys(table)));
      for (const amount of others.map(Number)) {
        expect(plan(amount, true)).toEqual(plan(1_050, true));
      }
    }
  });

  const ANSWER_LOST = 'The bank answered 500.';
  const INSTRUCTION_LOST = 'lost in transit';

  it.concurrent.each([
    ['refund', 66_614, ANSWER_LOST, 'settled -66614 EUR'],
    ['refund', 66_615, INSTRUCTION_LOST, 'settled -66615 EUR'],
    ['payout', 66_625, ANSWER_LOST, 'sent -66625 EUR'],
    ['payout', 66_626, INSTRUCTION_LOST, 'sent -66626 EUR'],
  ] as const)(
    'a %s of %i ends well after the first error (%s), and moves money once',
    async (...of) => {
      const [resource, amount, error, movement] = of;
      const row = outgoing[resource];
      const { id, send } = await row.know({ amount });
      await expect(send()).rejects.toThrow(error);
      const isFound = error === ANSWER_LOST;
      expect(await row.lookUp(id)).toEqual(isFound ? row.takenAnswer : NOT_FOUND);
      expect(await world.rows(id)).toHaveLength(isFound ? 1 : 0);
      const answers = await Promise.all([send, send].map(retryUntilDone));
      expect(answers).toEqual([row.takenAnswer, answers[0]]);
      expect(await row.lookUp(id)).toEqual(answers[0]);
      expect(await row.readSentSignals(id)).toEqual([row.done]);
      expect(await world.rows(id)).toHaveLength(1);
      expect(await world.listMovements(id)).toEqual([movement]);
    },
  );

  describe('with autoplay off', () => {
    beforeAll(() => world.server.restart({ autoplay: false }));
    afterAll(() => world.server.restart());

    const REFUSED_REFUND = { code: 'refund_refused' };
    const REJECTED = { code: 'payout_rejected' };
    const CAME_BACK = { code: 'AC04', reason: 'Account closed' };
    const ACCOUNT_CLOSED = { code: 'account_closed', reason: 'The customer’s account is closed.' };
    const NOT_TAKEN = { code: 'scheme_rejected', reason: 'The scheme did not take the payout.' };
    const TWICE = ['settled', 'settled', 'failed'] as const;
    const COMPLETED = ['completed', 'returned'] as const;
    const CONTRADICTING = ['completed', 'completed', 'failed', 'returned', 'returned'] as const;

    it.each(Object.values(outgoing))('a $resource stays $taken', async (row) => {
      const { id, send } = await row.know();
      expect(await send()).toEqual(row.takenAnswer);
      expect([await world.rows(id), await row.readStatus(id)]).toEqual([[], row.taken]);
    });

    /** The answer, the reports that follow, the code of the refusal or the last of them, the status. */
    it.concurrent.each([
      ['refund', 66_611, 'refused', [], REFUSED_REFUND, 'refused', []],
      ['refund', 66_612, 'accepted', ['failed'], ACCOUNT_CLOSED, 'failed', []],
      ['refund', 66_613, 'accepted', [], {}, 'accepted', []],
      ['refund', 66_616, 'accepted', TWICE, {}, 'settled', ['settled -']],
      ['payout', 66_621, 'refused', [], REJECTED, 'refused', []],
      ['payout', 66_622, 'sent', ['failed'], NOT_TAKEN, 'failed', ['sent -', 'failed ']],
      ['payout', 66_623, 'sent', [], {}, 'sent', ['sent -']],
      ['payout', 66_624, 'submitted', [], {}, 'submitted', []],
      ['payout', 66_627, 'sent', COMPLETED, CAME_BACK, 'returned', ['sent -', 'returned ']],
      ['payout', 66_628, 'sent', ['returned'], CAME_BACK, 'returned', ['sent -', 'returned ']],
      ['payout', 66_629, 'sent', CONTRADICTING, CAME_BACK, 'returned', ['sent -', 'returned ']],
    ] as const)(
      'a %s of %i is %s each time, and then reported as %j with %j',
      async (resource, amount, outcome, reports, last, status, movements) => {
        const names: readonly string[] = reports;
        const texts: readonly string[] = movements;
        const row = outgoing[resource];
        const { id, send } = await row.know({ amount });
        const answer = await send();
        const refusal = { outcome, ...last, message: expect.any(String) };
        expect(answer).toEqual(outcome === 'refused' ? refusal : { ...row.takenAnswer, outcome });
        expect([await send(), await row.lookUp(id)]).toEqual([answer, answer]);
        // A report that repeats the first one has its callback id, and is signaled once.
        const signaled = names.filter((name, at) => at !== 1 || name !== names[0]);
        if (names.length > 0) expect(await row.readSentSignals(id)).toEqual(signaled);
        expect([await row.lookUp(id), await row.readStatus(id)]).toEqual([answer, status]);
        const rows = await world.rows(id);
        expect(rows.map(({ name }) => name)).toEqual(names);
        if (names.length > 0) expect(rows.at(-1)?.body).toMatchObject(last);
        const ids = rows.map(({ body }) => body.callback_id);
        const isRepeated = signaled.length < names.length;
        expect(new Set(ids).size).toBe(signaled.length);
        if (isRepeated) expect(ids[1]).toBe(ids[0]);
        expect(await world.callbacks(id)).toHaveLength(signaled.length);
        // A busy machine may be late, and never early: what contradicts follows each second.
        const created_at = Number((await row.readEntry(id))?.created_at);
        for (const [at, { body }] of rows.entries()) {
          const after = Math.round((Date.parse(body.occurred_at) - created_at) / 1_000);
          expect(after).toBeGreaterThanOrEqual(3 + (isRepeated ? 1 : 3) * at);
        }
        const moved = texts.map((movement) => `${movement}${amount} EUR`);
        expect(await world.listMovements(id)).toEqual(moved);
      },
    );
  });
});

describe('a row of the outbox', () => {
  const SENT = 'sent';
  const DROPPED = 'dropped';

  it.concurrent.each([
    ['refund', 'settled', 'accepted', SENT],
    ['refund', 'failed', 'accepted', SENT],
    ['payout', 'completed', 'sent', SENT],
    ['payout', 'failed', 'sent', SENT],
    ['payout', 'returned', 'sent', SENT],
    ['payout', 'returned', 'completed', SENT],
    // The book says so already, as a sender leaves it that was killed.
    ['refund', 'settled', 'settled', SENT],
    ['payout', 'completed', 'completed', SENT],
    ['payout', 'completed', 'returned', SENT],
    ['refund', 'settled', 'failed', DROPPED],
    ['refund', 'failed', 'settled', DROPPED],
    ['refund', 'settled', 'refused', DROPPED],
    ['refund', 'settled', 'lost', DROPPED],
    ['payout', 'completed', 'failed', DROPPED],
    ['payout', 'completed', 'submitted', DROPPED],
    ['payout', 'completed', 'refused', DROPPED],
    ['payout', 'failed', 'completed', DROPPED],
    ['payout', 'failed', 'returned', DROPPED],
    ['payout', 'returned', 'failed', DROPPED],
    ['payout', 'returned', 'lost', DROPPED],
  ] as const)(
    'by which a %s becomes %s while it is %s is %s',
    async (resource, becomes, status, state) => {
      const row = outgoing[resource];
      const id = await row.takeSilent();
      await row.setStatus(id, status);
      await row.plant(id, { name: becomes, becomes });
      expect((await world.readDoneRow(id))?.state).toBe(state);
      const isSent = state === SENT;
      const isLater = status === 'returned' && becomes === 'completed';
      expect(await row.readStatus(id)).toBe(isSent && !isLater ? becomes : status);
      expect(await row.signals(id)).toEqual(isSent ? [becomes] : []);
      expect(await world.callbacks(id)).toHaveLength(isSent ? 1 : 0);
    },
  );
});

describe('a row of the outbox about a payout', () => {
  const row = outgoing.payout;
  const { done, plant, readStatus, readSentSignals, signals, takeSilent } = row;

  it('is dropped when the book has none, and parked when the product does not know it', async () => {
    const [{ id: unsent }, lost] = [await row.know(), await takeSilent()];
    await row.productSays(lost, null);
    for (const id of [unsent, lost]) await plant(id);
    expect((await world.readDoneRow(unsent))?.state).toBe('dropped');
    expect(await world.callbacks(unsent)).toEqual([]);
    expect((await world.readDoneRow(lost))?.state).toBe('sent');
    expect((await world.callbacks(lost))[0]?.parked).toEqual(expect.any(String));
    expect(await signals(lost)).toEqual([]);
  });

  it('stays when a payment with the same id is voided', async () => {
    const { id, url } = await world.openFor({ amount: 66_603 });
    await world.approve(url);
    await plant(id, { due_at: new Date(Date.now() + 3_600_000) });
    await activities().voidPayment({ payment_id: id, instruction_id: `void:${id}` });
    const planted = await world.outbox.findOne({ resource_id: id, resource: 'payout' });
    expect(planted?.state).toBe('pending');
  });

  it('is sent again after a sender was killed before it noted that, and counts once', async () => {
    const { id, send } = await row.know();
    await send();
    expect(await readSentSignals(id)).toEqual([done]);
    // The product's status may be the effect of the report.
    await row.productSays(id, done);
    const again = { state: 'pending', done_at: null, due_at: new Date() } as const;
    await world.outbox.updateOne({ resource_id: id }, { $set: again });
    expect((await world.readDoneRow(id))?.state).toBe('sent');
    const [callback, ...others] = await world.callbacks(id);
    expect(others).toEqual([]);
    const { count } = world.server.deliveries.get(callback?.body.callback_id ?? '') ?? {};
    expect(count).toBeGreaterThanOrEqual(2);
    expect(await signals(id)).toEqual([done]);
  });

  it('waits while Temporal is away, and is sent in its order after a restart', async () => {
    const connection = Connection.lazy({ address: '127.0.0.1:1' });
    await world.server.restart({ temporal: new Client({ connection }) });
    const id = await takeSilent();
    const now = Date.now();
    const buildRow = (ago_ms: number) => {
      const at = new Date(now - ago_ms);
      const callback_id = `cb_of_the_test_${id}_${ago_ms}`;
      const body = { callback_id, occurred_at: at.toISOString() };
      return { _id: callback_id, due_at: at, body };
    };
    const [first, second, third] = [buildRow(300), buildRow(200), buildRow(100)];
    await plant(id, first);
    await eventually('a delivery that fails', async () => world.server.deliveries.has(first._id));
    const [failed] = await world.rows(id);
    expect([failed?.state, await readStatus(id)]).toEqual(['pending', done]);
    await world.server.bank.stop();
    await world.outbox.updateOne({ _id: first._id }, { $set: { due_at: first.due_at } });
    await plant(id, { ...third, name: 'returned', becomes: 'returned' });
    await plant(id, { ...second, name: 'failed' });
    await world.server.restart();
    expect(await readSentSignals(id)).toEqual([done, 'failed', 'returned']);
    expect((await world.callbacks(id))[0]?.body.callback_id).toBe(first._id);
    await connection.close();
  });
});

describe('after a simulation', () => {
  it.concurrent.each([
    ['refund', 'settled'],
    ['refund', 'failed'],
    ['payout', 'completed'],
    ['payout', 'failed'],
    ['payout', 'returned'],
  ] as const)('of a %s that is %s the bank drops its own report', async (resource, status) => {
    const row = outgoing[resource];
    const id = await eventually('a simulation before the bank plays', async () => {
      const { id, send } = await row.know();
      await send();
      await row.productSays(id, status);
      return (await row.readStatus(id)) === row.taken && id;
    });
    expect((await world.readDoneRow(id))?.state).toBe('dropped');
    expect(await row.readStatus(id)).toBe(row.taken);
    expect([await world.callbacks(id), await row.signals(id)]).toEqual([[], []]);
  });

  it.concurrent.each([
    ['payout', undefined, 'created', 'completed'],
    ['payout', undefined, 'submitted', 'completed'],
    // What a magic amount plans does not yield.
    ['refund', 66_612, 'settled', 'failed'],
    ['payout', 66_628, 'completed', 'returned'],
  ] as const)(
    'of a %s of %s that is %s the bank still reports %s',
    async (resource, amount, status, planned) => {
      const row = outgoing[resource];
      const { id, send } = await row.know({ amount });
      await send();
      await row.productSays(id, status);
      expect(await row.readSentSignals(id)).toEqual([planned]);
    },
  );
});

const deliver = (callback: ResourceCallback) => deliverCallback(world.server.inbox, callback);

/** A report that a refund has settled, unless it changes that. */
function buildReport(
  resource_id: string,
  change: Partial<ResourceCallback> = {},
): ResourceCallback {
  const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: new Date().toISOString() };
  const settled = { resource: 'refund', resource_id, name: 'settled' } as const;
  return { connector: 'sandbox', ...settled, callback, ...change };
}

describe.each([
  ['refund', 'settled', refundWorkflowId],
  ['payout', 'returned', payoutWorkflowId],
] as const)('a callback about a %s', (resource, name, toWorkflowId) => {
  const build = (id: string) => buildReport(id, { resource, name });
  const know = async (id: string = randomUUID(), by: object = {}) =>
    resource === 'refund'
      ? await world.knowRefund({ refund_id: id }, by)
      : await world.knowPayout({ payout_id: id }, by);
  const parked = `no such ${resource} at this connector`;

  it('is parked without the resource or with one of another connector or kind, and delivered once it is there', async () => {
    const ofOthers = [
      (await know(undefined, { connector: 'another-bank' })).id,
      (await world.openFor()).id,
    ];
    const callback = build(randomUUID());
    for (const each of [callback, ...ofOthers.map(build)]) {
      expect(await deliver(each)).toBe('parked');
      expect(await world.callbacks(each.resource_id)).toMatchObject([
        { signalled_at: null, parked },
      ]);
      for (const kind of [resource, 'payment'] as const) {
        expect(await world.signals(each.resource_id, kind)).toEqual([]);
      }
    }
    await know(callback.resource_id);
    expect(await deliver(callback)).toBe('delivered');
    expect((await world.callbacks(callback.resource_id))[0]?.parked).toBeNull();
  });

  it('starts its workflow to resume, also after its end, and signals it once for each ID', async () => {
    const { id } = await know();
    if (resource === 'payout') await world.productSays('payout', id, 'completed');
    const callback = build(id);
    expect(await deliver(callback)).toBe('delivered');
    const repeats = await Promise.all(Array.from({ length: 10 }, () => deliver(callback)));
    expect(repeats).toEqual(Array(10).fill('duplicate'));
    expect(await world.signals(id, resource)).toEqual([name]);
    expect(await world.callbacks(id)).toHaveLength(1);
    const request_id = `sandbox:${callback.callback.callback_id}`;
    const { type, input } = await readPayloads(world.server.temporal, toWorkflowId(id));
    expect({ type, input }).toEqual({
      ...{ type: resource, input: { [`${resource}_id`]: id, resume: true, request_id } },
    });
  });
});

describe('a callback', () => {
  it('reaches a workflow of its connector that runs before the refund is stored', async () => {
    const id = randomUUID();
    const { temporal, inbox } = world.server;
    const facts = { account_id: 'a', livemode: false, amount: 1, currency: 'EUR', method: 'ideal' };
    const start = (connector?: string) =>
      temporal.workflow.start('refund', {
        workflowId: refundWorkflowId(id),
        workflowIdConflictPolicy: 'TERMINATE_EXISTING',
        taskQueue: inbox.lifecycleQueue,
        ...(connector &&
          lifecycleLabels('refund', { ...facts, connector }, { status: 'processing' })),
      });
    await start('another-bank');
    expect(await deliver(buildReport(id))).toBe('parked');
    expect(await world.signals(id, 'refund')).toEqual([]);
    for (const connector of ['sandbox', undefined]) {
      await start(connector);
      expect(await deliver(buildReport(id))).toBe('delivered');
      expect(await world.signals(id, 'refund')).toEqual(['settled']);
    }
  });

  it.each([
    ['a resource id that is no UUID', { resource_id: '*' }, ZodError],
    ['an unknown resource', { resource: 'invoice' }, ZodError],
    ['an impossible connector', { connector: 'a.b' }, ZodError],
    ['no id', { callback: { occurred_at: new Date().toISOString() } }, ZodError],
    ['a name that no refund has', { name: 'completed' }, RangeError],
    ['a name that no payout has', { resource: 'payout' }, RangeError],
  ])('with %s is refused, and no callback is stored', async (_, change: object, error) => {
    const { callbacks } = world.server.inbox.stores;
    const before = await callbacks.countWaiting({ waits: 'any' });
    const { id } = await world.knowRefund();
    await expect(deliver({ ...buildReport(id), ...change })).rejects.toThrow(error);
    expect(await callbacks.countWaiting({ waits: 'any' })).toBe(before);
    expect(await world.callbacks(id)).toEqual([]);
  });

  it('is stored without undefined fields, and refused if it has the ID of another', async () => {
    const { id } = await world.knowRefund();
    const reported = buildReport(id);
    await deliver({ ...reported, callback: { ...reported.callback, code: undefined } });
    expect((await world.callbacks(id))[0]?.body).toEqual(reported.callback);
    await expect(deliver({ ...reported, name: 'failed' })).rejects.toThrow(CallbackConflict);
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
  });

  it('is parked only up to 1,000 of a connector, whose others are still delivered', async () => {
    const connector = 'crowded';
    const build = (id: string = randomUUID()) => buildReport(id, { connector });
    const parked = Array.from({ length: 1_000 }, (): CallbackDocument => {
      const { callback: body, ...target } = build();
      const times = { received_at: body.occurred_at, signalled_at: null };
      return { _id: randomUUID(), ...target, body, ...times, unapplied: null, parked: 'unknown' };
    });
    await world.insertCallbacks(parked);
    const last = build();
    expect(await deliver(last)).toBe('parked');

    const next = build();
    await expect(deliver(next)).rejects.toMatchObject({ code: 'rate_limited' });
    expect(await world.callbacks(next.resource_id)).toEqual([]);

    expect(await deliver(last)).toBe('parked');
    const { id } = await world.knowRefund({}, { connector });
    expect(await deliver(build(id))).toBe('delivered');
    expect(await deliver(buildReport(randomUUID()))).toBe('parked');
  });
});

describe('a process with a memory of callbacks', () => {
  const openMemory = () =>
    createCallbackMemory(world.server.inbox.stores.callbacks, { warn: () => {} });

  it('signals a callback again that another process has signed, although it signaled the first', async () => {
    const { inbox } = world.server;
    const { id } = await world.knowRefund();
    const report = buildReport(id);
    const memory = openMemory();
    await deliverCallback({ ...inbox, memory }, report);
    // Another process stores its signature, and dies before it signals.
    const key = { key_id: 'cnkey_1', secret: 'cnsec_1' };
    const { key_id, v1: signature } = signCallback(key, report);
    const _id = `${report.connector}:${report.callback.callback_id}`;
    const signed = { body: report.callback, key_id, signature };
    await inbox.stores.callbacks.replaceSignature({ _id }, signed);
    await memory.close();
    expect(await deliverCallback({ ...inbox, key }, report)).toBe('delivered');
    expect(await world.signals(id, 'refund')).toEqual(['settled', 'settled']);
    expect(await deliverCallback({ ...inbox, key }, report)).toBe('duplicate');
  });

  it('signals a known resource without reading it, records this soon, and signals once', async () => {
    const { inbox } = world.server;
    const memory = openMemory();
    const { id } = await world.knowRefund();
    await deliverCallback({ ...inbox, memory }, buildReport(id));
    const get = () => Promise.reject(new Error('It looked.'));
    const stores = { ...inbox.stores, refunds: { ...inbox.stores.refunds, get } };
    const deps = { ...inbox, memory, stores };
    const callback = buildReport(id, { name: 'failed' });
    const receipts = [await deliverCallback(deps, callback), await deliverCallback(deps, callback)];
    expect(receipts).toEqual(['delivered', 'duplicate']);
    expect(await world.signals(id, 'refund')).toEqual(['settled', 'failed']);
    await memory.close();
    const times = (await world.callbacks(id)).map(({ signalled_at }) => signalled_at);
    expect(times).toEqual([expect.any(String), expect.any(String)]);
    expect(await deliver(callback)).toBe('duplicate');
  });
});
