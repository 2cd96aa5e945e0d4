import { addressFault } from '../../src/encryption/wallet-address';

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

const ALL = (['ethereum', 'bitcoin', 'tron'] as const).flatMap((network) =>
  RIGHT[network].map((address) => [network, address] as const),
);

test.each(ALL)(
  'the %s address %s is right, and wrong with one character changed',
  (network, address) => {
    expect(addressFault(network, address, true)).toBeUndefined();
    const last = address.at(-1) === '2' ? '3' : '2';
    expect(addressFault(network, `${address.slice(0, -1)}${last}`, true)).toBeDefined();
    expect(addressFault(network, ` ${address}`, true)).toBeDefined();
  },
);

test.each([
  ['of another network', 'tron', RIGHT.bitcoin[0], /./],
  ['of another network', 'bitcoin', RIGHT.tron[0], /./],
  ['in mixed case', 'bitcoin', 'bc1QW508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', /./],
  ['without a checksum', 'ethereum', RIGHT.ethereum[1].toLowerCase(), /EIP-55/],
] as const)('an address %s is no %s address', (_, network, address, fault) => {
  expect(addressFault(network, address, false)).toMatch(fault);
});

test.each([
  // A first witness version under the checksum of the later ones, and the other way round.
  'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh',
  'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd',
  // Programs of a wrong size, and a version after the last.
  'bc1rw5uspcuh',
  'BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P',
  'BC13W508D6QEJXTDG4Y5R3ZARVARY0C5XW7KN40WF2',
  // Hashes of another size, and one with a leading 1 too many.
  '5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ',
  `1${RIGHT.bitcoin[0]}`,
  '',
])('the text "%s" is no address, though its checksum is right', (text) => {
  expect(addressFault('bitcoin', text, true)).toEqual(expect.any(String));
});

test.each(['tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx', 'mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn'])(
  'the address %s of a test network is only for the sandbox',
  (address) => {
    expect(addressFault('bitcoin', address, false)).toBeUndefined();
    expect(addressFault('bitcoin', address, true)).toBeDefined();
  },
);
