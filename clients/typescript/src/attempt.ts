import { ConnectionError, readRefusal, TimeoutError } from './errors';

const TIMEOUT_MS = 30_000;

/** Answer as it came. `text` has numbers of any size as they were written. */
export interface RawResponse {
  status: number;
  headers: Headers;
  text: string;
}

interface AttemptRequest {
  url: URL;
  init: { readonly method: string };
}

interface AttemptOptions {
  signal?: AbortSignal;
  timeoutMs?: number;
  fetch?: typeof fetch;
  onResponse?: (response: RawResponse) => void;
}

export type Attempt = { response: RawResponse } | { error: Error; retryAfter: string | null };

/**
 * Sends a request once. What went wrong is returned, since it may be repeated.
 * @throws the reason of the signal once it is aborted
 */
export async function attempt(request: AttemptRequest, options: AttemptOptions): Promise<Attempt> {
  const result = await exchange(request, options);
  if (result instanceof Error) return { error: result, retryAfter: null };
  const { status, headers, text } = result;
  if (status >= 200 && status < 300) {
    options.onResponse?.(result);
    return { response: result };
  }
  const error = readRefusal(status, text, headers.get('Request-Id'));
  return { error, retryAfter: headers.get('Retry-After') };
}

async function exchange(
  { url, init }: AttemptRequest,
  { signal, timeoutMs = TIMEOUT_MS, fetch: send = globalThis.fetch }: AttemptOptions,
): Promise<RawResponse | ConnectionError> {
  signal?.throwIfAborted();
  const timeout = AbortSignal.timeout(timeoutMs);
  const signals = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  try {
    const response = await send(url, { ...init, signal: signals });
    const { status, headers } = response;
    return { status, headers, text: await response.text() };
  } catch (cause) {
    signal?.throwIfAborted();
    const where = `${init.method} ${url.origin}${url.pathname}`;
    return timeout.aborted
      ? new TimeoutError(`${where} gave no answer within ${timeoutMs} ms.`, { cause })
      : new ConnectionError(`${where} could not be reached or broke off.`, { cause });
  }
}
