import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { z } from 'zod';

const Findings = z.array(z.string());

/** Faults of weight, and what is outside the landmarks. */
export async function findFaults(page: Page, rules: object = {}): Promise<string[]> {
  const isLoaded = await page.evaluate('typeof axe === "object"');
  if (isLoaded !== true) await page.evaluate(axe.source);
  const options = JSON.stringify({ resultTypes: ['violations'], ...rules });
  const found = await page.evaluate(`axe.run(document, ${options}).then((run) =>
    run.violations
      .filter(({ id, impact }) => id === 'region' || impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)))`);
  return Findings.parse(found);
}
