import { z } from 'zod';
import { BankFailure, type Tools } from '../kit';
import type { Book } from './book';
import { Problem } from './objects';
import type { StripeSettings } from './settings';

/** Version that requests pin and answers have; that of the library in `package.json`. */
export const API_VERSION = '2026-08-26.dahlia';

/** Parts of the connector, besides its tools. */
export interface Parts {
  book: Book;
  livemode: boolean;
  /** Nothing is sent before this time, in ms, as Stripe has asked. */
  pause: { until: number };
}

export type StripeTools = Tools<StripeSettings> & Parts;

type Param = string | number | readonly Param[] | { readonly [name: string]: Param | undefined };
export type Params = { readonly [name: string]: Param | undefined };

/** Encodes parameters as Stripe reads them: `a[b]=1&c[0]=2`. */
export function encodeForm(params: Params): string {
  const pairs: [string, string][] = [];
  const add = (name: string, value: Param | undefined): void => {
    if (value === undefined) return;
    if (typeof value !== 'object') return void pairs.push([name, String(value)]);
    for (const [key, each] of Object.entries(value)) {
      add(name === '' ? key : `${name}[${key}]`, each);
    }
  };
  add('', params);
  return new URLSearchParams(pairs).toString();
}

interface Request {
  path: string;
  /** Query of a GET, else body. */
  params?: Params;
  post?: boolean;
  /** Idempotency key. */
  key?: string;
}

/** Longest wait that Stripe is granted. */
const WAIT_MS_MAX = 60_000;

/** Object, or the error with which Stripe refuses the request for good. */
export type Outcome<O> =
  | { object: O; problem?: undefined }
  | { problem: Problem['error']; object?: undefined };

/**
 * Calls Stripe with the pinned version of the API.
 * @throws BankFailure for everything that another try may change
 */
export async function callStripe<S extends z.ZodType>(
  { call, settings, pause }: StripeTools,
  { path, params = {}, post = false, key }: Request,
  schema: S,
): Promise<Outcome<z.output<S>>> {
  if (Date.now() < pause.until) throw new BankFailure('Stripe has asked to wait: nothing is sent.');
  const text = encodeForm(params);
  const query = post || text === '' ? '' : `?${text}`;
  const request = {
    method: post ? ('POST' as const) : ('GET' as const),
    url: `${settings.STRIPE_API_URL}/v1/${path}${query}`,
    headers: {
      Authorization: `Bearer ${settings.STRIPE_SECRET_KEY_FILE}`,
      'Stripe-Version': API_VERSION,
      ...(post ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {}),
      ...(key === undefined ? {} : { 'Idempotency-Key': key }),
    },
    ...(post ? { text } : {}),
  };
  try {
    const answer = await call(request, { 200: schema, 400: Problem, 402: Problem, 404: Problem });
    if (answer.status === 200) return { object: answer.body as z.output<S> };
    const { error } = answer.body as Problem;
    // Under this key Stripe has another request, which may have moved money.
    if (error.type !== 'idempotency_error') return { problem: error };
    throw new BankFailure('Stripe has another request under this idempotency key.');
  } catch (error) {
    const seconds = error instanceof BankFailure && error.answer?.headers.get('Retry-After');
    const wait = Math.min(Number(seconds) * 1_000 || 0, WAIT_MS_MAX);
    pause.until = Math.max(pause.until, Date.now() + wait);
    throw error;
  }
}

/** @throws BankFailure for a refusal, which is named by the code of Stripe */
export async function readStripe<S extends z.ZodType>(
  tools: StripeTools,
  request: Request,
  schema: S,
): Promise<z.output<S>> {
  const answer = await callStripe(tools, request, schema);
  if (answer.problem === undefined) return answer.object;
  throw buildFailure(answer.problem);
}

export function buildFailure({ type, code = type }: Problem['error']): BankFailure {
  return new BankFailure(`Stripe refuses the request: ${code.replaceAll(/[^a-z_]/g, '')}.`);
}

interface List extends Request {
  /** Pages after which the list is too long. */
  pagesMax?: number;
}

const PAGE = 100;

/** Reads one page of a list, the newest first. */
export async function readPage<S extends z.ZodType>(
  tools: StripeTools,
  { path, params }: Request,
  schema: S,
) {
  const list = z.object({ data: z.array(schema), has_more: z.boolean() });
  return await readStripe(tools, { path, params: { limit: PAGE, ...params } }, list);
}

/**
 * Walks through a list, the newest first.
 * @throws BankFailure if it is too long
 */
export async function* walkList<S extends z.ZodType<{ id: string }>>(
  tools: StripeTools,
  { path, params, pagesMax = 100 }: List,
  schema: S,
): AsyncGenerator<z.output<S>> {
  let starting_after: string | undefined;
  for (let page = 0; page < pagesMax; page += 1) {
    const list = { path, params: { ...params, starting_after } };
    const { data, has_more } = await readPage(tools, list, schema);
    yield* data;
    if (!has_more) return;
    starting_after = data.at(-1)?.id;
  }
  throw new BankFailure(`The list ${path} is too long to be looked through.`);
}

/**
 * Finds the first object of a list that fits.
 * @throws BankFailure if the list is too long to say that there is none
 */
export async function findInList<S extends z.ZodType<{ id: string }>>(
  tools: StripeTools,
  list: List,
  schema: S,
  fits: (object: z.output<S>) => boolean,
): Promise<z.output<S> | undefined> {
  for await (const each of walkList(tools, list, schema)) if (fits(each)) return each;
  return undefined;
}
