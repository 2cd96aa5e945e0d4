import { InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { isScope, SCOPES, type Scope } from '../domain/api-key';
import { isBalanceAccountName } from '../domain/balance-account';
import { isCurrency } from '../domain/currencies';
import { parseCreatedBefore } from '../domain/cursor';
import { MONTHS_MAX } from '../domain/retention';
import { Amount } from '../domain/wire/fields';

/** Option `--env sandbox|live`, which every command about one environment needs. */
export function envOption(): Option {
  return new Option('--env <env>', 'environment')
    .choices(['sandbox', 'live'])
    .makeOptionMandatory();
}

/** Parses `--email`. */
export function parseEmail(text: string): string {
  if (text.length <= 254 && z.email().safeParse(text).success) return text;
  throw new InvalidArgumentError('It must be an e-mail address, such as ana@example.com.');
}

/** Parses `--limit`. */
export function parseLimit(max: number): (text: string) => number {
  return (text) => {
    const limit = Number(text);
    if (/^\d{1,6}$/.test(text) && limit >= 1 && limit <= max) return limit;
    throw new InvalidArgumentError(`It must be an integer from 1 to ${max}.`);
  };
}

/** Parses `--payer-data-months`. */
export function parseMonths(text: string): number {
  const months = Number(text);
  if (/^\d{1,3}$/.test(text) && months >= 1 && months <= MONTHS_MAX) return months;
  throw new InvalidArgumentError(`It must be an integer from 1 to ${MONTHS_MAX}.`);
}

/** Parses `--before`: a place in a list, as `next_cursor` gives it. */
export function parseCursor(text: string): string {
  const position = parseCreatedBefore(text);
  if (position !== undefined) return position;
  throw new InvalidArgumentError(
    'It must be an ISO 8601 timestamp with an offset, such as the last next_cursor.',
  );
}

/** Parses `--scopes a,b`. */
export function parseScopes(text: string): Scope[] {
  const named = text.split(',').map((scope) => scope.trim());
  const scopes = named.filter(isScope);
  if (scopes.length !== named.length) {
    throw new InvalidArgumentError(`Allowed, separated by commas: ${SCOPES.join(', ')}.`);
  }
  return SCOPES.filter((scope) => scopes.includes(scope));
}

/** Parses names of a fixed list, as `--status a,b` has them. */
export function parseNames<Name extends string>(
  allowed: readonly Name[],
): (text: string) => Name[] {
  return (text) => {
    const named = text.split(',').map((word) => word.trim());
    const known = allowed.filter((name) => named.some((word) => word === name));
    if (known.length === new Set(named).size) return known;
    throw new InvalidArgumentError(`Allowed, separated by commas: ${allowed.join(', ')}.`);
  };
}

/** Parses `--balance-account`. */
export function parseBalanceAccount(text: string): string {
  if (isBalanceAccountName(text)) return text;
  throw new InvalidArgumentError(
    'It must be 1 to 64 letters, digits, hyphens and underscores, and begin with a letter or digit.',
  );
}

/** Parses `--currency`. */
export function parseCurrency(text: string): string {
  if (isCurrency(text)) return text;
  throw new InvalidArgumentError('It must be an ISO 4217 code in capitals, such as EUR.');
}

/**
 * Parses `--amount`, in minor units. A decimal is refused, never rounded.
 * @see docs/api.md#money-json-text
 */
export function parseAmount(text: string): number {
  const amount = Amount.safeParse(/^\d+$/.test(text) ? Number(text) : undefined);
  if (amount.success) return amount.data;
  throw new InvalidArgumentError(
    'It must be an integer from 1 to 99999999999, in minor units: 10.50 EUR is 1050.',
  );
}

/** Parses the signed `--amount` of a correction, in minor units. */
export function parseSignedAmount(text: string): number {
  return text.startsWith('-') ? -parseAmount(text.slice(1)) : parseAmount(text);
}

/** Parses the signed `--amount` of a correction of coins, in their smallest unit. */
export function parseSignedUnits(text: string): bigint {
  if (/^-?[1-9]\d{0,27}$/.test(text)) return BigInt(text);
  throw new InvalidArgumentError('It must be an integer, in the smallest unit of the coin.');
}

/** Option `--approved-by`: the second operator, where one is needed. */
export function approvedByOption(): Option {
  return new Option('--approved-by <name>', 'second operator, who approves it').argParser(
    parseWords(100),
  );
}

/** Parses `--operation-id`, also as the command prints it. */
export function parseOperationId(text: string): string {
  const id = text.replace(/^(funded|adjusted):/, '');
  if (/^[A-Za-z0-9_-]{1,100}$/.test(id)) return id;
  throw new InvalidArgumentError('It must be 1 to 100 letters, digits, hyphens and underscores.');
}

/** Option `--operator`: the name that the audit trail keeps. */
export function operatorOption(): Option {
  return new Option('--operator <name>', 'who does it').argParser(parseWords(100));
}

/** Option `--reason`. */
export function reasonOption(): Option {
  return new Option('--reason <text>', 'why, in your words').argParser(parseWords(500));
}

function parseWords(max: number): (text: string) => string {
  return (text) => {
    if (text.trim() !== '' && text.length <= max) return text.trim();
    throw new InvalidArgumentError(`It must have 1 to ${max} characters.`);
  };
}

const HOURS_MAX = 30 * 24;

/** Parses `--hours` of a snooze. */
export function parseHours(text: string): number {
  const hours = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && hours > 0 && hours <= HOURS_MAX) return hours;
  throw new InvalidArgumentError(`It must be more than 0 and at most ${HOURS_MAX}.`);
}
