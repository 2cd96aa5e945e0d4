import { keccak256 } from '../../src/keys/keccak';
import { addressFault } from '../../src/keys/wallet-address';

test('keccak-256 has the known digests, over one block and more', () => {
  const digest = (text: string) => keccak256(Buffer.from(text)).toString('hex');
  expect(digest('')).toBe('c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470');
  expect(digest('abc')).toBe('4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45');
});

const RIGHT = {
  ethereum: [
    '0x52908400098527886E0F7030069857D2E4169EE7',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ],
  bitcoin: [
    '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa',
    '3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    'BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4',
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0',
  ],
  tron: ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'],
} as const;

test.each(Object.entries(RIGHT))(
  '%s: right addresses pass, with one character off they fail',
  (...of) => {
    const [name, addresses] = of;
    const network = name === 'ethereum' || name === 'bitcoin' ? name : 'tron';
    for (const address of addresses) {
      expect([address, addressFault(network, address, true)]).toEqual([address, undefined]);
      const last = address.at(-1) === '2' ? '3' : '2';
      expect(addressFault(network, `${address.slice(0, -1)}${last}`, true)).toBeDefined();
      expect(addressFault(network, ` ${address}`, true)).toBeDefined();
    }
  },
);

test('an address without a checksum, or of another network, is refused', () => {
  const [ethereum, bitcoin] = [RIGHT.ethereum[1], RIGHT.bitcoin[0]];
  expect(addressFault('ethereum', ethereum.toLowerCase(), false)).toMatch(/EIP-55/);
  expect(addressFault('tron', bitcoin, false)).toBeDefined();
  expect(addressFault('bitcoin', RIGHT.tron[0], false)).toBeDefined();
  expect(
    addressFault('bitcoin', 'bc1QW508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', false),
  ).toBeDefined();
});

test('addresses of test networks are for the sandbox', () => {
  for (const address of [
    'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx',
    'mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn',
  ]) {
    expect(addressFault('bitcoin', address, false)).toBeUndefined();
    expect(addressFault('bitcoin', address, true)).toBeDefined();
  }
});
