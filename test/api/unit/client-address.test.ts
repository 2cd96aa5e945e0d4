import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import {
  createClientAddress,
  createNetworkMatcher,
  isTrustedProxies,
  parseCidr,
  toCustomerNetwork,
} from '../../../src/base/networks';

/** Builds the request of a socket, with the header that proxies add. */
function buildRequest(remote: string, forwarded: string | undefined): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: remote });
  const request = new IncomingMessage(socket);
  if (forwarded !== undefined) request.headers['x-forwarded-for'] = forwarded;
  return request;
}

const HTTPS = 'https://pay.example';
const HTTP = 'http://localhost:8080';

test.each([
  // Without the variable: one proxy where pages are https, none else.
  ['', HTTPS, '10.0.0.1', '6.6.6.6, 9.9.9.9', '9.9.9.9'],
  ['', HTTPS, '10.0.0.1', undefined, '10.0.0.1'],
  ['', HTTP, '10.0.0.1', '9.9.9.9', '10.0.0.1'],
  // By the number of proxies.
  ['0', HTTPS, '10.0.0.1', '9.9.9.9', '10.0.0.1'],
  ['1', HTTP, '10.0.0.1', '6.6.6.6, 9.9.9.9', '9.9.9.9'],
  ['2', HTTP, '10.0.0.1', '6.6.6.6, 9.9.9.9, 10.0.0.2', '9.9.9.9'],
  ['2', HTTP, '10.0.0.1', '9.9.9.9', '9.9.9.9'],
  ['2', HTTP, '10.0.0.1', 'unknown, 10.0.0.2', '10.0.0.2'],
  // By their networks: addresses before the first unknown one may be invented.
  ['10.0.0.0/8', HTTPS, '10.0.0.1', '6.6.6.6, 9.9.9.9, 10.3.2.1', '9.9.9.9'],
  ['10.0.0.0/8, ::1', HTTP, '::ffff:10.0.0.1', '9.9.9.9:4711', '9.9.9.9'],
  ['fd00::/8', HTTP, 'fd00::1', '[2001:db8::7]:443', '2001:db8::7'],
  ['10.0.0.0/8', HTTP, '9.9.9.9', '6.6.6.6', '9.9.9.9'],
  ['10.0.0.0/8', HTTP, '10.0.0.1', '10.0.0.2', '10.0.0.2'],
])(
  'with the trusted proxies "%s" at %s, a call from %s, forwarded for "%s", is from %s',
  (trusted, url, socket, list, client) => {
    expect(createClientAddress(trusted, url)(buildRequest(socket, list))).toBe(client);
  },
);

test('trusted proxies are a number or a list of networks, and nothing else', () => {
  for (const text of ['0', '2', '10.0.0.0/8', '10.0.0.0/8,fd00::/8', '::1']) {
    expect(isTrustedProxies(text)).toBe(true);
  }
  for (const text of ['-1', 'loopback', '10.0.0.0/33', '10.0.0.0/8;fd00::/8', '10.0.0/8', '1.5']) {
    expect(isTrustedProxies(text)).toBe(false);
  }
  for (const text of ['', '10.0.0.0/', '10.0.0.0/8/8', 'fe80::1%eth0/64', '::/129']) {
    expect(parseCidr(text)).toBeUndefined();
  }
});

test('an address is in its network in every notation', () => {
  const isIn = createNetworkMatcher(['203.0.113.0/24', '2001:db8::/32', '198.51.100.7']);
  for (const address of ['203.0.113.9', '::ffff:203.0.113.9', '2001:db8:1::1', '198.51.100.7']) {
    expect(isIn(address)).toBe(true);
  }
  for (const address of ['203.0.114.9', '2001:db9::1', '198.51.100.8', 'unknown', '']) {
    expect(isIn(address)).toBe(false);
  }
});

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['2001:db8:1:2:3:4:5::', '2001:db8:1:2::/64'],
  ['unknown', 'unknown'],
])('the network of %s is %s', (address, network) => {
  expect(toCustomerNetwork(address)).toBe(network);
});
