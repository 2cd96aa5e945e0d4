import { useVisitor } from '../support/dashboard';
import { idealPayment } from '../support/http';
import { buildPng } from '../support/images';
import { useAccount, useService } from '../support/service';

const service = useService();
const shop = useAccount(service);
const owner = useVisitor(service, shop);
const reader = useVisitor(service, shop, 'finance');

const path = (rest = '', env = 'sandbox') => `/dashboard/${env}/brand${rest}`;
const draw = (gray: number) => buildPng(600, 150, { gray });

/** Uploads a logo as a browser without a script does. */
async function upload(file: Uint8Array, { csrf = owner.csrf, env = 'sandbox' } = {}) {
  const body = new FormData();
  body.set('csrf', csrf);
  body.set('logo', new Blob([new Uint8Array(file)]), 'logo.png');
  const headers = { Cookie: `dashboard=${owner.secret}` };
  const to = `${service.url}${path('/logo', env)}`;
  const response = await fetch(to, { method: 'POST', headers, body, redirect: 'manual' });
  return { status: response.status, html: await response.text() };
}

const stored = async (env: 'sandbox' | 'live' = 'sandbox') =>
  (await service.stores.accounts.get(shop.account_id))?.brand?.[env];
const lines = async () => {
  const act = { account_id: shop.account_id, livemode: undefined, act: 'brand.changed' } as const;
  return (await service.stores.auditLog.list({ ...act, limit: 50 })).toReversed();
};
const showLogo = async (hash: string) => {
  const response = await fetch(`${service.url}/pay/logos/${hash}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, type: response.headers.get('content-type'), bytes };
};
/** The payer's page of a new payment of the sandbox. */
async function payPage(): Promise<string> {
  const { body } = await shop.post('/v1/payments', idealPayment());
  return await (await fetch(body.redirect_url)).text();
}

test('a merchant sets name and color, which payers see in this environment only', async () => {
  const form = { display_name: ' Tulip <Flowers> ', accent: '0A7C5A' };
  expect((await owner.post(path(), form)).status).toBe(303);
  expect(await stored()).toEqual({ display_name: 'Tulip <Flowers>', accent: '#0a7c5a' });
  expect(await stored('live')).toBeUndefined();
  const { html } = await owner.get(path());
  expect(html).toContain('The brand is saved.');
  expect(html).toContain('value="Tulip &lt;Flowers>"');
  const page = await payPage();
  expect(page).toMatch(/<title>Pay €.* to Tulip &lt;Flowers><\/title>/);
  expect(page).toContain('/pay/accents/0a7c5a.css');
});

test('a logo is served as it is, replaced and removed', async () => {
  expect((await upload(draw(255))).status).toBe(303);
  const first = await stored();
  expect(first?.logo).toEqual({ hash: expect.any(String), width: 600, height: 150 });
  const hash = first?.logo?.hash ?? '';
  expect(await payPage()).toContain(`src="/pay/logos/${hash}"`);
  expect(await showLogo(hash)).toEqual({ status: 200, type: 'image/png', bytes: draw(255) });

  expect((await upload(draw(51))).status).toBe(303);
  const second = (await stored())?.logo?.hash ?? '';
  expect(second).not.toBe(hash);
  // Pages that are open still name the first, which expires.
  expect((await showLogo(hash)).status).toBe(200);
  const logos = service.collection<{ _id: string; hash: string; replaced_at?: Date }>(
    'brand_logos',
  );
  expect((await logos.findOne({ hash }))?.replaced_at).toBeInstanceOf(Date);
  expect((await upload(draw(255))).status).toBe(303);
  expect((await logos.findOne({ hash }))?.replaced_at).toBeUndefined();

  expect((await owner.post(path('/logo/remove'))).status).toBe(303);
  expect(await stored()).toEqual({ display_name: 'Tulip <Flowers>', accent: '#0a7c5a' });
  expect((await logos.findOne({ hash }))?.replaced_at).toBeInstanceOf(Date);
  expect(await payPage()).not.toContain('<img');
});

test('each change has an audit line with before and after', async () => {
  const facts = (await lines()).map(({ livemode, before, after }) => [livemode, before, after]);
  const base = { display_name: 'Tulip <Flowers>', accent: '#0a7c5a' };
  const logo = expect.stringMatching(/^[0-9a-f]{32}$/);
  expect(facts).toEqual([
    [false, { display_name: null, accent: null, logo: null }, { ...base, logo: null }],
    [false, { ...base, logo: null }, { ...base, logo }],
    [false, { ...base, logo }, { ...base, logo }],
    [false, { ...base, logo }, { ...base, logo }],
    [false, { ...base, logo }, { ...base, logo: null }],
  ]);
});

test.each([
  [{ display_name: 'x'.repeat(61), accent: '' }, 'Use at most 60 characters.'],
  [{ display_name: '', accent: 'tomato' }, 'such as #0a7c5a'],
])('refuses %j and leaves the form as it was filled in', async (form, fault) => {
  const before = await stored();
  const { status, html } = await owner.post(path(), form);
  expect([status, html.includes(fault)]).toEqual([400, true]);
  expect(html).toContain(`value="${form.display_name || form.accent}"`);
  expect(await stored()).toEqual(before);
});

test.each([
  ['a file that is no image', Buffer.from('%PDF-1.7'), 'no PNG, JPEG or WebP image'],
  ['no file', Buffer.alloc(0), 'Choose a file first.'],
])('refuses %s with the reason', async (_, file, fault) => {
  const before = await lines();
  const { status, html } = await upload(file);
  expect([status, html.includes(fault)]).toEqual([400, true]);
  expect(await lines()).toEqual(before);
});

test('refuses a form of more than 8 MiB or with an incomplete part', async () => {
  const large = await upload(Buffer.alloc(9 * 1_024 * 1_024));
  expect([large.status, large.html.includes('could not be read')]).toEqual([400, true]);
  const headers = {
    Cookie: `dashboard=${owner.secret}`,
    'Content-Type': 'multipart/form-data; boundary=x',
  };
  const body = '--x\r\nContent-Disposition: form-data; name="csrf"\r\n';
  const to = `${service.url}${path('/logo')}`;
  const cut = await fetch(to, { method: 'POST', headers, body, redirect: 'manual' });
  expect(cut.status).toBe(400);
});

test('refuses an upload without the form’s token, and shows no upload to who may not change the brand', async () => {
  expect((await upload(draw(17), { csrf: 'x'.repeat(43) })).status).toBe(403);
  expect((await stored())?.logo).toBeUndefined();
  const { html } = await reader.get(path());
  expect(html).toContain('Display name');
  expect(html).not.toContain('Upload logo');
});

test('uploads at once leave one logo, whose image is stored', async () => {
  const answers = await Promise.all(
    [16, 32, 48].map((gray) => upload(draw(gray), { env: 'live' })),
  );
  expect(answers.map(({ status }) => status)).toEqual([303, 303, 303]);
  const logo = (await stored('live'))?.logo;
  const documents = await service
    .collection<{ _id: string; hash: string; env: string; replaced_at?: Date }>('brand_logos')
    .find({ account_id: shop.account_id, env: 'live' })
    .toArray();
  const present = documents.filter(({ replaced_at }) => replaced_at === undefined);
  expect([documents.length, present.map(({ hash }) => hash)]).toEqual([3, [logo?.hash]]);
});
