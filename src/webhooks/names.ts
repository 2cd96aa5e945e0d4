import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

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
    const localAddresses = findLocalAddresses(host, hostsFile);
    return localAddresses.length > 0 ? localAddresses : await queryDns(host, servers, timeoutMs);
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

function findLocalAddresses(host: string, hostsFile: string): string[] {
  const listed = readHosts(hostsFile)
    .filter(([, ...names]) => names.includes(host))
    .flatMap(([address = '']) => (isIP(address) === 0 ? [] : [address]));
  const isLocal = host === 'localhost' || host.endsWith('.localhost');
  return [...new Set(isLocal ? [...listed, ...LOOPBACK] : listed)];
}

function readHosts(hostsFile: string): string[][] {
  try {
    const lines = readFileSync(hostsFile, 'utf8').split('\n');
    return lines.map((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/));
  } catch {
    return [];
  }
}

/** Either address family may fail. */
async function queryDns(
  host: string,
  servers: string[] | undefined,
  timeoutMs: number,
): Promise<string[]> {
  const resolver = new Resolver({ timeout: SERVER_MS, tries: SERVER_TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  const timer = setTimeout(() => resolver.cancel(), timeoutMs);
  try {
    const queries = [resolver.resolve4(host), resolver.resolve6(host)];
    const answers = await Promise.allSettled(queries);
    const addresses = answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? answer.value : [],
    );
    if (addresses.length === 0) throw new Error(`${host} has no address.`);
    return addresses;
  } finally {
    clearTimeout(timer);
  }
}
