import { z } from 'zod';
import { parsePosition } from '../domain/cursor';
import { isBalanceAccountName, isCurrency } from '../domain/money/money';
import { BANK_REFERENCE, BANK_REFERENCE_FAULT, toLowerId } from '../domain/shape';
import { Id, isEmail, Amount as WireAmount } from '../domain/wire/fields';

export { Id } from '../domain/wire/fields';

export const AccountId = Id.meta({ argument: true });

export function idOption(description: string) {
  return Id.meta({ description, placeholder: 'id' });
}

export function textOption(description: string, placeholder: string) {
  return z.string().meta({ description, placeholder });
}

export const Env = z.enum(['sandbox', 'live']).describe('environment').meta({ placeholder: 'env' });

export const OWNER = { account_id: AccountId, env: Env };

export function wholeNumber(min: number, max: number) {
  const fault = `It must be an integer from ${min} to ${max}.`;
  const digits = new RegExp(`^\\d{1,${String(max).length}}$`);
  return z
    .string()
    .regex(digits, fault)
    .transform(Number)
    .pipe(z.int().min(min, fault).max(max, fault));
}

export function limit(max: number, usual: number) {
  const schema = wholeNumber(1, max).default(usual);
  return schema.describe(`how many, 1 to ${max}`).meta({ placeholder: 'n' });
}

/** Names separated by commas; the result has the order of `allowed`. */
export function names<Name extends string>(allowed: readonly Name[]) {
  const fault = `Allowed, separated by commas: ${allowed.join(', ')}.`;
  return z
    .string()
    .transform((text) => [...new Set(text.split(',').map((name) => name.trim()))])
    .pipe(z.array(z.enum(allowed, fault)))
    .transform((chosen) => allowed.filter((name) => chosen.includes(name)))
    .meta({ placeholder: 'list' });
}

export const Email = z
  .string()
  .refine(isEmail, 'It must be an e-mail address, such as ana@example.com.')
  .meta({ placeholder: 'address' });

export function readBy<T>(read: (text: string) => T | undefined, fault: string) {
  return z.string().transform((text, context) => {
    const value = read(text);
    if (value !== undefined) return value;
    context.addIssue(fault);
    return z.NEVER;
  });
}

export const Time = readBy(
  parsePosition,
  'It must be an ISO 8601 timestamp with an offset, such as the last next_cursor.',
).meta({ placeholder: 'time' });

export const BalanceAccount = z
  .string()
  .refine(
    isBalanceAccountName,
    'It must be 1 to 64 letters, digits, hyphens and underscores, and begin with a letter or digit.',
  )
  .describe('which balance')
  .meta({ placeholder: 'name' });

export const Currency = z
  .string()
  .refine(isCurrency, 'It must be an ISO 4217 code in capitals, such as EUR.')
  .describe('ISO 4217 code')
  .meta({ placeholder: 'currency' });

const AMOUNT_FAULT =
  'It must be an integer from 1 to 99999999999, in minor units: 10.50 EUR is 1050.';

function readAmount(text: string): number | undefined {
  return /^\d+$/.test(text) ? WireAmount.safeParse(Number(text)).data : undefined;
}

/** Minor units. A decimal is refused, never rounded. @see docs/api.md#money-json-text */
export const Amount = readBy(readAmount, AMOUNT_FAULT).meta({ placeholder: 'minor' });

/** Minor units; below 0 debits. */
export const SignedAmount = readBy((text) => {
  const amount = readAmount(text.replace(/^-/, ''));
  return amount !== undefined && text.startsWith('-') ? -amount : amount;
}, AMOUNT_FAULT);

export const SignedUnits = readBy(
  (text) => (/^-?[1-9]\d{0,27}$/.test(text) ? BigInt(text) : undefined),
  'It must be an integer, in the smallest unit of the asset.',
);

/** Accepts the id with or without the prefix that commands print. */
export const OperationId = readBy((text) => {
  const id = /^(?:(?:funded|adjusted):)?([A-Za-z0-9_-]{1,100})$/.exec(text)?.[1];
  return id && toLowerId(id);
}, 'It must be 1 to 100 letters, digits, hyphens and underscores.').meta({ placeholder: 'id' });

export function words(max: number) {
  const fault = `It must have 1 to ${max} characters.`;
  return z.string().max(max, fault).trim().min(1, fault);
}

export const Operator = words(100)
  .describe('who does it; on live the key says so')
  .meta({ placeholder: 'name' });
export const Reason = words(500).describe('why, in your words').meta({ placeholder: 'text' });

/** Options for who changes something, and why. */
export const NOTED = { operator: Operator.optional(), reason: Reason.optional() };

export const ON_LIVE = 'On live it needs OPERATOR_KEY and --reason.';

/** Options of a command that asks for an approval and prints a secret. */
export const APPROVED = {
  reason: Reason.optional(),
  operation_id: OperationId.optional().describe('makes a repeat find the request'),
};
export const APPROVED_NOTE = `On live it needs OPERATOR_KEY and --reason, and another operator approves it; then
repeat it with the same --operation-id.`;

export const APPROVED_HERE =
  'On live it needs OPERATOR_KEY and --reason, and is done once another operator approves it.';

export const ApprovedBy = words(100)
  .optional()
  .describe('second operator, in the sandbox')
  .meta({ placeholder: 'name' });

export const Connector = textOption('the connector of the bank', 'name');

export const BankReference = words(100)
  .regex(
    BANK_REFERENCE,
    `It ${BANK_REFERENCE_FAULT}; others, and %, as statement show prints them.`,
  )
  .describe("the bank's name for the movement")
  .meta({ placeholder: 'text' });

const HOURS_MAX = 30 * 24;

export const Hours = readBy((text) => {
  const hours = Number(text);
  return /^\d+(\.\d+)?$/.test(text) && hours > 0 && hours <= HOURS_MAX ? hours : undefined;
}, `It must be more than 0 and at most ${HOURS_MAX}.`).meta({ placeholder: 'n' });

/** A day begins in UTC, whatever the zone of the machine. */
export const Since = readBy((text) => {
  const position = parsePosition(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  return position === undefined ? undefined : new Date(position);
}, 'It must be a day, or an ISO 8601 time with an offset, such as 2026-03-01T09:00:00Z.');
