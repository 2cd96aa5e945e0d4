import type { BrowserContextOptions, Page } from 'playwright-core';
import type { PaymentDocument } from '../../src/store/payments';
import { useBrowser } from '../browser/dashboard-visit';
import { instruction, startBankServer } from '../connectors/bank-server';
import { useFixture } from '../support/fixture';
import { startPayServer } from './pay-server';

const DESKTOP = { width: 1280, height: 860 };
export const PHONE = { width: 390, height: 844 };

export type BrowserWorld = Awaited<ReturnType<typeof startBrowserWorld>>;

/** The hosted pages, a real sandbox bank and a real Chromium. */
async function startBrowserWorld(browser: ReturnType<typeof useBrowser>) {
  const pay = await startPayServer();
  const bank = await startBankServer(pay.mongo, pay.database);
  return {
    pay,
    /** Opens a new browser session, in which the shop answers. */
    visit: async <T>(
      options: BrowserContextOptions,
      work: (page: Page) => Promise<T>,
    ): Promise<T> => {
      const context = await browser.newContext({ viewport: DESKTOP, ...options });
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
      const input = instruction({
        ...{ payment_id: _id, amount, currency, method, country, livemode, expires_at },
        return_url: `${pay.url}/pay/return/${_id}`,
      });
      const answer = await bank.bank.activities.openSession(input);
      if (answer.outcome !== 'opened') throw new Error(answer.message);
      const session = answer.session_url ?? '';
      await pay.set(_id, { session_url: session });
      return { id: _id, link: `${pay.url}/pay/${made.token}`, session };
    },
    end: async () => {
      await bank.stop();
      await pay.stop();
    },
  };
}

/** Opens pages, bank and browser for one file's tests. */
export function useBrowserWorld(): BrowserWorld {
  const browser = useBrowser();
  return useFixture(
    () => startBrowserWorld(browser),
    (world) => world.end(),
  );
}

/** Waits for a heading, which names the page. */
export const waitForHeading = (page: Page, name: string | RegExp) =>
  page.getByRole('heading', { name }).waitFor();

export const button = (page: Page, name: string) => page.getByRole('button', { name });
