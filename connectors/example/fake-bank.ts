import { createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const CHANGES_PER_PAGE = 2;

type State = string;

interface Transfer {
  id: string;
  reference: string;
  amount: number;
  currency: string;
  state: State;
  reason: string | null;
  value_date: string | null;
}

interface Change {
  id: string;
  at: string;
  transfer: Transfer;
}

interface Answer {
  status: number;
  body: unknown;
}

/** Fault of the next call that the bank gets: before it has read it, or after it has acted. */
export type Fault = 'cut_before' | 'cut_after' | 'fails_after';

/** States of a transfer by the callbacks that come of them, for the desk of a check. */
const STATES: Record<string, State> = {
  submitted: 'queued',
  completed: 'arrived',
  failed: 'rejected',
};

interface Options {
  /** Any free port by default. */
  port?: number;
  /** Address to which it posts a webhook for each change; none by default. */
  webhookUrl?: string;
}

/** Small bank with a REST API, in memory, and a desk for `connector check` under `/desk`. */
export async function startFakeBank(secret: string, { port = 0, webhookUrl }: Options = {}) {
  const transfers = new Map<string, Transfer>();
  const posted: Record<string, unknown>[] = [];
  const changes: Change[] = [];
  const faults: Fault[] = [];

  const accept = (body: Record<string, unknown>): Answer => {
    posted.push(body);
    const { reference, amount, currency, ...rest } = body;
    const known = transfers.get(String(reference));
    if (known !== undefined) return { status: 200, body: known };
    if (amount === 66_600) return { status: 422, body: { code: 'amount_too_high' } };
    const transfer: Transfer = {
      ...{ kind: rest['kind'], id: `T-${transfers.size + 1}`, reference: String(reference) },
      ...{ amount: Number(amount), currency: String(currency) },
      ...{ state: 'queued', reason: null, value_date: null },
    };
    transfers.set(transfer.reference, transfer);
    return { status: 201, body: transfer };
  };
  const change = (reference: string, state: State, facts: Partial<Transfer> = {}): Change => {
    const known = transfers.get(reference);
    if (known === undefined) throw new Error('The bank has no such transfer.');
    const transfer = { ...known, ...facts, state };
    transfers.set(reference, transfer);
    return publish(transfer);
  };
  const publish = (transfer: Transfer): Change => {
    const published = { id: `C-${randomUUID()}`, at: new Date().toISOString(), transfer };
    changes.push(published);
    // One that gets lost is in the list of changes.
    if (webhookUrl) void postWebhook(webhookUrl, JSON.stringify(published), secret).catch(() => {});
    return published;
  };
  const cancel = (known: Transfer): Answer => {
    if (known.state !== 'queued' && known.state !== 'cancelled') {
      return { status: 409, body: { code: 'too_late' } };
    }
    transfers.set(known.reference, { ...known, state: 'cancelled' });
    return { status: 200, body: { ...known, state: 'cancelled' } };
  };
  /** Desk at which a check sees what the bank has executed, and makes it act. */
  const serveDesk = (path: string, text: string): Answer => {
    if (path === '/desk/reports') {
      const { resource, resource_id, name, kind } = JSON.parse(text);
      const state = (resource === 'payout' && STATES[name]) || name;
      const foreign = { id: 'T-0', reference: resource_id, amount: 1, currency: 'EUR', kind };
      const transfer = { ...foreign, state, reason: null, value_date: null };
      if (transfers.has(resource_id)) change(resource_id, state);
      else publish(transfer);
      return { status: 200, body: {} };
    }
    const known = transfers.get(decodeURIComponent(path.split('/').at(-1) ?? ''));
    const effects = known === undefined || known.state === 'cancelled' ? [] : [known];
    return { status: 200, body: { effects } };
  };
  const route = ({ method, url = '' }: IncomingMessage, text: string): Answer => {
    const { pathname, searchParams } = new URL(url, 'http://bank');
    if (method === 'POST' && pathname === '/transfers') return accept(JSON.parse(text));
    if (pathname === '/changes') {
      const after = changes.findIndex(({ id }) => id === searchParams.get('after')) + 1;
      const data = changes.slice(after, after + CHANGES_PER_PAGE);
      return { status: 200, body: { data, has_more: changes.length > after + data.length } };
    }
    const known = transfers.get(decodeURIComponent(pathname.split('/').at(-1) ?? ''));
    if (known === undefined) return { status: 404, body: { code: 'transfer_unknown' } };
    return method === 'DELETE' ? cancel(known) : { status: 200, body: known };
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? '';
    const isDesk = path.startsWith('/desk/');
    const fault = request.method === 'POST' && !isDesk ? faults.shift() : undefined;
    if (fault === 'cut_before') return void request.socket.destroy();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const isKnown = request.headers.authorization === `Bearer ${secret}`;
    const answerBank = () =>
      isKnown ? route(request, text) : { status: 401, body: { code: 'key_unknown' } };
    const { status, body } = isDesk ? serveDesk(path, text) : answerBank();
    if (fault === 'cut_after') return void request.socket.destroy();
    response.writeHead(fault === 'fails_after' ? 500 : status).end(JSON.stringify(body));
  };
  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy());
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${bound}`,
    /** Bodies of all transfers that were posted. */
    posted,
    transfers,
    failNext: (...next: Fault[]) => void faults.push(...next),
    /** Changes a transfer, as its webhook and the list of changes report. */
    change,
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Posts a webhook as the bank does. */
export function postWebhook(url: string, body: string, secret: string): Promise<Response> {
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const headers = { 'Content-Type': 'application/json', 'Example-Signature': signature };
  return fetch(url, { method: 'POST', body, headers });
}

/** Runs it until it is stopped: `node fake-bank.js SECRET PORT [WEBHOOK_URL]`. */
if (require.main === module) {
  const [secret = '', port = '8091', webhookUrl] = process.argv.slice(2);
  const options = { port: Number(port), ...(webhookUrl === undefined ? {} : { webhookUrl }) };
  void startFakeBank(secret, options).then(({ url }) => console.log(`the fake bank is at ${url}`));
}
