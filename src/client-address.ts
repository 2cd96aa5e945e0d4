import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { areCidrs, cidrsOf, networksOf, plainAddress } from './networks';

/** Finds the network address of whoever sent a request. */
export type ClientAddress = (request: IncomingMessage) => string;

/** Whether a text is what `TRUSTED_PROXIES` takes: a number of hops, or CIDRs separated by commas. */
export function isTrustedProxies(text: string): boolean {
  return /^\d{1,2}$/.test(text) || areCidrs(text);
}

/**
 * Reads the address behind the proxies that are trusted: each adds the address that it sees at the
 * end of `X-Forwarded-For`. What stands before the first that is not trusted may be made up.
 * @param trusted as `TRUSTED_PROXIES`; by default one proxy where pages are https, since the service
 *   speaks no TLS, and none else
 * @see docs/operations.md#client-addresses
 */
export function createClientAddress(trusted: string, publicUrl: string): ClientAddress {
  const usual = publicUrl.startsWith('https:') ? '1' : '0';
  const rule = trusted === '' ? usual : trusted;
  const isTrusted = /^\d+$/.test(rule) ? byHops(Number(rule)) : byNetwork(rule);
  return (request) => {
    const forwarded = [request.headers['x-forwarded-for'] ?? []].flat().join(',').split(',');
    let client = plainAddress(request.socket.remoteAddress ?? 'unknown');
    for (let hop = 0; isTrusted(client, hop); hop += 1) {
      const before = addressIn(forwarded.pop() ?? '');
      if (before === undefined) break;
      client = before;
    }
    return client;
  };
}

function byHops(hops: number) {
  return (_address: string, hop: number): boolean => hop < hops;
}

function byNetwork(text: string) {
  const isInside = networksOf(cidrsOf(text));
  return (address: string): boolean => isInside(address);
}

/** Address of an entry, without a port; undefined when it has none. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? text.replace(/^([\d.]+):\d+$/, '$1');
  return isIP(bare) === 0 ? undefined : plainAddress(bare);
}
