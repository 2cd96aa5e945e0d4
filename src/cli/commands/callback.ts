import { z } from 'zod';
import {
  type CallbackDocument,
  findCallback,
  listWaitingCallbacks,
  redeliverCallback,
} from '../../service/callbacks';
import { defineCommand, defineGroup } from '../command';
import { limit, textOption } from '../options';
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
    limit: limit(1_000, 100),
  }),
  example: 'callback list --unsignalled --connector sandbox',
  run: async (context, { parked, unsignalled, connector, resource_id, limit: count }) => {
    const { stores } = await context.readDeps();
    const one = parked ? 'parked' : 'unsignalled';
    const filter = { waits: parked === unsignalled ? 'any' : one, connector, resource_id } as const;
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

function presentCallback(callback: CallbackDocument) {
  const { _id: id, connector, resource, resource_id, name } = callback;
  const { received_at, signalled_at, parked, unapplied, signed_by = null } = callback;
  const about = { id, connector, resource, resource_id, name };
  return { ...about, received_at, signalled_at, parked, unapplied, signed_by };
}

type Outcome = Pick<CallbackDocument, 'parked' | 'unapplied' | 'signalled_at'>;

export function formatOutcome({ parked, unapplied, signalled_at }: Outcome): string {
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
  commands: [list, show, deliver],
});
