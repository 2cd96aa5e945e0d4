import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

/** Finds all addresses of a host name; rejects when it has none, or can't be looked up. */
export type Resolve = (host: string) => Promise<string[]>;

interface NameOptions {
  /** Name servers, `address:port`; those of the system when not given. */
  servers?: string[];
  /** The machine's own table of names. */
  hostsFile?: string;
  /** Time for a whole look-up; it is given up then, not left to go on. */
  timeoutMs?: number;
  /** Milliseconds of a clock that only goes forward. */
  now?: () => number;
}

const HOSTS_FILE =
  process.platform === 'win32' ? 'C:\\Windows\\System32\\drivers\\etc\\hosts' : '/etc/hosts';
const LOOK_UP_MS = 4_000;
/** Time for one name server, which doubles each time around. */
const SERVER_MS = 1_000;
const SERVER_TRIES = 2;
/** How long an answer is kept, and how long a failure. */
const FOUND_MS = 10_000;
const FAILED_MS = 5_000;
const NAMES_MAX = 10_000;
const LOOPBACK = ['127.0.0.1', '::1'];

interface Kept {
  answer: Promise<string[]>;
  /** Infinity while the look-up is under way. */
  until: number;
}

/**
 * Makes a resolver of which no name can take the turn of another: it waits on sockets of its own and
 * not on the few threads of the process, gives up in time, and has one look-up under way for a name,
 * however many ask. Answers are kept for seconds.
 */
export function createResolver(options: NameOptions = {}): Resolve {
  const { timeoutMs = LOOK_UP_MS, hostsFile = HOSTS_FILE, servers } = options;
  const now = options.now ?? (() => performance.now());
  const kept = new Map<string, Kept>();
  const lookUp = async (host: string): Promise<string[]> => {
    const own = ownNames(host, hostsFile);
    return own.length > 0 ? own : await ask(host, servers, timeoutMs);
  };
  return (host) => {
    const name = host.toLowerCase();
    const before = kept.get(name);
    if (before !== undefined && before.until > now()) return before.answer;
    const entry: Kept = { answer: lookUp(name), until: Number.POSITIVE_INFINITY };
    kept.delete(name);
    kept.set(name, entry);
    entry.answer.then(
      () => {
        entry.until = now() + FOUND_MS;
      },
      () => {
        entry.until = now() + FAILED_MS;
      },
    );
    // The oldest goes first; who waits for it has its answer all the same.
    for (const oldest of kept.keys()) {
      if (kept.size <= NAMES_MAX) break;
      kept.delete(oldest);
    }
    return entry.answer;
  };
}

/** Addresses that this machine gives a name by itself. */
function ownNames(host: string, hostsFile: string): string[] {
  const listed = readHosts(hostsFile)
    .filter(([, ...names]) => names.includes(host))
    .flatMap(([address = '']) => (isIP(address) === 0 ? [] : [address]));
  const isLocal = host === 'localhost' || host.endsWith('.localhost');
  return [...new Set(isLocal ? [...listed, ...LOOPBACK] : listed)];
}

/** Lines of the table in words; a machine need not have one. */
function readHosts(hostsFile: string): string[][] {
  try {
    const lines = readFileSync(hostsFile, 'utf8').split('\n');
    return lines.map((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/));
  } catch {
    return [];
  }
}

/** Asks for both kinds of address; one that fails is nothing while the other is there. */
async function ask(
  host: string,
  servers: string[] | undefined,
  timeoutMs: number,
): Promise<string[]> {
  const resolver = new Resolver({ timeout: SERVER_MS, tries: SERVER_TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  const timer = setTimeout(() => resolver.cancel(), timeoutMs);
  try {
    const asked = [resolver.resolve4(host), resolver.resolve6(host)];
    const answers = await Promise.allSettled(asked);
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (found.length === 0) throw new Error(`No address of ${host} was found.`);
    return found;
  } finally {
    clearTimeout(timer);
  }
}
