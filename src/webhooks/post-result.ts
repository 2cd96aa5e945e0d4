import { getErrorCode } from '../base/errors';

export type PostErrorKind =
  | 'timeout'
  | 'refused_address'
  | 'dns'
  | 'tls'
  | 'connect'
  | 'reset'
  | 'protocol';

interface PostResponse {
  outcome: 'response';
  status: number;
  /** First KiB of the body. */
  excerpt: string;
  retryAfterSeconds?: number;
  /** Fault of the response, which does not change its status. */
  note?: string;
  durationMs: number;
}

interface PostError {
  outcome: 'error';
  kind: PostErrorKind;
  /** Hides our addresses and the request, since the merchant reads it. */
  message: string;
  durationMs: number;
}

export type PostResult = PostResponse | PostError;

/** @see docs/webhooks.md#answer-and-retries */
export function isAcknowledged(result: PostResult): boolean {
  return result.outcome === 'response' && result.status >= 200 && result.status < 300;
}

export class PostFault extends Error {
  readonly kind: PostErrorKind;
  constructor(kind: PostErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

const TLS_FAULT = /^(ERR_TLS|ERR_SSL|EPROTO|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_)/;

/** Hides the runtime's text. */
export function classify(error: unknown, connected: boolean): PostFault {
  if (error instanceof PostFault) return error;
  const code = getErrorCode(error) ?? 'no code';
  if (code.startsWith('HPE_')) {
    return new PostFault('protocol', `The answer was not valid HTTP (${code}).`);
  }
  if (TLS_FAULT.test(code)) return new PostFault('tls', `No trusted TLS connection (${code}).`);
  if (connected) return new PostFault('reset', 'The connection was closed before the answer.');
  return new PostFault('connect', `The connection could not be made (${code}).`);
}

/** Parses seconds or an HTTP date. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text);
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) {
    return undefined;
  }
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, Math.ceil((atMs - nowMs) / 1_000));
}
