import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, isGrpcServiceError } from '@temporalio/client';
import { z } from 'zod';
import type { BankResource } from '../../src/domain/banks/callback';
import { LIFECYCLES } from '../../src/lifecycles';
import type { Stores } from '../../src/store';
import type { Desk, Effect } from './desk';
import type { Documents } from './documents';
import type { FaultProxy } from './faults';
import type { FileBank } from './file-bank';
import type { Instructor } from './instructor';
import type { WebhookProxy } from './proxy';
import { assertSeen, NotApplicable, need } from './verdict';

export interface ContractPromise {
  id: string;
  promise: string;
  /** Excludes all others while it runs. */
  alone?: true;
  /** @returns observations @throws Broken, NotApplicable */
  check: (world: World) => Promise<string>;
}

const POLL_MS = 100;
const NOT_FOUND = 5;

export interface World {
  connector: string;
  instructor: Instructor;
  documents: Documents;
  stores: Pick<Stores, 'callbacks' | 'capabilities'>;
  temporal: Client;
  desk?: Desk | undefined;
  bank?: FaultProxy | undefined;
  webhooks?: WebhookProxy | undefined;
  files?: FileBank | undefined;
  /** Time for a report to arrive, also if its webhook was lost. */
  waitMs: number;
  /** Sandbox bank reports nothing about these by itself. */
  quietAmounts?: Partial<Record<BankResource, number>>;
  /** Behaves as a service that is down. */
  withoutCallbacks: <T>(run: () => Promise<T>) => Promise<T>;
}

/** @throws NotApplicable */
export function needBank({ bank, files }: Pick<World, 'bank' | 'files'>): FaultProxy {
  const without = 'It needs the proxy in front of the bank.';
  return need(bank, files === undefined ? without : 'The bank is not called: it gets files.');
}

/** @throws NotApplicable */
export function needWebhooks({ webhooks, files }: Pick<World, 'webhooks' | 'files'>): WebhookProxy {
  const without = 'It needs the proxy in front of the connector’s own port.';
  return need(webhooks, files === undefined ? without : 'The bank posts nothing: it writes files.');
}

/** @throws NotApplicable if the connector has no payments */
export async function openSession({ documents, instructor }: World, amount?: number) {
  const input = await documents.makePayment(amount);
  const answer = await instructor.read('openSession', input);
  if (answer['code'] === 'not_supported') throw new NotApplicable('The connector has no payments.');
  return { input, answer };
}

const Signal = z.looseObject({ callback_id: z.string() });

interface ReceivedSignal {
  name: string;
  callback_id: string;
}

export async function listSignals(
  { temporal }: Pick<World, 'temporal'>,
  resource: BankResource,
  id: string,
): Promise<ReceivedSignal[]> {
  const handle = temporal.workflow.getHandle(LIFECYCLES[resource].workflowId(id));
  try {
    const { events } = await handle.fetchHistory();
    const received = (events ?? []).flatMap(
      ({ workflowExecutionSignaledEventAttributes: signal }) => {
        const data = signal?.input?.payloads?.[0]?.data;
        const parsed = data && Signal.safeParse(JSON.parse(Buffer.from(data).toString()));
        const name = signal?.signalName ?? '';
        return parsed?.success ? [{ name, callback_id: parsed.data.callback_id }] : [];
      },
    );
    // Two deliveries at once may both signal, and the workflow applies one.
    const byFact = new Map(received.map((each) => [`${each.name} ${each.callback_id}`, each]));
    return [...byFact.values()];
  } catch (error) {
    if (isGrpcServiceError(error) && error.code === NOT_FOUND) return [];
    throw error;
  }
}

/** @throws Broken if a callback does not come in time */
export async function waitForSignals(
  world: Pick<World, 'temporal' | 'waitMs'>,
  resource: BankResource,
  id: string,
  names: readonly string[],
): Promise<ReceivedSignal[]> {
  const end = Date.now() + world.waitMs;
  for (;;) {
    const signals = await listSignals(world, resource, id);
    const missing = names.filter((name) => !signals.some((signal) => signal.name === name));
    if (missing.length === 0) return signals;
    const seconds = Math.round(world.waitMs / 1_000);
    assertSeen(Date.now() < end, `${missing.join(', ')} did not arrive in ${seconds} s.`);
    await sleep(POLL_MS);
  }
}

/** @returns text for the report */
export async function assertEffects(
  { desk }: Pick<World, 'desk'>,
  id: string,
  wanted: 'once' | 'none',
): Promise<string> {
  if (desk === undefined) return 'what the bank holds was not seen, without its desk';
  const { length } = await desk.listEffects(id);
  const expected = wanted === 'once' ? 1 : 0;
  assertSeen(length === expected, `the bank has executed it ${length} times, not ${expected}`);
  return wanted === 'once' ? 'once at the bank' : 'nothing at the bank';
}

export async function assertMoney(
  { desk }: Pick<World, 'desk'>,
  id: string,
  { amount, currency }: Effect,
): Promise<string> {
  const [effect] = await need(desk, 'It needs the bank’s desk.').listEffects(id);
  const seen = effect === undefined ? 'nothing' : `${effect.amount} ${effect.currency}`;
  assertSeen(seen === `${amount} ${currency}`, `the bank has ${seen}, not ${amount} ${currency}`);
  return seen;
}
