import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { createNetworkMatcher, splitCidrs } from '../base/networks';

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
