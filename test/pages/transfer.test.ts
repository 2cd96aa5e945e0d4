import { findFaults } from '../support/axe';
import { eventually } from '../support/http';
import { button, DESKTOP, PHONE, picture, useBrowserWorld } from './browser-world';

const INSTRUCTIONS = {
  ...{ iban: 'NL41MOCK0000000001', account_holder: 'Tulip & Sons Flowers', bic: 'MOCKNL2A' },
  ...{ reference: 'RF835390075470345678', amount: 4_950 },
};
const BY_TRANSFER = { method: 'multibanco', session_url: null, instructions: INSTRUCTIONS };

const world = useBrowserWorld();

/** A payment by transfer, and the address of its page. */
const open = async (change: object = {}) => {
  const { token, payment } = await world.pay.insert({ ...BY_TRANSFER, ...change });
  return { token, id: payment._id, path: `/pay/${token}`, link: `${world.pay.url}/pay/${token}` };
};

describe('the page with bank details', () => {
  it('comes after the button, in the browser that pressed it', async () => {
    const { path, token } = await open();
    const first = await world.pay.ask('GET', path);
    expect(first.text).toContain('Show the bank details');
    expect(first.text).not.toContain('NL41');
    for (const suffix of ['/transfer', '/wait']) {
      const early = await world.pay.ask('GET', `${path}${suffix}`);
      expect([early.status, early.location]).toEqual([303, path]);
    }
    const { cookie, status, location } = await world.pay.ask('POST', path);
    expect([status, location]).toEqual([303, `${path}/transfer`]);
    const { text } = await world.pay.ask('GET', `${path}/transfer`, { cookie });
    for (const shown of ['NL41 MOCK 0000 0000 01', 'MOCKNL2A', 'Tulip &amp; Sons Flowers']) {
      expect(text).toContain(shown);
    }
    expect(text).toContain('RF83 5390 0754 7034 5678');
    expect(text).toContain('is confirmed when the transfer arrives');
    expect((await world.pay.ask('GET', `${path}/transfer`)).status).toBe(410);
    const other = await world.pay.open(token);
    expect((await world.pay.ask('GET', `${path}/transfer`, other)).status).toBe(410);
  });

  it('names no BIC where there is none, and amounts as the region writes them', async () => {
    const { path } = await open({ instructions: { ...INSTRUCTIONS, bic: null } });
    const { cookie } = await world.pay.ask('POST', path);
    const { text } = await world.pay.ask('GET', `${path}/transfer?lang=pt`, { cookie });
    expect(text).not.toContain('BIC');
    expect(text).toContain('data-value="49,50"');
    expect(text).toContain('Transfira exatamente este montante');
  });

  it('is no page of a payment at a bank', async () => {
    const { token } = await world.pay.insert();
    const { cookie } = await world.pay.ask('POST', `/pay/${token}`);
    const { status, location } = await world.pay.ask('GET', `/pay/${token}/transfer`, { cookie });
    expect([status, location]).toEqual([303, `/pay/${token}`]);
  });
});

it('copies each value, and ends by itself when the transfer arrives', async () => {
  const { link, id } = await open();
  const permissions = ['clipboard-read', 'clipboard-write'];
  await world.visit({ permissions }, async (page) => {
    const noise: string[] = [];
    page.on('console', (message) => noise.push(message.text()));
    page.on('pageerror', (error) => noise.push(error.message));
    await page.goto(link);
    await picture(page, 'transfer-before-desktop');
    await button(page, 'Show the bank details').click();
    await page.getByRole('heading', { name: 'Pay by bank transfer' }).waitFor();
    for (const [name, value] of [
      ['Amount to pay', '49.50'],
      ['Account holder', INSTRUCTIONS.account_holder],
      ['IBAN', INSTRUCTIONS.iban],
      ['BIC', INSTRUCTIONS.bic],
      ['Reference for the transfer', INSTRUCTIONS.reference],
    ] as const) {
      await button(page, `Copy: ${name}`).click();
      await page.getByText(`Copied: ${name}`).waitFor({ state: 'attached' });
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(value);
    }
    await eventually('the words of the buttons', async () => {
      return (await page.getByText('Copied', { exact: true }).count()) === 0;
    });
    await picture(page, 'transfer-desktop');
    await world.pay.set(id, { status: 'settled' });
    await page.getByRole('heading', { name: 'You have paid' }).waitFor();
    expect(noise).toEqual([]);
  });
});

it.each(['en', 'de', 'es', 'fr', 'it', 'nl', 'pl', 'pt'])(
  'fits into a phone of 360 px in %s, without a fault of weight',
  async (language) => {
    const { link } = await open();
    await world.visit({ viewport: { width: 360, height: 740 } }, async (page) => {
      await page.goto(`${link}?lang=${language}`);
      await page.locator('form button').first().click();
      await page.locator('dl.fields').waitFor();
      const wide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
      expect(await page.evaluate(wide)).toBe(0);
      expect(await findFaults(page)).toEqual([]);
      await page.setViewportSize(PHONE);
      await picture(page, `transfer-${language}-phone`);
      await page.setViewportSize(DESKTOP);
      await picture(page, `transfer-${language}-desktop`);
    });
  },
);

it('works without JavaScript, also for a payment whose details come later', async () => {
  const { link, id } = await open({ status: 'created' });
  const { pay } = world;
  await pay.mongo
    .db(pay.database)
    .collection<{ _id: string }>('payments')
    .updateOne({ _id: id }, { $unset: { instructions: '' } });
  await world.visit({ javaScriptEnabled: false, viewport: PHONE }, async (page) => {
    await page.goto(link);
    await button(page, 'Continue to Multibanco').click();
    await page.getByRole('heading', { name: 'Opening Multibanco' }).waitFor();
    await pay.set(id, { status: 'awaiting_customer', instructions: INSTRUCTIONS });
    await page.getByRole('heading', { name: 'Pay by bank transfer' }).waitFor();
    await page.getByText('RF83 5390 0754 7034 5678').waitFor();
    expect(await page.getByRole('button').count()).toBe(1);
  });
});

it('goes on to the details by itself once they are there', async () => {
  const { link, id } = await open({ status: 'created' });
  const { pay } = world;
  const rows = pay.mongo.db(pay.database).collection<{ _id: string }>('payments');
  await rows.updateOne({ _id: id }, { $unset: { instructions: '' } });
  await world.visit({ viewport: PHONE }, async (page) => {
    await page.goto(link);
    await button(page, 'Continue to Multibanco').click();
    await page.getByRole('heading', { name: 'Opening Multibanco' }).waitFor();
    await pay.set(id, { status: 'awaiting_customer', instructions: INSTRUCTIONS });
    await page.getByRole('heading', { name: 'Pay by bank transfer' }).waitFor();
  });
});
