import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { connect as connectTls } from 'node:tls';
import { defined } from '../domain/defined';
import type { Resolve } from './names';
import { classify, PostFault, type PostResult, parseRetryAfter } from './post-result';
import { type AdmittedUrl, admitUrl } from './url';

/** Bytes of an answer that are read before the connection is dropped. */
const ANSWER_BYTES_MAX = 64 * 1_024;
const EXCERPT_BYTES_MAX = 1_024;
/** Time for one of several addresses before the next is tried beside it. */
const ADDRESS_ATTEMPT_MS = 1_500;

export interface WebhookPost {
  url: string;
  headers: Record<string, string>;
  body: string | Buffer;
  /** Time for the whole post: name, connection, TLS, answer. */
  timeoutMs: number;
  /** Whether this machine may be posted to. */
  allowPrivate: boolean;
  /** Says which addresses the operator keeps from webhooks; none when not given. */
  isDenied?: (address: string) => boolean;
  resolve?: Resolve;
  /** Certificate authority to trust instead of the system's. */
  ca?: string;
}

export type PostWebhook = (post: WebhookPost) => Promise<PostResult>;

/**
 * Posts to an address that strangers chose. The host is resolved and judged here, and the
 * connection goes to one of the judged addresses only, so a name that changes its mind gains
 * nothing. No redirect is followed, no proxy used, nothing decompressed, and no connection kept:
 * each attempt is judged anew.
 *
 * Never rejects because of a receiver. An answer that is not whole within the time is an error,
 * also when its status was 2xx: a receiver that broke off may not have kept the event.
 */
export async function postWebhook(post: WebhookPost): Promise<PostResult> {
  const startedAt = performance.now();
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), post.timeoutMs);
  const progress = { connected: false };
  try {
    const admitted = await admit(post, deadline.signal);
    const socket = await open(admitted, post.ca, deadline.signal);
    progress.connected = true;
    const answer = await exchange(socket, admitted.url, post, deadline.signal);
    return { outcome: 'response', ...answer, durationMs: since(startedAt) };
  } catch (error) {
    const fault = deadline.signal.aborted
      ? new PostFault('timeout', `No complete answer within ${post.timeoutMs / 1_000} s.`)
      : classify(error, progress.connected);
    const { kind, message } = fault;
    return { outcome: 'error', kind, message, durationMs: since(startedAt) };
  } finally {
    clearTimeout(timer);
  }
}

/** Posts to no address that the operator keeps from webhooks. */
export function postOutside(isDenied: (address: string) => boolean): PostWebhook {
  return (post) => postWebhook({ ...post, isDenied });
}

async function admit(post: WebhookPost, deadline: AbortSignal): Promise<AdmittedUrl> {
  const aborted = once(deadline, 'abort').then(() => {
    throw new PostFault('timeout', 'The host name was not resolved in time.');
  });
  const admitted = await Promise.race([admitUrl(post.url, post), aborted]);
  if (admitted.ok) return admitted;
  const kind = admitted.code === 'url_host_unknown' ? 'dns' : 'refused_address';
  throw new PostFault(kind, admitted.message);
}

/** Connects to one of the judged addresses, up to the end of TLS, without sending a byte. */
async function open(
  { url, host, addresses }: AdmittedUrl,
  ca: string | undefined,
  deadline: AbortSignal,
): Promise<Socket> {
  const isSecure = url.protocol === 'https:';
  const target = {
    host,
    port: Number(url.port) || (isSecure ? 443 : 80),
    lookup: pinned(addresses),
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
  // Errors are caught by the awaits; an error between them must not end the process.
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

/** Looks up the judged addresses, for any name. Not called when the host is an address. */
function pinned(addresses: string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, options, callback) => {
    const first = all[0];
    if (options.all || first === undefined) callback(null, all);
    else callback(null, first.address, first.family);
  };
}

async function exchange(socket: Socket, url: URL, post: WebhookPost, deadline: AbortSignal) {
  const body = Buffer.from(post.body);
  const posting = request({
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
  posting.on('error', () => undefined);
  try {
    const answered = once(posting, 'response', { signal: deadline });
    const closed = once(posting, 'close').then(() => {
      throw new PostFault('reset', 'The connection was closed before the answer.');
    });
    posting.end(body);
    const [response]: IncomingMessage[] = await Promise.race([answered, closed]);
    if (response === undefined) throw new PostFault('protocol', 'There was no answer.');
    const retryAfterSeconds = parseRetryAfter(response.headers['retry-after'], Date.now());
    const excerpt = await readExcerpt(response);
    const status = response.statusCode ?? 0;
    return defined({ status, excerpt, retryAfterSeconds });
  } finally {
    posting.destroy();
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
    if (bytes >= ANSWER_BYTES_MAX) break;
  }
  const excerpt = Buffer.concat(head).subarray(0, EXCERPT_BYTES_MAX);
  // In streaming mode a character cut in half at the end is left out.
  return new TextDecoder().decode(excerpt, { stream: true });
}

function since(startedAt: number): number {
  return Math.round(performance.now() - startedAt);
}
