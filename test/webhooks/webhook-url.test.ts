import { createDenyCheck } from '../../src/webhooks/address';
import type { Resolve } from '../../src/webhooks/names';
import { checkWebhookUrl } from '../../src/webhooks/url';

const PUBLIC: Resolve = async () => ['93.184.216.34', '2606:4700:4700::1111'];

function check(url: string, resolve = PUBLIC) {
  return checkWebhookUrl(url, { allowPrivate: false, resolve });
}

test.each([
  'https://example.com/hooks?tenant=7',
  'https://example.com:8443/',
  'https://example.com./',
  'https://8.8.8.8/hook',
  'https://[2606:4700:4700::1111]/hook',
  'https://bücher.example.com/',
])('%s may be registered', async (url) => {
  expect(await check(url)).toEqual({ ok: true, url: new URL(url).href });
});

test.each([
  ['', 'url_invalid'],
  ['example.com/hook', 'url_invalid'],
  ['/hook', 'url_invalid'],
  ['https://', 'url_invalid'],
  ['https://exa\nmple.com/', 'url_invalid'],
  [' https://example.com/', 'url_invalid'],
  ['https:\\\\example.com\\', 'url_invalid'],
  ['http://example.com/', 'url_not_https'],
  ['ftp://example.com/', 'url_not_https'],
  ['file:///etc/passwd', 'url_not_https'],
  ['javascript:alert(1)', 'url_not_https'],
  ['https://user:secret@example.com/', 'url_userinfo'],
  ['https://example.com@127.0.0.1/', 'url_userinfo'],
  [`https://example.com/${'a'.repeat(2_029)}`, 'url_too_long'],
  [`https://example.com/${'é'.repeat(1_000)}`, 'url_too_long'],
  ['https://localhost/', 'url_host_not_public'],
  ['https://LOCALHOST./', 'url_host_not_public'],
  ['https://api.localhost/', 'url_host_not_public'],
  ['https://mongodb/', 'url_host_not_public'],
  ['https://metadata.google.internal/', 'url_host_not_public'],
  ['https://metadata.google.internal../', 'url_host_not_public'],
])('%p is refused as %s', async (url, code) => {
  const result = await check(url);
  expect(result).toEqual({ ok: false, code, message: expect.stringMatching(/^[A-Za-z].*\.$/) });
});

test('a URL of exactly 2,048 characters is not too long', async () => {
  const url = `https://example.com/${'a'.repeat(2_028)}`;
  expect(url).toHaveLength(2_048);
  expect(await check(url)).toEqual({ ok: true, url });
});

test.each([
  'https://127.0.0.1/',
  'https://127.1/',
  'https://0x7f.1/',
  'https://0x7f000001/',
  'https://0177.0.0.1/',
  'https://2130706433/',
  'https://127.0.0.1./',
  'https://%31%32%37.0.0.1/',
  'https://１２７.０.０.１/',
  'https://①②⑦.0.0.1/',
  'https://127。0。0。1/',
  'https://[::1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:7f00:1]/',
  'https://[0:0:0:0:0:ffff:7f00:0001]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[2002:7f00:1::]/',
  'https://[::]/',
  'https://0/',
  'https://169.254.169.254/latest/meta-data/',
  'https://ｌｏｃａｌｈｏｓｔ/',
])('%s is seen through, without asking a name server', async (url) => {
  const resolve = () => Promise.reject(new Error('A literal must not be resolved.'));
  expect(await check(url, resolve)).toMatchObject({ ok: false, code: 'url_host_not_public' });
});

test('one private address among public ones is enough to refuse, and named', async () => {
  const resolve = async () => ['93.184.216.34', '10.0.0.7'];
  expect(await check('https://example.com/', resolve)).toEqual({
    ok: false,
    code: 'url_host_not_public',
    message: 'The host is not on the public internet: 10.0.0.7 is a private address.',
  });
});

test('a host without addresses is refused', async () => {
  const expected = { code: 'url_host_unknown', message: expect.stringContaining('example.com') };
  expect(await check('https://example.com/', async () => [])).toMatchObject(expected);
  const failing = () => Promise.reject(new Error('EAI_AGAIN'));
  expect(await check('https://example.com/', failing)).toMatchObject(expected);
});

describe('where an operator keeps networks from webhooks', () => {
  const isDenied = createDenyCheck('198.18.7.0/24, 93.184.216.0/24,2606:4700::/32');
  const checked = (url: string, addresses: string[] = [], allowPrivate = false) =>
    checkWebhookUrl(url, { allowPrivate, isDenied, resolve: async () => addresses });

  test.each([
    ['https://93.184.216.34/', '93.184.216.34'],
    ['https://[2606:4700:4700::1111]/', '2606:4700:4700::1111'],
    ['https://[::ffff:93.184.216.34]/', '::ffff:5db8:d822'],
  ])('%s is refused', async (url, address) => {
    expect(await checked(url)).toEqual({
      ok: false,
      code: 'url_host_not_public',
      message: `The host is at ${address}, which this service blocks.`,
    });
  });

  test('so is a name with one address there, and no other', async () => {
    const url = 'https://example.com/';
    expect(await checked(url, ['8.8.8.8', '93.184.216.34'])).toMatchObject({ ok: false });
    expect(await checked(url, ['8.8.8.8', '93.184.217.1'])).toEqual({ ok: true, url });
  });

  test('this machine, too, where it would be allowed', async () => {
    const own = { allowPrivate: true, isDenied: createDenyCheck('127.0.0.0/8') };
    const refused = { ok: false, code: 'url_host_not_public' };
    expect(await checkWebhookUrl('http://127.0.0.1:4000/', own)).toMatchObject(refused);
    expect(await checked('http://127.0.0.1:4000/', [], true)).toMatchObject({ ok: true });
  });

  test('an empty list keeps nothing', () => {
    expect(createDenyCheck('')('93.184.216.34')).toBe(false);
  });
});

describe('where private endpoints are allowed', () => {
  const allowed = (url: string, resolve = PUBLIC) =>
    checkWebhookUrl(url, { allowPrivate: true, resolve });

  test.each(['http://127.0.0.1:4000/hook', 'http://[::1]:4000/', 'https://127.0.0.1/'])(
    '%s may be registered: it is this machine',
    async (url) => expect(await allowed(url)).toEqual({ ok: true, url }),
  );

  test('localhost is this machine', async () => {
    const url = 'http://localhost:4000/hook';
    const result = await checkWebhookUrl(url, { allowPrivate: true });
    expect(result).toEqual({ ok: true, url });
  });

  test('plain http stays refused anywhere else', async () => {
    expect(await allowed('http://example.com/')).toMatchObject({ code: 'url_not_https' });
    expect(await allowed('http://8.8.8.8/')).toMatchObject({ code: 'url_not_https' });
  });

  test.each(['http://192.168.0.1/', 'https://10.0.0.1/', 'http://169.254.169.254/', 'http://0/'])(
    '%s stays refused: it is another machine',
    async (url) => expect(await allowed(url)).toMatchObject({ code: 'url_host_not_public' }),
  );
});
