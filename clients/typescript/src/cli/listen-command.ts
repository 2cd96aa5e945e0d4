import { createHmac } from 'node:crypto';
import { parseArgs } from 'node:util';
import { PaymentsError } from '../errors';
import { CONNECTION, CONNECTION_HELP, readConnection } from './connect';
import { createForward } from './forward';
import { listen } from './listen';
import { openState } from './state';
import { EVENT_TYPES, listTypes } from './triggers';

export const LISTEN_HELP = `Usage: durable-payments listen --forward-to localhost:3000/hooks --key KEY

Forwards each event to a server on this machine, signed with the secret that is printed at the start.
The secret is made from the key, so it is the same each time. After a restart it goes on where it
stopped. While your server is away, events wait for it. What your server may have received before has
the header Service-Repeat: "restart", "retry" or "redelivery".

Options:
  --forward-to URL   where the events go
  --events A,B       types of events; by default all
  --from-now         leave out the events since the last run
  --state FILE       where to remember what was forwarded; by default in ~/.local/state
${CONNECTION_HELP}`;

export async function runListen(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      ...CONNECTION,
      'forward-to': { type: 'string' },
      events: { type: 'string' },
      'from-now': { type: 'boolean' },
      state: { type: 'string' },
    },
  });
  const { client, apiKey, baseUrl } = readConnection(values);
  const forwardTo = readTarget(values['forward-to']);
  const types = readTypes(values.events);
  const secret = makeSecret(apiKey);
  const state = openState({ file: values.state, names: [baseUrl, apiKey, forwardTo] });
  if (values['from-now']) state.clear();
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  print(`Signing secret: ${secret}`);
  print(`${state.isNew ? 'Forwards' : 'Goes on forwarding'} events of ${baseUrl} to ${forwardTo}`);
  const { signal } = stop;
  try {
    const forward = createForward({ url: forwardTo, secret, signal, print });
    await listen({ client, state, forward, types, signal, print });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    state.close();
  }
  return 0;
}

/** Made from the key, which nobody can compute from it: the same after each restart, without a file. */
function makeSecret(apiKey: string): string {
  return `whsec_${createHmac('sha256', apiKey).update('listen').digest('base64url')}`;
}

function readTarget(target: string | undefined): string {
  if (!target) throw new PaymentsError('Name your server: --forward-to localhost:3000/hooks');
  const url = /^https?:\/\//.test(target) ? target : `http://${target}`;
  if (!URL.canParse(url)) throw new PaymentsError(`--forward-to is no URL: ${target}`);
  return url;
}

function readTypes(list: string | undefined): ReadonlySet<string> {
  if (list === undefined) return new Set(EVENT_TYPES);
  const types = list.split(',').map((type) => type.trim());
  const unknown = types.filter((type) => !EVENT_TYPES.some((each) => each === type));
  if (unknown.length === 0) return new Set(types);
  throw new PaymentsError(`No event has this type: ${unknown.join(', ')}.\n${listTypes()}`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
