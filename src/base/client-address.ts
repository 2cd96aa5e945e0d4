import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { areCidrs, createNetworkMatcher, splitCidrs, toPlainAddress } from './networks';

export type ClientAddress = (request: IncomingMessage) => string;

export function isTrustedProxies(text: string): boolean {
  return /^\d{1,2}$/.test(text) || areCidrs(text);
}

/**
 * Reads the address behind the trusted proxies, which each append to `X-Forwarded-For`. Entries
 * before the first untrusted proxy may be forged.
 * @param trustedProxies hops or CIDRs; empty: one proxy if pages are https, else none
 * @see docs/operations.md#client-addresses
 */
export function createClientAddress(trustedProxies: string, publicUrl: string): ClientAddress {
  const defaultRule = publicUrl.startsWith('https:') ? '1' : '0';
  const rule = trustedProxies === '' ? defaultRule : trustedProxies;
  const isInside = createNetworkMatcher(splitCidrs(rule));
  const isTrusted = (address: string, hop: number) =>
    /^\d+$/.test(rule) ? hop < Number(rule) : isInside(address);
  return (request) => {
    const forwardedFor = [request.headers['x-forwarded-for'] ?? []].flat().join(',').split(',');
    let client = toPlainAddress(request.socket.remoteAddress ?? 'unknown');
    for (let hop = 0; isTrusted(client, hop); hop += 1) {
      const entry = (forwardedFor.pop() ?? '').trim();
      const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1];
      const previous = bracketed ?? entry.replace(/^([\d.]+):\d+$/, '$1');
      if (isIP(previous) === 0) break;
      client = toPlainAddress(previous);
    }
    return client;
  };
}
