import { z } from 'zod';
import { isLive } from '../../domain/environment';
import { findAccount } from '../../service/accounts';
import { type EventDocument, listEventsBefore, readEventHistory } from '../../service/events/list';
import { defineCommand, defineGroup } from '../command';
import { AccountId, Env, limit, Time, textOption } from '../options';
import { fields, formatTime, printList, table } from '../output';
import { redeliver } from './redeliver';

const list = defineCommand({
  name: 'list',
  description: 'list events, newest first',
  options: z.object({
    account_id: AccountId,
    env: Env,
    limit: limit(100, 25),
    before: Time.optional()
      .describe('continue a list at its next_cursor, or before a time')
      .meta({ placeholder: 'cursor' }),
    resource: textOption('only events of this payment, refund or payout', 'id').optional(),
  }),
  example: 'event list acct_… --env sandbox --limit 10',
  run: async (context, { account_id, env, resource: resource_id, before, ...page }) => {
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    const query = { account_id, livemode: isLive(env), resource_id };
    const { rows, ...more } = await listEventsBefore({ stores }, query, {
      ...page,
      created_before: before,
    });
    printList(context, {
      rows,
      ...more,
      present: presentEvent,
      columns: ['EVENT', 'CREATED', 'TYPE', 'RESOURCE', 'DELIVERY', 'ATTEMPTS', 'NEXT ATTEMPT'],
      cells: ({ id, type, created, delivery }, event) => [
        id,
        formatTime(created),
        type,
        event.resource_id,
        delivery.status,
        String(delivery.attempts),
        formatTime(delivery.next_attempt_at),
      ],
      none: 'There are no events.',
    });
  },
});

const show = defineCommand({
  name: 'show',
  description: 'show one event with every attempt to deliver it',
  options: z.object({ event_id: z.string().meta({ argument: true }) }),
  example: 'event show evt_…',
  run: async (context, { event_id }) => {
    const { stores } = await context.readDeps();
    const { event, attempts: rows } = await readEventHistory({ stores }, event_id);
    const { account_id, resource_id, delivery } = event;
    const attempts = rows.map((row) => ({
      run: row.run,
      attempt: row.attempt,
      at: row.at,
      url: row.url,
      outcome: row.outcome,
      status_code: row.status_code,
      error: row.error,
      duration_ms: row.duration_ms,
      response_excerpt: row.response_excerpt,
      next_attempt_at: row.next_attempt_at,
    }));
    const head = fields([
      ['Event', event_id],
      ['Type', event.type],
      ['Created', formatTime(event.created)],
      ['Account', `${account_id}, ${event.livemode ? 'live' : 'sandbox'}`],
      ['Resource', resource_id],
      ['Data', JSON.stringify(event.data)],
      ['Delivery', delivery.status],
      ['Next attempt', formatTime(delivery.next_attempt_at)],
    ]);
    const cells = attempts.map((row) => [
      formatTime(row.at),
      row.run === 0 ? 'first' : `again ${row.run}`,
      String(row.attempt),
      row.outcome,
      row.error ?? `HTTP ${row.status_code}`,
      `${row.duration_ms} ms`,
      row.url,
    ]);
    const heading = ['AT', 'DELIVERY', 'ATTEMPT', 'OUTCOME', 'ANSWER', 'TOOK', 'URL'];
    context.print({
      json: { ...presentEvent(event), account_id, resource_id, attempts },
      text: `${head}\n\n${table(heading, cells, 'No attempt was made yet.')}`,
    });
  },
});

function presentEvent({ _id: id, type, created, livemode, data, delivery }: EventDocument) {
  const { status, attempts, next_attempt_at } = delivery;
  return { id, type, created, livemode, data, delivery: { status, attempts, next_attempt_at } };
}

export const eventCommands = defineGroup({
  name: 'event',
  description: 'what the merchant is notified of, and its deliveries',
  commands: [list, show, redeliver],
});
