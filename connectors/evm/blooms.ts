import { type Hex, hexToBytes, keccak256 } from 'viem';

export interface BloomLog {
  address: Hex;
  topics: readonly Hex[];
}

const BYTES = 256;

export function mayContain(bloom: Hex, values: readonly Hex[]): boolean {
  const filter = hexToBytes(bloom);
  return values.flatMap(getBits).every(({ byte, mask }) => ((filter[byte] ?? 0) & mask) !== 0);
}

/** Whether these are all logs of the block: its header commits to them by the bloom. */
export function matchesBloom(bloom: Hex, logs: readonly BloomLog[]): boolean {
  const filter = new Uint8Array(BYTES);
  for (const { address, topics } of logs) {
    for (const { byte, mask } of [address, ...topics].flatMap(getBits)) {
      filter[byte] = (filter[byte] ?? 0) | mask;
    }
  }
  return hexToBytes(bloom).every((byte, at) => byte === filter[at]);
}

/** Three bits, by the first six bytes of the hash. */
function getBits(value: Hex): { byte: number; mask: number }[] {
  const hash = keccak256(value, 'bytes');
  return [0, 2, 4].map((at) => {
    const bit = (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 0x7ff;
    return { byte: BYTES - 1 - (bit >> 3), mask: 1 << (bit & 7) };
  });
}
