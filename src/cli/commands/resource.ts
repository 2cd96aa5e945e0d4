import { z } from 'zod';
import type { CallbackResource } from '../../domain/callback/callback';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { KINDS, LIFECYCLES } from '../../lifecycles';
import { actOn } from '../../service/operators/act';
import { getSystemUser } from '../../service/operators/deps';
import { findResource, readPage } from '../../service/operators/resource';
import { type CliCommand, defineCommand, defineGroup } from '../command';
import { Amount, ApprovedBy, Hours, Operator, Reason } from '../options';
import { printFields } from '../output';
import { pageText } from './resource-text';

export const resourceCommands: readonly CliCommand[] = KINDS.map((kind) => {
  const group = kind.replace('_', '-');
  const noun = kind.replace('_', ' ');
  const ResourceId = z.string().meta({ argument: true, placeholder: `${kind}_id` });

  const show = defineCommand({
    name: 'show',
    description: `show all that is stored of a ${noun}: transitions, ledger, callbacks, audit trail`,
    options: z.object({ id: ResourceId }),
    notes:
      'Details of customers and recipients are left out; texts of merchants and banks are shown.',
    example: `${group} show 0d1f…`,
    run: async (context, { id }) => {
      const { stores } = await context.readDeps();
      const page = await readPage(stores, kind, id);
      const { resource, ...rest } = page;
      context.print({ json: { [kind]: resource, ...rest }, text: pageText(page) });
    },
  });

  const act = defineCommand({
    name: 'act',
    description: `do to a ${noun} what its workflow lets operators do; the audit trail records it`,
    options: getActOptions(kind, ResourceId),
    notes: `
The workflow decides, and refuses in words what the state does not allow. One that was terminated is
restarted for it.`,
    example: `${group} act 0d1f… ${LIFECYCLES[kind].acts[0]} --operator mia --reason "Ticket 42"`,
    run: async (context, { id, act: what, hours, ...options }) => {
      if ((what === 'snooze') !== (hours !== undefined)) {
        throw new ServiceError('invalid_usage', 'A snooze, and nothing else, takes --hours.');
      }
      const deps = await context.withTemporal(await context.readDeps());
      const { creditLimit } = context.settings();
      const request = omitUndefined({ what, hours, ...options, by: getSystemUser() });
      const { status, version, bank } = await actOn({ ...deps, creditLimit }, kind, id, request);
      const { attention = null } = await findResource(deps.stores, kind, id);
      const json = omitUndefined({ [`${kind}_id`]: id, status, version, bank, attention });
      printFields(context, { json }, [
        ['Done', what],
        ['Status', status],
        ['Version', String(version)],
        ['Bank', bank],
        ['Attention', attention ?? '-'],
      ]);
    },
  });

  return defineGroup({
    name: group,
    description: `see one ${noun}, and act on it`,
    commands: [show, act],
  });
});

function getActOptions(kind: CallbackResource, ResourceId: z.ZodString) {
  return z.object({
    id: ResourceId,
    act: z.enum(LIFECYCLES[kind].acts).describe('what to do').meta({ argument: true }),
    operator: Operator,
    reason: Reason,
    hours: Hours.optional().describe('of a snooze: how long, up to 720'),
    amount: Amount.optional().describe('what really moved, where that differs from the request'),
    approved_by: ApprovedBy,
  });
}
