import { isLoopback } from '../../src/base/networks';
import { createDenyCheck, findAddressFault } from '../../src/webhooks/address';
import type { Resolve } from '../../src/webhooks/names';
import { checkWebhookUrl } from '../../src/webhooks/url';

describe('an address of a webhook', () => {
  test.each(['8.8.8.8', '93.184.216.34', '2606:4700:4700::1111', '::ffff:8.8.8.8', '172.32.0.1'])(
    'may be %s, which is public',
    (address) => expect(findAddressFault(address)).toBeNull(),
  );

  test.each([
    ['a loopback', ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1']],
    ['a private', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.0.1', 'fc00::1']],
    ['a private', ['::ffff:192.168.0.1', 'fdff::1']],
    ['a link-local', ['169.254.169.254', 'fe80::1']],
    ['a carrier-grade NAT', ['100.64.0.1', '100.127.255.255']],
    ['an unspecified', ['0.0.0.0', '0.1.2.3', '::']],
    ['a multicast', ['224.0.0.1', 'ff02::1']],
    ["a cloud platform's", ['168.63.129.16', '::ffff:168.63.129.16']],
    // For documentation and measurements.
    ['a reserved', ['192.0.2.1', '198.51.100.1', '203.0.113.1', '198.18.0.1', '2001:db8::1']],
    ['a reserved', ['192.0.0.8', '192.88.99.1', '240.0.0.1', '255.255.255.255', '3fff::1']],
    // With an IPv4 address inside, which a gateway would reach.
    ['a reserved', ['2002:7f00:1::', '2001:0:4136:e378:8000:63bf:3fff:fdd2', '64:ff9b::7f00:1']],
    ['a reserved', ['64:ff9b::8.8.8.8', '64:ff9b:1::1', '::ffff:0:127.0.0.1', '::127.0.0.1']],
    ['a reserved', ['::8.8.8.8', 'fec0::1', '100::1', '5f00::1', '4000::1']],
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

const PUBLIC: Resolve = async () => ['93.184.216.34', '2606:4700:4700::1111'];

function check(url: string, resolve = PUBLIC, allowPrivate = false) {
  return checkWebhookUrl(url, { allowPrivate, resolve });
}

describe('a webhook URL', () => {
  test.each([
    'https://example.com/hooks?tenant=7',
    'https://example.com:8443/',
    'https://example.com./',
    'https://8.8.8.8/hook',
    'https://[2606:4700:4700::1111]/hook',
    'https://bücher.example.com/',
    `https://example.com/${'a'.repeat(2_028)}`,
  ])('may be %s', async (url) => {
    expect(await check(url)).toEqual({ ok: true, url: new URL(url).href });
  });

  test.each([
    ['url_invalid', ['', 'example.com/hook', '/hook', 'https://', ' https://example.com/']],
    ['url_invalid', ['https://exa\nmple.com/', 'https:\\\\example.com\\']],
    ['url_not_https', ['http://example.com/', 'ftp://example.com/', 'javascript:alert(1)']],
    ['url_not_https', ['file:///etc/passwd']],
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
    ['long IPv6', ['[0:0:0:0:0:ffff:7f00:0001]', '[64:ff9b::7f00:1]']],
  ])('with a private address in %s is refused without a look-up', async (_, hosts) => {
    const resolve = () => Promise.reject(new Error('A literal must not be resolved.'));
    for (const host of hosts) {
      const result = await check(`https://${host}/latest/meta-data/`, resolve);
      expect([host, result]).toMatchObject([host, { ok: false, code: 'url_host_not_public' }]);
    }
  });

  test('is refused when one of several addresses of its name is private', async () => {
    const resolve = async () => ['93.184.216.34', '10.0.0.7'];
    expect(await check('https://example.com/', resolve)).toEqual({
      ok: false,
      code: 'url_host_not_public',
      message: 'The host is not on the public internet: 10.0.0.7 is a private address.',
    });
  });

  test.each([
    ['has no address', async () => []],
    ['cannot be resolved', () => Promise.reject(new Error('EAI_AGAIN'))],
  ])('is refused when its name %s', async (_, resolve: Resolve) => {
    const message = expect.stringContaining('example.com');
    const result = await check('https://example.com/', resolve);
    expect(result).toMatchObject({ code: 'url_host_unknown', message });
  });

  describe('in a network that the operator denies', () => {
    const isDenied = createDenyCheck('198.18.7.0/24, 93.184.216.0/24,2606:4700::/32');
    const checkDenied = (url: string, addresses: string[] = [], allowPrivate = false) =>
      checkWebhookUrl(url, { allowPrivate, isDenied, resolve: async () => addresses });

    test.each([
      ['https://93.184.216.34/', '93.184.216.34'],
      ['https://[2606:4700:4700::1111]/', '2606:4700:4700::1111'],
      ['https://[::ffff:93.184.216.34]/', '::ffff:5db8:d822'],
    ])('is refused: %s', async (url, address) => {
      expect(await checkDenied(url)).toEqual({
        ok: false,
        code: 'url_host_not_public',
        message: `The host is at ${address}, which this service blocks.`,
      });
    });

    test('is refused by its name if one of its addresses is there', async () => {
      const url = 'https://example.com/';
      expect(await checkDenied(url, ['8.8.8.8', '93.184.216.34'])).toMatchObject({ ok: false });
      expect(await checkDenied(url, ['8.8.8.8', '93.184.217.1'])).toEqual({ ok: true, url });
    });

    test('is refused on this machine, too, where that is allowed', async () => {
      const own = { allowPrivate: true, isDenied: createDenyCheck('127.0.0.0/8') };
      const refused = { ok: false, code: 'url_host_not_public' };
      expect(await checkWebhookUrl('http://127.0.0.1:4000/', own)).toMatchObject(refused);
      expect(await checkDenied('http://127.0.0.1:4000/', [], true)).toMatchObject({ ok: true });
    });

    test('is not refused by an empty list', () => {
      expect(createDenyCheck('')('93.184.216.34')).toBe(false);
    });
  });

  describe('where private endpoints are allowed', () => {
    test.each(['http://127.0.0.1:4000/hook', 'http://[::1]:4000/', 'https://127.0.0.1/'])(
      'may be %s, which is this machine',
      async (url) => expect(await check(url, PUBLIC, true)).toEqual({ ok: true, url }),
    );

    test('may be localhost', async () => {
      const url = 'http://localhost:4000/hook';
      expect(await checkWebhookUrl(url, { allowPrivate: true })).toEqual({ ok: true, url });
    });

    test.each([
      ['http://example.com/', 'url_not_https'],
      ['http://8.8.8.8/', 'url_not_https'],
      ['http://192.168.0.1/', 'url_host_not_public'],
      ['https://10.0.0.1/', 'url_host_not_public'],
      ['http://169.254.169.254/', 'url_host_not_public'],
      ['http://0/', 'url_host_not_public'],
    ])('cannot be %s on another machine', async (url, code) => {
      expect(await check(url, PUBLIC, true)).toMatchObject({ code });
    });
  });
});
