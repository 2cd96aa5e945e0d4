import { createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const CHANGES_PER_PAGE = 2;

type State = 'queued' | 'sent' | 'arrived' | 'rejected' | 'returned';

interface Transfer {
  id: string;
  reference: string;
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

/** A small bank with a REST API, in memory. */
export async function startFakeBank(secret: string) {
  const transfers = new Map<string, Transfer>();
  const posted: Record<string, unknown>[] = [];
  const changes: Change[] = [];
  const faults: Fault[] = [];

  const accept = ({ reference, ...rest }: Record<string, unknown>): Answer => {
    posted.push({ reference, ...rest });
    const known = transfers.get(String(reference));
    if (known !== undefined) return { status: 200, body: known };
    if (rest['amount'] === 66_600) return { status: 422, body: { code: 'amount_too_high' } };
    const transfer: Transfer = {
      ...{ id: `T-${transfers.size + 1}`, reference: String(reference) },
      ...{ state: 'queued', reason: null, value_date: null },
    };
    transfers.set(transfer.reference, transfer);
    return { status: 201, body: transfer };
  };
  const route = ({ method, url = '' }: IncomingMessage, text: string): Answer => {
    const { pathname, searchParams } = new URL(url, 'http://bank');
    if (method === 'POST' && pathname === '/transfers') return accept(JSON.parse(text));
    if (pathname === '/changes') {
      const after = changes.findIndex(({ id }) => id === searchParams.get('after')) + 1;
      const data = changes.slice(after, after + CHANGES_PER_PAGE);
      return { status: 200, body: { data, has_more: changes.length > after + data.length } };
    }
    const known = transfers.get(pathname.split('/').at(-1) ?? '');
    if (known === undefined) return { status: 404, body: { code: 'transfer_unknown' } };
    return { status: 200, body: known };
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const isSend = request.method === 'POST';
    const fault = isSend ? faults.shift() : undefined;
    if (fault === 'cut_before') return void request.socket.destroy();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const isKnown = request.headers.authorization === `Bearer ${secret}`;
    const { status, body } = isKnown
      ? route(request, Buffer.concat(chunks).toString())
      : { status: 401, body: { code: 'key_unknown' } };
    if (fault === 'cut_after') return void request.socket.destroy();
    response.writeHead(fault === 'fails_after' ? 500 : status).end(JSON.stringify(body));
  };
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    /** Bodies of all transfers that were posted. */
    posted,
    transfers,
    failNext: (...next: Fault[]) => void faults.push(...next),
    /** Changes a transfer, as its webhook and the list of changes report. */
    change: (reference: string, state: State, facts: Partial<Transfer> = {}): Change => {
      const known = transfers.get(reference);
      if (known === undefined) throw new Error('The bank has no such transfer.');
      const transfer = { ...known, ...facts, state };
      transfers.set(reference, transfer);
      const change = { id: `C-${randomUUID()}`, at: new Date().toISOString(), transfer };
      changes.push(change);
      return change;
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Posts a webhook as the bank does. */
export function postWebhook(url: string, body: string, secret: string): Promise<Response> {
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  return fetch(url, { method: 'POST', body, headers: { 'Example-Signature': signature } });
}
