import { z } from 'zod';
import { omitUndefined } from '../../domain/defined';
import {
  type CallbackDocument,
  dismissCallback,
  findCallback,
  listWaitingCallbacks,
  redeliverCallback,
} from '../../service/callbacks';
import { defineCommand, defineGroup } from '../command';
import { limit, Reason, textOption } from '../options';
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
    resource_id: textOption('only those about this payment, refund or payout', 'id').optional(),
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
      columns: ['CALLBACK', 'RECEIVED', 'RESOURCE', 'ID', 'SAYS', 'WAITS'],
      cells: (row) => [
        row.id,
        formatTime(row.received_at),
        row.resource,
        row.resource_id,
        row.name,
        formatOutcome(row),
      ],
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
  options: z.object({ id: CallbackId }),
  example: 'callback deliver sandbox:cb_…',
  run: async (context, { id }) => {
    const deps = await context.actingDeps();
    // An unknown callback is refused first, even while Temporal is unavailable.
    await findCallback(deps.stores, id);
    const status = await redeliverCallback(await context.withTemporal(deps), id);
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
    'take a parked callback off the list and out of the metrics; the audit log records it',
  options: z.object({ id: CallbackId, reason: Reason }),
  notes: 'It stays stored. If its connector gets the resource, it can still be delivered.',
  example: 'callback dismiss sandbox:cb_… --reason "Ticket 42: a payment of another service"',
  run: async (context, { id, reason }) => {
    await dismissCallback(await context.actingDeps(), id, reason);
    context.print({ json: { id, status: 'dismissed' }, text: `${id} was dismissed.` });
  },
});

function presentCallback(callback: CallbackDocument) {
  const { _id: id, connector, resource, resource_id, name } = callback;
  const { received_at, signalled_at, parked, unapplied, signed_by = null } = callback;
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
