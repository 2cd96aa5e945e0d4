import { z } from 'zod';
import { OUTCOMES } from '../../domain/banks/movement';
import { bookCurrency } from '../../domain/crypto/assets';
import { omitUndefined } from '../../domain/defined';
import { isLive, toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { formatAmount } from '../../domain/money/money';
import { isApprovalRequired } from '../../domain/operators/approval';
import { assertNoted } from '../../service/banks/connectors';
import {
  findMovement,
  listMovements,
  presentMovement,
  type ShownMovement,
} from '../../service/banks/movements';
import { actAsOperator } from '../../service/operators/act';
import { openActing, printApprovalRequired } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import {
  Amount,
  ApprovedBy,
  Connector,
  Env,
  Id,
  idOption,
  limit,
  NOTED,
  textOption,
} from '../options';
import { type Columns, formatTime, printFields, printList } from '../output';

export const MOVEMENTS: Columns<ShownMovement> = {
  MOVEMENT: 'id',
  REPORTED: 'reported_at',
  DIRECTION: 'direction',
  AMOUNT: (movement) => formatMovementAmount(movement),
  IDENTITY: 'identity',
  STATE: ({ state, resolution }) => (resolution === null ? state : `${state}: ${resolution.as}`),
  REASON: 'reason',
};

/** @param amount minor units; by default all of it */
function formatMovementAmount(movement: ShownMovement, amount = movement.amount): string {
  const currency = 'currency' in movement ? movement.currency : bookCurrency(movement);
  return formatAmount(amount, currency);
}

const MovementId = Id.describe('its id, as the list prints it').meta({
  argument: true,
  placeholder: 'movement_id',
});

const list = defineCommand({
  name: 'list',
  description: 'list what banks and chains moved, the oldest first',
  options: z.object({
    open: z.boolean().default(false).describe('only what is in suspense'),
    resource: idOption('only those of one resource').optional(),
    connector: Connector.optional(),
    env: Env.optional(),
    limit: limit(1_000, 100),
    after: textOption('continue a list at its next_cursor', 'cursor').optional(),
  }),
  example: 'movement list --open --env live',
  run: async (context, { resource: resource_id, env, ...query }) => {
    const deps = await context.readDeps();
    const livemode = env && isLive(env);
    printList(context, {
      ...(await listMovements(deps, { ...query, resource_id, livemode })),
      cursorOption: '--after',
      present: (row) => row,
      columns: MOVEMENTS,
      none: query.open ? 'Nothing is in suspense.' : 'No movement was reported.',
    });
  },
});

const show = defineCommand({
  name: 'show',
  description: 'show one movement: its names, who reported it, and who has it',
  options: z.object({ id: MovementId }),
  example: 'movement show mv_0d1f…',
  run: async (context, { id }) => {
    const movement = presentMovement(await findMovement(await context.readDeps(), id));
    const { connector, livemode, names, direction, value_date, sources, state } = movement;
    const { resource, resource_id, reason, resolution, fee } = movement;
    printFields(context, { json: movement }, [
      ['Movement', id],
      ['Connector', `${connector}, ${toEnv(livemode)}`],
      ['Names', names.join(', ')],
      ['Amount', `${formatMovementAmount(movement)} ${direction}`],
      ['In suspense', formatMovementAmount(movement, movement.in_suspense)],
      [
        'Acquirer’s fee',
        fee === null
          ? undefined
          : `${formatMovementAmount(movement, fee.amount)}, borne by the ${fee.bearer}`,
      ],
      ['Value date', value_date ?? '-'],
      ['Reported', sources.map((each) => `${formatTime(each.at)} ${each.kind}`).join(', ')],
      ['Resource', resource === null ? '-' : `${resource} ${resource_id}`],
      ['State', state],
      ['Reason', reason ?? '-'],
      [
        'Resolved',
        resolution === null
          ? '-'
          : `${resolution.as} ${formatMovementAmount(movement, resolution.amount)}`,
      ],
    ]);
  },
});

const resolve = defineCommand({
  name: 'resolve',
  description: 'decide once who has, or bears, what is in suspense',
  options: z.object({
    id: MovementId,
    as: z.enum(OUTCOMES).describe('who has it, or bears it').meta({ placeholder: 'outcome' }),
    amount: Amount.optional().describe('a part of it; the rest stays in suspense'),
    transaction_id: textOption(
      'of a deposit that the customer has back: the transaction that sent it',
      'transaction',
    ).optional(),
    address: textOption('of the same: where it was sent', 'address').optional(),
    ...NOTED,
    approved_by: ApprovedBy,
  }),
  notes: `
merchant credits what came, and debits what was sent; customer has the bank send back what came for a payment, under an
instruction of its own; bank: it went back to the bank, or came back from there; loss: the service has it, or bears it;
never_happened: the report was wrong, and no statement will show it. A crypto deposit is resolved as a whole: as
customer once it is sent back, as loss or never_happened; one that was credited, and that the chain has removed, as
merchant or loss. What the resource itself takes, as mark_settled
does, is refused with that act. On live it needs OPERATOR_KEY and --reason, and above APPROVAL_LIMIT a second operator
approves it, but for customer.`,
  example: 'movement resolve mv_0d1f… --as customer --operator mia --reason "Ticket 42"',
  run: async (
    context,
    { id, as, operator: typed, reason: typedReason, approved_by, ...details },
  ) => {
    const found = await findMovement(await context.readDeps(), id);
    const { livemode, resource, resource_id } = found;
    if (resource === null || resource_id === null) {
      const message = `${id} is an operator's act: undo it by \`balance reverse ${found.entry}\`.`;
      throw new ServiceError('wrong_state', message);
    }
    const isDeposit = resource === 'crypto_payment';
    if (!isDeposit && (details.transaction_id ?? details.address) !== undefined) {
      const message = 'Only a deposit takes --transaction-id and --address.';
      throw new ServiceError('invalid_usage', message);
    }
    const what = 'resolve_movement';
    const { deps, verified, names } = await openActing(context, {
      livemode,
      what,
      operator: typed,
    });
    assertNoted({ livemode }, { operator: names.operator, reason: typedReason }, 'does this');
    const reason = typedReason ?? 'resolved on the command line';
    const second_operator = { approved_by: livemode ? undefined : approved_by };
    const act = { what, movement: id, as, reason, ...details, ...names, ...second_operator };
    const answer = await actAsOperator(deps, resource, resource_id, omitUndefined(act), verified);
    if (isApprovalRequired(answer)) return printApprovalRequired(context, answer);
    const movement = presentMovement(await findMovement(deps, id));
    printFields(context, { json: movement }, [
      ['Movement', id],
      ['State', movement.state],
      ['Resolved', as],
    ]);
  },
});

export const movementCommands = defineGroup({
  name: 'movement',
  description: 'what banks and chains moved, and deciding about what is in suspense',
  commands: [list, show, resolve],
});
