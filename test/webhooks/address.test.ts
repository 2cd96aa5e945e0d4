import { isLoopback } from '../../src/base/networks';
import { findAddressFault } from '../../src/webhooks/address';

test.each(['8.8.8.8', '93.184.216.34', '2606:4700:4700::1111', '::ffff:8.8.8.8', '172.32.0.1'])(
  '%s is public',
  (address) => expect(findAddressFault(address)).toBeNull(),
);

test.each([
  ['127.0.0.1', 'a loopback'],
  ['127.255.255.254', 'a loopback'],
  ['::1', 'a loopback'],
  ['::ffff:127.0.0.1', 'a loopback'],
  ['::ffff:7f00:1', 'a loopback'],
  ['10.0.0.1', 'a private'],
  ['172.16.0.1', 'a private'],
  ['172.31.255.255', 'a private'],
  ['192.168.0.1', 'a private'],
  ['::ffff:192.168.0.1', 'a private'],
  ['fc00::1', 'a private'],
  ['fdff::1', 'a private'],
  ['169.254.169.254', 'a link-local'],
  ['fe80::1', 'a link-local'],
  ['100.64.0.1', 'a carrier-grade NAT'],
  ['100.127.255.255', 'a carrier-grade NAT'],
  ['0.0.0.0', 'an unspecified'],
  ['0.1.2.3', 'an unspecified'],
  ['::', 'an unspecified'],
  ['224.0.0.1', 'a multicast'],
  ['ff02::1', 'a multicast'],
  ['255.255.255.255', 'a reserved'],
  ['168.63.129.16', "a cloud platform's"],
  ['::ffff:168.63.129.16', "a cloud platform's"],
  ['240.0.0.1', 'a reserved'],
  ['192.0.0.8', 'a reserved'],
  ['192.0.2.1', 'a reserved'],
  ['198.51.100.1', 'a reserved'],
  ['203.0.113.1', 'a reserved'],
  ['198.18.0.1', 'a reserved'],
  ['192.88.99.1', 'a reserved'],
  ['2001:db8::1', 'a reserved'],
  ['3fff::1', 'a reserved'],
  ['2002:7f00:1::', 'a reserved'],
  ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'a reserved'],
  ['64:ff9b::7f00:1', 'a reserved'],
  ['64:ff9b::8.8.8.8', 'a reserved'],
  ['64:ff9b:1::1', 'a reserved'],
  ['::ffff:0:127.0.0.1', 'a reserved'],
  ['::127.0.0.1', 'a reserved'],
  ['::8.8.8.8', 'a reserved'],
  ['fec0::1', 'a reserved'],
  ['100::1', 'a reserved'],
  ['5f00::1', 'a reserved'],
  ['4000::1', 'a reserved'],
])('%s is refused as %s address', (address, kind) => {
  expect(findAddressFault(address)).toBe(`${address} is ${kind} address`);
});

test.each([
  '',
  'example.com',
  '0x7f.1',
  '127.1',
  '2130706433',
  '010.0.0.1',
  'fe80::1%eth0',
  '2606::%1',
])('%p is no plain address, and refused', (text) =>
  expect(findAddressFault(text)).toBe(`"${text}" is not an IP address`),
);

test('this machine is known in every way of writing it', () => {
  const own = ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'];
  const other = [
    '10.0.0.1',
    '0.0.0.0',
    '::',
    '8.8.8.8',
    'localhost',
    '::127.0.0.1',
    '64:ff9b::127.0.0.1',
  ];
  expect([...own, ...other].filter(isLoopback)).toEqual(own);
});
