import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { createNetworkMatcher, splitCidrs } from '../base/networks';

const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');

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
 * @returns null for public unicast only: tunnels (6to4, Teredo, NAT64) and reserved ranges are
 * refused, and an IPv4-mapped address is checked as IPv4
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
    return parsed !== null && isInside(parsed.toString());
  };
}

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  // Sockets accept no octal or short forms.
  if (isIPv4(address)) return ipaddr.IPv4.parse(address);
  // A zone (`fe80::1%eth0`) names an interface of this machine.
  if (!isIPv6(address) || address.includes('%')) return null;
  // In hex: `ipaddr` reads the obsolete `::8.8.8.8` as the mapped `::ffff:8.8.8.8`.
  const hex = new URL(`http://[${address}]`).hostname.slice(1, -1);
  return ipaddr.process(hex);
}
