import { isIP } from 'node:net';
import { isLoopback } from '../base/networks';
import { findAddressFault } from './address';
import { createResolver, type Resolve } from './names';

const URL_LENGTH_MAX = 2_048;

type UrlRefusalCode =
  | 'url_invalid'
  | 'url_too_long'
  | 'url_not_https'
  | 'url_userinfo'
  | 'url_host_not_public'
  | 'url_host_unknown';

/** Shortens a URL for users who may not change it: path and query can hold a token. */
export function getOrigin(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}

export interface UrlRefusal {
  ok: false;
  code: UrlRefusalCode;
  message: string;
}

export interface UrlPolicy {
  /** Allows endpoints on this machine, also over plain http: sandbox only. */
  allowPrivate: boolean;
  /** Absent: none is blocked. */
  isDenied?: (address: string) => boolean;
  resolve?: Resolve;
}

export interface AdmittedUrl {
  ok: true;
  url: URL;
  /** Without brackets and final dot. */
  host: string;
  addresses: string[];
}

const LOCAL_SUFFIXES = ['.local', '.internal', '.localdomain', '.home.arpa', '.lan', '.intranet'];

const resolveName = createResolver();

/** @returns the URL to store, or the reason for the merchant */
export async function checkWebhookUrl(
  text: string,
  policy: UrlPolicy,
): Promise<{ ok: true; url: string } | UrlRefusal> {
  const result = await admitUrl(text, policy);
  return result.ok ? { ok: true, url: result.url.href } : result;
}

/**
 * Checks at registration and at each attempt.
 * @returns `addresses`, those of the host that are admitted: the only ones to connect to
 */
export async function admitUrl(text: string, policy: UrlPolicy): Promise<AdmittedUrl | UrlRefusal> {
  const url = parseUrl(text, policy.allowPrivate);
  if ('code' in url) return url;
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.+$/, '');
  const hostFault = findHostFault(host, policy.allowPrivate);
  if (hostFault !== null) return hostFault;
  const resolve = policy.resolve ?? resolveName;
  const all = isIP(host) === 0 ? await resolve(host).catch(() => []) : [host];
  const refusals = all.map((address) => addressFault(address, url.protocol, policy));
  const addresses = all.filter((_, index) => refusals[index] === null);
  if (addresses.length > 0) return { ok: true, url, host, addresses };
  const unknown = refuse('url_host_unknown', `The host name ${host} could not be resolved.`);
  return refusals[0] ?? unknown;
}

function parseUrl(text: string, allowPrivate: boolean): URL | UrlRefusal {
  if (text.length > URL_LENGTH_MAX) {
    return refuse('url_too_long', `The URL is longer than ${URL_LENGTH_MAX} characters.`);
  }
  // The URL parser would drop or convert these silently and register another URL.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the regex detects them.
  if (/[\s\\\u0000-\u001f\u007f]/.test(text) || !URL.canParse(text)) {
    return refuse(
      'url_invalid',
      'The URL is not an absolute URL such as https://example.com/hook.',
    );
  }
  const url = new URL(text);
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:')) {
    return refuse('url_not_https', 'The URL must begin with https://.');
  }
  if (url.username !== '' || url.password !== '') {
    return refuse('url_userinfo', 'The URL must not contain a user name or password.');
  }
  if (url.href.length > URL_LENGTH_MAX) {
    return refuse('url_too_long', `The URL is longer than ${URL_LENGTH_MAX} characters.`);
  }
  return url;
}

function findHostFault(host: string, allowPrivate: boolean): UrlRefusal | null {
  if (isIP(host) !== 0) return null;
  const isThisMachine = host === 'localhost' || host.endsWith('.localhost');
  if (isThisMachine && allowPrivate) return null;
  const isLocal = !host.includes('.') || LOCAL_SUFFIXES.some((suffix) => host.endsWith(suffix));
  if (!isThisMachine && !isLocal) return null;
  return refuse('url_host_not_public', `${host} is not a public host name.`);
}

function addressFault(
  address: string,
  protocol: string,
  { allowPrivate, isDenied }: UrlPolicy,
): UrlRefusal | null {
  if (isDenied?.(address) === true) {
    return refuse('url_host_not_public', `The host is at ${address}, which this service blocks.`);
  }
  if (allowPrivate && isLoopback(address)) return null;
  const refusal = findAddressFault(address);
  if (refusal !== null) {
    return refuse('url_host_not_public', `The host is not on the public internet: ${refusal}.`);
  }
  if (protocol === 'https:') return null;
  return refuse('url_not_https', 'Plain http:// is for this machine only: use https://.');
}

function refuse(code: UrlRefusalCode, message: string): UrlRefusal {
  return { ok: false, code, message };
}
