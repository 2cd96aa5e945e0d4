import { Counter, type Registry } from 'prom-client';
import type { Logger } from '../../src/base/log';
import { describeMetric } from '../../src/base/metrics';
import {
  computeRest,
  isInSuspense,
  type Movement,
  reversalId,
} from '../../src/domain/banks/movement';
import { disputeInstructionId } from '../../src/domain/dispute/dispute';
import { isUnsent } from '../../src/domain/payout/payout';
import { type Documents, isInFlight, LIFECYCLES, type ResourceStores } from '../../src/lifecycles';
import type { Stores } from '../../src/store';
import { toMovement } from '../../src/store/movements';
import type { PaymentDocument } from '../../src/store/payments';
import type {
  DisputeInstruction,
  Outdated,
  PayoutInstruction,
  RefundInstruction,
  ReversalInstruction,
} from './activities';
import { type Attempt, beginAttempt } from './attempt';
import type { SettlementInstruction } from './crypto';

export { type Attempt, beginAttempt };

interface Instructions {
  payment: ReversalInstruction;
  refund: RefundInstruction;
  payout: PayoutInstruction;
  dispute: DisputeInstruction;
  crypto_settlement: SettlementInstruction;
}

type Outgoing = keyof Instructions;

type PaymentRead = PaymentDocument & { movements: readonly Movement[] };

/** Documents with which an instruction is compared. */
type Reads = Pick<Documents, Exclude<Outgoing, 'payment'>> & { payment: PaymentRead };

interface Rules<R extends Outgoing> {
  getId: (instruction: Instructions[R]) => string;
  read: (stores: ResourceStores, id: string) => Promise<Reads[R] | null>;
  /** A new field of the instruction does not compile without its fact. */
  buildFacts: (
    document: Reads[R],
    instruction: Instructions[R],
  ) => Omit<Instructions[R], 'version'>;
  isOpen?: (document: Reads[R], instruction: Instructions[R]) => boolean;
}

const RULES: { [R in Outgoing]: Rules<R> } = {
  payment: {
    getId: ({ payment_id }) => payment_id,
    read: async ({ payments, movements }, id) => {
      const payment = await payments.get(id);
      return (
        payment && { ...payment, movements: (await movements.forResource(id)).map(toMovement) }
      );
    },
    buildFacts: (document, instruction) => {
      const movement = findReversed(document, instruction);
      const { _id: payment_id } = document;
      if (movement === undefined)
        return { payment_id, instruction_id: '', amount: 0, currency: '' };
      const { instruction_id } = instruction;
      const { currency } = movement;
      // Money that has left suspense meanwhile is compared as it was: the instruction is outdated.
      const amount = Number(isInSuspense(movement) ? computeRest(movement) : movement.amount);
      return { payment_id, instruction_id, amount, currency };
    },
    isOpen: (document, instruction) => {
      const movement = findReversed(document, instruction);
      return movement !== undefined && isInSuspense(movement);
    },
  },
  refund: {
    getId: ({ refund_id }) => refund_id,
    read: (stores, id) => stores.refunds.get(id),
    buildFacts: ({ _id, payment_id, payment_bank_reference, ...money }) => {
      const { amount, currency, method, livemode } = money;
      const ids = { refund_id: _id, payment_id, payment_bank_reference };
      return { ...ids, amount, currency, method, livemode };
    },
  },
  payout: {
    getId: ({ payout_id }) => payout_id,
    read: (stores, id) => stores.payouts.get(id),
    buildFacts: ({ _id, amount, currency, method, livemode }) => {
      return { payout_id: _id, amount, currency, method, livemode };
    },
  },
  dispute: {
    getId: ({ dispute_id }) => dispute_id,
    read: (stores, id) => stores.disputes.get(id),
    buildFacts: ({ _id, payment_id, name, livemode, answering }) => {
      const instruction_id = disputeInstructionId(_id, answering ?? 'acceptance');
      return { instruction_id, dispute_id: _id, payment_id, bank_dispute_id: name, livemode };
    },
  },
  crypto_settlement: {
    getId: ({ crypto_settlement_id }) => crypto_settlement_id,
    read: (stores, id) => stores.crypto_settlements.get(id),
    buildFacts: ({ _id, asset, network, amount, wallet_address, livemode }) => {
      return { crypto_settlement_id: _id, asset, network, amount, wallet_address, livemode };
    },
  },
};

function findReversed(
  { _id, movements }: PaymentRead,
  { instruction_id }: ReversalInstruction,
): Movement | undefined {
  return movements.find(({ id }) => reversalId(_id, movements, id) === instruction_id);
}

export type GuardMeter = ReturnType<typeof createGuardMeter>;

export function createGuardMeter(registry: Registry) {
  const refused = new Counter({
    ...describeMetric('payments_instructions_refused_total'),
    registers: [registry],
  });
  return { refused: (about: { connector: string; resource: string }) => refused.inc(about) };
}

type GuardDeps = ResourceStores &
  Pick<Stores, 'accounts'> & {
    connector: string;
    log: Pick<Logger, 'error'>;
    meter?: GuardMeter | undefined;
  };

export type InstructionGuard = ReturnType<typeof createInstructionGuard>;

/**
 * Compares instructions with their documents, right before the bank is instructed: a restored or
 * reset workflow may request what an operator has canceled since, and another client of Temporal
 * what nobody has accepted.
 * @see docs/connectors.md#one-instruction-one-effect
 */
export function createInstructionGuard({ connector, log, meter, ...stores }: GuardDeps) {
  /** @throws Error unless the document, at this version or later, agrees with the instruction */
  const readDocument = async <R extends Outgoing>(resource: R, instruction: Instructions[R]) => {
    const { getId, read, buildFacts } = RULES[resource];
    const id = getId(instruction);
    const document = await read(stores, id);
    if (document === null) throw createBehindError(resource, id);
    const facts = { ...buildFacts(document, instruction), connector: document.connector };
    const values: Partial<Record<string, unknown>> = { ...instruction, connector };
    const differing = Object.entries(facts).flatMap(([name, value]) =>
      values[name] === value ? [] : [name],
    );
    if (resource !== 'payment' && !Number.isInteger(values['version'])) differing.push('version');
    if (differing.length > 0) {
      log.error({ connector, [`${resource}_id`]: id, differing }, 'instruction refused');
      meter?.refused({ connector, resource });
      const names = differing.join(', ');
      throw new Error(`The instruction differs from the ${resource} in ${names}: not instructed.`);
    }
    if ('version' in instruction && document.transition < instruction.version) {
      throw createBehindError(resource, id);
    }
    return document;
  };
  const assertNotFrozen = async (resource: Outgoing, account_id: string) => {
    const account = LIFECYCLES[resource].isOutgoing ? await stores.accounts.get(account_id) : null;
    if (account?.frozen) throw new Error('The account is frozen: not instructed.');
  };
  return {
    /**
     * @returns `outdated` if the document is final or newer
     * @throws Error to be tried again: the document is missing, differs, is behind its workflow (a
     *   restored database) or of a frozen account, or the attempt took too long
     */
    findOutdated: async <R extends Outgoing>(
      resource: R,
      instruction: Instructions[R],
      attempt?: Attempt,
    ): Promise<Outdated | undefined> => {
      const document = await readDocument(resource, instruction);
      const isNewer = 'version' in instruction && document.transition > instruction.version;
      const isOpen =
        RULES[resource].isOpen?.(document, instruction) ?? isInFlight(resource, document.status);
      if (isNewer || !isOpen) return { outcome: 'outdated' };
      await assertNotFrozen(resource, document.account_id);
      attempt?.assertInTime();
      return undefined;
    },
    /**
     * Checks a queued payout again, when its file is cut.
     * @returns false if nothing is to be sent for it anymore
     * @throws Error as `findOutdated` does: leave it for a later file
     */
    mayStillSend: async (instruction: PayoutInstruction): Promise<boolean> => {
      const { status, account_id } = await readDocument('payout', instruction);
      if (!isUnsent(status)) return false;
      await assertNotFrozen('payout', account_id);
      return true;
    },
  };
}

function createBehindError(resource: Outgoing, id: string): Error {
  return new Error(`The document of ${resource} ${id} is behind its workflow: not instructed.`);
}
