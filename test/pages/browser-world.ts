import { randomUUID } from 'node:crypto';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import type { PaymentDocument } from '../../src/store/payments';
import { startBankServer } from '../connectors/bank-server';
import { useFixture } from '../support/fixture';
import * as servers from '../support/servers';
import { startPayServer } from './pay-server';

/** Longer than any step takes on a busy machine. */
const STEP_MS_MAX = 120_000;
const DESKTOP = { width: 1280, height: 860 };
export const PHONE = { width: 390, height: 844 };

type Options = Parameters<Browser['newContext']>[0];

export type BrowserWorld = Awaited<ReturnType<typeof startBrowserWorld>>;

/** The hosted pages, a real sandbox bank and a real Chromium. */
async function startBrowserWorld() {
  const pay = await startPayServer();
  const bank = await startBankServer(pay.mongo, pay.database);
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];
  const launch = { executablePath: servers.chromium(), args, timeout: STEP_MS_MAX };
  const browser = await chromium.launch(launch);
  return {
    pay,
    /** Opens a new browser session, in which the shop answers. */
    visit: async <T>(options: Options, work: (page: Page) => Promise<T>): Promise<T> => {
      const context: BrowserContext = await browser.newContext({ viewport: DESKTOP, ...options });
      context.setDefaultTimeout(STEP_MS_MAX);
      await context.route('https://shop.example/**', (route) => {
        const path = new URL(route.request().url()).pathname;
        return route.fulfill({ contentType: 'text/html', body: `<h1>Shop ${path}</h1>` });
      });
      try {
        return await work(await context.newPage());
      } finally {
        await context.close();
      }
    },
    /** Stores a payment with a session at the bank. */
    newPayment: async (change: Partial<PaymentDocument> = {}) => {
      const made = await pay.insert(change);
      const { _id, amount, currency, method, country, livemode, expires_at } = made.payment;
      const answer = await bank.bank.activities.openSession({
        payment_id: _id,
        amount,
        currency,
        method,
        country,
        livemode,
        expires_at,
        return_url: `${pay.url}/pay/return/${_id}`,
      });
      if (answer.outcome !== 'opened') throw new Error(answer.message);
      const session = answer.session_url ?? '';
      await pay.set(_id, { session_url: session });
      return { id: _id, link: `${pay.url}/pay/${made.token}`, session };
    },
    /** Gives the page of the sandbox chain on which a person plays the payer of 0.02 ETH. */
    openPayerPage: async () => {
      const answer = await bank.bank.activities.giveAddress({
        crypto_payment_id: randomUUID(),
        asset: 'ETH',
        network: 'ethereum',
        amount_due: '20000000000000000',
        livemode: false,
        expires_at: new Date(Date.now() + 1_800_000).toISOString(),
      });
      if (answer.outcome !== 'given') throw new Error(answer.message);
      return answer.play_url ?? '';
    },
    end: async () => {
      await browser.close();
      await bank.stop();
      await pay.stop();
    },
  };
}

/** Opens pages, bank and browser for one file's tests. */
export function useBrowserWorld(): BrowserWorld {
  return useFixture(startBrowserWorld, (world) => world.end());
}

/** Collects what the browser logs or throws on a page. */
export function collectNoise(page: Page): string[] {
  const noise: string[] = [];
  page.on('console', (message) => noise.push(message.text()));
  page.on('pageerror', (error) => noise.push(error.message));
  return noise;
}

/** Waits for a heading, which names the page. */
export const waitForHeading = (page: Page, name: string | RegExp) =>
  page.getByRole('heading', { name }).waitFor();

export const button = (page: Page, name: string) => page.getByRole('button', { name });
