import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Client } from '../client';
import { isApiError, PaymentsError } from '../errors';
import type { Event } from '../resources/events';
import { CONNECTION, CONNECTION_HELP, readConnection } from './connect';
import { findTrigger, listTypes } from './triggers';

export const TRIGGER_HELP = `Usage: durable-payments trigger TYPE --key KEY

Makes an event of this type happen in the sandbox, with the resources that it needs, and prints its ID
and that of its resource.

Options:
${CONNECTION_HELP}
${listTypes()}`;

const EVENT_MS = 30_000;

/** What to do about a refusal that the account's settings explain. */
const REMEDIES: Readonly<Record<string, string>> = {
  crypto_not_enabled: 'Crypto must be enabled on the account.',
  wallet_not_registered: 'Register a wallet for ETH first.',
  api_key_scope_insufficient: 'Use a key with every scope.',
};

export async function runTrigger(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: CONNECTION, allowPositionals: true });
  const [type = '', ...rest] = positionals;
  const trigger = findTrigger(type);
  if (trigger === undefined || rest.length > 0) {
    const words = type === '' ? 'Name the type of the event.' : `No event has this type: ${type}.`;
    throw new PaymentsError(`${rest.length > 0 ? 'Name one type.' : words}\n${listTypes()}`);
  }
  const { client } = readConnection(values);
  const id = await trigger(client).catch((error: unknown) => {
    throw explain(error);
  });
  const event = await waitForEvent(client, type, id);
  process.stdout.write(`${type}  ${event?.id ?? 'is under way'}  ${id}\n`);
  return 0;
}

/** The service records an event as the bank's report is processed, soon after it answers. */
async function waitForEvent(client: Client, type: string, id: string): Promise<Event | undefined> {
  for (const end = Date.now() + EVENT_MS; Date.now() < end; await sleep(250)) {
    const { data } = await client.events.list({ resource_id: id });
    const event = data.find((each) => each.type === type);
    if (event !== undefined) return event;
  }
  return undefined;
}

function explain(error: unknown): unknown {
  if (!isApiError(error)) return error;
  const remedy = REMEDIES[error.code];
  return new PaymentsError(`${error.code}: ${error.message}${remedy ? `\n${remedy}` : ''}`);
}
