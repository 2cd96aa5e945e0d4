import { isIP } from 'node:net';
import { addressRefusal, isLoopback } from './address';
import { createResolver, type Resolve } from './names';

const URL_LENGTH_MAX = 2_048;

type UrlRefusalCode =
  | 'url_invalid'
  | 'url_too_long'
  | 'url_not_https'
  | 'url_userinfo'
  | 'url_host_not_public'
  | 'url_host_unknown';

export interface UrlRefusal {
  ok: false;
  code: UrlRefusalCode;
  message: string;
}

export interface UrlPolicy {
  /** Allows endpoints on this machine, over plain http too; for the sandbox. */
  allowPrivate: boolean;
  /** Says which addresses the operator keeps from webhooks; none when not given. */
  isDenied?: (address: string) => boolean;
  resolve?: Resolve;
}

/** URL that may be posted to, and the only addresses to post it at. */
export interface AdmittedUrl {
  ok: true;
  url: URL;
  /** Host without IPv6 brackets and without a final dot. */
  host: string;
  addresses: string[];
}

const LOCAL_SUFFIXES = ['.local', '.internal', '.localdomain', '.home.arpa', '.lan', '.intranet'];

/** Serves the whole process, since what it keeps is of use to every merchant. */
const resolveName = createResolver();

/**
 * Checks the URL of an endpoint: https, no userinfo, up to 2,048 characters, every address of its
 * host public. With `allowPrivate`, this machine is allowed too, over http as well.
 * @returns the URL as it is to be stored, or the reason in words for the merchant
 */
export async function checkWebhookUrl(
  text: string,
  policy: UrlPolicy,
): Promise<{ ok: true; url: string } | UrlRefusal> {
  const admitted = await admitUrl(text, policy);
  return admitted.ok ? { ok: true, url: admitted.url.href } : admitted;
}

/** Checks a URL at registration and at each attempt, by addresses that are seconds old at most. */
export async function admitUrl(text: string, policy: UrlPolicy): Promise<AdmittedUrl | UrlRefusal> {
  const url = parseUrl(text, policy.allowPrivate);
  if ('code' in url) return url;
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.+$/, '');
  const named = hostRefusal(host, policy.allowPrivate);
  if (named !== null) return named;
  const resolve = policy.resolve ?? resolveName;
  const addresses = isIP(host) === 0 ? await resolve(host).catch(() => []) : [host];
  if (addresses.length === 0) {
    return refuse('url_host_unknown', `The host name ${host} could not be resolved.`);
  }
  // A single forbidden address is enough, since we do not choose which one is connected to.
  for (const address of addresses) {
    const refusal = addressFault(address, url.protocol, policy);
    if (refusal !== null) return refusal;
  }
  return { ok: true, url, host, addresses };
}

function parseUrl(text: string, allowPrivate: boolean): URL | UrlRefusal {
  if (text.length > URL_LENGTH_MAX) {
    return refuse('url_too_long', `The URL is longer than ${URL_LENGTH_MAX} characters.`);
  }
  // The URL parser would drop or turn these silently, and another URL would be registered.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are to be found.
  if (/[\s\\\u0000-\u001f\u007f]/.test(text) || !URL.canParse(text)) {
    return refuse(
      'url_invalid',
      'The URL is not an absolute URL such as https://example.com/hook.',
    );
  }
  const url = new URL(text);
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:')) {
    return refuse('url_not_https', 'The URL has to begin with https://.');
  }
  if (url.username !== '' || url.password !== '') {
    return refuse('url_userinfo', 'The URL must not carry a user name or password.');
  }
  if (url.href.length > URL_LENGTH_MAX) {
    return refuse('url_too_long', `The URL is longer than ${URL_LENGTH_MAX} characters.`);
  }
  return url;
}

function hostRefusal(host: string, allowPrivate: boolean): UrlRefusal | null {
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
    return refuse('url_host_not_public', `The host is at ${address}, which is not posted to here.`);
  }
  if (allowPrivate && isLoopback(address)) return null;
  const refusal = addressRefusal(address);
  if (refusal !== null) {
    return refuse('url_host_not_public', `The host is not on the public internet: ${refusal}.`);
  }
  if (protocol === 'https:') return null;
  return refuse('url_not_https', 'Plain http:// is for this machine only: use https://.');
}

function refuse(code: UrlRefusalCode, message: string): UrlRefusal {
  return { ok: false, code, message };
}
