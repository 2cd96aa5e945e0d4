/**
 * Keccak-256 as Ethereum uses it, with the padding from before SHA-3, which Node's own hashes lack.
 * Made for addresses: a few bytes at a time.
 */

const RATE_BYTES = 136;
const LANE_MASK = (1n << 64n) - 1n;

const ROUND_CONSTANTS = [
  0x0000000000000001n,
  0x0000000000008082n,
  0x800000000000808an,
  0x8000000080008000n,
  0x000000000000808bn,
  0x0000000080000001n,
  0x8000000080008081n,
  0x8000000000008009n,
  0x000000000000008an,
  0x0000000000000088n,
  0x0000000080008009n,
  0x000000008000000an,
  0x000000008000808bn,
  0x800000000000008bn,
  0x8000000000008089n,
  0x8000000000008003n,
  0x8000000000008002n,
  0x8000000000000080n,
  0x000000000000800an,
  0x800000008000000an,
  0x8000000080008081n,
  0x8000000000008080n,
  0x0000000080000001n,
  0x8000000080008008n,
] as const;

/** Lane that each step of the walk moves to, and by how many bits it is rotated. */
const WALK = [
  [10, 1],
  [7, 3],
  [11, 6],
  [17, 10],
  [18, 15],
  [3, 21],
  [5, 28],
  [16, 36],
  [8, 45],
  [21, 55],
  [24, 2],
  [4, 14],
  [15, 27],
  [23, 41],
  [19, 56],
  [13, 8],
  [12, 25],
  [2, 43],
  [20, 62],
  [14, 18],
  [22, 39],
  [9, 61],
  [6, 20],
  [1, 44],
] as const;

export function keccak256(data: Buffer): Buffer {
  const padding = Buffer.alloc(RATE_BYTES - (data.length % RATE_BYTES));
  padding[0] = 0x01;
  padding.writeUInt8(padding.readUInt8(padding.length - 1) | 0x80, padding.length - 1);
  const padded = Buffer.concat([data, padding]);
  const lanes = new BigUint64Array(25);
  for (let start = 0; start < padded.length; start += RATE_BYTES) {
    for (let lane = 0; lane < RATE_BYTES / 8; lane += 1) {
      lanes[lane] = at(lanes, lane) ^ padded.readBigUInt64LE(start + lane * 8);
    }
    permute(lanes);
  }
  const digest = Buffer.alloc(32);
  for (let lane = 0; lane < 4; lane += 1) digest.writeBigUInt64LE(at(lanes, lane), lane * 8);
  return digest;
}

function permute(lanes: BigUint64Array): void {
  for (const constant of ROUND_CONSTANTS) {
    const parity = [0, 1, 2, 3, 4].map((x) =>
      [0, 5, 10, 15, 20].reduce((sum, y) => sum ^ at(lanes, x + y), 0n),
    );
    for (let lane = 0; lane < 25; lane += 1) {
      const [left = 0n, right = 0n] = [parity[(lane + 4) % 5], parity[(lane + 1) % 5]];
      lanes[lane] = at(lanes, lane) ^ left ^ rotated(right, 1);
    }
    let carried = at(lanes, 1);
    for (const [lane, bits] of WALK) {
      const next = at(lanes, lane);
      lanes[lane] = rotated(carried, bits);
      carried = next;
    }
    for (let row = 0; row < 25; row += 5) {
      const before = [0, 1, 2, 3, 4].map((x) => at(lanes, row + x));
      for (let x = 0; x < 5; x += 1) {
        const [one = 0n, two = 0n, three = 0n] = [
          before[x],
          before[(x + 1) % 5],
          before[(x + 2) % 5],
        ];
        lanes[row + x] = one ^ (~two & LANE_MASK & three);
      }
    }
    lanes[0] = at(lanes, 0) ^ constant;
  }
}

function at(lanes: BigUint64Array, lane: number): bigint {
  return lanes[lane] ?? 0n;
}

function rotated(value: bigint, bits: number): bigint {
  return ((value << BigInt(bits)) | (value >> BigInt(64 - bits))) & LANE_MASK;
}
