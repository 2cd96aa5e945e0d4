import type { z } from 'zod';
import type { Report } from '../definition';
import { hide, hidePath, type Knowledge, type Shown } from './hide';

interface Exchange {
  name: string;
  sent?: Shown;
  status: string;
  received?: Shown;
}

/** Instruction with its answer, or reports with their source. */
export interface Step {
  at: Date;
  source: string;
  resource: string;
  resource_id: string | null;
  instruction: Shown | null;
  exchanges: readonly Exchange[];
  answer: Shown | null;
  failure: string | null;
  callbacks: readonly Shown[];
}

/** Exchange to hide later: the answer says which of its values are known. */
interface RawExchange {
  method: string;
  url: string | URL;
  sent?: unknown;
  status: string;
  received?: unknown;
  schema?: z.ZodType | undefined;
}

export interface Recording {
  raw: RawExchange[];
  /** Recipient's data, in lower case. */
  personal: string[];
}

export type Fields = Record<string, unknown>;

/** Facts without personal data. Addresses may have a secret. */
const INSTRUCTED = [
  ...['payment_id', 'refund_id', 'payout_id', 'instruction_id', 'version', 'amount', 'currency'],
  ...['method', 'country', 'payment_bank_reference', 'livemode', 'expires_at'],
];
const ANSWERED = ['outcome', 'bank_reference', 'code', 'amount', 'currency'];
const REPORTED = [
  ...['callback_id', 'occurred_at', 'bank_reference', 'code', 'amount', 'currency'],
  ...['value_date', 'dispute_id', 'fee', 'result'],
];

interface Ending {
  failure: string | null;
  recording: Recording;
}

export function buildInstruction(
  source: string,
  input: Fields,
  { answer, failure, recording }: Ending & { answer: Fields },
): Omit<Step, 'at'> {
  const instructed = pick(input, INSTRUCTED);
  const answered = pick(answer, ANSWERED);
  // Instructions over HTTP have the activity's name in their path.
  const knowledge = learn(recording, [instructed, answered, { source }]);
  const [resource = ''] = ['refund', 'payout', 'payment'].filter(
    (each) => typeof input[`${each}_id`] === 'string',
  );
  return {
    ...{ source, resource, resource_id: String(input[`${resource}_id`]), failure },
    instruction: hide(instructed, knowledge),
    exchanges: hideExchanges(recording, knowledge),
    answer: failure === null ? hide(answered, knowledge) : null,
    callbacks: [],
  };
}

export function buildReported(
  source: string,
  reports: readonly Report[],
  { failure, recording, parked }: Ending & { parked: readonly Report[] },
): Omit<Step, 'at'> {
  const reported = reports.map((report) => ({
    name: report.name,
    ...pick(report.callback, REPORTED),
    ...(parked.includes(report) ? { applied: false } : {}),
  }));
  const [{ resource = '', resource_id = '' } = {}] = reports;
  const knowledge = learn(recording, [{ resource, resource_id }, ...reported]);
  return {
    ...{ source, resource, resource_id, instruction: null, answer: null, failure },
    exchanges: hideExchanges(recording, knowledge),
    callbacks: reported.map((each) => hide(each, knowledge)),
  };
}

function hideExchanges({ raw }: Recording, knowledge: Knowledge): Exchange[] {
  return raw.map(({ method, url, sent, status, received, schema }) => ({
    name: `${method} ${hidePath(url, knowledge)}`,
    ...(sent === undefined ? {} : { sent: hide(sent, knowledge) }),
    status,
    ...(received === undefined ? {} : { received: hide(received, knowledge, schema) }),
  }));
}

/** Collects the values that may be shown: those of the contract, an ID also without dashes. */
function learn({ personal }: Recording, facts: readonly Fields[]): Knowledge {
  const values = facts.flatMap((each) => Object.values(each)).map(String);
  const short = values.map((value) => value.replaceAll('-', ''));
  return { known: new Set([...values, ...short]), personal };
}

export function buildRefused(failure: string): Omit<Step, 'at'> {
  return {
    ...{ source: 'webhook', resource: 'webhook', resource_id: null, instruction: null },
    ...{ exchanges: [], answer: null, failure, callbacks: [] },
  };
}

export function nameError(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

function pick(from: object, names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)));
}
