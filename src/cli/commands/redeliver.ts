import { type Command, Option } from 'commander';
import { type Env, isLive } from '../../domain/environment';
import {
  DELIVERY_STATUSES,
  type DeliveryStatus,
  EVENT_TYPES,
  type EventType,
} from '../../domain/event';
import { findEvent, redeliverEvent } from '../../temporal/redeliver';
import { countSelected, type Selected } from '../../temporal/redeliver-many';
import { findAccount } from '../account';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { parseCursor, parseNames } from '../options';
import { redeliverSelected } from '../redeliver-many';

/** Events per line of progress on stderr. */
const PROGRESS_EVERY = 100;
const STATUSES: DeliveryStatus[] = ['exhausted', 'pending'];

const ABOUT = `
Each is sent to the endpoint as it is now, with twelve new attempts. A delivery that waits for its
next attempt ends for it. Without an event id every event of an account is sent that was created
since a time and stands like this, 20 a second; those that wait for their very first attempt are
left alone.

Examples:
  npm run -s cli -- event redeliver evt_… --json
  {"event_id", "status"}
  npm run -s cli -- event redeliver --account acct_… --env live --since 2026-11-21T06:00:00Z --dry-run
  npm run -s cli -- event redeliver --account acct_… --env live --since 2026-11-21T06:00:00Z --json
  {"found", "by_status": {"exhausted", "pending"}, "dry_run", "sent", "skipped"}`;

interface Options {
  account?: string;
  env?: Env;
  since?: string;
  until?: string;
  status?: DeliveryStatus[];
  type?: EventType[];
  dryRun?: true;
}

/** Adds `event redeliver`, for one event or for many. */
export function addRedeliverCommand(group: Command, context: CliContext): void {
  group
    .command('redeliver')
    .description('send an event again, or many')
    .argument('[event_id]')
    .option('--account <id>', 'send many: those of this account')
    .addOption(new Option('--env <env>', 'of this environment').choices(['sandbox', 'live']))
    .option('--since <time>', 'created at this time or later', parseCursor)
    .option('--until <time>', 'created before this time; now when not given', parseCursor)
    .option(
      '--status <list>',
      `with a delivery that is ${DELIVERY_STATUSES.join(', ')}; ${STATUSES} when not given`,
      parseNames(DELIVERY_STATUSES),
    )
    .option('--type <list>', 'of these types', parseNames(EVENT_TYPES))
    .option('--dry-run', 'only count them')
    .addHelpText('after', ABOUT)
    .action((id: string | undefined, options: Options) =>
      id === undefined ? many(context, options) : one(context, id, options),
    );
}

async function one(context: CliContext, id: string, options: Options): Promise<void> {
  if (Object.keys(options).length > 0) {
    throw new CliFailure('invalid_usage', 'Give an event id or options, not both.');
  }
  const { stores, audit } = await context.acting();
  // An unknown event is refused first, so that this works while Temporal is away.
  const { account_id, livemode, type } = await findEvent(stores, id);
  await audit({ act: 'event.sent', account_id, livemode, target: id, after: { type } });
  const deps = { stores, temporal: await context.temporal(), ...context.queues() };
  const { delivery } = await redeliverEvent({ ...deps, now: context.now }, id);
  context.print({
    json: { event_id: id, status: delivery.status },
    text: `${id} is being sent again; \`event show ${id}\` tells how it goes.`,
  });
}

async function many(context: CliContext, options: Options): Promise<void> {
  const { account, env, since, until, status = STATUSES, type, dryRun = false } = options;
  if (account === undefined || env === undefined || since === undefined) {
    const message = 'Give an event id, or --account, --env and --since.';
    throw new CliFailure('invalid_usage', message);
  }
  const { stores, audit } = await context.acting();
  const { _id: account_id } = await findAccount(stores, account);
  const filter = {
    account_id,
    livemode: isLive(env),
    since,
    until: until ?? context.now().toISOString(),
    statuses: status,
    types: type,
  };
  const selected = await countSelected({ stores }, filter);
  const { found } = selected;
  if (dryRun) {
    const counted = { ...selected, dry_run: true, sent: 0, skipped: 0 };
    context.print({ json: counted, text: `To be sent again: ${told(selected)}.` });
    return;
  }
  context.progress(`To be sent again: ${told(selected)}.`);
  const deps = {
    stores,
    temporal: await context.temporal(),
    now: context.now,
    ...context.queues(),
  };
  const selection = { since, until: filter.until, delivery: status, types: type, found };
  const line = { act: 'event.sent', account_id, livemode: filter.livemode, target: null } as const;
  await audit({ ...line, after: selection });
  const total = await redeliverSelected(deps, filter, ({ sent, skipped }) => {
    const done = sent + skipped;
    if (done % PROGRESS_EVERY === 0) context.progress(`${done} of ${found}`);
  });
  const { sent, skipped } = total;
  const left = skipped === 0 ? '' : ` Under way by another redelivery: ${skipped}.`;
  context.print({
    json: { ...selected, dry_run: false, sent, skipped },
    text: `Sent again: ${sent}.${left}`,
  });
}

function told({ found, by_status }: Selected): string {
  const each = Object.entries(by_status).map(([status, count]) => `${status} ${count}`);
  return `${found} (${each.join(', ')})`;
}
