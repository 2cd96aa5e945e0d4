import { sha256 } from '@noble/hashes/sha2';
import { bech32, bech32m, createBase58check } from '@scure/base';
import { checksum } from 'ox/Address';
import { assertNever } from '../domain/assert';
import type { Network } from '../domain/crypto/assets';

const base58check = createBase58check(sha256);

/**
 * @returns why a text is not an address; its checksum is verified, since funds sent to a mistyped
 * one are lost
 * @param livemode refuses addresses of test networks
 */
export function addressFault(
  network: Network,
  address: string,
  livemode: boolean,
): string | undefined {
  switch (network) {
    case 'ethereum':
      if (!/^0x[0-9a-fA-F]{40}$/.test(address)) return 'It must be 0x and 40 hexadecimal digits.';
      if (checksum(address) === address) return undefined;
      return 'Its checksum (EIP-55, in capitals and small letters) is missing or wrong.';
    case 'bitcoin': {
      const versions = livemode ? MAIN_VERSIONS : [...MAIN_VERSIONS, ...TEST_VERSIONS];
      const prefixes = livemode ? [MAIN_PREFIX] : [MAIN_PREFIX, ...TEST_PREFIXES];
      if (isSegwit(address, prefixes) || isHashAddress(address, versions)) return undefined;
      return 'It must be an address of Bitcoin with a right checksum, as bc1…, 1… or 3….';
    }
    case 'tron':
      return isHashAddress(address, [TRON]) ? undefined : 'It must be an address of Tron, as T….';
    default:
      return assertNever(network);
  }
}

const TRON = 0x41;
const MAIN_VERSIONS = [0x00, 0x05];
const TEST_VERSIONS = [0x6f, 0xc4];
const MAIN_PREFIX = 'bc';
const TEST_PREFIXES = ['tb', 'bcrt'];

const ADDRESS_LENGTH_MAX = 90;
const HASH_BYTES = 21;

function isHashAddress(text: string, versions: readonly number[]): boolean {
  if (text.length > ADDRESS_LENGTH_MAX) return false;
  const bytes = tryDecode(() => base58check.decode(text));
  return bytes?.length === HASH_BYTES && versions.some((version) => version === bytes[0]);
}

/** Checks bech32 (BIP-173) for the first witness version, bech32m (BIP-350) for later ones. */
function isSegwit(text: string, prefixes: readonly string[]): boolean {
  const first = bech32.decodeUnsafe(text, ADDRESS_LENGTH_MAX);
  const address = first ?? bech32m.decodeUnsafe(text, ADDRESS_LENGTH_MAX);
  if (address === undefined || !prefixes.includes(address.prefix)) return false;
  const [version = 0, ...program] = address.words;
  if (version > 16 || (version === 0) !== (first !== undefined)) return false;
  const size = tryDecode(() => bech32.fromWords(program))?.length ?? 0;
  return version === 0 ? size === 20 || size === 32 : size >= 2 && size <= 40;
}

function tryDecode(decode: () => Uint8Array): Uint8Array | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
