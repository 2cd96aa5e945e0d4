import Stripe from 'stripe';
import { z } from 'zod';
import {
  AnswerMalformed,
  type Malformed,
  type Poll,
  type Report,
  WebhookRefused,
  type WebhookRequest,
} from '../kit';
import { readPage, type StripeTools } from './api';
import { type Facts, isOurs, NONE, readFacts, reportMode } from './facts';
import { Event, Hint } from './objects';

/** Types to which the webhook has to be subscribed, and that are read from the list of events. */
const EVENT_TYPES: readonly string[] = [
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
  'checkout.session.async_payment_failed',
  'checkout.session.expired',
  'payment_intent.processing',
  'charge.succeeded',
  'charge.updated',
  'charge.dispute.created',
  'charge.dispute.updated',
  'charge.dispute.closed',
  'charge.dispute.funds_withdrawn',
  'charge.dispute.funds_reinstated',
  'refund.created',
  'refund.updated',
  'refund.failed',
];

/** Verifies a webhook by the official library, and reads what its object says now. */
export async function readWebhook(
  { body, headers }: WebhookRequest,
  tools: StripeTools,
): Promise<Report[]> {
  const signature = headers['stripe-signature'];
  const secrets = tools.settings.STRIPE_WEBHOOK_SECRET_FILE.split(/\s+/);
  const isVerified = secrets.some((secret) => {
    try {
      return Boolean(Stripe.webhooks.constructEvent(body, signature ?? '', secret));
    } catch {
      return false;
    }
  });
  if (!isVerified) throw new WebhookRefused(400, 'The signature is not valid.');
  return (await readEvent(Event.parse(JSON.parse(body.toString('utf8'))), tools)).reports;
}

async function readEvent({ id, type, livemode, data }: Event, tools: StripeTools) {
  const isKnown = EVENT_TYPES.includes(type);
  if (isKnown && livemode === tools.livemode) return await readHint(data.object, tools);
  if (isKnown) reportMode(tools, id);
  return NONE;
}

/** Spares the reading of what other systems have; of a dispute only its charge says whose it is. */
async function readHint(hint: Hint | null | undefined, tools: StripeTools) {
  return hint && (isOurs(hint) || hint.object === 'dispute') ? await readFacts(hint, tools) : NONE;
}

/** Fields by which a list is read on, whatever else of it fits. */
const Row = z.looseObject({ id: z.string(), created: z.int() });
type Row = z.infer<typeof Row>;

/** Reads the facts of a row. One that does not fit must not keep back all others. */
async function readRow<S extends z.ZodType>(
  row: Row,
  schema: S,
  read: (fitting: z.output<S>) => Promise<Facts>,
): Promise<Facts & { malformed?: Malformed }> {
  const { success, data, error } = schema.safeParse(row);
  const fields = error?.issues.map(({ path }) => path.join('.')) ?? [];
  try {
    if (!success) throw new AnswerMalformed(`The list has ${fields.join(', ')} that does not fit.`);
    return await read(data);
  } catch (failure) {
    if (!(failure instanceof AnswerMalformed)) throw failure;
    return { reports: [], malformed: { id: row.id, why: failure.message } };
  }
}

function gather(all: readonly (Facts & { malformed?: Malformed })[]) {
  return {
    reports: all.flatMap(({ reports }) => reports),
    malformed: all.flatMap(({ malformed }) => malformed ?? []),
  };
}

const DAY_S = 86_400;

/** Events that Stripe lists late. */
const OVERLAP_S = 600;

/** Stripe lists events for 30 days. */
const GAP_S_MAX = 29 * DAY_S;

/** Longest time in which something of a session may still change. */
const CHANGES_S = 30 * DAY_S;

/** And of a dispute, from its opening to the end of an arbitration. */
const DISPUTE_S = 200 * DAY_S;

const HOUR_S = 3_600;

/** Lists that are walked where events do not reach back. */
const WALKS = ['balance_transactions', 'checkout/sessions', 'refunds', 'disputes'] as const;

/** Times in Unix seconds. */
const Cursor = z.object({
  /** Creation of the newest event that was read. */
  at: z.int(),
  /** Hour of the last read. */
  read_at: z.int(),
  /** Number of reads with something new, so that a cursor says whether they were delivered. */
  reads: z.int(),
  /** A read of several pages: newest event of the first page, and last one of the last. */
  top: z.int().optional(),
  after: z.string().optional(),
  /** A walk through lists, since `from`. */
  walk: z.object({ list: z.enum(WALKS), from: z.int() }).optional(),
});
type Cursor = z.infer<typeof Cursor>;

type Page = Awaited<ReturnType<Poll<never>['read']>>;

/** Creates the reader of Stripe's list of events, for a process that reads it again and again. */
export function createEventReader() {
  /** Creation of events that were delivered, or that the cursor `pending.cursor` would say so of. */
  const seen = new Map<string, number>();
  let pending: { cursor: string; events: Row[] } | undefined;
  return async (text: string | null, tools: StripeTools): Promise<Page> => {
    const now = Math.floor(tools.now().getTime() / 1_000);
    const stored = text === null ? undefined : Cursor.parse(JSON.parse(text));
    const isGap = stored !== undefined && now - stored.read_at > GAP_S_MAX;
    const cursor = stored !== undefined && !isGap ? stored : beginWalk(stored, now);
    if (cursor.walk !== undefined) return await walk(cursor, tools);
    if (pending?.cursor === text) {
      for (const { id, created } of pending?.events ?? []) seen.set(id, created);
    }
    const oldest = cursor.at - OVERLAP_S;
    for (const [id, created] of seen) if (created < oldest) seen.delete(id);
    const { after: starting_after } = cursor;
    const params = { created: { gte: oldest }, types: EVENT_TYPES, starting_after };
    const { data, has_more } = await readPage(tools, 'events', params, Row);
    const events = data.filter(({ id }) => !seen.has(id));
    const read = (event: Event) => readEvent(event, tools);
    const facts = await Promise.all(events.map((row) => readRow(row, Event, read)));
    const done = events.filter((_event, index) => facts[index]?.isUnbooked !== true);
    const top = Math.max(cursor.top ?? cursor.at, data[0]?.created ?? 0);
    const { at } = cursor;
    const reads = cursor.reads + (done.length > 0 ? 1 : 0);
    const read_at = now - (now % HOUR_S);
    const after = data.at(-1)?.id;
    const next = has_more ? { at, read_at, reads, top, after } : { at: top, read_at, reads };
    const written = JSON.stringify(next);
    pending = { cursor: written, events: done };
    return { ...gather(facts), cursor: written, more: has_more };
  };
}

function beginWalk(stored: Cursor | undefined, now: number): Cursor {
  const from = (stored?.at ?? now) - CHANGES_S;
  return { at: now, read_at: now, reads: 0, walk: { list: WALKS[0], from } };
}

const Booked = z.object({ source: Hint.nullish() });

/** Reads a page of a list in place of events: what it names is read as if an event had named it. */
async function walk({ walk: own, after, ...cursor }: Cursor, tools: StripeTools): Promise<Page> {
  const { list, from } = own ?? { list: WALKS[0], from: 0 };
  const gte = list === 'disputes' ? from + CHANGES_S - DISPUTE_S : from;
  const params = { created: { gte }, starting_after: after };
  const isBooked = list === 'balance_transactions';
  const expand = isBooked ? ['data.source'] : undefined;
  const { data, has_more } = await readPage(tools, list, { ...params, expand }, Row);
  const schema = isBooked ? Booked : Hint.transform((source) => ({ source }));
  const read = ({ source }: z.infer<typeof Booked>) => readHint(source, tools);
  const facts = await Promise.all(data.map((row) => readRow(row, schema, read)));
  const following = has_more ? list : WALKS[WALKS.indexOf(list) + 1];
  if (following === undefined) {
    return { ...gather(facts), cursor: JSON.stringify(cursor), more: true };
  }
  const next = {
    ...{ ...cursor, walk: { list: following, from } },
    ...(has_more ? { after: data.at(-1)?.id } : {}),
  };
  return { ...gather(facts), cursor: JSON.stringify(next), more: true };
}
