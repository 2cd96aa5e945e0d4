import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { connect as connectTls } from 'node:tls';
import { omitUndefined } from '../domain/defined';
import type { Resolve } from './names';
import { classify, PostFault, type PostResult, parseRetryAfter } from './post-result';
import { type AdmittedUrl, admitUrl } from './url';

/** The connection is closed after so many. */
const RESPONSE_BYTES_MAX = 64 * 1_024;
const EXCERPT_BYTES_MAX = 1_024;
/** The next address is then tried in parallel. */
const ADDRESS_ATTEMPT_MS = 1_500;

export interface WebhookPost {
  url: string;
  headers: Record<string, string>;
  body: string | Buffer;
  /** Covers name lookup, connection, TLS and response. */
  timeoutMs: number;
  allowPrivate: boolean;
  /** Absent: none is blocked. */
  isDenied?: (address: string) => boolean;
  resolve?: Resolve;
  /** Replaces the system's certificate authorities. */
  ca?: string;
}

export type PostWebhook = (post: WebhookPost) => Promise<PostResult>;

/**
 * Posts to an untrusted address, without redirects, proxy or decompression, over a new connection
 * to an address that was checked here: DNS rebinding has no effect. A response that is incomplete
 * at the deadline is an error, even with 2xx: the receiver may not have stored the event.
 */
export async function postWebhook(post: WebhookPost): Promise<PostResult> {
  const startedAt = performance.now();
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), post.timeoutMs);
  const progress = { connected: false };
  try {
    const target = await admit(post, deadline.signal);
    const socket = await open(target, post.ca, deadline.signal);
    progress.connected = true;
    const answer = await exchange(socket, target.url, post, deadline.signal);
    return { outcome: 'response', ...answer, durationMs: getElapsedMs(startedAt) };
  } catch (error) {
    const fault = deadline.signal.aborted
      ? new PostFault('timeout', `No complete answer within ${post.timeoutMs / 1_000} s.`)
      : classify(error, progress.connected);
    const { kind, message } = fault;
    return { outcome: 'error', kind, message, durationMs: getElapsedMs(startedAt) };
  } finally {
    clearTimeout(timer);
  }
}

export function postOutside(isDenied: (address: string) => boolean): PostWebhook {
  return (post) => postWebhook({ ...post, isDenied });
}

async function admit(post: WebhookPost, deadline: AbortSignal): Promise<AdmittedUrl> {
  const aborted = once(deadline, 'abort').then(() => {
    throw new PostFault('timeout', 'The host name was not resolved in time.');
  });
  const result = await Promise.race([admitUrl(post.url, post), aborted]);
  if (result.ok) return result;
  const kind = result.code === 'url_host_unknown' ? 'dns' : 'refused_address';
  throw new PostFault(kind, result.message);
}

async function open(
  { url, host, addresses }: AdmittedUrl,
  ca: string | undefined,
  deadline: AbortSignal,
): Promise<Socket> {
  const isSecure = url.protocol === 'https:';
  const target = {
    host,
    port: Number(url.port) || (isSecure ? 443 : 80),
    lookup: pinLookup(addresses),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
  };
  const socket = isSecure
    ? connectTls({
        ...target,
        servername: isIP(host) === 0 ? host : '',
        ALPNProtocols: ['http/1.1'],
        rejectUnauthorized: true,
        ca,
      })
    : connect(target);
  // An error between the awaits, which handle errors, must not end the process.
  socket.on('error', () => undefined);
  deadline.addEventListener('abort', () => socket.destroy(), { once: true });
  try {
    await once(socket, isSecure ? 'secureConnect' : 'connect', { signal: deadline });
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function pinLookup(addresses: string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, options, callback) => {
    const first = all[0];
    if (options.all || first === undefined) callback(null, all);
    else callback(null, first.address, first.family);
  };
}

async function exchange(socket: Socket, url: URL, post: WebhookPost, deadline: AbortSignal) {
  const body = Buffer.from(post.body);
  const clientRequest = request({
    createConnection: () => socket,
    method: 'POST',
    path: `${url.pathname}${url.search}`,
    headers: {
      ...post.headers,
      Host: url.host,
      'Accept-Encoding': 'identity',
      'Content-Length': body.length,
    },
  });
  clientRequest.on('error', () => undefined);
  try {
    const answered = once(clientRequest, 'response', { signal: deadline });
    const closed = once(clientRequest, 'close').then(() => {
      throw new PostFault('reset', 'The connection was closed before the answer.');
    });
    clientRequest.end(body);
    const [response]: IncomingMessage[] = await Promise.race([answered, closed]);
    if (response === undefined) throw new PostFault('protocol', 'There was no answer.');
    const retryAfterSeconds = parseRetryAfter(response.headers['retry-after'], Date.now());
    const excerpt = await readExcerpt(response);
    const status = response.statusCode ?? 0;
    return omitUndefined({ status, excerpt, retryAfterSeconds });
  } finally {
    clientRequest.destroy();
    socket.destroy();
  }
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
