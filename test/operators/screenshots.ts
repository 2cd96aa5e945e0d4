import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium as engine } from 'playwright-core';
import { chromium } from '../support/servers';

const ARGS = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'];
const VIEW = { width: 1500, height: 1000 };

export type Camera = NonNullable<Awaited<ReturnType<typeof openCamera>>>;

/**
 * Takes pictures of what an operator sees in the Temporal UI. Undefined unless SCREENSHOTS names a
 * folder. @param ui its base URL
 */
export async function openCamera(ui: string) {
  const folder = process.env['SCREENSHOTS'];
  if (folder === undefined || folder === '') return undefined;
  mkdirSync(folder, { recursive: true });
  const browser: Browser = await engine.launch({ executablePath: chromium(), args: ARGS });
  const page = await browser.newPage({ viewport: VIEW });
  const shoot = async (name: string): Promise<void> => {
    await page.screenshot({ path: join(folder, `${name}.png`) });
  };
  return {
    /** @param rows how many the list is to show */
    async list(name: string, query: string, rows: number): Promise<void> {
      await page.goto(`${ui}/namespaces/default/workflows?query=${encodeURIComponent(query)}`);
      await page.getByRole('heading', { name: new RegExp(`^${rows} Workflow`) }).waitFor();
      await shoot(name);
    },
    /** A workflow's page with its current details, and the form of an update. */
    async workflow(name: string, workflowId: string): Promise<void> {
      await page.goto(`${ui}/namespaces/default/workflows/${encodeURIComponent(workflowId)}`);
      await page.getByText('User Metadata').first().click();
      const details = page.locator('iframe[src*="Waits"]');
      await details.contentFrame().getByText('Waiting for').waitFor();
      await shoot(`${name}-details`);
      await page.getByRole('button', { name: 'More Actions' }).click();
      await page.getByRole('menuitem', { name: 'Send an Update' }).click();
      await page.getByRole('button', { name: 'Select an Update' }).click();
      await page.getByRole('option').first().waitFor();
      await shoot(`${name}-update`);
    },
    close: () => browser.close(),
  };
}
