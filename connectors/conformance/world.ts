import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, isGrpcServiceError } from '@temporalio/client';
import { z } from 'zod';
import type { BankResource } from '../../src/domain/callback/callback';
import { LIFECYCLES } from '../../src/lifecycles';
import type { Stores } from '../../src/store';
import type { Desk, Effect } from './desk';
import type { Documents } from './documents';
import type { FaultProxy } from './faults';
import type { FileBank } from './file-bank';
import type { Instructor } from './instructor';
import { assertSeen, need } from './verdict';
import type { WebhookProxy } from './webhook-proxy';

const POLL_MS = 100;
/** Code of gRPC for a workflow that does not exist. */
const NOT_FOUND = 5;

/** Everything around the connector that promises use and look at. */
export interface World {
  connector: string;
  instructor: Instructor;
  documents: Documents;
  stores: Pick<Stores, 'callbacks'>;
  temporal: Client;
  desk?: Desk | undefined;
  bank?: FaultProxy | undefined;
  webhooks?: WebhookProxy | undefined;
  /** Bank that answers by files, in place of calls and webhooks. */
  files?: FileBank | undefined;
  /** Time in which a report must have arrived, also if its webhook was lost. */
  waitMs: number;
  /** Amounts of the sandbox bank, about which it reports nothing by itself. */
  quietAmounts?: Partial<Record<BankResource, number>>;
  /** Refuses to store callbacks while it runs, as a service that is down does. */
  withoutCallbacks: <T>(run: () => Promise<T>) => Promise<T>;
}

/** Proxy in front of the bank. @throws NotApplicable without one */
export function needBank({ bank, files }: Pick<World, 'bank' | 'files'>): FaultProxy {
  const without = 'It needs the proxy in front of the bank.';
  return need(bank, files === undefined ? without : 'The bank is not called: it gets files.');
}

/** Proxy in front of the connector’s own port. @throws NotApplicable without one */
export function needWebhooks({ webhooks, files }: Pick<World, 'webhooks' | 'files'>): WebhookProxy {
  const without = 'It needs the proxy in front of the connector’s own port.';
  return need(webhooks, files === undefined ? without : 'The bank posts nothing: it writes files.');
}

const Signal = z.looseObject({ callback_id: z.string() });

/** Callback that a resource's workflow has received. */
export interface ReceivedSignal {
  name: string;
  callback_id: string;
}

/** Lists the callbacks that reached a resource, each once. */
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

/** Waits for callbacks. @throws Broken if one does not come in time */
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

/**
 * Asserts how often the bank has executed an instruction, if it has a desk.
 * @returns words about it
 */
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

/** Asserts that the bank has the money of an instruction. */
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
