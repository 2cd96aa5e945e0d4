import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { deliverCallback } from '../../src/callbacks/deliver';
import type { CallbackName } from '../../src/domain/banks/callback';
import { type DisputeAnswer, disputeInstructionId } from '../../src/domain/dispute/dispute';
import { disputeId } from '../../src/store/disputes';
import { eventually } from '../support/eventually';
import { buildPayment } from '../support/factories';
import { useAccount, useService } from '../support/service';
import { receiveHttp } from '../webhooks/receiver';
import { ENDS_MS_MAX, useKilledConnector } from './killed-connector';

/** A connector over HTTP as a process that is killed between every two steps of an answer. */
const prefix = `answers-${randomUUID().slice(0, 8)}`;
const SANDBOX_CONNECTORS = 'acme=ideal';
// A product of its own: its payments go to that connector.
const service = useService({
  alone: true,
  live: { connectors: '', prefix },
  tests: SANDBOX_CONNECTORS,
});
const account = useAccount(service);

const CALLS = {
  evidence: {
    ...{ call: 'POST /instructions/submitEvidence', path: 'evidence' },
    body: { explanation: 'It arrived.' },
  },
  acceptance: { call: 'POST /instructions/acceptDispute', path: 'accept', body: {} },
} as const;

interface Row {
  answer: DisputeAnswer;
  at: string;
  /** Arguments of `die-at.ts`; absent: amid the request, which the bank has. */
  step?: string[];
}

const ROWS: Row[] = (['evidence', 'acceptance'] as const).flatMap((answer) => {
  const record = ['updateOne instructions', `"${answer}:`];
  return [
    { answer, at: 'its instruction, before it is sent', step: ['after', ...record, '"deadline"'] },
    { answer, at: 'amid its request' },
    { answer, at: 'the answer, which nobody has stored', step: ['after', CALLS[answer].call] },
    { answer, at: 'the answer, before it is stored', step: ['before', ...record, '"outcome"'] },
    { answer, at: 'the stored answer', step: ['after', ...record, '"outcome"'] },
  ];
});

/** A bank that takes every instruction as another one, and knows what it has taken. */
async function startBank() {
  const taken: string[] = [];
  let atNext: (() => Promise<unknown>) | undefined;
  const act = async (activity: string, body: string): Promise<object> => {
    const { payment_id, instruction_id } = JSON.parse(body);
    if (activity === 'openSession') {
      const session_url = `https://bank.example/${payment_id}`;
      return { outcome: 'opened', bank_reference: `S-${payment_id}`, session_url };
    }
    const isKnown = taken.includes(instruction_id);
    if (activity.startsWith('lookUp')) return { outcome: isKnown ? 'accepted' : 'not_found' };
    taken.push(instruction_id);
    const held = atNext;
    atNext = undefined;
    await held?.();
    return { outcome: 'accepted' };
  };
  const receiver = await receiveHttp(async (request, response) => {
    const answer = await act(request.url?.split('/').at(-1) ?? '', await text(request));
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  return {
    url: `http://127.0.0.1:${receiver.port}`,
    taken,
    holdNext: (wait: () => Promise<unknown>) => {
      atNext = wait;
    },
    stop: receiver.close,
  };
}

const world = useKilledConnector(service, {
  ...{ process: 'http', name: 'acme', prefix, serves: SANDBOX_CONNECTORS },
  open: async (file) => {
    const bank = await startBank();
    const env = {
      ...{ CONNECTOR_NAME: 'acme', INSTRUCTIONS_URL: bank.url },
      ...{ INSTRUCTIONS_FOR: 'payments|disputes' },
      INSTRUCTIONS_SECRET_FILE: file('secret', randomUUID()),
    };
    return { bank, env };
  },
});

async function report(payment_id: string, name: CallbackName, facts: object): Promise<void> {
  const { stores, temporal, queues } = service;
  const deps = { stores, temporal, lifecycleQueue: queues.lifecycle, now: () => new Date() };
  const named = { callback_id: randomUUID(), occurred_at: new Date().toISOString() };
  const callback = { ...named, currency: 'EUR', ...facts };
  const about = { connector: 'acme', resource: 'payment', resource_id: payment_id } as const;
  await deliverCallback(deps, { ...about, name, callback });
}

test('each answer to a dispute reaches the bank once, wherever the process is killed', async () => {
  const { bank } = world;
  const first = await world.start();
  const { id: payment_id } = await buildPayment(account, { amount: 10_000 });
  await report(payment_id, 'settled', { amount: 10_000, bank_reference: 'B1' });
  await service.becomes('payments', payment_id, { status: 'settled' });
  const disputes = ROWS.map((row, n) => ({ ...row, id: disputeId(payment_id, `d${n}`), n }));
  for (const { n } of disputes) {
    await report(payment_id, 'dispute_opened', { dispute_id: `d${n}`, amount: 100 });
  }
  await eventually('all disputes', async () => {
    const opened = await service.stores.disputes.forPayment(payment_id);
    const served = await service.stores.capabilities.get('acme');
    return opened.length === disputes.length && served?.functions.includes('acceptDispute');
  });
  await first.stop();

  for (const { answer, at, step, id } of disputes) {
    const { path, body } = CALLS[answer];
    await world.killAt({
      ...{ at: `${answer}: ${at}`, step, hold: bank.holdNext },
      act: () => account.post(`/v1/disputes/${id}/${path}`, body),
    });
  }
  await world.start();
  const isConfirmed = async () =>
    (await service.stores.disputes.forPayment(payment_id)).every(
      ({ status, evidence_submitted_at }) =>
        status === 'accepted' || (status === 'under_review' && evidence_submitted_at !== null),
    );
  await eventually('all answers to be confirmed', isConfirmed, ENDS_MS_MAX);
  const instructions = disputes.map(({ id, answer }) => disputeInstructionId(id, answer));
  expect(bank.taken.toSorted()).toEqual(instructions.toSorted());
}, 600_000);
