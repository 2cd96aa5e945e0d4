import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { createNetworkMatcher, splitCidrs } from '../base/networks';

const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');

/** Azure's platform address for its virtual machines, which looks public. */
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
 * Explains why an address is refused; null for public unicast. Tunnels (6to4, Teredo, NAT64) and
 * reserved ranges are refused. An IPv4-mapped address is checked as IPv4.
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
 * Creates a check for addresses that an operator blocks.
 * @param cidrs separated by commas
 * @see docs/operations.md#on-servers-of-your-own
 */
export function createDenyCheck(cidrs: string): (address: string) => boolean {
  const isInside = createNetworkMatcher(splitCidrs(cidrs));
  return (address) => {
    const parsed = parse(address);
    return parsed !== null && isInside(parsed.toString());
  };
}

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  // Four decimal numbers only, because sockets accept no octal or short forms.
  if (isIPv4(address)) return ipaddr.IPv4.parse(address);
  // A zone (`fe80::1%eth0`) names an interface of this machine.
  if (!isIPv6(address) || address.includes('%')) return null;
  // In hex, because `ipaddr` reads the obsolete `::8.8.8.8` as the mapped `::ffff:8.8.8.8`.
  const hex = new URL(`http://[${address}]`).hostname.slice(1, -1);
  return ipaddr.process(hex);
}
