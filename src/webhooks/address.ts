import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { cidrsOf, networksOf } from '../networks';

/** Part of IPv6 that is handed out as public addresses (RFC 4291 §2.4, IANA). */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');

/** Address by which machines of Azure reach its platform, though it looks public. */
const PLATFORM = '168.63.129.16';

const IN_WORDS: Partial<Record<string, string>> = {
  private: 'a private',
  uniqueLocal: 'a private',
  loopback: 'a loopback',
  linkLocal: 'a link-local',
  carrierGradeNat: 'a carrier-grade NAT',
  multicast: 'a multicast',
  unspecified: 'an unspecified',
};

/**
 * Says why an address may not be posted to; null when it is plain public unicast. Tunnels to other
 * addresses (6to4, Teredo, NAT64) and ranges set aside (documentation, benchmarks) are refused; an
 * IPv4-mapped address is judged by its IPv4 one.
 */
export function addressRefusal(address: string): string | null {
  const parsed = parse(address);
  if (parsed === null) return `"${address}" is not an IP address`;
  if (parsed.toString() === PLATFORM) return `${address} is a cloud platform's address`;
  const range = parsed.range();
  const isPublic = parsed.kind() === 'ipv4' || parsed.match(GLOBAL_UNICAST);
  if (range === 'unicast' && isPublic) return null;
  return `${address} is ${IN_WORDS[range] ?? 'a reserved'} address`;
}

/**
 * Makes a test for addresses that an operator keeps from webhooks, however they are written.
 * @param cidrs separated by commas
 * @see docs/operations.md#on-servers-of-your-own
 */
export function createDenial(cidrs: string): (address: string) => boolean {
  const isInside = networksOf(cidrsOf(cidrs));
  return (address) => {
    const parsed = parse(address);
    return parsed !== null && isInside(parsed.toString());
  };
}

/** Whether the address is this machine's own, however it is written. */
export function isLoopback(address: string): boolean {
  return parse(address)?.range() === 'loopback';
}

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  // Four plain numbers only, as connecting takes them: no octal, no short forms.
  if (isIPv4(address)) return ipaddr.IPv4.parse(address);
  // A zone (`fe80::1%eth0`) names an interface of this machine: never a public address.
  if (!isIPv6(address) || address.includes('%')) return null;
  // In hex, as `ipaddr` takes the obsolete `::8.8.8.8` for the mapped `::ffff:8.8.8.8`.
  const hex = new URL(`http://[${address}]`).hostname.slice(1, -1);
  return ipaddr.process(hex);
}
