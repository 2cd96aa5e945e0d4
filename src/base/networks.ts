import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

function toPlainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
}

interface Network {
  address: string;
  length: number;
  family: 'ipv4' | 'ipv6';
}

export function parseCidr(text: string): Network | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0 || address.includes('%')) return undefined;
  const lengthMax = version === 4 ? 32 : 128;
  const length =
    bits === undefined ? lengthMax : /^\d{1,3}$/.test(bits) ? Number(bits) : lengthMax + 1;
  return length > lengthMax
    ? undefined
    : { address, length, family: version === 4 ? 'ipv4' : 'ipv6' };
}

/** IPv4 address, or IPv6 network of so many bits. */
export function toCustomerNetwork(address: string, bits = 64): string {
  if (isIP(address) !== 6) return address;
  const [left = '', right] = address.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = right === undefined ? 0 : 8 - left.length - right.length;
  const groups = [...left, ...Array<string>(Math.max(0, zeros)).fill('0'), ...(right ?? [])];
  const prefix = groups.slice(0, bits / 16);
  const hex = prefix.map((group) => Number.parseInt(group, 16).toString(16));
  return `${hex.join(':')}::/${bits}`;
}

export function splitCidrs(text: string): string[] {
  return text.split(',').map((cidr) => cidr.trim());
}

export function areCidrs(text: string): boolean {
  return splitCidrs(text).every((cidr) => parseCidr(cidr) !== undefined);
}

export function createNetworkMatcher(cidrs: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const network = parseCidr(cidr);
    if (network !== undefined) list.addSubnet(network.address, network.length, network.family);
  }
  return (address) => {
    const plain = toPlainAddress(address);
    const version = isIP(plain);
    return version !== 0 && list.check(plain, version === 4 ? 'ipv4' : 'ipv6');
  };
}

const LOOPBACK = createNetworkMatcher(['127.0.0.0/8', '::1']);

export function isLoopback(address: string): boolean {
  return LOOPBACK(address);
}

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
