import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { Db, MongoClient } from 'mongodb';
import type { SessionInstruction } from '../../connectors/contract/activities';
import { MAGIC_AMOUNTS } from '../../connectors/sandbox-bank/magic-amounts';
import type { OutboxRow } from '../../connectors/sandbox-bank/outbox';
import type { BankSession } from '../../connectors/sandbox-bank/sessions';
import { paymentWorkflowId } from '../../src/domain/payment';
import { connectMongo } from '../../src/mongo';
import { type CallbackDocument, createCallbackStore } from '../../src/store/callbacks';
import type { PaymentDocument } from '../../src/store/payments';
import { mongodbUri, temporalAddress } from '../support/servers';
import { type BankServer, instruction, startBankServer } from './bank-server';
import { probe } from './probe-workflow';

const database = `test_bank_${randomBytes(6).toString('hex')}`;
let mongo: MongoClient;
let server: BankServer;
let product: Db;
let own: Db;

beforeAll(async () => {
  mongo = await connectMongo(mongodbUri(), 'test-bank');
  product = mongo.db(database);
  own = mongo.db(`${database}_sandbox_bank`);
  server = await startBankServer(mongo, database);
});
afterAll(async () => {
  await server.stop();
  await product.dropDatabase();
  await mongo.close();
});

const activities = () => server.bank.activities;

/** Opens a session for a payment that the product knows, and answers with its page's address. */
async function openFor(change: Partial<SessionInstruction> = {}) {
  const input = instruction(change);
  const known: Pick<PaymentDocument, '_id' | 'connector'> = {
    _id: input.payment_id,
    connector: 'sandbox',
  };
  await product.collection<Pick<PaymentDocument, '_id' | 'connector'>>('payments').insertOne(known);
  const answer = await activities().openSession(input);
  if (answer.outcome !== 'opened') throw new Error(answer.message);
  return { input, id: input.payment_id, url: answer.session_url };
}

const decide = (url: string, form: Record<string, string>) =>
  fetch(`${server.bank.url}${new URL(url).pathname}/decision`, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ bank: 'Amber Bank', ...form }),
  });
const approve = (url: string) => decide(url, { decision: 'approve' });

const rows = (payment_id: string) =>
  own.collection<OutboxRow>('outbox').find({ payment_id }).sort({ due_at: 1 }).toArray();
const sessionOf = (_id: string) => own.collection<BankSession>('sessions').findOne({ _id });
const callbacks = (id: string): Promise<CallbackDocument[]> =>
  createCallbackStore(product).forResource(id);

/** Asks until the answer satisfies, or fails with the last one. */
async function until<T>(ask: () => Promise<T>, satisfies: (answer: T) => boolean): Promise<T> {
  const end = Date.now() + 10_000;
  for (;;) {
    const answer = await ask();
    if (satisfies(answer)) return answer;
    if (Date.now() > end) throw new Error(`still ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Names of the signals that the payment's workflow received, in order. */
async function signals(id: string): Promise<string[]> {
  const history = await server.temporal.workflow
    .getHandle(paymentWorkflowId(id))
    .fetchHistory()
    .catch(() => undefined);
  return (history?.events ?? []).flatMap(
    (event) => event.workflowExecutionSignaledEventAttributes?.signalName ?? [],
  );
}

describe('instructions', () => {
  it('openSession gives the same answer to a repeat, also at once and after a restart', async () => {
    const input = instruction();
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => activities().openSession(input)),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toMatchObject({
      outcome: 'opened',
      bank_reference: expect.stringMatching(/^SBX[0-9A-F]{12}$/),
    });
    const token = JSON.stringify(answers[0]).match(/session\/([\w-]{43})"/)?.[1];
    expect(token).toBeDefined();
    await server.restart();
    expect(JSON.stringify(await activities().openSession(input))).toContain(token);
  });

  it('reach it over its task queue', async () => {
    const connection = await NativeConnection.connect({ address: temporalAddress() });
    const taskQueue = `probe-${randomBytes(6).toString('hex')}`;
    const workflowsPath = require.resolve('./probe-workflow');
    const worker = await Worker.create({ connection, taskQueue, workflowsPath });
    const input = instruction();
    const answer = await worker.runUntil(
      server.temporal.workflow.execute(probe, {
        taskQueue,
        workflowId: taskQueue,
        args: [server.taskQueue, input],
      }),
    );
    await connection.close();
    expect(answer).toEqual(await activities().openSession(input));
  });

  it('closeSession closes an open one, for good', async () => {
    const { id, url, input } = await openFor();
    for (let time = 0; time < 2; time += 1) {
      expect(await activities().closeSession({ payment_id: id })).toEqual({ outcome: 'closed' });
    }
    expect(await activities().openSession(input)).toMatchObject({ code: 'session_closed' });
    const page = await approve(url);
    expect([page.status, await rows(id)]).toEqual([410, []]);
  });

  it('closeSession before openSession makes it be declined', async () => {
    const input = instruction();
    await activities().closeSession({ payment_id: input.payment_id });
    expect(await activities().openSession(input)).toMatchObject({
      outcome: 'declined',
      code: 'session_closed',
    });
  });

  it('closeSession after the approval says so', async () => {
    const { id, url } = await openFor();
    await approve(url);
    expect(await activities().closeSession({ payment_id: id })).toEqual({
      outcome: 'already_authorized',
    });
  });

  it('refuses live payments', async () => {
    expect(await activities().openSession(instruction({ livemode: true }))).toMatchObject({
      outcome: 'declined',
      code: 'live_not_supported',
    });
  });

  it('reversePayment answers a repeat the same, and refuses another amount', async () => {
    const { id, url } = await openFor();
    await approve(url);
    await until(
      () => sessionOf(id),
      (session) => session?.status === 'settled',
    );
    const input = {
      payment_id: id,
      instruction_id: `reversal:${id}`,
      amount: 4_950,
      currency: 'EUR',
    };
    const first = await activities().reversePayment(input);
    expect(first).toMatchObject({ outcome: 'accepted' });
    expect(await activities().reversePayment(input)).toEqual(first);
    expect(await activities().reversePayment({ ...input, amount: 1 })).toMatchObject({
      outcome: 'refused',
    });
    expect((await sessionOf(id))?.status).toBe('reversed');
  });
});

describe('the customer’s decision', () => {
  it('approved: authorized at once, settled three seconds later, kept and signalled', async () => {
    const { id, url, input } = await openFor();
    const answer = await approve(url);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, input.return_url]);
    const sent = await until(
      () => signals(id),
      (names) => names.length === 2,
    );
    expect(sent).toEqual(['authorized', 'settled']);
    const [first, second] = (await callbacks(id)).map(({ body }) => Date.parse(body.occurred_at));
    expect((second ?? 0) - (first ?? 0)).toBe(3_000);
    expect((await sessionOf(id))?.status).toBe('settled');
  });

  it('pressed ten times at once counts once', async () => {
    const { id, url } = await openFor();
    const answers = await Promise.all(Array.from({ length: 10 }, () => approve(url)));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(303));
    expect((await rows(id)).map(({ name }) => name)).toEqual(['authorized', 'settled']);
  });

  it('declined: failed with the code `declined` and the reason picked', async () => {
    const { id, url } = await openFor({ method: 'visa' });
    await decide(url, { decision: 'decline', reason: 'card_blocked' });
    await until(
      () => signals(id),
      (names) => names[0] === 'failed',
    );
    expect((await callbacks(id))[0]?.body).toMatchObject({
      code: 'declined',
      reason: 'The card is blocked.',
    });
  });

  it('is refused after the expiry', async () => {
    const { id, url } = await openFor({ expires_at: new Date(Date.now() - 1).toISOString() });
    expect((await approve(url)).status).toBe(410);
    expect(await rows(id)).toEqual([]);
  });

  it('is refused when another site sent it, and for an unknown session', async () => {
    const { id, url } = await openFor();
    const path = `${server.bank.url}${new URL(url).pathname}/decision`;
    const headers = { 'sec-fetch-site': 'cross-site' };
    expect((await fetch(path, { method: 'POST', headers })).status).toBe(403);
    expect(await rows(id)).toEqual([]);
    const unknown = await fetch(`${server.bank.url}/session/${'A'.repeat(43)}`);
    expect(unknown.status).toBe(404);
  });

  it('of a payment that the product does not know is parked', async () => {
    const input = instruction();
    const answer = await activities().openSession(input);
    await approve(answer.outcome === 'opened' ? answer.session_url : '');
    const [row] = await until(
      () => rows(input.payment_id),
      ([first]) => first?.state === 'parked',
    );
    expect(row?.name).toBe('authorized');
    expect(await signals(input.payment_id)).toEqual([]);
  });
});

describe('void against settlement', () => {
  it('a void before the settlement wins: nothing settles any more', async () => {
    const { id, url } = await openFor();
    await approve(url);
    const void_ = { payment_id: id, instruction_id: `void:${id}` };
    expect(await activities().voidPayment(void_)).toEqual({ outcome: 'voided' });
    expect(await activities().voidPayment(void_)).toEqual({ outcome: 'voided' });
    const states = (await rows(id)).map(({ name, state }) => ({ name, state }));
    expect(states).toContainEqual({ name: 'settled', state: 'dropped' });
  });

  it('a void after the settlement is told so', async () => {
    const { id, url } = await openFor();
    await approve(url);
    await until(
      () => sessionOf(id),
      (session) => session?.status === 'settled',
    );
    expect(
      await activities().voidPayment({ payment_id: id, instruction_id: `void:${id}` }),
    ).toEqual({ outcome: 'already_settled' });
  });

  it('at the same moment exactly one of them takes place, twenty times over', async () => {
    const opened = await Promise.all(Array.from({ length: 20 }, () => openFor()));
    await Promise.all(opened.map(({ url }) => approve(url)));
    const outcomes = await Promise.all(
      opened.map(async ({ id }, index) => {
        const settles = (await rows(id)).find(({ name }) => name === 'settled');
        const wait = (settles?.due_at.getTime() ?? 0) - Date.now() + index * 20;
        await new Promise((resolve) => setTimeout(resolve, wait));
        return await activities().voidPayment({ payment_id: id, instruction_id: `void:${id}` });
      }),
    );
    for (const [index, { id }] of opened.entries()) {
      const voided = outcomes[index]?.outcome === 'voided';
      const done = await until(
        () => rows(id),
        (all) => all.every((row) => row.done_at !== null),
      );
      const settled = done.find(({ name }) => name === 'settled');
      expect(settled?.state).toBe(voided ? 'dropped' : 'sent');
      expect((await sessionOf(id))?.status).toBe(voided ? 'voided' : 'settled');
      expect((await callbacks(id)).some(({ name }) => name === 'settled')).toBe(!voided);
    }
  });
});

describe('the outbox', () => {
  it('keeps what could not be sent and sends it after a restart, with the same id', async () => {
    const connection = Connection.lazy({ address: '127.0.0.1:1' });
    await server.restart({ autoplay: false, temporal: new Client({ connection }) });
    const { id, url } = await openFor();
    await approve(url);
    const [failed] = await until(
      () => rows(id),
      ([row]) => row?.last_error != null,
    );
    expect(failed?.state).toBe('pending');
    await server.restart({ autoplay: false });
    await until(
      () => signals(id),
      (names) => names.length === 1,
    );
    const kept = await callbacks(id);
    expect(kept.map(({ body }) => body.callback_id)).toEqual([failed?.body.callback_id]);
    await connection.close();
  });

  it('sends again what a killed sender had taken, and it counts once', async () => {
    const { id, url } = await openFor();
    await approve(url);
    await until(
      () => signals(id),
      (names) => names.length === 1,
    );
    await until(
      () => rows(id),
      ([row]) => row?.state === 'sent',
    );
    // As a kill between the delivery and the mark leaves it.
    await own
      .collection<OutboxRow>('outbox')
      .updateOne(
        { payment_id: id },
        { $set: { state: 'pending', done_at: null, due_at: new Date() } },
      );
    await until(
      () => rows(id),
      ([row]) => row?.state === 'sent',
    );
    expect(await callbacks(id)).toHaveLength(1);
    expect(await signals(id)).toEqual(['authorized']);
  });
});

describe('magic amounts', () => {
  it('are all told of in words', () => {
    for (const { description } of Object.values(MAGIC_AMOUNTS)) {
      expect(description).toMatch(/^[A-Z].{20,}\.$/);
    }
  });

  it('66601 opens slowly the first time, and at once when asked again', async () => {
    const input = instruction({ amount: 66_601 });
    const before = Date.now();
    await activities().openSession(input);
    const slow = Date.now() - before;
    expect(slow).toBeGreaterThanOrEqual(300);
    await activities().openSession(input);
    expect(Date.now() - before - slow).toBeLessThan(slow);
  });

  it('66602 is declined at open, each time', async () => {
    const input = instruction({ amount: 66_602 });
    const first = await activities().openSession(input);
    expect(first).toMatchObject({ outcome: 'declined', code: 'declined' });
    expect(await activities().openSession(input)).toEqual(first);
  });

  it.each([
    [66_603, ['authorized']],
    [66_604, ['settled', 'authorized']],
    [66_605, ['authorized', 'failed']],
  ])('%i is signalled as %j', async (amount, names) => {
    await server.restart({ autoplay: true });
    const { id, url } = await openFor({ amount });
    await approve(url);
    const done = await until(
      () => rows(id),
      (all) => all.every(({ state }) => state === 'sent'),
    );
    expect(done).toHaveLength(amount === 66_604 ? 4 : names.length);
    expect(await signals(id)).toEqual(names);
  });
});

it('answers its health check', async () => {
  const response = await fetch(`${server.bank.url}/healthz`);
  expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
});
