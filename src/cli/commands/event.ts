import type { Command } from 'commander';
import { type Env, isLive } from '../../domain/environment';
import type { DeliveryDocument } from '../../store/deliveries';
import type { EventDocument } from '../../store/events';
import { findEvent } from '../../temporal/redeliver';
import { findAccount } from '../account';
import type { CliContext } from '../context';
import { envOption, parseCursor, parseLimit } from '../options';
import { fields, table, when } from '../output';
import { addRedeliverCommand } from './redeliver';

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 25;
const EXAMPLES = {
  group: `
Examples:
  npm run -s cli -- event list acct_… --env sandbox --limit 10
  npm run -s cli -- event show evt_…
  npm run -s cli -- event redeliver evt_…`,
  list: `
Example:
  npm run -s cli -- event list acct_… --env live --resource 0d1f… --json
  {"data": [{"id", "type", "created", "livemode", "data", "delivery"}], "has_more", "next_cursor"}`,
};

interface ListOptions {
  env: Env;
  limit: number;
  before?: string;
  resource?: string;
}

export function addEventCommands(program: Command, context: CliContext): void {
  const group = program
    .command('event')
    .description('what the merchant is told, and how its delivery went')
    .addHelpText('after', EXAMPLES.group);
  group
    .command('list')
    .description('list events, newest first')
    .argument('<account_id>')
    .addOption(envOption())
    .option('--limit <n>', `how many, 1 to ${LIMIT_MAX}`, parseLimit(LIMIT_MAX), LIMIT_DEFAULT)
    .option(
      '--before <cursor>',
      'continue a list at its next_cursor, or before a time',
      parseCursor,
    )
    .option('--resource <id>', 'only events of this payment, refund or payout')
    .addHelpText('after', EXAMPLES.list)
    .action((id: string, options: ListOptions) => list(context, id, options));
  group
    .command('show')
    .description('show one event with every attempt to deliver it')
    .argument('<event_id>')
    .action((id: string) => show(context, id));
  addRedeliverCommand(group, context);
}

async function list(context: CliContext, accountId: string, options: ListOptions): Promise<void> {
  const { env, limit, before, resource } = options;
  const stores = await context.stores();
  const account = await findAccount(stores, accountId);
  const found = await stores.events.list({
    account_id: account._id,
    livemode: isLive(env),
    resource_id: resource,
    before,
    limit: limit + 1,
  });
  const page = found.slice(0, limit);
  const has_more = found.length > limit;
  const next_cursor = has_more ? (page.at(-1)?.position ?? null) : null;
  const rows = page.map(({ _id, type, created, resource_id, delivery }) => [
    _id,
    when(created),
    type,
    resource_id,
    delivery.status,
    String(delivery.attempts),
    when(delivery.next_attempt_at),
  ]);
  const heading = ['EVENT', 'CREATED', 'TYPE', 'RESOURCE', 'DELIVERY', 'ATTEMPTS', 'NEXT ATTEMPT'];
  context.print({
    json: { data: page.map(present), has_more, next_cursor },
    text:
      table(heading, rows, 'There are no events.') +
      (next_cursor === null ? '' : `\n\nThere are more: --before ${next_cursor}`),
  });
}

async function show(context: CliContext, id: string): Promise<void> {
  const stores = await context.stores();
  const event = await findEvent(stores, id);
  const attempts = (await stores.deliveries.forEvent(id)).reverse().map(presentAttempt);
  const { account_id, resource_id, delivery } = event;
  const head = fields([
    ['Event', id],
    ['Type', event.type],
    ['Created', when(event.created)],
    ['Account', `${account_id}, ${event.livemode ? 'live' : 'sandbox'}`],
    ['Resource', resource_id],
    ['Data', JSON.stringify(event.data)],
    ['Delivery', delivery.status],
    ['Next attempt', when(delivery.next_attempt_at)],
  ]);
  const rows = attempts.map((row) => [
    when(row.at),
    row.run === 0 ? 'first' : `again ${row.run}`,
    String(row.attempt),
    row.outcome,
    row.error ?? `HTTP ${row.status_code}`,
    `${row.duration_ms} ms`,
    row.url,
  ]);
  const heading = ['AT', 'DELIVERY', 'ATTEMPT', 'OUTCOME', 'ANSWER', 'TOOK', 'URL'];
  context.print({
    json: { ...present(event), account_id, resource_id, attempts },
    text: `${head}\n\n${table(heading, rows, 'No attempt was made yet.')}`,
  });
}

function present({ _id, type, created, livemode, data, delivery }: EventDocument) {
  const { status, attempts, next_attempt_at } = delivery;
  return {
    id: _id,
    type,
    created,
    livemode,
    data,
    delivery: { status, attempts, next_attempt_at },
  };
}

function presentAttempt(row: DeliveryDocument) {
  const { run, attempt, at, url, outcome, status_code, error } = row;
  const { duration_ms, response_excerpt, next_attempt_at } = row;
  return {
    run,
    attempt,
    at,
    url,
    outcome,
    status_code,
    error,
    duration_ms,
    response_excerpt,
    next_attempt_at,
  };
}
