import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isLoopback } from '../../src/base/networks';
import {
  checkWebhookUrl,
  createDenyCheck,
  createResolver,
  findAddressFault,
  type Resolve,
} from '../../src/webhooks/url';

describe('an address of a webhook', () => {
  test.each([
    ...['8.8.8.8', '93.184.216.34', '2606:4700:4700::1111', '::ffff:8.8.8.8', '172.32.0.1'],
    // By NAT64.
    ...['64:ff9b::8.8.8.8', '64:ff9b::5db8:d822', '64:FF9B:0:0:0:0:5DB8:D822'],
  ])('may be %s, which is public', (address) => expect(findAddressFault(address)).toBeNull());

  test.each([
    ['a loopback', ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1']],
    ['a private', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.0.1', 'fc00::1']],
    ['a link-local', ['169.254.169.254', 'fe80::1']],
    ['a carrier-grade NAT', ['100.64.0.1', '100.127.255.255']],
    ['an unspecified', ['0.0.0.0', '0.1.2.3', '::']],
    ['a multicast', ['224.0.0.1', 'ff02::1']],
    ["a cloud platform's", ['168.63.129.16', '::ffff:168.63.129.16', '64:ff9b::168.63.129.16']],
    // By NAT64.
    ['a loopback', ['64:ff9b::7f00:1', '64:ff9b::127.255.255.254']],
    ['a private', ['64:ff9b::10.0.0.1', '64:ff9b::172.16.0.1', '64:ff9b::c0a8:1']],
    ['a link-local', ['64:ff9b::a9fe:a9fe']],
    ['a carrier-grade NAT', ['64:ff9b::100.64.0.1']],
    ['a reserved', ['64:ff9b::c000:201', '64:ff9b::1:8.8.8.8', '64:ff9b:1::8.8.8.8']],
    // For documentation and measurements.
    ['a reserved', ['192.0.2.1', '198.51.100.1', '203.0.113.1', '198.18.0.1', '2001:db8::1']],
    ['a reserved', ['192.0.0.8', '192.88.99.1', '240.0.0.1', '255.255.255.255', '3fff::1']],
    // With an IPv4 address inside, which a gateway would reach.
    ['a reserved', ['2002:7f00:1::', '2001:0:4136:e378:8000:63bf:3fff:fdd2']],
    ['a reserved', ['64:ff9b:1::1', '::ffff:0:127.0.0.1', '::127.0.0.1']],
  ])('cannot be %s address such as %j', (kind, addresses) => {
    expect(addresses.map(findAddressFault)).toEqual(
      addresses.map((address) => `${address} is ${kind} address`),
    );
  });

  test('must be written plainly', () => {
    const names = ['', 'example.com', '0x7f.1', '127.1', '2130706433', '010.0.0.1'];
    const texts = [...names, 'fe80::1%eth0', '2606::%1'];
    expect(texts.map(findAddressFault)).toEqual(
      texts.map((text) => `"${text}" is not an IP address`),
    );
  });

  test('is of this machine in each of its notations', () => {
    const own = ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'];
    const similar = ['::127.0.0.1', '64:ff9b::127.0.0.1', 'localhost'];
    const others = ['10.0.0.1', '0.0.0.0', '::', '8.8.8.8', ...similar];
    expect([...own, ...others].filter(isLoopback)).toEqual(own);
  });
});

type Policy = Parameters<typeof checkWebhookUrl>[1];

const PUBLIC: Resolve = async () => ['93.184.216.34', '2606:4700:4700::1111'];
const noLookUp: Resolve = () => Promise.reject(new Error('A literal must not be resolved.'));
const OWN = { allowPrivate: true };
const DENYING = { isDenied: createDenyCheck('198.18.7.0/24, 93.184.216.0/24,2606:4700::/32') };

const check = (url: string, policy: Partial<Policy> = {}) =>
  checkWebhookUrl(url, { allowPrivate: false, resolve: PUBLIC, ...policy });

describe('a webhook URL', () => {
  const at = (...addresses: string[]): Partial<Policy> => ({ resolve: async () => addresses });
  const MIXED = at('10.0.0.7', '64:ff9b::7f00:1', 'fe80::1%eth0', '64:ff9b::5db8:d822');
  const ALL = { isDenied: createDenyCheck('') };
  test.each<[where: string, policy: Partial<Policy>, urls: string[]]>([
    ['on the internet', {}, ['https://example.com/hooks?tenant=7', 'https://example.com./']],
    ['on the internet', {}, ['https://example.com:8443/', 'https://bücher.example.com/']],
    ['of 2,048 characters', {}, [`https://example.com/${'a'.repeat(2_028)}`]],
    ['of this machine where that is allowed', OWN, ['http://127.0.0.1:4000/', 'http://[::1]:4/']],
    ['of this machine where that is allowed', OWN, ['https://127.0.0.1/']],
    ['this machine by name', { ...OWN, ...at('127.0.0.1', '::1') }, ['http://localhost:4000/hook']],
    ['of this machine next to a denied network', { ...OWN, ...DENYING }, ['http://127.0.0.1:4/']],
    [
      'outside a denied network',
      { ...DENYING, ...at('8.8.8.8', '93.184.217.1') },
      ['https://example.com/'],
    ],
    ['on the internet at one of its addresses', MIXED, ['https://example.com/']],
    ['anywhere for an empty list of denied networks', ALL, ['https://93.184.216.34/']],
  ])('may be %s', async (_where, policy, urls) => {
    for (const url of urls) {
      expect(await check(url, policy)).toEqual({ ok: true, url: new URL(url).href });
    }
  });

  test.each([
    ['url_invalid', ['', 'example.com/hook', '/hook', 'https://', ' https://example.com/']],
    ['url_invalid', ['https://exa\nmple.com/', 'https:\\\\example.com\\']],
    ['url_not_https', ['http://example.com/', 'ftp://example.com/', 'javascript:alert(1)']],
    ['url_userinfo', ['https://user:secret@example.com/', 'https://example.com@127.0.0.1/']],
    ['url_too_long', [`https://example.com/${'a'.repeat(2_029)}`]],
    ['url_too_long', [`https://example.com/${'é'.repeat(1_000)}`]],
    ['url_host_not_public', ['https://localhost/', 'https://LOCALHOST./', 'https://mongodb/']],
    ['url_host_not_public', ['https://api.localhost/', 'https://metadata.google.internal/']],
    ['url_host_not_public', ['https://metadata.google.internal../']],
  ])('is refused as %s: %j', async (code, urls) => {
    const message = expect.stringMatching(/^[A-Za-z].*\.$/);
    for (const url of urls) expect(await check(url)).toEqual({ ok: false, code, message });
  });

  test.each([
    ['numbers', ['127.0.0.1', '127.0.0.1.', '169.254.169.254', '0']],
    ['other bases and lengths', ['127.1', '0x7f.1', '0x7f000001', '0177.0.0.1', '2130706433']],
    ['escapes', ['%31%32%37.0.0.1']],
    ['Unicode', ['１２７.０.０.１', '①②⑦.0.0.1', '127。0。0。1', 'ｌｏｃａｌｈｏｓｔ']],
    ['IPv6', ['[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::]', '[2002:7f00:1::]']],
  ])('with a private address in %s is refused without a look-up', async (_, hosts) => {
    for (const host of hosts) {
      const result = await check(`https://${host}/latest/meta-data/`, { resolve: noLookUp });
      expect([host, result]).toMatchObject([host, { ok: false, code: 'url_host_not_public' }]);
    }
  });

  const PRIVATE = 'The host is not on the public internet: 10.0.0.7 is a private address.';
  const NO_ADDRESS = 'The host name example.com could not be resolved.';
  test.each<[string, Resolve, string, string]>([
    ['private ones', async () => ['10.0.0.7', '64:ff9b::a00:7'], 'url_host_not_public', PRIVATE],
    ['none', async () => [], 'url_host_unknown', NO_ADDRESS],
    ['an error', () => Promise.reject(new Error('EAI_AGAIN')), 'url_host_unknown', NO_ADDRESS],
  ])('is refused when its name resolves to %s', async (_, resolve, code, message) => {
    expect(await check('https://example.com/', { resolve })).toEqual({ ok: false, code, message });
  });

  test.each([
    ['https://[2606:4700:4700::1111]/', '2606:4700:4700::1111'],
    ['https://[::ffff:93.184.216.34]/', '::ffff:5db8:d822'],
    ['https://example.com/', '93.184.216.34'],
    ['https://[64:ff9b::5db8:d822]/', '64:ff9b::5db8:d822'],
    ['http://127.0.0.1:4000/', '127.0.0.1'],
  ])('is refused in a network that the operator denies: %s', async (url, address) => {
    const isOwn = address === '127.0.0.1';
    const own = { allowPrivate: true, isDenied: createDenyCheck('127.0.0.0/8') };
    expect(await check(url, isOwn ? own : DENYING)).toEqual({
      ok: false,
      code: 'url_host_not_public',
      message: `The host is at ${address}, which this service blocks.`,
    });
  });

  test.each([
    ['http://example.com/', 'url_not_https'],
    ['http://192.168.0.1/', 'url_host_not_public'],
    ['https://10.0.0.1/', 'url_host_not_public'],
    ['http://0/', 'url_host_not_public'],
  ])('cannot be %s on another machine where this machine is allowed', async (url, code) => {
    expect(await check(url, OWN)).toMatchObject({ code });
  });
});

describe('the resolver of host names', () => {
  let server: Awaited<ReturnType<typeof serveNames>>;
  beforeEach(async () => {
    server = await serveNames();
  });
  afterEach(() => server.close());

  function resolver(options: Parameters<typeof createResolver>[0] = {}) {
    return createResolver({ servers: [server.address], timeoutMs: 20_000, ...options });
  }

  test('a look-up asks the name server once for both kinds of address, and refuses an unknown name', async () => {
    const resolve = resolver();
    const lookUps = Array.from({ length: 50 }, () => resolve('Shop.Example.com'));
    expect(new Set((await Promise.all(lookUps)).flat())).toEqual(new Set(['93.184.216.34']));
    expect(server.questions).toEqual(['shop.example.com', 'shop.example.com']);
    await expect(resolve('none.example.com')).rejects.toThrow('none.example.com has no address');
  });

  test('six names whose server is silent delay no other name, and are given up', async () => {
    const resolve = resolver();
    const failed: string[] = [];
    const silent = [1, 2, 3, 4, 5, 6].map((n) =>
      resolve(`slow${n}.example.com`).catch(() => failed.push(`slow${n}`)),
    );
    expect(await resolve('shop.example.com')).toEqual(['93.184.216.34']);
    expect(failed).toEqual([]);
    await Promise.all(silent);
    expect(failed).toHaveLength(6);
  });

  test.each([
    ['an answer for 10 seconds', 'shop.example.com', [0, 9_999, 10_000]],
    ['a failure for 5 seconds', 'none.example.com', [0, 4_999, 5_000]],
  ])('a resolver caches %s', async (_, name, times) => {
    let nowMs = 0;
    const resolve = resolver({ now: () => nowMs });
    const questions: number[] = [];
    for (nowMs of times) {
      await resolve(name).catch(() => undefined);
      questions.push(server.questions.length);
    }
    expect(questions).toEqual([2, 2, 4]);
  });

  test('the hosts file comes before the name server, and localhost needs neither', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hosts-'));
    const hostsFile = join(folder, 'hosts');
    const lines = [
      '10.0.0.7\tbank.example.com Till # ours',
      '::1 localhost',
      'junk bad.example.com',
    ];
    writeFileSync(hostsFile, lines.join('\n'));
    const resolve = resolver({ hostsFile });
    expect(await resolve('BANK.example.com')).toEqual(['10.0.0.7']);
    expect(await resolve('till')).toEqual(['10.0.0.7']);
    expect(await resolve('localhost')).toEqual(['::1', '127.0.0.1']);
    expect(await resolve('shop.localhost')).toEqual(['127.0.0.1', '::1']);
    expect(server.questions).toEqual([]);
    const bare = resolver({ hostsFile: join(folder, 'none') });
    expect(await bare('localhost')).toEqual(['127.0.0.1', '::1']);
    rmSync(folder, { recursive: true });
  });
});

const TYPE_A = 1;
/** Answer, recursion available, no error. */
const FLAGS = 0x8180;

/**
 * A real name server on a free port of this machine, which has one address of `shop.example.com`,
 * none of other names, and for names that begin with `slow` no answer.
 */
async function serveNames() {
  const socket = createSocket('udp4');
  const seen = new Map<string, string>();
  socket.on('message', (question, { port, address }) => {
    const { name, type, end } = readQuestion(question);
    // A question that had no answer in a second is sent again, which is no new one.
    seen.set(`${question.readUInt16BE(0)}:${name}:${type}`, name);
    if (name.startsWith('slow')) return;
    const ipv4 = type === TYPE_A && name === 'shop.example.com' ? '93.184.216.34' : undefined;
    socket.send(buildAnswer(question.subarray(0, end), ipv4), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    get questions() {
      return [...seen.values()];
    },
    close: () => new Promise<void>((resolve) => socket.close(() => resolve())),
  };
}

function readQuestion(question: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = question.readUInt8(at); length > 0; length = question.readUInt8(at)) {
    labels.push(question.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: question.readUInt16BE(at + 1), end: at + 5 };
}

function buildAnswer(question: Buffer, address: string | undefined): Buffer {
  const head = Buffer.from(question);
  head.writeUInt16BE(FLAGS, 2);
  head.writeUInt16BE(address === undefined ? 0 : 1, 6);
  // No authority and no additional records, whatever the question carried.
  head.writeUInt32BE(0, 8);
  if (address === undefined) return head;
  const row = Buffer.from([0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4]);
  return Buffer.concat([head, row, Buffer.from(address.split('.').map(Number))]);
}
