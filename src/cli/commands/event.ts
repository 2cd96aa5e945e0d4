import { z } from 'zod';
import { ServiceError } from '../../domain/errors';
import { DELIVERY_STATUSES, type DeliveryStatus, EVENT_TYPES } from '../../domain/events/event';
import {
  findEvent,
  type ListedEvent,
  listAttempts,
  listEventsBefore,
  presentDelivery,
  presentOldest,
  readEventHistory,
} from '../../service/events/list';
import { countSelected, redeliverAll, redeliverEvent } from '../../service/events/redeliveries';

import { accountNow } from '../../service/merchants/clock';
import { withAuditLine } from '../../service/operators/audit/log';
import { defineCommand, defineGroup } from '../command';
import { type CliContext, findOwner } from '../context';
import { Env, Id, idOption, limit, names, OWNER, Time } from '../options';
import { fields, formatTime, printList, table } from '../output';

const PROGRESS_EVERY = 100;
const STATUSES: DeliveryStatus[] = ['exhausted', 'pending'];

const Options = z.object({
  event_id: Id.optional().meta({ argument: true }),
  account: idOption('send many: those of this account').optional(),
  env: Env.optional().describe('of this environment'),
  since: Time.optional().describe('created at this time or later'),
  until: Time.optional().describe('created before this time (default: now)'),
  status: names(DELIVERY_STATUSES)
    .optional()
    .describe(`with a delivery that is ${DELIVERY_STATUSES.join(', ')} (default: ${STATUSES})`),
  type: names(EVENT_TYPES).optional().describe('of these types'),
  dry_run: z.boolean().optional().describe('only count them'),
});
type Selection = Omit<z.infer<typeof Options>, 'event_id'>;

const redeliver = defineCommand({
  name: 'redeliver',
  description: 'send an event again, or many',
  options: Options,
  notes: `
Each is sent to the endpoint as it is now, with twelve new attempts, which replace those that are left.
Many are sent at 20 a second; events that wait for their first attempt are left alone.`,
  example: 'event redeliver --account acct_… --env live --since 2026-11-21T06:00:00Z --dry-run',
  run: async (context, { event_id: id, ...selection }) => {
    if (id === undefined) return await redeliverMany(context, selection);
    if (Object.values(selection).some((value) => value !== undefined)) {
      throw new ServiceError('invalid_usage', 'Give an event id or options, not both.');
    }
    const acting = await context.actingDeps();
    // Refuses an unknown event even while Temporal is unavailable.
    const { account_id, livemode, type } = await findEvent(acting.stores, id);
    const deps = await context.withTemporal(acting);
    const owner = { account_id, livemode };
    const change = { act: 'event.sent', ...owner, target: id, after: { type } } as const;
    await withAuditLine(deps.audit, change, () => redeliverEvent(deps, id));
    context.print({
      json: { event_id: id, status: 'pending' },
      text: `${id} is being sent again; \`event show ${id}\` shows its attempts.`,
    });
  },
});

async function redeliverMany(
  context: CliContext,
  { account, env, since, until, status = STATUSES, type, dry_run = false }: Selection,
) {
  if (account === undefined || env === undefined || since === undefined) {
    const message = 'Give an event id, or --account, --env and --since.';
    throw new ServiceError('invalid_usage', message);
  }
  const acting = await context.actingDeps();
  const owner = await findOwner(context, { account_id: account, env });
  const now = await accountNow({ ...acting, now: context.now }, owner);
  const times = { since, until: until ?? now.toISOString() };
  const filter = { ...owner, ...times, statuses: status, types: type };
  const counts = await countSelected(acting, filter);
  const each = Object.entries(counts.by_status).map(([name, count]) => `${name} ${count}`);
  const summary = `To be sent again: ${counts.found} (${each.join(', ')}).`;
  if (dry_run) {
    context.print({ json: { ...counts, dry_run, sent: 0, skipped: 0 }, text: summary });
    return;
  }
  context.progress(summary);
  const deps = await context.withTemporal(acting);
  const after = { ...times, delivery: status, types: type, found: counts.found };
  const change = { act: 'event.sent', ...owner, target: null, after } as const;
  const { sent, skipped } = await withAuditLine(deps.audit, change, () =>
    redeliverAll(deps, filter, (total) => {
      const done = total.sent + total.skipped;
      if (done % PROGRESS_EVERY === 0) context.progress(`${done} of ${counts.found}`);
    }),
  );
  const why = 'another redelivery sends them, or their endpoint was disabled or deleted meanwhile';
  const text = `Sent again: ${sent}.${skipped === 0 ? '' : ` Left out: ${skipped} (${why}).`}`;
  context.print({ json: { ...counts, dry_run, sent, skipped }, text });
}

const list = defineCommand({
  name: 'list',
  description: 'list events, newest first',
  options: z.object({
    ...OWNER,
    limit: limit(100, 25),
    before: Time.optional()
      .describe('continue a list at its next_cursor, or before a time')
      .meta({ placeholder: 'cursor' }),
    resource: idOption('only events of this payment, refund or payout').optional(),
  }),
  example: 'event list acct_… --env sandbox --limit 10',
  run: async (context, { account_id, env, resource: resource_id, before, ...page }) => {
    const query = { ...(await findOwner(context, { account_id, env })), resource_id };
    const range = { ...page, created_before: before };
    printList(context, {
      ...(await listEventsBefore(await context.readDeps(), query, range)),
      present: presentEvent,
      columns: {
        EVENT: 'id',
        CREATED: ({ created }) => formatTime(created),
        TYPE: 'type',
        RESOURCE: (_, { event }) => event.resource_id,
        DELIVERY: ({ delivery }) => delivery.status,
        ATTEMPTS: ({ delivery }) => String(delivery.attempts),
        'NEXT ATTEMPT': ({ delivery }) => formatTime(delivery.next_attempt_at),
      },
      none: 'There are no events.',
    });
  },
});

const show = defineCommand({
  name: 'show',
  description: 'show one event with every attempt to deliver it',
  options: z.object({ event_id: Id.meta({ argument: true }) }),
  example: 'event show evt_…',
  run: async (context, { event_id }) => {
    const { stores } = await context.readDeps();
    const listed = await readEventHistory({ stores }, event_id);
    const { event, deliveries } = listed;
    const { account_id, resource_id } = event;
    const rows = listAttempts(deliveries).reverse();
    const attempts = rows.map(({ event_id: _, first_at: _first, ...attempt }) => attempt);
    const head = fields([
      ['Event', event_id],
      ['Type', event.type],
      ['Created', formatTime(event.created)],
      ['Account', `${account_id}, ${event.livemode ? 'live' : 'sandbox'}`],
      ['Resource', resource_id],
      ['Data', JSON.stringify(event.data)],
      ...formatDeliveries(deliveries),
    ]);
    const cells = attempts.map((row) => [
      formatTime(row.at),
      row.run === 0 ? 'first' : `again ${row.run}`,
      String(row.attempt),
      row.outcome,
      [row.status_code && `HTTP ${row.status_code}`, row.error].filter(Boolean).join(': '),
      `${row.duration_ms} ms`,
      row.url,
    ]);
    const heading = ['AT', 'DELIVERY', 'ATTEMPT', 'OUTCOME', 'ANSWER', 'TOOK', 'URL'];
    context.print({
      json: {
        ...presentEvent(listed),
        ...{ account_id, resource_id, deliveries: deliveries.map(presentDelivery), attempts },
      },
      text: `${head}\n\n${table(heading, cells, 'No attempt was made yet.')}`,
    });
  },
});

function formatDeliveries(deliveries: ListedEvent['deliveries']) {
  if (deliveries.length > 1) {
    return deliveries.map((row) => {
      const { endpoint_id, status, next_attempt_at } = presentDelivery(row);
      const next = next_attempt_at === null ? '' : `, next attempt ${formatTime(next_attempt_at)}`;
      return ['Delivery', `${status} to ${endpoint_id}${next}`] as const;
    });
  }
  const { status, next_attempt_at } = presentOldest(deliveries);
  return [
    ['Delivery', status],
    ['Next attempt', formatTime(next_attempt_at)],
  ] as const;
}

function presentEvent({ event, deliveries }: ListedEvent) {
  const { _id: id, type, created, livemode, data } = event;
  return { id, type, created, livemode, data, delivery: presentOldest(deliveries) };
}

export const eventCommands = defineGroup({
  name: 'event',
  description: 'what the merchant is notified of, and its deliveries',
  commands: [list, show, redeliver],
});
