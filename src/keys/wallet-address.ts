import { createHash } from 'node:crypto';
import { assertNever } from '../domain/assert';
import type { Network } from '../domain/crypto';
import { keccak256 } from './keccak';

/**
 * Finds why a text is no address of a wallet on a network; undefined when it is one. Every address
 * carries a checksum, which is verified: coins sent to a mistyped one are lost.
 * @param livemode whether addresses of test networks are refused
 */
export function addressFault(
  network: Network,
  address: string,
  livemode: boolean,
): string | undefined {
  switch (network) {
    case 'ethereum':
      return ethereumFault(address);
    case 'bitcoin':
      return bitcoinFault(address, livemode);
    case 'tron':
      return isBase58(address, [0x41]) ? undefined : 'It must be an address of Tron, as T….';
    default:
      return assertNever(network);
  }
}

/** Checks EIP-55: a letter is a capital where the hash of the address has a digit from 8 on. */
function ethereumFault(address: string): string | undefined {
  if (!/^0x[0-9a-fA-F]{40}$/.test(address)) return 'It must be 0x and 40 hexadecimal digits.';
  const digits = address.slice(2).toLowerCase();
  const hash = keccak256(Buffer.from(digits)).toString('hex');
  const checked = [...digits].map((digit, place) =>
    Number.parseInt(hash.charAt(place), 16) >= 8 ? digit.toUpperCase() : digit,
  );
  if (`0x${checked.join('')}` === address) return undefined;
  return 'Its checksum (EIP-55, in capitals and small letters) is missing or wrong.';
}

/** Hash versions of the main network, and of the test networks. */
const MAIN_VERSIONS = [0x00, 0x05];
const TEST_VERSIONS = [0x6f, 0xc4];
const MAIN_PREFIX = 'bc';
const TEST_PREFIXES = ['tb', 'bcrt'];

function bitcoinFault(address: string, livemode: boolean): string | undefined {
  const versions = livemode ? MAIN_VERSIONS : [...MAIN_VERSIONS, ...TEST_VERSIONS];
  const prefixes = livemode ? [MAIN_PREFIX] : [MAIN_PREFIX, ...TEST_PREFIXES];
  if (isSegwit(address, prefixes) || isBase58(address, versions)) return undefined;
  return 'It must be an address of Bitcoin with a right checksum, as bc1…, 1… or 3….';
}

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
/** Version, hash of 20 bytes, and the first four bytes of its double hash. */
const BASE58_BYTES = 25;

function isBase58(text: string, versions: readonly number[]): boolean {
  if (!/^[1-9A-HJ-NP-Za-km-z]{25,36}$/.test(text)) return false;
  let value = 0n;
  for (const char of text) value = value * 58n + BigInt(BASE58.indexOf(char));
  const hex = value.toString(16).padStart(BASE58_BYTES * 2, '0');
  if (hex.length !== BASE58_BYTES * 2) return false;
  const bytes = Buffer.from(hex, 'hex');
  // Each leading zero byte is written as a 1, so that a text has one reading only.
  const zeros = /^1*/.exec(text)?.[0].length ?? 0;
  const isExact = bytes.findIndex((byte) => byte !== 0) === zeros;
  const payload = bytes.subarray(0, BASE58_BYTES - 4);
  const checksum = sha256(sha256(payload)).subarray(0, 4);
  return (
    isExact &&
    checksum.equals(bytes.subarray(BASE58_BYTES - 4)) &&
    versions.includes(bytes.readUInt8(0))
  );
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}

const BECH32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
/** Remainders of a right checksum: of a first witness version, and of any later one. */
const BECH32_REMAINDER = 1;
const BECH32M_REMAINDER = 0x2bc830a3;

/** Checks bech32 (BIP-173) and bech32m (BIP-350). */
function isSegwit(text: string, prefixes: readonly string[]): boolean {
  if (text !== text.toLowerCase() && text !== text.toUpperCase()) return false;
  const [, prefix = '', data = ''] =
    /^([a-z]{2,4})1([02-9ac-hj-np-z]{8,87})$/.exec(text.toLowerCase()) ?? [];
  if (!prefixes.includes(prefix)) return false;
  const words = [...data].map((char) => BECH32.indexOf(char));
  const [version = 0] = words;
  const remainder = version === 0 ? BECH32_REMAINDER : BECH32M_REMAINDER;
  const size = witnessBytes(words.slice(1, -6));
  if (version > 16 || polymod([...expanded(prefix), ...words]) !== remainder) return false;
  return version === 0 ? size === 20 || size === 32 : size >= 2 && size <= 40;
}

function expanded(prefix: string): number[] {
  const codes = [...prefix].map((char) => char.charCodeAt(0));
  return [...codes.map((code) => code >> 5), 0, ...codes.map((code) => code & 31)];
}

/** Bytes of a witness program in words of five bits; -1 where what is left over is no padding. */
function witnessBytes(words: readonly number[]): number {
  const spare = (words.length * 5) % 8;
  const last = words.at(-1) ?? 0;
  if (spare > 4 || (last & ((1 << spare) - 1)) !== 0) return -1;
  return Math.floor((words.length * 5) / 8);
}

const GENERATORS = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];

function polymod(values: readonly number[]): number {
  let sum = 1;
  for (const value of values) {
    const top = sum >>> 25;
    sum = ((sum & 0x1ffffff) << 5) ^ value;
    GENERATORS.forEach((generator, bit) => {
      if ((top >>> bit) & 1) sum ^= generator;
    });
  }
  return sum;
}
