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
import { EVENT_TYPES } from './codes';
import { type Facts, isOurs, NONE, readFacts, reportMode } from './facts';
import { Booked, Event, Hint, Row } from './objects';

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

/** Reads the facts of rows. One that does not fit must not keep back all others. */
async function readRows<S extends z.ZodType>(
  rows: readonly Row[],
  schema: S,
  read: (fitting: z.output<S>) => Promise<Facts>,
) {
  const malformed: Malformed[] = [];
  const facts = await Promise.all(
    rows.map(async (row): Promise<Facts> => {
      const { success, data, error } = schema.safeParse(row);
      const fields = error?.issues.map(({ path }) => path.join('.')) ?? [];
      try {
        if (success) return await read(data);
        throw new AnswerMalformed(`The list has ${fields.join(', ')} that does not fit.`);
      } catch (failure) {
        if (!(failure instanceof AnswerMalformed)) throw failure;
        malformed.push({ id: row.id, why: failure.message });
        return NONE;
      }
    }),
  );
  const done = rows.filter((_row, index) => facts[index]?.isUnbooked !== true);
  return { done, found: { reports: facts.flatMap(({ reports }) => reports), malformed } };
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
    const cursor = text === null ? undefined : Cursor.parse(JSON.parse(text));
    if (cursor === undefined || now - cursor.read_at > GAP_S_MAX) {
      const walk = { list: WALKS[0], from: (cursor?.at ?? now) - CHANGES_S };
      return await readWalk({ at: now, read_at: now, reads: 0 }, walk, tools);
    }
    if (cursor.walk !== undefined) return await readWalk(cursor, cursor.walk, tools);
    if (pending?.cursor === text) {
      for (const { id, created } of pending?.events ?? []) seen.set(id, created);
    }
    const { at, top: known = at, after: starting_after } = cursor;
    const oldest = at - OVERLAP_S;
    for (const [id, created] of seen) if (created < oldest) seen.delete(id);
    const params = { created: { gte: oldest }, types: EVENT_TYPES, starting_after };
    const { data, has_more } = await readPage(tools, { path: 'events', params }, Row);
    const events = data.filter(({ id }) => !seen.has(id));
    const read = (event: Event) => readEvent(event, tools);
    const { done, found } = await readRows(events, Event, read);
    const top = Math.max(known, data[0]?.created ?? 0);
    const reads = cursor.reads + (done.length > 0 ? 1 : 0);
    const read_at = now - (now % HOUR_S);
    const page = has_more ? { at, top, after: data.at(-1)?.id } : { at: top };
    const next = JSON.stringify({ ...page, read_at, reads });
    pending = { cursor: next, events: done };
    return { ...found, cursor: next, more: has_more };
  };
}

/** Reads a page of a list in place of events: what it names is read as if an event had named it. */
async function readWalk(
  { at, read_at, reads, after }: Cursor,
  { list, from }: NonNullable<Cursor['walk']>,
  tools: StripeTools,
): Promise<Page> {
  const gte = list === 'disputes' ? from + CHANGES_S - DISPUTE_S : from;
  const isBooked = list === 'balance_transactions';
  const expand = isBooked ? ['data.source'] : undefined;
  const params = { created: { gte }, starting_after: after, expand };
  const { data, has_more } = await readPage(tools, { path: list, params }, Row);
  const schema = isBooked ? Booked : Hint.transform((source) => ({ source }));
  const read = ({ source }: z.infer<typeof Booked>) => readHint(source, tools);
  const { found } = await readRows(data, schema, read);
  const following = has_more ? list : WALKS[WALKS.indexOf(list) + 1];
  const walk = following && { list: following, from };
  const cursor = { at, read_at, reads, walk, after: has_more ? data.at(-1)?.id : undefined };
  return { ...found, cursor: JSON.stringify(cursor), more: true };
}
