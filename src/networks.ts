import { BlockList, isIP } from 'node:net';

/** Address without the prefix under which IPv6 sockets show IPv4. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
}

/** Network of an address and a length, as 203.0.113.0/24; an address alone is its own network. */
interface Network {
  address: string;
  length: number;
  family: 'ipv4' | 'ipv6';
}

/** Parses a CIDR; undefined when it is none. */
export function parseCidr(text: string): Network | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0 || address.includes('%')) return undefined;
  const most = version === 4 ? 32 : 128;
  const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : most + 1;
  return length > most ? undefined : { address, length, family: version === 4 ? 'ipv4' : 'ipv6' };
}

/** Splits a list that is separated by commas. */
export function cidrsOf(text: string): string[] {
  return text.split(',').map((cidr) => cidr.trim());
}

/** Whether a text is a list of CIDRs separated by commas. */
export function areCidrs(text: string): boolean {
  return cidrsOf(text).every((cidr) => parseCidr(cidr) !== undefined);
}

/** Makes a test whether an address is in one of the networks. @param cidrs as `parseCidr` takes them */
export function networksOf(cidrs: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const network = parseCidr(cidr);
    if (network !== undefined) list.addSubnet(network.address, network.length, network.family);
  }
  return (address) => {
    const plain = plainAddress(address);
    const version = isIP(plain);
    return version !== 0 && list.check(plain, version === 4 ? 'ipv4' : 'ipv6');
  };
}
