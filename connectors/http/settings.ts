import { z } from 'zod';
import { secretFile } from '../kit';

const SECRET_LENGTH_MIN = 24;

const GROUPS = ['payments', 'refunds', 'payouts', 'cancelPayout', 'disputes'] as const;
type Group = (typeof GROUPS)[number];

function parseGroups(text: string): Group[] | undefined {
  const names = text.split('|').map((name) => name.trim());
  const groups = GROUPS.filter((group) => names.includes(group));
  const isKnown = groups.length === names.length;
  const canCancel = groups.includes('payouts') || !groups.includes('cancelPayout');
  return isKnown && canCancel ? groups : undefined;
}

function isBase(text: string): boolean {
  const { username, password, search, hash } = new URL(text);
  return [username, password, search, hash].every((part) => part === '');
}

export const httpSettings = {
  INSTRUCTIONS_URL: z
    .url({ protocol: /^https?$/ })
    .refine(isBase, 'must have no user name, query or fragment')
    .transform((url) => url.replace(/\/+$/, ''))
    .meta({
      description: 'Address before `/instructions/{activity}`; https, in the sandbox also http',
    }),
  INSTRUCTIONS_SECRET_FILE: secretFile
    .refine(
      ({ length }) => length >= SECRET_LENGTH_MIN,
      `the secret must have at least ${SECRET_LENGTH_MIN} characters`,
    )
    .meta({ description: 'File with the secret that signs them' }),
  INSTRUCTIONS_FOR: z
    .string()
    .transform((text, ctx) => {
      const groups = parseGroups(text);
      if (groups !== undefined) return groups;
      const message = `must be some of ${GROUPS.join(', ')}, separated by |; cancelPayout needs payouts`;
      ctx.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .meta({
      description: 'What the bank has of `payments|refunds|payouts|cancelPayout|disputes`',
    }),
  INSTRUCTIONS_PER_SECOND: z.coerce.number().int().min(1).max(1_000).default(20).meta({
    description: 'Instructions per second of each process',
  }),
  REFERENCE_PER_STEP: z.enum(['yes', 'no']).default('no').meta({
    description: 'yes: `completed` of a payout has another `bank_reference` than `sent`',
  }),
};

export type HttpSettings = typeof httpSettings;
