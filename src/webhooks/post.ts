import { once } from 'node:events';
import {
  type AgentOptions,
  type ClientRequest,
  type ClientRequestArgs,
  Agent as HttpAgent,
  type IncomingMessage,
  request,
} from 'node:http';
import { Agent as HttpsAgent, type RequestOptions, request as requestSecurely } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { performance } from 'node:perf_hooks';
import { omitUndefined } from '../domain/defined';
import { type AdmitAttempt, HostBusy } from './endpoint-limits';
import { classify, PostFault, type PostResult, parseRetryAfter } from './post-result';
import { type AdmittedUrl, admitUrl, type Resolve } from './url';

/** Limit of headers, and of a body, after which the connection is closed. */
const RESPONSE_BYTES_MAX = 64 * 1_024;
/** Start of a response, in which its status line is sought. */
const START_BYTES_MAX = 8 * 1_024;
const EXCERPT_BYTES_MAX = 1_024;
/** The next address is then tried in parallel. */
const ADDRESS_ATTEMPT_MS = 1_500;

interface Pinned {
  addresses?: readonly string[];
}

/** A connection is idle for so long; servers commonly allow more. */
const IDLE_MS = 3_000;
const REUSE: AgentOptions = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: 20 };

export interface WebhookPost {
  url: string;
  headers: Record<string, string>;
  body: string | Buffer;
  /** Covers name lookup, connection, TLS and response. */
  timeoutMs: number;
  allowPrivate: boolean;
  livemode: boolean;
  /** Absent: none is blocked. */
  isDenied?: (address: string) => boolean;
  /** Absent: none waits. */
  admitAttempt?: AdmitAttempt;
  resolve?: Resolve;
  /** Replaces the system's certificate authorities. */
  ca?: string;
}

export type PostWebhook = (post: WebhookPost) => Promise<PostResult>;

/**
 * Posts to an untrusted address, without redirects, proxy or decompression, over a connection to an
 * address that was checked here: DNS rebinding has no effect. A response that is incomplete at the
 * deadline is an error, even with 2xx: the receiver may not have stored the event. One that ends with
 * another fault counts by its status line.
 * @throws HostBusy where the attempt has to wait
 */
export async function postWebhook(post: WebhookPost): Promise<PostResult> {
  const startedAt = performance.now();
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), post.timeoutMs);
  const progress = { connected: false };
  try {
    const aborted = once(deadline.signal, 'abort').then(() => {
      throw new PostFault('timeout', 'The host name was not resolved in time.');
    });
    const target = await Promise.race([admitUrl(post.url, post), aborted]);
    if (!target.ok) {
      const kind = target.code === 'url_host_unknown' ? 'dns' : 'refused_address';
      throw new PostFault(kind, target.message);
    }
    await post.admitAttempt?.({ ...target, livemode: post.livemode });
    const answer = await exchange(target, post, progress, deadline.signal);
    return { outcome: 'response', ...answer, durationMs: getElapsedMs(startedAt) };
  } catch (error) {
    if (error instanceof HostBusy) throw error;
    const fault = deadline.signal.aborted
      ? new PostFault('timeout', `No complete answer within ${post.timeoutMs / 1_000} s.`)
      : classify(error, progress.connected);
    const { kind, message } = fault;
    return { outcome: 'error', kind, message, durationMs: getElapsedMs(startedAt) };
  } finally {
    clearTimeout(timer);
  }
}

export function postOutside(
  isDenied: (address: string) => boolean,
  admitAttempt?: AdmitAttempt,
): PostWebhook {
  return (post) => postWebhook(omitUndefined({ ...post, isDenied, admitAttempt }));
}

/** Makes the checked addresses a part of the name by which an idle connection is found. */
class PinnedAgent extends HttpAgent {
  override getName(options?: ClientRequestArgs & Pinned): string {
    return `${super.getName(options)}|${options?.addresses}`;
  }
}

class SecurePinnedAgent extends HttpsAgent {
  override getName(options?: RequestOptions & Pinned): string {
    return `${super.getName(options)}|${options?.addresses}`;
  }
}

const agent = new PinnedAgent(REUSE);
const secureAgent = new SecurePinnedAgent(REUSE);

/**
 * Posts again, once, where the receiver had closed an idle connection.
 * @param progress set once a connection is made: what fails then is the exchange
 */
async function exchange(
  target: AdmittedUrl,
  post: WebhookPost,
  progress: { connected: boolean },
  deadline: AbortSignal,
) {
  for (let isFresh = false; ; isFresh = true) {
    const clientRequest = startRequest(target, post, deadline, isFresh);
    const isSecure = target.url.protocol === 'https:';
    let start = '';
    const recordStart = (chunk: Buffer) => {
      if (start.length < START_BYTES_MAX) start += chunk.toString('latin1');
    };
    clientRequest.on('error', () => undefined);
    clientRequest.on('socket', (socket) => {
      socket.on('data', recordStart);
      const connected = () => {
        progress.connected = true;
      };
      if (clientRequest.reusedSocket) connected();
      else socket.once(isSecure ? 'secureConnect' : 'connect', connected);
    });
    let response: IncomingMessage | undefined;
    try {
      response = await send(clientRequest, post.body);
      const retryAfterSeconds = parseRetryAfter(response.headers['retry-after'], Date.now());
      const excerpt = await readExcerpt(response);
      const status = response.statusCode ?? 0;
      return omitUndefined({ status, excerpt, retryAfterSeconds });
    } catch (error) {
      const final = start.replace(/^(?:\s*HTTP\/\d(?:\.\d)? +1\d\d\b[\s\S]*?\n\r?\n)+/, '');
      const [, digits] = /^\s*HTTP\/\d(?:\.\d)? +([2-5]\d\d)\b[^\n]*\n/.exec(final) ?? [];
      // Nothing of the rest of a response is used that has something else at fault.
      if (digits !== undefined && !deadline.aborted) {
        const { message } = classify(error, true);
        return { status: Number(digits), excerpt: '', note: `${message} Its status line counts.` };
      }
      const isStale = clientRequest.reusedSocket && response === undefined;
      if (!isStale || deadline.aborted) throw error;
    } finally {
      clientRequest.socket?.off('data', recordStart);
      if (response?.complete !== true) clientRequest.destroy();
    }
  }
}

function startRequest(
  { url, host, addresses }: AdmittedUrl,
  post: WebhookPost,
  signal: AbortSignal,
  isFresh: boolean,
): ClientRequest {
  const isSecure = url.protocol === 'https:';
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  const lookup: LookupFunction = (_host, { all: isAll }, callback) => {
    const [first] = all;
    if (isAll || first === undefined) callback(null, all);
    else callback(null, first.address, first.family);
  };
  const options = {
    host,
    port: Number(url.port) || (isSecure ? 443 : 80),
    lookup,
    addresses,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    signal,
    maxHeaderSize: RESPONSE_BYTES_MAX,
    method: 'POST',
    path: `${url.pathname}${url.search}`,
    headers: {
      ...post.headers,
      Host: url.host,
      'Accept-Encoding': 'identity',
      'Content-Length': Buffer.byteLength(post.body),
    },
  };
  if (!isSecure) return request({ ...options, agent: isFresh ? false : agent });
  const servername = isIP(host) === 0 ? host : '';
  const tls = { servername, ALPNProtocols: ['http/1.1'], rejectUnauthorized: true, ca: post.ca };
  return requestSecurely({ ...options, ...tls, agent: isFresh ? false : secureAgent });
}

async function send(clientRequest: ClientRequest, body: string | Buffer): Promise<IncomingMessage> {
  const answered = once(clientRequest, 'response');
  const closed = once(clientRequest, 'close').then(() => {
    throw new PostFault('reset', 'The connection was closed before the answer.');
  });
  closed.catch(() => undefined);
  clientRequest.end(body);
  const [response]: IncomingMessage[] = await Promise.race([answered, closed]);
  if (response === undefined) throw new PostFault('protocol', 'There was no answer.');
  return response;
}

async function readExcerpt(response: IncomingMessage): Promise<string> {
  const head: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue;
    if (bytes < EXCERPT_BYTES_MAX) head.push(chunk);
    bytes += chunk.length;
    if (bytes >= RESPONSE_BYTES_MAX) break;
  }
  const excerpt = Buffer.concat(head).subarray(0, EXCERPT_BYTES_MAX);
  // Omits an incomplete character at the end.
  return new TextDecoder().decode(excerpt, { stream: true });
}

function getElapsedMs(startedAt: number): number {
  return Math.round(performance.now() - startedAt);
}
