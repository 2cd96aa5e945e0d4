import { z } from 'zod';
import { isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { DELIVERY_STATUSES, type DeliveryStatus, EVENT_TYPES } from '../../domain/webhook/event';
import { findAccount } from '../../service/accounts';
import { withAuditLine } from '../../service/audited';
import { findEvent, redeliverEvent } from '../../service/events/redeliver';
import {
  countSelected,
  redeliverAll,
  type SelectionCount,
} from '../../service/events/redeliver-many';
import { defineCommand } from '../command';
import type { CliContext } from '../context';
import { Env, names, Time, textOption } from '../options';

/** Events for each line of progress. */
const PROGRESS_EVERY = 100;
const STATUSES: DeliveryStatus[] = ['exhausted', 'pending'];

const Options = z.object({
  event_id: z.string().optional().meta({ argument: true }),
  account: textOption('send many: those of this account', 'id').optional(),
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

export const redeliver = defineCommand({
  name: 'redeliver',
  description: 'send an event again, or many',
  options: Options,
  notes: `
Each is sent to the endpoint as it is now, with twelve new attempts, which replace those that are left.
Many are sent at 20 a second; events that wait for their first attempt are left alone.`,
  example: 'event redeliver --account acct_… --env live --since 2026-11-21T06:00:00Z --dry-run',
  run: (context, { event_id, ...selection }) =>
    event_id === undefined
      ? redeliverMany(context, selection)
      : redeliverOne(context, event_id, selection),
});

async function redeliverOne(context: CliContext, id: string, selection: Selection) {
  if (Object.values(selection).some((value) => value !== undefined)) {
    throw new ServiceError('invalid_usage', 'Give an event id or options, not both.');
  }
  const acting = await context.actingDeps();
  // An unknown event is refused first, even while Temporal is unavailable.
  const { account_id, livemode, type } = await findEvent(acting.stores, id);
  const deps = await context.withTemporal(acting);
  const change = { act: 'event.sent', account_id, livemode, target: id, after: { type } } as const;
  const { delivery } = await withAuditLine(deps.audit, change, () => redeliverEvent(deps, id));
  context.print({
    json: { event_id: id, status: delivery.status },
    text: `${id} is being sent again; \`event show ${id}\` shows its attempts.`,
  });
}

async function redeliverMany(
  context: CliContext,
  { account, env, since, until, status = STATUSES, type, dry_run = false }: Selection,
) {
  if (account === undefined || env === undefined || since === undefined) {
    const message = 'Give an event id, or --account, --env and --since.';
    throw new ServiceError('invalid_usage', message);
  }
  const acting = await context.actingDeps();
  await findAccount(acting.stores, account);
  const owner = { account_id: account, livemode: isLive(env) };
  const times = { since, until: until ?? context.now().toISOString() };
  const filter = { ...owner, ...times, statuses: status, types: type };
  const counts = await countSelected(acting, filter);
  const summary = `To be sent again: ${formatCounts(counts)}.`;
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
  const note = skipped === 0 ? '' : ` Sent at the same moment by another redelivery: ${skipped}.`;
  const text = `Sent again: ${sent}.${note}`;
  context.print({ json: { ...counts, dry_run, sent, skipped }, text });
}

function formatCounts({ found, by_status }: SelectionCount): string {
  const each = Object.entries(by_status).map(([status, count]) => `${status} ${count}`);
  return `${found} (${each.join(', ')})`;
}
