import fc from 'fast-check';
import * as Bloom from 'ox/Bloom';
import { bytesToHex, type Hex } from 'viem';
import { matchesBloom, mayContain } from '../../../../connectors/evm/blooms';

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((each) => bytesToHex(each));

test('a value is found in a bloom where the chain’s rule finds it', () => {
  fc.assert(
    fc.property(hex(256), hex(20), hex(32), (bloom, address, topic) => {
      const expected = Bloom.contains(bloom, address) && Bloom.contains(bloom, topic);
      expect(mayContain(bloom, [address, topic])).toBe(expected);
    }),
  );
});

const ADDRESS: Hex = '0xef2d6d194084c2de36e0dabfce45d046b37d1106';

test('logs have the bloom of their addresses and topics, and of no fewer', () => {
  const filter = new Uint8Array(256);
  for (let bit = 0; bit < 2_048; bit += 1) {
    const one = new Uint8Array(256);
    one[255 - (bit >> 3)] = 1 << (bit & 7);
    // A bit belongs to the value if the value is not found without it.
    const others = bytesToHex(one.map((byte) => ~byte));
    if (Bloom.contains(others, ADDRESS)) continue;
    const at = 255 - (bit >> 3);
    filter[at] = (filter[at] ?? 0) | (1 << (bit & 7));
  }
  const bloom = bytesToHex(filter);
  expect(matchesBloom(bloom, [{ address: ADDRESS, topics: [] }])).toBe(true);
  expect(matchesBloom(bloom, [])).toBe(false);
  expect(matchesBloom(bloom, [{ address: ADDRESS, topics: [`0x${'1'.repeat(64)}`] }])).toBe(false);
  expect(matchesBloom(`0x${'00'.repeat(256)}`, [])).toBe(true);
});
