import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fund } from '../api/fund';
import { runProgram } from '../support/programs';
import { describeWith } from '../support/python-tools';
import { useService } from '../support/service';
import { LANGUAGES, type Language, SNIPPET_NAMES, SNIPPETS, useSnippets } from './languages';

const GUIDES = join(__dirname, '../../docs/guides');

/** Files of a snippet; curl receives no webhook, so a shell verifies one. */
const FILES = ['curl.sh', 'php.php', 'python.py', 'typescript.ts'];
const RECEIVER_FILES = ['php.php', 'python.py', 'shell.sh', 'typescript.ts'];

/** Snippets of `webhooks.test.ts`. */
const WEBHOOKS = ['register-endpoint', 'verify-webhook'];

const ID = expect.stringMatching(/^[0-9a-f-]{36}$/);

interface Expected {
  /** Fields of the answer. A program prints these fields in this order; curl prints the answer. */
  prints: Record<string, unknown>;
  /** More fields of the answer to curl. */
  answer?: object;
  /** Variable that holds its ID from then on. */
  variable?: string;
  /** Status that it, or the one that the variable holds, reaches, also after the answer. */
  becomes?: ['payments' | 'payouts', string];
}

/** The variable from which a snippet that prints no ID takes it. */
const ABOUT = { payments: 'PAYMENT_ID', payouts: 'PAYOUT_ID' };

const ANY_STATUS = expect.stringMatching(/^[a-z_]+$/);

/** In the order in which the guides lead to one another. */
const EXPECTED: Record<string, Expected> = {
  'create-payment': {
    prints: { id: ID, redirect_url: expect.stringMatching(/^http\S+\/pay\/[\w-]{40,}$/) },
    answer: { object: 'payment', amount: 1_050 },
    variable: 'PAYMENT_ID',
    becomes: ['payments', 'awaiting_customer'],
  },
  'settle-payment': { prints: { status: ANY_STATUS }, becomes: ['payments', 'settled'] },
  'read-payment': { prints: { status: 'settled', amount: '1050' } },
  refund: {
    prints: { id: ID, status: 'processing' },
    answer: { object: 'refund', amount: 250 },
  },
  'create-recipient': {
    prints: { id: ID },
    answer: { last4: '4300' },
    variable: 'RECIPIENT_ID',
  },
  'create-payout': {
    prints: { id: ID, status: ANY_STATUS },
    answer: { object: 'payout', amount: 5_000 },
    variable: 'PAYOUT_ID',
    becomes: ['payouts', 'sent'],
  },
  'return-payout': { prints: { status: ANY_STATUS }, becomes: ['payouts', 'returned'] },
  'declined-payment': {
    prints: { id: ID, status: ANY_STATUS },
    answer: { amount: 66_602 },
    becomes: ['payments', 'failed'],
  },
};

const service = useService();
const snippets = useSnippets();

function listSnippets(guide: string): string[] {
  const text = readFileSync(join(GUIDES, guide), 'utf8');
  return [...text.matchAll(/^\[[^\]]+\]\(\.\.\/snippets\/([\w-]+)\/\)$/gm)].map(
    ([, name = '']) => name,
  );
}

test('every guide has its snippets, and every snippet its guide, its test and four languages', () => {
  const shown = readdirSync(GUIDES).flatMap(listSnippets).toSorted();
  expect(shown).toEqual(SNIPPET_NAMES);
  expect([...Object.keys(EXPECTED), ...WEBHOOKS].toSorted()).toEqual(SNIPPET_NAMES);
  for (const name of SNIPPET_NAMES) {
    const files = name === 'verify-webhook' ? RECEIVER_FILES : FILES;
    expect({ name, files: readdirSync(join(SNIPPETS, name)).toSorted() }).toEqual({ name, files });
  }
});

for (const [title, language] of Object.entries<Language>(LANGUAGES))
  describeWith(language.program, `in ${title}`, () => {
    const run = (
      { file, program, env }: Language,
      name: string,
      variables: Record<string, string>,
    ) =>
      runProgram(program, [join(snippets.folder, name, file)], { env: { ...env, ...variables } });

    test('the first hour goes as the guides say', async () => {
      const account = await service.account();
      await fund(service, account, 10_000, 'marketing');
      const variables: Record<string, string> = { BASE: service.url, KEY: account.key };
      for (const [name, { prints, answer = {}, variable, becomes }] of Object.entries(EXPECTED)) {
        const output = await run(language, name, variables);
        const printed = title === 'curl' ? pick(prints, output) : readWords(prints, output);
        expect({ name, printed }).toEqual({ name, printed: prints });
        const { id = '' } = printed;
        if (becomes !== undefined) {
          const [kind, status] = becomes;
          await service.becomes(kind, id || (variables[ABOUT[kind]] ?? ''), { status });
        }
        if (readFileSync(join(SNIPPETS, name, 'curl.sh'), 'utf8').includes('Idempotency-Key')) {
          // Only the same request gets the same answer under the same key.
          const same = JSON.parse(await run(LANGUAGES.curl, name, variables));
          expect({ name, same }).toMatchObject({ name, same: { id, ...answer } });
        }
        if (variable !== undefined) variables[variable] = id;
      }
    });
  });

function pick(prints: object, output: string): Record<string, string> {
  const answer = JSON.parse(output);
  return Object.fromEntries(Object.keys(prints).map((name) => [name, String(answer[name])]));
}

function readWords(prints: object, output: string): Record<string, string> {
  const words = output.replace(/\n$/, '').split(' ');
  expect(words).toHaveLength(Object.keys(prints).length);
  return Object.fromEntries(Object.keys(prints).map((name, index) => [name, words[index] ?? '']));
}
