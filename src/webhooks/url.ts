import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { createNetworkMatcher, isLoopback, splitCidrs } from '../base/networks';

const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');
/** NAT64's prefix that everybody uses, with an IPv4 address behind it. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/** Azure's platform address, which looks public. */
const PLATFORM = '168.63.129.16';

const RANGE_NAMES: Partial<Record<string, string>> = {
  private: 'a private',
  uniqueLocal: 'a private',
  loopback: 'a loopback',
  linkLocal: 'a link-local',
  carrierGradeNat: 'a carrier-grade NAT',
  multicast: 'a multicast',
  unspecified: 'an unspecified',
};

/**
 * @returns null for public unicast only: tunnels (6to4, Teredo) and reserved ranges are refused, and
 * the IPv4 address in a mapped one, or in one of NAT64, is checked
 */
export function findAddressFault(address: string): string | null {
  const parsed = parse(address);
  if (parsed === null) return `"${address}" is not an IP address`;
  if (parsed.toString() === PLATFORM) return `${address} is a cloud platform's address`;
  const range = parsed.range();
  const isPublic = parsed.kind() === 'ipv4' || parsed.match(GLOBAL_UNICAST);
  if (range === 'unicast' && isPublic) return null;
  return `${address} is ${RANGE_NAMES[range] ?? 'a reserved'} address`;
}

/**
 * @param cidrs separated by commas
 * @see docs/operations.md#on-servers-of-your-own
 */
export function createDenyCheck(cidrs: string): (address: string) => boolean {
  const isInside = createNetworkMatcher(splitCidrs(cidrs));
  return (address) => {
    const parsed = parse(address);
    return parsed !== null && (isInside(parsed.toString()) || isInside(address));
  };
}

/** Reads the IPv4 address in a mapped one, or in one of NAT64; any other stays. */
export function toHostAddress(address: string): string {
  return parse(address)?.toString() ?? address;
}

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  // Sockets accept no octal or short forms.
  if (isIPv4(address)) return ipaddr.IPv4.parse(address);
  // A zone (`fe80::1%eth0`) names an interface of this machine.
  if (!isIPv6(address) || address.includes('%')) return null;
  // In hex: `ipaddr` reads the obsolete `::8.8.8.8` as the mapped `::ffff:8.8.8.8`.
  const hex = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const parsed = ipaddr.process(hex);
  // Name servers of networks without IPv4 add one for each IPv4 address; a gateway connects to that.
  const isNat64 = parsed instanceof ipaddr.IPv6 && parsed.match(NAT64);
  return isNat64 ? new ipaddr.IPv4(parsed.toByteArray().slice(-4)) : parsed;
}

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

interface UrlRefusal {
  ok: false;
  code: UrlRefusalCode;
  message: string;
}

interface UrlPolicy {
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
  const isThisMachine = host === 'localhost' || host.endsWith('.localhost');
  const isLocal = !host.includes('.') || LOCAL_SUFFIXES.some((suffix) => host.endsWith(suffix));
  const isRefused = isThisMachine ? !policy.allowPrivate : isLocal;
  if (isIP(host) === 0 && isRefused) {
    return refuse('url_host_not_public', `${host} is not a public host name.`);
  }
  const resolve = policy.resolve ?? resolveName;
  const all = isIP(host) === 0 ? await resolve(host).catch(() => []) : [host];
  const { allowPrivate, isDenied } = policy;
  const refusals = all.map((address) => {
    if (isDenied?.(address) === true) {
      return refuse('url_host_not_public', `The host is at ${address}, which this service blocks.`);
    }
    if (allowPrivate && isLoopback(address)) return null;
    const fault = findAddressFault(address);
    if (fault !== null) {
      const message = `The host is not on the public internet: ${fault}.`;
      return refuse('url_host_not_public', message);
    }
    if (url.protocol === 'https:') return null;
    return refuse('url_not_https', 'Plain http:// is for this machine only: use https://.');
  });
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

function refuse(code: UrlRefusalCode, message: string): UrlRefusal {
  return { ok: false, code, message };
}

/** @throws Error when the host has no address */
export type Resolve = (host: string) => Promise<string[]>;

interface NameOptions {
  /** `address:port`; by default the system's. */
  servers?: string[];
  hostsFile?: string;
  timeoutMs?: number;
  now?: () => number;
}

const HOSTS_FILE =
  process.platform === 'win32' ? 'C:\\Windows\\System32\\drivers\\etc\\hosts' : '/etc/hosts';
const LOOK_UP_MS = 4_000;
/** Timeout of one name server; doubles in each round. */
const SERVER_MS = 1_000;
const SERVER_TRIES = 2;
const CACHE_MS = 10_000;
const FAILURE_CACHE_MS = 5_000;
const NAMES_MAX = 10_000;
const LOOPBACK = ['127.0.0.1', '::1'];

interface CacheEntry {
  answer: Promise<string[]>;
  /** Infinity during the lookup. */
  until: number;
}

/**
 * Resolves without blocking others: by sockets instead of the process's few threads, with a
 * deadline, and once for all callers of a name.
 */
export function createResolver(options: NameOptions = {}): Resolve {
  const { timeoutMs = LOOK_UP_MS, hostsFile = HOSTS_FILE, servers } = options;
  const now = options.now ?? (() => performance.now());
  const cache = new Map<string, CacheEntry>();
  const lookUp = async (host: string): Promise<string[]> => {
    let lines: string[] = [];
    try {
      lines = readFileSync(hostsFile, 'utf8').split('\n');
    } catch {
      // A container may have none.
    }
    const listed = lines
      .map((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/))
      .filter(([, ...names]) => names.includes(host))
      .flatMap(([address = '']) => (isIP(address) === 0 ? [] : [address]));
    const isLocal = host === 'localhost' || host.endsWith('.localhost');
    const localAddresses = [...new Set(isLocal ? [...listed, ...LOOPBACK] : listed)];
    if (localAddresses.length > 0) return localAddresses;
    const resolver = new Resolver({ timeout: SERVER_MS, tries: SERVER_TRIES });
    if (servers !== undefined) resolver.setServers(servers);
    const timer = setTimeout(() => resolver.cancel(), timeoutMs);
    // Either address family may fail.
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    clearTimeout(timer);
    const addresses = answers.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    if (addresses.length === 0) throw new Error(`${host} has no address.`);
    return addresses;
  };
  return (host) => {
    const name = host.toLowerCase();
    const existing = cache.get(name);
    if (existing !== undefined && existing.until > now()) return existing.answer;
    const entry: CacheEntry = { answer: lookUp(name), until: Number.POSITIVE_INFINITY };
    cache.delete(name);
    cache.set(name, entry);
    entry.answer.then(
      () => {
        entry.until = now() + CACHE_MS;
      },
      () => {
        entry.until = now() + FAILURE_CACHE_MS;
      },
    );
    // Their callers still get the result.
    for (const oldest of cache.keys()) {
      if (cache.size <= NAMES_MAX) break;
      cache.delete(oldest);
    }
    return entry.answer;
  };
}

const resolveName = createResolver();
