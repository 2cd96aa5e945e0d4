import { z } from 'zod';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { formatCount } from '../../domain/printable';
import {
  type CallbackDocument,
  dismissCallback,
  dismissParked,
  findCallback,
  listWaitingCallbacks,
  redeliverCallback,
  redeliverSignalled,
} from '../../service/banks/callbacks';
import { createReadDeps } from '../../service/operators/deps';
import { defineCommand, defineGroup } from '../command';
import { idOption, limit, Reason, Since, textOption } from '../options';
import { formatTime, printFields, printList } from '../output';

const CallbackId = z
  .string()
  .describe('its id: connector:callback_id')
  .meta({ argument: true, placeholder: 'callback' });

const list = defineCommand({
  name: 'list',
  description: 'list callbacks that wait, the longest waiting first',
  options: z.object({
    parked: z.boolean().default(false).describe('only those without a resource at their connector'),
    unsignalled: z.boolean().default(false).describe('only those that are not parked'),
    connector: textOption('only those of this bank', 'name').optional(),
    resource_id: idOption('only those about this payment, refund or payout').optional(),
    all: z.boolean().default(false).describe('also those that were dismissed'),
    limit: limit(1_000, 100),
  }),
  example: 'callback list --unsignalled --connector sandbox',
  run: async (context, { parked, unsignalled, all, limit: count, ...about }) => {
    const { stores } = await context.readDeps();
    const one = parked ? 'parked' : 'unsignalled';
    const waits = parked === unsignalled ? 'any' : one;
    const filter = { waits, with_dismissed: all, ...about } as const;
    printList(context, {
      ...(await listWaitingCallbacks(stores, filter, count)),
      present: presentCallback,
      columns: {
        CALLBACK: 'id',
        RECEIVED: 'received_at',
        RESOURCE: 'resource',
        ID: 'resource_id',
        SAYS: 'name',
        WAITS: formatOutcome,
      },
      none: 'No callback waits.',
    });
  },
});

const show = defineCommand({
  name: 'show',
  description: 'show one callback, also one that was signalled',
  options: z.object({ id: CallbackId }),
  example: 'callback show sandbox:cb_…',
  run: async (context, { id }) => {
    const { stores } = await context.readDeps();
    const callback = await findCallback(stores, id);
    const row = presentCallback(callback);
    const { occurred_at, bank_reference, amount, code, reason } = callback.body;
    const currency = 'currency' in callback.body ? callback.body.currency : undefined;
    printFields(context, { json: { ...row, callback: callback.body } }, [
      ['Callback', row.id],
      ['About', `${row.resource} ${row.resource_id}`],
      ['Says', row.name],
      ['Code', code ?? '-'],
      ['Reason', reason ?? '-'],
      ['Bank reference', bank_reference ?? '-'],
      ['Amount', [amount, currency].filter((word) => word !== undefined).join(' ') || '-'],
      ['Occurred', formatTime(occurred_at)],
      ['Received', formatTime(row.received_at)],
      ['Signed with', row.signed_by ?? '-'],
      ['Signalled', formatTime(row.signalled_at)],
      ['Outcome', formatOutcome(row)],
    ]);
  },
});

const deliver = defineCommand({
  name: 'deliver',
  description: 'deliver a callback that waits to its workflow; a callback counts once',
  options: z.object({
    id: CallbackId.optional(),
    again: z.boolean().default(false).describe('also one that was signalled'),
    since: Since.optional()
      .describe('without an id: all that were signalled since, and that no workflow has applied')
      .meta({ placeholder: 'time' }),
    connector: textOption('only those of this bank', 'name').optional(),
  }),
  notes: 'After a restore or a failover Temporal may have lost signals: use --again --since.',
  example: 'callback deliver --again --since 2026-03-01T09:00:00Z',
  run: async (context, { id, again, since, connector }) => {
    const deps = await context.actingDeps();
    if (id === undefined) {
      if (!again || since === undefined) {
        const message = 'Name a callback, or use --again with --since.';
        throw new ServiceError('invalid_request', message);
      }
      const { stores } = createReadDeps(await context.longReader(), context.settings().mongodb.db);
      const acting = { ...(await context.withTemporal(deps)), again, reader: stores.callbacks };
      const filter = { since, connector };
      const { delivered, failed } = await redeliverSignalled(acting, filter, context.progress);
      const faults = failed.map((each) => `${each.id}: ${each.reason}`);
      const counts = `${delivered.length} delivered again, ${failed.length} not.`;
      context.print({ json: { delivered, failed }, text: [counts, ...faults].join('\n') });
      if (failed.length === 0) return;
      throw new ServiceError('callbacks_left', `Not delivered: ${failed.length}.`);
    }
    // Refuses an unknown callback even while Temporal is unavailable.
    await findCallback(deps.stores, id);
    const acting = { ...(await context.withTemporal(deps)), ...(again && { again }) };
    const status = await redeliverCallback(acting, id);
    const text = {
      delivered: `${id} was delivered to its workflow.`,
      parked: `${id} stays parked: its connector still has no such resource.`,
    };
    context.print({ json: { id, status }, text: text[status] });
  },
});

const dismiss = defineCommand({
  name: 'dismiss',
  description:
    'take parked callbacks off the list and out of the metrics; the audit log records it',
  options: z.object({
    id: CallbackId.optional(),
    parked: z.boolean().default(false).describe('without an id: all parked ones of the connector'),
    connector: textOption('with --parked: the connector', 'name').optional(),
    reason: Reason,
  }),
  notes: 'They stay stored. If their connector gets the resource, they can still be delivered.',
  example: 'callback dismiss sandbox:cb_… --reason "Ticket 42: a payment of another service"',
  run: async (context, { id, parked, connector, reason }) => {
    const deps = await context.actingDeps();
    if (id === undefined) {
      if (!parked || connector === undefined) {
        throw new ServiceError('invalid_request', NEEDS_PARKED);
      }
      const dismissed = await dismissParked(deps, connector, reason);
      const text = `${formatCount(dismissed, 'callback')} of ${connector} dismissed.`;
      return context.print({ json: { connector, dismissed }, text });
    }
    if (parked || connector !== undefined) {
      throw new ServiceError('invalid_request', NEEDS_PARKED);
    }
    await dismissCallback(deps, id, reason);
    context.print({ json: { id, status: 'dismissed' }, text: `${id} was dismissed.` });
  },
});

const NEEDS_PARKED = 'Name a callback, or use --parked with --connector.';

function presentCallback(callback: CallbackDocument) {
  const { _id: id, connector, resource, resource_id, name } = callback;
  const { received_at, signalled_at, parked, unapplied, key_id: signed_by = null } = callback;
  const { dismissed_at } = callback;
  const about = { id, connector, resource, resource_id, name };
  const state = { received_at, signalled_at, parked, unapplied, signed_by };
  return omitUndefined({ ...about, ...state, dismissed_at });
}

type Outcome = Pick<CallbackDocument, 'parked' | 'unapplied' | 'signalled_at' | 'dismissed_at'>;

export function formatOutcome({ parked, unapplied, signalled_at, dismissed_at }: Outcome): string {
  if (parked !== null && dismissed_at !== undefined) return `dismissed, parked: ${parked}`;
  if (parked !== null) return `parked: ${parked}`;
  if (unapplied !== null) return `not applied: ${unapplied}`;
  return signalled_at === null ? 'never signalled' : 'signalled';
}

export const callbackCommands = defineGroup({
  name: 'callback',
  description: 'what banks reported and no workflow has received',
  notes: `
A callback waits when it is parked (its connector has no such resource), or when its connector died before
it reached the workflow and the bank did not repeat it.`,
  commands: [list, show, deliver, dismiss],
});
