import { z } from 'zod';
import { OPERATOR_ROLES } from '../../domain/account/operator';
import {
  createOperator,
  type ListedOperator,
  listOperators,
  revokeOperator,
} from '../../service/operators/keys';
import { defineCommand, defineGroup } from '../command';
import { Operator } from '../options';
import { formatTime, printFields, printList } from '../output';

const create = defineCommand({
  name: 'create',
  description: 'create an operator’s key, and show it once',
  options: z.object({
    name: Operator.describe('the operator').meta({ argument: true }),
    role: z.enum(OPERATOR_ROLES).describe('an approver decides on the requests of others, too'),
  }),
  notes: `
The operator sets it as OPERATOR_KEY. To replace a key, create another for the same name, then revoke the
old one by its id. Who may write to the database may create operators.`,
  example: 'operator create mia --role approver',
  run: async (context, { name, role }) => {
    const operator = await createOperator(await context.actingDeps(), { name, role });
    const note = 'The key is not stored and not shown again: pass it on now.';
    printFields(context, { json: operator, note }, [
      ['Operator id', operator.operator_id],
      ['Name', name],
      ['Role', role],
      ['Key', operator.key],
    ]);
  },
});

const presentOperator = ({ _id, name, role, created_at, revoked_at }: ListedOperator) => ({
  operator_id: _id,
  name,
  role,
  created_at,
  revoked_at,
});

const list = defineCommand({
  name: 'list',
  description: 'list the operators’ keys, oldest first, without the secrets',
  options: z.object({}),
  example: 'operator list',
  run: async (context) => {
    printList(context, {
      rows: await listOperators(await context.readDeps()),
      present: presentOperator,
      columns: ['OPERATOR', 'NAME', 'ROLE', 'CREATED', 'REVOKED'],
      cells: ({ operator_id, name, role, created_at, revoked_at }) => [
        operator_id,
        name,
        role,
        formatTime(created_at),
        formatTime(revoked_at),
      ],
      none: 'There are no operators: on live no command moves money.',
    });
  },
});

const revoke = defineCommand({
  name: 'revoke',
  description: 'revoke a key, or all keys of a name, at once; again changes nothing',
  options: z.object({
    operator: z.string().meta({ argument: true, placeholder: 'name or id' }),
  }),
  example: 'operator revoke mia',
  run: async (context, { operator }) => {
    const rows = await revokeOperator(await context.actingDeps(), operator);
    const lines = rows.map(
      ({ _id, name, revoked_at }) =>
        `The key ${_id} of ${name} is revoked since ${formatTime(revoked_at)}.`,
    );
    context.print({ json: { data: rows.map(presentOperator) }, text: lines.join('\n') });
  },
});

export const operatorCommands = defineGroup({
  name: 'operator',
  description: 'who may move money on live: keys of operators, each shown once',
  commands: [create, list, revoke],
});
