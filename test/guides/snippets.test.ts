import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { fund } from '../api/fund';
import { useAccount, useService } from '../support/service';

const DOCS = join(__dirname, '../../docs');

/** Guides in the order in which they lead to one another. */
const GUIDES = ['first-payment', 'refund', 'payout', 'test-every-state'];

/** Program of each language; the first file of a folder makes what the others repeat. */
const PROGRAMS: Record<string, string> = { 'curl.sh': 'bash', 'node.mjs': process.execPath };

interface Expected {
  answer: object;
  /** Variable that holds its ID from then on. */
  variable?: string;
  /** Status that it reaches, also where the bank answers after the create. */
  becomes?: ['payments' | 'payouts', string];
}

const ANSWERS: Record<string, Expected> = {
  'create-payment': {
    answer: { object: 'payment', amount: 1_050 },
    variable: 'PAYMENT_ID',
    becomes: ['payments', 'awaiting_customer'],
  },
  'settle-payment': { answer: { status: 'settled' } },
  'read-payment': { answer: { status: 'settled', amount: 1_050 } },
  refund: { answer: { object: 'refund', status: 'processing', amount: 250 } },
  'create-recipient': { answer: { last4: '4300' }, variable: 'RECIPIENT_ID' },
  'create-payout': {
    answer: { object: 'payout', amount: 5_000 },
    variable: 'PAYOUT_ID',
    becomes: ['payouts', 'sent'],
  },
  'return-payout': { answer: { status: 'returned' } },
  'declined-payment': { answer: { amount: 66_602 }, becomes: ['payments', 'failed'] },
};

const service = useService();
const shop = useAccount(service);
const Answer = z.looseObject({ id: z.string() });

function snippetsOf(guide: string): string[] {
  const text = readFileSync(join(DOCS, 'guides', `${guide}.md`), 'utf8');
  return [...text.matchAll(/^\[[^\]]+\]\(\.\.\/snippets\/([\w-]+)\/\)$/gm)].map(
    ([, name = '']) => name,
  );
}

async function run(name: string, file: string, env: NodeJS.ProcessEnv) {
  const program = PROGRAMS[file];
  if (program === undefined) throw new Error(`No program runs ${file}.`);
  const path = join(DOCS, 'snippets', name, file);
  const { stdout } = await promisify(execFile)(program, [path], { env });
  return Answer.parse(JSON.parse(stdout));
}

test('every guide has its snippets, and every snippet has its guide', () => {
  const all = readdirSync(join(DOCS, 'guides')).map((name) => name.replace('.md', ''));
  const shown = all.flatMap(snippetsOf);
  expect(shown.toSorted()).toEqual(readdirSync(join(DOCS, 'snippets')).toSorted());
  expect(GUIDES.flatMap(snippetsOf).toSorted()).toEqual(shown.toSorted());
  expect(Object.keys(ANSWERS).toSorted()).toEqual(shown.toSorted());
});

test('the snippets of the first hour do what their guides say, in every language', async () => {
  await fund(service, shop, 10_000, 'marketing');
  const env: NodeJS.ProcessEnv = { PATH: process.env['PATH'], BASE: service.url, KEY: shop.key };
  for (const name of GUIDES.flatMap(snippetsOf)) {
    const { answer, variable, becomes }: Expected = ANSWERS[name] ?? {
      answer: { isExpected: true },
    };
    const ids = new Set<string>();
    for (const file of readdirSync(join(DOCS, 'snippets', name)).toSorted()) {
      const result = await run(name, file, env);
      expect({ name, file, result }).toMatchObject({ name, file, result: answer });
      if (becomes !== undefined)
        await service.becomes(becomes[0], result.id, { status: becomes[1] });
      ids.add(result.id);
    }
    // All languages send the same request under the same key.
    expect({ name, ids: ids.size }).toEqual({ name, ids: 1 });
    if (variable !== undefined) env[variable] = [...ids][0];
  }
});
