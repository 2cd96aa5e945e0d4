import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { findFaults } from '../support/axe';
import { eventually } from '../support/http';
import { button, PHONE, picture, useBrowserWorld } from './browser-world';
import { cryptoPayment } from './crypto-payment';

const world = useBrowserWorld();

it('takes a customer from the pay page through the bank to the shop', async () => {
  const { link, id } = await world.newPayment();
  await world.visit({}, async (page) => {
    const noise: string[] = [];
    page.on('console', (message) => noise.push(message.text()));
    page.on('pageerror', (error) => noise.push(error.message));
    await page.goto(link);
    await picture(page, 'pay-desktop');
    await button(page, 'Continue to iDEAL').click();
    await page.getByRole('heading', { name: 'Choose your bank' }).waitFor();
    await picture(page, 'bank-selector-desktop');
    await page.getByLabel('Birch Savings').check();
    await button(page, 'Approve payment').click();
    await page.getByRole('heading', { name: /Waiting for the bank/ }).waitFor();
    await picture(page, 'return-desktop');
    await world.pay.set(id, { status: 'authorized' });
    await page.getByRole('heading', { name: 'Shop /thanks' }).waitFor();
    await page.goto(link);
    await page.getByRole('heading', { name: 'You have paid' }).waitFor();
    await picture(page, 'outcome-desktop');
    expect(noise).toEqual([]);
  });
});

it('has all that it shows in landmarks, and no fault of weight', async () => {
  const { link, session } = await world.newPayment();
  const token = randomBytes(32).toString('base64url');
  world.pay.crypto.set(token, cryptoPayment());
  const { url } = world.pay;
  await world.visit({}, async (page) => {
    for (const address of [link, session, `${url}/pay/crypto/${token}`, `${url}/pay/unknown`]) {
      await page.goto(address);
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect(await findFaults(page)).toEqual([]);
    }
  });
});

it('goes on from the bank to another origin at once: no policy stops the redirect', async () => {
  const { link, id } = await world.newPayment();
  await world.visit({}, async (page) => {
    await page.goto(link);
    await button(page, 'Continue to iDEAL').click();
    await page.getByLabel('Amber Bank').waitFor();
    await world.pay.set(id, { status: 'settled' });
    await button(page, 'Approve payment').click();
    await page.getByRole('heading', { name: 'Shop /thanks' }).waitFor();
  });
});

it('leads a customer who cancels to the shop', async () => {
  const { link } = await world.newPayment();
  await world.visit({}, async (page) => {
    await page.goto(link);
    await button(page, 'Cancel payment').click();
    await page.getByRole('heading', { name: 'Shop /sorry' }).waitFor();
  });
});

it('refuses a second browser and a page that came too late', async () => {
  const { link } = await world.newPayment();
  await world.visit({}, async (page) => {
    await page.goto(link);
    await button(page, 'Continue to iDEAL').click();
    await page.getByRole('heading', { name: 'Choose your bank' }).waitFor();
  });
  await world.visit({}, async (page) => {
    expect((await page.goto(link))?.status()).toBe(410);
    await page.getByRole('heading', { name: 'This link was used already' }).waitFor();
    await picture(page, 'used-desktop');
  });
  const late = await world.newPayment();
  await world.visit({ viewport: PHONE }, async (page) => {
    await page.goto(late.link);
    await world.pay.set(late.id, { expires_at: new Date(Date.now() - 1_000).toISOString() });
    await button(page, 'Continue to iDEAL').click();
    await page.getByRole('heading', { name: 'This payment link has expired' }).waitFor();
    await picture(page, 'expired-phone');
  });
});

it('waits for a slow bank and goes there by itself, with and without JavaScript', async () => {
  for (const javaScriptEnabled of [true, false]) {
    const { link, id, session } = await world.newPayment();
    await world.pay.set(id, { status: 'created', session_url: null });
    await world.visit({ javaScriptEnabled, viewport: PHONE }, async (page) => {
      await page.goto(link);
      await button(page, 'Continue to iDEAL').click();
      await page.getByRole('heading', { name: 'Opening iDEAL' }).waitFor();
      await page.getByRole('progressbar').waitFor();
      if (javaScriptEnabled) await picture(page, 'opening-phone');
      await world.pay.set(id, { status: 'awaiting_customer', session_url: session });
      await page.getByRole('heading', { name: 'Choose your bank' }).waitFor();
    });
  }
});

it('works without JavaScript from end to end', async () => {
  const { link, id } = await world.newPayment({ method: 'mbway' });
  await world.visit({ javaScriptEnabled: false, viewport: PHONE }, async (page) => {
    await page.goto(link);
    await button(page, 'Continue to MB WAY').click();
    await button(page, 'Send to my phone').click();
    await button(page, 'Approve on the phone').click();
    await page.getByRole('heading', { name: /Waiting for the bank/ }).waitFor();
    await world.pay.set(id, { status: 'authorized' });
    await page.getByRole('heading', { name: 'Shop /thanks' }).waitFor();
  });
});

it('is never shown inside a frame', async () => {
  const { link, session } = await world.newPayment();
  const host: Server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(`<iframe id="a" src="${link}"></iframe><iframe id="b" src="${session}"></iframe>`);
  });
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
  const address = host.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  try {
    await world.visit({}, async (page) => {
      const refused: string[] = [];
      page.on('console', (message) => refused.push(message.text()));
      await page.goto(`http://127.0.0.1:${port}/`);
      await expect(page.frameLocator('#a').locator('main').count()).resolves.toBe(0);
      await expect(page.frameLocator('#b').locator('main').count()).resolves.toBe(0);
      const frames = () => refused.filter((text) => text.includes('frame-ancestors'));
      await eventually('both to be refused', async () => frames().length >= 2);
      expect(frames()).toHaveLength(2);
    });
  } finally {
    host.closeAllConnections();
    host.close();
  }
});
